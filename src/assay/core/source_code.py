"""The source that a piece of code depends on: its own file, and the files that file imports, directly or not.

Followed are the files of assay and of the user (scripts, packages in the working folder, editable installs). Installed
packages and Python itself count by their version. A package's ``__init__`` that only passes names on is looked through:
``from assay import Straightness`` depends on the file that defines `Straightness`, not on every measure there is.
Comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

OURS = "assay"
# Packages whose distribution has another name than their import.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image", "yaml": "PyYAML"}
_IMPORTING = {"import_module", "__import__"}
_PASSING_ON = {"__getattr__", "__dir__"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def source_fingerprint(module: str) -> str:
    """Hash of the source a module depends on, empty for a module of an installed package or of Python itself.

    Example:
        >>> source_fingerprint("assay.core.errors") == source_fingerprint("assay.core.errors")
        True
        >>> source_fingerprint("json")
        ''
    """
    known = _stamped.get(module)
    if known is None or known != _stamps(dict((name, path) for name, path, *_ in known)):
        known = _stamped[module] = _stamps(dependencies(module))
    return _combined(known) if known else ""


def forget_modules() -> None:
    """Forget where modules were found: one in ``sys.modules`` has been replaced by another of its name."""
    _top_level.cache_clear()
    _stamped.clear()


def is_followed(module: str) -> bool:
    """Whether a module is assay's or the user's, so that its source counts and not only its version."""
    return _locate(module) is not None


def source_file(module: str) -> Path | None:
    """The file of a module whose source is followed; None for any other."""
    return _locate(module)


def dependencies(module: str) -> dict[str, Path]:
    """The followed modules that a module imports, directly or not, itself among them, with their files."""
    reached: dict[str, Path] = {}
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _locate(name)
        if path is None or name in reached:
            continue
        reached[name] = path
        for wanted in _read(*_stamp(path), name).imports:
            if wanted not in seen and _top_level(wanted.partition(".")[0]) is not None:
                waiting += _targets(wanted)
            seen.add(wanted)
        waiting += _acting_parents(name)
    return reached


@dataclass(frozen=True)
class _Source:
    """A file as it was read: a hash of its code, what it imports, the names it passes on, and whether it does more."""

    code: str
    imports: tuple[str, ...]
    passed_on: dict[str, str]
    acts: bool


def _targets(wanted: str) -> list[str]:
    """The modules behind a dotted name, which may be a module, or a name defined in one or passed on by it."""
    tried: set[str] = set()
    while wanted not in tried:  # two packages may pass a name on to each other
        tried.add(wanted)
        if _locate(wanted) is not None:
            return [] if _only_passes_on(wanted) else [wanted]
        module, name = _nearest_module(wanted)
        if not module:
            return []
        passed_on = _read(*_stamp(_file(module)), module).passed_on
        if name not in passed_on:
            return [module]
        wanted = passed_on[name]
    return []


def _nearest_module(wanted: str) -> tuple[str, str]:
    """The longest beginning of a dotted name that is a module, and the name that follows it."""
    module, _, name = wanted.rpartition(".")
    while module and _locate(module) is None:
        module, _, name = module.rpartition(".")
    return module, name


def _file(module: str) -> Path:
    path = _locate(module)
    assert path is not None
    return path


def _only_passes_on(module: str) -> bool:
    path = _locate(module)
    return path is not None and path.name == "__init__.py" and not _read(*_stamp(path), module).acts


def _acting_parents(module: str) -> Iterator[str]:
    """The packages around a module whose ``__init__`` does more than pass names on."""
    parent = module.rpartition(".")[0]
    while parent:
        if _locate(parent) is not None and not _only_passes_on(parent):
            yield parent
        parent = parent.rpartition(".")[0]


_stamped: dict[str, tuple[tuple[str, Path, int, int], ...]] = {}  # what a module depends on, while no file changes


def _stamps(files: dict[str, Path]) -> tuple[tuple[str, Path, int, int], ...]:
    return tuple(sorted((name, *_stamp(path)) for name, path in files.items() if path.is_file()))


def _stamp(path: Path) -> tuple[Path, int, int]:
    """A file with its size and time of change: what was read of it holds while these stay."""
    stat = path.stat()
    return path, stat.st_size, stat.st_mtime_ns


@functools.lru_cache(maxsize=4096)
def _read(path: Path, size: int, mtime_ns: int, module: str) -> _Source:
    """Read and parse a file; one that cannot be parsed counts by its bytes."""
    data = path.read_bytes()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    if module == "__main__":  # run with -m, it is inside a package
        package = getattr(getattr(sys.modules["__main__"], "__spec__", None), "parent", None) or ""
    try:
        file = _File(ast.parse(data), package)
    except (SyntaxError, ValueError, RecursionError):  # generated tables may be nested deeper than Python can follow
        return _Source(hashlib.sha256(data).hexdigest(), (), {}, True)
    return _Source(file.code, tuple({**file.wanted, **file.chains}), file.passed_on, file.acts)


class _File:
    """A file gone through once: a hash of its code, and what it imports, anywhere in it.

    Imports for the type checker alone do not count, and docstrings are no code.
    """

    def __init__(self, tree: ast.Module, package: str) -> None:
        self.package = package
        self.wanted: dict[str, None] = {}
        self.passed_on: dict[str, str] = {}
        self.chains: dict[str, None] = {}  # such as ``helpers.scale``, which begin with an imported module
        self.modules: dict[str, str] = {}  # local name of a module imported whole → the module
        self.acts = not all(_passes_on(node) for node in tree.body)
        self._attributes: list[ast.Attribute] = []
        self._for_types: set[ast.AST] = set()
        self.code = hashlib.sha256(repr(self._parts(tree)).encode(errors="surrogatepass")).hexdigest()
        for attribute in self._attributes:
            self._chain(attribute)

    def _parts(self, tree: ast.Module) -> list[Any]:
        """The code as a flat list, which says what its tree says: kinds of nodes, lengths of lists, values."""
        see: dict[type, Callable[[Any], None]] = {
            **dict.fromkeys(_DOCUMENTED, _drop_docstring),
            ast.If: self._see_if,
            ast.Import: self._see_import,
            ast.ImportFrom: self._see_import_from,
            ast.Call: self._see_call,
            ast.Assign: self._see_assignment,
            ast.Dict: self._see_dict,
            ast.Attribute: self._attributes.append,
        }
        parts: list[Any] = []
        stack: list[Any] = [tree]
        while stack:
            node = stack.pop()
            kind = node.__class__
            if kind is list:
                parts.append(len(node))
                stack += reversed(node)
            elif isinstance(node, ast.AST):
                if kind in see:
                    see[kind](node)
                parts.append(kind.__name__)
                stack += [getattr(node, field, None) for field in reversed(kind._fields)]
            else:
                parts.append(node)
        return parts

    def _see_if(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.dump(node.test):
            self._for_types.update(ast.walk(node))

    def _see_import(self, node: ast.Import) -> None:
        if node in self._for_types:
            return
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.modules[alias.asname or top] = alias.name if alias.asname else top
            self.wanted[alias.name] = None

    def _see_import_from(self, node: ast.ImportFrom) -> None:
        if node in self._for_types:
            return
        base = _absolute(self.package, "." * node.level + (node.module or ""))
        for alias in node.names:
            full = base if alias.name == "*" else f"{base}.{alias.name}"
            self.wanted[full] = None
            self.passed_on[alias.asname or alias.name] = full
            self.modules[alias.asname or alias.name] = full

    def _see_call(self, node: ast.Call) -> None:
        """Note an import by a call, as ``importlib.import_module("helpers")``."""
        module = _imported_by(node, self.package)
        if module is not None:
            self.wanted[module] = None

    def _see_assignment(self, node: ast.Assign) -> None:
        """Note which variable holds a module that was imported by a call."""
        module = _imported_by(node.value, self.package)
        for target in node.targets:
            if module is not None and isinstance(target, ast.Name):
                self.modules[target.id] = module

    def _see_dict(self, node: ast.Dict) -> None:
        """Note a table of names and the modules that define them, as a package that loads lazily keeps it."""
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                name, home = key.value, value.value
                if isinstance(name, str) and isinstance(home, str) and home.startswith(f"{self.package}."):
                    self.passed_on[name] = f"{home}.{name}"

    def _chain(self, node: ast.Attribute) -> None:
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        module = self.modules.get(inner.id) if isinstance(inner, ast.Name) else _imported_by(inner, self.package)
        if module is not None:
            self.chains[".".join([module, *reversed(names)])] = None


def _imported_by(node: ast.expr, package: str) -> str | None:
    """The module that a call such as ``import_module("helpers")`` imports; None where the name is not written there."""
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    name = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
    if called not in _IMPORTING or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return None
    return _absolute(package, name.value)


def _absolute(package: str, name: str) -> str:
    """The full name of a module that a file in a package names, perhaps from where it is, as ``.helpers``."""
    inner = name.lstrip(".")
    if inner == name:
        return name
    above = package.split(".")
    above = above[: len(above) - (len(name) - len(inner)) + 1]
    return ".".join([*above, *([inner] if inner else [])])


def _passes_on(node: ast.stmt) -> bool:
    """Whether a statement of an ``__init__`` only passes names on (imports, tables of names, lazy loading)."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.If, ast.AnnAssign, ast.Assign)):
        return not isinstance(node, (ast.Assign, ast.AnnAssign)) or not any(
            isinstance(part, ast.Call) for part in ast.walk(node)
        )
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.FunctionDef) and node.name in _PASSING_ON


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        node.body = node.body[1:]


