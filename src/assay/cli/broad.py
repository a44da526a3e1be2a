"""The command line of the Broad Evaluation: ``assay broad check | run | analyze | report | compare``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
    DIFFERENT,
    AsJson,
    OnRay,
    PlanFile,
    Quiet,
    RayAddress,
    err,
    out,
    print_json,
    print_table,
    progress,
)

broad = typer.Typer(help="Compare whole learning systems under six conditions.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(help="The plan, or the folder of an evaluation.")]


@broad.command()
def check(
    plan: PlanFile,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the runs.")] = False,
    run: Annotated[
        str | None,
        typer.Option(help="Folder to keep the checks in, for its report; by default the plan's own, if it exists."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a plan and its systems on a few instances, and list what would run; exit code 3 if a check fails."""
    from assay.broad.data.partition import commitment
    from assay.broad.plan import load_broad_plan
    from assay.broad.protocol import dry_run as runs
    from assay.broad.rules.apart import check_apart
    from assay.broad.run.remote import Surroundings
    from assay.broad.run.results import CHECKS, Results
    from assay.broad.systems.team import system_hash
    from assay.core.user_code import code_in

    with code_in(plan.parent):
        loaded = load_broad_plan(plan, with_data=True)
        tasks = loaded.tasks()
        listed = runs(tasks, loaded.teams, loaded.evaluators, loaded.protocol)
        checks = []
        hidden = (*loaded.label_files, *loaded.private, loaded.folder)
        around = Surroundings(hidden, tuple(loaded.label_files), limit_s=loaded.protocol.limit_s)
        if not dry_run:
            for team in loaded.teams:
                for modality, parts in team.parts.items():
                    if getattr(loaded, modality) is None:
                        continue
                    system = system_hash(parts.described)[:12]
                    sample, learned_from = loaded.sample(modality), loaded.learned_from(modality)
                    documents = loaded.documents(team)
                    for one in check_apart(parts, sample, documents, modality, around, learned_from):
                        row = (team.name, modality, one.requirement, one.status, one.sentence, system)
                        checks.append(dict(zip(CHECKS, row, strict=True)))
            if run is not None or Results(loaded.folder).folder.exists():
                with _working_in(run or loaded.folder, "keeps the checks of systems"):
                    Results(run or loaded.folder).write_checks(checks)
    partitions = [{"task": task.name, "partition": task.partition.hash} for task in tasks]
    if as_json:
        print_json(
            {"runs": listed, "checks": checks, "partitions": partitions, "commitment": commitment(loaded.secret)}
        )
    else:
        print_table(f"{plan}: {len(listed)} runs", listed)
        if checks:
            print_table("conformance", checks)
        print_table("partitions", partitions)
        out.print(f"commitment to the seed: {commitment(loaded.secret)}")
    if any(one["status"] == "fail" for one in checks):
        raise typer.Exit(CELLS_FAILED)


