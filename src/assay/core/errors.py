"""The one exception a user is meant to read, and the help it gives with misspelt names."""

from __future__ import annotations

import difflib
import importlib
import textwrap
from collections.abc import Iterable
from typing import Any

_LONGEST = 60  # characters of a value in a sentence
_LONGEST_LINE = 1000  # characters of another's message in a sentence


class AssayError(ValueError):
    """Something the user gave us cannot be used; the message says what, and what to do about it."""


ANYTHING = (Exception, SystemExit)
"""What code of the user's may raise: a module, a factory or a network may even call ``sys.exit``."""


def reason(error: BaseException) -> str:
    """What an exception says, with its type, as part of a sentence.

    >>> reason(KeyError("gone")), reason(SystemExit(7)), reason(SystemExit())
    ("KeyError: 'gone'", 'it calls sys.exit(7)', 'it calls sys.exit()')
    """
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({'' if error.code is None else shown(error.code)})"
    said = first_line(error)
    return said if said == type(error).__name__ else f"{type(error).__name__}: {said}"


def first_line(error: BaseException) -> str:
    """The message of an exception as part of a sentence: its first line, or its type where it says nothing.

    A line goes on where the next one begins with a small letter. An exception of the user's may have a message of any
    length, or fail to say anything at all.

    >>> first_line(ValueError("no good\\n  A page of details")), first_line(KeyError())
    ('no good', 'KeyError')
    >>> first_line(ValueError("batch norm needs more\\nthan one"))
    'batch norm needs more than one'
    """
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    line = next(iter(lines), "")
    for more in lines[1:]:
        if not more[:1].islower() or line.endswith((".", ":", "!", "?")) or len(line) > _LONGEST_LINE:
            break
        line = f"{line} {more.rstrip()}"
    return f"{line[:_LONGEST_LINE]}…" if len(line) > _LONGEST_LINE else line or type(error).__name__


def shown(value: Any) -> str:
    """A value as part of a sentence: what it says of itself, cut short, and its type where that does not show.

    >>> shown(None), shown("a"), shown(int), shown(range(3))
    ('None', "'a'", 'int', 'range(0, 3) (range)')
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return _shortened(value)
    if isinstance(value, type):
        return value.__name__
    return f"{_shortened(value)} ({type(value).__name__})"


def _shortened(value: Any) -> str:
    """What a value says of itself, in one line, cut between two words, or in the first one where that is too long."""
    line = " ".join(repr(value).split())
    cut = textwrap.shorten(line, _LONGEST, placeholder="…")
    return f"{line[: _LONGEST - 1]}…" if cut == "…" else cut


def optional(package: str, extra: str, what: str) -> Any:
    """Import an optional package when it is first needed; where it is missing, the error says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise AssayError(f"{what} needs {package}: pip install 'assay[{extra}]'") from error


def nearest(name: Any, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known ones, or all of them if few.

    >>> nearest("strightness", ["straightness", "invariance"])
    "; did you mean 'straightness'?"
    >>> nearest("xyz", ["straightness", "invariance"])
    "; known: 'straightness', 'invariance'"
    """
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    if not known:
        return "; none are known"
    listed = ", ".join(map(repr, known[:8]))
    return f"; known: {listed}{', …' if len(known) > 8 else ''}"
