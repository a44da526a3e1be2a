"""YAML files: read by the rules of ``safe_load``, with the line of every key, and refused where they are no plan.

A plan is text, numbers, true, false and null in lists and mappings; what YAML has besides these (dates, sets, bytes,
aliases that stand for a million values, characters that nobody can see) is refused here, once for all readers.
"""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from assay.core.errors import AssayError, first_line, shown

MOST_BYTES = 2**20
"""Longest file that is taken for a plan."""
MOST_VALUES = 100_000
"""Most values in a file, those that aliases repeat included."""
DEEPEST = 50
"""Most lists and mappings inside each other."""
WHOLE = 2**63
"""Whole numbers of a plan are below this, as those of the arrays that they become sizes of."""
Keys = tuple[str | int, ...]


def read_values(path: Path) -> tuple[Any, dict[Keys, int]]:
    """Read a YAML file: its value, and the line of every entry by the keys that lead to it."""
    text = _text(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        raise AssayError(f"{path} is a table, not a plan: 'assay corpus score' reads tables")
    lines: dict[Keys, int] = {}
    try:
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                raise AssayError(f"{path} is empty: 'assay init' writes a plan to begin with")
            for keys, line in _entries(loader, root, path):
                lines[keys] = line
                if len(lines) > MOST_VALUES:
                    raise AssayError(
                        f"{path}:{line}: holds more than {MOST_VALUES:,} values, with those that aliases repeat"
                    )
            value = loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or first_line(error)
        raise AssayError(f"{path}{at}: not valid YAML ({problem})") from error
    except AssayError:
        raise
    except RecursionError:
        raise AssayError(f"{path}: has more than {DEEPEST} lists and mappings inside each other") from None
    except (ValueError, TypeError, OverflowError, LookupError, AttributeError) as error:  # a date that is none, …
        raise AssayError(f"{path}: not valid YAML ({first_line(error)})") from error
    _require_plain(value, (), lines, path)
    return value, lines


def require_there(path: Path) -> None:
    """Refuse a plan that is not there, which is known at once, before anything is loaded that reads plans."""
    if str(path) == "-":
        raise AssayError("a plan is a file: give its name, or /dev/stdin to read it from standard input")
    try:
        path.stat()
    except FileNotFoundError as error:
        raise AssayError(f"{path} cannot be read ({_reason(error)})") from error
    except (OSError, ValueError):  # reading it says what is wrong
        return


def _text(path: Path) -> str:
    """The text of a file, of which no more is read than a plan may have: a device has no end."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise AssayError(f"{path} cannot be read ({_reason(error)})") from error
    if len(data) > MOST_BYTES:
        raise AssayError(f"{path} cannot be read (it is longer than {MOST_BYTES // 2**20} MiB, which no plan is)")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AssayError(f"{path} cannot be read (it is not a text file in UTF-8)") from error


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to is empty, where one would wait for a writer."""
    file = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(file, True)
    return file


def _reason(error: Exception) -> str:
    """Why a file cannot be read, in a few words."""
    words: dict[type[Exception], str] = {
        FileNotFoundError: "no such file",
        IsADirectoryError: "it is a folder",
        PermissionError: "no permission to read it",
    }
    return words.get(type(error), first_line(error))


def _entries(loader: Any, node: yaml.Node, file: Path, keys: Keys = ()) -> Iterator[tuple[Keys, int]]:
    """The keys that lead to each value of a document, with its line; aliases are followed wherever they stand."""
    yield keys, node.start_mark.line + 1
    if len(keys) > DEEPEST:
        raise AssayError(
            f"{file}:{node.start_mark.line + 1}: has more than {DEEPEST} lists and mappings inside each other"
        )
    if isinstance(node, yaml.MappingNode):
        seen: set[Any] = set()
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise AssayError(f"{file}:{line}: a list or mapping cannot be a key")
            merges = key_node.tag == "tag:yaml.org,2002:merge"
            key = key_node.value if merges else loader.construct_object(key_node, deep=True)
            if key in seen:
                raise AssayError(f"{file}:{line}: the key {shown(key)} is there twice")
            seen.add(key)
            yield from _entries(loader, value, file, (*keys, key))
            yield (*keys, key), line
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield from _entries(loader, value, file, (*keys, i))


def _require_plain(value: Any, keys: Keys, lines: dict[Keys, int], file: Path) -> None:
    """Refuse values that no setting can have, wherever they stand."""
    if isinstance(value, dict):
        for key, entry in value.items():
            where = (*keys, key)
            if isinstance(key, str | int | float) or key is None:
                _require_scalar(key, "the key ", where, lines, file)
            else:
                _fail(f"the key {shown(key)} is not a word: put it in quotes", where, lines, file)
            _require_plain(entry, where, lines, file)
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            _require_plain(entry, (*keys, i), lines, file)
    elif value is None or isinstance(value, str | int | float):
        _require_scalar(value, "", keys, lines, file)
    else:
        kind = {"date": "a date", "datetime": "a date", "bytes": "bytes"}.get(type(value).__name__, "no plain value")
        _fail(f"{shown(value)} is {kind}, which no plan has: put it in quotes if it is text", keys, lines, file)


def _require_scalar(value: Any, what: str, keys: Keys, lines: dict[Keys, int], file: Path) -> None:
    if isinstance(value, str):
        odd = next((c for c in value if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n\r"), None)
        if odd is not None:
            _fail(
                f"{what}{shown(value)} holds the character U+{ord(odd):04X}, which cannot be shown", keys, lines, file
            )
    elif isinstance(value, float) and not math.isfinite(value):
        _fail(f"{what}{value} is no number that a setting can have", keys, lines, file)
    elif isinstance(value, int) and not -WHOLE <= value < WHOLE:
        _fail(f"{what}is a whole number of {value.bit_length()} bits, expected one below 2⁶³", keys, lines, file)


def _fail(message: str, keys: Keys, lines: dict[Keys, int], file: Path) -> None:
    """Raise an error with the line and the keys of a value."""
    line = next((lines[place] for i in range(len(keys) + 1) if (place := keys[: len(keys) - i]) in lines), 1)
    raise AssayError(f"{file}:{line}: {named(keys)}: {message}" if keys else f"{file}:{line}: {message}")


def named(keys: Keys) -> str:
    """The keys that lead to a value, as an error writes them.

    Example:
        >>> named(("measures", 0, "test"))
        'measures[0].test'
    """
    words = (f"[{key}]" if isinstance(key, int) else f".{_word(str(key))}" for key in keys)
    return "".join(words).removeprefix(".")


def _word(key: str) -> str:
    """A key as part of a sentence: as it is, or in quotes and cut short where it is no word."""
    return key if key.isprintable() and len(key) <= 60 else shown(key)
