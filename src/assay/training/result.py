"""The result of a training: how it ended, and its epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["stopped", "halted", "ended", "diverged"]
NAN = float("nan")


@dataclass(frozen=True)
class Epoch:
    """Learning rate, loss and accuracy of one epoch.

    Args:
        learning_rate: Learning rate during the epoch.
        running_loss: Mean cross-entropy of the epoch's steps, each before its update, in training mode.
        loss: Mean cross-entropy on the training data after the epoch, in eval mode; NaN where it was not checked.
        accuracy: Share of the training data classified correctly after the epoch; NaN where it was not checked.
    """

    learning_rate: float
    running_loss: float
    loss: float = NAN
    accuracy: float = NAN


@dataclass(frozen=True)
class Trained:
    """How the training of a network ended: its epochs, loss and accuracy.

    Args:
        status: ``"stopped"`` at the criterion; ``"halted"`` by a callback before that; ``"ended"`` after the last
            epoch, with the criterion not reached or not given; ``"diverged"`` when the loss became NaN or infinite, so
            that the weights mean nothing.
        history: All epochs in order.

    Example:
        >>> trained = Trained("stopped", (Epoch(0.1, 2.3), Epoch(0.1, 0.2, loss=0.01, accuracy=1.0)))
        >>> trained.epochs, trained.stopped, trained.loss, trained.accuracy
        (2, True, 0.01, 1.0)
    """

    status: Status
    history: tuple[Epoch, ...]

    @property
    def epochs(self) -> int:
        """Number of epochs that were run."""
        return len(self.history)

    @property
    def stopped(self) -> bool:
        """Whether the criterion was reached."""
        return self.status == "stopped"

    @property
    def loss(self) -> float:
        """Mean cross-entropy on the training data at the end; NaN if diverged."""
        return self.history[-1].loss

    @property
    def accuracy(self) -> float:
        """Accuracy on the training data at the end; NaN if diverged."""
        return self.history[-1].accuracy
