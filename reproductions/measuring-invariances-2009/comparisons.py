"""What the tables of networks allow to conclude: which cells differ, what sparsity and depth gain, which tests agree.

Everything here is computed from tables, so that it can be computed again without a network.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from assay.stats.bootstrap import percentile_interval, picks
from assay.stats.multiplicity import holm

Array = np.ndarray[Any, Any]
GRATINGS = ("frequency", "orientation", "phase")
VIDEO = ("translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered", "turned_by_hand", "footage")
ALL = "_all"  # the end of the names of columns at p = 1
CELL = ["weight_decay", "target"]
WITHOUT = ((), ("turned_by_hand",), ("turned_by_hand", "footage"))  # tests of few clips, left out one more at a time
FAMILIES = ("sparse", "plain", "second layers", "third layers")
FEWEST_CLUSTERS = 10  # effective ones, for an interval
ALIKE_ABOVE = 0.9  # the mean absolute correlation of filters above which a cell is degenerate
CELLS_ARE = {"sparse, not degenerate": False, "sparse, degenerate": True}
POOLS = {
    "all": False,
    "all, signs chosen": True,
    **dict.fromkeys(FAMILIES, False),
    "sparse, signs chosen": True,
    **dict.fromkeys(CELLS_ARE, False),
}  # and whether units of sparse networks choose their signs
LATER = ("rotation_3d", "rotation_3d_rendered", "translation")  # what the paper finds later layers to gain most in
EARLIER = ("phase", "orientation")
MEANS = ("mean of gratings", "mean of frequency and phase", "mean of video")
EACH_PAIR = ("each of gratings", "each of video")
MORE_LATER = "translation and 3-D rotation less phase and orientation"


def tests_in(table: pd.DataFrame) -> list[str]:
    """The names of the tests that a table has scores of."""
    return [name for name in table.columns if name in (*GRATINGS, *VIDEO)]


def mean_interval(values: Array) -> tuple[float, float, float]:
    """Mean and its 95 % interval (Student's t); none of a single value."""
    if len(values) < 2:
        return float(values.mean()), np.nan, np.nan
    mean, half = values.mean(), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(mean), float(mean - half), float(mean + half)


def welch_interval(one: Array, other: Array) -> tuple[float, float, float]:
    """How far the mean of one sample is above that of another, and its 95 % interval (Welch 1947)."""
    apart = float(one.mean() - other.mean())
    if min(len(one), len(other)) < 2:
        return apart, np.nan, np.nan
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    return apart, float(interval.low), float(interval.high)


def named(without: tuple[str, ...]) -> str:
    """The tests that are left out, in words."""
    return " and ".join(without) or "nothing"


def effective_number(sizes: Array) -> float:
    """How many clusters of equal size tell as much as clusters of these sizes: (Σn)²/Σn² (Kish 1965)."""
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


# -- (a) --------------------------------------------------------------------------------------------------


def games_howell(groups: pd.Series, reference: Any) -> pd.DataFrame:
    """Mean and standard deviation of each group, and how far the reference's mean is above it.

    Args:
        groups: Values, whose index names the group of each.
        reference: The group that the others are compared with.

    Returns:
        A row per group: ``mean``, ``sd``, ``below`` (reference − group) and its interval ``low``, ``high``, 95 % for
        all pairs of groups at once. Variances may differ: with s² = s_a²/n_a + s_b²/n_b, d ± q·s/√2, q the quantile of
        the studentized range for all groups and the degrees of freedom of Welch and Satterthwaite.

    Games & Howell 1976.
    """
    by_group = groups.groupby(level=list(range(groups.index.nlevels)))
    mean, variance, number = by_group.mean(), by_group.var(), by_group.size()
    share, less = variance / number, number - 1
    squared = share[reference] + share
    with np.errstate(invalid="ignore", divide="ignore"):
        df = squared**2 / (share[reference] ** 2 / less[reference] + share**2 / less)
        half = _widest(len(mean), df) * np.sqrt(squared / 2)
    below = mean[reference] - mean
    table = pd.DataFrame({"mean": mean, "sd": variance**0.5, "below": below, "low": below - half, "high": below + half})
    table.loc[[reference], ["low", "high"]] = np.nan
    return table


def _widest(groups: int, df: pd.Series) -> pd.Series:
    """The 95 % quantile of the studentized range, for degrees of freedom rounded down to hundredths: it is slow."""
    return np.floor(df * 100).map(lambda hundredths: _quantile(groups, hundredths))


@cache
def _quantile(groups: int, hundredths: float) -> float:
    return float(stats.studentized_range.ppf(0.95, groups, hundredths / 100))


def by_rule(scores: pd.DataFrame, other_signs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The scores of all networks of (a) by the paper's rule of signs, with all signs fixed, and with all chosen."""
    sparse = scores["target"].notna()
    return {
        "paper": scores,
        "fixed": pd.concat([scores[sparse], other_signs[~sparse]]),
        "chosen": pd.concat([other_signs[sparse], scores[~sparse]]),
    }


def compare_cells(scores: pd.DataFrame, other_signs: pd.DataFrame) -> pd.DataFrame:
    """Every cell of (a) against the best sparse one and against the unregularised one, by each rule of signs."""
    tests = tests_in(scores)
    tables = []
    for signs, p, without in itertools.product(("paper", "fixed", "chosen"), (0.2, 1.0), WITHOUT):
        networks = by_rule(scores, other_signs)[signs].fillna({"target": 1.0})  # 1 stands for "no target"
        names = [f"{name}{ALL if p == 1 else ''}" for name in tests if name not in without]
        values = networks.set_index(CELL)[names].mean(axis=1)
        means = values.groupby(level=CELL).mean()
        best = means[means.index.get_level_values("target") < 1].idxmax()
        table = games_howell(values, best).rename(columns={"below": "below_best"})
        other = games_howell(values, (0.0, 1.0))[["below", "low", "high"]]
        other.columns = ["below_unregularised", "low_unregularised", "high_unregularised"]
        table = table.join(other).reset_index().replace({"target": {1.0: np.nan}})
        table.insert(0, "signs", signs)
        table.insert(1, "p", p)
        table.insert(2, "without", named(without))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def sparsity_gains(scores: pd.DataFrame, other_signs: pd.DataFrame) -> pd.DataFrame:
    """How far the best sparse cell of (a) is above two without sparsity, with 95 % intervals over tests, in pairs.

    The two are the best and the unregularised one. The same tests choose the best and judge them.
    """
    tests = tests_in(scores)
    rows = []
    for signs, p in itertools.product(("paper", "fixed", "chosen"), (0.2, 1.0)):
        networks = by_rule(scores, other_signs)[signs].fillna({"target": 1.0})
        cells = networks.groupby(CELL)[[f"{name}{ALL if p == 1 else ''}" for name in tests]].mean()
        without = cells[cells.index.get_level_values("target") == 1.0]
        best = cells.drop(without.index).mean(axis=1).idxmax()
        for name, other in (("best", without.mean(axis=1).idxmax()), ("unregularised", (0.0, 1.0))):
            apart = (cells.loc[best] - cells.loc[other]).to_numpy()
            row = {"signs": signs, "p": p, "weight_decay": best[0], "target": best[1], "above": name}
            row |= {
                "its_weight_decay": other[0],
                **dict(zip(("gain", "low", "high"), mean_interval(apart), strict=True)),
            }
            rows.append(row | {"higher": int((apart > 0).sum()), "tests": len(tests)})
    return pd.DataFrame(rows)


def what_learning_does(scores: pd.DataFrame, other_signs: pd.DataFrame, untrained: pd.DataFrame) -> pd.DataFrame:
    """How far learning without any regularisation changes the mean over tests of one layer, by each rule of signs.

    A network and the untrained one of the same seed have the same initial weights: intervals are Student's t, in pairs.
    """
    rows = []
    for signs, p, without in itertools.product(("fixed", "chosen"), (0.2, 1.0), WITHOUT):
        names = [f"{name}{ALL if p == 1 else ''}" for name in tests_in(scores) if name not in without]
        networks = by_rule(scores, other_signs)[signs]
        unregularised = networks[networks["target"].isna() & (networks["weight_decay"] == 0)]
        first = untrained[(untrained["signs"] == signs) & (untrained["depth"] == 1)]
        after, before = (of.set_index("seed")[names].mean(axis=1) for of in (unregularised, first))
        change = mean_interval((after - before).dropna().to_numpy())
        row = {"signs": signs, "p": p, "without": named(without), "untrained": before.mean(), "trained": after.mean()}
        rows.append(row | dict(zip(("change", "low", "high"), change, strict=True)))
    return pd.DataFrame(rows)


# -- (b) --------------------------------------------------------------------------------------------------


def left_out_choices(grid: pd.DataFrame) -> pd.DataFrame:
    """For every test and depth the network of the grid with the highest mean of the other tests, and its score.

    The choice does not see the test that it is judged by, nor those that are left out of all.
    """
    rows = []
    layers = sorted(grid["layer"].unique())
    for without, end, layer, test in itertools.product(WITHOUT, ("", ALL), layers, tests_in(grid)):
        if test in without:
            continue
        tests = [name for name in tests_in(grid) if name not in without]
        others = [f"{name}{end}" for name in tests if name != test]
        known = grid[(grid["layer"] == layer) & grid[[f"{test}{end}", *others]].notna().all(axis=1)]
        chosen = known.loc[known[others].mean(axis=1).idxmax()]
        depth = int(layer.removeprefix("stack.")) + 1
        row = {"without": named(without), "p": 1.0 if end else 0.2, "depth": depth, "test": test}
        row["score"] = chosen[f"{test}{end}"]
        rows.append(row | {f"decay_{i}": chosen[f"decay_{i}"] if i <= depth else np.nan for i in (1, 2, 3)})
    return pd.DataFrame(rows)


def depth_gains(copies: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """What depth gains in the mean over tests, with 95 % intervals, over tests in pairs or over initial weights.

    Copies of networks that the same tests chose are beside networks that were chosen without the test in question.
    Intervals over initial weights are Welch's, and say nothing of other tests. Where tests are left out, they do not
    judge copies, which were chosen with them all the same.
    """
    rows = []
    for (without, p), blindly_chosen in left_out.groupby(["without", "p"], sort=False):
        end = ALL if p == 1 else ""
        names = [f"{name}{end}" for name in blindly_chosen["test"].unique()]
        by_mean = copies[copies["chosen_by"] == f"mean{end}"]
        by_test = by_mean.groupby("depth")[names].mean().T
        others = blindly_chosen.pivot(index="test", columns="depth", values="score")
        for judged, scores in (("the tests that chose", by_test), ("a test that did not choose", others)):
            for one, other in ((1, 2), (2, 3), (1, 3)):
                row: dict[str, Any] = {"without": without, "p": p, "judged by": judged, "from": one, "to": other}
                gain = mean_interval((scores[other] - scores[one]).to_numpy())
                row |= {"rises": int((scores[other] > scores[one]).sum()), "tests": len(scores)}
                rows.append(row | dict(zip(("gain", "low", "high"), gain, strict=True)) | {"over": "tests"})
                if scores is by_test:
                    means = by_mean.set_index("depth")[names].mean(axis=1)
                    gain = welch_interval(means[other].to_numpy(), means[one].to_numpy())
                    rows.append(
                        row | dict(zip(("gain", "low", "high"), gain, strict=True)) | {"over": "initial weights"}
                    )
    return pd.DataFrame(rows)


# -- (c) --------------------------------------------------------------------------------------------------


def what_learning_changes(trained: pd.DataFrame, untrained: pd.DataFrame) -> pd.DataFrame:
    """What learning changes in each layer and in their difference: means, and the change by initialisation.

    A trained network and the untrained one of the same seed have the same initial weights. Intervals are Student's t
    over the initialisations; there are none of a single one. ``p_holm`` is the p of the change, corrected by Holm's
    method for all tests and settings.
    """
    keys = ["setting", "transformation", "of", "near_max"]
    both = trained.merge(untrained, on=[*keys, "seed"], suffixes=("", "_untrained"))
    rows = []
    for names, group in both.groupby(keys, sort=False):
        for what, column in (("layer 1", "other_score"), ("layer 2", "score"), ("difference", "difference")):
            before, after = group[f"{column}_untrained"].to_numpy(), group[column].to_numpy()
            row = dict(zip(keys, names, strict=True)) | {"what": what}
            for name, values in (("untrained", before), ("trained", after), ("change", after - before)):
                ends = ("low", "high") if name == "change" else (f"{name}_low", f"{name}_high")
                row |= dict(zip((name, *ends), mean_interval(values), strict=True))
            row["p_holm"] = stats.ttest_1samp(after - before, 0.0).pvalue if len(group) > 1 else np.nan
            rows.append(row)
    table = pd.DataFrame(rows)
    for _, together in table.groupby(["what", "of", "near_max"]):
        p = together["p_holm"].dropna()
        table.loc[p.index, "p_holm"] = holm(p.to_numpy())
    return table


def relative_gains(scores: pd.DataFrame) -> pd.DataFrame:
    """How much of the score of layer 1 layer 2 gains in each test, in per cent, at p = 1.

    The gain in 3-D rotation of rendered objects, ``above``, is compared with that in each other test, in pairs over
    initialisations. A row more is the mean gain in translation and 3-D rotation less that in phase and orientation.
    Intervals are Student's t over initialisations; there are none of a single one. A test that gives a layer no score
    has a row without numbers.
    """
    kept = scores[(scores["of"] == "all units") & (scores["near_max"] == 0.1)]
    gain = (100 * (kept["score"] / kept["other_score"] - 1)).rename("gain")
    wide = kept.join(gain).pivot(index=["setting", "seed"], columns="transformation", values="gain")
    later = [name for name in LATER if name in wide]
    wide[MORE_LATER] = wide[later].mean(axis=1, skipna=False) - wide[list(EARLIER)].mean(axis=1, skipna=False)
    rows = []
    for setting, group in wide.groupby(level="setting", sort=False):
        for name in wide.columns:
            row: dict[str, Any] = {"setting": setting, "transformation": name}
            row |= dict(zip(("gain", "low", "high"), mean_interval(group[name].to_numpy()), strict=True))
            if name != MORE_LATER:
                above = mean_interval((group["rotation_3d_rendered"] - group[name]).to_numpy())
                row |= dict(zip(("above", "above_low", "above_high"), above, strict=True))
            rows.append(row)
    return pd.DataFrame(rows)


# -- (d) --------------------------------------------------------------------------------------------------


def tested_networks(
    scores: pd.DataFrame, other_signs: pd.DataFrame, grid: pd.DataFrame, tests: list[str], sparse_choose: bool
) -> pd.DataFrame:
    """Networks that differ and have all scores, with the family of each and the cluster that it is drawn with.

    Of sparse networks there is also whether the filters of their cell are copies of each other, ``degenerate``.

    Sparse networks of one cell differ in their seed alone. Networks without sparsity whose first layers have the same
    weight decay are one cluster: those of (a), and those of (b), whose first layers are the same.

    Args:
        scores: The networks of (a).
        other_signs: The same by the other rule of signs.
        grid: The networks of (b).
        tests: Columns of scores.
        sparse_choose: Whether units of sparse networks choose their signs, as all others do; else they are fixed.
    """
    sparse = scores["target"].notna()
    first = (other_signs if sparse_choose else scores)[sparse]
    cells = [f"{decay:g}/{target:g}" for decay, target in zip(first["weight_decay"], first["target"], strict=True)]
    alike = scores[sparse].groupby(CELL)["alikeness"].transform("mean") > ALIKE_ABOVE
    plain = scores[~sparse]
    layer = grid["layer"].str.removeprefix("stack.").astype(int)
    networks = [
        first[tests].assign(family="sparse", cluster=cells, degenerate=alike.to_numpy()),
        plain[tests].assign(family="plain", cluster=[f"{decay:g}" for decay in plain["weight_decay"]]),
        grid[tests].assign(
            family=layer.map(dict(enumerate(FAMILIES[1:]))).to_numpy(),
            cluster=[f"{decay:g}" for decay in grid["decay_1"]],
        ),
    ]
    return pd.concat(networks, ignore_index=True).dropna(subset=tests).drop_duplicates(tests)


def agreement(scores: pd.DataFrame, other_signs: pd.DataFrame, grid: pd.DataFrame, draws: int) -> pd.DataFrame:
    """Rank correlations of all pairs of tests, and of means of tests, in each pool of networks (`rank_agreement`)."""
    names = tests_in(scores)
    tables = []
    for (p, end), (pool, choose) in itertools.product(((1.0, ALL), (0.2, "")), POOLS.items()):
        tests = [f"{name}{end}" for name in names]
        networks = with_means(tested_networks(scores, other_signs, grid, tests, choose), tests)
        family = pool.split(",")[0]
        networks = networks if family == "all" else networks[networks["family"] == family]
        if pool in CELLS_ARE:
            networks = networks[networks["degenerate"] == CELLS_ARE[pool]]
        table = rank_agreement(networks.rename(columns=dict(zip(tests, names, strict=True))), names, draws)
        table.insert(0, "p", p)
        table.insert(1, "networks of", pool)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def rank_agreement(networks: pd.DataFrame, tests: list[str], draws: int) -> pd.DataFrame:
    """Rank correlations of pairs of columns, with intervals from resamples of whole clusters.

    Pairs are all those of tests, the means of gratings (of all, and without orientation) with the mean of video, and
    as `EACH_PAIR` the mean of the rank correlations of one test of gratings and one of video. There is no interval of
    fewer than ten effective clusters.
    """
    columns = [*tests, *MEANS]
    values = networks[columns].to_numpy()
    places = list(itertools.combinations(range(len(tests)), 2))
    places += [(columns.index(name), columns.index(MEANS[-1])) for name in MEANS[:-1]]
    mixed = [
        i for i, (a, b) in enumerate(places) if b < len(tests) and (tests[a] in GRATINGS) != (tests[b] in GRATINGS)
    ]

    def correlations(rows: Array) -> Array:
        if len(rows) < 3:
            return np.full(len(places) + 1, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):  # of a test that is constant there are none
            matrix = np.corrcoef(stats.rankdata(values[rows], axis=0), rowvar=False)
        of_pairs = np.array([matrix[place] for place in places])
        return np.append(of_pairs, of_pairs[mixed].mean())

    members = [np.flatnonzero(networks["cluster"] == name) for name in networks["cluster"].unique()]
    effective = effective_number(np.array([len(of) for of in members])) if members else 0.0
    table = pd.DataFrame([(columns[a], columns[b]) for a, b in places] + [EACH_PAIR], columns=["test", "other"])
    table["spearman"] = correlations(np.arange(len(values)))
    table[["low", "high"]] = np.nan
    if effective >= FEWEST_CLUSTERS:
        drawn = picks(len(members), draws, 0)
        resampled = np.stack([correlations(np.concatenate([members[i] for i in of])) for of in drawn])
        ends = [percentile_interval(of[~np.isnan(of)]) for of in resampled.T]
        table[["low", "high"]] = np.array(ends)
    return table.assign(networks=len(values), clusters=len(members), effective=effective)


def with_means(networks: pd.DataFrame, tests: list[str]) -> pd.DataFrame:
    """Networks with their means over the tests of gratings, over those but orientation, and over those of video."""
    video = [name for name in tests if name.removesuffix(ALL) in VIDEO]
    gratings = [name for name in tests if name not in video]
    turned_less = [name for name in gratings if name.removesuffix(ALL) != "orientation"]
    means = (networks[of].mean(axis=1) for of in (gratings, turned_less, video))
    return networks.assign(**dict(zip(MEANS, means, strict=True)))
