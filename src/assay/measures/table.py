"""Tables of measures: their rows, and the numbers that a study takes from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from assay.core.errors import AssayError
from assay.measures.evidence import DRAWS

NAN = float("nan")


class Predictor(str):
    """The key of a number that a study takes from a measure's table: a quantity, what it is of, and at which layer.

    It is the text that tables show, and it stays the same however the measure is labelled, so that a combination of
    measures finds its parts by what they are.

    Args:
        quantity: What is measured.
        of: What it is measured of.
        layer: The layer at which it is measured.
        direction: What the literature expects of networks with a larger generalization gap: 1, the number rises with
            the gap, −1, it falls, or 0 where nothing is expected. It is no part of the text.

    Example:
        >>> Predictor("gi", of="intra", layer="0")
        'gi intra ℓ=0'
        >>> Predictor("gi", of="intra", layer="0").quantity
        'gi'
    """

    quantity: str
    of: str
    layer: str
    direction: int

    def __new__(cls, quantity: str, of: str = "", layer: str = "", direction: int = 0) -> Predictor:
        """Make a key from its parts."""
        shown = " ".join(filter(None, (quantity, of, f"ℓ={layer}" if layer else "")))
        key = super().__new__(cls, shown)
        key.quantity = quantity
        key.of = of
        key.layer = layer
        if direction not in (-1, 0, 1):
            raise AssayError(f"direction={direction!r} of {shown!r} must be 1 (rises with the gap), −1 or 0")
        key.direction = direction
        return key

    def __getnewargs__(self) -> tuple[str, str, str, int]:  # type: ignore[override]
        return self.quantity, self.of, self.layer, self.direction


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


def chosen(
    table: pd.DataFrame, quantities: Iterable[str], direction: int | Mapping[str, int] = 0
) -> dict[Predictor, float]:
    """The chosen quantities of the whole network, as far as the table has them; NaN where the status is not ok.

    Args:
        table: Rows of a measure.
        quantities: The quantities to take.
        direction: The direction of all of them, or of each by its name; 0 for those not named.
    """
    whole = table[(table["layer"] == "") & table["quantity"].isin(list(quantities))]
    values = whole["value"].where(whole["status"] == "ok")
    expected = {q: direction if isinstance(direction, int) else direction.get(q, 0) for q in whole["quantity"]}
    keys = [Predictor(quantity, direction=expected[quantity]) for quantity in whole["quantity"]]
    return dict(zip(keys, values.astype(float), strict=True))
