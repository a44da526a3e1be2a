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

from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder

_INFO, _SUMMARY = b"assay.info", b"assay.summary"
FOLDER = "cells"


def file_name(name: str) -> str:
    """A name as part of a file name: nothing that could lead elsewhere."""
    return re.sub(r"[^\w.+-]+", "_", name)[:60].lstrip(".") or "_"


@dataclass(frozen=True)
class CellKey:
    """Which cell: names for people, a fingerprint for certainty."""

    subject: str
    measure: str
    fingerprint: str

    @property
    def stem(self) -> str:
        """File name without suffix."""
        return f"{FOLDER}/{file_name(self.subject)}--{file_name(self.measure)}--{self.fingerprint[:16]}"

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


@dataclass(frozen=True)
class CellTables:
    """What a cell found: the measure's table and its own summary of it."""

    table: pa.Table
    summary: pa.Table

    @classmethod
    def of(cls, table: pd.DataFrame, summary: pd.DataFrame) -> CellTables:
        """Convert, with an error for what cannot be kept."""
        for frame in (table, summary):
            if not isinstance(frame, pd.DataFrame) or frame.empty:
                raise AssayError("the measure returned no rows")
            if "subject" in frame.columns:
                raise AssayError("the measure's table has a column 'subject', which the run adds itself: rename it")
        return cls(*(pa.Table.from_pandas(frame, preserve_index=False) for frame in (table, summary)))


def write_cell(folder: Folder, key: CellKey, info: CellInfo, found: CellTables | None) -> None:
    """Write a finished cell (a Parquet file that carries its summary and its record) or a failed one."""
    record = json.dumps(asdict(info), indent=1).encode()
    if found is None:
        folder.write(key.failed, record)
        return
    extra = {_INFO: record, _SUMMARY: parquet_bytes(found.summary)}
    folder.write(key.done, parquet_bytes(found.table.replace_schema_metadata(_metadata(found.table) | extra)))
    folder.remove(key.failed)


def read_cell(folder: Folder, name: str) -> tuple[CellInfo, CellTables | None]:
    """Read a cell back; a damaged file is an error that names it."""
    try:
        data = folder.read(name)
        if name.endswith(".failed.json"):
            return CellInfo(**json.loads(data)), None
        table = pq.read_table(io.BytesIO(data))
        metadata = _metadata(table)
        info = CellInfo(**json.loads(metadata.pop(_INFO)))
        summary = pq.read_table(io.BytesIO(metadata.pop(_SUMMARY)))
        return info, CellTables(table.replace_schema_metadata(metadata), summary)
    except (pa.ArrowInvalid, OSError, ValueError, KeyError, TypeError) as error:
        raise AssayError(
            f"{folder.path(name)} is damaged ({first_line(error)}): delete it and run the plan again"
        ) from error


def _metadata(table: pa.Table) -> dict[bytes, bytes]:
    return dict(table.schema.metadata or {})


def parquet_bytes(table: Any) -> bytes:
    """A table as Parquet; the same table gives the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
