"""The source files of a team's code, found and read without running any of it."""

from __future__ import annotations

import ast
import functools
import sys
import sysconfig
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError, first_line


def own_sources(module: str) -> tuple[Path, ...]:
    """The file of a module and of all modules it imports, directly or not, from the same package or folder."""
    return sources_along(module, tuple(sys.path))


@functools.cache
def sources_along(module: str, path: tuple[str, ...]) -> tuple[Path, ...]:
    """The same, where modules are looked for along ``path``, which is `sys.path` as it is now; remembered for it."""
    top = source_file(module.split(".")[0])
    if top is None:
        return ()
    # A single module among installed packages has all of them for neighbours.
    installed = top.name != "__init__.py" and str(top.parent) in sysconfig.get_paths().values()
    root = top if installed else top.parent
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = source_file(name)
        if name not in files and file is not None and file.is_relative_to(root):
            files[name] = file
            waiting += _imported(file, name)
    return tuple(files[name] for name in sorted(files))


def _imported(file: Path, module: str) -> list[str]:
    """The names in the import statements of a file, each of which may be a module."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names = []
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*up, *([node.module] if node.module else [])])
            names += [start, *(f"{start}.{alias.name}" for alias in node.names)]
    return names


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise AssayError(f"{file} is no Python source that can be read ({first_line(error)})") from error


def names_defined(file: Path) -> set[str] | None:
    """The names that a source file defines or imports at its top; None where only running it could tell."""
    names: set[str] = set()
    for node in _parsed(file).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif not isinstance(node, (ast.Expr, ast.Pass)):
            return None
    return None if names & {"*", "__getattr__"} else names


def source_file(module: str) -> Path | None:
    """The source file of a module, found without importing it or a package around it; None if there is none."""
    path: list[str] | None = None
    spec = None
    parts = module.split(".")
    for i in range(len(parts)):
        spec = _spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return None
        places = spec.submodule_search_locations
        path = list(getattr(places, "_path", places) or [])  # of a namespace package, whose parent is not imported
    assert spec is not None
    return Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") else None


def _spec(name: str, path: list[str] | None) -> Any:
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except (ImportError, ValueError, AttributeError, KeyError):
            spec = None
        if spec is not None:
            return spec
    return None
