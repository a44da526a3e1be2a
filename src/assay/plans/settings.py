"""Typed settings from YAML: every complaint names the file, the line, the key, the value and the remedy."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, Union

import yaml

from assay.core.errors import AssayError, first_line, nearest

T = TypeVar("T")
Loader = Callable[["Node"], Any]


@dataclass(frozen=True)
class Node:
    """A value in a YAML file, with the file, the keys that lead to it, and the lines of all keys."""

    value: Any
    file: Path
    path: tuple[str | int, ...] = ()
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict, repr=False)

    def __getitem__(self, key: str | int) -> Node:
        return Node(self.value[key], self.file, (*self.path, key), self.lines)

    def items(self) -> list[tuple[str, Node]]:
        """The keys and values of this mapping; an error if the value is no mapping."""
        if not isinstance(self.value, dict):
            self.fail(f"is {_shown(self.value)}, not a mapping of keys to values")
        for key in self.value:
            if not isinstance(key, str):
                self[key].fail(f"the key {key!r} is not a word: put it in quotes")
        return [(key, self[key]) for key in self.value]

    def elements(self) -> list[Node]:
        """The entries of this list; an error if the value is no list."""
        if not isinstance(self.value, list):
            self.fail(f"is {_shown(self.value)}, not a list")
        return [self[i] for i in range(len(self.value))]

    @property
    def where(self) -> str:
        """The file, line and key of this value, with which an error begins."""
        line = next(
            (self.lines[p] for i in range(len(self.path) + 1) if (p := self.path[: len(self.path) - i]) in self.lines),
            1,
        )
        key = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in self.path).lstrip(".")
        return f"{self.file}:{line}: {key}".rstrip(": ")

    def fail(self, message: str) -> NoReturn:
        """Raise an error about this value that says where it stands."""
        raise AssayError(f"{self.where}: {message}" if self.path else f"{self.where}: the file {message}")


def read_yaml(path: Path) -> Node:
    """Read a YAML file, by the rules of ``safe_load``, with the line of every key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise AssayError(f"{path} cannot be read ({reason})") from error
    loader = yaml.SafeLoader(text)
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        root = loader.get_single_node()
        if root is None:
            raise AssayError(f"{path} is empty")
        _lines(root, (), lines, path)
        value = loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or first_line(error)
        raise AssayError(f"{path}{line}: not valid YAML ({problem})") from error
    finally:
        loader.dispose()
    return Node(value, path, (), lines)


def _lines(node: yaml.Node, path: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int], file: Path) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise AssayError(f"{file}:{key.start_mark.line + 1}: the key {key.value!r} is there twice")
            seen.add(key.value)
            _lines(value, (*path, key.value), lines, file)
            lines[(*path, key.value)] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            _lines(value, (*path, i), lines, file)


def build(factory: Callable[..., T], node: Node, loaders: Mapping[Any, Loader] | None = None, **fixed: Any) -> T:
    """Call ``factory`` (a dataclass or function) with a mapping's entries, checked against its annotations.

    ``loaders`` make values of types that YAML does not have; ``fixed`` arguments are not the file's to give.
    """
    loaders = loaders or {}
    hints = typing.get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    parameters = {k: p for k, p in inspect.signature(factory).parameters.items() if k not in fixed}
    given = {}
    for key, value in node.items():
        if key not in parameters:
            value.fail(f"unknown key{nearest(key, parameters)}")
        given[key] = convert(value, hints.get(key, Any), loaders)
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in given:
            node.fail(f"lacks the key {key!r}")
    try:
        return factory(**given, **fixed)
    except AssayError as error:
        raise AssayError(f"{node.where}: {error}") from error


def convert(node: Node, kind: Any, loaders: Mapping[Any, Loader]) -> Any:
    """Convert a value to the type of an annotation, or raise an error that says what was expected."""
    value, origin = node.value, typing.get_origin(kind)
    if kind in loaders:
        return loaders[kind](node)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        options = typing.get_args(kind)
        for option in options:
            try:
                return convert(node, option, loaders)
            except AssayError:
                continue
        if len(structured := [o for o in options if o in loaders]) == 1:
            return loaders[structured[0]](node)
        node.fail(f"is {_shown(value)}, expected {_expected(kind)}")
    if origin is Literal:
        options = typing.get_args(kind)
        if value not in options:
            node.fail(f"is {_shown(value)}, expected one of {', '.join(map(repr, options))}")
        return value
    if kind is type(None) and value is None:
        return None
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind is Path and isinstance(value, str):
        return (node.file.parent / value) if not Path(value).is_absolute() else Path(value)
    if origin in (list, tuple, Sequence) and isinstance(value, list):
        inner = typing.get_args(kind)
        if origin is tuple and inner[-1] is not Ellipsis:
            if len(value) != len(inner):
                node.fail(f"has {len(value)} entries, expected {len(inner)}")
            return tuple(convert(n, k, loaders) for n, k in zip(node.elements(), inner, strict=True))
        return (tuple if origin is tuple else list)(convert(n, inner[0], loaders) for n in node.elements())
    if origin in (dict, Mapping) and isinstance(value, dict):
        inner = typing.get_args(kind)[1]
        return {key: convert(entry, inner, loaders) for key, entry in node.items()}
    if kind in (int, str, bool) and type(value) is kind:
        return value
    node.fail(f"is {_shown(value)}, expected {_expected(kind)}")


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(value)


def _expected(kind: Any) -> str:
    if typing.get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_expected(k) for k in typing.get_args(kind) if k is not type(None))
    names = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        Path: "a path",
        dict: "a mapping",
    }
    kind = typing.get_origin(kind) or kind
    if kind is Mapping:
        kind = dict
    return "a list" if kind in (list, tuple, Sequence) else names.get(kind, getattr(kind, "__name__", str(kind)))
