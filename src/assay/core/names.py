"""Names of any kind made safe: as part of a file's name, as text that people read, and as text that files keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import pandas as pd

from assay.core.errors import AssayError

T = TypeVar("T")
_LONGEST_CHARACTERS, _LONGEST_BYTES = 60, 100
# Windows takes these for devices, with any ending.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_UNWRITABLE = re.compile("[\ud800-\udfff]")
# Control characters, line separators, marks that turn the direction of what follows, and what is no character.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
_ACCENT = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
_PILED = re.compile(f"({_ACCENT}{{4}}){_ACCENT}+")
REPLACED = "\ufffd"


def counted(number: int, what: str) -> str:
    """A number of things in words.

    Example:
        >>> counted(1, "layer"), counted(3, "layer")
        ('1 layer', '3 layers')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def file_name(name: str) -> str:
    """A name as part of a file name: nothing that could lead elsewhere, and short enough for every file system.

    >>> file_name("../a network"), len(file_name("网" * 80).encode()), file_name("con.txt")
    ('_a_network', 99, '_con.txt')
    """
    plain = re.sub(r"[^\w.+-]+", "_", name)[:_LONGEST_CHARACTERS]
    # File systems count bytes: two such names, a fingerprint and a suffix must stay below 255.
    whole = plain.encode(errors="ignore")[:_LONGEST_BYTES].decode(errors="ignore").lstrip(".")
    return f"_{whole}" if not whole or _DEVICES.fullmatch(whole) else whole


def writable(text: str) -> str:
    r"""Text as a file can keep it: halves of surrogate pairs, which UTF-8 does not have, are replaced.

    >>> writable("half \ud800, \x1b[31mred"), writable("日本語")
    ('half \ufffd, \x1b[31mred', '日本語')
    """
    return _UNWRITABLE.sub(REPLACED, text)


def require_writable(name: str, what: str) -> None:
    """Refuse a name that no table can keep, by an error that says what has it."""
    if _UNWRITABLE.search(name):
        raise AssayError(
            f"{what} {name!r} holds half of a character (a lone surrogate), which no file keeps: rename it"
        )


def showable(text: str) -> str:
    r"""Text as pages, plots, slides and terminals show it: what would steer them instead of being seen is replaced.

    Control characters, marks that turn the direction of reading, halves of surrogate pairs and what is no character
    become ``\ufffd``; of many accents on one letter four are left. Line ends and tabs stay.

    >>> showable("red: \x1b[31m"), showable("a\u202egnp.exe")
    ('red: \ufffd[31m', 'a\ufffdgnp.exe')
    """
    return _PILED.sub(r"\1", _UNSHOWABLE.sub(REPLACED, text))


def cut(text: str, most: int) -> str:
    """Cut a text to at most so many characters, the last an ellipsis where some are missing.

    >>> cut("AnswerPhone", 22), cut("a very long name of a class", 12)
    ('AnswerPhone', 'a very long…')
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def all_showable(value: T) -> T:
    """A document, a chart, a table or anything made of them, with every text in it `showable`.

    >>> all_showable({"names": ["a\\x00", 1]})
    {'names': ['a\ufffd', 1]}
    """
    changed: Any = value
    if isinstance(value, str):
        changed = showable(value)
    elif isinstance(value, pd.DataFrame):
        changed = value.rename(columns=all_showable)
        for place, kind in enumerate(value.dtypes):
            if not pd.api.types.is_numeric_dtype(kind):
                changed.isetitem(place, value.iloc[:, place].map(all_showable))
    elif isinstance(value, Mapping):
        changed = {all_showable(key): all_showable(inner) for key, inner in value.items()}
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        changed = type(value)(map(all_showable, value))
    elif is_dataclass(value) and not isinstance(value, type):
        changed = object.__new__(type(value))
        for field in fields(value):
            object.__setattr__(changed, field.name, all_showable(getattr(value, field.name)))
    return changed  # type: ignore[no-any-return]
