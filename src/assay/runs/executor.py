"""The executor: jobs done in this process, in several processes, or on a Ray cluster.

One for all: cells of a run, runs of a broad evaluation, networks of a corpus. Jobs are taken from their iterable as
workers become free, so that ten thousand subjects need not be in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from assay.runs.in_processes import in_processes
from assay.runs.jobs import Done, Job, Limits, Lost, Resources, Workers
from assay.runs.on_ray import Jobs, Node, on_ray

__all__ = ["Done", "Job", "Limits", "Lost", "Node", "Resources", "Workers", "execute"]
R = TypeVar("R")


def execute(task: Callable[[Any, Any, Any], R], jobs: Jobs, workers: Workers) -> Generator[Done[R], None, None]:
    """Do all jobs and give each back with its result as it ends, in any order; closing it ends the processes.

    What the task raises ends everything when it is done in this process, and is a `Lost` job elsewhere: a task that may
    fail catches what it raises. For a Ray cluster the jobs may be a function of what its nodes have.
    """
    if workers.ray:
        yield from on_ray(task, jobs, workers.ray)
        return
    if callable(jobs):
        raise TypeError("only a cluster has nodes to make jobs of")
    if workers.processes:
        yield from in_processes(task, jobs, workers)
    else:
        for job in jobs:
            yield Done(job, task(job.streamed, job.kept, job.own))
