"""The command line: ``assay init | check | run | report | compare | humans | search | list | demo | broad …``."""

from __future__ import annotations

import errno
import inspect
import logging
import os
import sys
from contextlib import suppress
from importlib import metadata
from typing import Annotated

import typer
from rich.logging import RichHandler

from assay.cli.broad import broad
from assay.cli.corpus import corpus
from assay.cli.ending import interruptible, without_threads
from assay.cli.examine import examine
from assay.cli.humans import humans
from assay.cli.init import init
from assay.cli.listing import list_known
from assay.cli.run import check, compare, demo, report, run
from assay.cli.search import search
from assay.cli.streams import open_streams
from assay.cli.terminal import BAD_INPUT, NO_PLACE, err
from assay.core.errors import AssayError, reason

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

_OF_THE_DISK = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR,
    errno.ENAMETOOLONG,
)  # fmt: skip
_REMEDIES = {
    errno.EMFILE: "allow more open files, as by 'ulimit -n 1024'",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs, or ask for less",
    errno.EAGAIN: "allow more processes, as by 'ulimit -u 1024', or ask for fewer",
}


def main() -> None:
    """Entry point: a user's mistake is one sentence and exit code 2, a machine's is one and 1, never a traceback.

    Ctrl-C and SIGTERM end it by one line at any moment, also while a command loads code or writes a report.
    """
    open_streams()
    logging.basicConfig(
        level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=err, show_path=False, show_time=False)]
    )
    logging.getLogger("assay").setLevel(logging.WARNING)
    with without_threads():
        _end_by_a_sentence()


def _end_by_a_sentence() -> None:
    """Do what the command line asks; whatever keeps it from being done is a sentence and an exit code."""
    try:
        with interruptible():
            app(prog_name="assay", standalone_mode=True)
    except AssayError as error:
        sentences = str(error).splitlines()  # several for a plan with several problems
        _say(*(f"assay: {sentence}" for sentence in sentences))
        if len(sentences) > 1:
            _say(f"{len(sentences)} problems")
        sys.exit(BAD_INPUT)
    except OSError as error:
        what = f"{error.filename} ({error.strerror})" if error.filename else str(error.strerror or error)
        remedy, fails = _REMEDIES.get(error.errno or 0, "see to it"), "machine"
        if error.errno in _OF_THE_DISK:
            remedy, fails = "make room or choose another folder", "disk"
        _say(f"assay: the {fails} fails: {what}; what is done is kept: {remedy}, and run again")
        sys.exit(NO_PLACE)
    except MemoryError:
        _say("assay: there is not enough memory; what is done is kept: ask for less or smaller, and run again")
        sys.exit(NO_PLACE)
    except (Exception, SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # assay raises no such thing: code of the user's does
        _say(f"assay: code of yours raises what ends programs ({reason(error)}): let it raise an Exception")
        sys.exit(BAD_INPUT)


def _say(*sentences: str) -> None:
    """Print sentences; where that cannot be, as on a full disk, the exit code alone says how it went."""
    for sentence in sentences:
        try:
            err.print(sentence, markup=False)
        except (OSError, ImportError):  # where no file can be opened, rich cannot load what it prints with
            with suppress(OSError):
                os.write(2, f"{sentence}\n".encode(errors="backslashreplace"))


if __name__ == "__main__":
    main()
