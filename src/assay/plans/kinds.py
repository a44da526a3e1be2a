"""Kinds of plan: which command reads a file, by the keys that only its plans have."""

from __future__ import annotations

from collections.abc import Collection

MARKS = {
    "assay run": ("subjects",),
    "assay broad run": ("evaluators", "teams"),
    "assay corpus train": ("grid",),
    "assay corpus study": ("corpus", "pgdl"),
    "assay search": ("space", "objectives"),
}
"""The keys by which a plan of each command is recognised."""


def other_command(keys: Collection[str], known: Collection[str]) -> str | None:
    """The command whose plan a file looks like, where it is not that of the command which knows these keys.

    Args:
        keys: The keys of the file.
        known: The keys that a plan of the command which was asked may have.

    Example:
        >>> other_command(["teams", "evaluators", "secret"], known=["subjects", "measures"])
        'assay broad run'
        >>> other_command(["subjects", "teams"], known=["subjects", "measures"]) is None
        True
    """
    if any(mark in keys and mark in known for marks in MARKS.values() for mark in marks):
        return None
    return next((command for command, marks in MARKS.items() if any(mark in keys for mark in marks)), None)
