"""Run: a folder with everything a command produced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa

from assay.core.errors import AssayError, nearest
from assay.core.folder import Folder
from assay.core.notebook import facts_as_html
from assay.core.page import Page
from assay.core.plot import Plot
from assay.core.showing import the_report
from assay.runs.cells import FOLDER, CellInfo, CellKey, CellTables, read_cell
from assay.runs.differences import Differences
from assay.runs.evidence import read_evidence
from assay.runs.manifest import MANIFEST, Manifest
from assay.stats.evidence import Evidence


@dataclass(frozen=True)
class Outcome:
    """What one call of `evaluate` did: how many cells were there already, were measured, and failed.

    >>> print(Outcome(kept=3, measured=1, failed=0))
    3 cells kept, 1 measured, 0 failed
    """

    kept: int
    measured: int
    failed: int

    def __str__(self) -> str:
        return f"{self.kept} cell{'' if self.kept == 1 else 's'} kept, {self.measured} measured, {self.failed} failed"


def _why_no_run(folder: Folder) -> str:
    """Why a folder without a manifest cannot be opened, and what to do, as the end of a sentence about it."""
    if not folder.exists():
        return "does not exist: give the folder of a run"
    if folder.exists(FOLDER):
        return f"has cells but no {MANIFEST}: run its plan again, which writes it anew and keeps the cells"
    return f"is not a run: it has no {MANIFEST}"


class Run:
    """What was measured of some networks, read from the folder of a run: tables, failures, plots, the report.

    ``run.table("straightness")`` is the table of a measure over all subjects, ``run.summary(…)`` the short
    one, ``run.failures`` what went wrong. ``run.plot(…)`` draws a measure, ``run.compare(a, b)`` says in what two
    networks differ, and ``run.report()`` writes the whole page; a notebook shows what they return. Where `evaluate`
    returned it, ``run.outcome`` says how many cells were measured; it is None for a run that was opened.

    Args:
        folder: The folder of the run, or any URL that fsspec can read.
        outcome: What the call of `evaluate` that made it did.
    """

    def __init__(self, folder: Folder | str | Path, outcome: Outcome | None = None) -> None:
        self.folder = folder if isinstance(folder, Folder) else Folder(str(folder))
        self.outcome = outcome
        if not self.folder.exists(MANIFEST):
            raise AssayError(f"{self.folder.url} {_why_no_run(self.folder)}")

    def __repr__(self) -> str:
        return f"Run({self.folder.url!r}, {self.manifest.status})"

    def _repr_html_(self) -> str:
        m = self.manifest
        facts = {
            "status": m.status,
            "networks": ", ".join(m.subjects),
            "measures": ", ".join(m.measures),
            "cells": f"{self.done} of {len(self.keys)} done",
        }
        return facts_as_html(f"Run {self.path}", facts)

    @property
    def path(self) -> str:
        """The path of the folder of the run."""
        return self.folder.path()

    @cached_property
    def manifest(self) -> Manifest:
        """What was asked, by which code, on which machine."""
        return Manifest.read(self.folder)

    @property
    def measures(self) -> list[str]:
        """The labels of the measures of the run, as its tables and plots are asked for."""
        return list(self.manifest.measures)

    @property
    def subjects(self) -> list[str]:
        """The names of the networks of the run."""
        return list(self.manifest.subjects)

    @property
    def keys(self) -> list[CellKey]:
        """The cells the plan asked for, in order."""
        return list(self.manifest.cells)

    @cached_property
    def _files(self) -> list[tuple[CellKey, str]]:
        """Every cell of the manifest that is there, done or failed, with its file."""
        present = set(self.folder.names(FOLDER, ""))
        return [(key, name) for key in self.keys for name in (key.done, key.failed) if name in present]

    @cached_property
    def cells(self) -> list[CellInfo]:
        """How each cell went; those not done yet are absent."""
        return [read_cell(self.folder, key, name)[0] for key, name in self._files]

    @property
    def failures(self) -> list[CellInfo]:
        """The cells that failed, each with its error and traceback."""
        return [read_cell(self.folder, key, name)[0] for key, name in self._files if name == key.failed]

    @property
    def done(self) -> int:
        """How many cells are done."""
        return sum(name == key.done for key, name in self._files)

    def table(self, measure: str) -> pd.DataFrame:
        """All rows of a measure, over all subjects that are done."""
        return self._joined(measure, lambda tables: tables.table)

    def summary(self, measure: str) -> pd.DataFrame:
        """The measure's own short table, over all subjects that are done."""
        return self._joined(measure, lambda tables: tables.summary)

    def evidence(self, measure: str) -> dict[str, list[Evidence]]:
        """The numbers by which networks are compared under a measure, by subject, of all subjects that are done."""
        self._require(measure)
        return {
            subject: [] if tables.evidence is None else read_evidence(tables.evidence)
            for subject, tables in self._tables(measure)
        }

    def plot(self, measure: str | None = None) -> Plot:
        """Draw a measure of all subjects that are done, with the charts that the report has of it.

        Args:
            measure: Label of the measure; may be left out where the run has one.

        Returns:
            A figure that a notebook shows; ``plot.save("curvature.pdf")`` writes it, ``plot.figure`` is matplotlib's.

        Example:
            ```python
            run = assay.evaluate(networks, [assay.Straightness(clips), assay.Margins(data)], "runs/mine")
            run.plot("straightness").save("straightness.pdf")
            ```
        """
        if measure is None and len(self.measures) == 1:
            measure = self.measures[0]
        if measure is None:
            raise AssayError(f"name the measure to plot, of: {', '.join(self.measures)}")
        self._require(measure)
        return the_report().plot_run(self, measure)

    def compare(self, a: str | None = None, b: str | None = None) -> Differences:
        """In what two networks of the run differ, or two recipes: how far, and how surely.

        Every number that both have is compared in pairs, on the same clips or inputs. A difference has two intervals:
        one over stimuli, which is about these very networks, and one over stimuli and seeds of the training, which is
        about how they were made (see `Differences`). Intervals of a kind hold together: of all that is called clear,
        anything is wrong in at most 5 % of comparisons.

        Args:
            a: Name of a network, or of a recipe that several networks share (``Subject(recipe=…)``), which stands for
                their mean; may be left out, with ``b``, where the run has two.
            b: Name of another.

        Returns:
            The differences: a table, sentences, and what a notebook shows of both.

        Example:
            ```python
            differences = run.compare("standard", "robust")
            print(differences)       # in sentences, the surest first
            differences.table        # every number, as a pandas table
            ```
        """
        differences: Differences = the_report().compare_networks(self, a, b)
        return differences

    def report(self, path: str | Path | None = None) -> Page:
        """Write the report, one self-contained page that opens without a network.

        Args:
            path: The file to write; by default ``report.html`` in the folder of the run.

        Returns:
            The page, which a notebook shows in a frame; ``page.path`` says where it is.

        Example:
            ```python
            run.report()                      # beside the cells of the run
            run.report("for_a_colleague.html")
            ```
        """
        return the_report().report_page(self, path)

    def _require(self, measure: str) -> None:
        if measure not in self.measures:
            raise AssayError(f"this run has no measure {measure!r}{nearest(measure, self.measures)}")

    def _joined(self, measure: str, part: Callable[[CellTables], pa.Table]) -> pd.DataFrame:
        """Straight from the cells, so that it is what the manifest says, however the run ended."""
        self._require(measure)
        frames = []
        for subject, tables in self._tables(measure):
            frame = part(tables).to_pandas()
            frame.insert(0, "subject", subject)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def _tables(self, measure: str) -> list[tuple[str, CellTables]]:
        """The tables of one measure, kept from one call to the next: a report reads them several times."""
        if measure not in self._read:
            names = [(key, name) for key, name in self._files if key.measure == measure and name == key.done]
            cells = [(key.subject, read_cell(self.folder, key, name)[1]) for key, name in names]
            self._read[measure] = [(subject, tables) for subject, tables in cells if tables is not None]
        return self._read[measure]

    @cached_property
    def _read(self) -> dict[str, list[tuple[str, CellTables]]]:
        return {}
