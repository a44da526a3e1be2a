"""Check a plan before anything is measured: all that would stop it, at once."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.core.errors import ANYTHING, AssayError, reason
from assay.core.folder import Folder
from assay.core.user_code import code_in
from assay.measures.base import Measure
from assay.plans.plan import Plan, read_plan
from assay.plans.problems import Collector
from assay.plans.settings import Node
from assay.runs.arguments import as_subjects
from assay.runs.pixel_range import PixelRanges
from assay.subject.subject import Subject


@dataclass(frozen=True)
class CheckedPlan:
    """A plan in which nothing was found wrong that would stop it, and its networks.

    Args:
        plan: What the plan says.
        subjects: Its networks.
        failing: Why cells will fail, by the name of the network and the label of the measure; only where a measure
            need not fit every network.
        notes: What need not be wrong, and likely is, in sentences (`assay.runs.pixel_range`).
    """

    plan: Plan
    subjects: list[Subject]
    failing: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def check_plan(path: str | Path, run: str | None = None, pairs: bool = True, root: Node | None = None) -> CheckedPlan:
    """Read a plan, make its networks, show each one input, and raise all problems that are found, each with its place.

    Nothing is measured and nothing is written.

    Args:
        path: The plan's file.
        run: Folder of the run, instead of the one that the plan names.
        pairs: Whether every measure must fit every network; without this, a cell whose measure does not fit fails.
        root: What the file holds, where it has been read.
    """
    problems = Collector()
    plan = read_plan(path, problems, root)
    if run is not None:
        plan = replace(plan, run=run)
    with problems.watching(f"{path}: run"):
        require_writable(Folder(plan.run))
    subjects = plan.load_subjects(problems)
    with problems.watching(str(path)):
        one_of_each = {subject.name: subject for subject in subjects}  # two of a name are a problem already
        as_subjects(list(one_of_each.values()))
    failing: dict[tuple[str, str], str] = {}
    examples = plan.examples
    with code_in(plan.folder):
        for subject in subjects:
            for label, measure in plan.measures.items():
                where = f"{plan.measure_places.get(label, str(path))}: {subject.name} × {label}"
                try:
                    check_fit(measure, examples.lend(subject, measure))
                except AssayError as error:
                    failing[subject.name, label] = str(error)
                    if pairs:
                        problems.sentences.append(f"{where}: {error}")
    problems.raise_any()
    pixels = PixelRanges(plan.measures.values())
    with code_in(plan.folder):
        for subject in subjects:
            pixels.look_at(subject)
    return CheckedPlan(plan, subjects, failing, pixels.sentences)


def check_fit(measure: Measure, subject: Subject) -> None:
    """Refuse a measure that does not fit a network, in one sentence, whatever the two raise."""
    try:
        measure.check(subject)
    except AssayError:
        raise
    except ANYTHING as error:  # the network and the measure may be the user's
        raise AssayError(reason(error)) from error


def require_writable(folder: Folder) -> None:
    """Refuse a folder on this machine in which nothing can be written; afterwards all is as it was.

    A file is written and removed again, with the folders that it needed: permissions alone do not tell, of a disk that
    is full, a name that is too long, or a file system that the machine makes up.
    """
    if not folder.local:
        return
    place = Path(folder.path())
    made = []
    try:
        for outer in reversed((place, *place.parents)):
            if not outer.exists():
                outer.mkdir()
                made.append(outer)
        trial = place / f".assay-{uuid.uuid4().hex}"
        trial.write_bytes(b"")
        trial.unlink()
    except OSError as error:
        file = next((p for p in (place, *place.parents) if os.path.isfile(p)), None)  # noqa: PTH113 - a name may be too long
        why = f"{file} is a file" if file else error.strerror or str(error)
        raise AssayError(f"cannot write to {place} ({why}): choose another folder") from error
    finally:
        for outer in reversed(made):
            with suppress(OSError):  # somebody else has begun to use it
                outer.rmdir()
