"""The executor: jobs done in this process, in several processes, or on a Ray cluster.

One for all: cells of a run, runs of a broad evaluation, networks of a corpus. Jobs are taken from their iterable as
workers become free, so that ten thousand subjects need not be in memory at once.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from assay.core.errors import AssayError, first_line, optional, shown
from assay.core.progress import listening_to_stages
from assay.core.user_code import code_in, folders_searched, modules_beside

R = TypeVar("R")
_NOT_BEGUN, _BEGUN = None, ""  # stages of a job before the first that it names itself
_GUARD = "; a script that starts processes must do so under `if __name__ == '__main__':`"


@dataclass(frozen=True)
class Resources:
    """What one job needs on a Ray cluster.

    Args:
        cpus: Number of processors; a fraction lets several jobs share one.
        gpus: Number of GPUs; a fraction lets several jobs share one.
        retries: How often a job is tried again when its worker dies.
    """

    cpus: float = 1
    gpus: float = 0
    retries: int = 3


@dataclass(frozen=True)
class Workers:
    """Who does the jobs.

    Args:
        processes: Processes of this machine at a time; 0 for this process itself.
        ray: True for a Ray cluster found or started here, or the address of one.
        fresh: Whether every job has a new process, which never saw anything of the others.
        preload: Modules that processes have loaded when they start.
    """

    processes: int = 0
    ray: bool | str = False
    fresh: bool = False
    preload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole = isinstance(self.processes, int) and not isinstance(self.processes, bool)
        if not whole or self.processes < 0:
            raise AssayError(f"processes={shown(self.processes)} must be a whole number, at least 0")
        if not isinstance(self.ray, (bool, str)):
            raise AssayError(f"ray={shown(self.ray)} must be True, False or the address of a cluster")


@dataclass(frozen=True)
class Job:
    """One call of a task, ``task(streamed, kept, own)``.

    Args:
        own: What only this job is about.
        streamed: A large object that consecutive jobs share, sent to a worker once and then replaced by the next.
        kept: A large object that many jobs share, sent to a worker once and kept there.
        resources: What the job needs on a Ray cluster.
        limit_s: Seconds that one stage of the job may take in a process of this machine (see
            `assay.core.progress.begin_stage`); None for no limit.
    """

    own: Any
    streamed: Any = None
    kept: Any = None
    resources: Resources = Resources()
    limit_s: float | None = None


@dataclass(frozen=True)
class Lost:
    """A job without a result: its worker died, or was stopped at its limit of time."""

    reason: str
    timeout: bool = False


class Done(Generic[R]):
    """A job and its result."""

    def __init__(self, job: Job, result: R | Lost) -> None:
        self.job, self.result = job, result


def execute(
    task: Callable[[Any, Any, Any], R], jobs: Iterable[Job], workers: Workers
) -> Generator[Done[R], None, None]:
    """Do all jobs and give each back with its result as it ends, in any order; closing it ends the processes.

    What the task raises ends everything when it is done in this process, and is a `Lost` job elsewhere: a task that may
    fail catches what it raises.
    """
    if workers.ray:
        yield from _on_ray(task, jobs, workers.ray)
    elif workers.processes:
        yield from _in_processes(task, jobs, workers)
    else:
        for job in jobs:
            yield Done(job, task(job.streamed, job.kept, job.own))


# -- processes ------------------------------------------------------------------------------------------------


def _in_processes(task: Callable[[Any, Any, Any], R], jobs: Iterable[Job], workers: Workers) -> Iterator[Done[R]]:
    waiting = iter(jobs)
    idle: list[_Process] = []
    busy: list[_Process] = []
    pickled = _Pickled()
    more = True
    try:
        while more or busy:
            while more and len(busy) < workers.processes:
                job = next(waiting, None)
                if job is None:
                    more = False
                    break
                process = idle.pop() if idle else _Process(workers)
                try:
                    process.start(task, job, pickled)
                except AssayError as error:  # it cannot be sent: the others can
                    idle.append(process)
                    yield Done(job, Lost(str(error)))
                else:
                    busy.append(process)
            if busy:
                wait([process.connection for process in busy], timeout=_soonest(busy))
            for process in list(busy):
                result = process.result()
                if result is not None:
                    busy.remove(process)
                    yield Done(process.job, result[0])
                    if workers.fresh or not process.alive:
                        process.stop()
                    else:
                        idle.append(process)
    finally:
        for process in [*busy, *idle]:
            process.process.kill()  # all at once: another interruption may come while they are waited for
        for process in [*busy, *idle]:
            process.stop()


class _Pickled:
    """Objects as bytes: of those that jobs share, the last streamed one and all kept ones, each pickled once."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[Any, bytes]] = {}
        self.streamed: tuple[Any, bytes] = (None, pickle.dumps(None))

    def of_streamed(self, thing: Any) -> bytes:
        if self.streamed[0] is not thing:
            self.streamed = (thing, _dumps(thing))
        return self.streamed[1]

    def of_kept(self, thing: Any) -> bytes:
        if id(thing) not in self.kept:
            self.kept[id(thing)] = (thing, _dumps(thing))
        return self.kept[id(thing)][1]


