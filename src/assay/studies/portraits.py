"""Portraits: reference networks as numbers, measured once, so that a reader sees where other networks stand.

`portraits.json` is written by ``reproductions/reference-networks``, which says how the networks were trained. It holds
two things: the numbers of a few well-known networks, on the stimuli that an examination shows to every network; and
for each number its spread over networks that were trained alike, from other seeds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from math import sqrt
from typing import Any

import numpy as np
import scipy

from assay.runs.manifest import MeasureRecord
from assay.stats.seeds import SeedSpread

Answer = tuple[float, float | None, float | None]
FEWEST_RECIPES = 3


@dataclass(frozen=True)
class Replicates:
    """A number over networks of one recipe: its mean, its standard deviation, and how many networks there are."""

    mean: float
    sd: float
    n: int


@dataclass(frozen=True)
class Portrait:
    """The numbers of one reference network, on stimuli that come with assay.

    Args:
        name: What the network is.
        numbers: Value and 95 % interval (None where there is none), by what was asked (see `asked`) and quantity.
    """

    name: str
    numbers: Mapping[str, Mapping[str, Answer]]


@dataclass(frozen=True)
class Portraits:
    """All reference networks.

    Args:
        networks: Those that are shown beside other networks.
        seeds: Replicates by quantity and recipe.
        ratio: Quantities whose spread is proportional to their size, such as a margin.
        trained: Number of networks that ``seeds`` rests on.
        bound: Level of the prediction bound on the spread of another recipe. With 90 %, two networks of a recipe of
            training that is left out are said to differ in under 5 % of reports (``reproductions/reference-networks``).
    """

    networks: tuple[Portrait, ...] = ()
    seeds: Mapping[str, Mapping[str, Replicates]] = field(default_factory=dict)
    ratio: frozenset[str] = frozenset()
    trained: int = 0
    bound: float = 0.9

    @classmethod
    @functools.cache
    def shipped(cls) -> Portraits:
        """Those that come with assay."""
        file = resources.files(__package__).joinpath("portraits.json")
        return cls.from_json(json.loads(file.read_text("utf-8")))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Portraits:
        """Read the reference networks from plain data."""
        return cls(
            tuple(
                Portrait(
                    one["name"],
                    {question: {q: tuple(v) for q, v in of.items()} for question, of in one["numbers"].items()},
                )
                for one in data["networks"]
            ),
            {
                quantity: {recipe: Replicates(**of) for recipe, of in recipes.items()}
                for quantity, recipes in data["seeds"].items()
            },
            frozenset(data["ratio"]),
            data["trained"],
        )

    def spread(self, quantity: str) -> SeedSpread | None:
        """How far seeds move a number of another recipe, by the standard deviations s of the K reference recipes.

        Recipes differ in their spread: log s is taken as normal over recipes, and the spread of another recipe as the
        upper prediction bound, exp(m + t·d·√(1 + 1/K)), with m and d the mean and standard deviation of log s and
        t the quantile of Student's distribution with K − 1 degrees of freedom. Recipes in which the number does not
        move at all, because it is at its end, are left out. For a quantity on a ratio scale s is the coefficient of
        variation, and the bound a share of the number.

        Args:
            quantity: Name of the quantity.

        Returns:
            The bound, with the degrees of freedom of all recipes; None for a quantity that fewer than three recipes
            have.

        Example:
            >>> seeds = {"accuracy": {name: Replicates(0.9, 0.01, 12) for name in ("vgg", "resnet", "perceptron")}}
            >>> spread = Portraits(seeds=seeds).spread("accuracy")
            >>> round(spread.error, 6), spread.df
            (0.01, 33)
        """
        moving = [of for of in self.seeds.get(without_layer(quantity), {}).values() if of.sd > 0]
        if len(moving) < FEWEST_RECIPES:
            return None
        is_ratio = without_layer(quantity) in self.ratio
        logs = np.log([of.sd / abs(of.mean) if is_ratio else of.sd for of in moving])
        reach = scipy.stats.t.ppf(self.bound, len(logs) - 1) * logs.std(ddof=1) * sqrt(1 + 1 / len(logs))
        return SeedSpread(float(np.exp(logs.mean() + reach)), sum(of.n - 1 for of in moving), is_ratio)

    def answers(self, measures: Mapping[str, MeasureRecord]) -> dict[str, dict[tuple[str, str], Answer]]:
        """What the reference networks answered to the questions of a run: by network, measure and quantity.

        Args:
            measures: The measures of the run, as its manifest describes them.
        """
        questions = {label: asked(record) for label, record in measures.items()}
        answers = {
            portrait.name: {
                (label, quantity): answer
                for label, question in questions.items()
                for quantity, answer in portrait.numbers.get(question, {}).items()
            }
            for portrait in self.networks
        }
        return {name: of for name, of in answers.items() if of}


def without_layer(quantity: str) -> str:
    """The name of a quantity without that of a layer, unless every network has such a layer.

    Example:
        >>> without_layer("separation of the classes at features.0"), without_layer("margin at the input")
        ('separation of the classes', 'margin at the input')
    """
    stem, _, layer = quantity.rpartition(" at ")
    return stem if stem and not layer.startswith(("the input", "the last layer")) else quantity


def asked(record: MeasureRecord) -> str:
    """A question in words: the measure, its settings, and what it shows; the same words mean the same question.

    Example:
        >>> asked(MeasureRecord("norms", settings={"shape": [3, 32, 32], "batch_size": 64}))
        'norms: shape [3, 32, 32]'
    """
    shown = {
        name: value["is"] if isinstance(value, Mapping) and "is" in value else value
        for name, value in record.settings.items()
        if name not in ("batch_size", "bootstrap", "seed")  # they change how sure a number is, not what it is
    }
    return f"{record.measure}: " + ", ".join(f"{name} {value}" for name, value in sorted(shown.items()))
