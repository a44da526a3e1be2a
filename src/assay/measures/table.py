"""Tables of measures: their rows, and the numbers that a study takes from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from assay.core.errors import AssayError
from assay.measures.evidence import DRAWS

NAN = float("nan")


class Predictor(str):
    """The key of a number that a study takes from a measure's table: a quantity, what it is of, and at which layer.

    It is the text that tables show, and it stays the same however the measure is labelled, so that a combination of
    measures finds its parts by what they are.

    Example:
        >>> Predictor("gi", of="intra", layer="0")
        'gi intra ℓ=0'
        >>> Predictor("gi", of="intra", layer="0").quantity
        'gi'
    """

    quantity: str
    of: str
    layer: str

    def __new__(cls, quantity: str, of: str = "", layer: str = "") -> Predictor:
        """Make a key from its parts."""
        shown = " ".join(filter(None, (quantity, of, f"ℓ={layer}" if layer else "")))
        key = super().__new__(cls, shown)
        key.quantity = quantity
        key.of = of
        key.layer = layer
        return key

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        return self.quantity, self.of, self.layer


def require_sample(samples: int | None, bootstrap: int) -> None:
    """Refuse a sample of no input (None is all of them) and a negative number of resamples."""
    if samples is not None and samples < 1:
        raise AssayError(f"samples={samples} must be at least 1, or None for all")
    if bootstrap < 0:
        raise AssayError(f"bootstrap={bootstrap} must be at least 0")


def row(
    quantity: str,
    value: float,
    n: int,
    *,
    layer: str = "",
    low: Any = NAN,
    high: Any = NAN,
    status: str = "ok",
    draws: Any = None,
) -> dict[str, Any]:
    """One row of a measure's table, as a dictionary of its columns, and its value in resamples where there are any."""
    numbers = {"value": float(value), "low": float(low), "high": float(high)}
    drawn = {} if draws is None else {DRAWS: draws}
    return {"quantity": quantity, "layer": layer, **numbers, "n": n, "status": status, **drawn}


def chosen(table: pd.DataFrame, quantities: Iterable[str]) -> dict[Predictor, float]:
    """The chosen quantities of the whole network, as far as the table has them; NaN where the status is not ok."""
    whole = table[(table["layer"] == "") & table["quantity"].isin(list(quantities))]
    values = whole["value"].where(whole["status"] == "ok")
    return dict(zip(map(Predictor, whole["quantity"]), values.astype(float), strict=True))
