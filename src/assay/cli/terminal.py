"""The terminal: output, tables, progress bars with the time left, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from assay.cli.lines import ProgressLines
from assay.cli.streams import on_terminal, results_alone, write_result
from assay.core.errors import AssayError
from assay.core.progress import listening

_WIDE = 160  # columns of a table in a pipe or file, which has no width of its own
_shown = on_terminal(sys.stdout)
# Names such as ``:x:`` are names, and no emoji.
out = Console(highlight=False, emoji=False, soft_wrap=not _shown, width=None if _shown else _WIDE)
err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)

NO_PLACE, BAD_INPUT, CELLS_FAILED, DIFFERENT, INTERRUPTED, TERMINATED = 1, 2, 3, 1, 130, 143

Processes = Annotated[
    int,
    typer.Option(min=0, help="How many jobs to do at a time, each in a process of this machine; 0 for this process."),
]
OnRay = Annotated[bool, typer.Option("--ray", help="Do each job on a Ray cluster, found or started here.")]
RayAddress = Annotated[str | None, typer.Option(help="Address of a Ray cluster.")]


def whole_place(place: str | None) -> str | None:
    """A folder that was given on the command line, which stays the same where user's code changes the directory."""
    if place is not None and not place.strip():
        raise AssayError("the folder of the run is empty: name one, or leave out --run")
    return place if place is None or "://" in place else str(Path(place).absolute())


def _there(plan: Path) -> Path:
    """A plan that is there: a name that is wrong is known before torch is loaded, which takes seconds."""
    from assay.plans.yaml_files import require_there

    require_there(plan)
    return plan


PlanFile = Annotated[
    Path, typer.Argument(callback=_there, help="The plan, a YAML file; 'assay init' writes one to begin with.")
]


RunFolder = Annotated[
    str | None,
    typer.Option("--run", callback=whole_place, help="Folder of the run, instead of the one that the plan names."),
]


def _alone(context: typer.Context, asked: bool) -> bool:
    """Keep what code of the user's prints out of JSON, until the command has ended."""
    if asked:
        context.with_resource(results_alone())
    return asked


AsJson = Annotated[bool, typer.Option("--json", callback=_alone, help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def print_json(value: Any) -> None:
    """Print a value for programs, with null for NaN, which JSON does not have."""
    write_result(json.dumps(_without_nan(value), indent=1, default=str))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and isnan(value) else value


def print_table(title: str, rows: Sequence[Mapping[Any, Any]]) -> None:
    """Print rows as a table for people."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in rows[0] if rows else ():
        table.add_column(escape(str(column)), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    out.print(table)


def _cell(value: Any) -> str:
    if _without_nan(value) is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))


@contextmanager
def progress(quiet: bool = False) -> Iterator[None]:
    """Show the progress of the block with the time left: bars on a terminal, now and then a line elsewhere."""
    if quiet:
        yield
        return
    if not on_terminal(sys.stderr):
        with listening(ProgressLines(lambda line: err.print(line, markup=False))):
            yield
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def listen(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                for other, task in list(tasks.items()):
                    if other not in ("cells", "runs", "trials"):
                        bars.remove_task(task)
                        del tasks[other]
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        with listening(listen):
            yield
