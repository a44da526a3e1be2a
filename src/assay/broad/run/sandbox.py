"""Processes for code that is not trusted: each begins clean, is shut in before it loads anything, and ends as a whole.

Three kinds of process take part, and only the last runs a team's code:

- the **keeper** is trusted: it holds labels, reads and writes results, and asks workers for answers;
- the **nursery**, a child of the keeper forked before the keeper knew anything (`prepare`), forks workers on demand;
- a **worker** is shut in (`assay.broad.run.walls`), then serves one function of assay (`Walls.serve`), which loads a
  team's code. It answers the keeper over a pipe in plain bytes, which the keeper checks as they arrive: nothing that a
  worker says is ever unpickled. Beside it stands a warden, which ends it, and everything it has started, when it ends
  or when the keeper closes it, dies or is killed.

Where the platform has no user namespaces, workers are plain processes: they too begin clean and end as a whole, but
they can read every file that the user can read. `kind_of_walls` says which it is.

A program that runs many keepers calls `prepare` in each before it tells it what to do (``Workers.enter`` of the
executor); the workers are then descendants of their keeper, so that limits on the keeper's tree of processes cover
them. Elsewhere the nursery is a process of multiprocessing's fork server, started when first needed.
"""

from __future__ import annotations

import array
import functools
import importlib
import json
import multiprocessing
import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from assay.broad.run.walls import adopt_orphans, end_with_parent, finish_walls, make_walls, unreadable
from assay.core.errors import AssayError

Kind = Literal["private namespaces", "plain processes"]
PLAIN: Kind = "plain processes"
PRIVATE: Kind = "private namespaces"
SCRATCH_BYTES = 4 * 2**30
_KEPT_VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "MKL_NUM_THREADS",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHASHSEED", "SHELL", "TZ", "USER", "VIRTUAL_ENV",
)  # fmt: skip


@dataclass(frozen=True)
class Walls:
    """What a worker is for, and what it may see and use.

    Args:
        serve: Function of assay that the worker calls with its connection, ``package.module:function``.
        hidden: Files and folders that no worker may see: the evaluation's folder, data, labels, the plan.
        shown: Folders that stay visible though something around them is hidden.
        scratch_bytes: Size of the worker's private ``/tmp``; it is gone when the worker ends.
        limits: Resource limits of the worker (`resource.setrlimit`), by number.
        kind: ``"plain processes"`` to do without namespaces; by default what the platform has.
    """

    serve: str
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    scratch_bytes: int = SCRATCH_BYTES
    limits: Mapping[int, int] = field(default_factory=dict)
    kind: Kind | None = None


class Worker:
    """A worker and its warden, from the keeper's side.

    Args:
        walls: What the worker is for, and what it may see.
    """

    def __init__(self, walls: Walls) -> None:
        ours, theirs = socket.socketpair()
        self._lifeline, wardens = socket.socketpair()
        plain = (walls.kind or kind_of_walls()) == PLAIN
        self._scratch = tempfile.TemporaryDirectory(prefix="assay-worker-") if plain else None
        scratch = "/tmp" if self._scratch is None else self._scratch.name
        request = (walls, plain, scratch, list(sys.path), str(Path.cwd()), _environment(scratch))
        _nursery().ask(request, (theirs.fileno(), wardens.fileno()))
        theirs.close()
        wardens.close()
        self.connection = Connection(ours.detach())
        self.ended: dict[str, Any] | None = None

    def close(self) -> dict[str, Any]:
        """End the worker and all it has started, wait until they are gone, and say how it ended.

        Returns:
            ``exit``, the exit code or the negative number of a signal, and ``peak_bytes`` of its largest process.
        """
        if self.ended is None:
            self.connection.close()
            with suppress(OSError):
                self._lifeline.shutdown(socket.SHUT_WR)
            said = b""
            while part := self._lifeline.recv(4096):
                said += part
            self._lifeline.close()
            self.ended = json.loads(said) if said else {"exit": -signal.SIGKILL, "peak_bytes": 0}
            if self._scratch is not None:
                self._scratch.cleanup()
        return self.ended

    def wait(self) -> dict[str, Any]:
        """Wait until the worker has ended by itself, then `close` it."""
        self._lifeline.recv(1, socket.MSG_PEEK)
        return self.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def prepare() -> None:
    """Fork this process's nursery now, before it is told anything that a worker must not know."""
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    if os.fork() == 0:
        with _last_words():
            ours.close()
            end_with_parent()
            if os.getppid() == parent:
                _nurse(theirs)
    theirs.close()
    _use(_Nursery(ours))


