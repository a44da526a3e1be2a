"""Progress of long work: measures report it, and whoever runs them may listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from assay.core.progress_bars import notebook_bars

Listener = Callable[[str, int, int | None], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(what: str, done: int, total: int | None = None) -> None:
    """Report that ``done`` of ``total`` steps of ``what`` are done.

    Where nobody listens, a notebook shows a bar, and elsewhere nothing happens.
    """
    listener = _listener.get() or notebook_bars()
    if listener is not None:
        listener(what, done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have `report` call ``listener(what, done, total)`` inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass
class Before:
    """How many steps of longer work were done before the part of it that is done now."""

    steps: int = 0


@contextmanager
def of_more(what: str, total: int, before: int = 0) -> Iterator[Before]:
    """Have reports of ``what`` inside the block be about longer work, of which they each count a part.

    Args:
        what: What is reported.
        total: Number of steps of the longer work, at least.
        before: How many of them are done; the block adds the steps of each part that ends.

    Example:
        >>> with listening(lambda *heard: print(*heard)), of_more("epochs", 6) as done:
        ...     report("epochs", 1, 2)
        ...     done.steps += 2
        ...     report("epochs", 1, 4)
        epochs 1 6
        epochs 3 6
    """
    part = Before(before)
    outer = _listener.get() or notebook_bars()
    if outer is None:
        yield part
        return

    def listener(kind: str, done: int, known: int | None) -> None:
        if kind == what:
            outer(kind, part.steps + done, max(part.steps + (known or 0), total))
        else:
            outer(kind, done, known)

    with listening(listener):
        yield part


_stages: ContextVar[Callable[[str], None] | None] = ContextVar("stages", default=None)


def begin_stage(what: str) -> None:
    """Report that a stage of a job begins, from which a limit of time on stages counts."""
    listener = _stages.get()
    if listener is not None:
        listener(what)


@contextmanager
def listening_to_stages(listener: Callable[[str], None]) -> Iterator[None]:
    """Have `begin_stage` call ``listener(what)`` inside the block."""
    token = _stages.set(listener)
    try:
        yield
    finally:
        _stages.reset(token)