@broad.command()
def run(
    plan: PlanFile,
    only: Annotated[
        list[str] | None, typer.Option(help="Do only this run, anew, such as video/6s; may be given several times.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="How many runs to do at a time.")] = 1,
    ray: OnRay = False,
    ray_address: RayAddress = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run what is missing, analyse, and write report.html and slides.pptx; exit code 3 if a run did not end well."""
    from assay.broad.plan import load_broad_plan
    from assay.core.folder import Folder
    from assay.core.lock import locked
    from assay.core.user_code import code_in

    with ExitStack() as held:
        with progress(quiet), code_in(plan.parent):
            loaded = load_broad_plan(plan)
            if Folder(loaded.folder).local:
                held.enter_context(locked(Folder(loaded.folder).path(), "runs the evaluation"))
            loaded.execute(processes, tuple(only or ()), ray_address or ray)
        _finish(loaded.folder, as_json)


@broad.command()
def analyze(where: Where, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Analyse an evaluation again, without training anything; the same results give the same bytes."""
    from assay.broad.protocol import analyze as again

    folder = _folder(where)
    with _working_in(folder, "analyses the results"):
        with progress(quiet):
            again(folder)
        _finish(folder, as_json)


@broad.command()
def report(where: Where, as_json: AsJson = False) -> None:
    """Write report.html and slides.pptx of an evaluation that is analysed."""
    folder = _folder(where)
    with _working_in(folder, "writes the report"):
        _finish(folder, as_json)


@broad.command()
def compare(
    a: Annotated[str, typer.Argument(help="Folder of an evaluation.")],
    b: Annotated[str, typer.Argument(help="Folder of the same evaluation at another site.")],
    tolerance: Annotated[float, typer.Option(help="Count predictions that differ by up to this as close.")] = 1e-4,
    as_json: AsJson = False,
) -> None:
    """Compare the results of two sites run by run; exit code 1 if a conclusion differs."""
    from assay.broad.protocol import compare_folders

    table = compare_folders(a, b, tolerance)
    rows = table.to_dict("records")
    print_json(rows) if as_json else print_table("sites", rows)
    if (table["agreement"] == "different conclusion").any():
        raise typer.Exit(DIFFERENT)


@contextmanager
def _working_in(folder: str, purpose: str) -> Iterator[None]:
    """Keep other drivers out of the folder of an evaluation inside the block, if it is there and knows locks."""
    from assay.core.folder import Folder
    from assay.core.lock import locked

    if Folder(folder).local and Folder(folder).exists():
        with locked(Folder(folder).path(), purpose):
            yield
    else:
        yield


@broad.command()
def pack(
    folder: Annotated[str, typer.Argument(help="Folder of an evaluation.")],
    file: Annotated[Path, typer.Argument(help="File to write, such as results.zip.")],
) -> None:
    """Write the results of an evaluation into one file, to send to the evaluators; it holds no truth and no code."""
    from assay.broad.bundle import pack as packed

    out.print(f"{file}: {len(packed(folder, file))} files", markup=False)


@broad.command()
def ingest(
    folder: Annotated[str, typer.Argument(help="Folder of the evaluators' evaluation.")],
    file: Annotated[Path, typer.Argument(help="File that assay broad pack wrote at another site.")],
    name: Annotated[str, typer.Option(help="Name of the site.")],
) -> None:
    """Take in the results of another site, and compare them; exit code 1 if a conclusion differs."""
    from assay.broad.bundle import ingest as taken_in

    compare(folder, taken_in(folder, file, name))


def _folder(where: str) -> str:
    """A plan's folder, or the folder itself."""
    if where.endswith((".yaml", ".yml")):
        from assay.broad.plan import load_broad_plan
        from assay.core.user_code import code_in

        with code_in(Path(where).parent):
            return load_broad_plan(where).folder
    return where


def _finish(folder: str, as_json: bool) -> None:
    """Say how it went; the report's path comes last."""
    from assay.broad.analysis.analysis import Analysis
    from assay.broad.run.results import DONE
    from assay.core.folder import Folder
    from assay.report.broad.report import write_broad_report
    from assay.report.broad.verdicts import headlines
    from assay.report.slides.broad import write_slides

    tables = Analysis.read(Folder(folder)).tables
    status, claims = tables["status"], tables["claims"]
    bad = status[~status["status"].isin((*DONE, "not applicable"))]
    slides, page = write_slides(folder), write_broad_report(folder)
    if as_json:
        print_json(
            {
                "folder": folder,
                "report": page,
                "slides": slides,
                "claims": claims.to_dict("records"),
                "not done": bad.to_dict("records"),
            }
        )
    else:
        for row in bad.itertuples():
            err.print(f"{row.task}/{row.run}: {row.status}: {row.reason}", markup=False)
        few = headlines(claims)
        for sentence in few:
            out.print(sentence, markup=False)
        if few:
            out.print("(Of all differences, above 0 is better, whatever the metric.)")
        if len(claims) > len(few):
            out.print(f"{len(claims) - len(few)} more verdicts, and what each rests on, are in the report")
        out.print(f"{len(status) - len(bad)} runs done, {len(bad)} not")
        out.print(slides, markup=False)
        out.print(page, markup=False)
    if len(bad):
        raise typer.Exit(CELLS_FAILED)
