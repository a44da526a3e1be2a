"""What a measure found: its table, and what tells how sure its numbers are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from assay.stats.evidence import Array, Better, Evidence

DRAWS = "draws"


@dataclass(frozen=True)
class Measured:
    """What a measure found: its table, and the resampled values of the rows that have them, by number of the row.

    ``shown`` is what was shown, where it tells whether the resamples of two networks are of the same stimuli, and
    ``how`` are the settings without which numbers cannot be compared.
    """

    table: pd.DataFrame
    draws: Mapping[int, Array] = field(default_factory=dict)
    shown: Any = None
    how: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Measured:
        """Make it from rows, each of which may hold its resampled values under ``draws``."""
        plain: list[dict[str, Any]] = []
        draws: dict[int, Array] = {}
        for number, row in enumerate(rows):
            values = dict(row)
            drawn = values.pop(DRAWS, None)
            if drawn is not None and len(drawn):
                draws[number] = np.asarray(drawn, dtype=np.float64)
            plain.append(values)
        return cls(pd.DataFrame(plain), draws)


def from_rows(
    measured: Measured, wanted: Sequence[tuple[str, str, Better]], *, layer: str = "", unit: str = ""
) -> list[Evidence]:
    """The evidence in a table with the columns quantity, layer, value, n and status.

    Args:
        measured: A table and its resampled values.
        wanted: The quantities to take, each with what readers call it and which direction is better.
        layer: The layer whose rows are taken; by default those of the whole network.
        unit: The unit of the numbers.
    """
    evidence = []
    table = measured.table.reset_index(drop=True)
    for quantity, shown, better in wanted:
        rows = table[(table["quantity"] == quantity) & (table["layer"] == layer)]
        for number, row in zip(rows.index.tolist(), rows.to_dict("records"), strict=True):
            drawn = measured.draws.get(number, np.zeros(0))
            evidence.append(
                Evidence(shown, float(row["value"]), unit, better, {}, drawn, int(row["n"]), str(row["status"]))
            )
    return evidence
