"""Cells: one subject under one measure, keyed by content, in one file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import AssayError
from assay.store.files import Folder

_KEY = b"assay"
FOLDER = "cells"


@dataclass(frozen=True)
class CellKey:
    """Which cell: names for people, a fingerprint for certainty."""

    subject: str
    measure: str
    fingerprint: str

    @property
    def stem(self) -> str:
        """File name without suffix."""
        parts = (re.sub(r"[^\w.+-]+", "_", part)[:60] for part in (self.subject, self.measure))
        return f"{FOLDER}/{'--'.join(parts)}--{self.fingerprint[:16]}"

    @property
    def done(self) -> str:
        """File of a finished cell."""
        return f"{self.stem}.parquet"

    @property
    def failed(self) -> str:
        """File of a failed cell."""
        return f"{self.stem}.failed.json"


@dataclass(frozen=True)
class CellInfo:
    """How a cell went."""

    subject: str
    measure: str
    fingerprint: str
    status: str
    started: str
    seconds: float
    peak_memory_bytes: int
    peak_gpu_memory_bytes: int = 0
    error: str | None = None
    traceback: str | None = None


def write_cell(folder: Folder, key: CellKey, info: CellInfo, table: pd.DataFrame | None) -> None:
    """Write a finished cell (a Parquet file that carries its own record) or a failed one."""
    record = asdict(info)
    if table is None:
        folder.write(key.failed, json.dumps(record, indent=1).encode())
        return
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), _KEY: json.dumps(record).encode()})
    folder.write(key.done, parquet_bytes(arrow))
    folder.remove(key.failed)


def read_cell(folder: Folder, name: str) -> tuple[CellInfo, pd.DataFrame | None]:
    """Read a cell back; a damaged file is an error that names it."""
    try:
        data = folder.read(name)
        if name.endswith(".failed.json"):
            return CellInfo(**json.loads(data)), None
        arrow = pq.read_table(io.BytesIO(data))
        return CellInfo(**json.loads(arrow.schema.metadata[_KEY])), arrow.to_pandas()
    except (pa.ArrowInvalid, OSError, ValueError, KeyError, TypeError) as error:
        raise AssayError(
            f"{folder.path(name)} is damaged ({str(error).splitlines()[0]}): delete it and run the plan again"
        ) from error


def parquet_bytes(table: Any) -> bytes:
    """A table as Parquet; the same table gives the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
