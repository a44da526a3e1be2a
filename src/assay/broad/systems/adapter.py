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

`assay.broad.check_system` says whether it keeps to the rules. A system that needs another interpreter or
other packages is called through `assay.broad.systems.subprocess_learner.SubprocessLearner`; its script ends with
``serve(RandomFeatures)``.
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
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.broad.systems.team import arguments
from assay.networks import LearnedStack


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
    """Serve a learner as the command of a `SubprocessLearner`: do what the script's arguments ask for.

    Args:
        factory: Function or class that makes the learner from its parameters.
        argv: Arguments of the command; by default those of the script.
    """
    parser = argparse.ArgumentParser(description="A learner for the harness.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    layers, fit, transform = (verbs.add_parser(name) for name in ("layers", "fit", "transform"))
    for verb in (layers, fit, transform):
        verb.add_argument("--depth", choices=("deep", "shallow"), default="deep")
        verb.add_argument("--parameters", type=Path)
    for verb in (fit, transform):
        verb.add_argument("--data", type=Path, required=True)
        verb.add_argument("--model", type=Path, required=True)
    transform.add_argument("--layer", type=int, default=-1)
    transform.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    parameters = json.loads(options.parameters.read_text()) if options.parameters else {}
    learner = factory(**arguments(parameters))
    learner = learner.shallow() if options.depth == "shallow" else learner
    if options.verb == "layers":
        layer_algorithms = algorithms(learner) or ["unknown"] * len(learner.layers)
        described = [{"name": n, "algorithm": a} for n, a in zip(learner.layers, layer_algorithms, strict=True)]
        sys.stdout.write(json.dumps(described) + "\n")
    elif options.verb == "fit":
        save_learner(learner.fit(unpacked(options.data.read_bytes())), options.model / "learner")
    else:
        learner = load_learner(options.model / "learner", learner)
        options.out.write_bytes(packed(learner.transform(unpacked(options.data.read_bytes()), layer=options.layer)))


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