@functools.lru_cache(maxsize=1024)
def _combined(stamps: tuple[tuple[str, Path, int, int], ...]) -> str:
    """One hash of the code of many files, the version of Python and those of the packages they import."""
    digest = hashlib.sha256(f"python {sys.version_info[:2]}".encode())
    packages: set[str] = set()
    for name, path, size, mtime_ns in stamps:
        source = _read(path, size, mtime_ns, name)
        digest.update(f"{name} {source.code}\n".encode())
        packages.update(wanted.partition(".")[0] for wanted in source.imports)
    for package in sorted(packages - {OURS}):
        if _locate(package) is None:
            digest.update(f"{package} {package_version(package)}\n".encode())
    return digest.hexdigest()[:32]


@functools.cache
def package_version(package: str) -> str:
    """Version of the distribution that an import comes from; empty for Python's own modules."""
    if package in sys.stdlib_module_names:
        return ""
    for name in (_DISTRIBUTIONS.get(package), package):
        try:
            return metadata.version(name) if name else ""
        except metadata.PackageNotFoundError:
            continue
    distributions = metadata.packages_distributions().get(package, [])
    return metadata.version(distributions[0]) if distributions else ""


def _locate(module: str) -> Path | None:
    """The file of a module whose source is followed; None for any other, and for a name that is no module."""
    top, *rest = module.split(".")
    start = _top_level(top)
    if start is None:
        return None
    for part in rest:
        if start.name != "__init__.py":
            return None
        inside = start.parent / part
        if (inside / "__init__.py").is_file():
            start = inside / "__init__.py"
        elif inside.with_suffix(".py").is_file():
            start = inside.with_suffix(".py")
        elif inside.is_dir():  # a package without a file of its own
            start = inside / "__init__.py"
        else:
            return None
    return start if start.is_file() else None


@functools.lru_cache(maxsize=4096)
def _top_level(name: str) -> Path | None:
    """The file of a package or module at the top of the search path, if its source is followed."""
    if name in sys.stdlib_module_names and name != "__main__":
        return None
    loaded = sys.modules.get(name)
    spec = importlib.machinery.PathFinder.find_spec(name) if loaded is None else getattr(loaded, "__spec__", None)
    file = getattr(loaded, "__file__", None) or (spec.origin if spec is not None else None)
    if file is None and spec is not None and spec.submodule_search_locations:
        file = str(Path(next(iter(spec.submodule_search_locations))) / "__init__.py")  # a package without such a file
    if file is None or not file.endswith(".py"):
        return None
    path = Path(file)
    return path if name == OURS or not _installed(path) else None


def _installed(path: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, wherever its environment is."""
    if {"site-packages", "dist-packages"}.intersection(path.parts):
        return True
    return any(path.is_relative_to(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
