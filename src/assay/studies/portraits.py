"""Portraits: reference networks as numbers, measured once, so that a reader sees where other networks stand.

`portraits.json` is written by ``reproductions/reference-networks``, which says how the networks were trained. It holds
two things: the numbers of a few well-known networks, on the stimuli that an examination shows to every network; and
for each number its spread over networks that were trained alike, from other seeds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from assay.runs.manifest import MeasureRecord
from assay.stats.seeds import SeedSpread

Answer = tuple[float, float | None, float | None]


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
    """

    networks: tuple[Portrait, ...] = ()
    seeds: Mapping[str, Mapping[str, Replicates]] = field(default_factory=dict)
    ratio: frozenset[str] = frozenset()
    trained: int = 0

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

    def spread(self, quantity: str, values: Sequence[float]) -> SeedSpread | None:
        """How far seeds move a number: the largest standard deviation over the reference recipes.

        For a quantity on a ratio scale it is the largest coefficient of variation times the largest of the values.
        The largest, because another recipe's spread is not known better than that. None for an unknown quantity.

        Args:
            quantity: Name of the quantity.
            values: The values that are compared.

        Example:
            >>> seeds = {"accuracy": {"vgg": Replicates(0.9, 0.01, 12), "resnet": Replicates(0.8, 0.02, 10)}}
            >>> Portraits(seeds=seeds).spread("accuracy", [0.7, 0.8])
            SeedSpread(error=0.02, df=9)
        """
        recipes = self.seeds.get(quantity)
        if not recipes or not values:
            return None
        if quantity in self.ratio:
            widest = max(recipes.values(), key=lambda of: of.sd / abs(of.mean))
            return SeedSpread(widest.sd / abs(widest.mean) * max(map(abs, values)), widest.n - 1)
        widest = max(recipes.values(), key=lambda of: of.sd)
        return SeedSpread(widest.sd, widest.n - 1)

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
