"""The warden of a worker, and what a worker does before it loads any foreign code (see `assay.broad.run.sandbox`)."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from assay.broad.run.printed import Printed
from assay.broad.run.walls import finish_walls, make_walls, unreadable
from assay.runs.process_tree import adopt_orphans, end_below, end_with_parent

Kind = Literal["private namespaces", "plain processes"]
PLAIN: Kind = "plain processes"
PRIVATE: Kind = "private namespaces"
SCRATCH_BYTES = 4 * 2**30


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


@contextmanager
def last_words() -> Iterator[None]:
    """End this forked process with the block, whatever happens in it: it never returns to what its parent was doing."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(1)


def be_warden(request: bytes, channel: int, lifeline: int, parent: int) -> None:
    """Start a worker, and end it with everything it has started when it ends or the lifeline is cut."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # no terminal: nothing can be typed into the evaluators' one
    walls, plain, scratch, path, here, environment = pickle.loads(request)
    if plain:
        Path(scratch).mkdir(0o700)
        adopt_orphans()
    else:
        make_walls(walls.hidden, (*walls.shown, *_code(path), here), walls.scratch_bytes)
        end_with_parent()  # after the change of user namespace, which takes it back
        if os.getppid() != parent:
            return
    warden = os.getpid()
    printed = Printed()
    first = os.fork()
    if first == 0:
        with last_words():
            printed.replace_own()
            if plain:
                os.close(lifeline)
                end_with_parent()
                _worker(walls, channel, scratch, path, here, environment)
            else:
                _first_process(walls, channel, lifeline, scratch, path, here, environment)
    os.close(channel)
    printed.begin()
    unreadable()
    ended = os.pidfd_open(first) if hasattr(os, "pidfd_open") else -1
    poll = select.poll()
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    poll.register(printed.end, select.POLLIN | select.POLLHUP)
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
        if printed.end in events and not printed.pass_on():
            poll.unregister(printed.end)
    if plain:
        end_below(warden)
    printed.pass_on(all_of_it=True)
    if plain:
        shutil.rmtree(scratch, ignore_errors=True)
        _say(lifeline, os.waitstatus_to_exitcode(status))
    os._exit(0)


def _first_process(walls: Walls, channel: int, lifeline: int, *rest: Any) -> None:
    """Be the first process of a namespace: start the worker, gather orphans, and end all by ending."""
    end_with_parent()
    finish_walls()
    unreadable()
    worker = os.fork()
    if worker == 0:
        with last_words():
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
    close_all_but(channel)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    for limit, most in walls.limits.items():
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
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
    with suppress(EOFError, ConnectionError):  # the keeper has gone
        serve(connection)
    sys.stderr.flush()
    os._exit(0)


def _code(path: Sequence[str]) -> tuple[str, ...]:
    """Folders and archives that code is imported from, which must be seen wherever they are."""
    own = str(Path(__file__).parents[3])
    return tuple(p for p in (sys.prefix, sys.base_prefix, own, *path) if p)


def close_all_but(kept: int) -> None:
    """Close all descriptors but one and the standard three."""
    os.closerange(3, kept)
    os.closerange(kept + 1, max(os.sysconf("SC_OPEN_MAX"), 65536) if hasattr(os, "sysconf") else 65536)
