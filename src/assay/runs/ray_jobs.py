"""Jobs as tasks of the Ray cluster that this process is connected to."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from assay.core.errors import first_line, optional
from assay.core.user_code import code_in
from assay.runs.jobs import Done, Job, Lost

R = TypeVar("R")
_LOOK_S = 2.0  # between two looks at how large the cluster is: nodes may join
_STARTS = 3  # of a node that was too late
_TOO_LATE = "timed out during startup"


def connect(address: bool | str, **more: Any) -> Any:
    """The package ray, connected to the cluster at an address, or (True) to one found or started here."""
    ray = optional("ray", "ray", "ray=…")
    if not ray.is_initialized():
        ending = signal.getsignal(signal.SIGTERM)
        where = None if address is True else str(address)
        patiently(lambda: ray.init(address=where, log_to_driver=False, include_dashboard=False, **more), ray.shutdown)
        if callable(ending) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ending)  # Ray sets one of its own, where there was another
    return ray


def patiently(start: Callable[[], R], undo: Callable[[], Any]) -> R:
    """What a call gives that starts a node of Ray, called again where the node was too late.

    Ray gives a node up that is not there after 30 seconds, whatever is set. On a busy machine the next one is sooner
    there, since the files that it needs have been read.
    """
    for _ in range(_STARTS - 1):
        try:
            return start()
        except Exception as error:  # Ray raises no kind of its own
            if _TOO_LATE not in str(error):
                raise
            undo()
    return start()


def nodes_of(ray: Any) -> list[dict[str, float]]:
    """What each node of the cluster has."""
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def on_cluster(
    ray: Any, task: Callable[[Any, Any, Any], R], jobs: Iterable[Job], folders: Sequence[Path]
) -> Iterator[Done[R]]:
    """Each job a task of the cluster; so many are handed over that every core has the next one waiting."""
    waiting = iter(jobs)

    def with_code(streamed: Any, kept: Any, own: Any) -> R:
        with ExitStack() as path:  # what the code imports only when it is called, where the worker sees the folder
            for folder in folders:
                path.enter_context(code_in(folder))
            return task(streamed, kept, own)

    remote = ray.remote(with_code)
    kept: dict[int, tuple[Any, Any]] = {}
    streamed: tuple[Any, Any] = (None, None)
    under_way: dict[Any, Job] = {}
    following = next(waiting, None)
    most, looked = 0, float("-inf")
    try:
        while following is not None or under_way:
            if time.monotonic() - looked > _LOOK_S:
                most, looked = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1) + 2, time.monotonic()
            while following is not None and len(under_way) < most:
                if following.streamed is not None and following.streamed is not streamed[0]:
                    streamed = (following.streamed, ray.put(following.streamed))
                if following.kept is not None and id(following.kept) not in kept:
                    kept[id(following.kept)] = (following.kept, ray.put(following.kept))
                needs = following.resources
                call = remote.options(
                    num_cpus=needs.cpus,
                    num_gpus=needs.gpus,
                    max_retries=needs.retries,
                    memory=needs.memory_bytes or None,
                )
                shared = (
                    streamed[1] if following.streamed is not None else None,
                    kept[id(following.kept)][1] if following.kept is not None else None,
                )
                under_way[call.remote(*shared, following.own)] = following
                following = next(waiting, None)
            ready, _ = ray.wait(list(under_way), num_returns=1, timeout=_LOOK_S)
            for one in ready:
                yield Done(under_way.pop(one), _result(ray, one))
    finally:
        for pending in under_way:
            ray.cancel(pending, force=True)


def _result(ray: Any, ready: Any) -> Any:
    """The result of a task that has ended; or why there is none."""
    try:
        return ray.get(ready)
    except ray.exceptions.RayError as error:  # the worker died once too often, or the task raised
        cause = getattr(error, "cause", None) or error
        missing = isinstance(cause, ModuleNotFoundError) or "ModuleNotFoundError" in str(error)
        hint = "; every node of the cluster needs the same packages, and assay" if missing else ""
        return Lost(f"Ray: {_said(cause)}{hint}")


def _said(error: BaseException) -> str:
    """The line of an error that says most: the last of a traceback that came with it, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if len(lines) > 1 and "Traceback" in str(error) else first_line(error)
