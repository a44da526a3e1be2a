"""Trainings that take turns, step by step, each on a GPU in a stream that nobody else uses."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice

import torch


def take_turns(jobs: Iterator[Generator[None]], at_once: int) -> None:
    """Run jobs in turns, a number of them at a time, until none is left."""
    running = list(islice(jobs, at_once))
    try:
        while running:
            for job in list(running):
                if next(job, "over") == "over":
                    running.remove(job)
                    running += islice(jobs, 1)
    finally:
        for job in running:
            job.close()


class Streams:
    """The streams that are free on every device."""

    def __init__(self) -> None:
        self.free: dict[torch.device, list[torch.cuda.Stream]] = {}

    @contextmanager
    def stream(self, device: torch.device) -> Iterator[torch.cuda.Stream | None]:
        """Lend a stream that nobody else uses on a GPU; ``None`` on a CPU."""
        if device.type != "cuda":
            yield None
            return
        free = self.free.setdefault(device, [])
        stream = free.pop() if free else torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        try:
            yield stream
        finally:
            free.append(stream)
