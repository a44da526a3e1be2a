"""Corpus plans: a YAML file that says which networks to train on which data, and what to measure in them afterwards."""

from __future__ import annotations

import itertools
import math
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.core.limits import OBJECTS, require_count
from assay.plans.problems import Collector
from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert, read_yaml
from assay.stimuli.labelled import Labelled
from assay.studies.corpus.architecture import Architecture
from assay.studies.corpus.data import CorpusData
from assay.training.adversarial import Adversary
from assay.training.augmentation import Augment
from assay.training.recipe import Recipe

_SET_BY_PLAN = ("augmentation", "adversary", "seed")  # settings of a recipe that a plan gives elsewhere
_ATTACK = {
    "epsilon": "epsilon",
    "norm": "norm",
    "attack_steps": "steps",
    "attack_step_size": "step_size",
    "attack_random_start": "random_start",
}  # what a plan calls the settings of an adversary


@dataclass(frozen=True)
class CorpusPlan:
    """Networks of one kind, one for every combination of hyper-parameters.

    Args:
        network: Architecture of all networks: ``vgg``, ``nin``, ``conv``, ``resnet``, or ``module:factory``.
        data: What the networks are trained and tested on.
        grid: Hyper-parameters that vary, by name, each with its values: arguments of the network, settings of the
            recipe, ``augmentation`` (``none``, or a perturbation with ``partial`` or ``full``), ``train_size`` (the
            number of training inputs, as many of each class, smaller sets being parts of larger ones), ``seed`` (for
            several networks of each kind), and for adversarial training ``epsilon``, ``norm``, ``attack_steps``,
            ``attack_step_size`` and ``attack_random_start``.
        fixed: Settings of the same kinds that have one value for all networks.
        folder: Where the corpus is written.
        seed: Seed of the sample of data, of the initial weights and of training; each network has its own.
        device: Device on which to train.
        at_once: How many networks are trained side by side.
        text: The plan as written.
        file: Path of the file that the plan was read from.
    """

    network: str
    data: CorpusData
    grid: Mapping[str, tuple[Any, ...]]
    fixed: Mapping[str, Any]
    folder: str
    seed: int = 0
    device: str = "cpu"
    at_once: int = 8
    text: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""

    def combinations(self) -> dict[str, dict[str, Any]]:
        """Names of the networks, and the hyper-parameters of each."""
        combinations = list(itertools.product(*self.grid.values()))
        width = max(3, len(str(len(combinations) - 1)))
        return {
            f"network_{i:0{width}}": dict(zip(self.grid, values, strict=True)) for i, values in enumerate(combinations)
        }

    def build(self, hyperparameters: Mapping[str, Any], data: Labelled) -> nn.Module:
        """Build a network with these hyper-parameters, as it is before training."""
        settings = dict(self.fixed) | dict(hyperparameters)
        return Architecture(self.network, Path(self.file).parent).build(settings, data.classes, data.shape[0])

    def recipe(self, hyperparameters: Mapping[str, Any], number: int, mean: Any, std: Any) -> Recipe:
        """How the network of this number and these hyper-parameters is trained."""
        settings = dict(self.fixed) | dict(hyperparameters)
        known = {f.name for f in fields(Recipe)}
        augment = Augment.named(settings.get("augmentation", "none"), mean, std)
        training = {k: v for k, v in settings.items() if k in known and k not in _SET_BY_PLAN}
        adversary = _adversary(settings, mean, std)
        seed = self.seed_of(number, hyperparameters)
        return Recipe(**training, augmentation=augment, adversary=adversary, seed=seed)

    def seed_of(self, number: int, hyperparameters: Mapping[str, Any]) -> int:
        """The seed of a network's initial weights and training, different for every network.

        It follows from the network's number in the grid; where the plan has ``seed`` among the hyper-parameters, from
        these, so that a longer list of seeds changes none of the networks before.
        """
        settings = dict(self.fixed) | dict(hyperparameters)
        if "seed" not in settings:
            return self.seed * 100_003 + number
        if settings["seed"] < 0:
            raise AssayError(f"seed={settings['seed']} must be at least 0")
        return int(fingerprint(self.seed, {key: settings[key] for key in sorted(settings)})[:12], 16)

    def train_size(self, hyperparameters: Mapping[str, Any]) -> int | None:
        """On how many of the training inputs a network is trained; None for all."""
        size: int | None = (dict(self.fixed) | dict(hyperparameters)).get("train_size")
        if size is not None and size < 1:
            raise AssayError(f"train_size={size} must be at least 1")
        return size


def load_corpus_plan(path: str | Path) -> CorpusPlan:
    """Read and check the training part of a plan, a YAML file; paths in it are relative to that file."""
    root = read_yaml(Path(path))
    return corpus_plan(root)