class _Process:
    """A process that does one job after another, and says when a stage of one begins."""

    def __init__(self, workers: Workers) -> None:
        # Forked from a process that has loaded the code but never saw the data: quick to start, and clean.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, *workers.preload])
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.job = Job(None)
        self.stage: str | None = _NOT_BEGUN
        self.since = time.monotonic()
        self.streamed: Any = None
        self.kept: set[int] = set()

    def start(self, task: Callable[..., Any], job: Job, pickled: _Pickled) -> None:
        """Send a job, with what this process does not have of it yet."""
        self.job, self.stage, self.since = job, _NOT_BEGUN, time.monotonic()
        new_streamed = job.streamed is not None and job.streamed is not self.streamed
        new_kept = job.kept is not None and id(job.kept) not in self.kept
        message = (
            _dumps((task, job.own)),
            pickled.of_streamed(job.streamed) if new_streamed else None,
            id(job.kept) if job.kept is not None else None,
            pickled.of_kept(job.kept) if new_kept else None,
        )
        self.streamed = job.streamed
        self.kept.add(id(job.kept))
        with suppress(OSError):  # it died meanwhile; `result` says so
            self.connection.send(message)

    @property
    def alive(self) -> bool:
        return bool(self.process.is_alive())

    def result(self) -> tuple[Any] | None:
        """The result of its job, once there is one."""
        alive = self.alive  # before listening: what it said at last is still heard
        try:
            while self.connection.poll():
                kind, value = self.connection.recv()
                if kind == "stage":
                    self.stage, self.since = value, time.monotonic()
                else:
                    return (Lost(value) if kind == "failed" else value,)
        except (EOFError, OSError):
            alive = False
        if not alive:
            self.process.join()
            code = self.process.exitcode
            died = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            if self.stage is _NOT_BEGUN:
                return (Lost(f"the process died before it began ({died}){_GUARD if code == 1 else ''}"),)
            return (Lost(f"the process died{f' at {self.stage!r}' if self.stage else ''} ({died})"),)
        if self.left() <= 0:
            self.stop()
            return (Lost(f"{self.stage!r} took longer than {self.job.limit_s:g} s", timeout=True),)
        return None

    def left(self) -> float:
        """Seconds until its limit of time."""
        if self.job.limit_s is None or not self.stage:
            return float("inf")
        return self.job.limit_s - (time.monotonic() - self.since)

    def stop(self) -> None:
        """End it now."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _soonest(busy: Sequence[_Process]) -> float | None:
    left = min(process.left() for process in busy)
    return None if left == float("inf") else max(left, 0.0)


def _serve(connection: Connection) -> None:
    """Do jobs until the parent is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Ctrl-C in a terminal reaches every process; the parent decides. Not ignored, which a child's child would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    streamed: Any = None
    kept: dict[int, Any] = {}
    while True:
        try:
            body, new_streamed, kept_id, new_kept = connection.recv()
        except (EOFError, OSError):
            return
        try:
            if new_streamed is not None:
                streamed = pickle.loads(new_streamed)
            if new_kept is not None:
                kept[kept_id] = pickle.loads(new_kept)
            task, own = pickle.loads(body)
            connection.send(("stage", _BEGUN))
            with listening_to_stages(lambda what: connection.send(("stage", what))):
                answer = ("done", task(streamed, kept.get(kept_id), own))
        except BaseException as error:  # what a job raises, even by sys.exit, ends that job alone
            answer = ("failed", f"{type(error).__name__}: {first_line(error)}")
        connection.send(answer)


