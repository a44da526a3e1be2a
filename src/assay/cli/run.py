"""The commands about runs: ``assay run | check | report | compare | demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
    DIFFERENT,
    AsJson,
    OnRay,
    PlanFile,
    Processes,
    Quiet,
    RayAddress,
    RunFolder,
    err,
    out,
    print_json,
    print_table,
    progress,
)
from assay.core.errors import AssayError

if TYPE_CHECKING:
    from assay.runs.run import Run
    from assay.studies.study_check import CheckedStudy

KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Measure what can be measured, though a measure does not fit a network.")
]
LABELS = {
    "measure": "measure",
    "column": "column",
    "rows": "rows compared",
    "rows_in_one_only": "rows in one run only",
    "largest_difference": "largest difference",
    "differs": "differs",
    "where": "largest at",
}
"""The columns of `assay.runs.compare.compare` in words."""


def run(
    plan: PlanFile,
    folder: RunFolder = None,
    ray: OnRay = False,
    ray_address: RayAddress = None,
    processes: Processes = 0,
    keep_going: KeepGoing = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure what a plan asks for, as far as it is not measured yet; then write the report.

    A plan with a problem is refused before anything is measured (exit code 2). If a cell fails, the others are still
    measured (exit code 3).
    """
    from assay.plans.check import check_plan

    with progress(quiet):
        checked = check_plan(plan, folder, pairs=not keep_going)
        done = checked.plan.execute(ray=ray_address or ray, processes=processes, subjects=checked.subjects)
    from assay.report import write_report

    path = write_report(done)
    finish(done, path, as_json)


def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.")],
    folder: RunFolder = None,
    keep_going: KeepGoing = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find all problems of a plan of 'assay run' or 'assay corpus', and show what would run.

    Networks are made and shown one input; nothing is measured and no result is written. Exit code 2 if there is a
    problem, just when 'assay run' would refuse the plan; with --keep-going exit code 3 if a cell would fail. Of a
    corpus all networks are loaded, and those whose weights do not fit are named together.
    """
    from assay.plans.yaml_files import require_there

    try:
        require_there(plan)
        from assay.plans.check import check_plan
        from assay.plans.settings import read_yaml
        from assay.studies.study_check import CheckedStudy, check_study_plan, is_study_plan

        root = read_yaml(plan)  # once: it may be a pipe
        with progress(quiet):
            checked = (check_study_plan if is_study_plan(root) else check_plan)(plan, folder, not keep_going, root)
    except AssayError as error:
        if as_json:
            print_json({"plan": str(plan), "problems": str(error).splitlines()})
        raise
    if isinstance(checked, CheckedStudy):
        _print_study(plan, checked, as_json)
        return
    rows = _cells(checked, with_errors=as_json)
    if as_json:
        print_json({"plan": str(plan), "run": checked.plan.run, "cells": rows, "problems": [], "notes": checked.notes})
    else:
        for note in checked.notes:
            err.print(note, markup=False)
        print_table(f"{plan}: {len(rows)} cells, run {checked.plan.run}", rows)
        for (subject, label), why in checked.failing.items():
            err.print(f"would fail: {subject} × {label}: {why}", markup=False)
    if checked.failing:
        raise typer.Exit(CELLS_FAILED)


def _print_study(plan: Path, checked: CheckedStudy, as_json: bool) -> None:
    """Say what a study would do; what was guessed to understand its corpus goes before."""
    corpus = checked.plan.corpus
    failing = [{"network": name, "measure": label, "error": why} for (name, label), why in checked.failing.items()]
    if as_json:
        print_json(
            {
                "plan": str(plan),
                "run": checked.plan.run,
                "would": str(checked),
                "networks": corpus.networks,
                "untrained": checked.untrained,
                "measures": list(checked.plan.measures),
                "hyperparameters": corpus.hyperparameters,
                "predictors": list(corpus.known.columns),
                "done": checked.done,
                "failing": failing,
                "problems": [],
                "notes": checked.notes,
            }
        )
    else:
        for note in (*corpus.notes, *checked.notes):
            err.print(f"{corpus.name}: {note}", markup=False)
        for one in failing:
            err.print(f"would fail: {one['network']} × {one['measure']}: {one['error']}", markup=False)
        out.print(f"{plan}: no problem: {checked}", markup=False)
    if failing:
        raise typer.Exit(CELLS_FAILED)


def _cells(checked: Any, with_errors: bool) -> list[dict[str, Any]]:
    """The cells of a plan, which of them are done, and which would fail."""
    from assay.core.folder import Folder
    from assay.core.user_code import code_in
    from assay.runs.cells import CellKey
    from assay.runs.evaluate import cell_fingerprint

    plan, rows = checked.plan, []
    folder, examples = Folder(plan.run), plan.examples
    with code_in(plan.folder):
        for subject in checked.subjects:
            for label, measure in plan.measures.items():
                key = CellKey(subject.name, label, cell_fingerprint(subject, measure, plan.seed, examples))
                state = "done" if folder.exists(key.done) else "would run"
                row = {"subject": subject.name, "measure": label, "layers": _layers(subject, measure), "state": state}
                if why := checked.failing.get((subject.name, label)):
                    row["state"] = "would fail"
                    row |= {"error": why} if with_errors else {}
                rows.append(row)
    return rows


def _layers(subject: Any, measure: Any) -> int | None:
    """How many layers a measure is asked of: all of them where it names none."""
    asked = getattr(measure, "layers", None)
    try:
        return len(subject.layers if asked is None else subject.choose(asked))
    except AssayError:  # no measure has shown the network an input, so that its layers are not known
        return None


def report(
    run: Annotated[str, typer.Argument(help="Folder of a run.")],
    file: Annotated[str | None, typer.Option("--out", help="File to write, instead of report.html there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run, a study or a search, report.html in its folder."""
    from assay.core.folder import Folder, NotWritten
    from assay.report import report_page
    from assay.report.search import write_search_report
    from assay.runs.run import Run
    from assay.studies.search.table import is_search

    try:
        path = write_search_report(run, file) if is_search(Folder(run)) else report_page(Run(run), file).path
    except NotWritten as error:
        raise AssayError(f"{error}; --out FILE writes the report elsewhere") from error
    print_json({"report": path}) if as_json else out.print(path, markup=False)


