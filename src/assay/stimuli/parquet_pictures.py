"""Pictures in Parquet files, as Hugging Face stores data sets: their bytes in one column, their labels in another."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.core.reading import reading
from assay.stimuli.pictures import FORMATS, Array, standard_picture
from assay.stimuli.samples import INPUT_NAMES, LABEL_NAMES
from assay.stimuli.streamed import PictureSource, file_state

_ROWS = 64  # read at a time from a group of rows, which may be large
_GROUP_KEPT = 64 * 2**20  # bytes; a larger group of rows is read again for the next batch


class ParquetPictures(PictureSource):
    """Pictures in a column of Parquet files: bytes of PNG, JPEG and so on, or Hugging Face's ``{bytes, path}``.

    Args:
        files: The files, in order.
        column: The column of the pictures; by default the first with a usual name (``image``, ``img``, …).
    """

    def __init__(self, files: Sequence[Path], column: str | None = None) -> None:
        self.files = tuple(files)
        self.column = _column(self.files[0], column, INPUT_NAMES, "the pictures")
        starts, groups = [0], []
        for place, file in enumerate(self.files):
            about = _opened(file).metadata
            for group in range(about.num_row_groups):
                groups.append((place, group))
                starts.append(starts[-1] + about.row_group(group).num_rows)
        self._starts, self._groups = np.array(starts), groups
        self._last: tuple[int, list[bytes]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def __len__(self) -> int:
        return int(self._starts[-1])

    def name(self, number: int) -> str:
        """The file of a picture and its row there."""
        place = self._groups[self._group(number)][0]
        first = next(self._starts[i] for i, (file, _) in enumerate(self._groups) if file == place)
        return f"{self.files[place]}, row {number - first}"

    def pictures(self, numbers: Array) -> list[Image.Image]:
        """Read some pictures; every group of rows that holds some is read once."""
        pictures: dict[int, Image.Image] = {}
        groups = np.searchsorted(self._starts, numbers, side="right") - 1
        for group in np.unique(groups).tolist():
            wanted = sorted(set(numbers[groups == group].tolist()))
            rows = [number - int(self._starts[group]) for number in wanted]
            for number, data in zip(wanted, self._bytes(group, rows), strict=True):
                with reading(self.name(number), "a picture"), Image.open(io.BytesIO(data), formats=FORMATS) as image:
                    image.load()
                    pictures[number] = standard_picture(image)
        return [pictures[number] for number in numbers.tolist()]

    def labels(self, column: str | None = None) -> list[Any]:
        """The labels of all pictures, from a column; by default the first with a usual name (``label``, …)."""
        chosen = _column(self.files[0], column, LABEL_NAMES, "the labels")
        labels: list[Any] = []
        for file in self.files:
            with reading(file, "Parquet"):
                labels += _opened(file).read(columns=[chosen]).column(chosen).to_pylist()
        if any(label is None for label in labels):
            raise AssayError(f"{self.name(labels.index(None))} has no {chosen!r}: give a label to every picture")
        return labels

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the names, the sizes and the times of change of the files, and of the column."""
        return fingerprint(self.column, [(file.name, *file_state(file)) for file in self.files])

    def _group(self, number: int) -> int:
        return int(np.searchsorted(self._starts, number, side="right") - 1)

    def _bytes(self, group: int, rows: list[int]) -> list[bytes]:
        """The bytes of some pictures of a group of rows, which is kept for the next call if it is small."""
        if self._last is not None and self._last[0] == group:
            return [self._last[1][row] for row in rows]
        place, number = self._groups[group]
        opened = _opened(self.files[place])
        small = opened.metadata.row_group(number).total_byte_size <= _GROUP_KEPT
        wanted, cell_of, at = set(rows), {}, 0
        with reading(self.files[place], "Parquet"):
            for batch in opened.iter_batches(_ROWS, row_groups=[number], columns=[self.column]):
                cells = batch.column(0)
                for row in range(len(cells)):
                    if small or at + row in wanted:
                        cell_of[at + row] = cells[row].as_py()
                at += len(cells)
        content = {row: _content(cell, f"{self.files[place]}, {self.column!r}") for row, cell in cell_of.items()}
        if small:
            self._last = group, [content[row] for row in range(at)]
        return [content[row] for row in rows]


def _content(cell: Any, where: str) -> bytes:
    """The bytes of a picture in a cell."""
    data = cell.get("bytes") if isinstance(cell, dict) else cell
    if not isinstance(data, bytes):
        raise AssayError(f"{where} holds {type(data).__name__} and no bytes of pictures: store the pictures themselves")
    return data


def _opened(file: Path) -> Any:
    import pyarrow.parquet as pq

    with reading(file, "Parquet"):
        return pq.ParquetFile(file)


def _column(file: Path, asked: str | None, known: Sequence[str], what: str) -> str:
    there = [str(name) for name in _opened(file).schema_arrow.names]
    if asked is not None and asked not in there:
        raise AssayError(f"{file} has no column {asked!r}{nearest(asked, there)}; it has {', '.join(there)}")
    chosen = asked or next((name for name in known if name in there), None)
    if chosen is None:
        raise AssayError(f"{file} has the columns {', '.join(there)}: name the one with {what}")
    return chosen
