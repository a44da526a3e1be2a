"""Tables: what a report reads of a measure, from the cells of a run or from tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pandas as pd

from assay.core.errors import AssayError, shown
from assay.measures.base import Measure
from assay.measures.evidence import Measured
from assay.stats.evidence import Evidence

SUBJECT = "subject"
UNNAMED = "network"  # what a network is called whose table does not say


class Tables(Protocol):
    """What a report reads of a measure: its tables over all subjects, and the numbers by which they are compared."""

    def table(self, measure: str) -> pd.DataFrame:
        """All rows of a measure, over all subjects."""

    def summary(self, measure: str) -> pd.DataFrame:
        """The measure's own short table, over all subjects."""

    def evidence(self, measure: str) -> dict[str, list[Evidence]]:
        """The numbers by which networks are compared under a measure, by subject."""


class TablesInMemory:
    """The tables of one measure that was asked directly, without a run.

    Args:
        measure: The measure that was asked.
        tables: What it returned for one subject, what it returned for each by name, or the table of a run, whose column
            ``subject`` says which rows are whose.
    """

    def __init__(self, measure: Measure, tables: pd.DataFrame | Mapping[str, pd.DataFrame]) -> None:
        self.measure = measure
        self.by_subject = _by_subject(tables)

    def table(self, measure: str) -> pd.DataFrame:
        """All rows, over all subjects."""
        return _joined(self.by_subject)

    def summary(self, measure: str) -> pd.DataFrame:
        """The measure's own short table, over all subjects."""
        return _joined({name: self.measure.summary(table) for name, table in self.by_subject.items()})

    def evidence(self, measure: str) -> dict[str, list[Evidence]]:
        """The numbers by which networks are compared, by subject, without what only a run keeps (resampled values)."""
        return {name: list(self.measure.evidence(Measured(table))) for name, table in self.by_subject.items()}


def _by_subject(tables: pd.DataFrame | Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    named = {UNNAMED: tables} if isinstance(tables, pd.DataFrame) else tables
    if not isinstance(named, Mapping) or not all(isinstance(t, pd.DataFrame) for t in named.values()):
        remedy = "give what the measure returned for a network, or such tables by the names of networks"
        raise AssayError(f"table={shown(tables)}: {remedy}")
    if not named or any(table.empty for table in named.values()):
        raise AssayError("table has no rows: give what the measure returned for a network")
    if isinstance(tables, pd.DataFrame) and SUBJECT in tables:
        parts = tables.groupby(SUBJECT, sort=False)
        return {str(name): rows.drop(columns=SUBJECT).reset_index(drop=True) for name, rows in parts}
    return {str(name): table.reset_index(drop=True) for name, table in named.items()}


def _joined(by_subject: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    frames = []
    for name, table in by_subject.items():
        frame = table.copy()
        frame.insert(0, SUBJECT, name)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
