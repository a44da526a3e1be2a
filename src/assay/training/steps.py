"""The steps of one network's training, with random numbers of its own; on a GPU in a stream of their own, as a graph.

A small network's step costs the host more than the GPU, and does not fill the GPU. So a step is recorded once as a
CUDA graph, and the graphs of many networks are replayed side by side in their streams.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.arrays import channels_last
from assay.core.determinism import Arithmetic, reproducible
from assay.core.errors import AssayError, first_line
from assay.training.cuda_graph import WARM_UP, Snapshot
from assay.training.recipe import Recipe

log = logging.getLogger(__name__)

Turns = Generator[None, None, tuple[float, float]]

MOMENTUM = 0.9
EVALUATED_AT_ONCE = 1024  # inputs per forward pass of an evaluation


class Steps:
    """Training steps on data that are on the network's device already.

    Args:
        network: The network, which is trained in place.
        inputs: Inputs N×…; shared with other networks, never written to.
        labels: The class of each input.
        recipe: How the network is trained.
        stream: The stream of the work on a GPU; ``None`` on a CPU.
    """

    def __init__(
        self, network: nn.Module, inputs: Tensor, labels: Tensor, recipe: Recipe, stream: torch.cuda.Stream | None
    ) -> None:
        self.network = network
        self.recipe = recipe
        self.stream = stream
        self.inputs = inputs
        self.labels = labels
        self.device = inputs.device
        if stream is not None:
            _lay_out(network, torch.channels_last)
        # What a recorded step reads and writes stays where it is: only its content changes.
        self.shown = inputs if recipe.augmentation is None else torch.empty_like(inputs)
        self.count = len(inputs) // recipe.batch_size
        self.order = torch.zeros(self.count, recipe.batch_size, dtype=torch.int64, device=self.device)
        self.at = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.total = torch.zeros((), dtype=torch.float64, device=self.device)
        self.rate = torch.tensor(recipe.learning_rate, device=self.device)
        self.optimizer = _optimizer(network, recipe, self.rate if stream is not None else recipe.learning_rate)
        self.generator = torch.Generator(self.device)
        self.arithmetic = Arithmetic.here()
        self.graph: torch.cuda.CUDAGraph | None = None
        self.recorded = stream is None

    def begin(self, epoch: int, rate: float) -> None:
        """Begin an epoch: set its order, its augmented data and its learning rate."""
        order = torch.randperm(len(self.inputs), generator=self._generator("order", epoch, "cpu"))
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with self.own():
            self.order.copy_(order[: self.order.numel()].view_as(self.order))
            self._augment(epoch)
            self.rate.fill_(rate)
            if self.stream is None:
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
        if not self.recorded:
            self._record()
            self.recorded = True
        self.generator.manual_seed(self.recipe.number("dropout", epoch))
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
                self._step()

    def settle(self) -> Iterator[None]:
        """Give way to other networks until the GPU has done the queued work."""
        if self.stream is not None:
            done = self.stream.record_event()
            while not done.query():
                yield

    def evaluate(self) -> Turns:
        """Return mean cross-entropy and accuracy on the data as shown, in eval mode; give way after every batch."""
        with self.own():
            sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.network.eval()
        inputs, labels = torch.split(self.shown, EVALUATED_AT_ONCE), torch.split(self.labels, EVALUATED_AT_ONCE)
        for x, y in zip(inputs, labels, strict=True):
            with self.own(), torch.no_grad():
                logits = self._logits(x).float()
                sums[0] += F.cross_entropy(logits, y, reduction="sum")
                sums[1] += (logits.argmax(1) == y).sum()
            yield
        self.network.train()
        yield from self.settle()
        loss, accuracy = (sums / len(self.labels)).tolist()
        return loss, accuracy

    def close(self) -> None:
        """Leave an ordinary network: no graph, no gradients, weights in the usual memory layout."""
        if self.stream is not None:
            self.stream.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        if self.graph is not None:
            self.graph.reset()
            self.graph = None
        if self.stream is not None:
            _lay_out(self.network, torch.contiguous_format)

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
            with torch.cuda.stream(self.stream), reproducible(tf32=self.recipe.precision == "tf32"):
                yield
        finally:
            default.graphsafe_set_state(generator_outside)

    def _step(self) -> None:
        rows = self.order.index_select(0, self.at)[0]
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(
            self._logits(self.shown.index_select(0, rows)).float(), self.labels.index_select(0, rows)
        )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.total += loss.detach()
        self.at += 1

    def _logits(self, x: Tensor) -> Tensor:
        x = x if self.stream is None else channels_last(x)
        half = self.recipe.precision == "bfloat16"
        # No cache of converted weights: inside a caller's autocast it would outlive the step that changes the weights.
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            logits: Tensor = self.network(x)
        return logits

    def _augment(self, epoch: int) -> None:
        if self.recipe.augmentation is None:
            return
        shown = self.recipe.augmentation(self.inputs, self._generator("augmentation", epoch, self.device))
        if shown.shape != self.inputs.shape:
            raise AssayError(
                f"augmentation={self.recipe.augmentation!r} made {tuple(shown.shape)} of inputs "
                f"{tuple(self.inputs.shape)}: it must keep their shape"
            )
        self.shown.copy_(shown)

    def _generator(self, purpose: str, epoch: int, device: torch.device | str) -> torch.Generator:
        return torch.Generator(device).manual_seed(self.recipe.number(purpose, epoch))

    def _record(self) -> None:
        """Record the step and undo what warming up changed, so that a recorded training is the same training."""
        graph = torch.cuda.CUDAGraph()
        with self.own():
            before = Snapshot([*self.network.parameters(), *self.network.buffers()], self.optimizer)
        try:
            with self.own():
                for _ in range(WARM_UP):
                    self.at.zero_()
                    self._step()
                self.at.zero_()
                with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                    self._step()
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


def _lay_out(network: nn.Module, memory: torch.memory_format) -> None:
    """Give the weights of two-dimensional convolutions a memory layout."""
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=memory)


def _optimizer(network: nn.Module, recipe: Recipe, rate: Tensor | float) -> torch.optim.Optimizer:
    """Return the optimiser of a recipe; on a GPU the rate is a tensor, so that a recorded step sees it change."""
    trainable = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    gpu = isinstance(rate, Tensor)
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=rate, capturable=gpu, fused=gpu or None)
    return torch.optim.SGD(groups, lr=rate, momentum=MOMENTUM, fused=gpu or None)
