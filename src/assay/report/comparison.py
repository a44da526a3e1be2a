"""The numbers of the networks of a run side by side, and the differences of their recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from assay.runs.manifest import MeasureRecord
from assay.runs.run import Run
from assay.stats.differences import Difference, difference
from assay.stats.evidence import Evidence
from assay.stats.seeds import SeedSpread, difference_of_recipes, mean_evidence, spread_of_replicates
from assay.studies.portraits import Answer, Portraits

FEWEST_DEGREES = 4  # of freedom, below which the spread over seeds is taken from the reference networks if it is there


@dataclass(frozen=True)
class Quantity:
    """A number of every network: its name, and the evidence of each network that has it."""

    measure: str
    name: str
    of: dict[str, Evidence]
    label: str = ""

    @property
    def called(self) -> str:
        """Its name, with the measure's label where measures give one number of different stimuli."""
        return f"{self.name} ({self.label})" if self.label else self.name

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return next(iter(self.of.values())).unit

    @property
    def better(self) -> str:
        """Which direction people want: higher, lower, or none."""
        return next(iter(self.of.values())).better

    @property
    def n(self) -> int:
        """Number of clips, inputs or units that it rests on, summed over the networks."""
        return sum(evidence.n for evidence in self.of.values())

    def shown(self, value: float, sign: str = "") -> str:
        """Write a value with as many digits as a reader can use."""
        digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
        return f"{round(value, digits) + 0.0:{sign}.{digits}f}{self.unit}".replace("-", "−")


@dataclass(frozen=True)
class Comparison:
    """All numbers of a run by which networks are compared, and the differences of their recipes.

    Networks of one recipe are averaged, and a network without a recipe is its own. The error of a difference is that
    of the stimuli and that of the seeds together. How far seeds move a number is read off the networks of one recipe
    where there are enough, else off reference networks; of a number that neither knows, nothing can be concluded but
    for these very networks.

    The intervals of differences hold together: with m differences each has the level 1 − 0.05/m (Bonferroni), so that
    of all that is called a difference, anything is wrong in at most 5 % of reports.

    Args:
        quantities: The numbers.
        networks: The names of the networks.
        recipes: The recipe of the networks that have one.
        portraits: The reference networks.
        answers: What reference networks answered to the same questions, by network, measure and quantity.
        architectures: What tells the architecture of a network from others, where it is known.
    """

    quantities: tuple[Quantity, ...]
    networks: tuple[str, ...]
    recipes: Mapping[str, str] = field(default_factory=dict)
    portraits: Portraits = field(default_factory=Portraits)
    answers: Mapping[str, Mapping[tuple[str, str], Answer]] = field(default_factory=dict)
    architectures: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of_run(cls, run: Run) -> Comparison:
        """Read the numbers from the cells of a run."""
        quantities: dict[tuple[str, str], dict[str, Evidence]] = {}
        for measure in run.measures:
            for subject, numbers in run.evidence(measure).items():
                for evidence in numbers:
                    quantities.setdefault((measure, evidence.quantity), {})[subject] = evidence
        known = [Quantity(*key, of) for key, of in quantities.items() if any(np.isfinite(e.value) for e in of.values())]
        subjects = run.manifest.subjects
        recipes = {name: record.recipe for name, record in subjects.items() if record.recipe}
        portraits = Portraits.shipped()
        answers = portraits.answers(run.manifest.measures)
        return cls(tuple(_distinct(known, run)), tuple(subjects), recipes, portraits, answers)

    def members(self, quantity: Quantity) -> dict[str, list[Evidence]]:
        """The evidence of the networks of every recipe."""
        members: dict[str, list[Evidence]] = {}
        for name, evidence in quantity.of.items():
            if np.isfinite(evidence.value):
                members.setdefault(self.recipes.get(name, name), []).append(evidence)
        return members

    def are_of_one_architecture(self, *recipes: str) -> bool:
        """Whether all networks of these recipes are known to be of one architecture."""
        members = [name for name in self.networks if self.recipes.get(name, name) in recipes]
        kinds = {self.architectures.get(name) for name in members}
        return len(kinds) == 1 and None not in kinds

    def spread(self, quantity: Quantity, recipe: str) -> SeedSpread | None:
        """How far seeds move a number of a recipe: by its own networks, else by the reference networks.

        Its own are too few below five: then the bound of the reference networks serves, where they know the number.
        """
        own = spread_of_replicates([evidence.value for evidence in self.members(quantity).get(recipe, [])])
        if own is not None and own.df >= FEWEST_DEGREES:
            return own
        return self.portraits.spread(quantity.name) or own

    @cached_property
    def differences(self) -> dict[tuple[str, str, str, str], Difference]:
        """Every difference of two recipes that has an error, by measure, quantity and the two recipes."""
        differences = {}
        for quantity in self.quantities:
            members = self.members(quantity)
            means = {recipe: mean_evidence(of) for recipe, of in members.items()}
            spreads = {recipe: self.spread(quantity, recipe) for recipe in members}
            for a, b in combinations(members, 2):
                of_a, of_b = spreads[a], spreads[b]
                if of_a is None or of_b is None:
                    continue
                counts = len(members[a]), len(members[b])
                apart = difference_of_recipes(means[a], means[b], (of_a, of_b), counts)
                if apart is not None and apart.error > 0:
                    differences[quantity.measure, quantity.name, a, b] = apart
        return differences

    @cached_property
    def for_these_networks(self) -> dict[tuple[str, str, str, str], Difference]:
        """Differences over stimuli alone, of numbers of which nothing says how far seeds move them."""
        return {
            (quantity.measure, quantity.name, a, b): apart
            for quantity in self.quantities
            for a, b in combinations(quantity.of, 2)
            if any(self.spread(quantity, self.recipes.get(name, name)) is None for name in (a, b))
            and (apart := difference(quantity.of[a], quantity.of[b])) is not None
            and apart.error > 0
        }

    @property
    def level(self) -> float:
        """The level of each interval at which all hold together with 95 %."""
        return 1 - 0.05 / max(len(self.differences), 1)

    def best(self, quantity: Quantity) -> set[str]:
        """The recipes that are best, or not clearly worse than the best; none where nothing sets them apart."""
        values = {recipe: mean_evidence(of).value for recipe, of in self.members(quantity).items()}
        if not quantity.better or len(values) < 2:
            return set()
        first = (max if quantity.better == "higher" else min)(values, key=lambda name: values[name])
        apart = {name: self._difference(quantity, first, name) for name in values if name != first}
        worse = {name for name, d in apart.items() if d is not None and d.clear(self.level)}
        alike = {name for name, d in apart.items() if (d is not None or values[name] == values[first])} - worse
        return {first, *alike} if worse else set()

    def _difference(self, quantity: Quantity, a: str, b: str) -> Difference | None:
        key = (quantity.measure, quantity.name)
        return self.differences.get((*key, a, b)) or self.differences.get((*key, b, a))


