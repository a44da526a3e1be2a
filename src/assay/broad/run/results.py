"""What an evaluation leaves behind: one file for each fold of each run, never written twice for nothing."""

from __future__ import annotations

import io
import json
import logging
import lzma
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from assay.broad.data.dataset import Array
from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder

log = logging.getLogger(__name__)
# What is raised where the bytes of a file, once read, are no archive of arrays, or one of other arrays. Changed bytes
# may ask for any kind of compression or for a password, so there are many.
_DAMAGE = (
    EOFError, KeyError, OSError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
DONE = ("done", "non-conforming", "pre-trained")  # statuses whose predictions count
STATUSES = (
    *DONE, "failed", "timeout", "invalid", "peeked", "learned at test time", "not applicable", "missing",
)  # fmt: skip
CHECKS = ("team", "task", "requirement", "status", "what", "system")  # columns of the table of conformance


@dataclass(frozen=True)
class FoldInfo:
    """How one fold went.

    Args:
        hash: Content of everything its predictions depend on.
        chosen: Settings tuned for each label.
        validation: The metric on the validation instances for each label.
        warnings: What a reader should know (constant classes, clipped predictions, …).
        seconds: Recorded, not ranked.
    """

    hash: str
    chosen: list[dict[str, Any]]
    validation: list[float | None]
    warnings: list[str]
    seconds: float


@dataclass(frozen=True)
class RunRecord:
    """How one run went.

    Args:
        task: Which task.
        run: Which run, as ``6s``.
        status: One of `STATUSES`.
        reason: Why it is not simply done.
        partition: Hash of the partition.
        stages: Hashes of what each stage gave (features, representation), to find where two sites part.
        modules: What it was made of, with source hashes.
        seconds: By stage.
        layers: Of the learner.
        learner: File of the learner as it was after learning.
        traceback: Of what it ended in, if that was no sentence.
        peak_bytes: Memory its process took at most; recorded, not ranked.
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


class Results:
    """The folder of an evaluation."""

    def __init__(self, url: str) -> None:
        self.folder = Folder(url)

    def write_fold(self, task: str, run: str, fold: int, arrays: dict[str, Array], info: FoldInfo) -> None:
        """Predictions (instances × labels) and raw margins of one fold."""
        held = io.BytesIO()
        meta = np.frombuffer(json.dumps(asdict(info)).encode(), dtype=np.uint8)
        kept: dict[str, Any] = {"info": meta, **arrays}
        np.savez_compressed(held, **kept)
        self.folder.write(_fold_name(task, run, fold), held.getvalue())

    def read_fold(self, task: str, run: str, fold: int) -> tuple[dict[str, Array], FoldInfo] | None:
        """What was written; None if nothing was, or if it is damaged: a warning says so, and it is done anew."""
        name = _fold_name(task, run, fold)
        if not self.folder.exists(name):
            return None
        data = self.folder.read(name)
        try:
            with np.lib.npyio.NpzFile(io.BytesIO(data)) as kept:  # np.load would take what is no archive for a pickle
                info = FoldInfo(**json.loads(kept["info"].tobytes()))
                return {k: kept[k] for k in kept.files if k != "info"}, info
        except _DAMAGE as error:
            log.warning("%s is damaged (%s): the fold is done anew", self.folder.path(name), first_line(error))
            return None

    def write_run(self, record: RunRecord) -> None:
        """How a run went."""
        self.folder.write(f"{_run_folder(record.task, record.run)}/run.json", as_json(asdict(record)))

    def read_run(self, task: str, run: str) -> RunRecord:
        """How a run went; ``missing`` if nothing is known of it."""
        name = f"{_run_folder(task, run)}/run.json"
        if not self.folder.exists(name):
            return RunRecord(task, run, "missing", "not run yet")
        return RunRecord(**json.loads(self.folder.read(name)))

    def write_truth(self, task: str, targets: Array, groups: Array | None, ids: tuple[str, ...]) -> None:
        """What the test instances really are: for the analysis, never for a system."""
        held = io.BytesIO()
        kept: dict[str, Any] = {"targets": targets, "ids": np.array(ids)}
        np.savez_compressed(held, **kept | ({} if groups is None else {"groups": groups}))
        name = f"truth/{safe(task)}.npz"
        if not self.folder.exists(name) or self.folder.read(name) != held.getvalue():
            self.folder.write(name, held.getvalue())

    def read_truth(self, task: str) -> tuple[Array, Array | None, tuple[str, ...]]:
        """Targets, groups and ids of the test instances."""
        name = f"truth/{safe(task)}.npz"
        if not self.folder.exists(name):
            raise AssayError(f"{self.folder.url} has no truth of task {task!r}: run the evaluation first")
        with np.load(io.BytesIO(self.folder.read(name)), allow_pickle=False) as kept:
            groups = kept["groups"] if "groups" in kept.files else None
            return kept["targets"], groups, tuple(kept["ids"].tolist())

    def predictions(self, task: str, run: str, folds: int) -> Array | None:
        """Folds × instances × labels, if all folds are there."""
        found = [self.read_fold(task, run, i) for i in range(1, folds + 1)]
        if any(f is None for f in found):
            return None
        if len({f[1].hash for f in found if f is not None}) > 1:  # some are of an earlier plan
            return None
        return np.stack([f[0]["predictions"] for f in found if f is not None])

    def write_checks(self, checks: list[dict[str, str]]) -> None:
        """What came of checking the systems' conformance, one check a row, for the report."""
        table = pd.DataFrame(checks, columns=list(CHECKS))
        self.folder.write("conformance.csv", table.to_csv(index=False, lineterminator="\n").encode())

    def read_checks(self) -> pd.DataFrame | None:
        """What `write_checks` wrote; None if the systems were not checked."""
        if not self.folder.exists("conformance.csv"):
            return None
        return pd.read_csv(io.BytesIO(self.folder.read("conformance.csv")), dtype=str, keep_default_na=False)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """What was evaluated, where and when."""
        self.folder.write("manifest.json", as_json(manifest))

    def read_manifest(self) -> dict[str, Any]:
        """The manifest."""
        if not self.folder.exists("manifest.json"):
            raise AssayError(f"{self.folder.url} is not the folder of a broad evaluation: it has no manifest.json")
        found: dict[str, Any] = json.loads(self.folder.read("manifest.json"))
        return found


def safe(task: str) -> str:
    """A task's name as a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in task)


def _run_folder(task: str, run: str) -> str:
    return f"runs/{safe(task)}/{safe(run)}"


def _fold_name(task: str, run: str, fold: int) -> str:
    return f"{_run_folder(task, run)}/fold{fold:02d}.npz"


def as_json(value: Any) -> bytes:
    """Readable JSON."""
    return (json.dumps(value, indent=1, sort_keys=True, default=str) + "\n").encode()
