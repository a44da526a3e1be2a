"""Stimuli with trajectories: what an invariance test shows, and which stimuli are transforms of which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from assay.stimuli.pictures import Array


class InvarianceTest(ABC):
    """A set of stimuli P(x), numbered from 0, and transformations of them.

    ``name`` is what tables call it, ``transformations`` the names of its transformations.
    """

    name: str

    @property
    @abstractmethod
    def transformations(self) -> tuple[str, ...]:
        """Names of the transformations."""

    @abstractmethod
    def __len__(self) -> int:
        """How many stimuli."""

    @abstractmethod
    def batches(self, size: int) -> Iterator[Array]:
        """The stimuli in order, about ``size`` at a time, N×C×H×W float32."""

    def blocks(self) -> Array | None:
        """For each stimulus the number of the block of like stimuli it belongs to; None where each stands alone."""
        return None

    def pictures(self, numbers: Array) -> Sequence[Array] | Array:
        """Some of the stimuli, by number; those of a video may differ in size."""
        wanted = {int(n) for n in np.ravel(numbers)}
        found: dict[int, Any] = {}
        at = 0
        for batch in self.batches(64):
            found |= {n: batch[n - at] for n in wanted if at <= n < at + len(batch)}
            at += len(batch)
            if len(found) == len(wanted):
                break
        return [found[int(n)] for n in np.ravel(numbers)]

    @property
    @abstractmethod
    def description(self) -> str:
        """What is shown, in a line."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Content hash."""


class ClosedTest(InvarianceTest):
    """A test whose trajectories are made of its own stimuli, so that showing them once is enough."""

    @abstractmethod
    def trajectories(self, transformation: str) -> Array:
        """For each stimulus the numbers of the stimuli on its trajectory (itself among them), padded with −1."""

    def among(self, transformation: str) -> Array | None:
        """The stimuli whose neighbourhood this transformation is measured in; None for all."""
        return None


class OpenTest(InvarianceTest):
    """A test whose trajectories are made on demand from the stimuli."""

    @abstractmethod
    def pictures(self, numbers: Array) -> Array:
        """Some of the stimuli, by number, N×C×H×W."""

    @abstractmethod
    def trajectory(self, transformation: str, stimuli: Tensor) -> Tensor:
        """N×C×H×W to N×M×C×H×W: each stimulus at all M magnitudes of a transformation, on the same device."""
