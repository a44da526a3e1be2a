"""Check a plan before anything is measured: all that would stop it, at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder
from assay.core.user_code import code_in
from assay.measures.base import Measure
from assay.plans.plan import Plan, read_plan
from assay.plans.problems import Collector
from assay.subject.subject import Subject


@dataclass(frozen=True)
class CheckedPlan:
    """A plan in which nothing was found wrong, and its networks."""

    plan: Plan
    subjects: list[Subject]


def check_plan(path: str | Path, run: str | None = None, pairs: bool = True) -> CheckedPlan:
    """Read a plan, make its networks, show each one input, and raise all problems that are found, each with its place.

    Nothing is measured and nothing is written.

    Args:
        path: The plan's file.
        run: Folder of the run, instead of the one that the plan names.
        pairs: Whether every measure must fit every network; without this, a cell whose measure does not fit fails.
    """
    problems = Collector()
    plan = read_plan(path, problems)
    if run is not None:
        plan = replace(plan, run=run)
    with problems.watching(f"{path}: run"):
        require_writable(Folder(plan.run))
    subjects = plan.load_subjects(problems)
    if pairs:
        with code_in(plan.folder):
            for subject in subjects:
                for label, measure in plan.measures.items():
                    where = plan.measure_places.get(label, str(path))
                    with problems.watching(f"{where}: {subject.name} × {label}"):
                        _check(measure, subject)
    problems.raise_any()
    return CheckedPlan(plan, subjects)


def _check(measure: Measure, subject: Subject) -> None:
    try:
        measure.check(subject)
    except AssayError:
        raise
    except Exception as error:  # the network and the measure may be the user's, and raise anything
        raise AssayError(f"{type(error).__name__}: {first_line(error)}") from error


def require_writable(folder: Folder) -> None:
    """Refuse a folder on this machine in which nothing can be written, without writing anything."""
    if not folder.local:
        return
    place = Path(folder.path())
    there = next((p for p in (place, *place.parents) if p.exists()), Path("/"))
    if not there.is_dir():
        raise AssayError(f"cannot write to {place}, because {there} is a file: choose another folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise AssayError(f"cannot write to {place}, because {there} is not yours to write to: choose another folder")