def _distinct(quantities: list[Quantity], run: Run) -> list[Quantity]:
    """Each number once: where measures give the same of the same stimuli, that of more inputs; else with its label.

    What a measure says twice, with other settings, is the same where its values are.
    """
    kept: list[Quantity] = []
    for quantity in quantities:
        twins = [i for i, known in enumerate(kept) if _are_one(known, quantity, run)]
        if not twins:
            kept.append(quantity)
        elif quantity.n > kept[twins[0]].n:
            kept[twins[0]] = quantity
    names = [quantity.name for quantity in kept]
    return [replace(q, label=q.measure) if names.count(q.name) > 1 else q for q in kept]


def _are_one(a: Quantity, b: Quantity, run: Run) -> bool:
    """Whether two measures give one number."""
    of_a, of_b = (run.manifest.measures.get(quantity.measure) for quantity in (a, b))
    if (a.name, _stimuli(of_a)) != (b.name, _stimuli(of_b)):
        return False
    if a.measure == b.measure or of_a is None or of_b is None or of_a.measure != of_b.measure:
        return True
    return a.of.keys() == b.of.keys() and all(
        np.array_equal(a.of[name].value, b.of[name].value, equal_nan=True) for name in a.of
    )


def _stimuli(record: MeasureRecord | None) -> str:
    """What a measure shows, by content."""
    settings = {} if record is None else record.settings
    return " ".join(
        sorted(str(v["fingerprint"]) for v in settings.values() if isinstance(v, dict) and "fingerprint" in v)
    )
