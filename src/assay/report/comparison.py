"""What the first screen of a report says: where every network stands, and in what they differ most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from assay.report.document import Items, Matrix, MatrixCell, Text
from assay.runs.run import Run
from assay.stats.differences import Difference, difference, interval
from assay.stats.evidence import Evidence
from assay.stats.seeds import SeedSpread, difference_of_recipes, mean_evidence, spread_of_replicates
from assay.studies.portraits import Answer, Portraits

MOST_SENTENCES = 7
FEW_SENTENCES = 3  # on these very networks
FEWEST_DEGREES = 4  # of freedom, below which the spread over seeds is taken from the reference networks if it is there
MOST_COLUMNS = 6  # of networks and of reference networks beside them
MANY_NETWORKS = 12  # above this the matrix shows how the networks are spread instead of each


@dataclass(frozen=True)
class Quantity:
    """A number of every network: its name, and the evidence of each network that has it."""

    measure: str
    name: str
    of: dict[str, Evidence]

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
    """

    quantities: tuple[Quantity, ...]
    networks: tuple[str, ...]
    recipes: Mapping[str, str] = field(default_factory=dict)
    portraits: Portraits = field(default_factory=Portraits)
    answers: Mapping[str, Mapping[tuple[str, str], Answer]] = field(default_factory=dict)

    @classmethod
    def of_run(cls, run: Run) -> Comparison:
        """Read the numbers from the cells of a run."""
        quantities: dict[tuple[str, str], dict[str, Evidence]] = {}
        for measure in run.measures:
            for subject, numbers in run.evidence(measure).items():
                for evidence in numbers:
                    quantities.setdefault((measure, evidence.quantity), {})[subject] = evidence
        distinct: dict[str, Quantity] = {}  # two measures may give one number, such as the accuracy
        for key, of in quantities.items():
            quantity = Quantity(*key, of)
            known = distinct.get(quantity.name)
            if any(np.isfinite(e.value) for e in of.values()) and (known is None or quantity.n > known.n):
                distinct[quantity.name] = quantity
        subjects = run.manifest.subjects
        recipes = {name: record.recipe for name, record in subjects.items() if record.recipe}
        portraits = Portraits.shipped()
        answers = portraits.answers(run.manifest.measures)
        return cls(tuple(distinct.values()), tuple(subjects), recipes, portraits, answers)

    def members(self, quantity: Quantity) -> dict[str, list[Evidence]]:
        """The evidence of the networks of every recipe."""
        members: dict[str, list[Evidence]] = {}
        for name, evidence in quantity.of.items():
            if np.isfinite(evidence.value):
                members.setdefault(self.recipes.get(name, name), []).append(evidence)
        return members

    def spread(self, quantity: Quantity) -> SeedSpread | None:
        """How far seeds move a number: by the networks of one recipe, else by the reference networks."""
        members = self.members(quantity)
        own = spread_of_replicates({recipe: [e.value for e in of] for recipe, of in members.items()})
        if own is not None and own.df >= FEWEST_DEGREES:
            return own
        return self.portraits.spread(quantity.name) or own

    @cached_property
    def differences(self) -> dict[tuple[str, str, str, str], Difference]:
        """Every difference of two recipes that has an error, by measure, quantity and the two recipes."""
        differences = {}
        for quantity in self.quantities:
            spread = self.spread(quantity)
            members = self.members(quantity)
            if spread is None:
                continue
            means = {recipe: mean_evidence(of) for recipe, of in members.items()}
            for a, b in combinations(members, 2):
                counts = len(members[a]), len(members[b])
                apart = difference_of_recipes(means[a], means[b], spread, counts)
                if apart is not None and apart.error > 0:
                    differences[quantity.measure, quantity.name, a, b] = apart
        return differences

    @cached_property
    def for_these_networks(self) -> dict[tuple[str, str, str, str], Difference]:
        """Differences over stimuli alone, of numbers of which nothing says how far seeds move them."""
        return {
            (quantity.measure, quantity.name, a, b): apart
            for quantity in self.quantities
            if self.spread(quantity) is None
            for a, b in combinations(quantity.of, 2)
            if (apart := difference(quantity.of[a], quantity.of[b])) is not None and apart.error > 0
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


def first_screen(run: Run) -> list[Text | Items | Matrix]:
    """The blocks at the top of a report: a matrix of the numbers of every network, and what differs most."""
    comparison = Comparison.of_run(run)
    if not comparison.quantities:
        return []
    blocks: list[Text | Items | Matrix] = [matrix(comparison)]
    if len(comparison.networks) > 1:
        blocks += [Text(_heading(comparison)), Items(tuple(sentences(comparison)))]
    return blocks


def _heading(comparison: Comparison) -> str:
    count = len(comparison.differences)
    if not count:
        return "What differs most: of no number here is it known how far stimuli and seeds move it."
    return (
        f"What differs most, of {count} difference{'s' if count > 1 else ''} looked at. Intervals hold together with "
        "95 %, over stimuli of this kind and over trainings of the same recipe from other seeds. How far seeds move a "
        f"number is taken from {_source(comparison)}."
    )


def _source(comparison: Comparison) -> str:
    replicates = len(comparison.recipes) - len(set(comparison.recipes.values()))
    if replicates >= FEWEST_DEGREES:
        return "the networks of one recipe here"
    return f"{comparison.portraits.trained} reference networks, each recipe trained from several seeds"


def sentences(comparison: Comparison) -> list[str]:
    """What differs most: for each number the surest difference, the surest first; then what does not differ clearly."""
    said, unclear = _said(comparison, comparison.differences)
    of_these, also_unclear = _said(comparison, comparison.for_these_networks)
    said = said[:MOST_SENTENCES]
    if unclear + also_unclear:
        said.append(f"No clear difference: {'; '.join(unclear + also_unclear)}.")
    if of_these:
        said.append(
            "It is not known how far another seed moves the following numbers; give several networks of each recipe to "
            "conclude more than this on these very networks. " + " ".join(of_these[:FEW_SENTENCES])
        )
    return said


def _said(
    comparison: Comparison, differences: Mapping[tuple[str, str, str, str], Difference]
) -> tuple[list[str], list[str]]:
    """A sentence on the surest difference of each number, and the numbers without a clear one."""
    surest: dict[tuple[str, str], tuple[str, str, Difference]] = {}
    for (measure, name, a, b), apart in differences.items():
        key = measure, name
        if key not in surest or apart.strength > surest[key][2].strength:
            surest[key] = a, b, apart
    quantities = {(q.measure, q.name): q for q in comparison.quantities}
    level = 1 - 0.05 / max(len(differences), 1)
    said, unclear = [], []
    for key, (a, b, apart) in sorted(surest.items(), key=lambda item: -item[1][2].strength):
        if apart.clear(level):
            said.append(_sentence(comparison, quantities[key], a, b, apart, level))
        else:
            unclear.append(key[1])
    return said, unclear


def _sentence(comparison: Comparison, quantity: Quantity, a: str, b: str, apart: Difference, level: float) -> str:
    low, high = sorted(map(abs, apart.interval(level)))  # of a clear difference: both ends have its sign
    direction = quantity.better or "higher"
    if (apart.value < 0) == (direction == "higher"):
        a, b = b, a
    shown = quantity.shown
    members = comparison.members(quantity)
    members |= {name: [quantity.of[name]] for name in (a, b) if name not in members}
    values = " v ".join(shown(mean_evidence(members[recipe]).value) for recipe in (a, b))
    pairs = ("paired" if apart.paired else "not paired") + f", n = {apart.n}" if apart.n else "exact for these weights"
    if max(len(members[a]), len(members[b])) > 1:
        pairs += f", {len(members[a])} and {len(members[b])} networks"
    return (
        f"{_capital(quantity.name)}: {a} is {direction} than {b} by {shown(abs(apart.value))} "
        f"({shown(low)} to {shown(high)}, {pairs}; {values})."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def matrix(comparison: Comparison) -> Matrix:
    """The numbers of every network; of many networks, how they are spread and who stands apart."""
    if len(comparison.networks) > MANY_NETWORKS:
        return _spread(comparison)
    rows = []
    room = max(MOST_COLUMNS - len(comparison.networks), 0)
    answers = dict(list(comparison.answers.items())[:room])
    for quantity in comparison.quantities:
        best = comparison.best(quantity)
        cells = tuple(
            _cell(quantity, quantity.of.get(name), comparison.recipes.get(name, name) in best)
            for name in comparison.networks
        )
        cells += tuple(_answered(quantity, of.get((quantity.measure, quantity.name))) for of in answers.values())
        rows.append((_row_name(quantity), quantity.measure, cells))
    note = (
        "Under each value its 95 % interval; arrows point where people want it. ● is the best of its row, with all "
        "that are not clearly worse. Without an interval: exact for these weights, or of too few stimuli."
    )
    if answers:
        note += " Reference networks come with assay; they were asked the same, of the stimuli that come with it."
    caption = "Where the networks stand" if len(comparison.networks) > 1 else "Where the network stands"
    return Matrix(caption, comparison.networks, tuple(rows), note, tuple(answers))


def _row_name(quantity: Quantity) -> str:
    return _capital(quantity.name) + {"higher": "\u00a0↑", "lower": "\u00a0↓", "": ""}[quantity.better]


def _cell(quantity: Quantity, evidence: Evidence | None, best: bool) -> MatrixCell:
    if evidence is None or not np.isfinite(evidence.value):
        return MatrixCell("–", "" if evidence is None else evidence.status, False)
    bounds = interval(evidence)
    spread = "" if bounds is None else f"{quantity.shown(bounds[0])} to {quantity.shown(bounds[1])}"
    return MatrixCell(quantity.shown(evidence.value), spread, best)


def _answered(quantity: Quantity, answer: Answer | None) -> MatrixCell:
    """The cell of a reference network."""
    if answer is None:
        return MatrixCell("–", "", False)
    value, low, high = answer
    spread = "" if low is None or high is None else f"{quantity.shown(low)} to {quantity.shown(high)}"
    return MatrixCell(quantity.shown(value), spread, False)


def _spread(comparison: Comparison) -> Matrix:
    columns = ("lowest", "lower quarter", "median", "upper quarter", "highest", "stand apart")
    rows = []
    for quantity in comparison.quantities:
        values = {name: e.value for name, e in quantity.of.items() if np.isfinite(e.value)}
        low, q1, median, q3, high = np.quantile(list(values.values()), (0, 0.25, 0.5, 0.75, 1))
        reach = 1.5 * (q3 - q1)
        apart = [name for name, value in values.items() if not q1 - reach <= value <= q3 + reach]
        apart.sort(key=lambda name: -abs(values[name] - float(median)))
        named = ", ".join(apart[:5]) + (f" and {len(apart) - 5} more" if len(apart) > 5 else "")
        lowest, highest = min(values, key=lambda n: values[n]), max(values, key=lambda n: values[n])
        cells = [MatrixCell(quantity.shown(v), who, False) for v, who in ((low, lowest), (q1, ""), (median, ""))]
        cells += [MatrixCell(quantity.shown(v), who, False) for v, who in ((q3, ""), (high, highest))]
        rows.append((_row_name(quantity), quantity.measure, (*cells, MatrixCell(named or "–", "", False))))
    note = "Networks stand apart that are more than 1.5 times the middle half's width outside it (Tukey's fences)."
    return Matrix(f"How {len(comparison.networks)} networks are spread", columns, tuple(rows), note)
