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
    """Inside the block the stack is on ``device``; outside on the CPU, so that what is saved opens everywhere."""
    stack.to(device)
    try:
        yield
    finally:
        stack.to("cpu")


@dataclass(eq=False)
class StackLearner(ABC):
    """What learners that are a stack, and something learned around it (scales, vocabularies), have in common.

    Args:
        stack: What learns.
    """

    stack: LearnedStack

    @property
    def layers(self) -> list[str]:
        """Names of the layers of the stack."""
        return self.stack.layers

    def shallow(self) -> Self:
        """The same with the first layer only, not fitted."""
        return replace(self, stack=self.stack.shallow())

    def untrained(self, X: Features) -> Self:
        """The layers as they were before learning; only what is around them is learned."""
        self.stack.stack.load_state_dict(self.stack.start)
        self._learn_around(X)
        return self

    @abstractmethod
    def fit(self, X: Features) -> Self:
        """Learn, from the beginning, without labels."""

    @abstractmethod
    def transform(self, X: Features, layer: int = -1) -> Features:
        """The representation of a layer."""

    @abstractmethod
    def _learn_around(self, X: Features) -> None: ...
