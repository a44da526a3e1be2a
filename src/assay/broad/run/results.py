"""Results of an evaluation on disk: one file for each fold of each run, not written again without need."""

from __future__ import annotations

import io
import json
import logging
import lzma
import shutil
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from assay.broad.data.dataset import Array
from assay.core.csv_files import read_table, to_csv
from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder
from assay.core.reading import reading
from assay.core.records import record_of

log = logging.getLogger(__name__)
# What is raised where the bytes of a file, once read, are no archive of arrays, or one of other arrays. Changed bytes
# may ask for any kind of compression or for a password, so there are many.
_DAMAGE = (
    EOFError, KeyError, MemoryError, OSError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error,
    lzma.LZMAError,
)  # fmt: skip
DONE = ("done", "non-conforming", "pre-trained")  # statuses whose predictions count
STATUSES = (
    *DONE, "failed", "timeout", "out of memory", "invalid", "peeked", "learned at test time", "not applicable",
    "missing",
)  # fmt: skip
DAMAGED = "its manifest or a table may be damaged: run it again, which writes them anew; runs that are done are kept"
CHECKS = ("team", "task", "requirement", "status", "what", "system")  # columns of the table of conformance


@dataclass(frozen=True)
class FoldInfo:
    """A record of how one fold went.

    Args:
        hash: Hash of everything that the predictions depend on.
        chosen: Settings that tuning chose for each label.
        validation: The metric on the validation instances for each label.
        warnings: What a reader should know (constant classes, clipped predictions, …).
        seconds: Time that the fold took; recorded, not ranked.
    """

    hash: str
    chosen: list[dict[str, Any]]
    validation: list[float | None]
    warnings: list[str]
    seconds: float


@dataclass(frozen=True)
class RunRecord:
    """A record of how one run went.

    Args:
        task: Name of the task.
        run: Key of the run, such as ``6s``.
        status: One of `STATUSES`.
        reason: Why the status is not simply "done".
        partition: Hash of the partition.
        stages: Hashes of the output of each stage (features, representation), to find where two sites begin to differ.
        modules: The modules that the run was made of, with source hashes.
        seconds: Time that each stage took.
        layers: Names of the learner's layers.
        learner: File of the learner as it was after learning.
        traceback: Traceback of the exception that ended the run, unless its message says enough.
        peak_bytes: The most memory that the run's process took; recorded, not ranked.
        machine: Name of the machine that did the run, with the node of a cluster.
        began, ended: Time of beginning and end, in seconds since 1970.
    """

    task: str
    run: str
    status: str
    reason: str = ""
    partition: str = ""
    stages: dict[str, str] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    learner: str = ""
    traceback: str = ""
    peak_bytes: int = 0
    machine: str = ""
    began: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True)
class _Manifest:
    """What every manifest of an evaluation has; it has more."""

    tasks: list[dict[str, Any]]
    teams: list[dict[str, Any]]
    protocol: dict[str, Any]
    written: str = ""


@dataclass(frozen=True)
class _Task:
    name: str
    modality: str
    labels: list[str]
    partition: str
    runs: list[str]


@dataclass(frozen=True)
class _Team:
    letter: str
    name: str


@dataclass(frozen=True)
class _Protocol:
    k: int
    margin: dict[str, float] = field(default_factory=dict)
    bootstrap: int = 0


