"""Subjects × measures → a run: every pair a cell, done once, here or on a Ray cluster."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from assay.core.arithmetic import Arithmetic
from assay.core.determinism import seeded
from assay.core.errors import AssayError, first_line, optional
from assay.core.fingerprint import fingerprint
from assay.core.folder import Folder
from assay.core.progress import report
from assay.measures.base import Measure
from assay.runs.cells import FOLDER, CellInfo, CellKey, CellTables, write_cell
from assay.runs.manifest import environment, now
from assay.runs.run import MANIFEST, Run
from assay.subject.subject import Subject

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Resources:
    """What one cell needs on a Ray cluster."""

    cpus: float = 1
    gpus: float = 0
    retries: int = 3


def evaluate(
    subjects: Subject | Iterable[Subject],
    measures: Measure | Iterable[Measure] | Mapping[str, Measure],
    run: str | Path,
    *,
    seed: int = 0,
    ray: bool | str = False,
    resources: Resources | None = None,
    plan: Mapping[str, Any] | None = None,
) -> Run:
    """Ask every measure of every subject and keep the answers in a run folder.

    Each (subject, measure) pair is a cell, keyed by the content of the measure's code and settings, the
    stimuli, the subject and the seed. A cell that is already there is not done again, so calling this again
    finishes what an interrupted call left. A cell that raises is recorded with its traceback, and the rest
    goes on; it is tried again the next time.

    Args:
        subjects: Who; names must differ.
        measures: What to ask; give a mapping to name them yourself.
        run: Where: a folder, or any URL fsspec can write to.
        seed: State of torch's random numbers at the start of every cell.
        ray: True for a Ray cluster found or started here, or the address of one.
        resources: What each cell needs on the cluster.
        plan: The plan this came from, for the manifest.

    Returns:
        The run, done except for what failed (see `Run.failures`).

    Example:
        >>> import tempfile, numpy as np, assay
        >>> frames = np.random.default_rng(0).random((5, 1, 8, 8))
        >>> measure = assay.Straightness(assay.stimuli.Sequences.of(noise=frames))
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.ReLU())
        >>> done = evaluate(assay.Subject(net, "net"), measure, tempfile.mkdtemp())
        >>> done.table("straightness")["layer"].tolist()
        ['pixels', '0', '1']
    """
    people = [subjects] if isinstance(subjects, Subject) else list(subjects)
    questions = _labelled(measures)
    for names, what in ((([s.name for s in people]), "subjects"), (list(questions), "measures")):
        if not names:
            raise AssayError(f"no {what} to evaluate")
        if twice := [n for n in names if names.count(n) > 1]:
            raise AssayError(f"two {what} are called {twice[0]!r}: name them apart")
    if not 0 <= seed < 2**63:
        raise AssayError(f"seed={seed} must be a whole number from 0 to 2⁶³ − 1")
    folder = Folder(str(run))
    weights = {subject.name: subject.fingerprint for subject in people}  # hashed once, not once per measure
    cells = {
        CellKey(subject.name, label, cell_fingerprint(weights[subject.name], measure, seed)): (subject, measure)
        for subject in people
        for label, measure in questions.items()
    }
    manifest = {
        "status": "running",
        "started": now(),
        "ended": None,
        "seed": seed,
        "ray": ray if isinstance(ray, str) else bool(ray),
        "subjects": {s.name: {"class": type(s.module).__name__, "fingerprint": weights[s.name],
                              "preprocess": None if s.preprocess is None else str(s.preprocess),
                              "device": str(s.device), "dtype": str(s.dtype).removeprefix("torch."),
                              "channels_last": s.channels_last} for s in people},
        "measures": {label: _described(m) for label, m in questions.items()},
        "cells": [dataclasses.asdict(key) for key in cells],
        "plan": None if plan is None else dict(plan),
        **environment(),
    }  # fmt: skip
    folder.write(MANIFEST, _json(manifest))
    folder.sweep(FOLDER)
    missing = {key: pair for key, pair in cells.items() if not folder.exists(key.done)}
    report("cells", len(cells) - len(missing), len(cells))
    done = len(cells) - len(missing)
    for info in (_on_ray if ray else _here)(folder, missing, seed, ray, resources or Resources()):
        done += 1
        report("cells", done, len(cells))
        if info.status == "failed":
            log.warning("%s × %s failed: %s", info.subject, info.measure, info.error)
    finished = Run(folder)
    finished.write_tables()
    records = [{k: v for k, v in dataclasses.asdict(c).items() if k != "traceback"} for c in finished.cells]
    failed = len(finished.failures)
    manifest |= {"status": f"{failed} failed" if failed else "complete", "ended": now(), "records": records}
    folder.write(MANIFEST, _json(manifest))
    return Run(folder)


def cell_fingerprint(subject: Subject | str, measure: Measure, seed: int) -> str:
    """Content of a cell: the measure's code and settings (stimuli among them), the subject (or its hash), the seed."""
    who = subject if isinstance(subject, str) else subject.fingerprint
    return fingerprint(measure.name or type(measure).__qualname__, measure.code_version, measure, who, seed)


