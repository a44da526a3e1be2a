"""Training speed: how long a network took to fit its data, and how much loss it met on the way.

Jiang et al. 2020, "Fantastic generalization measures and where to find them"; Lyle et al. 2020, "A Bayesian perspective
on training speed and model selection"; Ru et al. 2021, "Speedy performance estimation for neural architecture search".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.measures.base import Measure
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, row
from assay.stats.evidence import Evidence
from assay.subject.classifier import Array
from assay.subject.past import Past, training_history
from assay.subject.subject import Subject

EPOCH, STEPS, LOSS, RUNNING_LOSS = "epoch", "steps", "loss", "running_loss"


def time_to_loss(times: Array, losses: Array, target: float) -> float:
    """When a loss first was at most ``target``; NaN where it never was.

    Between the last time above the target and the first at or below it, the logarithm of the loss is interpolated:
    t = t₀ + (t₁ − t₀)·log(ℓ₀/target)/log(ℓ₀/ℓ₁). Where the first loss is at or below the target, t is its time.

    Args:
        times: When each loss was measured, increasing, in epochs or steps.
        losses: The losses, finite and not negative.
        target: The loss to reach, positive.

    Example:
        >>> round(time_to_loss(np.array([1, 2, 3]), np.array([10.0, 1.0, 0.01]), 0.1), 6)
        2.5
    """
    t, loss = np.asarray(times, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    if t.shape != loss.shape or t.ndim != 1 or not len(t) or not np.isfinite([t, loss]).all():
        raise AssayError(f"{t.size} times and {loss.size} losses: give a finite loss for every time, at least one")
    if (np.diff(t) <= 0).any() or (loss < 0).any() or not target > 0:
        raise AssayError("times must increase, losses must not be negative, and the target must be positive")
    reached = np.flatnonzero(loss <= target)
    if not len(reached):
        return NAN
    i = int(reached[0])
    if i == 0 or loss[i] == 0:  # the logarithm of zero is never met half way: it is reached when it is there
        return float(t[i])
    share = np.log(loss[i - 1] / target) / np.log(loss[i - 1] / loss[i])
    return float(t[i - 1] + share * (t[i] - t[i - 1]))


def sum_of_losses(losses: Array, last: int | None = None) -> float:
    """The sum of the training losses ℓ_t over the epochs t = 1 … T: Σ_t ℓ_t, or of the last epochs alone.

    It is small where training was fast.

    Args:
        losses: The mean loss of the steps of each epoch, finite.
        last: Number of epochs at the end that count; all by default.

    Example:
        >>> sum_of_losses(np.array([2.0, 1.0, 0.5])), sum_of_losses(np.array([2.0, 1.0, 0.5]), last=1)
        (3.5, 0.5)

    Lyle et al. 2020 (SOTL); Ru et al. 2021, TSE and TSE-E.
    """
    checked = _checked(losses)
    if last is not None and last < 1:
        raise AssayError(f"last={last} must be at least 1, or None for all epochs")
    return float(checked[-last if last else None :].sum())


def moving_sum_of_losses(losses: Array, decay: float = 0.999) -> float:
    """The sum of the training losses of which earlier ones count less: Σ_t γ^(T − t)·ℓ_t over the epochs t = 1 … T.

    Args:
        losses: The mean loss of the steps of each epoch, finite.
        decay: γ, above 0 and at most 1, at which it is `sum_of_losses`.

    Example:
        >>> moving_sum_of_losses(np.array([2.0, 1.0, 0.5]), decay=0.5)   # 0.5 + 1/2 + 2/4
        1.5

    Ru et al. 2021, TSE-EMA; it is no average, as the weights do not sum to 1.
    """
    checked = _checked(losses)
    if not 0 < decay <= 1:
        raise AssayError(f"decay={decay} must be above 0 and at most 1")
    return float((checked * decay ** np.arange(len(checked) - 1, -1, -1)).sum())


@dataclass(frozen=True)
class TrainingSpeed(Measure):
    """How fast a network was trained, from the history that the subject carries; the network itself is not run.

    The history (``Subject(history=…)``; those of a corpus have one) is a table with a row for each epoch, in order:
    ``loss``, the mean cross-entropy on the training data after the epoch, ``running_loss``, that of its steps as they
    were taken, or both; ``epoch``, counted from 1 where there is no such column; and ``steps``, how many the optimiser
    had taken by the end of the epoch. Times to a loss are of ``loss`` where it was measured, else of ``running_loss``;
    sums are of ``running_loss``, else of ``loss``.

    Table: ``epochs to 0.1`` and ``epochs from 0.1 to 0.01`` for the ``losses`` of the settings (see `time_to_loss`),
    and the same in ``steps`` where the history counts them; ``sum of losses``, ``sum of losses, last epoch`` (see
    `sum_of_losses`) and ``moving sum of losses`` (see `moving_sum_of_losses`). ``n`` counts epochs. ``status``: ``ok``,
    or how near the loss came to one that it did not reach.

    Args:
        losses: Cross-entropies to reach, falling: the time to the first, and from each to the next.
        decay: What a loss counts less in the moving sum for each epoch that came after it, γ.

    Example:
        >>> import torch
        >>> history = pd.DataFrame({"running_loss": [2.0, 0.5, 0.05], "loss": [1.0, 0.1, 0.01], "steps": [10, 20, 30]})
        >>> table = TrainingSpeed()(Subject(torch.nn.Identity(), history=history)).set_index("quantity").value
        >>> table[["steps to 0.1", "steps from 0.1 to 0.01", "sum of losses"]].tolist()
        [20.0, 10.0, 2.55]
    """

    losses: tuple[float, ...] = (0.1, 0.01)
    decay: float = 0.999

    name: ClassVar[str] = "training-speed"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "sum of losses"
    higher_is: ClassVar[str] = "slower training"
    looks_back: ClassVar[tuple[Past, ...]] = ("history",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.losses or min(self.losses) <= 0 or (np.diff(self.losses) >= 0).any():
            raise AssayError(f"losses={self.losses} must be positive and fall, as 0.1 and 0.01 do")
        moving_sum_of_losses(np.ones(1), self.decay)

    def check(self, subject: Subject) -> None:
        """Check that the subject carries a history with losses."""
        _read(training_history(subject), subject.name)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Read the times and sums from the history."""
        return pd.DataFrame(self._rows(_read(training_history(subject), subject.name)))

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The sum of the training losses, which has no interval."""
        return from_rows(measured, [("sum of losses", "sum of training losses over the epochs", "lower")])

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take every quantity.

        Sums of losses are expected to rise with the gap: networks that learn fast generalize better (Lyle et al. 2020,
        Ru et al. 2021). The time to the first loss is expected to fall with it: in Jiang et al. 2020, networks that
        fitted fast at first generalized worse, against the bounds of Hardt et al. 2016. Of later stretches of training
        nothing is expected, as they found nothing.
        """
        first = {f"{unit} to {self.losses[0]:g}": -1 for unit in ("epochs", "steps")}
        sums = {quantity: 1 for quantity in table["quantity"] if "sum of losses" in quantity}
        return chosen(table, table["quantity"], first | sums)

    def _rows(self, history: pd.DataFrame) -> Iterator[dict[str, Any]]:
        n = len(history)
        measured = LOSS if LOSS in history else RUNNING_LOSS
        known = history[history[measured].notna()]
        loss = known[measured].to_numpy(dtype=np.float64)
        for unit, column in (("epochs", EPOCH), ("steps", STEPS)):
            if column not in known:
                continue
            times = [time_to_loss(known[column].to_numpy(dtype=np.float64), loss, target) for target in self.losses]
            for i, (target, time) in enumerate(zip(self.losses, times, strict=True)):
                name = f"{unit} to {target:g}" if i == 0 else f"{unit} from {self.losses[i - 1]:g} to {target:g}"
                status = "ok" if np.isfinite(time) else f"the loss never was {target:g}: its lowest is {loss.min():.3g}"
                yield row(name, time - (times[i - 1] if i else 0.0), n, status=status)
        summed = history[RUNNING_LOSS if RUNNING_LOSS in history else LOSS].to_numpy(dtype=np.float64)
        if not np.isfinite(summed).all():
            for name in ("sum of losses", "sum of losses, last epoch", "moving sum of losses"):
                yield row(name, NAN, n, status="an epoch has no loss")
            return
        yield row("sum of losses", sum_of_losses(summed), n)
        yield row("sum of losses, last epoch", sum_of_losses(summed, 1), n)
        yield row("moving sum of losses", moving_sum_of_losses(summed, self.decay), n)


