"""Progress of long work: measures report it, and whoever runs them may listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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


@contextmanager
def of_more(what: str, total: int) -> Iterator[None]:
    """Have reports of ``what`` inside the block say that it has at least ``total`` steps, as part of longer work."""
    outer = _listener.get() or notebook_bars()
    if outer is None:
        yield
        return

    def listener(kind: str, done: int, known: int | None) -> None:
        outer(kind, done, max(known or 0, total) if kind == what else known)

    with listening(listener):
        yield


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
