"""Subjects × measures → a run: every pair a cell, done once, here, in processes or on a Ray cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from torch import nn

from assay.core.determinism import Arithmetic
from assay.core.errors import AssayError, shown
from assay.core.fingerprint import fingerprint, remembering
from assay.core.folder import Folder, NotWritten
from assay.core.progress import report
from assay.measures.base import Measure
from assay.runs.arguments import as_folder, as_measures, as_seed, as_subjects
from assay.runs.cells import DONE, FOLDER, CellInfo, CellKey, write_cell
from assay.runs.describing import measure_record
from assay.runs.examples import Examples
from assay.runs.executor import Job, Lost, Resources, Workers, execute
from assay.runs.manifest import Manifest, SubjectRecord, environment, now
from assay.runs.measuring import CellOrder, do_cell
from assay.runs.pixel_range import PixelRanges, warn
from assay.runs.run import Outcome, Run
from assay.runs.trust import Changes, Trust
from assay.subject.past import past_fingerprint
from assay.subject.subject import Subject

log = logging.getLogger(__name__)

CELL_VERSION = 2
"""Part of every key: raised when what surrounds a measure's own code (seeding, arithmetic) changes results."""
_MANIFEST_EVERY_S = 2.0


def evaluate(
    subjects: Subject | nn.Module | Iterable[Subject | nn.Module] | Mapping[str, Subject | nn.Module],
    measures: Measure | Iterable[Measure] | Mapping[str, Measure],
    run: str | Path,
    *,
    seed: int = 0,
    ray: bool | str = False,
    processes: int = 0,
    resources: Resources | None = None,
    only: Mapping[str, Collection[str]] | None = None,
    plan: Mapping[str, Any] | None = None,
    example: Any = None,
) -> Run:
    """Ask every measure of every subject and keep the answers in a run folder.

    Each (subject, measure) pair is a cell, keyed by the content of the measure's code and settings, the
    stimuli, the subject and the seed. A cell that is already there is not done again if the subject still answers
    a small probe as it did then, so calling this again finishes what an interrupted call left. A cell that raises is
    recorded with its traceback, and the rest goes on; it is tried again the next time.

    Args:
        subjects: Who: subjects or bare torch modules, one or several; names must differ. A module is called by its
            class (`Subject` takes more: a name, preprocessing, a device), numbered where two share it, or by its label
            in a mapping. An iterator is read as workers become free, so that of ten thousand networks a few are in
            memory.
        measures: What to ask; give a mapping to name them yourself.
        run: Where: a folder, or any URL fsspec can write to.
        seed: State of torch's random numbers at the start of every cell.
        ray: True for a Ray cluster found or started here, or the address of one.
        processes: Cells at a time, each in a process of this machine; 0 for one after the other in this process.
        resources: What each cell needs on the cluster.
        only: For a measure's label, the names of the only subjects that it is asked of; by default of all.
        plan: The plan this came from, for the manifest.
        example: An input, or the shape of one without the batch axis, for subjects that have no example, under measures
            without stimuli, such as `Norms`; by default the first of the stimuli of the other measures.

    Returns:
        The run, done except for what failed (see `Run.failures`); its ``outcome`` says how many cells were there
        already, how many were measured and how many failed.

    Example:
        >>> import tempfile, numpy as np, torch, assay
        >>> frames = np.random.default_rng(0).random((5, 1, 8, 8))
        >>> measure = assay.Straightness(assay.stimuli.Sequences.of(noise=frames))
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.ReLU())
        >>> done = evaluate(net, measure, tempfile.mkdtemp())
        >>> done.table("straightness")["layer"].tolist()
        ['pixels', '0', '1']
    """
    labelled = as_measures(measures)
    if not labelled:
        raise AssayError("no measures to evaluate")
    if not isinstance(resources, Resources | None):
        raise AssayError(f"resources={shown(resources)} must be assay.Resources(…)")
    workers = Workers(processes=processes, ray=ray)
    listed = as_subjects(subjects)
    needed = resources or Resources()
    examples = Examples(labelled.values(), example)
    return _Evaluation(as_folder(run), labelled, as_seed(seed), workers, needed, only or {}, plan, examples)(listed)


