"""The command of model search: ``assay search PLAN``."""

from __future__ import annotations

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
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

_SHOWN = 10  # best trials in a table


def search(
    plan: PlanFile,
    folder: RunFolder = None,
    processes: Processes = 0,
    ray: OnRay = False,
    ray_address: RayAddress = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train networks with other hyper-parameters, and find the best by any measure or performance.

    What is finished is kept: run it again to go on, also on other machines at once if the plan names a PostgreSQL
    database. A plan with a problem is refused before anything is trained (exit code 2). If a trial fails, the others
    still run (exit code 3); it is tried again when the search is.
    """
    from assay.report.search import columns_shown, search_page
    from assay.studies.search.search import run_search

    with progress(quiet):
        finished = run_search(plan, processes=processes, ray=ray_address or ray, run=folder)
    path = search_page(finished).path
    best = finished.best
    one = len(finished.about["objectives"]) == 1
    if as_json:
        failed = [{"trial": int(row["trial"]), "error": row["error"]} for row in finished.failures.to_dict("records")]
        counts = {str(k): int(v) for k, v in finished.trials["status"].value_counts().items()}
        top = (best.head(1) if one else best).to_dict("records")
        print_json({"run": finished.path, "report": path, "status": counts, "best": top, "failed": failed})
    else:
        for row in finished.failures.to_dict("records"):
            err.print(f"failed: trial {row['trial']}: {row['error']}", markup=False)
        planned, complete = finished.about["planned"], int((finished.trials["status"] == "complete").sum())
        which = "the best" if one else f"{len(best)} that none beats in all objectives"
        title = f"{finished.finished} of {planned} trials finished, {complete} complete; {which}"
        print_table(title, best[columns_shown(finished)].head(_SHOWN).to_dict("records"))
        out.print(path, markup=False)
    if len(finished.failures):
        raise typer.Exit(CELLS_FAILED)
