"""The command of model search: ``assay search PLAN``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.terminal import (
    CELLS_FAILED,
    AsJson,
    OnRay,
    Processes,
    Quiet,
    err,
    out,
    print_json,
    print_table,
    progress,
)

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 10  # best trials in a table


def search(
    plan: Annotated[Path, typer.Argument(help="The search plan, a YAML file.")],
    folder: Annotated[
        str | None, typer.Option("--run", help="Folder of the run, instead of the one that the plan names.")
    ] = None,
    processes: Processes = 0,
    ray: OnRay = False,
    ray_address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
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
        found = run_search(plan, processes=processes, ray=ray_address or ray, run=folder)
    path = search_page(found).path
    best = found.best
    if as_json:
        failed = [{"trial": int(row["trial"]), "error": row["error"]} for row in _rows(found.failures)]
        counts = {str(k): int(v) for k, v in found.trials["status"].value_counts().items()}
        print_json({"run": found.path, "report": path, "status": counts, "best": _rows(best.head(1)), "failed": failed})
    else:
        for row in _rows(found.failures):
            err.print(f"failed: trial {row['trial']}: {row['error']}", markup=False)
        planned = found.about["planned"]
        title = f"{found.finished} of {planned} trials finished, {len(best)} complete; the best"
        print_table(title, _rows(best[[*columns_shown(found)]].head(_SHOWN)))
        out.print(path, markup=False)
    if len(found.failures):
        raise typer.Exit(CELLS_FAILED)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, with None where there is no value."""
    return [
        {str(key): None if isinstance(value, float) and value != value else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]
