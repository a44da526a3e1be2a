"""The command line of corpora: ``assay corpus train | study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
    AsJson,
    OnRay,
    Processes,
    Quiet,
    RunFolder,
    err,
    out,
    print_json,
    print_table,
    progress,
)

corpus = typer.Typer(
    help="Train many networks, and see which measures predict their generalization gap.", no_args_is_help=True
)

PlanFile = Annotated[Path, typer.Argument(help="The plan, a YAML file.")]


@corpus.command()
def train(
    plan: PlanFile, processes: Processes = 0, ray: OnRay = False, quiet: Quiet = False, as_json: AsJson = False
) -> None:
    """Train the networks of a plan that are not trained yet."""
    from assay.core.user_code import code_in
    from assay.studies.corpus.plan import load_corpus_plan
    from assay.studies.corpus.trained import train_corpus

    with progress(quiet), code_in(plan.parent):
        done = train_corpus(load_corpus_plan(plan), processes=processes, ray=ray)
    brief = ["network", *done.hyperparameters, "train_accuracy", "test_accuracy", "gap", "epochs"]
    if as_json:
        tables = {"networks": done.table.to_dict("records"), "left_out": done.left_out.to_dict("records")}
        print_json({"corpus": done.folder.path(), **tables})
        return
    print_table(f"{len(done)} networks", done.table[brief].round(4).to_dict("records"))
    if len(done.left_out):
        print_table(
            f"{len(done.left_out)} left out: the training criterion was not reached",
            done.left_out[[*brief, "status"]].to_dict("records"),
        )
    out.print(done.folder.path(), markup=False)


@corpus.command()
def study(
    plan: PlanFile,
    folder: RunFolder = None,
    processes: Processes = 0,
    ray: OnRay = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure every network of a trained corpus, and rank the measures by how well they predict the gap."""
    from assay.core.user_code import code_in
    from assay.report import write_report
    from assay.studies.prediction import study as run_study
    from assay.studies.study_plan import load_study_plan

    with progress(quiet), code_in(plan.parent):
        loaded = load_study_plan(plan)
        done, found = run_study(
            loaded.corpus,
            loaded.measures,
            folder or loaded.run,
            loaded.scoring,
            processes=processes,
            ray=ray,
            plan=loaded.text,
        )
    path = write_report(done)
    failures = [{"network": f.subject, "measure": f.measure, "error": f.error} for f in done.failures]
    if as_json:
        ranking = found.ranking.to_dict("records")
        print_json({"run": done.path, "report": path, "ranking": ranking, "failures": failures})
    else:
        shown = ("measure", "cmi", "cmi_low", "cmi_high", "tau", "status")
        print_table(
            f"{loaded.corpus.name}: {len(loaded.corpus)} networks",
            found.ranking[[c for c in shown if c in found.ranking]].round(3).to_dict("records"),
        )
        for reason in found.ranking.get("cmi_status", [])[:1]:
            err.print(f"no conditional mutual information: {reason}", markup=False)
        if found.about["incomplete"]:
            err.print(found.about["incomplete"], markup=False)
        for failure in failures:
            err.print(f"{failure['network']} × {failure['measure']}: {failure['error']}", markup=False)
        out.print(path, markup=False)
    if failures:
        raise typer.Exit(CELLS_FAILED)
