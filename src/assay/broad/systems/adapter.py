"""How a system takes part: the two contracts it fulfils, and a command that serves it from a process of its own.

A preprocessor and a learner are plain classes; nothing is inherited or registered. An adapter for a deep system that
exists already is rarely longer than this one, for a stack of random features:

>>> import itertools
>>> import numpy as np
>>> class RandomFeatures:
...     algorithm = "random features"
...     def __init__(self, units=(8, 8, 8), seed=0):
...         self.units, self.seed, self.weights_ = units, seed, []
...     @property
...     def layers(self):
...         return [f"layer {i}" for i in range(len(self.units))]
...     def shallow(self):
...         return RandomFeatures(self.units[:1], self.seed)
...     def fit(self, X):
...         rng, sizes = np.random.default_rng(self.seed), (X.shape[1], *self.units)
...         self.weights_ = [rng.normal(size=pair) for pair in itertools.pairwise(sizes)]
...         return self
...     def transform(self, X, layer=-1):
...         for weights in self.weights_[: range(len(self.units))[layer] + 1]:
...             X = np.tanh(X @ weights)
...         return X
>>> isinstance(RandomFeatures(), Learner), RandomFeatures().fit(np.eye(4)).transform(np.eye(4), layer=1).shape
(True, (4, 8))

`assay.broad.check_system` says whether it keeps to the rules. A module that needs another interpreter, other packages
or another language is a command: the modules ``subprocess`` (a learner), ``subprocess_preprocessor`` and
``subprocess_classifier`` call it. A script in Python ends with ``serve(RandomFeatures)``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from assay.broad.data.dataset import Features, Inputs
from assay.broad.data.features import packed, unpacked
from assay.broad.systems.classifiers.estimator import EstimatorClassifier, is_estimator
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.broad.systems.team import arguments
from assay.networks import LearnedStack
from assay.stimuli.clips import ArrayClip


@runtime_checkable
class Preprocessor(Protocol):
    """Makes features of instances: a team's preprocessor, or the evaluators' feature extractor.

    The arguments of its constructor are its parameters, tuned from a file; none chooses an architecture. Each instance
    is transformed by itself, always in the same way, with no other data than what it was fitted on.
    """

    def fit(self, inputs: Inputs) -> Self:
        """Learn from training instances, without labels, what the preprocessor needs (a vocabulary, a mean)."""
        ...

    def transform(self, inputs: Inputs) -> Features:
        """Compute the features of instances, one row or array for each."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A deep learner: it learns layers of one algorithm from features alone.

    Besides, ``algorithm`` names what all layers learn by (or lists it for each) where they are no `LearnedStack`;
    ``untrained(X)`` gives it random weights in place of learned ones, for learning curves; fitted attributes that are
    lists with an entry for each layer, as ``weights_``, show that each has learned. It can be pickled.
    """

    @property
    def layers(self) -> list[str]:
        """Names of the layers from the first to the last, known before learning."""
        ...

    def fit(self, X: Features) -> Self:
        """Learn from features without labels, starting anew."""
        ...

    def transform(self, X: Features, layer: int = -1) -> Features:
        """Compute the representation of a layer, one row for each instance, without learning anything."""
        ...

    def shallow(self) -> Self:
        """Make the same learner with exactly one layer, not fitted."""
        ...


def serve(factory: Callable[..., Any], argv: Sequence[str] | None = None) -> None:
    """Serve a preprocessor, learner or classifier as a command: do what the script's arguments ask for.

    Args:
        factory: Function or class that makes the module from its parameters.
        argv: Arguments of the command; by default those of the script.
    """
    parser = argparse.ArgumentParser(description="A module for the harness.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    layers, fit, transform, predict = (verbs.add_parser(name) for name in ("layers", "fit", "transform", "predict"))
    for verb in (layers, fit, transform, predict):
        verb.add_argument("--depth", choices=("deep", "shallow"), default="deep")
        verb.add_argument("--parameters", type=Path)
    for verb in (fit, transform, predict):
        verb.add_argument("--data", type=Path, required=True)
        verb.add_argument("--model", type=Path, required=True)
    fit.add_argument("--targets", type=Path)
    transform.add_argument("--layer", type=int)
    for verb in (transform, predict):
        verb.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    parameters = json.loads(options.parameters.read_text()) if options.parameters else {}
    made = factory(**arguments(parameters))
    module: Any = EstimatorClassifier(made) if is_estimator(made) else made
    module = module.shallow() if options.depth == "shallow" else module
    if options.verb == "layers":
        layer_algorithms = algorithms(module) or ["unknown"] * len(module.layers)
        described = [{"name": n, "algorithm": a} for n, a in zip(module.layers, layer_algorithms, strict=True)]
        sys.stdout.write(json.dumps(described) + "\n")
        return
    data = given_data(options.data)
    if options.verb == "fit":
        targets = [] if options.targets is None else [unpacked(options.targets.read_bytes())]
        save_learner(module.fit(data, *targets), options.model / "learner")
        return
    module = load_learner(options.model / "learner", module)
    if options.verb == "predict":
        options.out.write_bytes(packed(module.margins(data) if hasattr(module, "margins") else module.predict(data)))
    else:
        layer = {} if options.layer is None else {"layer": options.layer}
        options.out.write_bytes(packed(module.transform(data, **layer)))


def given_data(file: Path) -> Features | Inputs:
    """Read the file that a command is given: features, or instances where it is called ``instances``."""
    if file.suffix == ".jsonl":
        items: Any = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    else:
        items = unpacked(file.read_bytes())
        if file.stem != "instances":
            features: Features = items
            return features
        if isinstance(items, list):
            items = [ArrayClip(f"instance-{i:06d}", frames) for i, frames in enumerate(items)]
    count = items.shape[0] if hasattr(items, "shape") else len(items)
    return Inputs(items, tuple(f"instance-{i:06d}" for i in range(count)))


def algorithms(learner: Any) -> list[str] | None:
    """The algorithm of each layer: the types of a stack's layers, or what ``algorithm`` says; None if neither.

    >>> from assay.networks import StackedAutoencoder
    >>> algorithms(StackedAutoencoder(4, (3, 2)))
    ['Autoencoder', 'Autoencoder']
    """
    stack = stack_of(learner)
    if stack is not None:
        return [type(layer).__name__ for layer in stack.stack]
    named = getattr(learner, "algorithm", None)
    return [named] * len(learner.layers) if isinstance(named, str) else None if named is None else list(named)


def stack_of(learner: Any) -> LearnedStack | None:
    """The stack that a learner is, or has as an attribute; None if there is none."""
    inside = [learner, *getattr(learner, "__dict__", {}).values()]
    return next((thing for thing in inside if isinstance(thing, LearnedStack)), None)
