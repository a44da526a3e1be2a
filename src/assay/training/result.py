"""What became of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["stopped", "ended", "diverged"]
NAN = float("nan")


@dataclass(frozen=True)
class Epoch:
    """What one epoch did.

    Args:
        learning_rate: During it.
        running_loss: Mean cross-entropy of its steps, each before its update, in training mode.
        loss: Mean cross-entropy on the training data after it, in eval mode; NaN where it was not checked.
        accuracy: The share of the training data classified rightly after it; NaN likewise.
    """

    learning_rate: float
    running_loss: float
    loss: float = NAN
    accuracy: float = NAN


@dataclass(frozen=True)
class Trained:
    """How a training ended.

    Args:
        status: ``"stopped"`` at the criterion; ``"ended"`` after the last epoch, the criterion not reached or none
            given; ``"diverged"``, the loss became NaN or infinite, and the weights mean nothing.
        history: All epochs.

    Example:
        >>> trained = Trained("stopped", (Epoch(0.1, 2.3), Epoch(0.1, 0.2, loss=0.01, accuracy=1.0)))
        >>> trained.epochs, trained.stopped, trained.loss, trained.accuracy
        (2, True, 0.01, 1.0)
    """

    status: Status
    history: tuple[Epoch, ...]

    @property
    def epochs(self) -> int:
        """How many were run."""
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
        """On the training data at the end; NaN if diverged."""
        return self.history[-1].accuracy
