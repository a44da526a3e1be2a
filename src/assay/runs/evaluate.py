"""Subjects × measures → a run: every pair a cell, done once, here, in processes or on a Ray cluster."""

from __future__ import annotations

import json
import logging
import time
import traceback
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay.core.determinism import Arithmetic, seeded
from assay.core.errors import AssayError, first_line
from assay.core.fingerprint import fingerprint, remembering
from assay.core.folder import Folder
from assay.core.progress import report
from assay.measures.base import Measure
from assay.runs.cells import DONE, FOLDER, CellInfo, CellKey, CellTables, read_probe, write_cell
from assay.runs.executor import Job, Lost, Resources, Workers, execute
from assay.runs.manifest import Manifest, MeasureRecord, SubjectRecord, environment, now
from assay.runs.run import Run
from assay.subject.probe import Probe
from assay.subject.subject import Subject

log = logging.getLogger(__name__)

CELL_VERSION = 2
"""Part of every key: raised when what surrounds a measure's own code (seeding, arithmetic) changes results."""
_MANIFEST_EVERY_S = 2.0


def evaluate(
    subjects: Subject | Iterable[Subject],
    measures: Measure | Iterable[Measure] | Mapping[str, Measure],
    run: str | Path,
    *,
    seed: int = 0,
    ray: bool | str = False,
    processes: int = 0,
    resources: Resources | None = None,
    plan: Mapping[str, Any] | None = None,
) -> Run:
    """Ask every measure of every subject and keep the answers in a run folder.

    Each (subject, measure) pair is a cell, keyed by the content of the measure's code and settings, the
    stimuli, the subject and the seed. A cell that is already there is not done again if the subject still answers
    a small probe as it did then, so calling this again finishes what an interrupted call left. A cell that raises is
    recorded with its traceback, and the rest goes on; it is tried again the next time.

    Args:
        subjects: Who; names must differ. An iterator is read as workers become free, so that of ten thousand
            networks a few are in memory.
        measures: What to ask; give a mapping to name them yourself.
        run: Where: a folder, or any URL fsspec can write to.
        seed: State of torch's random numbers at the start of every cell.
        ray: True for a Ray cluster found or started here, or the address of one.
        processes: Cells at a time, each in a process of this machine; 0 for one after the other in this process.
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
    labelled = _labelled(measures)
    if not labelled:
        raise AssayError("no measures to evaluate")
    if not 0 <= seed < 2**63:
        raise AssayError(f"seed={seed} must be a whole number from 0 to 2⁶³ − 1")
    workers = Workers(processes=processes, ray=ray)
    return _Evaluation(Folder(str(run)), labelled, seed, workers, resources or Resources(), plan)(subjects)


class _Evaluation:
    """One call of `evaluate`."""

    def __init__(
        self,
        folder: Folder,
        measures: dict[str, Measure],
        seed: int,
        workers: Workers,
        resources: Resources,
        plan: Mapping[str, Any] | None,
    ) -> None:
        self.folder, self.measures, self.seed = folder, measures, seed
        self.workers, self.resources = workers, resources
        with remembering():
            self.prints = {label: measure_fingerprint(measure) for label, measure in measures.items()}
            records = {label: _described(measure) for label, measure in measures.items()}
        place = dict(environment())
        self.manifest = Manifest("running", now(), seed=seed, ray=workers.ray, measures=records, **place)
        self.manifest.plan = None if plan is None else dict(plan)
        self.present: set[str] = set()
        self.found = 0
        self.total = 0
        self.written = 0.0

    def __call__(self, subjects: Subject | Iterable[Subject]) -> Run:
        listed = [subjects] if isinstance(subjects, Subject) else subjects
        planned: Iterable[tuple[Subject, dict[str, CellKey]]] = self._planned(listed)
        if isinstance(listed, Sequence):  # all of them are in memory: the manifest can list every cell at once
            planned = list(planned)
            self._require_subjects()
        self._write_manifest()
        self.folder.sweep(FOLDER)
        self.present = set(self.folder.names(FOLDER, DONE))
        done = failed = 0
        for outcome in execute(_do_cell, self._jobs(planned), self.workers):
            info = outcome.result
            key: CellKey = outcome.job.own.key
            if isinstance(info, Lost):
                lost = CellInfo(key.subject, key.measure, key.fingerprint, "failed", now(), 0.0, 0, 0, info.reason)
                write_cell(self.folder, key, lost, None)
                info = lost
            if info.status == "failed":
                failed += 1
                log.warning("%s × %s failed: %s", info.subject, info.measure, info.error)
            done += 1
            report("cells", self.found + done, self.total)
            self._write_manifest(every_s=_MANIFEST_EVERY_S)
        self._require_subjects()
        report("cells", self.found + done, self.total)
        self.manifest.status = f"{failed} failed" if failed else "complete"
        self.manifest.ended = now()
        self._write_manifest()
        return Run(self.folder)

    def _require_subjects(self) -> None:
        if not self.manifest.subjects:
            raise AssayError("no subjects to evaluate")

    def _planned(self, subjects: Iterable[Subject]) -> Iterator[tuple[Subject, dict[str, CellKey]]]:
        """Every subject with the keys of its cells by label, entered into the manifest."""
        for subject in subjects:
            if subject.name in self.manifest.subjects:
                raise AssayError(f"two subjects are called {subject.name!r}: name them apart")
            content = subject.fingerprint  # hashed once, not once per measure
            self.manifest.subjects[subject.name] = _subject_record(subject, content)
            keys = {
                label: CellKey(subject.name, label, _combined(content, self.prints[label], self.seed))
                for label in self.measures
            }
            self.manifest.cells += keys.values()
            self.total += len(keys)
            yield subject, keys

    def _jobs(self, planned: Iterable[tuple[Subject, dict[str, CellKey]]]) -> Iterator[Job]:
        """The cells that are missing, or that the subject, as it is now, would not give again."""
        arithmetic = Arithmetic.here() if self.workers.ray or self.workers.processes else None
        for subject, keys in planned:
            trust = _Trust(self.folder, subject)
            for label, key in keys.items():
                if key.done in self.present and trust.still_true(key):
                    self.found += 1
                    continue
                own = _Cell(self.folder, key, self.seed, arithmetic)
                yield Job(own, subject, self.measures[label], self.resources)
        report("cells", self.found, self.total)

    def _write_manifest(self, every_s: float = 0.0) -> None:
        if time.monotonic() - self.written >= every_s:
            self.manifest.write(self.folder)
            self.written = time.monotonic()


class _Trust:
    """Whether cells of a subject were measured on a network that behaves as this one does now."""

    def __init__(self, folder: Folder, subject: Subject) -> None:
        self.folder, self.subject = folder, subject
        self.differences: dict[bytes, str | None] = {}

    def still_true(self, key: CellKey) -> bool:
        """Compare the answer to the probe that a cell keeps with the answer now; say in the log why it is not."""
        try:
            kept = read_probe(self.folder, key.done)
            if kept and kept not in self.differences:
                then = Probe.from_json(json.loads(kept))
                answer = self.subject.probe(then.inputs)
                self.differences[kept] = None if answer is None else then.difference(answer)
            difference = self.differences.get(kept)
        except AssayError as error:
            difference = str(error)
        except Exception as error:  # the network itself may raise anything on the probe's input
            difference = f"it cannot be asked again ({type(error).__name__}: {first_line(error)})"
        if difference is not None:
            log.warning("%s × %s is measured anew: %s", key.subject, key.measure, difference)
        return difference is None


@dataclass(frozen=True)
class _Cell:
    """What a worker needs to know of a cell besides its subject and measure."""

    folder: Folder
    key: CellKey
    seed: int
    arithmetic: Arithmetic | None


def _do_cell(subject: Subject, measure: Measure, cell: _Cell) -> CellInfo:
    with (cell.arithmetic or Arithmetic.here()).used():  # the same arithmetic as the caller's gives the same bits
        return run_cell(cell.folder, cell.key, subject, measure, cell.seed)


def run_cell(folder: Folder, key: CellKey, subject: Subject, measure: Measure, seed: int) -> CellInfo:
    """Do one cell and write it; an exception of the measure becomes a failed cell."""
    started, begin = now(), time.perf_counter()
    tables, error, trace = None, None, None
    with peak_memory(subject.device) as peak, seeded(seed, subject.device), Arithmetic.here().used():
        try:
            measured = measure.measured(subject)
            tables = CellTables.of(measured.table, measure.summary(measured.table), measure.evidence(measured))
        except Exception as e:
            error = first_line(e) if isinstance(e, AssayError) else f"{type(e).__name__}: {first_line(e)}"
            trace = traceback.format_exc()
    info = CellInfo(
        key.subject, key.measure, key.fingerprint, "failed" if tables is None else "done", started,
        round(time.perf_counter() - begin, 3), peak["host"], peak["gpu"], error, trace,
    )  # fmt: skip
    write_cell(folder, key, info, tables, b"" if tables is None else _answers.of(subject))
    if tables is not None:
        folder.remove(key.failed)
    return info


class _Answers:
    """The answer to the probe of the last subject that was measured: its cells follow each other."""

    def __init__(self) -> None:
        self.last: tuple[weakref.ref[Subject], int] | None = None
        self.answer = b""

    def of(self, subject: Subject) -> bytes:
        versions = subject.network.weight_versions()
        if self.last is None or self.last[0]() is not subject or self.last[1] != versions or not self.answer:
            self.last, self.answer = (weakref.ref(subject), versions), _probe(subject)
        return self.answer


_answers = _Answers()


def _probe(subject: Subject) -> bytes:
    try:
        answer = subject.probe()
    except Exception:  # it answered the measure, but cannot take an input of the probe's making: nothing to keep
        return b""
    return b"" if answer is None else json.dumps(answer.to_json()).encode()


def measure_fingerprint(measure: Measure) -> str:
    """Content of a measure: its name, its code and its settings, stimuli among them."""
    return fingerprint(measure.name or type(measure).__qualname__, measure)


def cell_fingerprint(subject: Subject, measure: Measure, seed: int) -> str:
    """Content of a cell: the subject, the measure, the seed."""
    return _combined(subject.fingerprint, measure_fingerprint(measure), seed)


def _combined(subject: str, measure: str, seed: int) -> str:
    return fingerprint(CELL_VERSION, measure, subject, seed)


def _labelled(measures: Measure | Iterable[Measure] | Mapping[str, Measure]) -> dict[str, Measure]:
    if isinstance(measures, Mapping):
        return dict(measures)
    labels: dict[str, Measure] = {}
    for measure in [measures] if isinstance(measures, Measure) else measures:
        name = measure.name or type(measure).__name__
        n = sum(label == name or label.startswith(f"{name}-") for label in labels)
        labels[name if n == 0 else f"{name}-{n + 1}"] = measure
    return labels


def _subject_record(subject: Subject, content: str) -> SubjectRecord:
    return SubjectRecord(
        type(subject.module).__name__,
        content,
        None if subject.preprocess is None else str(subject.preprocess),
        str(subject.device),
        str(subject.dtype).removeprefix("torch."),
        subject.channels_last,
    )


def _described(measure: Measure) -> MeasureRecord:
    given = measure.given
    return MeasureRecord(
        measure=measure.name or type(measure).__qualname__,
        value=measure.value,
        quantity=measure.quantity,
        higher_is=measure.higher_is,
        code_version=measure.code_version,
        settings={name: _plain(value) for name, value in measure.settings.items()},
        given=given,
        defaulted=[name for name in measure.settings if name not in given],
    )


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


@contextmanager
def peak_memory(device: torch.device) -> Iterator[dict[str, int]]:
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
