"""Problems of a plan: collected as they are met, so that one reading of the plan names them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from assay.core.errors import AssayError

MOST = 20
"""Problems after which the rest of a plan is not read: a list that is wrong throughout would take long."""


class Problems(AssayError):
    """Several problems of one plan, one sentence on each line."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


class Collector:
    """Keeps the errors of the blocks that it watches, and raises them together; after `MOST` of them, at once.

    Example:
        >>> problems = Collector()
        >>> for value in (1, 2):
        ...     with problems.watching():
        ...         raise AssayError(f"{value} is no good")
        >>> problems.sentences
        ['1 is no good', '2 is no good']
    """

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.full = False

    @contextmanager
    def watching(self, where: str = "") -> Iterator[None]:
        """Keep an error of the block, with the words that say where it is about, and go on after the block."""
        try:
            yield
        except AssayError as error:
            if self.full:
                raise
            sentences = error.sentences if isinstance(error, Problems) else [str(error)]
            self.sentences += [f"{where}: {sentence}" if where else sentence for sentence in sentences]
            if len(self.sentences) >= MOST:
                self.full = True
                self.sentences[MOST:] = ["these are the first problems, and there may be more: mend them first"]
                self.raise_any()

    def raise_any(self) -> None:
        """Raise what was collected, if anything was: one error as it is, several as `Problems`."""
        unique = list(dict.fromkeys(self.sentences))
        if len(unique) == 1:
            raise AssayError(unique[0])
        if unique:
            raise Problems(unique)
