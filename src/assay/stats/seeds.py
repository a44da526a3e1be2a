"""Seeds: how far a number moves when a network is trained again, and differences that are larger than that.

Two networks of one recipe, trained from different seeds, differ in every number that a measure gives. A difference
between two networks says something about their recipes only if it is larger than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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


def spread_of_replicates(values: Sequence[float]) -> SeedSpread | None:
    """The spread over seeds that networks of one recipe show: their standard deviation, with n − 1 degrees of freedom.

    Returns:
        None for fewer than two networks.

    Example:
        >>> spread_of_replicates([1.0, 3.0, 5.0])
        SeedSpread(error=2.0, df=2, relative=False)
    """
    finite = np.asarray(values, float)[np.isfinite(values)]
    return SeedSpread(float(finite.std(ddof=1)), len(finite) - 1) if len(finite) > 1 else None


def mean_evidence(replicates: Sequence[Evidence]) -> Evidence:
    """The mean of a number over networks of one recipe, that can be paired with the mean of another recipe.

    Means of parts are averaged part by part, over the parts that all have; resamples resample by resample. Resamples
    that are not the same for all are averaged in order of size, as if the inputs moved all networks alike: they share
    inputs, so that the error of their mean is not that of independent numbers.

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
    same_inputs = len({evidence.n for evidence in known}) == 1 and all(evidence.common for evidence in known)
    draws = [evidence.draws if same_inputs else np.sort(evidence.draws) for evidence in known]
    return Evidence(
        first.quantity,
        float(np.mean([evidence.value for evidence in known])),
        first.unit,
        first.better,
        items,
        np.mean(draws, axis=0) if len({len(drawn) for drawn in draws}) == 1 else np.zeros(0),
        min(evidence.n for evidence in known),
        first.status,
        same_inputs,
        first.exact,
        max(evidence.overlap for evidence in known),
        first.proportion,
        min(evidence.df for evidence in known),
        first.least,
        first.most,
    )


def difference_of_recipes(
    a: Evidence, b: Evidence, spreads: tuple[SeedSpread, SeedSpread], networks: tuple[int, int] = (1, 1)
) -> Difference | None:
    """The difference a − b with the error that stimuli and seeds make together: s² = s_stimuli² + σ_a²/n_a + σ_b²/n_b.

    Its degrees of freedom follow from those of the three parts (Welch 1947, Satterthwaite 1946):
    s⁴ / Σ s_part⁴/df_part. A number that depends on the weights alone, such as their norm, has s_stimuli = 0. The
    interval is never narrower than that of other stimuli alone.

    Args:
        a: The number of one recipe.
        b: The number of the other.
        spreads: How far the number moves from seed to seed, in either recipe.
        networks: Number of networks of either recipe that the numbers are means of.

    Returns:
        None where a number is missing, or nothing says how far other stimuli would move it.

    Example:
        >>> a, b = Evidence("log path norm", 9.0, exact=True), Evidence("log path norm", 5.0, exact=True)
        >>> d = difference_of_recipes(a, b, (SeedSpread(1.0, 11.0), SeedSpread(1.0, 11.0)))
        >>> round(d.error, 3), d.df
        (1.414, 22.0)
    """
    if not (np.isfinite(a.value) and np.isfinite(b.value)):
        return None
    by_stimuli = Difference(a.value - b.value, 0.0, inf, False, 0) if a.exact and b.exact else difference(a, b)
    if by_stimuli is None:
        return None
    parts = [(by_stimuli.error**2, by_stimuli.df)]
    for evidence, spread, n in zip((a, b), spreads, networks, strict=True):
        parts.append((spread.of(evidence.value) ** 2 / n, spread.df))
    total = sum(square for square, _ in parts)
    rest = sum(square**2 / df for square, df in parts)
    # Where clips are few and seeds many, the approximation gives more degrees of freedom than it adds error.
    return replace(by_stimuli, error=sqrt(total), df=total**2 / rest if rest > 0 else inf, part=by_stimuli)
