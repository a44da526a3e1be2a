"""How certain a statistic of a corpus is, and whether one measure is better than another: a bootstrap over networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy

from assay.core.errors import AssayError, nearest
from assay.stats.bootstrap import multinomial_counts, require_spread
from assay.stats.permutation import permutation_p
from assay.studies.statistics.cmi import ConditionalMutualInformation
from assay.studies.statistics.grid import Array, Hyperparameters, Numbers, checked
from assay.studies.statistics.kendall import GranulatedKendall, KendallTau, Pearson
from assay.studies.statistics.sign_error import SignError
from assay.studies.statistics.statistic import Statistic

Measures = Mapping[str, Numbers] | pd.DataFrame

STATISTICS: dict[str, Statistic] = {
    "cmi_distinct": ConditionalMutualInformation(self_pairs=False),
    "cmi": ConditionalMutualInformation(),
    "kendall_tau": KendallTau(),
    "granulated_kendall": GranulatedKendall(),
    "worst_sign_error": SignError("worst"),
    "mean_sign_error": SignError("mean"),
    "pearson": Pearson(),
}


def score_measures(
    measures: Measures,
    gap: Numbers,
    hyperparameters: Hyperparameters | None = None,
    statistic: str | Statistic = "cmi_distinct",
    draws: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    cells: Numbers | None = None,
) -> pd.DataFrame:
    """A statistic of each measure, with its interval over networks.

    value ± z·se, within the bounds of the statistic; se is its standard deviation over resamples of the networks,
    drawn with replacement and the same for all measures. Networks of one cell of the grid, which differ in their seed
    alone, are drawn together, because what moves the cell moves them all.

    Only the spread of the resamples is used, not their quantiles. With one network per combination of
    hyper-parameters, a resample compares fewer distinct networks, some of their pairs several times, and leaves
    combinations empty. All this raises mutual information, most where it is low, and quantiles rise with it: on
    simulated grids of 54 networks, trained again and again, percentile intervals of 95 % covered the expected CMI of an
    unrelated measure only 13 times in 100; value ± z·se covered it at least 92 times in 100
    (``benchmarks/cmi_intervals.py``).
    Drawing levels or seeds would keep the grid whole, but there are only two to four levels, and one seed. The networks
    count as a sample of such networks: for what other seeds alone would give, the intervals are too wide. The worst
    sign error is a maximum, often near 1: on small corpora (18 networks) its intervals are too narrow.

    Args:
        measures: The value of each measure in every network, by name.
        gap: The generalization gap of each network.
        hyperparameters: The value of each hyper-parameter in every network, by name; not needed for
            ``"kendall_tau"`` and ``"pearson"``.
        statistic: One of `STATISTICS`, or a `Statistic` with settings of its own.
        draws: Number of resamples.
        confidence: Confidence level of the interval.
        seed: Seed of the bootstrap's random draws.
        cells: The cell of each network, where networks of equal hyper-parameters differ in more than chance; by default
            each combination of hyper-parameters is one.

    Returns:
        One row per measure: ``measure``, ``value``, ``se``, ``low``, ``high``, ``draws`` (the number of resamples in
        which the statistic is defined) and ``status``: ``ok``, ``undefined`` (the statistic is undefined for this
        measure) or ``no interval`` (it is undefined in more than half of the draws, or the same in all: a value at its
        bound, such as a τ of 1, may not vary, which does not make it certain).

    Example:
        >>> gap = np.arange(8.0)
        >>> table = score_measures({"same": gap, "other": gap % 3}, gap, statistic="kendall_tau")
        >>> table[["measure", "value", "se"]].round(2).to_dict("records")[0]
        {'measure': 'same', 'value': 1.0, 'se': 0.0}

    Efron & Tibshirani 1993, §12 (standard intervals).
    """
    names, drawn, chosen = _resampled(measures, gap, hyperparameters, statistic, draws, seed, cells)
    table = _intervals("value", drawn, confidence)
    table.insert(0, "measure", names)
    return table.assign(low=table["low"].clip(*chosen.bounds), high=table["high"].clip(*chosen.bounds))


def chance_level(
    gap: Numbers,
    hyperparameters: Hyperparameters | None = None,
    statistic: str | Statistic = "cmi_distinct",
    draws: int = 500,
    quantile: float = 0.95,
    seed: int = 0,
) -> float:
    """The value that one measure unrelated to the gap, named beforehand, stays below, ``quantile`` of the time.

    The quantile of the statistic over ``draws`` measures that are random orders of the networks. Mutual information is
    never negative: in a small corpus chance alone gives much of it. The best of many measures has more by chance:
    see `against_chance`.

    Example:
        >>> gap = np.arange(20.0)
        >>> round(chance_level(gap, statistic="kendall_tau"), 1)      # τ-b of 20 has a standard deviation of 0.16
        0.3
    """
    _, g, grid = checked({"order": gap}, gap, hyperparameters)
    chosen = named_statistic(statistic)
    chosen.check(g, grid)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(len(g)) for _ in range(draws)]).astype(np.float64)
    by_chance = chosen.resampled(orders, g, grid, np.ones((1, len(g))))[:, 0]
    return float(np.nanquantile(by_chance, quantile))


def compare_measures(
    measures: Measures,
    gap: Numbers,
    hyperparameters: Hyperparameters | None = None,
    statistic: str | Statistic = "cmi_distinct",
    draws: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    cells: Numbers | None = None,
) -> pd.DataFrame:
    """Compare every two measures: the difference of the statistic, its interval and its two-sided p.

    difference ± z·se, within what two values of the statistic can differ by, and p = 2·Φ(−|difference|/se), se the
    standard deviation of the difference over resamples that both measures share, for the reasons given in
    `score_measures`, whose arguments these are. That p is of a single comparison of two measures that were named
    beforehand.

    ``p_max`` holds for all pairs at once, and so for the pair of the best and any other. With d the difference of a
    pair, d^b that in resample b and d̄ their mean, p_max = (1 + #{b : max over pairs of |d^b − d̄|/se ≥ |d|/se}) /
    (1 + B). It is never below p.

    Returns:
        One row per pair: ``measure``, ``other``, ``difference`` (measure minus other), ``se``, ``low``, ``high``,
        ``draws``, ``status``, ``p``, ``p_max``.

    Example:
        >>> gap = np.arange(12.0)
        >>> table = compare_measures({"same": gap, "swapped": gap + 8 * (gap == 2)}, gap, statistic="kendall_tau")
        >>> table[["measure", "other", "difference", "p"]].round(1).to_dict("records")
        [{'measure': 'same', 'other': 'swapped', 'difference': 0.2, 'p': 0.3}]

    Westfall & Young 1993, §2.4 (the bootstrap of the maximum).
    """
    names, drawn, chosen = _resampled(measures, gap, hyperparameters, statistic, draws, seed, cells)
    most = chosen.bounds[1] - chosen.bounds[0]
    if len(names) < 2:
        raise AssayError(f"measures has {len(names)}: comparing takes two or more")
    parts = []
    furthest = np.zeros(drawn.shape[1] - 1)
    for a, name in enumerate(names[:-1]):
        apart = drawn[a] - drawn[a + 1 :]
        pairs = _intervals("difference", apart, confidence)
        pairs[["low", "high"]] = pairs[["low", "high"]].clip(-most, most)
        error = pairs["se"].where(pairs["se"] > 0).to_numpy(dtype=np.float64)
        p = 2 * scipy.stats.norm.sf(pairs["difference"].abs().to_numpy() / error)
        pairs.insert(0, "measure", name)
        pairs.insert(1, "other", names[a + 1 :])
        parts.append(pairs.assign(p=p))
        sure = ~np.isnan(error)
        shift = np.abs(apart[sure, 1:] - np.nanmean(apart[sure, 1:], axis=1, keepdims=True)) / error[sure, None]
        furthest = np.fmax.reduce(np.vstack([furthest, shift]))
    table = pd.concat(parts, ignore_index=True)
    ratio = (table["difference"].abs() / table["se"].where(table["se"] > 0)).to_numpy(dtype=np.float64)
    together = np.maximum(permutation_p(ratio, furthest[:, None]), table["p"])
    return table.assign(p_max=np.where(np.isnan(ratio), np.nan, together))


def _resampled(
    measures: Measures,
    gap: Numbers,
    hyperparameters: Hyperparameters | None,
    statistic: str | Statistic,
    draws: int,
    seed: int,
    cells: Numbers | None,
) -> tuple[list[str], Array, Statistic]:
    """The names of the measures; their statistics in the corpus and then in each resample; the statistic itself."""
    require_spread(draws)
    if len(set(map(str, measures))) < len(measures.keys()) or not len(measures.keys()):
        raise AssayError(f"measures must have one or more names, each once, received {list(measures)}")
    columns = {f"measure {str(name)!r}": values for name, values in measures.items()}
    rows, g, grid = checked(columns, gap, hyperparameters)
    chosen = named_statistic(statistic)
    chosen.check(g, grid)
    together = grid.cells if cells is None else as_cells(cells, len(g))
    weights = np.concatenate([np.ones((1, len(g))), resampled_networks(together, draws, seed)])
    return [str(name) for name in measures], chosen.resampled(rows, g, grid, weights), chosen


def resampled_networks(cells: Array, draws: int, seed: int) -> Array:
    """How often each network is in each resample, draws × networks: those of one cell are drawn together."""
    count = int(cells.max()) + 1
    counts = multinomial_counts(count, draws, seed)
    return counts if count == len(cells) else counts[:, cells]


def as_cells(cells: Numbers, networks: int) -> Array:
    """The cells of networks, numbered from 0."""
    if len(cells) != networks:
        raise AssayError(f"cells has {len(cells)} values for {networks} networks")
    return np.unique(np.asarray(cells), return_inverse=True)[1]


def named_statistic(statistic: str | Statistic) -> Statistic:
    """The statistic of this name in `STATISTICS`, or the one given."""
    if isinstance(statistic, Statistic):
        return statistic
    if statistic not in STATISTICS:
        raise AssayError(f"statistic={statistic!r} is unknown{nearest(str(statistic), STATISTICS)}")
    return STATISTICS[statistic]


def _intervals(name: str, rows: Array, confidence: float) -> pd.DataFrame:
    """The interval value ± z·se of each row, which has the value in the corpus first and then that in each draw."""
    if not 0 < confidence < 1:
        raise AssayError(f"confidence={confidence} is not between 0 and 1: use 0.95")
    value, drawn = rows[:, 0], rows[:, 1:]
    draws = (~np.isnan(drawn)).sum(axis=1)
    enough = 2 * draws >= max(drawn.shape[1], 4)
    se = np.full(len(rows), np.nan)
    se[enough] = np.nanstd(drawn[enough], axis=1, ddof=1)
    reach = float(scipy.stats.norm.ppf((1 + confidence) / 2)) * np.where(se > 0, se, np.nan)
    status = np.select([np.isnan(value), se > 0], ["undefined", "ok"], "no interval")
    columns = {name: value, "se": se, "low": value - reach, "high": value + reach, "draws": draws, "status": status}
    return pd.DataFrame(columns)
