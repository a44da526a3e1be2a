"""Differences: in what two networks of a run differ, how far, and how surely."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any

import pandas as pd

from assay.core.notebook import table_as_html

NOTE = (
    "Clear: for these networks, on stimuli of this kind. Clear over seeds: larger than what another seed of the "
    "training does, too, so that it is about how the networks were made; a dash where nothing shows what a seed does. "
    "The intervals of either kind hold together with 95 %."
)


@dataclass(frozen=True, repr=False, eq=False)
class Differences:
    """In what two networks of a run differ, how far, and how surely: what `Run.compare` returns.

    Args:
        a: The name of one network.
        b: The name of the other.
        table: One row for each number that both have: ``quantity``, ``measure``, its value for ``a`` and ``b``,
            ``difference`` (a − b), the ends ``low`` and ``high`` of its interval over stimuli and whether it is
            ``clear``; the same over stimuli and seeds of the training (``low_over_seeds``, ``high_over_seeds``,
            ``clear_over_seeds``); which direction is ``better``, whether it is ``paired``, and the number ``n`` of
            inputs, clips or units that it rests on. An interval that nothing tells is missing.
        sentences: What they say in words: what differs clearly over seeds, the surest first, then what does not.
    """

    a: str
    b: str
    table: pd.DataFrame
    sentences: tuple[str, ...]

    def __repr__(self) -> str:
        count = int(self.table["clear"].sum())
        return f"Differences({self.a!r}, {self.b!r}, {count} of {len(self.table)} clear)"

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        columns = ("", self.a, self.b, "difference", "interval", "clear", "interval over seeds", "clear over seeds")
        rows = table_as_html(columns, [_shown(row) for row in self.table.to_dict("records")])
        return f"<b>{escape(self.a)} v {escape(self.b)}</b><ul>{said}</ul>{rows}<p>{escape(NOTE)}</p>"


def _shown(row: dict[Hashable, Any]) -> tuple[str, ...]:
    """A row of the table for readers; what is not known is a dash."""
    cells = [str(row["quantity"]), *(_number(row[name]) for name in ("a", "b", "difference"))]
    for suffix in ("", "_over_seeds"):
        low, high = row[f"low{suffix}"], row[f"high{suffix}"]
        known = isfinite(low) and isfinite(high)
        cells.append(f"{_number(low)} to {_number(high)}" if known else "–")
        cells.append("–" if not known else "yes" if row[f"clear{suffix}"] else "no")
    return tuple(cells)


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−") if isfinite(value) else "–"