def corpus_plan(root: Node, known: Collection[str] | None = None) -> CorpusPlan:
    """Check the training part of a plan that has been read, and make a `CorpusPlan` of it; all problems are raised.

    Args:
        root: The plan.
        known: The keys that it may have; by default `KEYS`.
    """
    if isinstance(root.value, dict) and isinstance(root.value.get("corpus"), dict):
        root["corpus"].fail("is a table of networks that are trained already: measure them (assay corpus study)")
    reading = Reading(root, KEYS if known is None else known, ("network", "data", "grid"))
    network = reading.take("network", _network, "")
    grid: dict[str, tuple[Any, ...]] = {}
    fixed: dict[str, Any] = {}
    if network:
        kinds = _settings(Architecture(network, root.file.parent))
        reading.take("grid", lambda node: _read_grid(node, network, kinds, grid, fixed), None)
        reading.take("training", lambda node: _read_training(node, kinds, grid, fixed), None)
    optional = {
        key: reading.take(key, partial(convert, kind=kind, loaders={}), None) for key, kind in _OPTIONAL.items()
    }
    optional = {key: value for key, value in optional.items() if value is not None}
    for key, least in (("seed", 0), ("at_once", 1)):
        with reading.problems.watching():
            if not least <= optional.get(key, least) < _MOST:
                reading.entries[key].fail(f"is {optional[key]}, expected a whole number from {least} to 2⁴⁰ − 1")
    folder = reading.folder("corpus", f"runs/{root.file.stem}")
    data = reading.take("data", lambda node: build(CorpusData, node), CorpusData(Path()))
    reading.problems.raise_any()
    plan = CorpusPlan(network, data, grid, fixed, folder, text=root.value, file=str(root.file.absolute()), **optional)
    _check_recipes(plan, root)
    return plan


def _network(node: Node) -> str:
    network: str = convert(node, str, {})
    try:
        Architecture(network, node.file.parent)
    except AssayError as error:
        node.fail(str(error))
    return network


def _read_grid(
    node: Node, network: str, kinds: Mapping[str, Any], grid: dict[str, tuple[Any, ...]], fixed: dict[str, Any]
) -> None:
    """Read the hyper-parameters: those with a list of values into ``grid``, those with one into ``fixed``."""
    reading = Reading(node)

    def hyperparameter(key: str, entry: Node) -> None:
        if key not in kinds:
            entry.fail(f"unknown hyper-parameter of {network}{nearest(key, kinds)}")
        if isinstance(entry.value, list):
            grid[key] = _levels(entry, kinds[key])
        else:
            fixed[key] = convert(entry, kinds[key], {})

    reading.every(hyperparameter)
    with reading.problems.watching(node.where):
        networks = math.prod(map(len, grid.values()))
        require_count(f"{networks} combinations of hyper-parameters", networks, OBJECTS)
    if reading.entries and not any(isinstance(entry.value, list) for entry in reading.entries.values()):
        with reading.problems.watching():
            node.fail("has no hyper-parameter with a list of values: nothing differs between the networks")
    reading.problems.raise_any()


def _read_training(
    node: Node, kinds: Mapping[str, Any], grid: Mapping[str, tuple[Any, ...]], fixed: dict[str, Any]
) -> None:
    """Read the settings that all networks share into ``fixed``."""
    reading = Reading(node)

    def setting(key: str, entry: Node) -> None:
        if key not in kinds or key in grid or key in fixed:
            entry.fail("is in the grid too: give it once" if key in kinds else f"unknown setting{nearest(key, kinds)}")
        fixed[key] = convert(entry, kinds[key], {})

    reading.every(setting)
    reading.problems.raise_any()


_MOST = 2**40  # seeds of networks are multiples of a plan's, below 2⁶³
_OPTIONAL: dict[str, Any] = {"seed": int, "device": str, "at_once": int}
KEYS = ("network", "data", "grid", "training", "corpus", *_OPTIONAL, "measures", "run", "scoring")
"""The keys of a plan: what is trained, and what is measured afterwards."""


def _settings(architecture: Architecture) -> dict[str, Any]:
    """Names and types of the settings that a plan may give for a network and its training."""
    training = {k: v for k, v in typing.get_type_hints(Recipe).items() if k not in _SET_BY_PLAN}
    of_attacks = typing.get_type_hints(Adversary)
    attack = {key: of_attacks[name] for key, name in _ATTACK.items()}
    return architecture.arguments | training | attack | {"augmentation": str, "train_size": int, "seed": int}


def _adversary(settings: Mapping[str, Any], mean: Any, std: Any) -> Adversary | None:
    """The attack that the settings of a network describe; None where they describe none."""
    attack = {name: settings[key] for key, name in _ATTACK.items() if key in settings}
    if attack and "epsilon" not in attack:
        given = next(key for key in _ATTACK if key in settings)
        raise AssayError(f"{given} is given without epsilon, so that there is no attack: give epsilon, 0 for none")
    return Adversary(**attack, mean=mean, std=std) if attack else None


def _levels(node: Node, kind: Any) -> tuple[Any, ...]:
    levels: tuple[Any, ...] = convert(node, tuple[kind, ...], {})
    if not levels:
        node.fail("is an empty list")
    if len(set(levels)) < len(levels):
        node.fail(f"has {next(v for v in levels if levels.count(v) > 1)!r} twice")
    return levels


def _check_recipes(plan: CorpusPlan, root: Node) -> None:
    """Make every recipe once, so that an impossible one is an error before hours of training, not after."""
    problems = Collector()
    for number, hyperparameters in enumerate(plan.combinations().values()):
        with problems.watching(root["grid"].where):
            plan.recipe(hyperparameters, number, (0.0,), (1.0,))
            plan.train_size(hyperparameters)
    problems.raise_any()
