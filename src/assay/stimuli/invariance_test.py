"""Stimuli with trajectories: what an invariance test shows, and which stimuli are transformed versions of which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from assay.stimuli.pictures import Array
from assay.stimuli.thumbnails import MOST, stimuli_as_html


class InvarianceTest(ABC):
    """A set of stimuli P(x), numbered from 0, and transformations of them.

    ``name`` is the name of the test in tables, ``transformations`` are the names of its transformations. ``sampled``
    says whether its stimuli stand for others that could have been shown, as clips and pictures do, and are not a whole
    grid; then `blocks` are the same for all its transformations.
    """

    name: str
    sampled: bool = True

    @property
    @abstractmethod
    def transformations(self) -> tuple[str, ...]:
        """Names of the transformations that are tested."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of stimuli."""

    @abstractmethod
    def batches(self, size: int) -> Iterator[Array]:
        """Yield the stimuli in order, about ``size`` at a time, N×C×H×W float32."""

    def parts(self) -> Sequence[InvarianceTest]:
        """Return the tests that are asked one after another, each with a P(x) of its own: by default this one."""
        return (self,)

    def blocks(self, transformation: str) -> Array:
        """Return, for each stimulus, the number of its block: stimuli that are drawn together because they are alike.

        By default each stimulus is a block of its own.
        """
        return np.arange(len(self))

    @abstractmethod
    def magnitudes(self, transformation: str) -> Array:
        """Return the magnitudes γ of a transformation."""

    def pictures(self, numbers: Array) -> Sequence[Array] | Array:
        """Return the stimuli of these numbers; those of a video may differ in size."""
        wanted = {int(n) for n in np.ravel(numbers)}
        picture_by_number: dict[int, Any] = {}
        first = 0
        for batch in self.batches(64):
            picture_by_number |= {n: batch[n - first] for n in wanted if first <= n < first + len(batch)}
            first += len(batch)
            if len(picture_by_number) == len(wanted):
                break
        return [picture_by_number[int(n)] for n in np.ravel(numbers)]

    def _repr_html_(self) -> str:
        facts = {"shows": self.description, "transformations": ", ".join(self.transformations)}
        pictures = ((f"stimulus {i}", stimulus) for batch in self.batches(MOST) for i, stimulus in enumerate(batch))
        return stimuli_as_html(f"{type(self).__name__} test", facts, pictures)

    @property
    @abstractmethod
    def description(self) -> str:
        """What the test shows, in a line."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that decides what the test shows."""


class ClosedTest(InvarianceTest):
    """A test whose trajectories are made of its own stimuli, so that showing them once is enough."""

    @abstractmethod
    def trajectories(self, transformation: str) -> Array:
        """Return, for each stimulus, the numbers of the stimuli on its trajectory, itself included, padded with −1."""

    @abstractmethod
    def magnitude_of(self, transformation: str) -> Array:
        """Return, for each entry of `trajectories`, the number of its magnitude among `magnitudes`; −1 is padding."""

    def among(self, transformation: str) -> Array | None:
        """Return the numbers of the stimuli in whose neighbourhood a transformation is measured; None for all."""
        return None


class OpenTest(InvarianceTest):
    """A test whose trajectories are made on demand from the stimuli."""

    @abstractmethod
    def pictures(self, numbers: Array) -> Array:
        """Return the stimuli of these numbers, N×C×H×W."""

    @abstractmethod
    def trajectory(self, transformation: str, stimuli: Tensor) -> Tensor:
        """Return stimuli N×C×H×W at all M magnitudes of a transformation, N×M×C×H×W, on the same device."""
