"""Disks that fail: what a process does to itself, and to what it sees of a folder, before a command begins in it.

Each concerns this process alone and those that it starts. Tests run as root, whom permissions do not stop, so that the
rights to pass over them are given up first.
"""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

_NEW_NAMESPACE, _BIND, _PRIVATE, _REMOUNT, _READ_ONLY = 0x20000, 4096, 0x44000, 32, 1
_PASS_OVER_PERMISSIONS = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _mount(what: str, place: Path, kind: str, flags: int, options: str = "") -> None:
    _call("mount", what.encode(), str(place).encode(), kind.encode(), flags, options.encode())


def _own_mounts(folder: str) -> Path:
    _call("unshare", _NEW_NAMESPACE)
    _mount("none", Path("/"), "", _PRIVATE)
    place = Path(folder)
    place.mkdir(exist_ok=True)
    return place


def small_files(_: str, most_bytes: int) -> None:
    """No file may be longer than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def full_disk(folder: str, bytes_left: int) -> None:
    """The folder is on a disk of this size; what is written there is lost with this process."""
    _mount("none", _own_mounts(folder), "tmpfs", 0, f"size={bytes_left}")


def read_only(folder: str) -> None:
    """The folder is on a disk that cannot be written to."""
    place = _own_mounts(folder)
    _mount(str(place), place, "", _BIND)
    _mount("none", place, "", _BIND | _REMOUNT | _READ_ONLY)


def closed(folder: str, mode: int) -> None:
    """The folder has these permissions, and they hold also for root."""
    Path(folder).mkdir(exist_ok=True)
    Path(folder).chmod(mode)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    rights = (ctypes.c_uint32 * 6)()
    _call("capget", header, rights)
    rights[0] &= ~_PASS_OVER_PERMISSIONS
    _call("capset", header, rights)


def can_mount() -> bool:
    """Whether this process may see folders otherwise than others do."""
    child = os.fork()
    if not child:
        try:
            _own_mounts("/")
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
