"""What a search trains: a function of the user's, or a classifier of assay's on labelled data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import nn

from assay.core.device import device_named
from assay.core.errors import AssayError, nearest, shown
from assay.stimuli.labelled import Labelled
from assay.stimuli.transforms import Normalize
from assay.studies.corpus.corpus import accuracy
from assay.studies.corpus.plan import CorpusPlan
from assay.studies.corpus.trained import channel_statistics
from assay.studies.search.quantity import WrongPlan
from assay.subject.as_subject import is_network
from assay.subject.subject import Subject
from assay.training.callbacks import Callback
from assay.training.supervised import train

GIVEN = ("seed", "callback")
"""The arguments that a search gives besides the hyper-parameters."""


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network, and what its training tells of it by name."""

    subject: Subject
    numbers: Mapping[str, float] = field(default_factory=dict)


class Training(Protocol):
    """Trains one network by its hyper-parameters."""

    def check(self, names: Collection[str], callback: bool) -> list[str]:
        """What is wrong with these names of hyper-parameters, or with a training that must call back."""

    def wrap(self, module: nn.Module) -> Subject:
        """A subject of a network that is being trained."""

    def __call__(self, hyperparameters: Mapping[str, Any], seed: int, callback: Callback) -> TrainedNetwork:
        """Train a network."""


@dataclass(frozen=True)
class FunctionTraining:
    """A function of the user's, called with the hyper-parameters, ``seed`` and ``callback`` by name.

    It returns a torch module or a `Subject`, alone or with a mapping of numbers.

    Args:
        function: The function.
        name: What the plan calls it.
        preprocess: What is done to inputs before a bare module.
        example: Shape of one input of a bare module, where the plan's data tell it.
    """

    function: Callable[..., Any]
    name: str
    preprocess: Any = None
    example: tuple[int, ...] | None = None

    def check(self, names: Collection[str], callback: bool) -> list[str]:
        """What is wrong with these names of hyper-parameters, or with a training that must call back."""
        parameters = inspect.signature(self.function).parameters
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            return []
        takes = [p.name for p in parameters.values() if p.kind is not inspect.Parameter.POSITIONAL_ONLY]
        needed = ["seed", "callback"] if callback else ["seed"]
        wrong = [f"{self.name} takes no argument {name!r}{nearest(name, takes)}" for name in names if name not in takes]
        wrong += [
            f"{self.name} takes no argument {name!r}, which a search gives" for name in needed if name not in takes
        ]
        lacks = [p.name for p in parameters.values() if p.default is p.empty and p.name not in (*names, *GIVEN)]
        return wrong + [f"{self.name} needs the argument {name!r}: put it into space or fixed" for name in lacks]

    def wrap(self, module: nn.Module) -> Subject:
        """A subject of a network that is being trained, with the plan's preprocessing."""
        return Subject(module, preprocess=self.preprocess, example=self.example)

    def __call__(self, hyperparameters: Mapping[str, Any], seed: int, callback: Callback) -> TrainedNetwork:
        """Call the function."""
        parameters = inspect.signature(self.function).parameters
        takes_callback = "callback" in parameters or any(
            p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
        )
        given = {"callback": callback} if takes_callback else {}
        returned = self.function(**hyperparameters, seed=seed, **given)
        network, numbers = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, {})
        if not isinstance(numbers, Mapping):
            raise WrongPlan(f"{self.name} returned {shown(numbers)} beside a network: return a mapping of numbers")
        if isinstance(network, Subject):
            return TrainedNetwork(network, numbers)
        if not is_network(network):
            raise WrongPlan(f"{self.name} returned {shown(network)}: return a torch module or an assay.Subject")
        return TrainedNetwork(self.wrap(network), numbers)


@dataclass(frozen=True)
class ClassifierTraining:
    """A classifier of assay's, trained on labelled data with hyper-parameters of its architecture and its recipe.

    It tells ``train_accuracy``, ``test_accuracy``, ``gap`` and ``loss``, the training loss at the end.

    Args:
        plan: Architecture and data; its grid and its seed are not used.
    """

    plan: CorpusPlan

    @cached_property
    def data(self) -> tuple[Labelled, Labelled]:
        """The training set and the test set."""
        return self.plan.data.load(self.plan.seed)

    @cached_property
    def standardise(self) -> Normalize:
        """The preprocessing: every channel of the training set with mean 0 and standard deviation 1."""
        return Normalize(*channel_statistics(self.data[0]))

    def check(self, names: Collection[str], callback: bool) -> list[str]:
        """Nothing: the names were checked where the plan was read."""
        return []

    def wrap(self, module: nn.Module) -> Subject:
        """A subject of a network that is being trained, on the training's device."""
        return Subject(module, preprocess=self.standardise, example=self.data[0].shape)

    def __call__(self, hyperparameters: Mapping[str, Any], seed: int, callback: Callback) -> TrainedNetwork:
        """Build a classifier, train it, and find its accuracies."""
        train_set, test_set = self.data
        device = device_named(self.plan.device)
        mean, std = self.standardise.mean, self.standardise.std
        recipe = replace(self.plan.recipe(hyperparameters, 0, mean, std), seed=seed)
        module = self.plan.build(hyperparameters, train_set).to(device)
        inputs = self.standardise(train_set.shown(device=device))
        trained = train(module, inputs, torch.tensor(train_set.labels, device=device), recipe, callback=callback)
        if trained.status == "diverged":
            raise AssayError("training diverged: its loss is not finite")
        subject = self.wrap(module.eval())
        numbers = {"train_accuracy": accuracy(subject, train_set), "test_accuracy": accuracy(subject, test_set)}
        gap = numbers["train_accuracy"] - numbers["test_accuracy"]
        return TrainedNetwork(subject, {**numbers, "gap": gap, "loss": trained.loss})
