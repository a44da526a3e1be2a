"""The bootstrap: one way of drawing again, and the shapes in which those who use it want the draws.

A resample of n units is n picks of them with replacement, made by one call of the generator. The same seed gives the
same resamples in every shape:

- `picks` gives the units of each resample, for statistics that take a list; with strata, every unit is replaced by one
  of its own stratum;
- `counts` gives how often each instance is in each resample, for statistics that take weights and so need no copy of
  the data; with groups, whole groups are drawn;
- `crossed_picks` draws several factors of a design, such as inputs and noise, each for itself.

Only `multinomial_counts` takes other random numbers, for statistics whose published values were computed so.

Efron 1979; Davison & Hinkley 1997, chapter 3 (strata and groups).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from assay.core.errors import AssayError, shown
from assay.core.progress import report

Array = np.ndarray[Any, Any]
Seed = int | Sequence[int] | np.random.Generator
COUNTS_AT_ONCE = 8_000_000
_MANY = 10_000


def picks(n: int, draws: int, seed: Seed = 0, *, strata: Array | None = None) -> Iterator[Array]:
    """The units of each resample: n numbers from 0 to n − 1, drawn with replacement.

    Args:
        n: Number of units.
        draws: Number of resamples.
        seed: Seed of the random draws, or a generator to go on with.
        strata: Stratum of each unit. Every unit is then replaced by one of its own stratum, so that a resample has as
            many of each stratum as there are.

    Example:
        >>> [units.tolist() for units in picks(4, 2, seed=1)]
        [[1, 2, 3, 3], [0, 0, 3, 3]]
        >>> [units.tolist() for units in picks(4, 2, seed=1, strata=np.array(["a", "a", "b", "b"]))]
        [[0, 1, 3, 3], [0, 0, 3, 3]]
    """
    require_draws(draws)
    rng = generator(seed)
    if strata is None:
        for done in range(draws):
            _tell(done, draws)
            yield rng.integers(n, size=n)
        return
    if len(strata) != n:
        raise AssayError(f"strata has {len(strata)} entries for {n} units: name the stratum of each")
    _, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    by_stratum = np.argsort(stratum, kind="stable")
    first, size = (np.cumsum(sizes) - sizes)[stratum], sizes[stratum]
    for done in range(draws):
        _tell(done, draws)
        yield by_stratum[first + rng.integers(size)]


def crossed_picks(sizes: Sequence[int], draws: int, seed: Seed = 0) -> Iterator[tuple[Array, ...]]:
    """The units of each resample of a crossed design: `picks` of each factor, such as inputs and noise.

    Args:
        sizes: Number of units of each factor.
        draws: Number of resamples.
        seed: Seed of the random draws, or a generator to go on with.

    Example:
        >>> [[units.tolist() for units in factors] for factors in crossed_picks((3, 2), 2)]
        [[[2, 1, 1], [0, 0]], [[0, 0, 0], [0, 1]]]
    """
    rng = generator(seed)
    return zip(*(picks(n, draws, rng) for n in sizes), strict=True)


def counts(
    n: int,
    draws: int,
    seed: Seed = 0,
    *,
    groups: Array | None = None,
    among: Array | None = None,
    strata: Array | None = None,
    at_once: int = COUNTS_AT_ONCE,
) -> Iterator[Array]:
    """How often each of n instances is in each resample, in arrays of a part of the draws × n, until all are drawn.

    Args:
        n: Number of instances.
        draws: Number of resamples.
        seed: Seed of the random draws, or a generator to go on with.
        groups: Group of each instance where instances belong together: whole groups are drawn.
        among: All groups that are drawn from; more than those in ``groups`` where several data sets share draws.
        strata: Stratum of each unit that is drawn: of each instance, or of each group in the order of their names.
        at_once: Number of counts of units that are held at a time. The draws do not depend on it.

    Example:
        >>> [resampled.tolist() for resampled in counts(4, 2, seed=1)]
        [[[0, 1, 1, 2], [2, 0, 0, 2]]]
        >>> [resampled.tolist() for resampled in counts(5, 1, groups=np.array([7, 7, 7, 9, 8]))]
        [[[0, 0, 0, 1, 2]]]
    """
    require_draws(draws)
    units, member = (n, None) if groups is None else _membership(n, groups, groups if among is None else among)
    resamples = picks(units, draws, seed, strata=strata)
    step = max(1, at_once // units)
    for _ in range(0, draws, step):
        rows = [np.bincount(drawn, minlength=units).astype(np.int32) for drawn in islice(resamples, step)]
        yield np.stack(rows) if member is None else np.stack(rows)[:, member]


def multinomial_counts(n: int, draws: int, seed: Seed = 0) -> Array:
    """How often each of n instances is in each resample, drawn as counts: draws × n.

    They have the law of `counts`, from other random numbers: a multinomial draw makes no picks.

    Example:
        >>> multinomial_counts(4, 2, seed=1).tolist()
        [[1, 2, 0, 1], [2, 0, 1, 1]]
    """
    require_draws(draws)
    drawn: Array = generator(seed).multinomial(n, np.full(n, 1 / n), size=draws)
    return drawn


def percentile_interval(drawn: Array | Sequence[Any], confidence: float = 0.95) -> tuple[Array, Array]:
    """Lower and upper end of the percentile interval of a statistic, from its value in each draw.

    Args:
        drawn: The statistic in each draw, draws first; further axes (several statistics) are kept. Leave out draws in
            which the statistic is undefined: one NaN makes both ends NaN, as do no draws at all.
        confidence: Share of the draws between the ends.

    Example:
        >>> low, high = percentile_interval(np.arange(101.0), confidence=0.9)
        >>> float(low), float(high)
        (5.0, 95.0)

    Efron & Tibshirani 1993, chapter 13.
    """
    if not 0 < confidence < 1:
        raise AssayError(f"confidence={confidence} is not between 0 and 1: use 0.95")
    values = np.asarray(drawn, dtype=np.float64)
    if not len(values):
        return np.array(np.nan), np.array(np.nan)
    percent = 100 * confidence  # in floating point (1 − 0.95)/2 is not 0.025, but (100 − 95)/200 is
    low, high = np.quantile(values, ((100 - percent) / 200, (100 + percent) / 200), axis=0)
    return np.asarray(low), np.asarray(high)


def bootstrap_interval(
    values: Array, statistic: Callable[[Array], Any], draws: int, seed: Seed = 0
) -> tuple[Array, Array]:
    """95 % percentile interval of a statistic over resamples of the values.

    Args:
        values: The values, units first; a resample is a list of units.
        statistic: What is computed from a list of units: a number, or an array of numbers.
        draws: Number of resamples; with none, or without values, the interval is NaN.
        seed: Seed of the random draws.

    Example:
        >>> low, high = bootstrap_interval(np.arange(100.0), np.mean, 1000, seed=0)
        >>> float(low.round()), float(high.round())   # 49.5 ± 1.96 · 28.9/√100
        (44.0, 55.0)

    Efron 1979.
    """
    return percentile_interval(bootstrap_draws(values, statistic, draws, seed))


def bootstrap_draws(values: Array, statistic: Callable[[Array], Any], draws: int, seed: Seed = 0) -> Array:
    """The statistic in every resample of the values: draws × its own shape; arguments as for `bootstrap_interval`.

    Resamples depend on the number of values and the seed alone. Two networks shown the same inputs therefore have the
    same resamples, and the differences of their draws are the draws of their difference.

    Example:
        >>> bootstrap_draws(np.array([1.0, 2.0, 4.0]), np.mean, 2, seed=0).round(3).tolist()
        [2.667, 1.0]
    """
    resamples = picks(len(values), draws if len(values) else 0, seed)
    return np.array([statistic(values[units]) for units in resamples])


def ranking_stability(values: Array, drawn: Array) -> float:
    """Share of draws in which all systems keep the order that they have by their values; a tie does not keep it.

    Args:
        values: One value per system, larger is better.
        drawn: The value of each system in each draw: systems × draws.

    Example:
        >>> ranking_stability(np.array([0.4, 0.3]), np.array([[0.4, 0.5, 0.2, 0.4], [0.3, 0.3, 0.3, 0.1]]))
        0.75
    """
    ordered = drawn[np.argsort(-values, kind="stable")]
    return float((np.diff(ordered, axis=0) < 0).all(axis=0).mean())


def generator(seed: Seed) -> np.random.Generator:
    """The generator of random numbers of a seed; one that is given goes on. What is no seed is an error.

    Example:
        >>> generator(-1)
        Traceback (most recent call last):
            ...
        assay.core.errors.AssayError: seed=-1 is no seed: give a whole number from 0
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise AssayError(f"seed={shown(seed)} is no seed: give a whole number from 0") from None


def require_draws(draws: int, name: str = "draws") -> None:
    """Raise where the number of draws is no whole number from 0; ``name`` is the argument that the error names."""
    if not isinstance(draws, (int, np.integer)) or isinstance(draws, bool) or draws < 0:
        raise AssayError(f"{name}={shown(draws)} is no number of draws: give a whole number, such as 1000")


def require_spread(draws: int) -> None:
    """Raise where there are too few draws for a standard deviation over them."""
    require_draws(draws)
    if draws < 2:
        raise AssayError(f"draws={draws} show no spread: use 1000 or more")


def _tell(done: int, draws: int) -> None:
    """Report progress where there are so many draws that they may take long."""
    if draws >= _MANY and done % 256 == 0:
        report("resamples", done, draws)


def _membership(n: int, groups: Array, among: Array) -> tuple[int, Array]:
    """Number of groups drawn from, and for each instance the place of its group among them."""
    known = np.unique(among)
    member = np.searchsorted(known, groups)
    if len(groups) != n or not np.array_equal(known[np.minimum(member, len(known) - 1)], groups):
        raise AssayError(f"groups must name one of the groups drawn from for each of {n} instances")
    return len(known), member
