"""Examples: an input for subjects that have none, from the stimuli that the measures of a run share."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.measures.base import Measure
from assay.stimuli.images import Images
from assay.stimuli.invariance_test import InvarianceTest
from assay.stimuli.labelled import Labelled
from assay.stimuli.sequences import Sequences
from assay.subject.probe import example_kinds
from assay.subject.subject import Subject

_STIMULI = (Labelled, Images, Sequences, InvarianceTest)


class Examples:
    """One input for every measure that has no stimuli of its own, asked of a subject that has no example.

    Args:
        measures: The measures of a run, whose stimuli the input is taken from.
        example: An input, or the shape of one, or labelled data, to take it from instead.

    Example:
        >>> import numpy as np, torch, assay
        >>> data = Labelled(np.zeros((2, 3, 8, 8), np.float32), np.arange(2))
        >>> network = Subject(torch.nn.Flatten())
        >>> Examples([assay.Norms(), assay.Margins(data)]).lend(network, assay.Norms()).example.shape
        torch.Size([1, 3, 8, 8])
    """

    def __init__(self, measures: Iterable[Measure], example: Any = None) -> None:
        self._measures = list(measures)
        self._given = example

    @cached_property
    def _input(self) -> Any:
        return _first_input(self._given, self._measures)

    def lend(self, subject: Subject, measure: Measure) -> Subject:
        """The subject itself, or, where the measure needs one, a copy of it that has the example."""
        if subject.example is not None or _brings_inputs(measure) or self._input is None:
            return subject
        lent = copy.copy(subject)
        lent.example = self._input
        return lent

    def fingerprint(self, subject: Subject, measure: Measure) -> str:
        """The kind of example that a measure sees, as part of the key of a cell; empty where it looks at none."""
        if _brings_inputs(measure):
            return ""
        example = self.lend(subject, measure).example
        if example is None:
            return ""
        kinds = example_kinds(example) or {}
        return fingerprint({name: (kind.shape, kind.dtype) for name, kind in kinds.items()})


def _brings_inputs(measure: Measure) -> bool:
    return bool(_stimuli_of(measure)) or getattr(measure, "shape", None) is not None


def _stimuli_of(measure: Measure) -> list[Any]:
    return [value for value in measure.settings.values() if isinstance(value, _STIMULI)]


def _first_input(given: Any, measures: Iterable[Measure]) -> Any:
    """The input that was given, or else the first of the stimuli of the first measure that has some."""
    if given is not None and not isinstance(given, Labelled):
        return given
    stimuli = [given] if given is not None else [one for measure in measures for one in _stimuli_of(measure)]
    for one in stimuli:
        with suppress(AssayError):  # the measure that is shown them says what is wrong with them
            if isinstance(one, Labelled):
                return one.shown(slice(0, 1))
            if isinstance(one, Images):
                return one.array[:1].copy()
            first = next(iter(one.batches(1)))
            return first[0] if isinstance(one, Sequences) else first
    return None
