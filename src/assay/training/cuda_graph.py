"""Steps of training recorded as CUDA graphs: small steps cost the host more than the GPU, and a graph is one call.

Before a step can be recorded it must be taken a few times, which changes weights and the optimiser's state. `Snapshot`
puts them back, so that a recorded training is the same training.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

WARM_UP = 3  # steps before a graph is recorded: libraries choose their algorithms and workspaces
_ONE_AT_A_TIME = threading.Lock()  # whether garbage is collected is a matter of the whole process


@contextmanager
def recording(graph: torch.cuda.CUDAGraph, **options: Any) -> Iterator[None]:
    """Record what follows as a graph, while no garbage is collected: to free an older graph would end the recording.

    Args:
        graph: The graph to record.
        options: More arguments of ``torch.cuda.graph``.
    """
    with _ONE_AT_A_TIME:
        collects = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.graph(graph, **options):
                yield
        finally:
            if collects:
                gc.enable()


class Snapshot:
    """A copy of what steps of training change: tensors, and the moments that an optimiser keeps.

    Args:
        tensors: Weights, and whatever else a step changes.
        optimizer: The optimiser whose moments are copied.
    """

    def __init__(self, tensors: Iterable[Tensor], optimizer: torch.optim.Optimizer) -> None:
        self.tensors = list(tensors)
        self.optimizer = optimizer
        self.values = [tensor.detach().clone() for tensor in self.tensors]
        self.moments = {p: {k: v.clone() for k, v in optimizer.state[p].items()} for p in _parameters(optimizer)}

    def restore(self) -> None:
        """Restore all tensors and moments, in place; moments that did not exist become 0."""
        with torch.no_grad():
            for tensor, value in zip(self.tensors, self.values, strict=True):
                tensor.copy_(value)
            for parameter, before in self.moments.items():
                for key, moment in self.optimizer.state[parameter].items():
                    moment.copy_(before[key]) if before else moment.zero_()


class RecordedStep:
    """A step on a GPU, recorded once as a CUDA graph and replayed: small steps cost the host more than the GPU."""

    def __init__(self, step: Callable[[Tensor], None], optimizer: torch.optim.Optimizer) -> None:
        self.step = step
        self.optimizer = optimizer
        self.graph: torch.cuda.CUDAGraph | None = None
        self.batch = torch.empty(0)

    def __call__(self, batch: Tensor) -> None:
        """Take the step on a batch; the first is recorded, and on a batch of another shape nothing is replayed."""
        if self.graph is None:
            self._record(batch)
        if batch.shape != self.batch.shape:  # the last batch of an epoch may be smaller
            self.step(batch)
            return
        self.batch.copy_(batch)
        assert self.graph is not None
        self.graph.replay()

    def _record(self, batch: Tensor) -> None:
        """Record the step, and undo what warming up and recording change."""
        self.batch = batch.clone()
        before = Snapshot(_parameters(self.optimizer), self.optimizer)
        random_state = torch.cuda.get_rng_state(batch.device)
        warm_up_stream = torch.cuda.Stream(batch.device)  # type: ignore[no-untyped-call]
        warm_up_stream.wait_stream(torch.cuda.current_stream(batch.device))
        with torch.cuda.stream(warm_up_stream):
            for _ in range(WARM_UP):
                self.step(self.batch)
        torch.cuda.current_stream(batch.device).wait_stream(warm_up_stream)
        self.graph = torch.cuda.CUDAGraph()
        with recording(self.graph):
            self.step(self.batch)
        before.restore()
        torch.cuda.set_rng_state(random_state, batch.device)


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]
