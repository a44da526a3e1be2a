"""Columns of a CSV file, with the line of each record, so that an error can name it."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.broad.data.dataset import Array
from assay.core.errors import AssayError, first_line, nearest
from assay.core.reading import is_file, require_room


def read_columns(path: Path, columns: Sequence[str]) -> tuple[list[int], dict[str, list[str]]]:
    """Read columns of a CSV file as they stand in it, and the line on which each record begins."""
    if not is_file(path):
        raise AssayError(f"reviews: {path} is not a file")
    lines: list[int] = []
    cells: dict[str, list[str]] = {column: [] for column in columns}
    line = 1
    try:
        require_room(path, table=True)
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
            reader = csv.reader(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""), strict=True)
            header = next(reader, [])
            for column in columns:
                if column not in header:
                    raise AssayError(f"{path}, line 1: there is no column {column!r}{nearest(column, header)}")
            places = [(cells[column].append, header.index(column)) for column in cells]
            line = reader.line_num + 1
            for record in reader:
                if record:
                    if len(record) != len(header):
                        raise AssayError(f"{path}, line {line}: {len(record)} cells under {len(header)} column names")
                    lines.append(line)
                    for append, place in places:
                        append(record[place])
                line = reader.line_num + 1
    except (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise AssayError(f"{path} cannot be read past line {line} ({first_line(error)})") from error
    if not lines:
        raise AssayError(f"{path} holds no reviews, only {'a header' if header else 'nothing'}")
    return lines, cells


def number(names: Sequence[str]) -> Array:
    """Number names in the order in which they first appear.

    >>> number(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)
