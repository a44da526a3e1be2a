"""Standard output and error that can always be written to: closed ones lead nowhere, narrow encodings escape."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


def open_streams() -> None:
    r"""Open what is closed of the three standard streams, and have output escape what its encoding lacks.

    A closed stream leaves its number free, and the next file that is opened would get it and everything that any
    library prints. An encoding such as ASCII lacks characters of our sentences; no encoding has the halves of
    characters that stand in names of files which are not UTF-8. Both are printed as ``\u2013``.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def on_terminal(stream: Any) -> bool:
    """Whether a stream is open and leads to a terminal; Python has None for one that was closed at the start."""
    return stream is not None and not stream.closed and bool(stream.isatty())
