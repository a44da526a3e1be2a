"""Typed settings from YAML: every complaint names the file, the line, the key, the value and the remedy."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar
from zipfile import BadZipFile

import numpy as np

from assay.core.array_files import load_arrays
from assay.core.errors import ANYTHING, AssayError, first_line, nearest, reason
from assay.core.user_code import same_directory
from assay.plans.places import path_in
from assay.plans.problems import Collector
from assay.plans.types import LISTS, MAPPINGS, WRITABLE, expected, is_union, is_writable, plain, shown
from assay.plans.yaml_files import named, read_values

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
            self.fail(f"is {shown(self.value)}, not a mapping of keys to values")
        for key in self.value:
            if not isinstance(key, str):
                self[key].fail(f"the key {key!r} is not a word: put it in quotes")
        return [(key, self[key]) for key in self.value]

    def elements(self) -> list[Node]:
        """The entries of this list; an error if the value is no list."""
        if not isinstance(self.value, list):
            self.fail(f"is {shown(self.value)}, not a list")
        return [self[i] for i in range(len(self.value))]

    @property
    def where(self) -> str:
        """The file, line and key of this value, with which an error begins."""
        line = next(
            (self.lines[p] for i in range(len(self.path) + 1) if (p := self.path[: len(self.path) - i]) in self.lines),
            1,
        )
        return f"{self.file}:{line}: {named(self.path)}".rstrip(": ")

    def fail(self, message: str) -> NoReturn:
        """Raise an error about this value that says where it stands."""
        raise AssayError(f"{self.where}: {message}" if self.path else f"{self.where}: the file {message}")


def read_yaml(path: Path) -> Node:
    """Read a YAML file, by the rules of ``safe_load``, with the line of every key."""
    value, lines = read_values(path)
    return Node(value, path, (), lines)


def build(factory: Callable[..., T], node: Node, loaders: Mapping[Any, Loader] | None = None, **fixed: Any) -> T:
    """Call ``factory`` (a dataclass or function) with a mapping's entries, checked against its annotations.

    All that is wrong with the entries is raised at once. ``loaders`` make values of types that YAML does not have;
    ``fixed`` arguments are not the file's to give.
    """
    loaders = loaders or {}
    hints = _hints(factory, node)
    parameters = {k: p for k, p in inspect.signature(factory).parameters.items() if k not in fixed}
    problems = Collector()
    given = {}
    for key, value in node.items():
        with problems.watching():
            if key not in parameters:
                value.fail(f"unknown key{nearest(key, parameters)}")
            _require_writable(value, key, hints.get(key, Any), loaders)
            given[key] = convert(value, hints.get(key, Any), loaders)
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in node.value:
            with problems.watching():
                _require_writable(node, key, hints.get(key, Any), loaders)
                node.fail(f"lacks the key {key!r}")
    problems.raise_any()
    try:
        with same_directory():
            return factory(**given, **fixed)
    except AssayError as error:
        raise AssayError(f"{node.where}: {error}") from error
    except ANYTHING as error:  # the factory may be the user's: whatever it raises is about what it was given
        said = f"{_name(factory)} cannot be made with these settings ({reason(error)})"
        raise AssayError(f"{node.where}: {said}") from error


def _hints(factory: Callable[..., Any], node: Node) -> dict[str, Any]:
    """The types of a factory's arguments."""
    try:
        return typing.get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    except NameError as error:
        node.fail(
            f"the settings of {_name(factory)} have a type that is not known when it runs ({first_line(error)}): "
            "import it at the top of its module, outside `if TYPE_CHECKING`"
        )


def _require_writable(node: Node, key: str, kind: Any, loaders: Mapping[Any, Loader]) -> None:
    if not is_writable(kind, loaders):
        words = kind.__name__ if inspect.isclass(kind) else str(kind)
        node.fail(f"the setting {key!r} is of the type {words}, which no plan can write; a plan can write {WRITABLE}")


def _name(factory: Callable[..., Any]) -> str:
    return getattr(factory, "__name__", str(factory))