def kind_of_walls() -> Kind:
    """What keeps workers apart on this machine; asked of the kernel once."""
    return _kind()


@functools.cache
def _kind() -> Kind:
    if sys.platform != "linux":
        return PLAIN
    try:
        with Worker(Walls("assay.broad.run.sandbox:_greet", kind=PRIVATE)) as worker:
            return PRIVATE if worker.connection.recv_bytes(64) == b"1" else PLAIN
    except (EOFError, OSError):
        return PLAIN


def _greet(connection: Connection) -> None:
    connection.send_bytes(b"1")


def _environment(scratch: str) -> dict[str, str]:
    """The variables a worker gets: none that could hold a secret."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {"TMPDIR": scratch}


@contextmanager
def _last_words() -> Iterator[None]:
    """End this forked process with the block, whatever happens in it: it never returns to what its parent was doing."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(1)


# -- the nursery ----------------------------------------------------------------------------------------------


class _Nursery:
    """The keeper's end of a nursery."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.owner = os.getpid()

    def ask(self, request: object, descriptors: Sequence[int]) -> None:
        """Ask for a worker that has the given descriptors: its connection, and its warden's lifeline."""
        data = pickle.dumps(request)
        try:
            socket.send_fds(self.connection, [struct.pack("Q", len(data))], list(descriptors))
            self.connection.sendall(data)
        except OSError as error:
            raise AssayError(f"no worker can be started any more ({error.strerror}): its nursery is gone") from error


_own: _Nursery | None = None


def _use(nursery: _Nursery) -> None:
    global _own
    _own = nursery


def _nursery() -> _Nursery:
    if _own is None or _own.owner != os.getpid():
        context = multiprocessing.get_context("forkserver")
        ours, theirs = socket.socketpair()
        # Never a child of this process, which may know labels.
        process = context.Process(target=_nurse_of, args=(_Passed(theirs),), daemon=True)
        process.start()
        theirs.close()
        _use(_Nursery(ours))
    assert _own is not None
    return _own


class _Passed:
    """A socket on its way into a process that multiprocessing starts."""

    def __init__(self, one: socket.socket) -> None:
        self.one = one

    def __reduce__(self) -> tuple[Callable[[Any], socket.socket], tuple[Any]]:
        from multiprocessing.reduction import DupFd

        return _received, (DupFd(self.one.fileno()),)


def _received(passed: Any) -> socket.socket:
    return socket.socket(fileno=passed.detach())


def _nurse_of(connection: socket.socket) -> None:
    end_with_parent()
    _nurse(connection)