class _Evaluation:
    """One call of `evaluate`."""

    def __init__(
        self,
        folder: Folder,
        measures: dict[str, Measure],
        seed: int,
        workers: Workers,
        resources: Resources,
        only: Mapping[str, Collection[str]],
        plan: Mapping[str, Any] | None,
        examples: Examples,
    ) -> None:
        self.folder, self.measures, self.seed = folder, measures, seed
        self.workers, self.resources, self.only, self.examples = workers, resources, only, examples
        before = Manifest.read_if_there(folder)
        self.present = set(folder.names(FOLDER, DONE))
        with remembering():
            self.prints = {label: measure_fingerprint(measure) for label, measure in measures.items()}
            records = {label: measure_record(measure, self.prints[label]) for label, measure in measures.items()}
        place = dict(environment())
        self.manifest = Manifest("running", now(), seed=seed, ray=workers.ray, measures=records, **place)
        self.manifest.plan = None if plan is None else dict(plan)
        self.changes = Changes(before, self.manifest, self.present)
        self.pixels = PixelRanges(measures.values())
        self.found = self.ended = 0  # cells that are there already, and those that were done or failed in this call
        self.failed = 0
        self.total = 0
        self.written = 0.0

    def __call__(self, subjects: Sequence[Subject] | Iterator[Subject]) -> Run:
        planned: Iterable[tuple[Subject, dict[str, CellKey]]] = self._planned(subjects, isinstance(subjects, Sequence))
        if isinstance(subjects, Sequence):  # all of them are in memory: the manifest can list every cell at once
            planned = list(planned)
            self._require_subjects()
            warn(self.manifest.notes)
        self._write_manifest()
        self.folder.sweep("")
        self.folder.sweep(FOLDER)
        try:
            self._do(planned)
        except NotWritten:  # it says itself what is kept, and there is no place to write more
            raise
        except AssayError:  # a network that cannot be read, say
            self._stopped()
            raise
        self._require_subjects()
        report("cells", self.found + self.ended, self.total)
        self.manifest.status = f"{self.failed} failed" if self.failed else "complete"
        self.manifest.ended = now()
        self._write_manifest()
        log.info("%s: %s", self.folder.url, self.outcome)
        return Run(self.folder, self.outcome)

    @property
    def outcome(self) -> Outcome:
        """What was done so far."""
        return Outcome(kept=self.found, measured=self.ended - self.failed, failed=self.failed)

    def _do(self, planned: Iterable[tuple[Subject, dict[str, CellKey]]]) -> None:
        """Measure the cells that are missing."""
        # Closed at once, whatever happens here: an interrupted run leaves no process behind.
        with closing(execute(do_cell, self._jobs(planned), self.workers)) as ending:
            for ended in ending:
                info = ended.result
                key: CellKey = ended.job.own.key
                if isinstance(info, Lost):
                    lost = CellInfo(key.subject, key.measure, key.fingerprint, "failed", now(), 0.0, 0, 0, info.reason)
                    write_cell(self.folder, key, lost, None)
                    info = lost
                if info.status == "failed":
                    self.failed += 1
                    log.warning("%s × %s failed: %s", info.subject, info.measure, info.error)
                self.ended += 1
                report("cells", self.found + self.ended, self.total)
                self._write_manifest(every_s=_MANIFEST_EVERY_S)

    def _stopped(self) -> None:
        """Say in the manifest and in the log that the run has stopped, and what is kept of it."""
        self.manifest.status, self.manifest.ended = "stopped", now()
        self._write_manifest()
        log.warning("%s stopped: %s; the same again goes on from there", self.folder.url, self.outcome)

    def _require_subjects(self) -> None:
        if not self.manifest.subjects:
            raise AssayError("no subjects to evaluate")

    def _planned(self, subjects: Iterable[Subject], all_there: bool) -> Iterator[tuple[Subject, dict[str, CellKey]]]:
        """Every subject with the keys of its cells by label, entered into the manifest."""
        for subject in subjects:
            content = subject.fingerprint  # hashed once, not once per measure
            self.manifest.subjects[subject.name] = _subject_record(subject, content)
            keys = {
                label: CellKey(subject.name, label, self._key(subject, content, label))
                for label in self.measures
                if subject.name in self.only.get(label, (subject.name,))
            }
            self.manifest.cells += keys.values()
            self.total += len(keys)
            self._note_pixels(subject, all_there)
            yield subject, keys

    def _note_pixels(self, subject: Subject, all_there: bool) -> None:
        """Enter into the manifest what is odd about the pixels that a network is shown."""
        known = len(self.manifest.notes)
        self.pixels.look_at(subject)
        self.manifest.notes = self.pixels.sentences
        if not all_there:  # the first network of which a sentence is has to do
            warn(self.manifest.notes[known:])

    def _key(self, subject: Subject, content: str, label: str) -> str:
        measure = self.measures[label]
        example, past = self.examples.fingerprint(subject, measure), past_fingerprint(subject, measure.looks_back)
        return _combined(content, self.prints[label], self.seed, example, past)

    def _jobs(self, planned: Iterable[tuple[Subject, dict[str, CellKey]]]) -> Iterator[Job]:
        """The cells that are missing, or that the subject, as it is now, would not give again."""
        arithmetic = Arithmetic.here() if self.workers.ray or self.workers.processes else None
        for subject, keys in planned:
            trust = Trust(self.folder, subject)
            for label, key in keys.items():
                if key.done in self.present and trust.still_true(key):
                    self.found += 1
                    continue
                if key.done not in self.present:
                    self.changes.tell(key)
                own = CellOrder(self.folder, key, self.seed, arithmetic)
                measure = self.measures[label]
                yield Job(own, self.examples.lend(subject, measure), measure, self.resources)
        report("cells", self.found + self.ended, self.total)

    def _write_manifest(self, every_s: float = 0.0) -> None:
        if time.monotonic() - self.written >= every_s:
            self.manifest.write(self.folder)
            self.written = time.monotonic()


def measure_fingerprint(measure: Measure) -> str:
    """Content of a measure: its name, its code and its settings, stimuli among them."""
    return fingerprint(measure.name or type(measure).__qualname__, measure)


def cell_fingerprint(subject: Subject, measure: Measure, seed: int, examples: Examples | None = None) -> str:
    """Content of a cell: the subject, the measure, the seed, and the kind of example and the past that it looks at."""
    example = (examples or Examples([measure])).fingerprint(subject, measure)
    past = past_fingerprint(subject, measure.looks_back)
    return _combined(subject.fingerprint, measure_fingerprint(measure), seed, example, past)


def _combined(subject: str, measure: str, seed: int, example: str, past: str) -> str:
    more = {"example": example, "past": past} if past else example
    return fingerprint(CELL_VERSION, measure, subject, seed, *([more] if more else []))


def _subject_record(subject: Subject, content: str) -> SubjectRecord:
    return SubjectRecord(
        type(subject.module).__name__,
        content,
        None if subject.preprocess is None else str(subject.preprocess),
        str(subject.device),
        str(subject.dtype).removeprefix("torch."),
        subject.channels_last,
        subject.recipe,
    )
