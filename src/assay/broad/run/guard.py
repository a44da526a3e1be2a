"""Checks of a system's answers: it may not learn from test instances, nor answer with what is no answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assay.broad.data.dataset import Array, Features
from assay.broad.data.features import PARTS, count, dense, finite
from assay.broad.data.violation import Violation
from assay.broad.metrics import Metric


def require_same(together: Features, again: Features, what: str) -> None:
    """Raise a violation if a few instances give other results by themselves than among all others.

    The tolerances are those of float32 sums.

    Args:
        together: Results for the instances when they were among all others.
        again: Results for the same instances by themselves, in the same order.
        what: Name of the module, for the message.
    """
    if count(together) != count(again):
        raise Violation("invalid", f"the {what} gave {count(again)} rows for {count(together)} test instances")
    for a, b in zip(dense(together), dense(again), strict=True):
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-4):
            raise Violation(
                "learned at test time",
                f"the {what} answers otherwise when test instances come in another order or number",
            )


def require_same_ranks(together: Array, which: Array, again: Array, what: str) -> None:
    """Raise a violation if a few instances have other places in the order of all predictions by themselves.

    Predictions that are all nearly equal can hold an order that is made of the whole test set. Of the other instances,
    no more than a hundredth, or two, may lie between two predictions of an instance, unless these are equal up to
    rounding, of float32 where all predictions are numbers of that.

    Args:
        together: Predictions of all instances.
        which: Which instances were also predicted by themselves.
        again: The predictions of those.
        what: Name of the module, for the message.
    """
    single = bool((together == together.astype(np.float32)).all())
    rounding = 4 * float(np.finfo(np.float32 if single else np.float64).eps) * float(np.abs(together).max(initial=0))
    ordered = np.sort(together)
    low, high = np.minimum(together[which], again), np.maximum(together[which], again)
    between = np.searchsorted(ordered, high, "left") - np.searchsorted(ordered, low, "right")
    if ((between > max(0.01 * len(together), 2)) & (high - low > rounding)).any():
        raise Violation(
            "learned at test time", f"the {what} orders test instances otherwise when they come in another number"
        )


def require_features(features: dict[str, Features], number: Mapping[str, Array], whose: str) -> None:
    """Raise a violation if the features of a part are not finite, or are not one row for each of its instances."""
    for part in PARTS:
        if count(features[part]) != len(number[part]):
            raise Violation(
                "invalid", f"{whose} gave {count(features[part])} rows for {len(number[part])} {part} instances"
            )
        if not finite(features[part]):
            raise Violation("invalid", f"{whose} gave NaN or infinite values for {part} instances")


def require_predictions(predicted: Array, number: int, metric: Metric, where: str) -> None:
    """Raise a violation if predictions are not one number, within the metric's bounds, for each test instance."""
    if predicted.shape != (number,):
        raise Violation("invalid", f"{where}: predictions of shape {predicted.shape}")
    fault = metric.fault(predicted)
    if fault:
        raise Violation("invalid", f"{where}: {fault}")
