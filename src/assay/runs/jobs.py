"""Jobs for the executor: what is to be done, by whom, within which limits, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from assay.core.errors import AssayError, shown

R = TypeVar("R")


@dataclass(frozen=True)
class Resources:
    """What one job needs on a Ray cluster.

    Args:
        cpus: Number of processors; a fraction lets several jobs share one.
        gpus: Number of GPUs; a fraction lets several jobs share one.
        retries: How often a job is tried again when its worker dies.
        memory_bytes: Memory to set aside for the job; 0 to set nothing aside.
    """

    cpus: float = 1
    gpus: float = 0
    retries: int = 3
    memory_bytes: int = 0


@dataclass(frozen=True)
class Workers:
    """Who does the jobs.

    Args:
        processes: Processes of this machine at a time; 0 for this process itself.
        ray: True for a Ray cluster found or started here, or the address of one.
        fresh: Whether every job has a new process, which never saw anything of the others.
        preload: Modules that processes have loaded when they start.
        enter: Called in each new process before it is told its first job; None for nothing.
    """

    processes: int = 0
    ray: bool | str = False
    fresh: bool = False
    preload: tuple[str, ...] = ()
    enter: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.processes, int) and not isinstance(self.processes, bool)
        if not whole or self.processes < 0:
            raise AssayError(f"processes={shown(self.processes)} must be a whole number, at least 0")
        if not isinstance(self.ray, (bool, str)):
            raise AssayError(f"ray={shown(self.ray)} must be True, False or the address of a cluster")


@dataclass(frozen=True)
class Limits:
    """What a job in a process of this machine may use, before the process is ended with everything it started.

    Args:
        stage_s: Seconds that one stage of the job may take (see `assay.core.progress.begin_stage`), and the time before
            its first; None for no limit.
        memory_bytes: Memory of the process and all that it started; None for no limit.
    """

    stage_s: float | None = None
    memory_bytes: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Job:
    """One call of a task, ``task(streamed, kept, own)``.

    Args:
        own: What only this job is about.
        streamed: A large object that consecutive jobs share, sent to a worker once and then replaced by the next.
        kept: A large object that many jobs share, sent to a worker once and kept there.
        resources: What the job needs on a Ray cluster.
        limits: What the job may use in a process of this machine.
    """

    own: Any
    streamed: Any = None
    kept: Any = None
    resources: Resources = Resources()
    limits: Limits = NO_LIMITS


@dataclass(frozen=True)
class Lost:
    """A job without a result: its worker died, or was stopped at a limit of time or of memory."""

    reason: str
    timeout: bool = False
    out_of_memory: bool = False


class Done(Generic[R]):
    """A job and its result."""

    def __init__(self, job: Job, result: R | Lost) -> None:
        self.job, self.result = job, result