def convert(node: Node, kind: Any, loaders: Mapping[Any, Loader]) -> Any:
    """Convert a value to the type of an annotation, or raise an error that says what was expected."""
    value, base, inner = node.value, plain(kind), typing.get_args(kind)
    if kind in loaders:
        return loaders[kind](node)
    if kind is Any:
        return value
    if is_union(kind):
        return _first_that_fits(node, kind, loaders)
    if base is Literal:
        if not any(value == option and type(value) is type(option) for option in inner):
            node.fail(f"is {shown(value)}, expected {expected(kind)}")
        return value
    if kind is type(None) and value is None:
        return None
    if kind is float and (number := _number(value)) is not None:
        return number
    if kind is Path and isinstance(value, str):
        return path_in(node.file, value)
    if base is np.ndarray and isinstance(value, (str, list)):
        return _array(node)
    if base in LISTS and isinstance(value, list):
        return _list(node, base, inner, loaders)
    if base in MAPPINGS and isinstance(value, dict):
        return {key: convert(entry, inner[1] if inner else Any, loaders) for key, entry in node.items()}
    if kind in (int, str, bool) and type(value) is kind:
        return value
    if dataclasses.is_dataclass(base) and isinstance(base, type) and isinstance(value, dict):
        return build(base, node, loaders)
    node.fail(f"is {shown(value)}, expected {expected(kind)}")


def _first_that_fits(node: Node, kind: Any, loaders: Mapping[Any, Loader]) -> Any:
    """Convert to the first of several types that takes the value."""
    options = typing.get_args(kind)
    for option in options:
        try:
            return convert(node, option, loaders)
        except AssayError:
            continue
    if len(alike := [option for option in options if _is_alike(node.value, option)]) == 1:
        return convert(node, alike[0], loaders)  # what is wrong inside it is what the user wants to know
    if len(structured := [option for option in options if option in loaders]) == 1:
        return loaders[structured[0]](node)
    node.fail(f"is {shown(node.value)}, expected {expected(kind)}")


def _is_alike(value: Any, kind: Any) -> bool:
    """Whether a value is a list or a mapping and a type is of the same."""
    return plain(kind) in (LISTS if isinstance(value, list) else MAPPINGS if isinstance(value, dict) else ())


def _list(node: Node, base: Any, inner: tuple[Any, ...], loaders: Mapping[Any, Loader]) -> Any:
    """Convert the entries of a list, all that are wrong named at once."""
    entries = node.elements()
    kinds = [inner[0] if inner else Any] * len(entries)
    if base is tuple and inner and inner[-1] is not Ellipsis:
        if len(entries) != len(inner):
            node.fail(f"has {len(entries)} entries, expected {len(inner)}")
        kinds = list(inner)
    problems = Collector()
    converted = []
    for entry, kind in zip(entries, kinds, strict=True):
        with problems.watching():
            converted.append(convert(entry, kind, loaders))
    problems.raise_any()
    return base(converted) if base in (tuple, set, frozenset) else converted


def _number(value: Any) -> float | None:
    """A number, also one like 1e-3, which YAML takes for text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _array(node: Node) -> Any:
    """An array: read from an .npy file, or given as a list of numbers, nested for several axes."""
    if isinstance(node.value, str):
        file = path_in(node.file, node.value)
        if file.suffix != ".npy":
            node.fail(f"is {node.value!r}, expected the path of an .npy file")
        try:
            with file.open("rb") as handle:
                array = load_arrays(handle, file)
            if isinstance(array, np.ndarray):
                return array
            raise ValueError("it holds several arrays, or none")
        except AssayError as error:
            node.fail(str(error))
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            why = "no such file" if isinstance(error, FileNotFoundError) else first_line(error)
            node.fail(f"{file} cannot be read as an array ({why})")
    try:
        array = np.asarray(node.value)
    except ValueError:
        node.fail("is a list whose entries differ in length, expected as many numbers in each")
    if array.dtype.kind not in "biuf":
        node.fail("is a list of more than numbers, expected the path of an .npy file or a list of numbers")
    return array