def run_cell(folder: Folder, key: CellKey, subject: Subject, measure: Measure, seed: int) -> CellInfo:
    """Do one cell and write it; an exception of the measure becomes a failed cell."""
    started, begin = now(), time.perf_counter()
    found, error, trace = None, None, None
    with _peak_memory(subject.device) as peak, seeded(seed, subject.device), Arithmetic.here().used():
        try:
            table = measure(subject)
            found = CellTables.of(table, measure.summary(table))
        except Exception as e:
            error = first_line(e) if isinstance(e, AssayError) else f"{type(e).__name__}: {first_line(e)}"
            trace = traceback.format_exc()
    info = CellInfo(
        key.subject, key.measure, key.fingerprint, "failed" if found is None else "done", started,
        round(time.perf_counter() - begin, 3), peak["host"], peak["gpu"], error, trace,
    )  # fmt: skip
    write_cell(folder, key, info, found)
    return info


def _here(folder: Folder, missing: dict[CellKey, tuple[Subject, Measure]], seed: int, *_: Any) -> Iterator[CellInfo]:
    for key, (subject, measure) in missing.items():
        yield run_cell(folder, key, subject, measure, seed)


def _on_ray(
    folder: Folder,
    missing: dict[CellKey, tuple[Subject, Measure]],
    seed: int,
    address: bool | str,
    resources: Resources,
) -> Iterator[CellInfo]:
    if not missing:
        return
    ray = start_ray(address)
    arithmetic = Arithmetic.here()  # the same there gives the same bits

    @ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_retries=resources.retries)  # type: ignore[untyped-decorator]
    def cell(key: CellKey, subject: Subject, measure: Measure) -> CellInfo:
        with arithmetic.used():
            return run_cell(folder, key, subject, measure, seed)

    held = {id(thing): ray.put(thing) for pair in missing.values() for thing in pair}
    waiting = {cell.remote(key, held[id(s)], held[id(m)]): key for key, (s, m) in missing.items()}
    while waiting:
        (ready,), _ = ray.wait(list(waiting), num_returns=1)
        key = waiting.pop(ready)
        try:
            yield ray.get(ready)
        except ray.exceptions.RayError as error:  # the worker died once too often
            lost = (first_line(error), str(error))
            info = CellInfo(key.subject, key.measure, key.fingerprint, "failed", now(), 0.0, 0, 0, *lost)
            write_cell(folder, key, info, None)
            yield info


def start_ray(address: bool | str) -> Any:
    """The package ray, connected to the cluster at an address, or (True) to one found or started here."""
    ray = optional("ray", "ray", "ray=…")
    if not ray.is_initialized():
        try:
            ray.init(address=None if address is True else str(address), log_to_driver=False, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise AssayError(
                f"ray={address}: there is no Ray cluster ({first_line(error)}); give its address, as 10.0.0.1:6379"
            ) from error
    return ray


def _labelled(measures: Measure | Iterable[Measure] | Mapping[str, Measure]) -> dict[str, Measure]:
    if isinstance(measures, Mapping):
        return dict(measures)
    listed = [measures] if isinstance(measures, Measure) else list(measures)
    labels: dict[str, Measure] = {}
    for measure in listed:
        name = measure.name or type(measure).__name__
        n = sum(label == name or label.startswith(f"{name}-") for label in labels)
        labels[name if n == 0 else f"{name}-{n + 1}"] = measure
    return labels


def _described(measure: Measure) -> dict[str, Any]:
    return {
        "measure": measure.name or type(measure).__qualname__,
        "value": measure.value,
        "code_version": measure.code_version,
        "settings": {name: _plain(value) for name, value in measure.settings.items()},
        "given": measure.given,
        "defaulted": [name for name in measure.settings if name not in measure.given],
    }


def _plain(value: Any) -> Any:
    """A setting as JSON: as it is where it can be, else what it says of itself and its fingerprint."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    described = getattr(value, "description", None) or str(value)[:200]
    return {"is": described, "fingerprint": fingerprint(value)}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, default=str) + "\n").encode()


@contextmanager
def _peak_memory(device: torch.device) -> Iterator[dict[str, int]]:
    """Peak resident memory of this process, and of the GPU's allocations, inside the block."""
    peak = {"host": 0, "gpu": 0}
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    with suppress(OSError):
        reset.write_text("5")  # Linux: start the high-water mark anew
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    try:
        yield peak
    finally:
        if status.exists():
            for line in status.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak["host"] = int(line.split()[1]) * 1024
        if device.type == "cuda":
            peak["gpu"] = torch.cuda.max_memory_allocated(device)
