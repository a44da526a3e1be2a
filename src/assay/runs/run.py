"""Run: a folder with everything a command produced."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import pandas as pd
import pyarrow as pa

from assay.core.errors import AssayError, nearest
from assay.core.folder import Folder
from assay.runs.cells import CellInfo, CellKey, CellTables, file_name, parquet_bytes, read_cell

MANIFEST = "manifest.json"
FOLDERS = {"table": "tables", "summary": "summaries"}


class Run:
    """A run that is there: its manifest, its cells, its tables.

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
    def _found(self) -> list[tuple[CellKey, CellInfo, CellTables | None]]:
        """Every cell of the manifest that is there, done or failed."""
        names = ((key, name) for key in self.keys for name in (key.done, key.failed) if self.folder.exists(name))
        return [(key, *read_cell(self.folder, name)) for key, name in names]

    @property
    def cells(self) -> list[CellInfo]:
        """How each cell went; those not done yet are absent."""
        return [info for _, info, _ in self._found]

    @property
    def failures(self) -> list[CellInfo]:
        """Cells that failed."""
        return [cell for cell in self.cells if cell.status == "failed"]

    def table(self, measure: str) -> pd.DataFrame:
        """All rows of a measure, over all subjects that are done."""
        return self._join(measure, "table")

    def summary(self, measure: str) -> pd.DataFrame:
        """The measure's own short table, over all subjects that are done."""
        return self._join(measure, "summary")

    def _join(self, measure: str, kind: str) -> pd.DataFrame:
        """Straight from the cells, so that it is what the manifest says, however the run ended."""
        if measure not in self.measures:
            raise AssayError(f"this run has no measure {measure!r}{nearest(measure, self.measures)}")
        frames = []
        for key, _, found in self._found:
            if key.measure == measure and found is not None:
                frame = getattr(found, kind).to_pandas()
                frame.insert(0, "subject", key.subject)
                frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def write_tables(self) -> None:
        """One Parquet file per measure for its table and its summary; same rows, same bytes."""
        for measure in self.measures:
            for kind in ("table", "summary"):
                name = f"{FOLDERS[kind]}/{file_name(measure)}.parquet"
                joined = self._join(measure, kind)
                if joined.empty:
                    self.folder.remove(name)
                else:
                    self.folder.write(name, parquet_bytes(pa.Table.from_pandas(joined, preserve_index=False)))
