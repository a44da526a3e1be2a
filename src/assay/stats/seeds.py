"""Seeds: how far a number moves when a network is trained again, and differences that are larger than that.

Two networks of one recipe, trained from different seeds, differ in every number that a measure gives. A difference
between two networks says something about their recipes only if it is larger than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from assay.stats.differences import Difference, difference
from assay.stats.evidence import Evidence


@dataclass(frozen=True)
class SeedSpread:
    """How far a number of one network moves from seed to seed.

    Args:
        error: Its standard deviation σ over networks that were trained alike.
        df: Degrees of freedom of σ.
        relative: Whether ``error`` is a share of the number, as of one on a ratio scale.
    """

    error: float
    df: float
    relative: bool = False

    def of(self, value: float) -> float:
        """The standard deviation of a number of this size.

        Example:
            >>> SeedSpread(0.1, 11, relative=True).of(-20.0)
            2.0
        """
        return self.error * abs(value) if self.relative else self.error


def spread_of_replicates(recipes: Mapping[str, Sequence[float]]) -> SeedSpread | None:
    """The spread over seeds that the networks of the same recipe show: σ² = Σ (x − x̄_recipe)² / Σ (n_recipe − 1).

    Args:
        recipes: The number of every network, by recipe.

    Returns:
        None where no recipe has two networks.

    Example:
        >>> spread_of_replicates({"standard": [1.0, 3.0], "robust": [5.0, 7.0], "retina": [9.0]})
        SeedSpread(error=1.4142135623730951, df=2, relative=False)
    """
    squares, df = 0.0, 0
    for values in recipes.values():
        finite = np.asarray(values, float)[np.isfinite(values)]
        if len(finite) > 1:
            squares += float(((finite - finite.mean()) ** 2).sum())
            df += len(finite) - 1
    return SeedSpread(sqrt(squares / df), df) if df else None


def mean_evidence(replicates: Sequence[Evidence]) -> Evidence:
    """The mean of a number over networks of one recipe, that can be paired with the mean of another recipe.

    Means of parts are averaged part by part, over the parts that all have; resamples resample by resample.

    Example:
        >>> a = Evidence("curvature", 2.0, items={"x": 1.0, "y": 3.0}, n=2)
        >>> b = Evidence("curvature", 4.0, items={"x": 2.0, "y": 6.0}, n=2)
        >>> mean_evidence([a, b]).items
        {'x': 1.5, 'y': 4.5}
    """
    known = [evidence for evidence in replicates if np.isfinite(evidence.value)]
    first = known[0] if known else replicates[0]
    if len(known) < 2:
        return first
    shared = [name for name in first.items if all(name in evidence.items for evidence in known)]
    items = {name: float(np.mean([evidence.items[name] for evidence in known])) for name in shared}
    alike = len({len(evidence.draws) for evidence in known}) == 1
    same_inputs = len({evidence.n for evidence in known}) == 1 and all(evidence.common for evidence in known)
    return Evidence(
        first.quantity,
        float(np.mean([evidence.value for evidence in known])),
        first.unit,
        first.better,
        items,
        np.mean([evidence.draws for evidence in known], axis=0) if alike else np.zeros(0),
        min(evidence.n for evidence in known),
        first.status,
        same_inputs,
    )


def difference_of_recipes(
    a: Evidence, b: Evidence, spread: SeedSpread, networks: tuple[int, int] = (1, 1)
) -> Difference | None:
    """The difference a − b with the error that stimuli and seeds make together: s² = s_stimuli² + σ_a²/n_a + σ_b²/n_b.

    Its degrees of freedom follow from those of the two parts (Satterthwaite 1946): s⁴ / (s_stimuli⁴/df + s_seeds⁴/df).
    A number that does not rest on stimuli, such as a norm of the weights, has s_stimuli = 0.

    Args:
        a: The number of one recipe.
        b: The number of the other.
        spread: How far the number moves from seed to seed.
        networks: Number of networks of either recipe that the numbers are means of.

    Example:
        >>> a, b = Evidence("log path norm", 9.0), Evidence("log path norm", 5.0)
        >>> d = difference_of_recipes(a, b, SeedSpread(1.0, 11.0))
        >>> round(d.error, 3), d.df
        (1.414, 11.0)
    """
    if not (np.isfinite(a.value) and np.isfinite(b.value)):
        return None
    by_stimuli = difference(a, b)
    rests_on_stimuli = any(evidence.items or len(evidence.draws) for evidence in (a, b))
    if by_stimuli is None:
        if rests_on_stimuli:
            return None
        by_stimuli = Difference(a.value - b.value, 0.0, inf, False, 0)
    of_seeds = sum(spread.of(x.value) ** 2 / n for x, n in zip((a, b), networks, strict=True))
    of_stimuli = by_stimuli.error**2
    total = of_seeds + of_stimuli
    parts = of_seeds**2 / spread.df + of_stimuli**2 / by_stimuli.df
    df = total**2 / parts if parts > 0 else inf
    return Difference(by_stimuli.value, sqrt(total), df, by_stimuli.paired, by_stimuli.n)
