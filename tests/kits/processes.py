"""Processes that must end: whether they have, without a guess at how long that takes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path


def alive(pid: int | str) -> bool:
    """Whether a process still runs; a zombie does not: it has ended, and nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true: Callable[[], bool], most_s: float = 900) -> bool:
    """Wait for something that happens at once on an idle machine; false if it never does."""
    end = time.monotonic() + most_s
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def hear_interrupts() -> None:
    """Let a process that is about to start hear SIGINT, which a job in the background of a shell ignores."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
