"""Records: plain data of a file as a dataclass, whose fields have the types that it states."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from assay.core.names import writable

Record = TypeVar("Record")


def record_of(kind: type[Record], data: Any) -> Record:
    """Make a record of plain data; fields that it does not know, which a newer version may have added, are passed over.

    Args:
        kind: A dataclass whose fields are numbers, words, truth values, and lists and mappings of them.
        data: What a file holds: a mapping of fields.

    Raises:
        TypeError: The data are no mapping, a field is missing, or has another type than the dataclass states.

    Example:
        >>> from dataclasses import make_dataclass
        >>> record_of(make_dataclass("Fold", [("fold", int), ("score", float)]), {"fold": 1, "score": 1, "new": 0})
        Fold(fold=1, score=1)
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"it holds {type(data).__name__}, where a mapping is wanted")
    any_kind: Any = kind
    hints = _hints(any_kind)
    known = {name: value for name, value in data.items() if name in hints}
    for name, value in known.items():
        if not fits(value, hints[name]):
            raise TypeError(f"{name} is {type(value).__name__} {str(value)[:40]!r}")
    return kind(**known)


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has a type; of containers, also what they hold. A whole number serves for any number.

    >>> fits([1, 2], list[float]), fits({"a": None}, dict[str, int]), fits(True, int)
    (True, False, False)
    """
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, inside = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return any(fits(value, one) for one in inside)
    if origin is list:
        return isinstance(value, list) and all(fits(item, inside[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, inside[1]) for item in value.values())
    if isinstance(value, bool):
        return hint is bool
    if isinstance(value, str) and writable(value) != value:  # half a character, which no file that we write has
        return False
    return isinstance(value, (int, float) if hint is float else hint)
