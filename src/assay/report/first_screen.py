"""What the first screen of a report says: where every network stands, and in what they differ most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assay.report.architectures import within_architectures
from assay.report.comparison import FEWEST_DEGREES, Comparison, Quantity
from assay.report.document import Items, Matrix, MatrixCell, Text
from assay.report.many import MANY, standing_apart
from assay.runs.run import Run
from assay.stats.differences import Difference, interval
from assay.stats.evidence import Evidence
from assay.stats.seeds import mean_evidence
from assay.studies.portraits import Answer

MOST_SENTENCES = 7
FEW_SENTENCES = 3  # on these very networks
MOST_INTERVALS = 5  # of numbers without a clear difference
MOST_NAMED = 4  # networks of a recipe
MOST_COLUMNS = 6  # of networks and of reference networks beside them


def first_screen(run: Run) -> list[Text | Items | Matrix]:
    """The blocks at the top of a report: a matrix of the numbers of every network, and what differs most."""
    comparison = Comparison.of_run(run)
    if not comparison.quantities:
        return []
    blocks: list[Text | Items | Matrix] = [matrix(comparison)]
    recipes = _networks_by_recipe(comparison)
    if len(recipes) > MANY:
        blocks.append(Text("`run.compare(a, b)` shows in what two of these networks or recipes differ."))
    elif len(comparison.networks) > 1:
        compared = within_architectures(comparison, run)
        blocks.append(Text(_heading(compared)))
        if said := sentences(compared):
            blocks.append(Items(tuple(said)))
    return blocks


def _networks_by_recipe(comparison: Comparison) -> dict[str, list[str]]:
    """The names of the networks of every recipe; a network without a recipe is its own."""
    networks: dict[str, list[str]] = {}
    for name in comparison.networks:
        networks.setdefault(comparison.recipes.get(name, name), []).append(name)
    return networks


def _heading(comparison: Comparison) -> str:
    recipes = _networks_by_recipe(comparison)
    if len(recipes) == 1:
        (recipe,) = recipes
        return (
            f"All {len(comparison.networks)} networks are of one recipe, {recipe}: they differ by their seeds alone, "
            "and there is no other recipe to compare them with."
        )
    if count := len(comparison.differences):
        any_clear = any(apart.clear(comparison.level) for apart in comparison.differences.values())
        return (
            f"{'What differs most' if any_clear else 'Nothing differs clearly'}, of {count} "
            f"difference{'s' if count > 1 else ''} looked at.{_recipes(recipes)} "
            "Intervals hold together with 95 %, over stimuli of this kind and over trainings of the same recipe from "
            f"other seeds. How far seeds move a number is taken from {_source(comparison)}."
        )
    if count := len(comparison.for_these_networks):
        return (
            f"What differs between these very networks, of {count} difference{'s' if count > 1 else ''} looked "
            f"at.{_recipes(recipes)} Intervals hold together with 95 %, over stimuli of this kind alone."
        )
    return (
        "No difference can be called sure: nothing says how far other stimuli or seeds would move the numbers "
        f"that these networks share.{_recipes(recipes)}"
    )


def _recipes(recipes: Mapping[str, list[str]]) -> str:
    """Which networks belong to which recipe, as a sentence; empty where every network is its own recipe."""
    if all(networks == [recipe] for recipe, networks in recipes.items()):
        return ""
    parts = []
    for recipe, networks in recipes.items():
        more = f" and {len(networks) - MOST_NAMED} more" if len(networks) > MOST_NAMED else ""
        named = ", ".join(networks[:MOST_NAMED]) + more
        parts.append(recipe if networks == [recipe] else f"{recipe} ({named})")
    return f" Recipes: {', '.join(parts)}."


def _source(comparison: Comparison) -> str:
    """Where the spread over seeds comes from."""
    members = [comparison.members(quantity).values() for quantity in comparison.quantities]
    counts = [len(of) for recipes in members for of in recipes]
    of_references = f"{comparison.portraits.trained} reference networks, each recipe trained from several seeds"
    if max(counts, default=0) <= FEWEST_DEGREES:
        return of_references
    own = f"the networks of a recipe where there are {FEWEST_DEGREES + 1} or more"
    return own if min(counts) > FEWEST_DEGREES else f"{own}, else from {of_references}"


def sentences(comparison: Comparison) -> list[str]:
    """What differs most: for each number its surest difference, the surest first; then what does not differ clearly."""
    said, unclear = _said(comparison, comparison.differences)
    of_these, unclear_of_these = _said(comparison, comparison.for_these_networks)
    said = said[:MOST_SENTENCES]
    if unclear:
        said.append(f"No clear difference: {_listed(unclear)}.")
    if of_these:
        said.append(
            "It is not known how far another seed moves the following numbers; give several networks of each recipe to "
            "conclude more than this on these very networks. " + " ".join(of_these[:FEW_SENTENCES])
        )
    if unclear_of_these:
        said.append(f"No clear difference, even between these very networks: {_listed(unclear_of_these)}.")
    if unsure := _unsure(comparison):
        said.append(f"Without an interval, and so not compared: {'; '.join(unsure)}.")
    return said


def _unsure(comparison: Comparison) -> list[str]:
    """The numbers of which some networks have an interval and others a value alone, with the names of the latter."""
    unsure = []
    for quantity in comparison.quantities:
        known = {name: interval(one) for name, one in quantity.of.items() if np.isfinite(one.value)}
        none = [name for name, bounds in known.items() if bounds is None]
        if 0 < len(none) < len(known):
            more = f" and {len(none) - MOST_NAMED} more" if len(none) > MOST_NAMED else ""
            unsure.append(f"{quantity.called} ({', '.join(none[:MOST_NAMED])}{more})")
    return unsure


def _listed(unclear: list[tuple[str, str]]) -> str:
    """Numbers without a clear difference: the first with the interval of the surest, the others by name."""
    with_interval = "; ".join(f"{name} ({interval})" for name, interval in unclear[:MOST_INTERVALS])
    others = ", ".join(name for name, _ in unclear[MOST_INTERVALS:])
    return with_interval + (f"; nor in {others}" if others else "")


def _said(
    comparison: Comparison, differences: Mapping[tuple[str, str, str, str], Difference]
) -> tuple[list[str], list[tuple[str, str]]]:
    """A sentence on the surest difference of each number; and the numbers without a clear one, with its interval.

    Where networks of one architecture differ clearly, they are named, rather than networks that differ in that too.
    """
    surest: dict[tuple[str, str], tuple[str, str, Difference]] = {}
    level = 1 - 0.05 / max(len(differences), 1)

    def rank(a: str, b: str, apart: Difference) -> tuple[bool, float]:
        return apart.clear(level) and comparison.are_of_one_architecture(a, b), apart.strength

    for (measure, name, a, b), apart in differences.items():
        key = measure, name
        if key not in surest or rank(a, b, apart) > rank(*surest[key]):
            surest[key] = a, b, apart
    said, unclear = [], []
    for key, (a, b, apart) in sorted(surest.items(), key=lambda item: -item[1][2].strength):
        quantity = _quantity(comparison, *key, a)
        if apart.clear(level):
            said.append(_sentence(comparison, quantity, a, b, apart, level))
        else:
            low, high = map(quantity.shown, apart.interval(level))
            unclear.append((quantity.called, f"{a} minus {b}: {low} to {high}"))
    return said, unclear


def _quantity(comparison: Comparison, measure: str, name: str, recipe: str) -> Quantity:
    """The number of this name that a recipe or network has; one of the weights may be there for each architecture."""
    return next(
        q
        for q in comparison.quantities
        if (q.measure, q.name) == (measure, name) and (recipe in q.of or recipe in comparison.members(q))
    )


def _sentence(comparison: Comparison, quantity: Quantity, a: str, b: str, apart: Difference, level: float) -> str:
    low, high = sorted(map(abs, apart.interval(level)))  # of a clear difference: both ends have its sign
    direction = quantity.better or "higher"
    if (apart.value < 0) == (direction == "higher"):
        a, b = b, a
    shown = quantity.shown
    members = comparison.members(quantity)
    members |= {name: [quantity.of[name]] for name in (a, b) if name not in members}
    values = " v ".join(shown(mean_evidence(members[recipe]).value) for recipe in (a, b))
    pairs = "over seeds; exact for these weights"
    if apart.n:
        pairs = f"{'paired' if apart.paired else 'not paired'}, n = {apart.n}"
    if max(len(members[a]), len(members[b])) > 1:
        pairs += f", {len(members[a])} and {len(members[b])} networks"
    return (
        f"{_capital(quantity.called)}: {a} is {direction} than {b} by {shown(abs(apart.value))} "
        f"({shown(low)} to {shown(high)}, {pairs}; {values})."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def matrix(comparison: Comparison) -> Matrix:
    """The numbers of every network; of many networks, how they are spread and who stands apart."""
    if len(comparison.networks) > MANY:
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
    note = "Under each value its 95 % interval; an arrow points in the direction that is usually wanted. "
    if len(_networks_by_recipe(comparison)) > 1:
        note += (
            "● is the best of its row, with all that are not clearly worse; a row in which none is clearly worse has "
            "no ●. "
        )
    note += "Without an interval: exact for these weights, of too few stimuli, or of a measure that gives none."
    if answers:
        note += " Reference networks come with assay; they were asked the same, of the stimuli that come with it."
    caption = "Where the networks stand" if len(comparison.networks) > 1 else "Where the network stands"
    return Matrix(caption, comparison.networks, tuple(rows), note, tuple(answers))


def _row_name(quantity: Quantity) -> str:
    return _capital(quantity.called) + {"higher": "\u00a0↑", "lower": "\u00a0↓", "": ""}[quantity.better]


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
        apart = standing_apart(values)
        named = ", ".join(apart[:5]) + (f" and {len(apart) - 5} more" if len(apart) > 5 else "")
        lowest, highest = min(values, key=lambda n: values[n]), max(values, key=lambda n: values[n])
        cells = [MatrixCell(quantity.shown(v), who, False) for v, who in ((low, lowest), (q1, ""), (median, ""))]
        cells += [MatrixCell(quantity.shown(v), who, False) for v, who in ((q3, ""), (high, highest))]
        rows.append((_row_name(quantity), quantity.measure, (*cells, MatrixCell(named or "–", "", False))))
    note = "Networks stand apart that are more than 1.5 times the middle half's width outside it (Tukey's fences)."
    return Matrix(f"How {len(comparison.networks)} networks are spread", columns, tuple(rows), note)
