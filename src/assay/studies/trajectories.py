"""Trajectories: a table of networks that were measured again and again while they were trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