def compare(
    run_a: Annotated[str, typer.Argument(help="Folder of a run.")],
    run_b: Annotated[str, typer.Argument(help="Folder of another run.")],
    tolerance: Annotated[float, typer.Option(min=0.0, help="Ignore differences up to this size.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Compare the tables of two runs number by number; exit code 1 if they differ."""
    from assay.runs.compare import compare as compare_runs
    from assay.runs.run import Run

    table = compare_runs(Run(run_a), Run(run_b), tolerance)
    rows = table.to_dict("records")
    if as_json:
        print_json(rows)
    else:
        yes_no = {True: "yes", False: "no"}
        shown = [
            {LABELS.get(str(k), str(k)): yes_no[v] if k == "differs" else v for k, v in row.items()} for row in rows
        ]
        print_table(f"{run_a} and {run_b}", shown)
        out.print(f"{sum(row['differs'] for row in rows)} of {len(rows)} columns differ")
    if table["differs"].any():
        raise typer.Exit(DIFFERENT)


def demo(
    folder: Annotated[str, typer.Option("--run", help="Folder of the run.")] = "runs/demo",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the demonstration: train two small networks and examine them beside a model of V1, in about 4 minutes."""
    from assay.cli.demo import run_demo
    from assay.report import write_report

    with progress(quiet):
        done = run_demo(folder)
    finish(done, write_report(done), as_json)


def finish(done: Run, report_path: str, as_json: bool) -> None:
    """Say how a run went; the report's path comes last."""
    failures, outcome = done.failures, done.outcome
    if as_json:
        print_json(
            {
                "run": done.path,
                "report": report_path,
                "done": done.done,
                "kept": None if outcome is None else outcome.kept,
                "measured": None if outcome is None else outcome.measured,
                "failed": [{"subject": f.subject, "measure": f.measure, "error": f.error} for f in failures],
            }
        )
    else:
        for failure in failures:
            err.print(f"failed: {failure.subject} × {failure.measure}: {failure.error}", markup=False)
        out.print(str(outcome))
        out.print(report_path, markup=False)
    if failures:
        raise typer.Exit(CELLS_FAILED)
