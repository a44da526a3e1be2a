"""Cells: one subject under one measure, keyed by content, in one file."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from assay.core.errors import AssayError, shown
from assay.core.folder import Folder
from assay.core.names import file_name, writable
from assay.core.reading import reading
from assay.core.records import record_of
from assay.runs.evidence import evidence_table
from assay.stats.evidence import Evidence

_INFO, _SUMMARY, _PROBE, _EVIDENCE = b"assay.info", b"assay.summary", b"assay.probe", b"assay.evidence"
_DIGEST, _NO_DIGEST = b"assay.digest", b"assay.digest".ljust(64, b"0")
FOLDER = "cells"
_DEAR_S = 0.1  # a quicker cell is not worth waiting for the disk: after a power failure it is measured anew
# Kinds of columns that pandas has and few programs read: they are kept as the words that they show.
_NOT_KEPT = (pd.CategoricalDtype, pd.PeriodDtype, pd.IntervalDtype)
DONE, FAILED = ".parquet", ".failed.json"


@dataclass(frozen=True)
class CellKey:
    """Which cell: names for people, a fingerprint for certainty."""

    subject: str
    measure: str
    fingerprint: str

    @property
    def stem(self) -> str:
        """File name without suffix."""
        return f"{FOLDER}/{file_name(self.subject)}--{file_name(self.measure)}--{file_name(self.fingerprint[:16])}"

    @property
    def done(self) -> str:
        """File of a finished cell."""
        return f"{self.stem}{DONE}"

    @property
    def failed(self) -> str:
        """File of a failed cell."""
        return f"{self.stem}{FAILED}"


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
    traceback: str | None = field(default=None, repr=False)

    @classmethod
    def from_json(cls, data: bytes) -> CellInfo:
        """Read a record; fields that a newer version added are passed over."""
        return record_of(cls, json.loads(data))


@dataclass(frozen=True)
class CellTables:
    """The results of a cell: the measure's table, its own summary of it, and the numbers to compare networks by.

    A cell that was written before these were kept has no ``evidence``.
    """

    table: pa.Table
    summary: pa.Table
    evidence: pa.Table | None = None

    @classmethod
    def of(cls, table: pd.DataFrame, summary: pd.DataFrame, evidence: Iterable[Evidence] = ()) -> CellTables:
        """Convert, with an error for what cannot be kept."""
        for frame, made_by in ((table, "the measure"), (summary, "the measure's summary()")):
            require_rows(frame, made_by)
            if "subject" in frame.columns:
                raise AssayError("the measure's table has a column 'subject', which the run adds itself: rename it")
        whole = _as_arrow(table, "the measure")
        short = whole if summary is table else _as_arrow(summary, "the measure's summary()")
        return cls(whole, short, evidence_table(evidence))


def _as_arrow(frame: pd.DataFrame, made_by: str) -> Any:
    """A table as Arrow keeps it: arrays of several axes, and tensors, as lists; words of a few kinds as words."""
    for i, name in enumerate(frame.columns):
        if not isinstance(name, str) or name in frame.columns[:i]:
            remedy = "give each column a name of its own, which is text"
            raise AssayError(f"{made_by} returned a table with the column {shown(name)} at place {i}: {remedy}")
    kept = frame.copy(deep=False)
    for column in frame:
        if isinstance(frame[column].dtype, _NOT_KEPT):
            kept[column] = frame[column].astype(object if frame[column].dtype == "category" else str)
        elif frame[column].dtype == object:
            kept[column] = frame[column].map(_as_list)
    try:
        return pa.Table.from_pandas(kept, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason, remedy = (
            "; ".join(map(str, error.args)),
            "a column holds numbers, words or truth values, or arrays of them",
        )
        raise AssayError(f"{made_by} returned a table that cannot be kept ({reason}): {remedy}") from error


def _as_list(value: Any) -> Any:
    if isinstance(value, str):
        return writable(value)
    several = getattr(value, "ndim", 0) > 0 and not (isinstance(value, np.ndarray) and value.ndim == 1)
    return value.tolist() if several else value


def require_rows(table: Any, made_by: str = "the measure") -> None:
    """Refuse what is no table, or one without rows, by an error that says what was returned instead."""
    if not isinstance(table, pd.DataFrame):
        raise AssayError(f"{made_by} returned {shown(table)}: it must return a pandas DataFrame")
    if table.empty:
        raise AssayError(f"{made_by} returned no rows")


def write_cell(folder: Folder, key: CellKey, info: CellInfo, tables: CellTables | None, probe: bytes = b"") -> None:
    """Write a finished cell (a Parquet file that carries its summary, record and probe) or a failed one."""
    record = json.dumps(asdict(info), indent=1).encode()
    if tables is None:
        folder.write(key.failed, record)
        return
    extra = {_INFO: record, _PROBE: probe}
    if tables.summary is not tables.table:
        extra[_SUMMARY] = _parquet(tables.summary)
    if tables.evidence is not None:
        extra[_EVIDENCE] = _parquet(tables.evidence)
    whole = _parquet(
        tables.table.replace_schema_metadata(_metadata(tables.table.schema) | extra | {_DIGEST: _NO_DIGEST})
    )
    folder.write(key.done, whole.replace(_NO_DIGEST, _digest(whole)), durable=info.seconds > _DEAR_S)


def read_cell(folder: Folder, key: CellKey, name: str) -> tuple[CellInfo, CellTables | None]:
    """Read a cell back, from its file when it is done or when it failed; a damaged file is an error that names it."""
    if name == key.failed:
        data = folder.read(name)
        with reading(folder.path(name), remedy=_ANEW):
            return CellInfo.from_json(data), None
    file, info = _whole(folder, key, remedy=_ANEW)
    with reading(folder.path(name), remedy=_ANEW):
        table = file.read()
        metadata = _metadata(table.schema)
        summary, evidence = (metadata.pop(part, None) for part in (_SUMMARY, _EVIDENCE))
        for part in (_INFO, _PROBE, _DIGEST):
            metadata.pop(part, None)
        table = table.replace_schema_metadata(metadata)
        short = table if summary is None else pq.ParquetFile(io.BytesIO(summary)).read()
        numbers = None if evidence is None else pq.ParquetFile(io.BytesIO(evidence)).read()
        return info, CellTables(table, short, numbers)


def read_probe(folder: Folder, key: CellKey) -> bytes:
    """The answer to the probe that a finished cell keeps, empty where it keeps none; the cell is whole."""
    file, _ = _whole(folder, key)
    return _carried(file).get(_PROBE, b"")


def _whole(folder: Folder, key: CellKey, remedy: str = "") -> tuple[pq.ParquetFile, CellInfo]:
    """The file of a finished cell and its record; an error unless it is whole and its own.

    Parquet does not notice most flipped bits; a cell therefore carries a digest of its file. Cells of before have none.
    """
    data = folder.read(key.done)
    with reading(folder.path(key.done), remedy=remedy):
        file = pq.ParquetFile(io.BytesIO(data))
        metadata = _carried(file)
        digest = metadata.get(_DIGEST)
        if digest is None:
            file.read()  # as far as Parquet itself can tell
        elif not digest or digest != _digest(data.replace(digest, _NO_DIGEST)):
            raise ValueError("it is not as it was written")
        if _INFO not in metadata:
            raise ValueError("it holds no record")
        info = CellInfo.from_json(metadata[_INFO])
        if info.fingerprint != key.fingerprint:
            raise ValueError(f"it is the cell of {info.subject} and {info.measure}, by another key")
        return file, info


_ANEW = "run the plan again, which measures it anew"


def _digest(data: bytes) -> bytes:
    """A hash of a file that has zeros where its digest will be, as many characters."""
    return hashlib.sha256(data).hexdigest().encode()


def _metadata(schema: pa.Schema) -> dict[bytes, bytes]:
    return dict(schema.metadata or {})


def _carried(file: pq.ParquetFile) -> dict[bytes, bytes]:
    """What a file carries beside its table; its schema would tell the metadata as they were before the digest."""
    return dict(file.metadata.metadata or {})


def _parquet(table: Any) -> bytes:
    """A table as Parquet; the same table gives the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
