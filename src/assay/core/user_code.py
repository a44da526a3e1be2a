"""Code of the user's that lies in a folder: found there for a while, and kept apart from that of other folders."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.core.errors import ANYTHING, AssayError, nearest, reason
from assay.core.source_code import forget_modules


@dataclass(frozen=True)
class _Loaded:
    """A module that was loaded from a folder, and the state of its file then."""

    module: ModuleType
    state: tuple[int, int] | None


_loaded: dict[Path, dict[str, _Loaded]] = {}  # by folder and name; some are set aside for a namesake elsewhere
_searched: list[Path] = []  # the folders of the blocks that are open, the innermost last


@contextmanager
def code_in(folder: Path, *, changed_anew: bool = False) -> Iterator[None]:
    """Find modules in a folder first inside the block, as Python does for a script that lies there.

    ``sys.path`` is as it was after the block. Modules of the same name in two folders do not meet: those of the folder
    whose block was entered last are the ones in ``sys.modules``.

    Args:
        folder: Where the modules lie.
        changed_anew: Whether to load the folder's modules anew if the file of one has changed since it was loaded.
    """
    folder = folder.resolve()
    if changed_anew and any(_state(one.module) != one.state for one in _loaded.get(folder, {}).values()):
        _set_aside(_loaded.pop(folder))
    _make_room(folder)
    before = set(sys.modules)  # a namesake of another folder is set aside by now
    sys.path.insert(0, str(folder))
    _searched.append(folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        _searched.pop()
        if str(folder) in sys.path:  # unless the code in the block has taken it out
            sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            top, module = sys.modules.get(name.partition(".")[0]), sys.modules.get(name)
            if top is not None and module is not None and _lies_in(top, folder):
                _loaded.setdefault(folder, {})[name] = _Loaded(module, _state(module))


@contextmanager
def same_directory() -> Iterator[None]:
    """Run code of the user's that may change the working directory; it is again what it was after the block."""
    try:
        here = Path.cwd()
    except OSError:  # it is gone, and nothing is relative to it
        here = None
    try:
        yield
    finally:
        if here is not None:
            with suppress(OSError):
                os.chdir(here)


def folders_searched() -> list[Path]:
    """The folders of the blocks of `code_in` that are open."""
    return list(_searched)


def modules_beside() -> list[ModuleType]:
    """The modules that were loaded from folders by `code_in`, which no other machine can be expected to have."""
    known = [one.module for modules in _loaded.values() for one in modules.values()]
    return [module for module in known if sys.modules.get(module.__name__) is module]


def import_named(name: str, what: str, kinds: str = "'package.module:object'") -> Any:
    """The object that ``package.module:object`` names; ``what`` begins the error if there is none."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise AssayError(f"{what}: give {kinds}")
    if module_name.endswith(".py"):
        raise AssayError(f"{what}: give the module without .py: '{module_name.removesuffix('.py')}:{attribute}'")
    _refuse_namesake(module_name.partition(".")[0], what)
    try:
        with same_directory():
            module = importlib.import_module(module_name)
    except ANYTHING as error:  # importing runs the module
        beside = f", nor is it in {_searched[-1]}" if _searched and isinstance(error, ModuleNotFoundError) else ""
        raise AssayError(f"{what}: cannot import {module_name!r} ({reason(error)}{beside})") from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        known = [n for n in dir(module) if not n.startswith("_") and not isinstance(vars(module).get(n), ModuleType)]
        raise AssayError(f"{what}: {module_name!r} has no {attribute!r}{nearest(attribute, known)}") from None


def _refuse_namesake(top: str, what: str) -> None:
    """Refuse a module of the folder that would not be found, because another one of its name is loaded."""
    loaded = sys.modules.get(top)
    if not _searched or loaded is None or not _holds(_searched[-1], top) or _lies_in(loaded, _searched[-1]):
        return
    other = getattr(loaded, "__file__", None) or "Python itself"
    raise AssayError(f"{what}: {top!r} in {_searched[-1]} has the name of a module loaded from {other}: rename it")


def _make_room(folder: Path) -> None:
    """Set aside modules of other folders whose names this folder uses too, and put back its own."""
    for other, modules in _loaded.items():
        if other != folder:
            _set_aside({name: one for name, one in modules.items() if _holds(folder, name.partition(".")[0])})
    for name, one in _loaded.get(folder, {}).items():
        if sys.modules.get(name) is not one.module:
            sys.modules[name] = one.module
            forget_modules()


def _set_aside(modules: dict[str, _Loaded]) -> None:
    for name, one in modules.items():
        if sys.modules.get(name) is one.module:
            del sys.modules[name]
            forget_modules()


def _holds(folder: Path, top: str) -> bool:
    """Whether a folder has a module or package of this name."""
    return (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()


def _lies_in(module: ModuleType, folder: Path) -> bool:
    """Whether a module without a package around it was loaded from this very folder, not from one inside it."""
    file = getattr(module, "__file__", None)
    places = [Path(file)] if file and Path(file).name != "__init__.py" else [Path(p) for p in _package_path(module)]
    return any(place.resolve().parent == folder for place in places)


def _package_path(module: ModuleType) -> list[str]:
    return [str(place) for place in getattr(module, "__path__", [])]


def _state(module: ModuleType) -> tuple[int, int] | None:
    """Size and time of change of a module's file; None where there is none."""
    try:
        stat = Path(module.__file__ or "").stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns
