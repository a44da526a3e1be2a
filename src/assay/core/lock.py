"""A lock on a folder: one program at a time works in it, and ends its claim by ending, however it ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from assay.core.errors import AssayError

NAME = ".lock"
_held: dict[Path, int] = {}  # how many blocks of this process hold the lock of a folder
_one_at_a_time = threading.RLock()


@contextmanager
def locked(folder: str | Path, purpose: str) -> Iterator[None]:
    """Hold the lock of a folder inside the block; an error that names the other process where one holds it.

    The kernel lets go of the lock when its holder ends, also when it is killed. Blocks may be inside each other.

    Args:
        folder: A folder of this machine, or one that machines share if its file system knows locks; made if missing.
        purpose: What is done in it, for the message that others get, such as "runs the evaluation".
    """
    place = Path(folder).resolve()
    with _one_at_a_time:
        if place in _held:
            _held[place] += 1
            file = -1
        else:
            file = _acquire(place, purpose)
            _held[place] = 1
    try:
        yield
    finally:
        with _one_at_a_time:
            _held[place] -= 1
            if not _held[place]:
                del _held[place]
        if file >= 0:
            with suppress(OSError):
                (place / NAME).unlink()  # while the lock is held: nobody else can hold this file's by now
            os.close(file)


def _acquire(place: Path, purpose: str) -> int:
    """Open the file of the lock, lock it and write into it who holds it."""
    path = place / NAME
    while True:
        try:
            place.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise AssayError(f"cannot write {path} ({error.strerror}): choose another folder") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(file)
            os.close(file)
            raise AssayError(
                f"{place} is in use: {holder}; wait until it has ended, end it, or use another folder"
            ) from None
        except OSError as error:
            os.close(file)
            raise AssayError(f"{place}: its file system has no locks ({error.strerror}): use another folder") from error
        if _is_still(path, file):
            break
        os.close(file)  # its holder has just ended and removed it
    who = {
        "process": os.getpid(),
        "machine": socket.gethostname(),
        "purpose": purpose,
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(Path(word).name if i == 0 else word for i, word in enumerate(sys.argv[:4])),
    }
    with suppress(OSError):  # a full disk: the lock holds all the same
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(who).encode(), 0)
    return file


def _is_still(path: Path, file: int) -> bool:
    """Whether a name still stands for the file that was opened under it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _holder(file: int) -> str:
    """Who holds a lock, as part of a sentence."""
    try:
        who = json.loads(os.pread(file, 1 << 16, 0))
        return f"process {who['process']} on {who['machine']} {who['purpose']} there since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process works in it"
