"""What classes, functions and objects are made of, as they are now."""

from __future__ import annotations

import dataclasses
import dis
import functools
import types
from collections.abc import Iterable
from typing import Any, Final

from assay.core.memos import memos
from assay.core.source_code import OURS, is_followed

_ROUTINES: Final = (types.FunctionType, staticmethod, classmethod, property)
# What Python itself adds to a class, and what a dataclass derives from its fields.
_ADDED: Final = frozenset(
    [
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__qualname__",
        "__slots__",
        "__static_attributes__",
        "__firstlineno__",
        "__match_args__",
        "__parameters__",
        "__orig_bases__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__abstractmethods__",
        "_abc_impl",
        "__type_params__",
    ]
)
_DERIVED: Final = frozenset(
    [
        "__init__",
        "__repr__",
        "__eq__",
        "__hash__",
        "__setattr__",
        "__delattr__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__replace__",
    ]
)


def members(cls: type) -> dict[str, Any]:
    """The members of a class as they are now, patches and attributes set from outside included.

    Of assay's own classes, whose source is hashed, only the functions and plain constants: a registry is no content.
    """
    derived = _DERIVED if dataclasses.is_dataclass(cls) else frozenset()
    ours = cls.__module__.partition(".")[0] == OURS
    members = {}
    for name, value in sorted(vars(cls).items()):  # a patch that was taken back may have moved one
        generated = name in derived and getattr(getattr(value, "__code__", None), "co_filename", "").startswith("<")
        if name in _ADDED or generated or isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            continue
        if not ours or isinstance(value, (int, float, str, tuple, *_ROUTINES)):
            members[name] = value
    return members


def variables_read(function: types.FunctionType) -> dict[str, Any]:
    """The variables of its module that a function reads, and what it reads from other modules of the user's.

    Not those that it only fills itself, to find again what it computed (see `assay.core.memos`).
    """
    read: dict[str, Any] = {}
    names = sorted(_names(function.__code__))
    for name in sorted(_globals(function.__code__) - memos(function)):
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            if is_followed(value.__name__) and value.__name__.partition(".")[0] != OURS:
                inside = {n: vars(value)[n] for n in names if n in vars(value)}
                read[name] = {n: v for n, v in inside.items() if not isinstance(v, types.ModuleType)}
        elif value is not None:
            read[name] = value
    return read


def _names(code: types.CodeType) -> set[str]:
    """The names of variables and attributes that a piece of code reads, functions inside it included."""
    inner = (_names(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*inner)


@functools.lru_cache(maxsize=65536)
def _globals(code: types.CodeType) -> frozenset[str]:
    """The names of module variables that a piece of code reads, functions inside it included; no attributes."""
    read = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (_globals(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(read).union(*inner)


def is_cache(value: Any, name: str) -> bool:
    """Whether an attribute only keeps what a cached property computed."""
    return isinstance(getattr(type(value), name, None), functools.cached_property)


def contents(cell: types.CellType) -> Any:
    """The value a closure holds; None where it is not yet filled."""
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def without_file(thing: Any) -> bool:
    """Whether a class or function was made at a prompt, in a notebook or by `exec`: there is no source to go by."""
    module = getattr(thing, "__module__", None)
    if module in ("__main__", None):
        return not is_followed("__main__")
    functions = [thing] if isinstance(thing, types.FunctionType) else vars(thing).values()
    files = {f.__code__.co_filename for f in functions if isinstance(f, types.FunctionType)}
    return bool(files) and all(file.startswith("<") and not file.startswith("<frozen") for file in files)


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, in its dictionary or in slots, by name: the order they were set in is no content."""
    slots = (name for cls in type(value).__mro__ for name in _slots(cls))
    in_slots = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    held = in_slots | dict(getattr(value, "__dict__", {}))
    return {name: held[name] for name in sorted(held, key=str)}


def _slots(cls: type) -> Iterable[str]:
    slots = cls.__dict__.get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if name not in ("__dict__", "__weakref__")]


def public(thing: Any) -> dict[str, Any]:
    """The attributes of an object whose names do not begin with an underscore."""
    return {name: value for name, value in vars(thing).items() if not name.startswith("_")}


def text(value: Any) -> bytes:
    """A plain value as bytes; lone surrogates are kept."""
    return str(value).encode("utf-8", "surrogatepass")


def qualname(thing: Any) -> str:
    """The full name of a class, function or module."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    return f"{getattr(thing, '__module__', '')}.{name or qualname(type(thing))}"
