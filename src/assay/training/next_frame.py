"""Training of networks that predict the next frame of footage, one or many side by side, resumable."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import nn

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.training.callbacks import Callback, Clock
from assay.training.checkpoint import Checkpoint
from assay.training.footage_steps import Footage, FootageSteps
from assay.training.recipe import LARGEST_RATE, Precision
from assay.training.turns import OnEpoch, Streams, require_as_many, train_in_turns

LevelLoss = Literal["L_0", "L_all"]
UPPER = 0.1  # weight of the levels above the lowest in L_all


@dataclass(frozen=True)
class NextFrame:
    """How a network learns to predict the next frame.

    The loss of a sequence is Σ_t λ_t Σ_l λ_l mean(E_l(t)), with λ_0 = 0 for the first frame, of which nothing can be
    known, and λ_t = 1/(T − 1) for the others. Adam's learning rate is divided by ten half way.

    Args:
        epochs: Number of epochs.
        sequences: Number of sequences per epoch, drawn anew in each. A part that fills no batch is left out.
        batch_size: Number of sequences per step.
        length: Number of frames T of a sequence.
        loss: ``"L_0"``, λ_l = (1, 0, 0, …), the error of the frames alone; ``"L_all"``, (1, 0.1, 0.1, …); or one
            weight for each level.
        learning_rate: Learning rate of the first half of the epochs.
        precision: ``"float32"``; ``"tf32"``, on a GPU products of 10-bit mantissas; or ``"bfloat16"``, autocast.
        seed: Seed of the draws of sequences, from which each epoch derives its own.

    Lotter et al. 2017, §2.2 and appendix.
    """

    epochs: int = 150
    sequences: int = 500
    batch_size: int = 4
    length: int = 10
    loss: LevelLoss | Sequence[float] = "L_0"
    learning_rate: float = 1e-3
    precision: Precision = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"epochs": 1, "sequences": 1, "batch_size": 1, "length": 2}
        for name, minimum in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < minimum:
                raise AssayError(f"{name}={value!r} must be a whole number from {minimum}")
        if self.batch_size > self.sequences:
            raise AssayError(
                f"batch_size={self.batch_size} is more than the {self.sequences} sequences of an epoch: give fewer"
            )
        if not 0 < self.learning_rate < LARGEST_RATE:
            raise AssayError(f"learning_rate={self.learning_rate} must be positive and below {LARGEST_RATE:g}")
        if self.precision not in get_args(Precision):
            raise AssayError(f"unknown precision {self.precision!r}{nearest(str(self.precision), get_args(Precision))}")
        if isinstance(self.loss, str):
            if self.loss not in get_args(LevelLoss):
                raise AssayError(f"unknown loss {self.loss!r}{nearest(self.loss, get_args(LevelLoss))}")
        elif not all(0 <= weight < math.inf for weight in self.loss) or not any(self.loss):
            raise AssayError(f"loss={self.loss} has weights of levels that are negative, or all 0")

    @property
    def steps(self) -> int:
        """Number of steps in an epoch."""
        return self.sequences // self.batch_size

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0.

        Example:
            >>> [NextFrame(epochs=4).rate(epoch) for epoch in range(4)]
            [0.001, 0.001, 0.0001, 0.0001]
        """
        return self.learning_rate if 2 * epoch < self.epochs else self.learning_rate / 10

    def level_weights(self, levels: int) -> tuple[float, ...]:
        """Return λ_l for each of so many levels.

        Example:
            >>> NextFrame(loss="L_all").level_weights(4)
            (1.0, 0.1, 0.1, 0.1)
        """
        if isinstance(self.loss, str):
            return (1.0, *([UPPER if self.loss == "L_all" else 0.0] * (levels - 1)))
        if len(self.loss) != levels:
            raise AssayError(f"loss={tuple(self.loss)} has {len(self.loss)} weights, the network has {levels} levels")
        return tuple(float(weight) for weight in self.loss)

    def number(self, epoch: int) -> int:
        """Return the seed of the sequences of one epoch."""
        return int(fingerprint(f"{self.seed}/sequences/{epoch}")[:12], 16)


@dataclass(frozen=True)
class TrainedOnFootage:
    """How the training of a network on footage ended.

    Args:
        status: ``"ended"`` after the last epoch; ``"halted"`` by a callback before that; ``"diverged"`` when the loss
            became NaN or infinite, so that the weights mean nothing.
        losses: Mean loss of the steps of each epoch, each before its update.
    """

    status: Literal["ended", "halted", "diverged"]
    losses: tuple[float, ...]

    @property
    def epochs(self) -> int:
        """Number of epochs that were run."""
        return len(self.losses)


Clips = Mapping[str, Any] | Iterable[Any]
OnDone = Callable[[int, nn.Module, TrainedOnFootage], None]


def train_next_frame(
    network: nn.Module,
    footage: Clips,
    recipe: NextFrame | None = None,
    *,
    checkpoint: Path | str | None = None,
    every_s: float = 60.0,
    callback: Callback | None = None,
) -> TrainedOnFootage:
    """Train one network to predict the next frame, in place, on the device it is on; see `train_next_frame_many`.

    Example:
        >>> from assay.core.determinism import seeded
        >>> from assay.networks.prednet import PredNet
        >>> with seeded(0):
        ...     network = PredNet((3, 4))
        ...     clip = torch.rand(1, 3, 8, 8).expand(12, -1, -1, -1)  # a still picture
        >>> trained = train_next_frame(network, [clip], NextFrame(epochs=10, sequences=8, length=5))
        >>> trained.status, trained.losses[-1] < trained.losses[0]
        ('ended', True)
    """
    return train_next_frame_many(
        [network],
        footage,
        [recipe or NextFrame()],
        checkpoints=[checkpoint],
        every_s=every_s,
        callbacks=[callback],
    )[0]


