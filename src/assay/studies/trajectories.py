"""Trajectories: a table of networks that were measured again and again while they were trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.studies.agreement import require_columns

NETWORK, EPOCH = "network", "epoch"


def require_trajectories(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table that is none of trajectories.

    It needs the columns ``network`` and ``epoch``, in which every pair occurs once, and numbers in the others.
    """
    if NETWORK not in table:
        raise AssayError(f"the table has no column {NETWORK!r}, the name of the network of each row")
    require_columns(table, [EPOCH, *columns])
    if not len(table):
        raise AssayError("the table of trajectories has no rows: give one per network and epoch")
    if table[EPOCH].isna().any() or table[NETWORK].isna().any():
        raise AssayError("the table of trajectories has rows without a network or an epoch")
    twice = table[table.duplicated([NETWORK, EPOCH])]
    if len(twice):
        network, epoch = twice.iloc[0][[NETWORK, EPOCH]]
        raise AssayError(f"network {network!r} has several rows of epoch {epoch}: give one per network and epoch")


def each_network(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each network with its rows in the order of their epochs."""
    for network, rows in table.groupby(NETWORK, sort=True):
        yield str(network), rows.sort_values(EPOCH)


def measurements(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows of one network at which a column was measured, also where the measurement failed and gave no value.

    A table holds columns that are measured at other epochs than each other. A row without a value is therefore one at
    which the column was not measured, unless it is due there: a multiple of the usual distance of two values (their
    median) after the last value, or before the first.

    Args:
        rows: The rows of a network in the order of their epochs.
        column: The column that was measured.

    Example:
        >>> epochs, hms = range(1, 13), [None, 0.1, None, 0.1, None, None, None, 0.1, None, 0.1, None, 0.1]
        >>> measurements(pd.DataFrame({"epoch": epochs, "hms": hms}), "hms")["epoch"].tolist()      # at 6 it failed
        [2, 4, 6, 8, 10, 12]
    """
    epochs = rows[EPOCH].to_numpy(dtype=np.float64)
    known = rows[column].notna().to_numpy()
    if known.sum() < 2:
        return rows.loc[known]
    usual = float(np.median(np.diff(epochs[known])))
    last_known = np.maximum(np.searchsorted(epochs[known], epochs, side="right") - 1, 0)
    apart = (epochs - epochs[known][last_known]) / usual
    due = np.isclose(apart, np.rint(apart), rtol=0, atol=1e-6)
    measured: pd.DataFrame = rows.loc[known | due]
    return measured
