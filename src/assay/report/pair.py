"""Two networks or recipes of a run compared: every number they share, in pairs, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan

import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.report.architectures import within_architectures
from assay.report.comparison import Comparison, Quantity
from assay.report.first_screen import sentences
from assay.runs.differences import Differences
from assay.runs.run import Run
from assay.stats.differences import Difference, difference
from assay.stats.seeds import SeedSpread, mean_evidence


@dataclass(frozen=True)
class Pair(Comparison):
    """Two networks of a run, each by itself, or two recipes, each the mean of its networks.

    Args:
        whole: All networks of the run, which may show how far seeds move a number.
    """

    whole: Comparison = field(default_factory=lambda: Comparison((), ()))

    @classmethod
    def of(cls, whole: Comparison, sides: Mapping[str, Sequence[str]]) -> Pair:
        """Two sides, each with the networks that it stands for, and the numbers that both have."""
        side_of = {network: side for side, networks in sides.items() for network in networks}
        quantities = []
        for quantity in whole.quantities:
            of = {network: quantity.of[network] for network in side_of if network in quantity.of}
            if {side_of[network] for network, number in of.items() if isfinite(number.value)} == set(sides):
                quantities.append(replace(quantity, of=of))
        return cls(tuple(quantities), tuple(side_of), side_of, whole.portraits, whole=whole)

    def spread(self, quantity: Quantity, recipe: str) -> SeedSpread | None:
        """How far seeds move a number, by all networks of the recipe that the run has."""
        key = quantity.measure, quantity.name
        whole = next(q for q in self.whole.quantities if (q.measure, q.name) == key)
        return self.whole.spread(whole, self.whole.recipes.get(recipe, recipe))


def compare_networks(run: Run, a: str | None = None, b: str | None = None) -> Differences:
    """The differences between two networks of a run, or between two recipes.

    Args:
        run: The run.
        a: Name of a network or of a recipe; may be left out, with ``b``, where the run has two.
        b: Name of another.
    """
    whole = Comparison.of_run(run)
    sides = _two_of(whole, a, b)
    first, second = sides
    pair = Pair.of(whole, sides)
    if not pair.quantities:
        raise AssayError(f"no measure of this run has a number of both {first!r} and {second!r}; see run.failures")
    compared = within_architectures(pair, run)
    rows = _rows(pair, compared, first, second)
    return Differences(first, second, pd.DataFrame(rows), tuple(sentences(compared)))


def _rows(pair: Pair, compared: Pair, a: str, b: str) -> list[dict[str, object]]:
    """A row for each number that both have, with an interval over seeds where ``compared`` says how sure it is."""
    means = {}
    for quantity in pair.quantities:
        members = pair.members(quantity)
        means[quantity.called] = mean_evidence(members[a]), mean_evidence(members[b])
    apart = {name: difference(*both) for name, both in means.items()}
    level = 1 - 0.05 / max(sum(d is not None for d in apart.values()), 1)
    rows = []
    for quantity in pair.quantities:
        of_a, of_b = means[quantity.called]
        over_stimuli = apart[quantity.called]
        over_seeds = compared.differences.get((quantity.measure, quantity.name, a, b))
        low, high, clear = _interval(over_stimuli, level)
        low_over_seeds, high_over_seeds, clear_over_seeds = _interval(over_seeds, compared.level)
        rows.append(
            {
                "quantity": quantity.called + (f" ({quantity.unit})" if quantity.unit else ""),
                "measure": quantity.measure,
                "a": of_a.value,
                "b": of_b.value,
                "difference": of_a.value - of_b.value if over_stimuli is None else over_stimuli.value,
                "low": low,
                "high": high,
                "clear": clear,
                "low_over_seeds": low_over_seeds,
                "high_over_seeds": high_over_seeds,
                "clear_over_seeds": clear_over_seeds,
                "better": quantity.better,
                "paired": over_stimuli is not None and over_stimuli.paired,
                "n": min(of_a.n, of_b.n) if over_stimuli is None else over_stimuli.n,
            }
        )
    return rows


def _interval(apart: Difference | None, level: float) -> tuple[float, float, bool]:
    """The ends of the interval of a difference and whether it is clear; NaN where nothing tells how sure it is."""
    return (nan, nan, False) if apart is None else (*apart.interval(level), apart.clear(level))


def _two_of(whole: Comparison, a: str | None, b: str | None) -> dict[str, list[str]]:
    """The networks that the two names stand for: a network for itself, a recipe for all of its networks."""
    known = {network: [network] for network in whole.networks}
    recipes: dict[str, list[str]] = {}
    for network in whole.networks:
        recipes.setdefault(whole.recipes.get(network, network), []).append(network)
    known = {**recipes, **known}
    listed = ", ".join(known)
    if a is None and b is None and len(recipes) == 2:
        return recipes
    if a is None or b is None:
        raise AssayError(f"a={a!r}, b={b!r}: name the two networks or recipes to compare, of: {listed}")
    for argument, name in (("a", a), ("b", b)):
        if name not in known:
            raise AssayError(f"{argument}={name!r} is no network or recipe of this run{nearest(str(name), known)}")
    if set(known[a]) & set(known[b]):
        raise AssayError(f"a={a!r} and b={b!r} stand for the same network: name two that differ, of: {listed}")
    return {a: known[a], b: known[b]}
