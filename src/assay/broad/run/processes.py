"""Runs in processes of their own: what hangs is stopped, what dies takes nothing with it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from assay.broad.data.features import FeatureStore
from assay.broad.data.violation import NotApplicable, Violation
from assay.broad.run.condition import RunCondition
from assay.broad.run.job import Job
from assay.broad.run.results import Results, RunRecord
from assay.broad.tasks import View
from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder
from assay.core.progress import report
from assay.runs.executor import start_ray

RETRIES = 3  # of a run whose Ray worker is lost


@dataclass(frozen=True)
class Order:
    """One run to do, as a process is told it.

    Args:
        view: File with the task as systems may see it.
        job: What to run.
        results: Folder of the evaluation.
        features: Folder of kept features.
        forbidden: Where labels are.
        limit_s: Seconds that one fit may take; None for no limit.
        threads: Of this process.
        anew: Whether folds that are done are done again, each written over when its successor is there.
    """

    task: str
    view: str
    job: Job
    results: str
    features: str
    forbidden: tuple[str, ...]
    limit_s: float | None = None
    threads: int = 1
    anew: bool = False


def do(order: Order, connection: Connection | None = None) -> RunRecord:
    """One run in this process; whatever a system does wrong becomes a status."""
    torch.set_num_threads(order.threads)
    results = Results(order.results)

    def notify(what: str) -> None:
        if connection is not None:
            connection.send(what)

    view: View = pickle.loads(Path(order.view).read_bytes())
    store = FeatureStore(Folder(order.features))
    run = RunCondition(view, order.job, results, store, order.forbidden, notify, order.anew)
    try:
        record = run()
    except Violation as error:
        record = run.record(error.status, str(error))
    except NotApplicable as error:
        record = run.record("not applicable", str(error))
    except AssayError as error:
        record = run.record("failed", str(error))
    except Exception as error:
        record = run.record("failed", f"{type(error).__name__}: {first_line(error)}", traceback.format_exc())
    if record != results.read_run(record.task, record.run):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        record = replace(record, peak_bytes=peak * (1 if sys.platform == "darwin" else 1024))
        results.write_run(record)
    return record


def _process(order: Order, connection: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    do(order, connection)
    connection.send(None)
    connection.close()


def _end_with_parent() -> None:
    """Nobody waits for this run any more: another may be doing it already."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _clean_processes() -> Any:
    """Processes forked from one that has loaded the code but never saw the data: quick to start, and without labels."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["assay.broad.run.processes", "sklearn.svm", "sklearn.linear_model"])
    return context


class _Running:
    """A process at work, and how long it has been at its present fit."""

    def __init__(self, order: Order) -> None:
        self.order, self.what = order, "starting"
        context = _clean_processes()
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_process, args=(order, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.since = time.monotonic()

    def finished(self) -> RunRecord | None:
        """How it went, once it is over."""
        alive = self.process.is_alive()  # before listening: what it said at last is still heard
        try:
            while self.connection.poll():
                what = self.connection.recv()
                if what is None:
                    self.process.join()
                    return Results(self.order.results).read_run(self.order.task, self.order.job.key)
                self.what, self.since = what, time.monotonic()
        except (EOFError, OSError):
            pass
        if not alive:
            self.process.join()
            code = self.process.exitcode
            died = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return _lost(self.order, "failed", f"the process died at {self.what!r} ({died})")
        limit = self.order.limit_s
        if limit is not None and self.what != "starting" and time.monotonic() - self.since > limit:
            self.stop()
            return _lost(self.order, "timeout", f"{self.what!r} took longer than {limit:g} s")
        return None

    def stop(self) -> None:
        """Now."""
        self.process.kill()
        self.process.join()


def work(orders: Sequence[Order], processes: int = 1, ray: bool | str = False) -> Iterator[RunRecord]:
    """Do all of them, some at a time, and say how each went as it ends."""
    if processes < 1:
        raise AssayError(f"processes={processes} must be at least 1")
    if ray:
        yield from _on_ray(orders, ray)
        return
    waiting = list(orders)
    running: list[_Running] = []
    total, done = len(waiting), 0
    report("runs", 0, total)
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                running.append(_Running(waiting.pop(0)))
            for one in list(running):
                record = one.finished()
                if record is not None:
                    running.remove(one)
                    done += 1
                    report("runs", done, total)
                    yield record
            time.sleep(0.02)
    finally:
        for one in running:
            one.stop()


def _on_ray(orders: Sequence[Order], address: bool | str) -> Iterator[RunRecord]:
    """Each run a task of a Ray cluster, still in a process of its own; the folder is one that all nodes see.

    A run has a core for each of its threads, and a GPU if one of its modules asks for it. Where its worker or its node
    is lost it is done again, up to `RETRIES` times; then its status is ``failed``.
    """
    if not orders:
        return
    ray = start_ray(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = max(int(node.get("CPU", 0)) for node in nodes)
    if any(order.job.on_gpu for order in orders) and not any(node.get("GPU", 0) for node in nodes):
        raise AssayError("a module asks for device=cuda, and no node of the Ray cluster has a GPU")
    here = Path.cwd()

    @ray.remote(max_retries=RETRIES)  # type: ignore[untyped-decorator]
    def one(order: Order) -> RunRecord:
        if not Path(order.view).exists():
            raise AssayError(f"{socket.gethostname()} does not see {order.results}: use a folder that all nodes share")
        if here.is_dir():  # data may be named relative to it
            os.chdir(here)
        return next(iter(work([order])))

    waiting: dict[Any, Order] = {}
    for order in orders:
        cores = max(min(order.threads, most), 1)
        task = one.options(num_cpus=cores, num_gpus=int(order.job.on_gpu))
        waiting[task.remote(replace(order, threads=cores))] = order
    try:
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            order = waiting.pop(ready)
            try:
                record = ray.get(ready)
            except ray.exceptions.RayError as error:
                record = _lost(order, "failed", f"Ray: {first_line(getattr(error, 'cause', None) or error)}")
            report("runs", len(orders) - len(waiting), len(orders))
            yield record
    finally:
        for task in waiting:
            ray.cancel(task, force=True)


def _lost(order: Order, status: str, reason: str) -> RunRecord:
    """The record of a run that could not write its own."""
    record = RunRecord(order.task, order.job.key, status, reason, modules=order.job.modules)
    Results(order.results).write_run(record)
    return record