def _end_with_parent() -> None:
    """Nobody waits for this job any more: another process may be doing it already."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _dumps(thing: Any) -> bytes:
    """Pickle, with cloudpickle where plain pickle cannot (a class of a notebook)."""
    try:
        return pickle.dumps(thing)
    except Exception as error:
        try:
            cloudpickle = optional("cloudpickle", "ray", "processes=…")
            data: bytes = cloudpickle.dumps(thing)
        except Exception:
            raise AssayError(f"{thing!r} cannot be sent to another process ({first_line(error)})") from error
        return data


# -- Ray --------------------------------------------------------------------------------------------------------


def start_ray(address: bool | str) -> Any:
    """The package ray, connected to the cluster at an address, or (True) to one found or started here."""
    ray = optional("ray", "ray", "ray=…")
    if not ray.is_initialized():
        try:
            ray.init(address=None if address is True else str(address), log_to_driver=False, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise AssayError(
                f"ray={address}: there is no Ray cluster ({first_line(error)}); give its address, as 10.0.0.1:6379"
            ) from error
    for module in modules_beside():  # no worker is expected to have them: they travel with the jobs
        ray.cloudpickle.register_pickle_by_value(module)
    return ray


def _on_ray(task: Callable[[Any, Any, Any], R], jobs: Iterable[Job], address: bool | str) -> Iterator[Done[R]]:
    """Each job a task of the cluster; so many are handed over that every core has the next one waiting."""
    waiting = iter(jobs)
    first = next(waiting, None)
    if first is None:
        return
    ray = start_ray(address)
    folders = folders_searched()

    def with_code(streamed: Any, kept: Any, own: Any) -> R:
        with ExitStack() as found:  # what the code imports only when it is called, where the worker sees the folder
            for folder in folders:
                found.enter_context(code_in(folder))
            return task(streamed, kept, own)

    remote = ray.remote(with_code)
    most = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1) + 2
    kept: dict[int, tuple[Any, Any]] = {}
    streamed: tuple[Any, Any] = (None, None)
    under_way: dict[Any, Job] = {}
    following: Job | None = first
    try:
        while following is not None or under_way:
            while following is not None and len(under_way) < most:
                if following.streamed is not None and following.streamed is not streamed[0]:
                    streamed = (following.streamed, ray.put(following.streamed))
                if following.kept is not None and id(following.kept) not in kept:
                    kept[id(following.kept)] = (following.kept, ray.put(following.kept))
                needs = following.resources
                call = remote.options(num_cpus=needs.cpus, num_gpus=needs.gpus, max_retries=needs.retries)
                shared = (
                    streamed[1] if following.streamed is not None else None,
                    kept[id(following.kept)][1] if following.kept is not None else None,
                )
                under_way[call.remote(*shared, following.own)] = following
                following = next(waiting, None)
            (ready,), _ = ray.wait(list(under_way), num_returns=1)
            job = under_way.pop(ready)
            try:
                result: R | Lost = ray.get(ready)
            except ray.exceptions.RayError as error:  # the worker died once too often
                result = Lost(f"Ray: {first_line(getattr(error, 'cause', None) or error)}")
            yield Done(job, result)
    finally:
        for pending in under_way:
            ray.cancel(pending, force=True)
