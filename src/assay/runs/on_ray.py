"""Jobs on a Ray cluster, each with what it asks for; a job whose worker is lost is done again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

from assay.core.errors import AssayError, first_line, optional
from assay.core.user_code import code_in, folders_searched, modules_beside
from assay.runs.jobs import Done, Job, Lost

R = TypeVar("R")


def start_ray(address: bool | str) -> Any:
    """The package ray, connected to the cluster at an address, or (True) to one found or started here."""
    ray = optional("ray", "ray", "ray=…")
    if not ray.is_initialized():
        ending = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address=None if address is True else str(address), log_to_driver=False, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise AssayError(
                f"ray={address}: there is no Ray cluster ({first_line(error)}); give its address, as 10.0.0.1:6379"
            ) from error
        if callable(ending) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ending)  # Ray sets one of its own, where there was another
    for module in modules_beside():  # no worker is expected to have them: they travel with the jobs
        ray.cloudpickle.register_pickle_by_value(module)
    return ray


def on_ray(task: Callable[[Any, Any, Any], R], jobs: Iterable[Job], address: bool | str) -> Iterator[Done[R]]:
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
