"""The commands about runs: ``assay run | check | report | compare | list | demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
    DIFFERENT,
    AsJson,
    OnRay,
    Processes,
    err,
    out,
    print_json,
    print_table,
    progress,
)
from assay.core.errors import AssayError

app = typer.Typer(
    help="Finds out what a neural network has learned.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.")],
    folder: Annotated[
        str | None, typer.Option("--run", help="Where the run goes, instead of where the plan says.")
    ] = None,
    ray: OnRay = False,
    ray_address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Do what a plan says, as far as it is not done yet; then write the report."""
    from dataclasses import replace

    from assay.plans.plan import load_plan
    from assay.report import write_report

    loaded = load_plan(plan)
    if folder is not None:
        loaded = replace(loaded, run=folder)
    with progress():
        done = loaded.execute(ray=ray_address or ray, processes=processes)
    path = write_report(done)
    _finish(done, path, as_json)


@app.command()
def check(plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.")], as_json: AsJson = False) -> None:
    """Check a plan and show what would run: networks are made and shown one frame, nothing is measured."""
    from assay.core.folder import Folder
    from assay.plans.plan import load_plan
    from assay.runs.cells import CellKey
    from assay.runs.evaluate import cell_fingerprint

    loaded = load_plan(plan)
    folder = Folder(loaded.run)
    rows = []
    for subject in loaded.load_subjects():
        for label, measure in loaded.measures.items():
            try:
                measure.check(subject)
            except AssayError as error:
                raise AssayError(f"{plan}: {subject.name} × {label}: {error}") from error
            key = CellKey(subject.name, label, cell_fingerprint(subject, measure, loaded.seed))
            rows.append(
                {
                    "subject": subject.name,
                    "measure": label,
                    "layers": len(subject.layers),
                    "state": "done" if folder.exists(key.done) else "would run",
                }
            )
    if as_json:
        print_json({"plan": str(plan), "run": loaded.run, "cells": rows})
    else:
        print_table(f"{plan}: {len(rows)} cells, run {loaded.run}", rows)


@app.command()
def report(run: Annotated[str, typer.Argument(help="A run folder.")], as_json: AsJson = False) -> None:
    """Write a run's report.html."""
    from assay.report import write_report
    from assay.runs.run import Run

    path = write_report(Run(run))
    print_json({"report": path}) if as_json else out.print(path, markup=False)


@app.command()
def compare(
    run_a: Annotated[str, typer.Argument(help="A run folder.")],
    run_b: Annotated[str, typer.Argument(help="Another.")],
    tolerance: Annotated[float, typer.Option(help="Differences up to this are none.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Compare the tables of two runs; exit code 1 if they differ."""
    from assay.runs.compare import compare as compare_runs
    from assay.runs.run import Run

    table = compare_runs(Run(run_a), Run(run_b), tolerance)
    rows = [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]
    if as_json:
        print_json(rows)
    else:
        print_table("differences", rows)
    if table["differs"].any():
        raise typer.Exit(DIFFERENT)


@app.command("list")
def list_known(
    source: Annotated[str | None, typer.Argument(help="A network, to list its layers instead.")] = None,
    shape: Annotated[str, typer.Option("--input", help="Shape of one input of that network.")] = "3x224x224",
    as_json: AsJson = False,
) -> None:
    """List measures and networks; or the layers of one network."""
    if source is not None:
        from assay.subject.source import SubjectSource

        subject = SubjectSource(source).load()
        try:
            subject.example = tuple(int(side) for side in shape.split("x"))
        except ValueError:
            raise AssayError(f"--input {shape} is not a shape such as 3x224x224") from None
        layers = subject.layers
        print_json({"layers": layers}) if as_json else out.print("\n".join(layers), markup=False)
        return
    from assay import networks
    from assay.measures import Measure

    measures = [{"name": n, "what": (m.__doc__ or "").partition("\n")[0]} for n, m in Measure.known().items()]
    made = [
        {"name": f"assay.networks:{n}", "what": (getattr(networks, n).__doc__ or "").partition("\n")[0]}
        for n in networks.__all__
    ]
    if as_json:
        print_json({"measures": measures, "networks": made})
    else:
        print_table("measures", measures)
        print_table("networks", made)


@app.command()
def demo(
    folder: Annotated[str, typer.Option("--run", help="Where the run goes.")] = "runs/demo", as_json: AsJson = False
) -> None:
    """Run the demonstration: straightness of four networks on camera motion over photographs."""
    from assay.cli.demo import run_demo
    from assay.report import write_report

    with progress():
        done = run_demo(folder)
    _finish(done, write_report(done), as_json)


def _finish(done: Any, report_path: str, as_json: bool) -> None:
    """Say how a run went; the report's path comes last."""
    failures = done.failures
    if as_json:
        print_json(
            {
                "run": done.path,
                "report": report_path,
                "done": sum(c.status == "done" for c in done.cells),
                "failed": [{"subject": f.subject, "measure": f.measure, "error": f.error} for f in failures],
            }
        )
    else:
        for failure in failures:
            err.print(f"failed: {failure.subject} × {failure.measure}: {failure.error}", markup=False)
        out.print(f"{len(done.cells) - len(failures)} cells done, {len(failures)} failed")
        out.print(report_path, markup=False)
    if failures:
        raise typer.Exit(CELLS_FAILED)
