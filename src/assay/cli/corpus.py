"""The command line of corpora: ``assay corpus train | study | score``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
    AsJson,
    OnRay,
    PlanFile,
    Processes,
    Quiet,
    RunFolder,
    err,
    out,
    print_json,
    print_table,
    progress,
)
from assay.core.errors import AssayError

if TYPE_CHECKING:
    from assay.studies.prediction import Study

corpus = typer.Typer(
    help="Train many networks, and see which measures predict their generalization gap.", no_args_is_help=True
)


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
    brief = ["network", *done.plan.grid, "train_accuracy", "test_accuracy", "gap", "epochs"]
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
    """Measure every network of a corpus, trained here or listed in a table, and rank what predicts the gap."""
    from assay.core.user_code import code_in
    from assay.report import write_report
    from assay.studies.prediction import study as run_study
    from assay.studies.study_plan import load_study_plan

    with progress(quiet), code_in(plan.parent):
        loaded = load_study_plan(plan)
        for note in loaded.corpus.notes:
            err.print(f"{loaded.corpus.name}: {note}", markup=False)
        done, judged = run_study(
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
        ranking = judged.ranking.to_dict("records")
        print_json({"run": done.path, "report": path, "ranking": ranking, "failures": failures})
    else:
        _print_ranking(loaded.corpus.name, judged)
        for failure in failures:
            err.print(f"{failure['network']} × {failure['measure']}: {failure['error']}", markup=False)
        out.print(path, markup=False)
    if failures:
        raise typer.Exit(CELLS_FAILED)


@corpus.command()
def score(
    table: Annotated[Path, typer.Argument(help="CSV file with one row per network.")],
    gap: Annotated[str | None, typer.Option(help="Column of the generalization gap.")] = None,
    train_accuracy: Annotated[str | None, typer.Option(help="Column of the training accuracy.")] = None,
    test_accuracy: Annotated[str | None, typer.Option(help="Column of the test accuracy.")] = None,
    network: Annotated[str | None, typer.Option(help="Column of the networks' names.")] = None,
    hyperparameters: Annotated[
        str | None, typer.Option(help="Columns in which the networks differ by design, with commas between.")
    ] = None,
    predictors: Annotated[
        str | None, typer.Option(help="Columns to score; by default all other columns of numbers.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="How many hyper-parameters are given at a time, such as 2 or 0,1,2.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Resamples of the networks for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    folder: RunFolder = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score numbers that you have: which columns of a table predict the generalization gap of its networks?"""
    from assay.report import write_report
    from assay.studies.corpus.network_table import Columns
    from assay.studies.scored_table import score_table

    columns = Columns(network, gap, train_accuracy, test_accuracy, _listed(hyperparameters), _listed(predictors))
    place = folder or f"runs/{table.stem}-scored"
    with progress(quiet):
        done, judged = score_table(table, place, columns, sizes=_sizes(sizes), draws=draws, seed=seed)
    path = write_report(done)
    if as_json:
        ranking = judged.ranking.to_dict("records")
        print_json({"run": done.path, "report": path, "notes": judged.about["notes"], "ranking": ranking})
        return
    for note in judged.about["notes"]:
        err.print(f"{table.name}: {note}", markup=False)
    _print_ranking(table.name, judged)
    out.print(path, markup=False)


def _listed(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.strip() for name in names.split(",") if name.strip())


def _sizes(words: str | None) -> tuple[int, ...] | None:
    listed = _listed(words)
    if listed is None:
        return None
    if not listed or not all(word.isdecimal() for word in listed):
        raise AssayError(f"--sizes {words}: give whole numbers from 0, such as 2 or 0,1,2")
    return tuple(map(int, listed))


def _print_ranking(title: str, judged: Study) -> None:
    """Print how well each measure predicts the gap, and what the reader must know of it."""
    from assay.report.study_findings import counts, measures_and_controls
    from assay.studies.statistics.chance import LEVEL

    ranking = judged.ranking
    shown = (
        "measure",
        "cmi_distinct",
        "cmi_distinct_low",
        "cmi_distinct_high",
        "cmi",
        "p_max",
        "tau",
        "direction",
        "budget",
    )
    table = ranking[[c for c in (*shown, "status") if c in ranking]].round(3)
    print_table(f"{title}: {len(judged.networks)} networks", table.to_dict("records"))
    if "chance" in ranking and ranking["chance"].notna().any():
        _, measures, controls = counts(ranking)
        clear = int((ranking["p_max"][ranking["kind"] == "measure"] <= LEVEL).sum())
        out.print(
            f"chance: of {measures_and_controls(measures, controls)} that say nothing, the best stays below "
            f"cmi_distinct {ranking['chance'].max():.3f} 95 % of the time ({len(judged.networks)} networks); {clear} "
            f"of {measures} measures have p_max ≤ {LEVEL}",
            markup=False,
        )
    for reason in ranking.get("cmi_distinct_status", [])[:1]:
        err.print(f"no conditional mutual information: {reason}", markup=False)
    if judged.about["incomplete"]:
        err.print(judged.about["incomplete"], markup=False)
