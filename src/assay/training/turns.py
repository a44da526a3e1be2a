"""Trainings that take turns, step by step, each on a GPU in a stream that nobody else uses."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import nn

from assay.core.errors import AssayError
from assay.core.progress import report

Result = TypeVar("Result")
OnEpoch = Callable[[int], None]
"""A function called with the number of epochs done after each of them."""


def require_as_many(networks: Iterable[nn.Module], at_once: int, **given: Sequence[Any] | None) -> None:
    """Raise an error unless there is one of everything given for each network, and room for one network."""
    counts = {what: len(values) for what, values in given.items() if values is not None}
    if isinstance(networks, Sequence):
        counts["networks"] = len(networks)
    if len(set(counts.values())) > 1:
        raise AssayError(f"give as many of each: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    if at_once < 1:
        raise AssayError(f"at_once={at_once} must be at least 1")


def train_in_turns(
    networks: Iterable[nn.Module],
    epochs: Sequence[int],
    training: Callable[[int, nn.Module, OnEpoch], Generator[None, None, Result]],
    at_once: int,
    what: str,
    on_done: Callable[[int, nn.Module, Result], None] | None,
) -> list[Result]:
    """Train networks in turns, and return the result of each.

    Args:
        networks: The networks; each is taken when there is room for it.
        epochs: The largest number of epochs of each network.
        training: Makes the training of a network from its number, itself, and what to call after every epoch.
        at_once: Number of networks trained side by side.
        what: What progress calls it.
        on_done: Function called as (number, network, result) when a network is done.
    """
    results: dict[int, Result] = {}
    epochs_done = [0] * len(epochs)

    def report_epochs(number: int, done: int) -> None:
        epochs_done[number] = done
        report(what, sum(epochs_done), sum(epochs))

    def job(number: int, network: nn.Module) -> Generator[None]:
        results[number] = yield from training(number, network, lambda done: report_epochs(number, done))
        report_epochs(number, epochs[number])
        if on_done is not None:
            on_done(number, network, results[number])

    def jobs() -> Iterator[Generator[None]]:
        supply = iter(networks)
        for number in range(len(epochs)):
            network = next(supply, None)
            if network is None:
                raise AssayError(f"give as many of each: {len(epochs)} recipes, {number} networks")
            yield job(number, network)

    take_turns(jobs(), at_once)
    return [results[number] for number in range(len(epochs))]


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
