"""Stacks of layers as learners of the broad evaluation: from clips or from rows of a matrix, layer by layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

from assay.broad.data.dataset import Features
from assay.networks import LearnedStack


@contextmanager
def on_device(stack: LearnedStack, device: str) -> Iterator[None]:
    """Keep a stack on ``device`` inside a block, and on the CPU outside, so that what is saved opens everywhere."""
    stack.to(device)
    try:
        yield
    finally:
        stack.to("cpu")


@dataclass(eq=False)
class StackLearner(ABC):
    """A learner that is a stack of layers and something learned around it (scales, vocabularies).

    Args:
        stack: The stack of layers.
    """

    stack: LearnedStack

    @property
    def layers(self) -> list[str]:
        """Names of the layers of the stack."""
        return self.stack.layers

    def shallow(self) -> Self:
        """Make the same learner with the first layer only, not fitted."""
        return replace(self, stack=self.stack.shallow())

    def untrained(self, X: Features) -> Self:
        """Reset the layers to what they were before learning; learn only what is around them."""
        self.stack.stack.load_state_dict(self.stack.start)
        self._learn_around(X)
        return self

    @abstractmethod
    def fit(self, X: Features) -> Self:
        """Learn from features without labels, starting anew."""

    @abstractmethod
    def transform(self, X: Features, layer: int = -1) -> Features:
        """Compute the representation of a layer."""

    @abstractmethod
    def _learn_around(self, X: Features) -> None: ...
