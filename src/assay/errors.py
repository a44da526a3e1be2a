"""The one exception a user is meant to read, and the help it gives with misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AssayError(ValueError):
    """Something the user gave us cannot be used; the message says what, and what to do about it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known ones, or all of them if few.

    >>> nearest("strightness", ["straightness", "invariance"])
    "; did you mean 'straightness'?"
    >>> nearest("xyz", ["straightness", "invariance"])
    "; known: 'straightness', 'invariance'"
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    if not known:
        return "; none are known"
    listed = ", ".join(map(repr, known[:8]))
    return f"; known: {listed}{', …' if len(known) > 8 else ''}"
