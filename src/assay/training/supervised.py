"""Supervised training of classifiers, one or many side by side, resumable, until they fit their data."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.training.callbacks import Callback, Clock
from assay.training.checkpoint import Checkpoint
from assay.training.recipe import Recipe
from assay.training.result import NAN, Epoch, Trained
from assay.training.steps import Steps
from assay.training.turns import OnEpoch, Streams, require_as_many, train_in_turns

OnDone = Callable[[int, nn.Module, Trained], None]
EPOCHS = "training, in epochs"
"""What the progress of `train_many` counts."""


def train(
    network: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    recipe: Recipe,
    *,
    checkpoint: Path | str | None = None,
    every_s: float = 60.0,
    callback: Callback | None = None,
) -> Trained:
    """Train one classifier, in place, on the device it is on; see `train_many`.

    Example:
        >>> from assay.core.determinism import seeded
        >>> with seeded(0):
        ...     network = nn.Linear(2, 2)
        >>> x, y = torch.eye(2).repeat(8, 1), torch.arange(2).repeat(8)
        >>> trained = train(network, x, y, Recipe(learning_rate=0.1, batch_size=8, stop_accuracy=1.0))
        >>> trained.status, trained.accuracy
        ('stopped', 1.0)
    """
    return train_many(
        [network], inputs, labels, [recipe], checkpoints=[checkpoint], every_s=every_s, callbacks=[callback]
    )[0]


def train_many(
    networks: Iterable[nn.Module],
    inputs: Tensor,
    labels: Tensor,
    recipes: Sequence[Recipe],
    *,
    at_once: int = 8,
    checkpoints: Sequence[Path | str | None] | None = None,
    every_s: float = 60.0,
    on_done: OnDone | None = None,
    callbacks: Sequence[Callback | None] | None = None,
) -> list[Trained]:
    """Train many classifiers on the same data, in place, each exactly as it would be trained alone.

    The networks take turns, step by step. On a GPU each has a stream and a recorded step of its own, so that small
    networks fill it together. Each draws its order, dropout and augmentation from its recipe's seed.

    Args:
        networks: Networks that return logits N×classes and may otherwise differ in everything. Each is taken when there
            is room for it, so a generator may build them, and trained on the device it is on.
        inputs: Inputs N×…, floating point; moved to that device as a whole.
        labels: The class of each input, a whole number from 0.
        recipes: How to train each network.
        at_once: Number of networks trained side by side; it has no influence on the results.
        checkpoints: A file for each network, from which an interrupted training continues to the same result; that of
            a finished training holds the result. Files stay when training is done.
        every_s: Least number of seconds between two checkpoints of a network; they are written after an epoch.
        on_done: Function called as (number, network, result) when a network is done.
        callbacks: For each network a function called after each of its epochs, which may end its training by returning
            True (see `assay.training.callbacks`). Epochs that a checkpoint holds already are not repeated for it: what
            it remembered of them is kept there too, if it has ``state_dict`` and ``load_state_dict``, as ours have.

    Returns:
        One result for each network, in order. The result of a network that diverges says so; the others continue.
    """
    paths = [None] * len(recipes) if checkpoints is None else list(checkpoints)
    watchers = [None] * len(recipes) if callbacks is None else list(callbacks)
    require_as_many(networks, at_once, recipes=recipes, checkpoints=paths, callbacks=callbacks)
    _require_data(inputs, labels, recipes)
    devices = _Devices(inputs, labels)
    streams = Streams()
    content = fingerprint(inputs, labels) if any(paths) else ""

    def training(number: int, network: nn.Module, on_epoch: OnEpoch) -> Generator[None, None, Trained]:
        recipe, path = recipes[number], paths[number]
        x, y = devices.data(network)
        saved = None if path is None else Checkpoint(path, network, recipe, content, every_s, watchers[number])
        with streams.stream(x.device) as stream:
            steps = Steps(network, x, y, recipe, stream)
            return (yield from _training(steps, saved, watchers[number], on_epoch))

    epochs = [recipe.epochs for recipe in recipes]
    return train_in_turns(networks, epochs, training, at_once, EPOCHS, on_done)


def _training(
    steps: Steps, saved: Checkpoint | None, callback: Callback | None, on_epoch: OnEpoch
) -> Generator[None, None, Trained]:
    """Train one network, giving way to others after every step."""
    network, recipe, optimizer = steps.network, steps.recipe, steps.optimizer
    was_training = network.training
    status, history = (None, []) if saved is None else saved.read(optimizer, "history", _epoch)
    network.train()
    clock = Clock()
    try:
        while status is None:
            rate = recipe.rate([epoch.running_loss for epoch in history])
            steps.begin(len(history), rate)
            for _ in range(steps.count):
                steps.step()
                yield
            yield from steps.settle()
            done = len(history) + 1
            last = done >= recipe.epochs
            running_loss, loss, accuracy = steps.total.item() / steps.count, NAN, NAN
            finite = math.isfinite(running_loss)
            halted = finite and clock.call(callback, done, done * steps.count, running_loss, network)
            if finite and (last or halted or done % recipe.check_every == 0):
                loss, accuracy = yield from steps.evaluate()
                finite = math.isfinite(loss)
            if not finite:
                status, loss, accuracy = "diverged", NAN, NAN
            elif recipe.reached(loss, accuracy):
                status = "stopped"
            elif last:
                status = "ended"
            elif halted:
                status = "halted"
            history.append(Epoch(rate, running_loss, loss, accuracy))
            if saved is not None:
                saved.write(optimizer, status, "history", [asdict(epoch) for epoch in history])
            on_epoch(done)
    finally:
        steps.close()
        network.train(was_training)
    return Trained(status, tuple(history))


def _epoch(entry: dict[str, Any]) -> Epoch:
    """An epoch as a checkpoint has it."""
    return Epoch(**{name: float(value) for name, value in entry.items()})


class _Devices:
    """The data on every device that has a network."""

    def __init__(self, inputs: Tensor, labels: Tensor) -> None:
        self.inputs = inputs
        self.labels = labels
        self.data_by_device: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def data(self, network: nn.Module) -> tuple[Tensor, Tensor]:
        """Return the data on the device of a network; raise an error if it cannot classify them."""
        parameter = next(network.parameters(), None)
        if parameter is None:
            raise AssayError(f"{type(network).__name__} has no parameters to train")
        device = parameter.device
        if device not in self.data_by_device:
            inputs, labels = self.inputs.to(device, torch.float32).contiguous(), self.labels.to(device, torch.int64)
            self.data_by_device[device] = inputs, labels
        inputs, labels = self.data_by_device[device]
        _require_classes(network, inputs, labels)
        return inputs, labels


def _require_data(inputs: Tensor, labels: Tensor, recipes: Sequence[Recipe]) -> None:
    if inputs.dim() < 2 or not inputs.numel() or not inputs.is_floating_point():
        raise AssayError(f"inputs are N×…, at least one, floating point, not {tuple(inputs.shape)} of {inputs.dtype}")
    if not torch.isfinite(inputs).all():
        raise AssayError("the inputs have NaN or infinite values")
    if labels.shape != inputs.shape[:1] or labels.is_floating_point() or labels.is_complex():
        raise AssayError(
            f"labels are one whole number for each of {len(inputs)} inputs, not {tuple(labels.shape)} of {labels.dtype}"
        )
    if labels.min() < 0:
        raise AssayError(f"labels are numbers from 0, the smallest is {int(labels.min())}")
    for number, recipe in enumerate(recipes):
        if recipe.batch_size > len(inputs):
            raise AssayError(
                f"batch_size={recipe.batch_size} of recipe {number} is larger than the data: {len(inputs)} inputs"
            )


def _require_classes(network: nn.Module, inputs: Tensor, labels: Tensor) -> None:
    """Raise an error unless the network returns a logit for every class of the labels."""
    was_training = network.training
    try:
        with torch.no_grad():
            logits = network.eval()(inputs[:1])
    finally:
        network.train(was_training)
    largest = int(labels.max())
    if not isinstance(logits, Tensor) or logits.dim() != 2 or logits.shape[1] <= largest:
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise AssayError(
            f"{type(network).__name__} gives {shape} for one input: labels up to {largest} need logits of "
            f"1×{largest + 1} or more"
        )
