"""The command line: ``assay run | check | report | compare | list | demo | broad | corpus``."""

from __future__ import annotations

import logging
import sys

from rich.logging import RichHandler

from assay.cli.broad import broad
from assay.cli.corpus import corpus
from assay.cli.run import app
from assay.cli.terminal import BAD_INPUT, err
from assay.core.errors import AssayError

app.add_typer(broad, name="broad")
app.add_typer(corpus, name="corpus")


def main() -> None:
    """Entry point: a user's mistake is one sentence and exit code 2, never a traceback."""
    logging.basicConfig(
        level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=err, show_path=False, show_time=False)]
    )
    logging.getLogger("assay").setLevel(logging.WARNING)
    try:
        app(standalone_mode=True)
    except AssayError as error:
        err.print(f"assay: {error}", markup=False)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
