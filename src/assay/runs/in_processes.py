"""Jobs in processes of this machine: each within its limits, and whatever it started ends with it."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, TypeVar

from assay.core.errors import AssayError, first_line, optional
from assay.runs.jobs import Done, Job, Lost, Workers
from assay.runs.process_tree import end_tree, tree_bytes
from assay.runs.sharing import Pickled, Sender
from assay.runs.worker import NOT_BEGUN, serve

R = TypeVar("R")
_GUARD = "; a script that starts processes must do so under `if __name__ == '__main__':`"
_LOOK_S = 0.2  # between two looks at the memory of processes
_GIB = 2**30


def in_processes(task: Callable[[Any, Any, Any], R], jobs: Iterable[Job], workers: Workers) -> Iterator[Done[R]]:
    """Do jobs in processes of this machine; closing the iterator ends all of them."""
    waiting = iter(jobs)
    idle: list[WorkerProcess] = []
    busy: list[WorkerProcess] = []
    pickled = Pickled(_dumps)
    more = True
    try:
        while more or busy:
            while more and len(busy) < workers.processes:
                job = next(waiting, None)
                if job is None:
                    more = False
                    break
                process = idle.pop() if idle else WorkerProcess(workers, pickled)
                try:
                    process.start(task, job)
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
                    if workers.fresh or not process.alive:
                        process.stop()  # before its result is known: nothing of it may go on when that is
                    else:
                        idle.append(process)
                    yield Done(process.job, result[0])
    finally:
        for process in [*busy, *idle]:
            process.kill()  # all at once: another interruption may come while they are waited for
        for process in [*busy, *idle]:
            process.stop()


class WorkerProcess:
    """A process that does one job after another, and says when a stage of one begins."""

    def __init__(self, workers: Workers, pickled: Pickled) -> None:
        # Forked from a process that has loaded the code but never saw the data: quick to start, and clean.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["assay.runs.executor", *workers.preload])
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, workers.fresh, workers.enter), daemon=True)
        self.process.start()
        theirs.close()
        self.job = Job(None)
        self.stage: str | None = NOT_BEGUN
        self.since = self.looked = time.monotonic()
        self.sender = Sender(pickled)

    def start(self, task: Callable[..., Any], job: Job) -> None:
        """Send a job, with what this process does not have of it yet."""
        self.job, self.stage, self.since = job, NOT_BEGUN, time.monotonic()
        message = (_dumps((task, job.own)), self.sender.shared(job))
        with suppress(OSError):  # it died meanwhile; `result` says so
            self.connection.send(message)

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return bool(self.process.is_alive())

    def result(self) -> tuple[Any] | None:
        """The result of its job, once there is one."""
        alive = self.alive  # before listening: what it said at last is still heard
        try:
            while self.connection.poll():
                kind, value = self.connection.recv()
                if kind == "done":
                    return (value,)
                if kind != "stage":
                    return (Lost(value, out_of_memory=kind == "no memory"),)
                self.stage, self.since = value, time.monotonic()
        except (EOFError, OSError):
            alive = False
        if not alive:
            return self._ended()
        if self.left() <= 0:
            self.stop()
            stage = f"{self.stage!r}" if self.stage else "the time before the first stage"
            return (Lost(f"{stage} took longer than {self.job.limits.stage_s:g} s", timeout=True),)
        most = self.job.limits.memory_bytes
        if most is not None and time.monotonic() - self.looked >= _LOOK_S:
            self.looked = time.monotonic()
            taken = tree_bytes(self.process.pid or 0, most)
            if taken > most:
                self.stop()
                at = f"at {self.stage!r} " if self.stage else ""
                return (Lost(f"{at}it took {taken / _GIB:.2f} of {most / _GIB:.2f} GiB", out_of_memory=True),)
        return None

    def _ended(self) -> tuple[Lost]:
        """What became of a job whose process has ended."""
        self.process.join()
        code = self.process.exitcode
        died = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        if self.stage is NOT_BEGUN:
            return (Lost(f"the process died before it began ({died}){_GUARD if code == 1 else ''}"),)
        return (Lost(f"the process died{f' at {self.stage!r}' if self.stage else ''} ({died})"),)

    def left(self) -> float:
        """Seconds until its limit of time."""
        if self.job.limits.stage_s is None or self.stage is NOT_BEGUN:
            return float("inf")
        return self.job.limits.stage_s - (time.monotonic() - self.since)

    def kill(self) -> None:
        """Kill it and everything it started, without waiting."""
        if self.process.pid is not None and self.alive:
            end_tree(self.process.pid)

    def stop(self) -> None:
        """End it and everything it started now."""
        self.kill()
        self.process.join()
        self.connection.close()


def _soonest(busy: Sequence[WorkerProcess]) -> float | None:
    """Seconds until something is to be looked at, whether or not somebody says something."""
    left = min(process.left() for process in busy)
    if any(process.job.limits.memory_bytes is not None for process in busy):
        left = min(left, _LOOK_S)
    return None if left == float("inf") else max(left, 0.0)


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
