"""Corpus plans: a YAML file that says which networks are trained on what, and what is asked of them afterwards."""

from __future__ import annotations

import inspect
import itertools
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import nn

from assay.core.errors import AssayError, nearest
from assay.networks import FullyConvolutional, NetworkInNetwork, resnet, vgg
from assay.plans.settings import Node, build, convert, read_yaml
from assay.stimuli.labelled import Labelled, load_labelled
from assay.training.augmentation import Augment
from assay.training.recipe import Recipe

FACTORIES: dict[str, Callable[..., nn.Module]] = {
    "vgg": vgg,
    "nin": NetworkInNetwork,
    "conv": FullyConvolutional,
    "resnet": resnet,
}
_GIVEN = ("classes", "channels")  # arguments of a network that its data decide
_OWN = ("augmentation", "seed")  # settings of a recipe that a plan says elsewhere


@dataclass(frozen=True)
class CorpusData:
    """What networks are trained and tested on.

    Args:
        path: As of `assay.stimuli.load_labelled`.
        train: So many of the training set, drawn at random by the plan's seed; all by default.
        test: So many of the test set.
    """

    path: Path
    train: int | None = None
    test: int | None = None

    def load(self, seed: int) -> tuple[Labelled, Labelled]:
        """Training and test set."""
        train, test = (load_labelled(self.path, split=split) for split in ("train", "test"))
        return _some(train, self.train, seed), _some(test, self.test, seed)


@dataclass(frozen=True)
class CorpusPlan:
    """Networks of one kind, one for every combination of hyper-parameters.

    Args:
        network: ``vgg``, ``nin``, ``conv`` or ``resnet``.
        data: What they learn.
        grid: Hyper-parameters by name, each with its values: arguments of the network, settings of the recipe, and
            ``augmentation`` (``none``, or a perturbation with ``partial`` or ``full``).
        fixed: The same, with one value for all networks.
        folder: Where the corpus goes.
        seed: Of the sample of data, the initial weights and the training; each network has numbers of its own.
        device: Where to train.
        at_once: How many side by side.
        text: The plan as written.
        file: Where it was.
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
        every = list(itertools.product(*self.grid.values()))
        width = max(3, len(str(len(every) - 1)))
        return {f"network_{i:0{width}}": dict(zip(self.grid, values, strict=True)) for i, values in enumerate(every)}

    def build(self, hyperparameters: Mapping[str, Any], data: Labelled) -> nn.Module:
        """A network as it is before training."""
        settings = dict(self.fixed) | dict(hyperparameters)
        factory = FACTORIES[self.network]
        own = {k: v for k, v in settings.items() if k in inspect.signature(factory).parameters}
        return factory(**own, classes=data.classes, channels=data.shape[0])

    def recipe(self, hyperparameters: Mapping[str, Any], number: int, mean: Any, std: Any) -> Recipe:
        """How a network is trained."""
        settings = dict(self.fixed) | dict(hyperparameters)
        known = {f.name for f in fields(Recipe)}
        augment = Augment.named(settings.get("augmentation", "none"), mean, std)
        own = {k: v for k, v in settings.items() if k in known and k not in _OWN}
        return Recipe(**own, augmentation=augment, seed=self.seed_of(number))

    def seed_of(self, number: int) -> int:
        """Of a network's initial weights and training."""
        return self.seed * 100_003 + number


def load_corpus_plan(path: str | Path) -> CorpusPlan:
    """Read and check the training part of a plan. Paths in it are relative to it."""
    root = read_yaml(Path(path))
    return corpus_plan(root)


def corpus_plan(root: Node) -> CorpusPlan:
    """The training part of a plan."""
    entries = dict(root.items())
    for key, node in entries.items():
        if key not in KEYS:
            node.fail(f"unknown key{nearest(key, KEYS)}")
    for key in ("network", "data", "grid"):
        if key not in entries:
            root.fail(f"lacks the key {key!r}")
    network = convert(root["network"], str, {})
    if network not in FACTORIES:
        root["network"].fail(f"unknown network {network!r}{nearest(network, FACTORIES)}")
    kinds = _settings(FACTORIES[network])
    grid: dict[str, tuple[Any, ...]] = {}
    fixed: dict[str, Any] = {}
    for key, node in root["grid"].items():
        if key not in kinds:
            node.fail(f"unknown hyper-parameter of {network}{nearest(key, kinds)}")
        if isinstance(node.value, list):
            grid[key] = _levels(node, kinds[key])
        else:
            fixed[key] = convert(node, kinds[key], {})
    if not grid:
        root["grid"].fail("has no hyper-parameter with a list of values: nothing differs between the networks")
    for key, node in entries["training"].items() if "training" in entries else ():
        if key not in kinds or key in grid or key in fixed:
            node.fail("is in the grid too: give it once" if key in kinds else f"unknown setting{nearest(key, kinds)}")
        fixed[key] = convert(node, kinds[key], {})
    rest = {k: convert(root[k], kind, {}) for k, kind in _REST.items() if k in root.value}
    folder = rest.pop("corpus", f"runs/{root.file.stem}")
    data, place = build(CorpusData, root["data"]), str(root.file.parent / folder)
    plan = CorpusPlan(network, data, grid, fixed, place, text=root.value, file=str(root.file.absolute()), **rest)
    _try(plan, root)
    return plan


_REST: dict[str, Any] = {"corpus": str, "seed": int, "device": str, "at_once": int}
KEYS = ("network", "data", "grid", "training", *_REST, "measures", "run", "scoring")
"""Of a plan: what is trained, and what is asked afterwards."""


def _settings(factory: Callable[..., nn.Module]) -> dict[str, Any]:
    """Names and types of what may be said of a network and its training."""
    maker = factory.__init__ if inspect.isclass(factory) else factory
    own = {k: v for k, v in typing.get_type_hints(maker).items() if k not in (*_GIVEN, "return")}
    training = {k: v for k, v in typing.get_type_hints(Recipe).items() if k not in _OWN}
    return own | training | {"augmentation": str}


def _levels(node: Node, kind: Any) -> tuple[Any, ...]:
    levels = tuple(convert(entry, kind, {}) for entry in node.elements())
    if not levels:
        node.fail("is an empty list")
    if len(set(levels)) < len(levels):
        node.fail(f"has {next(v for v in levels if levels.count(v) > 1)!r} twice")
    return levels


def _try(plan: CorpusPlan, root: Node) -> None:
    """Every recipe can be made: errors come before hours of training."""
    for number, hyperparameters in enumerate(plan.combinations().values()):
        try:
            plan.recipe(hyperparameters, number, (0.0,), (1.0,))
        except AssayError as error:
            root["grid"].fail(str(error))


def _some(data: Labelled, count: int | None, seed: int) -> Labelled:
    if count is not None and not 0 < count <= len(data):
        raise AssayError(f"data: {count} of {data.source} are asked for, which has {len(data)}")
    return data if count is None else data.sample(count, seed)
