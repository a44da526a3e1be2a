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
