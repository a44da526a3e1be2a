"""A process and everything it has started, as one: kept together, measured, and ended as a whole."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PATIENCE_S = 20.0  # to end a tree that starts processes faster than they can be ended


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends; a change of user takes that back."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant of this process whose own parent ends, so that it stays a descendant."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_tree(pid: int) -> None:
    """Kill a process and everything it has started; of a process that adopts orphans, nothing escapes."""
    end_below(pid)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def end_below(pid: int) -> None:
    """Kill everything that a process has started; of a process that adopts orphans, nothing escapes."""
    limit = time.monotonic() + _PATIENCE_S
    while (living := descendants(pid)) and time.monotonic() < limit:
        for one in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.002)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, directly or not, and that run; none known where there is no /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208
        if name.isdigit() and (stat := _read(f"{name}/stat")):
            state, parent = stat.rpartition(b")")[2].split()[:2]
            if state != b"Z":
                children.setdefault(int(parent), []).append(int(name))
    below_it, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        below_it += below
        waiting += below
    return below_it


def tree_bytes(pid: int, more_than: float = 0) -> int:
    """Memory of a process and all its descendants; what several of them share counts once.

    Args:
        pid: The process.
        more_than: Below this number of bytes a quick upper bound will do.
    """
    tree = [pid, *descendants(pid)]
    resident = 0
    for one in tree:
        if statm := _read(f"{one}/statm"):
            resident += int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident <= more_than:
        return resident
    shares = [_proportional(one) for one in tree]
    return min(sum(shares), resident) if any(shares) else resident


def machine_bytes() -> int:
    """Memory of this machine, or of the container that this process is in."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is no such limit
            sizes.append(int(Path("/sys/fs/cgroup", file).read_text()))
    return min(sizes)


def _proportional(pid: int) -> int:
    """Memory of a process, of which it has a share where several processes have the same."""
    for line in (_read(f"{pid}/smaps_rollup") or b"").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(name: str) -> bytes | None:
    """Read a file under /proc; None where its process is gone."""
    try:
        return Path("/proc", name).read_bytes()
    except OSError:
        return None


def _prctl(option: int, value: int) -> None:
    """Ask the kernel of Linux for something; nothing happens elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
