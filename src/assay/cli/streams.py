"""Standard output and error that can always be written to: closed ones lead nowhere, narrow encodings escape.

Results for programs have standard output to themselves: what else is printed goes to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any


def open_streams() -> None:
    r"""Open what is closed of the three standard streams, and have output escape what its encoding lacks.

    A closed stream leaves its number free, and the next file that is opened would get it and everything that any
    library prints. An encoding such as ASCII lacks characters of our sentences; no encoding has the halves of
    characters that stand in names of files which are not UTF-8. Both are printed as ``\u2013``. A pipe that nobody
    reads any more leads nowhere: a command goes on, and its exit code means what it always means.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if _leads_to(stream, number):
            stream.flush()
            setattr(sys, name, _escaping(number, stream))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Unread(io.FileIO):
    """A file that takes all that is written to it, though the reader of its pipe may be gone, as ``head`` is early.

    Standard error also takes what a full disk does not: there is nowhere else to say it, and the exit code does.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError) and self.fileno() != 2:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


def _escaping(number: int, like: Any) -> io.TextIOWrapper:
    """A stream to an open file that never fails for want of a reader or of a character in its encoding."""
    file = io.BufferedWriter(_Unread(number, "wb", closefd=False))
    by_lines = like.line_buffering or like.write_through
    return io.TextIOWrapper(file, like.encoding, "backslashreplace", line_buffering=by_lines)


def _leads_to(stream: Any, number: int) -> bool:
    """Whether a stream is text that goes to the file of a number."""
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == number
    except (OSError, ValueError):  # it is in memory, or closed
        return False


_results: list[IO[str]] = []  # the streams of the blocks of `results_alone` that are open, the innermost last


@contextmanager
def results_alone() -> Iterator[None]:
    """Keep standard output for `write_result`: what others print in the block goes to standard error.

    Others are networks and measures of the user's, libraries in C, and processes that these start.
    """
    stdout = sys.stdout
    if not _leads_to(stdout, 1):  # a notebook or a test, which has a stream of its own
        _results.append(stdout)
        sys.stdout = sys.stderr
        try:
            yield
        finally:
            sys.stdout = _results.pop()
        return
    stdout.flush()
    kept = os.dup(1)
    _results.append(_escaping(kept, stdout))
    os.dup2(2, 1)
    try:
        yield
    finally:
        _results.pop().flush()
        stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def write_result(text: str) -> None:
    """Write a line of results to standard output."""
    print(text, file=_results[-1] if _results else sys.stdout, flush=True)


def on_terminal(stream: Any) -> bool:
    """Whether a stream is open and leads to a terminal; Python has None for one that was closed at the start."""
    return stream is not None and not stream.closed and bool(stream.isatty())