def _checked(losses: Array) -> Array:
    checked = np.asarray(losses, dtype=np.float64)
    if checked.ndim != 1 or not len(checked) or not np.isfinite(checked).all():
        raise AssayError(f"losses of shape {checked.shape} must be finite numbers in a row, at least one")
    return checked


def _read(history: pd.DataFrame, network: str) -> pd.DataFrame:
    """The columns of a history that are known, as numbers; an error where there is no loss, or an odd one."""
    what = f"the history of {network!r}"
    table = history[[column for column in (EPOCH, STEPS, LOSS, RUNNING_LOSS) if column in history]].copy()
    if not len(history):
        raise AssayError(f"{what} has no epoch")
    for column in table:
        numbers = pd.to_numeric(table[column], errors="coerce").astype(float)
        if (numbers.isna() & table[column].notna()).any() or np.isinf(numbers).any() or (numbers < 0).any():
            raise AssayError(f"{what}: its column {column!r} must have numbers that are finite and not negative")
        table[column] = numbers
    # Losses that were never measured are as good as none.
    table = table.drop(
        columns=[column for column in (LOSS, RUNNING_LOSS) if column in table and table[column].isna().all()]
    )
    if LOSS not in table and RUNNING_LOSS not in table:
        raise AssayError(
            f"{what} has no column 'loss' or 'running_loss' of numbers; it has {', '.join(map(str, history))}"
        )
    if EPOCH not in table:
        table[EPOCH] = np.arange(1.0, len(table) + 1)
    for column in (EPOCH, STEPS):
        if column in table and not (np.diff(table[column]) > 0).all():
            raise AssayError(f"{what}: its column {column!r} must increase from row to row")
    return table