def _nurse(connection: socket.socket) -> None:
    """Fork workers as the keeper asks for them, until it is gone."""
    _close_all_but(connection.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the keeper decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # wardens leave no zombies
    while True:
        head, descriptors = _receive(connection)
        if len(head) < 8:
            return
        (length,) = struct.unpack("Q", head)
        data = bytearray()
        while len(data) < length:
            part = connection.recv(min(length - len(data), 1 << 20))
            if not part:
                return
            data += part
        nursery = os.getpid()
        if os.fork() == 0:
            with _last_words():
                connection.close()
                _warden(bytes(data), descriptors[0], descriptors[1], nursery)
        for descriptor in descriptors:
            os.close(descriptor)


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_LEN(2 * descriptors.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content)
    return data, list(descriptors)


# -- the warden, and the worker ---------------------------------------------------------------------------------


def _warden(request: bytes, channel: int, lifeline: int, parent: int) -> None:
    """Start a worker, and end it with everything it has started when it ends or the lifeline is cut."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # no terminal: nothing can be typed into the evaluators' one
    walls, plain, scratch, path, here, environment = pickle.loads(request)
    if plain:
        adopt_orphans()
    else:
        make_walls(walls.hidden, (*walls.shown, *_code(path), here), walls.scratch_bytes)
    end_with_parent()  # after a change of user namespace, which takes it back
    if os.getppid() != parent:
        return
    warden = os.getpid()
    first = os.fork()
    if first == 0:
        with _last_words():
            if plain:
                _worker(walls, channel, scratch, path, here, environment)
            else:
                _first_process(walls, channel, lifeline, scratch, path, here, environment)
    os.close(channel)
    unreadable()
    ended = os.pidfd_open(first) if hasattr(os, "pidfd_open") else -1
    poll = select.poll()
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    if ended >= 0:
        poll.register(ended, select.POLLIN)
    while True:
        events = dict(poll.poll(None if ended >= 0 else 50))
        pid, status = os.waitpid(first, os.WNOHANG)
        if pid == first:
            break
        if lifeline in events:
            os.kill(first, signal.SIGKILL)
            _, status = os.waitpid(first, 0)
            break
    if plain:
        _end_all_below(warden)
        _say(lifeline, os.waitstatus_to_exitcode(status))
    os._exit(0)


def _first_process(walls: Walls, channel: int, lifeline: int, *rest: Any) -> None:
    """Be the first process of a namespace: start the worker, gather orphans, and end all by ending."""
    end_with_parent()
    finish_walls()
    unreadable()
    worker = os.fork()
    if worker == 0:
        with _last_words():
            os.close(lifeline)
            end_with_parent()
            unreadable(False)
            _worker(walls, channel, *rest)
    os.close(channel)
    while True:
        pid, status = os.wait()
        if pid == worker:
            _say(lifeline, os.waitstatus_to_exitcode(status))
            os._exit(0)


def _say(lifeline: int, code: int) -> None:
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    with suppress(OSError):
        os.write(lifeline, json.dumps({"exit": code, "peak_bytes": peak}).encode())


def _worker(
    walls: Walls, channel: int, scratch: str, path: list[str], here: str, environment: Mapping[str, str]
) -> None:
    """Serve what the worker is for; all it has is its connection."""
    with suppress(PermissionError):
        os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    with suppress(OSError):
        os.dup2(2, 1)  # what it prints is not part of what the program prints
    _close_all_but(channel)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    for number, most in walls.limits.items():
        _, hard = resource.getrlimit(number)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.path[:] = path
    importlib.invalidate_caches()
    try:
        os.chdir(here)
    except OSError:
        os.chdir(scratch)
    connection = Connection(channel)
    module, _, name = walls.serve.partition(":")
    serve: Callable[[Connection], None] = getattr(importlib.import_module(module), name)
    with suppress(EOFError, BrokenPipeError):  # the keeper has gone
        serve(connection)
    sys.stderr.flush()
    os._exit(0)


def _code(path: Sequence[str]) -> tuple[str, ...]:
    """Folders and archives that code is imported from, which must be seen wherever they are."""
    own = str(Path(__file__).parents[3])
    return tuple(p for p in (sys.prefix, sys.base_prefix, own, *path) if p)


def _close_all_but(kept: int) -> None:
    os.closerange(3, kept)
    os.closerange(kept + 1, max(os.sysconf("SC_OPEN_MAX"), 65536) if hasattr(os, "sysconf") else 65536)


def _end_all_below(pid: int) -> None:
    """Kill every descendant of a process that adopts orphans, until there is none."""
    for _ in range(10_000):
        living = _children(pid)
        for child in living:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not living:
            return
        time.sleep(0.002)


def _children(pid: int) -> list[int]:
    """The children of a process that have not ended."""
    found = []
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit():
                with suppress(OSError):
                    state, parent = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[:2]
                    if int(parent) == pid and state != b"Z":
                        found.append(int(name))
    return found
