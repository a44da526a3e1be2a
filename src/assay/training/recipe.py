"""The recipe of supervised training: every setting that, with network and data, decides its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_count
from assay.training.adversarial import Adversary

Optimizer = Literal["sgd", "adam"]
Schedule = Literal["constant", "plateau", "cosine"]
Precision = Literal["float32", "tf32", "bfloat16"]
Augmentation = Callable[[Tensor, torch.Generator], Tensor]

LARGEST_RATE = 1e38
"""Learning rates from here on are refused: single precision ends soon after."""
# Of the schedule "plateau": epochs without progress that are allowed, what the rate is multiplied by, and how much
# lower (as a share) a loss must be to count as progress.
PATIENCE = 5
FACTOR = 0.1
THRESHOLD = 1e-4


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, and until when.

    Args:
        optimizer: ``"sgd"`` (momentum 0.9) or ``"adam"``.
        learning_rate: Learning rate η at the start.
        batch_size: Number of inputs per step. The last, incomplete batch of an epoch is left out; every epoch has
            another order.
        weight_decay: λ; λ‖W‖²/2 is added to the loss for the weights W of convolutions and linear layers, not for
            biases or batch norm.
        epochs: Largest number of passes over the data.
        stop_loss: Stop when the mean cross-entropy on the training data is at most this.
        stop_accuracy: Stop when the accuracy on the training data is at least this. Either criterion suffices.
        check_every: Epochs between checks of the criteria, in eval mode, on the data as the epoch showed them.
        schedule: How the learning rate changes: ``"constant"``, ``"cosine"`` or ``"plateau"``; see `rate`.
        augmentation: A function called at the start of every epoch with all inputs and a random number generator on
            their device; it returns what is shown in their place, as many and of the same shape.
        precision: ``"float32"``; ``"tf32"``, on a GPU products of 10-bit mantissas; or ``"bfloat16"``, autocast.
        seed: Seed of the order, dropout and augmentation, from which each epoch derives seeds of its own, so that it
            depends on no random state. (Initial weights are the network's own.)
        adversary: The attack by which every batch is changed, after augmentation, before the network learns from it;
            none by default. The criteria are checked on the inputs as they are.

    Example:
        >>> Recipe(optimizer="adam", learning_rate=1e-3, stop_loss=0.01).reached(loss=0.009, accuracy=1.0)
        True
    """

    optimizer: Optimizer = "sgd"
    learning_rate: float = 0.01
    batch_size: int = 128
    weight_decay: float = 0.0
    epochs: int = 100
    stop_loss: float | None = None
    stop_accuracy: float | None = None
    check_every: int = 1
    schedule: Schedule = "constant"
    augmentation: Augmentation | None = None
    precision: Precision = "float32"
    seed: int = 0
    adversary: Adversary | None = None

    def __post_init__(self) -> None:
        for name, known in (("optimizer", Optimizer), ("schedule", Schedule), ("precision", Precision)):
            value = getattr(self, name)
            if value not in get_args(known):
                raise AssayError(f"unknown {name} {value!r}{nearest(str(value), get_args(known))}")
        for name in ("batch_size", "epochs", "check_every"):
            if getattr(self, name) < 1:
                raise AssayError(f"{name}={getattr(self, name)} must be at least 1")
            require_count(f"{name}={getattr(self, name)}", getattr(self, name))
        if not (0 < self.learning_rate < LARGEST_RATE and 0 <= self.weight_decay < math.inf):
            raise AssayError(
                f"learning_rate={self.learning_rate} must be positive and below {LARGEST_RATE:g}, "
                f"weight_decay={self.weight_decay} not negative"
            )
        if self.stop_loss is not None and not self.stop_loss > 0:
            raise AssayError(f"stop_loss={self.stop_loss} must be positive: a cross-entropy never reaches 0")
        if self.stop_accuracy is not None and not 0 < self.stop_accuracy <= 1:
            raise AssayError(f"stop_accuracy={self.stop_accuracy} is a share: in (0, 1]")

    def reached(self, loss: float, accuracy: float) -> bool:
        """Return whether a loss or an accuracy on the training data meets a criterion to stop."""
        return (self.stop_loss is not None and loss <= self.stop_loss) or (
            self.stop_accuracy is not None and accuracy >= self.stop_accuracy
        )

    def rate(self, losses: Sequence[float]) -> float:
        """Return the learning rate of the next epoch, given the mean loss of the steps of each epoch so far.

        With t epochs done of T: ``constant`` η; ``cosine`` η(1 + cos(πt/T))/2; ``plateau`` η·0.1ᵏ, where k counts
        how often 6 epochs in a row brought no loss below 0.9999 times the lowest so far.

        Example:
            >>> Recipe(learning_rate=0.1, epochs=4, schedule="cosine").rate([2.3, 1.1])
            0.05
        """
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * len(losses) / self.epochs)) / 2
        if self.schedule == "plateau":
            return self.learning_rate * FACTOR ** _plateaus(losses)
        return self.learning_rate

    def number(self, purpose: str, epoch: int) -> int:
        """Return the seed of one epoch for one purpose."""
        return int(fingerprint(f"{self.seed}/{purpose}/{epoch}")[:12], 16)


def _plateaus(losses: Sequence[float]) -> int:
    """Count how often the loss stopped falling for longer than the patience."""
    lowest = math.inf
    epochs_without_progress = 0
    plateaus = 0
    for loss in losses:
        if loss < lowest * (1 - THRESHOLD):
            lowest = loss
            epochs_without_progress = 0
        else:
            epochs_without_progress += 1
        if epochs_without_progress > PATIENCE:
            epochs_without_progress = 0
            plateaus += 1
    return plateaus