def train_next_frame_many(
    networks: Iterable[nn.Module],
    footage: Clips,
    recipes: Sequence[NextFrame],
    *,
    at_once: int = 8,
    checkpoints: Sequence[Path | str | None] | None = None,
    every_s: float = 60.0,
    callbacks: Sequence[Callback | None] | None = None,
    on_done: OnDone | None = None,
) -> list[TrainedOnFootage]:
    """Train many networks to predict the next frame of the same footage, in place, each exactly as if it were alone.

    The networks take turns, step by step. On a GPU each has a stream and a recorded step of its own, so that small
    networks fill it together; the footage is there once, as bytes. On a CPU nothing is gained over one after another:
    use one process for each (`assay.Resources`).

    Args:
        networks: Networks with a method ``errors(frames, levels)``, as `assay.PredNet`, which may otherwise differ in
            everything. Each is taken when there is room for it, so a generator may build them, and trained on the
            device it is on.
        footage: Clips T×C×H×W of one frame size, uint8, or floating-point in [0, 1], which are rounded to 256 steps; a
            list, or by name. Sequences are drawn from all places in all clips, and never span two clips.
        recipes: How to train each network.
        at_once: Number of networks trained side by side; it has no influence on the results.
        checkpoints: A file for each network, from which an interrupted training continues to the same result; that of
            a finished training holds the result. Files stay when training is done.
        every_s: Least number of seconds between two checkpoints of a network; they are written after an epoch.
        callbacks: For each network a function called after each of its epochs, which may end its training by returning
            True (see `assay.training.callbacks`). Epochs that a checkpoint holds already are not repeated for it: what
            it remembered of them is kept there too, if it has ``state_dict`` and ``load_state_dict``, as ours have.
        on_done: Function called as (number, network, result) when a network is done.

    Returns:
        One result for each network, in order. The result of a network that diverges says so; the others continue.
    """
    paths = [None] * len(recipes) if checkpoints is None else list(checkpoints)
    watchers = [None] * len(recipes) if callbacks is None else list(callbacks)
    require_as_many(networks, at_once, recipes=recipes, checkpoints=paths, callbacks=callbacks)
    shown = Footage(footage)
    for length in {recipe.length for recipe in recipes}:
        shown.require(length)
    content = fingerprint(shown.frames, shown.lengths) if any(paths) else ""
    streams = Streams()

    def training(number: int, network: nn.Module, on_epoch: OnEpoch) -> Generator[None, None, TrainedOnFootage]:
        recipe, path = recipes[number], paths[number]
        level_weights = recipe.level_weights(_levels(network, shown))
        saved = None if path is None else Checkpoint(path, network, recipe, content, every_s, watchers[number])
        with streams.stream(next(network.parameters()).device) as stream:
            steps = FootageSteps(network, shown, recipe, level_weights, stream)
            return (yield from _training(steps, recipe, saved, watchers[number], on_epoch))

    epochs = [recipe.epochs for recipe in recipes]
    return train_in_turns(networks, epochs, training, at_once, "training on footage, in epochs", on_done)


def _training(
    steps: FootageSteps, recipe: NextFrame, saved: Checkpoint | None, callback: Callback | None, on_epoch: OnEpoch
) -> Generator[None, None, TrainedOnFootage]:
    """Train one network, giving way to others after every step."""
    network = steps.network
    was_training = network.training
    status, losses = (None, []) if saved is None else saved.read(steps.optimizer, "losses", float)
    network.train()
    clock = Clock()
    try:
        while status is None:
            epoch = len(losses)
            steps.begin(recipe.number(epoch), recipe.rate(epoch))
            for _ in range(recipe.steps):
                steps.step()
                yield
            yield from steps.settle()
            losses.append(steps.total.item() / recipe.steps)
            done = epoch + 1
            finite = math.isfinite(losses[-1])
            halted = finite and clock.call(callback, done, done * recipe.steps, losses[-1], network)
            if not finite:
                status = "diverged"
            elif done >= recipe.epochs:
                status = "ended"
            elif halted:
                status = "halted"
            if saved is not None:
                saved.write(steps.optimizer, status, "losses", losses)
            on_epoch(done)
    finally:
        steps.close()
        network.train(was_training)
    return TrainedOnFootage(status, tuple(losses))


def _levels(network: nn.Module, footage: Footage) -> int:
    """Return how many levels a network has, found by showing it two frames, which it must be able to take."""
    errors = getattr(network, "errors", None)
    parameter = next(network.parameters(), None)
    if errors is None or parameter is None:
        raise AssayError(
            f"{type(network).__name__} has no method errors(frames, levels) with the errors of its predictions, or no "
            "parameters: give a network as assay.PredNet"
        )
    frames = footage.frames[None, :2].to(parameter.device, parameter.dtype) / 255
    with torch.no_grad():
        return int(errors(frames).shape[1])
