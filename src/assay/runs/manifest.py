"""The manifest: what was run, by which code, on which machine, with which arguments."""

from __future__ import annotations

import functools
import json
import logging
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.reading import reading
from assay.core.records import record_of
from assay.runs.cells import FOLDER, CellKey

log = logging.getLogger(__name__)

FORMAT = 2
"""Version of the run folder. 1, without a number, also held joined tables and the records of all cells."""
MANIFEST = "manifest.json"
PACKAGES = ("assay", "torch", "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "pillow", "av", "ray")


@dataclass(frozen=True)
class SubjectRecord:
    """A subject as the manifest describes it."""

    network: str
    fingerprint: str
    preprocess: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    channels_last: bool = False
    recipe: str = ""


@dataclass(frozen=True)
class MeasureRecord:
    """A measure as the manifest describes it: its name, its settings, and which of them are not at their default."""

    measure: str
    value: str = ""
    quantity: str = ""
    higher_is: str = ""
    code_version: str = ""
    fingerprint: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    defaulted: list[str] = field(default_factory=list)


@dataclass
class Manifest:
    """Everything about a run but its results."""

    status: str
    started: str
    ended: str | None = None
    seed: int = 0
    ray: bool | str = False
    subjects: dict[str, SubjectRecord] = field(default_factory=dict)
    measures: dict[str, MeasureRecord] = field(default_factory=dict)
    cells: list[CellKey] = field(default_factory=list)
    plan: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    git: dict[str, Any] | None = None
    command: list[str] = field(default_factory=list)
    hardware: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"format": self.format, **{k: v for k, v in asdict(self).items() if k != "format"}}

    def write(self, folder: Folder) -> None:
        """Write it into the folder of a run."""
        folder.write(MANIFEST, (json.dumps(self.to_json(), indent=1, default=str) + "\n").encode())

    @classmethod
    def read(cls, folder: Folder) -> Manifest:
        """Read that of a run; one of an older format is understood, one of a newer format is an error that says so."""
        data = folder.read_json(MANIFEST, _ANEW)
        with reading(folder.path(MANIFEST), remedy=_ANEW):
            if not isinstance(data, dict):
                raise TypeError("it is no mapping")
            _require_known_format(data.get("format", 1), folder)
            subjects = {
                name: record_of(SubjectRecord, {"network": record.get("class", ""), **record})
                for name, record in data["subjects"].items()
            }
            measures = {label: record_of(MeasureRecord, record) for label, record in data["measures"].items()}
            cells = [record_of(CellKey, cell) for cell in data["cells"]]
            plain = {**data, "format": data.get("format", 1)}
            manifest = record_of(cls, plain | {name: type(plain[name])() for name in _OF_A_RUN})
            return replace(manifest, subjects=subjects, measures=measures, cells=cells)

    @classmethod
    def read_if_there(cls, folder: Folder) -> Manifest | None:
        """Read what an earlier call left in the folder; None where there is nothing, or nothing whole, of assay's.

        A file of that name which is not the manifest of a run is an error, because a run would overwrite it.
        """
        if not folder.exists(MANIFEST):
            return None
        try:
            data = json.loads(folder.read(MANIFEST))
        except (ValueError, RecursionError):  # cut short: assay's own if it lies beside the cells of a run
            ours = folder.exists(FOLDER)
        else:
            ours = isinstance(data, dict) and data.keys() >= _OF_A_RUN
            if ours:
                _require_known_format(data.get("format", 1), folder)
        if not ours:
            raise AssayError(
                f"run={folder.url!r} holds a {MANIFEST} that is not that of a run, and would be overwritten: choose "
                "another folder"
            )
        try:
            return cls.read(folder)
        except AssayError:
            log.warning("%s is damaged and is written anew; cells that are done are kept", folder.path(MANIFEST))
            return None


_OF_A_RUN = {"subjects", "measures", "cells"}
_ANEW = "run the plan again, which writes it anew; cells that are done are kept"


def _require_known_format(number: Any, folder: Folder) -> None:
    if type(number) is not int or number < 1:
        raise AssayError(f"{folder.path(MANIFEST)} has format={number!r}, which is none of a run: delete or move it")
    if number > FORMAT:
        raise AssayError(
            f"{folder.path(MANIFEST)} was written by a newer assay (format {number}; this one knows up to {FORMAT}): "
            "update assay, or choose another folder"
        )


def now() -> str:
    """UTC time, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def environment() -> dict[str, Any]:
    """Versions, hardware and the state of the code in the working folder."""
    import torch

    return {
        "python": platform.python_version(),
        "packages": {name: v for name in PACKAGES if (v := _version(name))},
        "git": _git(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "hardware": {
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": _memory(),
            "gpus": _gpus(),
            "torch_threads": torch.get_num_threads(),
        },
    }


def _gpus() -> list[str]:
    """The names of the GPUs; none where CUDA cannot be used, as in a process that was forked from one that uses it."""
    import torch

    try:
        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except RuntimeError:
        return []


@functools.cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Commit and dirty flag of the repository the command was given in, if it is one."""

    def git(*words: str) -> str:
        # Without locks: to look at a repository must not disturb who works in it, whatever becomes of this process.
        command = ["git", "--no-optional-locks", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    if sys.platform == "linux":
        with open("/proc/cpuinfo") as info:  # noqa: PTH123
            for line in info:
                if line.lower().startswith(("model name", "cpu model")):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
