"""Runs in processes of their own: what hangs is stopped, what dies takes nothing with it."""

from __future__ import annotations

import multiprocessing
import pickle
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from assay.broad.condition import Job, RunCondition
from assay.broad.features import FeatureStore
from assay.broad.modules.classifier import NotApplicable
from assay.broad.results import Results, RunRecord, Violation
from assay.broad.tasks import View
from assay.errors import AssayError, first_line, optional
from assay.files import Folder
from assay.progress import report


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
        results.write_run(record)
    return record


def _process(order: Order, connection: Connection) -> None:
    do(order, connection)
    connection.send(None)
    connection.close()


def _clean_processes() -> Any:
    """Processes forked from one that has loaded the code but never saw the data: quick to start, and without labels."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["assay.broad.work", "sklearn.svm", "sklearn.linear_model"])
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
        results = Results(self.order.results)
        key = (self.order.task, self.order.job.key)
        alive = self.process.is_alive()  # before listening: what it said at last is still heard
        try:
            while self.connection.poll():
                what = self.connection.recv()
                if what is None:
                    self.process.join()
                    return results.read_run(*key)
                self.what, self.since = what, time.monotonic()
        except (EOFError, OSError):
            pass
        if not alive:
            self.process.join()
            code = self.process.exitcode
            died = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return self._lost("failed", f"the process died at {self.what!r} ({died})", results)
        limit = self.order.limit_s
        if limit is not None and self.what != "starting" and time.monotonic() - self.since > limit:
            self.stop()
            return self._lost("timeout", f"{self.what!r} took longer than {limit:g} s", results)
        return None

    def _lost(self, status: str, reason: str, results: Results) -> RunRecord:
        record = RunRecord(self.order.task, self.order.job.key, status, reason, modules=self.order.job.modules)
        results.write_run(record)
        return record

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
    """Each run on a node of a cluster, still in a process of its own; the folder is one that all nodes see."""
    ray: Any = optional("ray", "ray", "ray=…")
    if not ray.is_initialized():
        ray.init(address=None if address is True else str(address), log_to_driver=False, include_dashboard=False)

    @ray.remote(num_cpus=1)  # type: ignore[untyped-decorator]
    def one(order: Order) -> RunRecord:
        return next(iter(work([order])))

    waiting = [one.remote(order) for order in orders]
    done = 0
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        done += 1
        report("runs", done, len(orders))
        yield ray.get(ready[0])
