"""Side effects of code: which files it opens, whether it goes to the network or starts a program.

They are seen through Python's audit events; what a library in C opens by itself is not seen.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

_NETWORK = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.spawn", "os.exec")


@dataclass(eq=False)
class Seen:
    """The files opened, network addresses used and programs started inside a `watching` block."""

    files: list[str] = field(default_factory=list)
    network: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)

    def under(self, roots: Sequence[str]) -> list[str]:
        """The files opened that lie at or under one of the roots."""
        return [f for f in self.files if _within(f, roots)]

    @property
    def outside(self) -> list[str]:
        """The files opened that belong neither to Python and its packages nor to the system, and are not code."""
        own = {
            sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), str(Path(__file__).parents[2]),
            "/proc", "/sys", "/dev", "/usr", "/etc",
        }  # fmt: skip
        return [f for f in self.files if not _CODE.search(f) and not _within(f, own)]


# Python writes what it compiled under a name with a number, and renames it when it is whole.
_CODE = re.compile(rf"({'|'.join(map(re.escape, all_suffixes()))}|\.pyc\.\d+)$")


def _within(file: str, roots: Iterable[str]) -> bool:
    real = os.path.realpath(file)
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in map(os.path.realpath, roots))


_watchers: list[Seen] = []
_hooked = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watchers:
        return
    if event == "open" and isinstance(args[0], (str, bytes)):
        file = os.path.abspath(os.fsdecode(args[0]))  # noqa: PTH100  as it is now: the working directory may change
        for seen in _watchers:
            seen.files.append(file)
    elif event in _NETWORK:
        address = args[-1] if event in ("socket.connect", "socket.sendto", "socket.sendmsg") else args[0]
        if isinstance(address, tuple) or event.startswith("socket.get"):  # a plain path is a socket of this machine
            for seen in _watchers:
                seen.network.append(str(address))
    elif event in _PROGRAMS:
        for seen in _watchers:
            seen.programs.append(os.fsdecode(args[0]))


@contextmanager
def watching() -> Iterator[Seen]:
    """Note what is opened, connected to and started inside the block, by Python code of this process.

    >>> with watching() as seen:
    ...     _ = Path(__file__).read_text()
    >>> [Path(file).name for file in seen.files], seen.network
    (['watch.py'], [])
    """
    global _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # cannot be removed again; it does nothing while nobody watches
        _hooked = True
    seen = Seen()
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)
