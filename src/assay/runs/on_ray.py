"""Jobs on a Ray cluster, each with what it asks for; a job whose worker is lost is done again.

Ray ends a process that is connected to it when its node dies, and leaves what it started behind when that process is
killed. So it is not this process that is connected but one of its own (`assay.runs.ray_process`), which ends with this
one and everything below it; unless this process is connected already, by the user's own choice.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, TypeVar

from assay.core.errors import AssayError, optional
from assay.core.user_code import folders_searched, modules_beside
from assay.runs.jobs import Done, Job, Lost
from assay.runs.process_tree import end_tree
from assay.runs.ray_jobs import connect, nodes_of, on_cluster
from assay.runs.sharing import Pickled, Sender

log = logging.getLogger(__name__)
R = TypeVar("R")
Node: TypeAlias = dict[str, float]
Jobs: TypeAlias = Iterable[Job] | Callable[[Sequence[Node]], Iterable[Job]]
_WAIT_S = 120.0  # for a cluster to answer
_START_S = 300.0  # for one to be started on a busy machine, at the third try
_KNOCK_S = 10.0  # for whatever listens at the address of a cluster
_PARTING_S = 10.0  # for Ray to put its things in order


def on_ray(task: Callable[[Any, Any, Any], R], jobs: Jobs, address: bool | str) -> Iterator[Done[R]]:
    """Do each job as a task of the cluster; closing the iterator ends those under way.

    Args:
        task: What is done, ``task(streamed, kept, own)``.
        jobs: The jobs; or a function that makes them, given what each node of the cluster has.
        address: Address of the cluster; True for the one that ``RAY_ADDRESS`` names, else one that is started here.
    """
    if not callable(jobs):
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None:  # all is done: no cluster is needed
            return
        jobs = chain([first], waiting)
    ray = optional("ray", "ray", "ray=…")
    for module in modules_beside():  # no worker is expected to have them: they travel with the jobs
        ray.cloudpickle.register_pickle_by_value(module)
    if ray.is_initialized():
        given = jobs(nodes_of(ray)) if callable(jobs) else jobs
        yield from on_cluster(connect(address), task, given, folders_searched())
        return
    process = RayProcess(ray.cloudpickle, address)
    calm = False
    try:
        yield from process.work(task, jobs)
        calm = True
    finally:
        process.end(calm)


class RayProcess:
    """The process that is connected to the cluster, which asks for jobs and says what came of them.

    Args:
        cloudpickle: Ray's pickle, which takes classes of a notebook or a script along.
        address: Address of the cluster, or True.
    """

    def __init__(self, cloudpickle: Any, address: bool | str) -> None:
        self.cloudpickle = cloudpickle
        at = os.environ.get("RAY_ADDRESS", "") if address is True else str(address)
        if at:
            _knock(at, address)
        # Ray's own files, and temporary files of a cluster of ours, whose processes end without removing them. Sockets
        # are among them, whose paths must be short.
        self.folder = tempfile.mkdtemp(prefix="assay-ray-", dir="/tmp" if os.path.isdir("/tmp") else None)  # noqa: PTH112
        ours, theirs = socket.socketpair()
        with theirs:
            words = [sys.executable, "-m", "assay.runs.ray_process", str(theirs.fileno()), at or self.folder]
            silent: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self.process = subprocess.Popen(
                words,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": path} | ({} if at else {"TMPDIR": self.folder}),
                **silent,
            )
        self.connection = Connection(ours.detach())
        self.address = address
        self.patience_s = _WAIT_S if at else _START_S
        self.under_way: dict[int, Job] = {}
        self.sender = Sender(Pickled(cloudpickle.dumps))

    def work(self, task: Callable[..., R], jobs: Jobs) -> Iterator[Done[R]]:
        """Give it the jobs that it asks for, and pass on what came of each; what it cannot do any more is lost."""
        nodes = self._nodes()
        waiting = iter(jobs(nodes) if callable(jobs) else jobs)
        self._send((task, folders_searched()))
        numbered = enumerate(waiting)
        try:
            while True:
                kind, value = self._receive()
                if kind == "next":
                    yield from self._give(numbered)
                elif kind == "said":
                    log.warning("%s", value)
                elif kind == "end":
                    return
                else:
                    number, result = value
                    yield Done(self.under_way.pop(number), result)
        except (EOFError, OSError):
            reason = "Ray: the connection to the cluster was lost, as happens when a node or its head is killed"
            for job in [*self.under_way.values(), *(job for _, job in numbered)]:
                yield Done(job, Lost(reason))

    def _give(self, numbered: Iterator[tuple[int, Job]]) -> Iterator[Done[Any]]:
        """Send the next job, or that there is none; jobs that cannot be sent are lost."""
        for number, job in numbered:
            try:
                body = self.cloudpickle.dumps((job.own, job.resources))
                shared = self.sender.shared(job)
            except Exception as error:  # what cannot be pickled: the others can
                yield Done(job, Lost(f"it cannot be sent to another process ({type(error).__name__}: {error})"))
                continue
            self.under_way[number] = job
            self._send((number, body, shared))
            return
        self._send(None)

    def _nodes(self) -> Sequence[Node]:
        """What each node of the cluster has; an error where there is no cluster."""
        said: Any = None
        with suppress(EOFError, OSError):
            until = time.monotonic() + self.patience_s
            while said is None and not self.connection.poll(0.2) and time.monotonic() < until:
                pass
            said = self._receive() if self.connection.poll() else None
        if said is None:
            raise no_cluster(self.address, f"nothing of Ray has answered for {self.patience_s:.0f} s")
        kind, value = said
        if kind != "ready":
            raise no_cluster(self.address, value)
        return value  # type: ignore[no-any-return]

    def _send(self, message: Any) -> None:
        self.connection.send_bytes(self.cloudpickle.dumps(message))

    def _receive(self) -> tuple[str, Any]:
        return self.cloudpickle.loads(self.connection.recv_bytes())  # type: ignore[no-any-return]

    def end(self, calm: bool) -> None:
        """End it and what it has started: after its own parting if all is done, else at once."""
        self.connection.close()
        if calm:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_PARTING_S)
        if self.process.poll() is None:
            end_tree(self.process.pid)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def no_cluster(address: bool | str, why: str) -> AssayError:
    """The error that there is no cluster at an address."""
    return AssayError(f"ray={address}: there is no Ray cluster ({why}); give its address, as 10.0.0.1:6379")


def _knock(at: str, address: bool | str) -> None:
    """See that something listens at the address of a cluster: Ray itself would try for minutes."""
    host, _, port = at.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        if at in ("auto", "local"):
            return
        raise no_cluster(address, f"{at!r} is no host with a port")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise no_cluster(address, f"nothing listens at {host}:{port}: {error}") from error
