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
import json
import multiprocessing
import os
import pickle
import secrets
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from assay.broad.run.walls import unreadable
from assay.broad.run.warden import PLAIN, PRIVATE, Kind, Walls, be_warden, close_all_but, last_words
from assay.core.errors import AssayError
from assay.runs.process_tree import end_with_parent

_KEPT_VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "MKL_NUM_THREADS",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHASHSEED", "SHELL", "TZ", "USER", "VIRTUAL_ENV",
)  # fmt: skip


PRELOAD = (
    "assay.runs.executor",
    "assay.broad.run.processes",
    "assay.broad.run.serving",
    "sklearn.svm",
    "sklearn.linear_model",
)
"""What the server that all processes are forked from loads, so that no keeper and no worker does so by itself."""


class Worker:
    """A worker and its warden, from the keeper's side.

    Args:
        walls: What the worker is for, and what it may see.
    """

    def __init__(self, walls: Walls) -> None:
        ours, theirs = socket.socketpair()
        self._lifeline, wardens = socket.socketpair()
        plain = (walls.kind or kind_of_walls()) == PLAIN
        # The warden makes it and takes it away, so that none is left where this process is killed.
        self._scratch = Path(tempfile.gettempdir(), f"assay-worker-{secrets.token_hex(8)}") if plain else None
        scratch = str(self._scratch or "/tmp")
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
                shutil.rmtree(self._scratch, ignore_errors=True)  # the warden may have been killed
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
    unreadable()
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    if os.fork() == 0:
        with last_words():
            ours.close()
            end_with_parent()
            if os.getppid() == parent:
                _nurse(theirs)
    theirs.close()
    _use(_Nursery(ours))


@contextmanager
def keeping_to_itself(secret: str) -> Iterator[None]:
    """Inside the block no process of this user can read this one's memory, and no child inherits its secret.

    Args:
        secret: The secret; environment variables that hold it are taken out for the while.
    """
    holding = {name: value for name, value in os.environ.items() if secret and secret in value}
    for name in holding:
        del os.environ[name]
    unreadable()
    try:
        yield
    finally:
        unreadable(False)
        os.environ.update(holding)


def kind_of_walls() -> Kind:
    """What keeps workers apart on this machine; asked of the kernel once."""
    return _kind()


@functools.cache
def _kind() -> Kind:
    if sys.platform != "linux":
        return PLAIN
    for _ in range(2):  # a worker that was ended by accident says nothing about the kernel
        with (
            suppress(EOFError, OSError),
            Worker(Walls("assay.broad.run.sandbox:_greet", kind=PRIVATE)) as worker,
        ):
            return PRIVATE if worker.connection.recv_bytes(64) == b"1" else PLAIN
    return PLAIN


def _greet(connection: Connection) -> None:
    connection.send_bytes(b"1")


def _environment(scratch: str) -> dict[str, str]:
    """The variables a worker gets: none that could hold a secret."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {"TMPDIR": scratch}


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
        context.set_forkserver_preload(list(PRELOAD))  # whoever starts the server first decides what it loads
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
    close_all_but(connection.fileno())
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
            with last_words():
                connection.close()
                be_warden(bytes(data), descriptors[0], descriptors[1], nursery)
        for descriptor in descriptors:
            os.close(descriptor)


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_LEN(2 * descriptors.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content)
    return data, list(descriptors)
