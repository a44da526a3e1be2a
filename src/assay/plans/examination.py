"""An examination: everything that can be asked of networks in the time there is, the cheapest questions first."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.measures.base import Measure
from assay.measures.complexity.augmentation import AugmentationRobustness
from assay.measures.complexity.clusters import ClusterSeparation
from assay.measures.complexity.margins import Margins
from assay.measures.complexity.norms import Norms
from assay.measures.complexity.sharpness import Sharpness
from assay.measures.invariance.measure import Invariance
from assay.measures.perturbation.measure import PerturbationResponse
from assay.measures.straightness.measure import Straightness
from assay.runs.evaluate import evaluate
from assay.runs.run import Run
from assay.stimuli.camera import camera_sequences
from assay.stimuli.families import Family, ParametricTest
from assay.stimuli.gratings import Gratings
from assay.stimuli.images import Images
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import class_scores
from assay.subject.subject import Subject

log = logging.getLogger(__name__)

CHOSEN = "examination.json"
FEWEST = 100  # inputs below which a question about classes is not worth asking
_TIMED_INPUTS = 32


@dataclass(frozen=True)
class Question:
    """A measure whose cost grows with the number of inputs shown.

    Args:
        label: What tables call it.
        passes: Forward passes per input, backward ones counted twice.
        make: Function that makes the measure for a number of inputs.
        most: Largest number of inputs.
        fewest: Smallest number of inputs.
        of_classes: Whether it is about the classes that a network tells.
    """

    label: str
    passes: float
    make: Callable[[int], Measure]
    most: int
    fewest: int = FEWEST
    of_classes: bool = False


def questions(shape: Sequence[int], data: Labelled | None, images: Images | None) -> list[Question]:
    """What can be asked of networks that take inputs of a shape, cheapest first.

    Args:
        shape: Shape of one input.
        data: Pictures with their classes, for the questions about classes; None for none.
        images: Pictures to transform; None for none.
    """
    asked = [Question("norms", 1, lambda n: Norms(shape=tuple(shape)), 1, 1)]
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
        inputs = images.array
        asked.append(
            Question(
                "invariance to rotation",
                2 * len(turned.magnitudes),
                lambda n: Invariance(ParametricTest(Images(inputs[:n]), (turned,)), units="centre"),
                min(len(inputs), 1000),
                min(len(inputs), 300),
            )
        )
    if data is not None:
        top = min(len(data), 2000)
        images_a_round = max(2, min(120, len(data) // 10))
        asked += [
            Question("clusters", 1, lambda n: ClusterSeparation(data, images=images_a_round), 10 * images_a_round, 1),
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
    subjects: Sequence[Subject],
    run: str,
    *,
    data: Labelled | None = None,
    images: Images | None = None,
    shape: Sequence[int] | None = None,
    seconds: float = 600.0,
    seed: int = 0,
) -> Run:
    """Ask networks everything that can be asked of them in the time given, the cheapest questions first.

    The number of inputs of each question follows from how fast the networks are, and is the same for all of them, so
    that they can be compared in pairs. The choice is kept in the run: examining again goes on with it.

    Args:
        subjects: The networks; they take inputs of one shape.
        run: Folder of the run.
        data: Labelled inputs for the questions about classes: perturbation, margins, sharpness, clusters, augmentation.
        images: Pictures for invariance to rotation; those of ``data`` by default.
        shape: Shape of one input; that of ``data`` by default.
        seconds: The time there is.
        seed: Seed of the random numbers at the start of every cell.

    Returns:
        The run. Questions that no network can answer, or that do not fit into the time, are named in the log.
    """
    if data is None and images is None and shape is None:
        raise AssayError("shape=None: give the shape of one input, as (3, 32, 32), or data that have it")
    if not seconds > 0:
        raise AssayError(f"seconds={seconds} must be above 0")
    of_data = data.shape if data is not None else tuple(images.array.shape[1:]) if images is not None else ()
    input_shape = tuple(shape or of_data)
    if images is None and data is not None and len(input_shape) == 3:
        pictures = data.sample(1000, seed).inputs
        images = None if isinstance(pictures, Mapping) else Images(pictures)
    folder = Folder(run)
    kept = folder.read_json(CHOSEN) if folder.exists(CHOSEN) else None
    chosen: dict[str, int] = dict(kept) if isinstance(kept, dict) else {}
    begin = time.monotonic()
    per_input = {subject.name: _seconds_per_input(subject, input_shape, seed) for subject in subjects}
    log.info("a pass takes %.1f ms an input; %.0f s are given", 1e3 * sum(per_input.values()), seconds)
    measures: dict[str, Measure] = {}
    done: Run | None = None
    sizes: dict[str, int] = {}
    only: dict[str, list[str]] = {}
    wanted = questions(input_shape, data, images)
    for place, question in enumerate(wanted):
        left = seconds - (time.monotonic() - begin)
        share = left / (len(wanted) - place)
        refused = _refusals(question, subjects, data)
        for name, reason in refused.items():
            log.info("%s is not asked of %s: %s", question.label, name, reason)
        able = [subject.name for subject in subjects if subject.name not in refused]
        if not able:
            continue
        together = sum(per_input[name] for name in able)
        n = chosen.get(question.label) or _affordable(question, share, together)
        if not n:
            log.info("%s is not asked: it would take longer than there is time", question.label)
            continue
        measures[question.label] = question.make(int(n))
        sizes[question.label] = int(n)
        only[question.label] = able
        done = evaluate(list(subjects), measures, run, seed=seed, only=only)
    if done is None:
        raise AssayError("nothing can be asked of these networks in this time: give more time, or data")
    if sizes != chosen:
        folder.write(CHOSEN, json.dumps(chosen | sizes, indent=1).encode())
    return done


def _affordable(question: Question, seconds: float, per_input: float) -> int:
    """The number of inputs that a question can be asked with in the time; 0 where it is below the smallest."""
    if question.most == 1:
        return 1  # it costs next to nothing
    n = int(seconds / max(per_input * question.passes, 1e-12))
    return 0 if n < min(question.fewest, question.most) else min(n, question.most)


def _refusals(question: Question, subjects: Sequence[Subject], data: Labelled | None) -> dict[str, str]:
    """The networks that a question cannot be asked of, each with the reason."""
    reasons = {}
    measure = question.make(question.most)
    for subject in subjects:
        try:
            measure.check(subject)
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


def _seconds_per_input(subject: Subject, shape: Sequence[int], seed: int) -> float:
    """Time a pass of a few random inputs, after one to warm up."""
    x = torch.from_numpy(np.random.default_rng(seed).random((_TIMED_INPUTS, *shape), dtype=np.float32))
    subject(x)
    begin = time.perf_counter()
    subject(x)
    return (time.perf_counter() - begin) / _TIMED_INPUTS
