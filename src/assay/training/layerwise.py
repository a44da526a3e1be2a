"""Greedy layer-wise learning of one network or many: each layer learns from the outputs of the layers below.

Bengio, Lamblin, Popovici, Larochelle 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from assay.core.checkpoints import read_checkpoint, write_checkpoint
from assay.core.determinism import seeded
from assay.core.errors import AssayError, shown
from assay.core.fingerprint import fingerprint
from assay.core.progress import report
from assay.training.checkpoint import whole
from assay.training.cuda_graph import RecordedStep
from assay.training.populations import State, stacked

PREPARE = 1000  # number of inputs that layers are prepared with


class Stack(Protocol):
    """A network whose layers learn one after the other."""

    stack: nn.ModuleList
    """Its layers: modules with a method ``loss(x)`` that returns a scalar for inputs ``x`` of that layer, and
    optionally a method ``prepare(x)``, called once with some inputs before learning begins."""


class Rows(Protocol):
    """Inputs that are made when they are asked for, so that all of them are never in memory at once."""

    def __len__(self) -> int:
        """Number of inputs."""

    def __getitem__(self, chosen: Tensor) -> Tensor:
        """The inputs of the chosen numbers, finite float32 values on the device of the network."""


@dataclass(frozen=True)
class Greedy:
    """Settings of greedy layer-wise learning.

    Args:
        epochs: Number of passes over the data for each layer.
        batch_size: Number of inputs per step.
        learning_rate: Learning rate of Adam at the start; it falls linearly towards 0, epoch by epoch.
        seed: Seed of the order of the data and of what the layers sample.
        checkpoint: File that keeps what is learned so far; the same training continues from it.
        every: Number of epochs between checkpoints.
    """

    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 1e-3
    seed: int = 0
    checkpoint: Path | str | None = None
    every: int = 1

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch_size, self.every) < 1 or not self.learning_rate > 0:
            raise AssayError(
                f"epochs={self.epochs}, batch_size={self.batch_size}, every={self.every}, "
                f"learning_rate={self.learning_rate}: all must be positive"
            )


def greedy(network: Stack, data: Tensor | np.ndarray[Any, Any] | Rows, settings: Greedy | None = None) -> None:
    """Let the layers of one network learn, in place, on the device the network is on."""
    population([network], data, settings)


def population(
    networks: Sequence[Stack], data: Tensor | np.ndarray[Any, Any] | Rows, settings: Greedy | None = None
) -> None:
    """Let many networks of one shape learn at once, in place: stacked parameters, batched matrix products.

    Each network learns as it would alone: all see the data in the same order, each has its own initial weights and
    its own settings (whatever its layers keep as buffers, such as their weight decay), and Adam treats every
    parameter by itself. Only the rounding of sums differs, and what layers sample.

    Args:
        networks: Networks of one architecture, all on one device.
        data: Inputs, with samples along the first axis, moved to that device as a whole; or `Rows`, of which one batch
            at a time is made (without a checkpoint).
        settings: How the networks learn.
    """
    settings = settings or Greedy()
    stacks = [list(network.stack) for network in networks]
    if not stacks or not stacks[0]:
        raise AssayError("no networks, or networks without layers, to train")
    if any(_form(stack) != _form(stacks[0]) for stack in stacks):
        raise AssayError("the networks of a population differ in shape or form: train each by itself")
    device = next(stacks[0][0].parameters()).device
    samples = _on_device(data, device)
    saved = _Saved(settings, stacks, samples)
    for depth in range(len(stacks[0])):
        if depth < saved.depth:
            continue
        epochs_done = saved.epoch if depth == saved.depth else 0
        learners = [stack[depth] for stack in stacks]
        lower = [nn.Sequential(*stack[:depth]) for stack in stacks]
        if not epochs_done:
            _prepare(learners, lower, samples[torch.arange(min(PREPARE, len(samples)))])
        layer = _Layer(learners, lower, settings)
        if epochs_done:
            layer.restore(saved.tensors)
        for epoch in range(epochs_done, settings.epochs):
            layer.learn(samples, device, f"{settings.seed}/{depth}/{epoch}", 1 - epoch / settings.epochs)
            report(f"learning layer {depth + 1} of {len(stacks[0])}", epoch + 1, settings.epochs)
            if saved.path is not None and ((epoch + 1) % settings.every == 0 or epoch + 1 == settings.epochs):
                layer.write_back()
                saved.write(saved.path, stacks, layer, depth, epoch + 1)
        layer.write_back()


def _on_device(data: Tensor | np.ndarray[Any, Any] | Rows, device: torch.device) -> Tensor | Rows:
    """Inputs as they are learned from; what is made when it is asked for stays as it is."""
    if not isinstance(data, (Tensor, np.ndarray, list, tuple)):
        return data
    samples = torch.as_tensor(data)
    if not torch.isfinite(samples).all():
        raise AssayError("the data to learn from have NaN or infinite values")
    return samples.to(device, torch.float32)


def _form(stack: Sequence[nn.Module]) -> list[Any]:
    """Return what the networks of a population must have in common: shapes, and settings that are not tensors."""
    layers = nn.ModuleList(stack)
    plain = (bool, int, float, str)
    settings = [{k: v for k, v in vars(m).items() if isinstance(v, plain)} for m in layers.modules()]
    return [*(tuple(p.shape) for p in layers.parameters()), *settings]


def _prepare(learners: Sequence[nn.Module], lower: Sequence[nn.Module], samples: Tensor) -> None:
    for learner, below in zip(learners, lower, strict=True):
        if hasattr(learner, "prepare"):
            with torch.no_grad():
                learner.prepare(below(samples))  # type: ignore[operator]


class _Layer:
    """One layer of all networks while it learns."""

    def __init__(self, learners: Sequence[nn.Module], lower: Sequence[nn.Module], settings: Greedy) -> None:
        self.learners = learners
        self.settings = settings
        self.stacked = len(learners) > 1
        if self.stacked:
            parameters, self.buffers = stack_module_state(learners)
            self.parameters = {name: p.detach().requires_grad_() for name, p in parameters.items()}
            self.loss = stacked(learners[0], "loss")
            lower_parameters, lower_buffers = stack_module_state(lower)
            forward = stacked(lower[0])
            self.below: Callable[[Tensor], Tensor] = lambda x: forward(lower_parameters | lower_buffers, x, True)
            self.first = not list(lower[0].parameters())
        else:
            self.parameters = {name: p for name, p in learners[0].named_parameters() if p.requires_grad}
            self.below = lower[0]
        gpu = next(iter(self.parameters.values())).is_cuda
        # A tensor, so that a recorded step sees it change.
        self.rate = torch.tensor(settings.learning_rate, device=next(iter(self.parameters.values())).device)
        self.optimizer = torch.optim.Adam(self.parameters.values(), lr=self.rate, fused=gpu or None, capturable=gpu)
        self.take_step = RecordedStep(self._step, self.optimizer) if gpu else self._step

    def learn(self, samples: Tensor | Rows, device: torch.device, seed: str, rate_share: float) -> None:
        """Learn for one epoch at a share of the learning rate; the seed decides the order and what is sampled."""
        self.rate.fill_(self.settings.learning_rate * rate_share)
        number = int(fingerprint(seed)[:12], 16)
        order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(number))
        with seeded(number, device):
            for batch in torch.split(order.to(device), self.settings.batch_size):
                self.take_step(samples[batch])

    def _step(self, batch: Tensor) -> None:
        with torch.no_grad():
            inputs = batch if self.stacked and self.first else self.below(batch)
        if self.stacked:
            loss = self.loss(self.parameters | self.buffers, inputs, self.first).sum()
        else:
            loss = self.learners[0].loss(inputs)  # type: ignore[operator]
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def write_back(self) -> None:
        """Copy the learned parameters into the networks."""
        with torch.no_grad():
            for name, values in self.parameters.items():
                for i, learner in enumerate(self.learners):
                    learner.get_parameter(name).copy_(values[i] if self.stacked else values)
        if not all(torch.isfinite(values).all() for values in self.parameters.values()):
            raise AssayError("learning diverged: weights are NaN or infinite; try a smaller learning rate")

    def state(self) -> State:
        """Return the moments of the optimiser, by kind and parameter."""
        moments = {}
        for name, parameter in self.parameters.items():
            for key, value in self.optimizer.state[parameter].items():
                moments[f"adam.{key}.{name}"] = value
        return moments

    def restore(self, tensors: State) -> None:
        """Give the optimiser the moments of a checkpoint; the weights are in the networks already."""
        for name, parameter in self.parameters.items():
            moments = {
                key.split(".")[1]: value
                for key, value in tensors.items()
                if key.startswith("adam.") and key.split(".", 2)[2] == name
            }
            if moments:
                self.optimizer.state[parameter] = {k: v.to(parameter.device) for k, v in moments.items()}


class _Saved:
    """The checkpoint of a training: its progress, refused if it belongs to another training."""

    def __init__(self, settings: Greedy, stacks: list[list[nn.Module]], samples: Tensor | Rows) -> None:
        self.path = None if settings.checkpoint is None else Path(settings.checkpoint)
        self.depth = 0
        self.epoch = 0
        self.tensors: State = {}
        if self.path is None:
            return
        if not isinstance(samples, Tensor):
            raise AssayError(f"checkpoint={self.path}: what is made when it is asked for has no checkpoint")
        decisive = {k: v for k, v in asdict(settings).items() if k not in ("checkpoint", "every")}
        start = [[layer.state_dict() for layer in stack] for stack in stacks]
        self.training = fingerprint(decisive, start, samples)
        if not self.path.exists():
            return
        self.tensors, progress = read_checkpoint(self.path)
        if progress.get("training") != self.training:
            raise AssayError(
                f"checkpoint={self.path} is of another training (other data, settings or initial weights): "
                "delete it, or give another path"
            )
        with whole(self.path), torch.no_grad():
            self.depth, self.epoch = progress["depth"], progress["epoch"]
            if self.depth not in range(len(stacks[0])) or self.epoch not in range(1, settings.epochs + 1):
                raise AssayError(f"layer {shown(self.depth)} after {shown(self.epoch)} of {settings.epochs} epochs")
            for i, stack in enumerate(stacks):
                for name, parameter in nn.ModuleList(stack).named_parameters():
                    parameter.copy_(self.tensors[f"weights.{i}.{name}"])

    def write(self, path: Path, stacks: list[list[nn.Module]], layer: _Layer, depth: int, epoch: int) -> None:
        weights = {
            f"weights.{i}.{name}": parameter
            for i, stack in enumerate(stacks)
            for name, parameter in nn.ModuleList(stack).named_parameters()
        }
        progress = {"training": self.training, "depth": depth, "epoch": epoch}
        write_checkpoint(path, weights | layer.state(), progress)