class Results:
    """The folder of an evaluation: writes and reads what is kept there."""

    def __init__(self, url: str) -> None:
        self.folder = Folder(url)

    def write_fold(self, task: str, run: str, fold: int, arrays: dict[str, Array], info: FoldInfo) -> None:
        """Write the predictions (instances × labels) and raw margins of one fold."""
        buffer = io.BytesIO()
        meta = np.frombuffer(json.dumps(asdict(info)).encode(), dtype=np.uint8)
        content: dict[str, Any] = {"info": meta, **arrays}
        np.savez_compressed(buffer, **content)
        self.folder.write(_fold_name(task, run, fold), buffer.getvalue())

    def read_fold(self, task: str, run: str, fold: int) -> tuple[dict[str, Array], FoldInfo] | None:
        """Read a fold; None if there is none, or if it is damaged (a warning says so, and the fold is done anew)."""
        name = _fold_name(task, run, fold)
        if not self.folder.exists(name):
            return None
        data = self.folder.read(name)
        try:
            # Not np.load, which would take what is no archive for a pickle.
            with np.lib.npyio.NpzFile(io.BytesIO(data)) as archive:
                info = record_of(FoldInfo, json.loads(archive["info"].tobytes()))
                return {k: archive[k] for k in archive.files if k != "info"}, info
        except _DAMAGE as error:
            log.warning("%s is damaged (%s): the fold is done anew", self.folder.path(name), first_line(error))
            return None

    def write_run(self, record: RunRecord) -> None:
        """Write the record of a run."""
        self.folder.write(f"{_run_folder(record.task, record.run)}/run.json", as_json(asdict(record)))

    def read_run(self, task: str, run: str) -> RunRecord:
        """Read the record of a run; its status is ``missing`` if there is no record, or if that is damaged."""
        name = f"{_run_folder(task, run)}/run.json"
        if not self.folder.exists(name):
            return RunRecord(task, run, "missing", "not run yet")
        data = self.folder.read(name)
        try:
            return record_of(RunRecord, json.loads(data))
        except (TypeError, ValueError, RecursionError) as error:
            log.warning("%s is damaged (%s): the run is done anew", self.folder.path(name), first_line(error))
            return RunRecord(task, run, "missing", "its record is damaged")

    def write_truth(self, task: str, targets: Array, groups: Array | None, ids: tuple[str, ...]) -> None:
        """Write the truth about the test instances: for the analysis, never for a system."""
        buffer = io.BytesIO()
        content: dict[str, Any] = {"targets": targets, "ids": np.array(ids)}
        np.savez_compressed(buffer, **content | ({} if groups is None else {"groups": groups}))
        name = f"truth/{safe(task)}.npz"
        if not self.folder.exists(name) or self.folder.read(name) != buffer.getvalue():
            self.folder.write(name, buffer.getvalue())

    def remove_truth(self) -> None:
        """Remove the truth about the test instances of all tasks, while systems run."""
        for name in self.folder.names("truth", ".npz"):
            self.folder.remove(name)

    def read_truth(self, task: str) -> tuple[Array, Array | None, tuple[str, ...]]:
        """Read targets, groups and ids of the test instances."""
        name = f"truth/{safe(task)}.npz"
        if not self.folder.exists(name):
            raise AssayError(f"{self.folder.url} has no truth of task {task!r}: run the evaluation first")
        data = self.folder.read(name)
        with (
            reading(self.folder.path(name), remedy="run the evaluation again, which writes it anew"),
            np.lib.npyio.NpzFile(io.BytesIO(data)) as archive,
        ):
            groups = archive["groups"] if "groups" in archive.files else None
            return archive["targets"], groups, tuple(archive["ids"].tolist())

    def predictions(self, task: str, run: str, folds: int) -> Array | None:
        """The predictions of a run, folds × instances × labels; None unless all folds are there and of one plan."""
        read = [self.read_fold(task, run, i) for i in range(1, folds + 1)]
        complete = [fold for fold in read if fold is not None]
        if len(complete) < len(read):
            return None
        if len({info.hash for _, info in complete}) > 1:  # some are of an earlier plan
            return None
        return np.stack([arrays["predictions"] for arrays, _ in complete])

    def write_checks(self, checks: list[dict[str, str]]) -> None:
        """Write the results of checking the systems' conformance, one check a row, for the report."""
        table = pd.DataFrame(checks, columns=list(CHECKS))
        self.folder.write("conformance.csv", to_csv(table))

    def read_checks(self) -> pd.DataFrame | None:
        """Read the table that `write_checks` wrote; None if the systems were not checked."""
        if not self.folder.exists("conformance.csv"):
            return None
        how = {"dtype": str, "keep_default_na": False}
        return read_table(self.folder, "conformance.csv", CHECKS, "delete it, and check the systems again", **how)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest: what was evaluated, where and when."""
        self.folder.write("manifest.json", as_json(manifest))

    def read_manifest(self) -> dict[str, Any]:
        """Read the manifest."""
        if not self.folder.exists("manifest.json"):
            raise AssayError(f"{self.folder.url} is not the folder of a broad evaluation: it has no manifest.json")
        remedy = "run the evaluation again, which writes it anew; runs that are done are kept"
        manifest: dict[str, Any] = self.folder.read_json("manifest.json", remedy)
        with reading(self.folder.path("manifest.json"), remedy=remedy):
            shape = record_of(_Manifest, manifest)
            for task in shape.tasks:
                record_of(_Task, task)
            for team in shape.teams:
                record_of(_Team, team)
            record_of(_Protocol, shape.protocol)
        return manifest

    def sweep(self) -> None:
        """Remove what drivers that were killed left behind; for the one that holds the folder's lock.

        That is what they were about to write, and tasks with their training labels as earlier versions wrote them.
        """
        place = Path(self.folder.path())
        for left in [*place.rglob(".tmp-*"), *(place / "work").glob("*.view")]:
            left.unlink(missing_ok=True)
        shutil.rmtree(place / "work" / "shown", ignore_errors=True)  # clips on their way to workers


def safe(task: str) -> str:
    """Turn the name of a task into a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in task)


def _run_folder(task: str, run: str) -> str:
    return f"runs/{safe(task)}/{safe(run)}"


def _fold_name(task: str, run: str, fold: int) -> str:
    return f"{_run_folder(task, run)}/fold{fold:02d}.npz"


def as_json(value: Any) -> bytes:
    """Format a value as indented JSON with sorted keys."""
    return (json.dumps(value, indent=1, sort_keys=True, default=str) + "\n").encode()
