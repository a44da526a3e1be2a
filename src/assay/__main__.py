"""``python -m assay``: the command line."""

from assay.cli.main import main

main()
