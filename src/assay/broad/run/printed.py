"""What a worker prints, passed on by its warden: a worker that had the evaluators' own stream could read it as well.

Standard error is often a log on disk. Whoever holds a descriptor of it can open it again through ``/proc``, whatever
the walls cover, and so find what other workers printed: their labels. So a worker prints into a pipe of its own.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

MOST = 2**20  # bytes that are passed on of each worker, so that none fills the disk that the log is on
_AT_ONCE = 4096  # bytes that a pipe takes without waiting once it says that it takes any


class Printed:
    """A pipe that a worker prints into, from its warden's side."""

    def __init__(self) -> None:
        self.end, self._worker = os.pipe()
        os.set_blocking(self.end, False)
        self._left = MOST

    def replace_own(self) -> None:
        """In the worker: print into the pipe from now on."""
        for descriptor in (1, 2):
            os.dup2(self._worker, descriptor)
        os.close(self._worker)
        os.close(self.end)

    def begin(self) -> None:
        """In the warden: keep the end that is read."""
        os.close(self._worker)

    def pass_on(self, all_of_it: bool = False) -> bool:
        """In the warden: pass on what is there, without waiting for anybody; false where no more can come.

        Args:
            all_of_it: Whether to go on until nothing is left.
        """
        while True:
            try:
                said = os.read(self.end, _AT_ONCE)
            except BlockingIOError:
                return True
            if not said:
                return False
            self._say(_plain(said[: self._left]))
            if not all_of_it:
                return True

    def _say(self, text: bytes) -> None:
        ready = select.poll()
        ready.register(2, select.POLLOUT)
        with suppress(OSError):
            if text and ready.poll(0):
                self._left -= os.write(2, text)


def _plain(text: bytes) -> bytes:
    """Text without what could move a terminal's cursor.

    >>> _plain("größer\\n\\x1b[2J".encode()).decode()
    'größer\\n?[2J'
    """
    return bytes(byte if (byte >= 32 and byte != 127) or byte in b"\n\t\r" else ord("?") for byte in text)
