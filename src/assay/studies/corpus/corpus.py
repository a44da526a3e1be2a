"""Corpus: many networks that differ in hyper-parameters, with what they were trained and tested on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pandas as pd
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import batches, class_scores
from assay.subject.subject import Subject

RESULTS = ("train_accuracy", "test_accuracy", "gap")


class Corpus(ABC):
    """A table of networks, the networks themselves, and their data.

    ``table`` has one row per network: ``network`` (its name), one column per hyper-parameter, ``train_accuracy``,
    ``test_accuracy`` and ``gap``, the difference of the two.
    """

    name: str
    table: pd.DataFrame

    @property
    @abstractmethod
    def train(self) -> Labelled:
        """What the networks were trained on."""

    @property
    @abstractmethod
    def test(self) -> Labelled | None:
        """What the networks were tested on; None where only the result is known."""

    @abstractmethod
    def subject(self, network: str) -> Subject:
        """Load a network by its name, with its trained weights and what is kept of its past."""

    @property
    def hyperparameters(self) -> list[str]:
        """The columns of the table in which the networks differ by design."""
        return [str(c) for c in self.table.columns if c not in ("network", *RESULTS)]

    @property
    def known(self) -> pd.DataFrame:
        """Numbers that are known of the networks already and may predict the gap, by network; none by default."""
        return pd.DataFrame(index=pd.Index(self.networks, name="network"))

    @property
    def networks(self) -> list[str]:
        """The names of the networks, in the order of the table."""
        return [str(name) for name in self.table["network"]]

    @property
    def left_out(self) -> pd.DataFrame:
        """Networks that were trained but are not part of the corpus, and why (``status``); none by default."""
        return pd.DataFrame(columns=["network", "status"])

    def initial_weights(self, network: str) -> dict[str, Tensor] | None:
        """The weights of a network before training, by name; None where they were not kept."""
        self.require(network)
        return None

    def history(self, network: str) -> pd.DataFrame | None:
        """The losses of a network's training, one row per epoch; None where they were not kept."""
        self.require(network)
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed to understand the corpus, in sentences; nothing by default."""
        return ()

    def __len__(self) -> int:
        return len(self.table)

    def subjects(self) -> Iterator[Subject]:
        """Load the networks one at a time, in the order of the table."""
        for network in self.networks:
            yield self.subject(network)

    def require(self, network: str) -> int:
        """The row of a network in the table; an unknown name is an error that suggests the nearest known one."""
        if network not in self.networks:
            raise AssayError(f"unknown network {network!r}{nearest(network, self.networks)}")
        return self.networks.index(network)


def accuracy(subject: Subject, data: Labelled, batch_size: int = 1024) -> float:
    """The share of inputs whose largest output is at their label.

    Formula: A = Σ_{(x, y)} [argmax_i f(x)_i = y] / N; of equal outputs the first counts.
    """
    correct = 0
    for x, labels in batches(data, batch_size, subject.device):
        correct += int((class_scores(subject, x).argmax(1) == labels).sum())
    return correct / len(data)
