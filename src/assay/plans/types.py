"""The types that a plan can write, in words."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np

from assay.core.errors import shown as brief

WRITABLE = (
    "text, numbers, true or false, lists, mappings, paths, arrays (the path of an .npy file), and assay's data, images "
    "and sequences"
)
LISTS = (list, tuple, set, frozenset, Sequence, Iterable)
MAPPINGS = (dict, Mapping)
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    Path: "a path",
    dict: "a mapping",
    Any: "anything",
    type(None): "null",
    np.ndarray: "the path of an .npy file or a list of numbers",
}
_BRIEF: dict[Any, str] = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    Path: "path",
    Any: "anything",
    type(None): "null",
    np.ndarray: "array",
    "Labelled": "labelled data",
}


def plain(kind: Any) -> Any:
    """The class behind an annotation such as ``tuple[int, ...]``; a plain class is itself."""
    return typing.get_origin(kind) or kind


def is_union(kind: Any) -> bool:
    """Whether an annotation lists several types."""
    return typing.get_origin(kind) in (Union, types.UnionType)


def is_writable(kind: Any, loaders: Mapping[Any, Any]) -> bool:
    """Whether a value of an annotation can be written in a plan, by YAML itself or by one of the loaders."""
    base = plain(kind)
    if kind in loaders or base in _WORDS or base is Literal:
        return True
    inner = [k for k in typing.get_args(kind) if k is not Ellipsis]
    if is_union(kind):
        return any(is_writable(k, loaders) for k in inner if k is not type(None))
    if base in (*LISTS, *MAPPINGS):
        return all(is_writable(k, loaders) for k in inner)
    return inspect.isclass(base) and dataclasses.is_dataclass(base) and not inspect.isabstract(base)


def shown(value: Any) -> str:
    """A value of a YAML file as an error names it."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return brief(value)


def expected(kind: Any) -> str:
    """What an error says was expected."""
    if is_union(kind):
        return " or ".join(dict.fromkeys(expected(k) for k in typing.get_args(kind) if k is not type(None)))
    if plain(kind) is Literal:
        return f"one of {', '.join(map(repr, typing.get_args(kind)))}"
    base = dict if plain(kind) in MAPPINGS else plain(kind)
    return "a list" if base in LISTS else _WORDS.get(base, getattr(base, "__name__", str(base)))


def described(kind: Any) -> str:
    """An annotation in a few words, for a table of settings.

    Example:
        >>> described(tuple[float, ...]), described(int | None), described(Literal["a", "b"])
        ('list of numbers', 'whole number or null', "'a' or 'b'")
    """
    inner = typing.get_args(kind)
    base = plain(kind)
    if is_union(kind):
        kept = [k for k in inner if plain(k) is not Callable and not (k is int and float in inner)]
        return " or ".join(dict.fromkeys(described(k) for k in kept))
    if base is Literal:
        return " or ".join(map(repr, inner))
    if base in LISTS:
        each = [k for k in inner if k is not Ellipsis]
        if not each or each[0] is Any:
            return "list"
        if base is tuple and Ellipsis not in inner:
            same = len(set(each)) == 1
            return f"list of {len(each)} {_several(each[0]) if same else 'entries: ' + ', '.join(map(described, each))}"
        return f"list of {_several(each[0])}"
    if base in MAPPINGS:
        return f"mapping to {described(inner[1])}" if inner and inner[1] is not Any else "mapping"
    name = getattr(base, "__name__", str(base))
    return _BRIEF.get(base) or _BRIEF.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _several(kind: Any) -> str:
    """What the entries of a list are."""
    words = described(kind)
    if " or " in words and kind is not bool:
        return f"({words})"
    return f"{words}s" if kind in (int, float, Path) else words
