"""The command line: ``assay init | check | run | report | compare | humans | search | list | demo | broad …``."""

from __future__ import annotations

import inspect
import logging
import sys
from importlib import metadata
from typing import Annotated

import typer
from rich.logging import RichHandler

from assay.cli.broad import broad
from assay.cli.corpus import corpus
from assay.cli.examine import examine
from assay.cli.humans import humans
from assay.cli.init import init
from assay.cli.listing import list_known
from assay.cli.run import check, compare, demo, report, run
from assay.cli.search import search
from assay.cli.terminal import BAD_INPUT, err
from assay.core.errors import AssayError

app = typer.Typer(
    help="Find out what neural networks have learned, what they are invariant to, and how they differ.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"assay {metadata.version('assay')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find out what neural networks have learned, what they are invariant to, and how they differ."""


for command in (examine, init, check, run, report, compare, humans, demo, search):
    app.command()(command)
app.command("list")(list_known)
app.add_typer(broad, name="broad")
app.add_typer(corpus, name="corpus")


def _flowing(text: str) -> str:
    """A docstring whose paragraphs have no line breaks, so that the terminal's width alone breaks their lines."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


for commands in (app, broad, corpus):
    for registered in commands.registered_commands:
        registered.help = _flowing(registered.help or getattr(registered.callback, "__doc__", None) or "")


def main() -> None:
    """Entry point: a user's mistake is one sentence and exit code 2, never a traceback."""
    logging.basicConfig(
        level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=err, show_path=False, show_time=False)]
    )
    logging.getLogger("assay").setLevel(logging.WARNING)
    try:
        app(prog_name="assay", standalone_mode=True)
    except AssayError as error:
        sentences = str(error).splitlines()  # several for a plan with several problems
        for sentence in sentences:
            err.print(f"assay: {sentence}", markup=False)
        if len(sentences) > 1:
            err.print(f"{len(sentences)} problems")
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
