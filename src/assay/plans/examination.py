"""An examination: everything that can be asked of networks in the time there is, the cheapest questions first."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from assay.core.arrays import batch_length
from assay.core.durations import duration, seconds_of
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.progress import of_more
from assay.core.shapes import shape_of
from assay.measures.base import Measure
from assay.measures.complexity.augmentation import AugmentationRobustness
from assay.measures.complexity.clusters import ClusterSeparation
from assay.measures.complexity.margins import Margins
from assay.measures.complexity.norms import Norms
from assay.measures.complexity.sharpness import Sharpness
from assay.measures.invariance.measure import Invariance
from assay.measures.perturbation.measure import PerturbationResponse
from assay.measures.straightness.measure import Straightness
from assay.plans.examination_record import ExaminationRecord
from assay.plans.pace import Pace
from assay.runs.arguments import as_folder, as_subjects
from assay.runs.evaluate import evaluate
from assay.runs.examples import Examples
from assay.runs.manifest import Manifest, now
from assay.runs.pixel_range import warning_once
from assay.runs.run import Outcome, Run
from assay.stimuli.camera import camera_sequences
from assay.stimuli.datasets import as_images, as_labelled
from assay.stimuli.families import Family, ParametricTest
from assay.stimuli.gratings import Gratings
from assay.stimuli.images import Images
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import class_scores
from assay.subject.subject import Subject

log = logging.getLogger(__name__)

FEWEST = 100  # inputs below which a question about classes is not worth asking
_TIMED_INPUTS = 32
_LATE = 1.1  # times the time that was given, above which a reader is told
_SLOW = 1.2  # times the first estimate, above which a reader is told why


@dataclass(frozen=True)
class Question:
    """A measure whose cost grows with the number of inputs shown.

    Args:
        label: What tables call it.
        passes: Forward passes per input, backward ones counted twice.
        make: Function that makes the measure for a number of inputs.
        most: Largest number of inputs.
        fewest: Smallest number of inputs.
        of_classes: Whether it is about the classes that a network distinguishes.
        step: Number of inputs of which it takes only multiples.
    """

    label: str
    passes: float
    make: Callable[[int], Measure]
    most: int
    fewest: int = FEWEST
    of_classes: bool = False
    step: int = 1


def questions(shape: Sequence[int], data: Labelled | None, images: Images | None) -> list[Question]:
    """What can be asked of networks that take inputs of a shape, cheapest first.

    Args:
        shape: Shape of one input.
        data: Pictures with their classes, for the questions about classes; None for none.
        images: Pictures to transform; None for none.
    """
    # Inputs by name, or numbers of words, are more than a shape: the run shows the first of them.
    norms = Norms() if data is not None and _are_words_or_named(data) else Norms(shape=tuple(shape))
    asked = [Question("norms", 1, lambda n: norms, 1, 1)]
    is_picture = len(shape) == 3 and shape[0] in (1, 3) and min(shape[1:]) >= 8
    if is_picture:
        size, channels = int(shape[1]), int(shape[0])
        clips = camera_sequences(size, length=11, color="rgb" if channels == 3 else "grey")
        frames = 11 * len(clips.clips)
        gratings = Gratings(size, channels=channels)
        shown = len(gratings)
        asked += [
            Question("straightness", 1.3, lambda n: Straightness(clips), frames, frames),
            Question("invariance to gratings", 2, lambda n: Invariance(gratings, units="centre"), shown, shown),
        ]
    if images is not None and is_picture:
        turned = Family("rotation", tuple(range(-40, 41, 10)))
        inputs, source = images.array, images.source
        asked.append(
            Question(
                "invariance to rotation",
                2 * len(turned.magnitudes),
                lambda n: Invariance(ParametricTest(Images(inputs[:n], source=source), (turned,)), units="centre"),
                min(len(inputs), 1000),
                min(len(inputs), 300),
            )
        )
    if data is not None:
        top = min(len(data), 2000)
        images_a_round = max(2, min(120, len(data) // 10))
        asked += [
            Question(
                "clusters",
                1,
                lambda n: ClusterSeparation(data, rounds=n // images_a_round, images=images_a_round),
                10 * images_a_round,
                3 * images_a_round,
                step=images_a_round,
            ),
            Question("margins", 4, lambda n: Margins(data, samples=n), top, of_classes=True),
            Question(
                "perturbation", 22, lambda n: PerturbationResponse(data, "intra", samples=n), top, of_classes=True
            ),
            Question(
                "sharpness",
                100,
                lambda n: Sharpness(data, draws=5, steps=10, samples=n),
                min(top, 500),
                of_classes=True,
            ),
        ]
        if is_picture:
            asked.append(
                Question("augmentation", 8, lambda n: AugmentationRobustness(data, samples=n), top, of_classes=True)
            )
    return sorted(asked, key=lambda q: q.passes * q.most)


def examine(
    subjects: Subject | nn.Module | Iterable[Subject | nn.Module] | Mapping[str, Subject | nn.Module],
    run: str | Path,
    *,
    data: Any = None,
    images: Any = None,
    shape: Sequence[int] | str | None = None,
    seconds: float | str = 600.0,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Run:
    """Ask networks everything that can be asked of them in the time given, the cheapest questions first.

    The number of inputs of each question follows from how fast the networks are, and is the same for all of them, so
    that they can be compared in pairs. What the questions took so far decides anew, before each, how much the next is
    shown, so that a machine that becomes busy shows less instead of taking longer. The choice is kept in the run:
    examining again goes on with it.

    Args:
        subjects: The networks, subjects or bare modules. Those that cannot take inputs of the shape are left out, and
            the log and the report say so; where none can, that is an error.
        run: Folder of the run. Where networks were examined in it before, they must be among the subjects.
        data: Labelled inputs for the questions about classes: perturbation, margins, sharpness, clusters, augmentation;
            in any form that `assay.stimuli.as_labelled` accepts.
        images: Pictures for invariance to rotation, in any form that `assay.stimuli.as_images` accepts; those of
            ``data`` by default.
        shape: Shape of one input, also as text such as ``3x32x32``; that of ``data`` by default.
        seconds: The time there is, also as text such as ``10m``.
        seed: Seed of the random numbers at the start of every cell.
        clock: Function that gives the time in seconds.

    Returns:
        The run. Networks that cannot take the inputs, and questions that no network can answer, that the data do not
        allow, or that do not fit into the time or only with less, are named in the log and in the report, each with
        the reason.
    """
    if data is None and images is None and shape is None:
        raise AssayError("shape=None: give the shape of one input, as (3, 32, 32), or data that have it")
    given, folder = seconds_of(seconds), as_folder(run)
    networks = list(as_subjects(subjects))
    if not networks:
        raise AssayError("there are no networks to examine: give at least one")
    _require_those_there(folder, networks)
    labelled = None if data is None else as_labelled(data)
    pictures = None if images is None else as_images(images)
    of_data = labelled.shape if labelled else tuple(pictures.array.shape[1:]) if pictures else ()
    input_shape = of_data if shape is None else shape_of(shape)
    if pictures is None and labelled is not None and len(input_shape) == 3:
        sample = labelled.sample(1000, seed).inputs
        pictures = None if isinstance(sample, Mapping) else Images(sample, source=labelled.source)
    pace = Pace(given, clock)
    timed: Any = np.random.default_rng(seed).random((_TIMED_INPUTS, *input_shape), dtype=np.float32)
    if labelled is not None and input_shape == labelled.shape:
        timed = labelled.shown(slice(0, _TIMED_INPUTS))
    networks, per_input, left_out = _able(networks, timed, clock)
    log.info("a pass takes %.1f ms an input; %s are given", 1e3 * sum(per_input.values()), duration(given))
    wanted = []
    notes = left_out  # and those of the questions that cannot be asked of any network
    for question in questions(input_shape, labelled, pictures):
        try:
            refused = _refusals(question, question.make(question.most), networks, labelled)
        except AssayError as error:
            notes[question.label] = f"{question.label} is not asked: {error}."
            log.info(notes[question.label])
            continue
        for name, reason in refused.items():
            log.info("%s is not asked of %s: %s", question.label, name, reason)
        able = [subject.name for subject in networks if subject.name not in refused]
        if able:
            wanted.append(_Asked(question, able, sum(per_input[name] for name in able)))
        else:
            notes[question.label] = f"{question.label} is not asked: {next(iter(refused.values()))}."
    with warning_once():  # though every question is a run of its own
        done = _ask(wanted, networks, folder, pace, seed, notes, labelled)
    if done is None:
        why = next(iter(notes.values()), "")
        raise AssayError(f"nothing can be asked of these networks in this time ({why.removesuffix('.')})")
    return done


@dataclass(frozen=True)
class _Asked:
    """A question, the networks that it is asked of, and the seconds that an input takes to pass all of them."""

    question: Question
    able: list[str]
    per_input: float

    def seconds(self, n: int) -> float:
        """Estimate of the time that the question takes with n inputs, as the first passes were timed."""
        return 0.0 if self.question.most == 1 else n * self.question.passes * self.per_input

    def affordable(self, seconds: float, factor: float) -> int:
        """The number of inputs that it can be asked with in the time; 0 where it is below the smallest."""
        question = self.question
        if question.most == 1:
            return 1  # it costs next to nothing
        n = int(seconds / max(self.seconds(1) * factor, 1e-12))
        n -= n % question.step
        return 0 if n < min(question.fewest, question.most) else min(n, question.most)


def _ask(
    wanted: list[_Asked],
    subjects: Sequence[Subject],
    folder: Folder,
    pace: Pace,
    seed: int,
    notes: dict[str, str],
    data: Labelled | None,
) -> Run | None:
    """Ask question after question, each with as much as then fits into the time; ``notes`` are added to and kept."""
    begun, newly = now(), 0
    record = ExaminationRecord.read(folder)
    record.notes, record.time = notes, ""
    measures: dict[str, Measure] = {}
    only: dict[str, list[str]] = {}
    done: Run | None = None
    left = list(wanted)
    too_long: list[_Asked] = []
    while left or too_long:
        # A question that does not fit into its share of the time waits for what the others leave.
        in_turn = bool(left)
        asked = left.pop(0) if in_turn else too_long.pop(0)
        question, label = asked.question, asked.question.label
        n = record.sizes.get(label) or asked.affordable(pace.share(1 + len(left)), pace.factor)
        if not n and in_turn and len(wanted) > 1:
            too_long.append(asked)
            continue
        if note := _note(asked, n, pace):
            log.info(note)
            record.notes[label] = note
        if not n:
            continue
        record.sizes[label] = n
        record.write(folder)  # before it is asked: an examination that is stopped goes on with the same inputs
        measures[label], only[label] = question.make(n), asked.able
        begin = pace.spent
        cells = sum(map(len, only.values())) + sum(len(later.able) for later in (*left, *too_long))
        with of_more("cells", cells):
            done = evaluate(list(subjects), measures, folder.url, seed=seed, only=only, example=data)
        measured = 0 if done.outcome is None else done.outcome.measured
        newly += measured
        if measured:
            pace.learn(asked.seconds(n) * measured / len(asked.able), pace.spent - begin)
    if pace.spent > pace.seconds * _LATE:
        record.time = f"The examination took {duration(pace.spent)}; {duration(pace.seconds)} were given."
        log.info(record.time)
    if done is None:
        return None
    record.write(folder)
    return _as_one(done, begun, newly)


def _as_one(done: Run, begun: str, measured: int) -> Run:
    """The run of the last question as that of the whole examination: when it began, and what was measured in it."""
    manifest = done.manifest
    manifest.started = begun
    manifest.write(done.folder)
    measured = min(measured, done.done)
    failed = 0 if done.outcome is None else done.outcome.failed
    return Run(done.folder, Outcome(done.done - measured, measured, failed))


def _require_those_there(folder: Folder, networks: Sequence[Subject]) -> None:
    """Refuse a folder in which other networks were examined, which the run of these would replace."""
    before = Manifest.read_if_there(folder)
    there = [] if before is None else list(before.subjects)
    given = {subject.name for subject in networks}
    if before is None or set(there) <= given:
        return
    raise AssayError(
        f"run={folder.url!r} holds what was measured of {', '.join(map(repr, there))}, and not all of these are among "
        f"the networks given ({', '.join(map(repr, sorted(given)))}): give another folder (on the command line "
        "--run), or those networks too"
    )


def _note(asked: _Asked, n: int, pace: Pace) -> str:
    """What to tell of a question that is left out or shown less than it could be; empty where it is shown all."""
    question = asked.question
    slow = f" (questions take {pace.factor:.1f} times as long as was estimated)" if pace.factor > _SLOW else ""
    if not n:
        fewest = min(question.fewest, question.most)
        takes = duration(asked.seconds(fewest) * pace.factor)
        return (
            f"{question.label} is not asked: it would take longer than there is time, about {takes} for {fewest} inputs"
            f"{slow}."
        )
    if n < question.most:
        return f"{question.label} is shown {n} inputs instead of {question.most}, to fit into the time{slow}."
    return ""


def _refusals(
    question: Question, measure: Measure, subjects: Sequence[Subject], data: Labelled | None
) -> dict[str, str]:
    """The networks that a question, made into this measure, cannot be asked of, each with the reason."""
    reasons = {}
    examples = Examples([measure], data)
    for subject in subjects:
        try:
            measure.check(examples.lend(subject, measure))
            if question.of_classes and data is not None:
                _require_a_score_for_each_class(subject, data)
        except AssayError as error:
            reasons[subject.name] = str(error)
    return reasons


def _require_a_score_for_each_class(subject: Subject, data: Labelled) -> None:
    """Refuse a network whose outputs are not the scores of these classes, such as the maps of a front end."""
    scores = class_scores(subject, data.shown(slice(0, 1), subject.device))
    classes = int(data.labels.max()) + 1
    if scores.shape[1] != classes:
        raise AssayError(f"it has {scores.shape[1]} outputs and the data have {classes} classes")


def _are_words_or_named(data: Labelled) -> bool:
    """Whether inputs are whole numbers, such as those of words, or several by name."""
    return isinstance(data.inputs, Mapping) or np.issubdtype(data.inputs.dtype, np.signedinteger)


def _able(
    subjects: Sequence[Subject], inputs: Any, clock: Callable[[], float]
) -> tuple[list[Subject], dict[str, float], dict[str, str]]:
    """The networks that take the inputs, the seconds an input takes each, and why the others are left out."""
    able, per_input, notes = [], {}, {}
    for subject in subjects:
        try:
            per_input[subject.name] = _seconds_per_input(subject, inputs, clock)
        except AssayError as error:
            if len(subjects) == 1:
                raise
            notes[subject.name] = f"{subject.name} is left out: {str(error).removesuffix('.')}."
            log.warning(notes[subject.name])
        else:
            able.append(subject)
    if not able:
        raise AssayError(f"none of the networks takes these inputs ({next(iter(notes.values())).removesuffix('.')})")
    return able, per_input, notes


def _seconds_per_input(subject: Subject, inputs: Any, clock: Callable[[], float]) -> float:
    """Time a pass of a few inputs, after one to warm up."""
    subject(inputs)
    begin = clock()
    subject(inputs)
    return (clock() - begin) / batch_length(inputs)
