"""Progress as plain lines, for a log file or a pipe: now and then one, with the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from assay.core.durations import duration


@dataclass
class _Kind:
    """One kind of work: when and where it began, and when it was last written of."""

    began: float
    first: int
    written: float


class ProgressLines:
    """A listener to `assay.core.progress.report` that writes at most one line in a while for each kind of work.

    Args:
        write: Takes a line.
        every_s: Seconds between two lines of a kind; work that takes less has none.
        clock: Tells the time in seconds.

    Example:
        >>> seconds = iter([0.0, 6.0, 7.0, 20.0])
        >>> listener = ProgressLines(print, clock=lambda: next(seconds))
        >>> for done in range(4):
        ...     listener("cells", done, 9)
        cells: 1 of 9, about 48 s left
        cells: 3 of 9, about 40 s left
    """

    def __init__(
        self, write: Callable[[str], None], every_s: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self.every_s, self.clock = write, every_s, clock
        self.kinds: dict[str, _Kind] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Hear that ``done`` of ``total`` steps of ``what`` are done."""
        now = self.clock()
        kind = self.kinds.get(what)
        if kind is None or done < kind.first:  # it begins, or begins again for the next network
            written = kind.written if kind is not None else now
            self.kinds[what] = _Kind(now, done, written)
            return
        if now - kind.written < self.every_s:
            return
        kind.written = now
        steps = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        rate = (done - kind.first) / (now - kind.began) if now > kind.began else 0.0
        more = 0 if total is None else total - done
        left = f", about {duration(more / rate)} left" if more > 0 and rate > 0 else ""
        self.write(f"{what}: {steps}{left}")
