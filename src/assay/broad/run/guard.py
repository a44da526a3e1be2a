"""Checks of what a system may not do during a run: read labels, learn from test instances, give invalid answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.broad.data.dataset import Array, Features
from assay.broad.data.features import PARTS, count, dense, finite, rows
from assay.broad.data.violation import Violation
from assay.broad.metrics import Metric
from assay.broad.run.watch import watching
from assay.core.fingerprint import state_fingerprint


class Guard:
    """A block in which a system's code runs; it ends in a violation if the code opened a file that holds labels.

    Args:
        forbidden: Files and folders that hold labels.
    """

    def __init__(self, forbidden: tuple[str, ...]) -> None:
        self.forbidden = forbidden
        self.context = watching()

    def __enter__(self) -> None:
        self.seen = self.context.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.context.__exit__(kind, error, trace)
        peeked = self.seen.under(self.forbidden) if self.forbidden else []
        if peeked:
            raise Violation("peeked", f"the system opened {peeked[0]}, where labels are") from error


def require_unchanged(thing: Any, known: str, what: str) -> None:
    """Raise a violation if the state of a module no longer has the hash that is known of it."""
    if state_fingerprint(thing) != known:
        raise Violation("learned at test time", f"the {what} changed while it was shown test instances")


def require_same(together: Features, again: Features, what: str) -> None:
    """Raise a violation if a few instances, alone and in reverse order, give other results than among all others.

    The tolerances are those of float32 sums.

    Args:
        together: Results for the instances when they were among all others.
        again: Results for the same instances, alone and in reverse order.
        what: Name of the module, for the message.
    """
    in_order = rows(again, np.arange(count(again))[::-1])
    for a, b in zip(dense(together), dense(in_order), strict=True):
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
