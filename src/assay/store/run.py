"""Run: a folder with everything a command produced."""

from __future__ import annotations

import io
import json
from functools import cached_property
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import AssayError, nearest
from assay.store.cells import CellInfo, CellKey, parquet_bytes, read_cell
from assay.store.files import Folder

MANIFEST = "manifest.json"


class Run:
    """A run that is there: its manifest, its cells, its tables. Reading only.

    ``run.table("straightness")`` is the table of a measure over all subjects, ``run.summary(…)`` the short
    one, ``run.failures`` what went wrong.
    """

    def __init__(self, folder: Folder | str) -> None:
        self.folder = folder if isinstance(folder, Folder) else Folder(str(folder))
        if not self.folder.exists(MANIFEST):
            raise AssayError(f"{self.folder.url} is not a run: it has no {MANIFEST}")

    def __repr__(self) -> str:
        return f"Run({self.folder.url!r}, {self.manifest.get('status')})"

    @property
    def path(self) -> str:
        """Where it is."""
        return self.folder.path()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was asked, by which code, on which machine."""
        try:
            loaded: dict[str, Any] = json.loads(self.folder.read(MANIFEST))
        except ValueError as error:
            raise AssayError(f"{self.folder.path(MANIFEST)} is damaged ({error})") from error
        return loaded

    @property
    def measures(self) -> list[str]:
        """Labels of its measures."""
        return list(self.manifest["measures"])

    @property
    def keys(self) -> list[CellKey]:
        """The cells the plan asked for, in order."""
        return [CellKey(**cell) for cell in self.manifest["cells"]]

    @cached_property
    def cells(self) -> list[CellInfo]:
        """How each cell went; those not done yet are absent."""
        return [info for key in self.keys if (info := self._info(key)) is not None]

    @property
    def failures(self) -> list[CellInfo]:
        """Cells that failed."""
        return [cell for cell in self.cells if cell.status == "failed"]

    def table(self, measure: str) -> pd.DataFrame:
        """All rows of a measure, over all subjects that are done."""
        return self._read("tables", measure)

    def summary(self, measure: str) -> pd.DataFrame:
        """The measure's own short table, over all subjects that are done."""
        return self._read("summaries", measure)

    def _read(self, kind: str, measure: str) -> pd.DataFrame:
        if measure not in self.measures:
            raise AssayError(f"this run has no measure {measure!r}{nearest(measure, self.measures)}")
        name = f"{kind}/{measure}.parquet"
        if not self.folder.exists(name):
            return pd.DataFrame()
        try:
            table: pd.DataFrame = pq.read_table(io.BytesIO(self.folder.read(name))).to_pandas()
        except (pa.ArrowInvalid, OSError) as error:
            raise AssayError(f"{self.folder.path(name)} is damaged: run the plan again") from error
        return table

    def _info(self, key: CellKey) -> CellInfo | None:
        for name in (key.done, key.failed):
            if self.folder.exists(name):
                return read_cell(self.folder, name)[0]
        return None


def write_tables(folder: Folder, kind: str, label: str, tables: list[tuple[str, pd.DataFrame]]) -> None:
    """One measure's tables of all subjects as one, the subject in the first column; same rows, same bytes."""
    if not tables:
        folder.remove(f"{kind}/{label}.parquet")
        return
    frames = []
    for subject, table in tables:
        frame = table.copy()
        frame.insert(0, "subject", subject)
        frames.append(frame)
    arrow = pa.Table.from_pandas(pd.concat(frames, ignore_index=True), preserve_index=False)
    folder.write(f"{kind}/{label}.parquet", parquet_bytes(arrow))
