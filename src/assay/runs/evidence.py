"""Evidence on disk: the numbers of a cell by which networks are compared, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np
import pyarrow as pa

from assay.stats.evidence import Evidence

_SCHEMA = pa.schema(
    {
        "quantity": pa.string(),
        "value": pa.float64(),
        "unit": pa.string(),
        "better": pa.string(),
        "items": pa.list_(pa.string()),
        "item_values": pa.list_(pa.float64()),
        "draws": pa.list_(pa.float64()),
        "n": pa.int64(),
        "status": pa.string(),
        "common": pa.bool_(),
        "exact": pa.bool_(),
        "overlap": pa.float64(),
        "proportion": pa.bool_(),
        "df": pa.float64(),
        "least": pa.float64(),
        "most": pa.float64(),
    }
)


def evidence_table(evidence: Iterable[Evidence]) -> pa.Table:
    """Write evidence as a table, one row for each number."""
    rows = [
        {
            "quantity": e.quantity,
            "value": float(e.value),
            "unit": e.unit,
            "better": e.better,
            "items": list(e.items),
            "item_values": [float(value) for value in e.items.values()],
            "draws": np.asarray(e.draws, dtype=np.float64).tolist(),
            "n": int(e.n),
            "status": e.status,
            "common": e.common,
            "exact": e.exact,
            "overlap": float(e.overlap),
            "proportion": e.proportion,
            "df": float(e.df),
            "least": float(e.least),
            "most": float(e.most),
        }
        for e in evidence
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


def read_evidence(table: pa.Table) -> list[Evidence]:
    """Read evidence from the table that `evidence_table` wrote."""
    return [
        Evidence(
            row["quantity"],
            row["value"],
            row["unit"],
            row["better"],
            dict(zip(row["items"], row["item_values"], strict=True)),
            np.asarray(row["draws"], dtype=np.float64),
            row["n"],
            row["status"],
            row.get("common", True),
            row.get("exact", not row["items"] and not row["draws"]),  # runs of before: only norms had neither
            row.get("overlap", 0.0),
            row.get("proportion", False),
            row.get("df", inf),
            row.get("least", -inf),
            row.get("most", inf),
        )
        for row in table.to_pylist()
    ]
