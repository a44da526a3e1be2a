"""Steps of one network's training, with random numbers of its own; on a GPU in a stream of their own, as a graph.

A small network's step costs the host more than the GPU, and does not fill the GPU. So a step is recorded once as a
CUDA graph, and the graphs of many networks are replayed side by side in their streams.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from assay.core.determinism import Arithmetic, reproducible
from assay.core.errors import first_line
from assay.training.cuda_graph import WARM_UP, Snapshot, recording

log = logging.getLogger(__name__)


class Settings(Protocol):
    """What all steps need to know of a recipe."""

    @property
    def batch_size(self) -> int:
        """Number of examples per step."""

    @property
    def learning_rate(self) -> float:
        """Learning rate at the start."""

    @property
    def precision(self) -> str:
        """Precision of products."""


class Stepping(ABC):
    """What all trainings by steps have in common; a subclass says what one step is.

    Args:
        network: The network, which is trained in place.
        device: The device that the network and its data are on.
        stream: The stream of the work on a GPU; ``None`` on a CPU.
        recipe: How the network is trained.
        count: Number of steps in an epoch.
    """

    optimizer: torch.optim.Optimizer

    def __init__(
        self, network: nn.Module, device: torch.device, stream: torch.cuda.Stream | None, recipe: Settings, count: int
    ) -> None:
        self.network = network
        self.device = device
        self.stream = stream
        self.precision = recipe.precision
        if stream is not None:
            lay_out(network, torch.channels_last)
        # What a recorded step reads and writes stays where it is: only its content changes.
        self.at = torch.zeros(1, dtype=torch.int64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        self.order = torch.zeros(count, recipe.batch_size, dtype=torch.int64, device=device)
        self.rate = torch.tensor(recipe.learning_rate, device=device)
        self.generator = torch.Generator(device)
        self.arithmetic = Arithmetic.here()
        self.graph: torch.cuda.CUDAGraph | None = None
        self.recorded = stream is None

    @abstractmethod
    def take_step(self) -> None:
        """Learn from the batch number ``at``, add its loss to ``total``, and go on to the next."""

    def set_epoch(self, order: Tensor, rate: float) -> None:
        """Set the numbers of what an epoch's batches show, one batch after the other, and its learning rate."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with self.own():
            self.order.copy_(order.view_as(self.order))
            self.rate.fill_(rate)
            if self.stream is None:
                for group in self.optimizer.param_groups:
                    group["lr"] = rate

    def begin_steps(self, seed: int) -> None:
        """Begin an epoch's steps: the first ever is recorded, and random numbers begin from a seed."""
        if not self.recorded:
            self._record()
            self.recorded = True
        self.generator.manual_seed(seed)
        with self.own():
            self.at.zero_()
            self.total.zero_()

    def step(self) -> None:
        """Take one step on the next batch; on a GPU the work is only queued."""
        if self.graph is not None:
            with torch.cuda.stream(self.stream):
                self.graph.replay()
        else:
            with self.own():
                self.take_step()

    def settle(self) -> Iterator[None]:
        """Give way to other networks until the GPU has done the queued work."""
        if self.stream is not None:
            done = self.stream.record_event()
            while not done.query():
                yield

    def close(self) -> None:
        """Leave an ordinary network: no graph, no gradients, weights in the usual memory layout."""
        if self.stream is not None:
            self.stream.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        if self.graph is not None:
            self.graph.reset()
            self.graph = None
        if self.stream is not None:
            lay_out(self.network, torch.contiguous_format)

    @contextmanager
    def own(self) -> Iterator[None]:
        """Make torch use this network's stream, precision and random numbers inside the block."""
        if self.stream is None:
            state_outside = torch.get_rng_state()
            torch.set_rng_state(self.generator.get_state())
            with self.arithmetic.used():
                try:
                    yield
                finally:
                    self.arithmetic = Arithmetic.here()
                    self.generator.set_state(torch.get_rng_state())
                    torch.set_rng_state(state_outside)
            return
        default = torch.cuda.default_generators[self.device.index]
        generator_outside = default.graphsafe_get_state()
        # A graph keeps the state that is the default while it is recorded: its replays, and nothing else, draw from it.
        default.graphsafe_set_state(self.generator)
        try:
            with torch.cuda.stream(self.stream), reproducible(tf32=self.precision == "tf32"):
                yield
        finally:
            default.graphsafe_set_state(generator_outside)

    def autocast(self) -> torch.autocast:
        """Return the context of a forward pass in the recipe's precision."""
        half = self.precision == "bfloat16"
        # No cache of converted weights: inside a caller's autocast it would outlive the step that changes the weights.
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half, cache_enabled=False)

    def _record(self) -> None:
        """Record the step and undo what warming up changed, so that a recorded training is the same training."""
        graph = torch.cuda.CUDAGraph()
        with self.own():
            before = Snapshot([*self.network.parameters(), *self.network.buffers()], self.optimizer)
        try:
            with self.own():
                for _ in range(WARM_UP):
                    self.at.zero_()
                    self.take_step()
                self.at.zero_()
                with recording(graph, stream=self.stream, capture_error_mode="thread_local"):
                    self.take_step()
            self.graph = graph
        except RuntimeError as error:
            log.warning(
                "a step of %s cannot be recorded as a CUDA graph (%s): it is trained without, more slowly",
                type(self.network).__name__,
                first_line(error),
            )
            self.generator = torch.Generator(self.device)  # the old one stays in the state of being recorded
            self.optimizer.zero_grad(set_to_none=True)
        with self.own():
            before.restore()


def lay_out(network: nn.Module, memory: torch.memory_format) -> None:
    """Give the weights of two-dimensional convolutions a memory layout."""
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=memory)
