"""Walls around a process on Linux: private namespaces that it cannot leave, made before any foreign code is loaded.

Namespaces of user, mounts, processes, network and shared memory, as bubblewrap makes them: the file system can only be
read, ``/tmp`` and ``/dev/shm`` are private and of limited size, what is hidden is covered by something empty, no other
process can be seen, no network reached, and no privilege is left with which to take any of this back.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress

_NEW_USER, _NEW_MOUNTS, _NEW_PIDS, _NEW_IPC, _NEW_NET = 0x10000000, 0x20000, 0x20000000, 0x08000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_MOUNT_SETATTR, _AT_RECURSIVE, _ATTR_RDONLY, _ATTR_NOSUID = 442, 0x8000, 1, 2
_DUMPABLE, _BOUNDING_DROP, _NO_NEW_PRIVILEGES, _AMBIENT = 4, 24, 38, 47
_PRIVATE_PLACES = ("/tmp", "/dev/shm")
_EMPTY_PLACES = ("/run", "/var/tmp", "/dev/pts", "/dev/mqueue", "/dev/kmsg")  # of services, others, terminals
_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs")  # of the whole machine, under /proc: root may write them
_NAMESPACES = ("user", "mnt", "pid", "ipc", "net", "uts", "cgroup", "time")
_PROCESSES = 4096  # that a worker may have at a time, with its threads
_KEYCTL = {"x86_64": 250, "aarch64": 219}  # the system call's number


def make_walls(hidden: Sequence[str], shown: Sequence[str], scratch_bytes: int) -> None:
    """Shut this process in; its next child is the first process of the new namespace and calls `finish_walls`.

    Args:
        hidden: Files and folders that are covered by empty ones.
        shown: Folders that stay visible where something around them is covered; what is hidden inside stays hidden.
        scratch_bytes: Size of the private ``/tmp``.
    """
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_PIDS | _NEW_IPC | _NEW_NET)
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        _write(f"/proc/self/{file}", text)
    _mount(None, "/", None, _REC | _PRIVATE)
    attributes = struct.pack("QQQQ", _ATTR_RDONLY | _ATTR_NOSUID, 0, 0, 0)
    _call("syscall", _MOUNT_SETATTR, -100, b"/", _AT_RECURSIVE, attributes, len(attributes))
    covers = {os.path.realpath(place): "private" for place in _PRIVATE_PLACES}
    covers |= {os.path.realpath(place): "empty" for place in _EMPTY_PLACES}
    covers |= {os.path.realpath(place): "empty" for place in hidden}
    _arrange(covers, {os.path.realpath(place) for place in shown} - set(covers), scratch_bytes)


def _arrange(covers: dict[str, str], shown: set[str], scratch_bytes: int) -> None:
    """Cover and show places, the outer ones first, so that what lies inside another place has the last word."""
    inside = {p for p in shown if any(p.startswith(cover + "/") for cover in covers)}
    handles = {p: os.open(p, os.O_PATH) for p in inside if os.path.exists(p)}  # noqa: PTH110  as they are now
    read_only = []
    for place in sorted({*covers, *handles}, key=lambda p: (p.count("/"), p)):
        if place in handles:
            if os.fstat(handles[place]).st_mode & 0o170000 == 0o040000:
                os.makedirs(place, exist_ok=True)  # noqa: PTH103
            elif not os.path.exists(place):  # noqa: PTH110  else its folder is shown already, and cannot be written to
                os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120
                os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
            _mount(f"/proc/self/fd/{handles[place]}", place, None, _BIND | _REC)
            os.close(handles[place])
        elif os.path.isdir(place):  # noqa: PTH112
            private = covers[place] == "private"
            _mount("none", place, "tmpfs", _NOSUID | _NODEV, f"mode=1777,size={scratch_bytes}")
            if not private:
                read_only.append(place)
        elif os.path.exists(place):  # noqa: PTH110
            _mount("/dev/null", place, None, _BIND)
    for place in read_only:  # now that folders were made in them
        _mount(None, place, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)


def finish_walls() -> None:
    """As the first process of the new namespace: see only its own processes, then give all privileges away."""
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _limit_namespaces()
    for name in _SETTINGS:  # this user may be root, to whom they are open whatever its privileges are
        if os.path.exists(f"/proc/{name}"):  # noqa: PTH110
            _mount(f"/proc/{name}", f"/proc/{name}", None, _BIND | _REC)
            _mount(None, f"/proc/{name}", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    if os.uname().machine in _KEYCTL:
        with suppress(OSError):  # there are no keyrings
            _call("syscall", _KEYCTL[os.uname().machine], 1, None)  # a session of its own: keys are passed on by none
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:  # a network of itself
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1))
    for capability in range(64):
        with suppress(OSError):
            _prctl(_BOUNDING_DROP, capability)
    _prctl(_AMBIENT, 4)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))
    with suppress(OSError):
        os.chdir("/tmp")


def _limit_namespaces() -> None:
    """Allow no namespaces inside this one, in which a process would be its own root, and no more processes than many.

    These settings are this namespace's own; the number of processes only since Linux 6.14. Before that the limit of a
    user holds, which root does not have.
    """
    for kind in _NAMESPACES:
        with suppress(OSError):  # this kernel does not know it
            _write(f"/proc/sys/user/max_{kind}_namespaces", "0")
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    if (major, minor) >= (6, 14):
        with suppress(OSError):
            _write("/proc/sys/kernel/pid_max", str(_PROCESSES))
    if (major, minor) >= (5, 14):  # before, all processes of the user would count
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        most = _PROCESSES if hard == resource.RLIM_INFINITY else min(_PROCESSES, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def unreadable(yes: bool = True) -> None:
    """Say whether others of this user may read this process's memory or attach to it."""
    _prctl(_DUMPABLE, 0 if yes else 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library that gives −1 and an error number where it fails."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
