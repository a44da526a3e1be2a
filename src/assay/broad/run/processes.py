"""Runs in processes of their own: what hangs is stopped, what dies takes nothing with it."""

from __future__ import annotations

import os
import pickle
import resource
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from assay.broad.data.features import FeatureStore
from assay.broad.data.violation import NotApplicable, Violation
from assay.broad.run.condition import RunCondition
from assay.broad.run.job import Job as RunJob
from assay.broad.run.results import Results, RunRecord
from assay.broad.tasks import View
from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder
from assay.core.progress import begin_stage, report
from assay.runs.executor import Job, Limits, Lost, Resources, Workers, execute, start_ray

RETRIES = 3  # of a run whose Ray worker is lost
PRELOAD = ("assay.broad.run.processes", "sklearn.svm", "sklearn.linear_model")


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
    job: RunJob
    results: str
    features: str
    forbidden: tuple[str, ...]
    limit_s: float | None = None
    threads: int = 1
    anew: bool = False


def do(order: Order) -> RunRecord:
    """One run in this process; whatever a system does wrong becomes a status."""
    torch.set_num_threads(order.threads)
    results = Results(order.results)
    view: View = pickle.loads(Path(order.view).read_bytes())
    store = FeatureStore(Folder(order.features))
    run = RunCondition(view, order.job, results, store, order.forbidden, begin_stage, order.anew)
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


def _do(streamed: None, kept: None, order: Order) -> RunRecord:
    return do(order)


def work(orders: Sequence[Order], processes: int = 1, ray: bool | str = False) -> Iterator[RunRecord]:
    """Do all of them, some at a time, each in a process of its own, and say how each went as it ends.

    On a Ray cluster a run has a core for each of its threads, and a GPU if one of its modules asks for it. Where its
    worker or its node is lost it is done again, up to `RETRIES` times; then its status is ``failed``.
    """
    if processes < 1:
        raise AssayError(f"processes={processes} must be at least 1")
    report("runs", 0, len(orders))
    if ray and orders:
        outcomes = execute(partial(_on_a_node, here=Path.cwd()), _for_cluster(orders, ray), Workers(ray=ray))
    else:
        jobs = [Job(order, limits=Limits(order.limit_s)) for order in orders]
        outcomes = execute(_do, jobs, Workers(processes, fresh=True, preload=PRELOAD))
    for number, outcome in enumerate(outcomes, 1):
        record = outcome.result
        if isinstance(record, Lost):
            record = _lost(outcome.job.own, "timeout" if record.timeout else "failed", record.reason)
        report("runs", number, len(orders))
        yield record


def _for_cluster(orders: Sequence[Order], address: bool | str) -> Iterator[Job]:
    """The orders with what each needs of the cluster; one that no node can meet is an error."""
    ray = start_ray(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = max(int(node.get("CPU", 0)) for node in nodes)
    if any(order.job.on_gpu for order in orders) and not any(node.get("GPU", 0) for node in nodes):
        raise AssayError("a module asks for device=cuda, and no node of the Ray cluster has a GPU")
    for order in orders:
        cores = max(min(order.threads, most), 1)
        yield Job(replace(order, threads=cores), resources=Resources(cores, int(order.job.on_gpu), RETRIES))


def _on_a_node(streamed: None, kept: None, order: Order, here: Path) -> RunRecord:
    """One run on a node of a cluster, still in a process of its own; the folder is one that all nodes see."""
    if not Path(order.view).exists():
        raise AssayError(f"{socket.gethostname()} does not see {order.results}: use a folder that all nodes share")
    if here.is_dir():  # data may be named relative to it
        os.chdir(here)
    return next(iter(work([order])))


def _lost(order: Order, status: str, reason: str) -> RunRecord:
    """The record of a run that could not write its own."""
    record = RunRecord(order.task, order.job.key, status, reason, modules=order.job.modules)
    Results(order.results).write_run(record)
    return record
