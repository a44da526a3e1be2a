"""Runs in processes of their own: what hangs is stopped, what dies takes nothing with it."""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from assay.broad.data.features import FeatureStore
from assay.broad.data.violation import NotApplicable, Violation
from assay.broad.run.condition import RunCondition
from assay.broad.run.job import Job as RunJob
from assay.broad.run.remote import Surroundings
from assay.broad.run.results import Results, RunRecord
from assay.broad.run.sandbox import PRELOAD, prepare
from assay.broad.tasks import View
from assay.core.errors import AssayError, first_line, optional
from assay.core.folder import Folder
from assay.core.lock import NAME as LOCK
from assay.core.progress import begin_stage, report
from assay.core.user_code import folders_searched
from assay.runs.executor import Job, Limits, Lost, Node, Resources, Workers, execute
from assay.runs.process_tree import machine_bytes

RETRIES = 3  # of a run whose Ray worker is lost
USABLE = 0.9  # of a machine's memory, for all runs at a time


@dataclass(frozen=True)
class Order:
    """One run to do, as a process is told it.

    Args:
        task: Name of the task.
        view: The task as systems may see it.
        job: What to run.
        results: Folder of the evaluation.
        features: Folder of kept features.
        forbidden: Where labels are; hidden from systems, as the whole folder of the evaluation is.
        hidden: What else is hidden from systems.
        limit_s: Seconds that one stage may take; None for no limit.
        memory_bytes: Memory that the run may take with everything it starts; None for its share of the machine's.
        threads: Number of cores that the run uses; None for its share of the machine's or the cluster's.
        anew: Whether folds that are done are done again, each written over when its successor is there.
        node: Number of the node of a cluster that does the run; empty elsewhere.
    """

    task: str
    view: View | None
    job: RunJob
    results: str
    features: str
    forbidden: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    limit_s: float | None = None
    memory_bytes: int | None = None
    threads: int | None = None
    anew: bool = False
    node: str = ""


def do(view: View, kept: None, order: Order) -> RunRecord:
    """One run in this process; whatever a system does wrong becomes a status."""
    began = time.time()
    torch.set_num_threads(order.threads or 1)
    results = Results(order.results)
    store = FeatureStore(Folder(order.features))
    around = Surroundings((order.results, *order.forbidden, *order.hidden), order.forbidden)
    run = RunCondition(view, order.job, results, store, around, begin_stage, order.anew)
    try:
        record = run()
    except Violation as error:
        record = run.record(error.status, str(error))
    except NotApplicable as error:
        record = run.record("not applicable", str(error))
    except AssayError as error:
        record = run.record("failed", str(error), getattr(error, "trace", ""))
    except MemoryError as error:
        record = run.record("out of memory", first_line(error))
    except Exception as error:
        record = run.record("failed", f"{type(error).__name__}: {first_line(error)}", traceback.format_exc())
    if record != results.read_run(record.task, record.run):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        machine = " ".join(part for part in (socket.gethostname(), order.node) if part)
        record = replace(
            record, peak_bytes=peak * (1 if sys.platform == "darwin" else 1024), machine=machine,
            began=round(began, 3), ended=round(time.time(), 3),
        )  # fmt: skip
        results.write_run(record)
    return record


def work(orders: Sequence[Order], processes: int = 1, ray: bool | str = False) -> Iterator[RunRecord]:
    """Do all of them, some at a time, each in a process of its own, and say how each went as it ends.

    On a Ray cluster a run asks for its cores, its memory where that is limited, and a GPU if one of its modules does.
    Where its worker or its node is lost it is done again, up to `RETRIES` times; then its status is ``failed``.
    """
    if processes < 1:
        raise AssayError(f"processes={processes} must be at least 1")
    report("runs", 0, len(orders))
    if ray and orders:
        on_a_node = partial(_on_a_node, here=Path.cwd(), code=folders_searched())
        outcomes = execute(on_a_node, partial(for_cluster, orders), Workers(ray=ray))
    else:
        jobs = [_job(order, processes) for order in orders]
        outcomes = execute(do, jobs, Workers(processes, fresh=True, preload=PRELOAD, enter=prepare))
    with closing(outcomes):
        for number, outcome in enumerate(outcomes, 1):
            record = outcome.result
            if isinstance(record, Lost):
                status = "timeout" if record.timeout else "out of memory" if record.out_of_memory else "failed"
                record = _lost(outcome.job.own, status, record.reason)
            report("runs", number, len(orders))
            yield record


def _job(order: Order, processes: int) -> Job:
    """An order for this machine, with its share of what the machine has where nothing else is said."""
    threads = order.threads or max((os.cpu_count() or 1) // processes, 1)
    memory = order.memory_bytes or int(machine_bytes() * USABLE / processes)
    own = replace(order, view=None, threads=threads, memory_bytes=memory)
    return Job(own, streamed=order.view, limits=Limits(order.limit_s, memory))


def for_cluster(orders: Sequence[Order], nodes: Sequence[Node]) -> Iterator[Job]:
    """The orders with what each needs of the nodes of a cluster; one that no node can meet is an error."""
    cores = [int(node.get("CPU", 0)) for node in nodes]
    if any(order.job.on_gpu for order in orders) and not any(node.get("GPU", 0) for node in nodes):
        raise AssayError("a module asks for device=cuda, and no node of the Ray cluster has a GPU")
    memory = max(int(node.get("memory", 0)) for node in nodes)
    for order in orders:
        if (order.memory_bytes or 0) > memory:
            raise AssayError(
                f"memory_gib={(order.memory_bytes or 0) / 2**30:g}: the largest node of the Ray cluster has "
                f"{memory / 2**30:.1f} GiB"
            )
        share = max(min(order.threads or sum(cores) // len(orders), max(cores)), 1)  # all cores, if runs are few
        needs = Resources(share, int(order.job.on_gpu), RETRIES, order.memory_bytes or 0)
        yield Job(replace(order, view=None, threads=share), streamed=order.view, resources=needs)


def _on_a_node(view: View, kept: None, order: Order, here: Path, code: Sequence[Path] = ()) -> RunRecord:
    """One run on a node of a cluster, still in a process of its own; the folder is one that all nodes see."""
    if not (Path(order.results) / LOCK).exists():
        raise AssayError(f"{socket.gethostname()} does not see {order.results}: use a folder that all nodes share")
    if here.is_dir():  # data may be named relative to it
        os.chdir(here)
    sys.path[:0] = [str(place) for place in code if str(place) not in sys.path]  # modules beside the plan
    memory = order.memory_bytes or int(machine_bytes() * USABLE * (order.threads or 1) / (os.cpu_count() or 1))
    node = optional("ray", "ray", "ray=…").get_runtime_context().get_node_id()[:8]
    return next(iter(work([replace(order, view=view, memory_bytes=memory, node=node)])))


def _lost(order: Order, status: str, reason: str) -> RunRecord:
    """The record of a run that could not write its own."""
    record = RunRecord(order.task, order.job.key, status, reason, modules=order.job.modules)
    Results(order.results).write_run(record)
    return record
