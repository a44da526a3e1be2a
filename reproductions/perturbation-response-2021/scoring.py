"""The part ``tables``: which numbers predict the gap, from the tables of what the networks answered, on any machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from asked import expected_and_budget
from common import AUGMENTED, CORPORA, HERE, SCORES, Scale, read, write

from assay.stats.bootstrap import multinomial_counts, percentile_interval
from assay.stats.multiplicity import holm
from assay.studies import (
    ConditionalMutualInformation,
    Scoring,
    affordable_controls,
    compare_measures,
    conditional_mutual_information,
    control_predictors,
    judge,
    load_corpus_plan,
    partial_correlations,
    rank,
)
from assay.studies.controls import CONTROL
from assay.studies.prediction import with_combinations

ENOUGH = 0.8  # of the training data as shown: the paper's rule for its second experiment
TEST_PICTURES = 10_000  # of Fashion-MNIST and of CIFAR-10
BASELINE = "mixup"  # the paper's own, which the others are compared with


def tables(out: Path, scale: Scale) -> None:
    """Score the answers of all networks."""
    for name in CORPORA:
        table_one(name, out, scale)
    write(out, "equal_mixup", pd.DataFrame(row for name in CORPORA for row in equal_mixup(name, out, scale)))
    table_three(out, scale)


def table_one(name: str, out: Path, scale: Scale) -> None:
    """Judge every measure of the networks of a corpus (their Table 1; Figure 3, below)."""
    table = read(out, f"{name}_networks")
    hyper = [h for h in load_corpus_plan(HERE / f"{name}.yaml").grid if h in table]
    gap, grid = table["gap"], table[hyper]
    first = table.columns.get_loc("status") + 1  # the measures come last
    numbers = with_combinations(table.iloc[:, first:]).set_index(table["network"])
    expected, budgets = expected_and_budget(numbers, name, scale)
    judged = judge(table.iloc[:, :first], numbers, hyper, scoring(scale), None, expected, budgets)
    write(out, f"{name}_ranking", judged.ranking)
    write(out, f"{name}_test_error", judged.test_error)
    if len(judged.combined):  # else there are too few networks
        write(out, f"{name}_combined", judged.combined)
    ranked = judged.ranking[judged.ranking["status"] == "ok"]
    best = ranked["measure"][ranked["kind"] == "measure"].iloc[0]
    whole = numbers.reset_index(drop=True).join(control_predictors(table, hyper, gap))[ranked["measure"]]
    write(out, f"{name}_comparisons", compared([BASELINE, best], whole, gap, grid, scale))
    write(out, f"{name}_gap", pd.DataFrame(explained(gap, grid)))
    write(out, f"{name}_batches", pd.DataFrame(by_count(read(out, f"{name}_gi_by_batch"), gap, grid, scale)))


def scoring(scale: Scale) -> Scoring:
    """How measures are scored."""
    return Scoring(draws=scale.draws, permutations=scale.permutations, test_size=TEST_PICTURES)


def explained(gap: pd.Series, hyper: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The share of the gap's variance between the levels of each hyper-parameter (η²)."""
    for name, levels in hyper.items():
        yield {"hyper-parameter": name, "share": gap.groupby(levels).transform("mean").var() / gap.var()}


def compared(
    chosen: list[str], numbers: pd.DataFrame, gap: pd.Series, hyper: pd.DataFrame, scale: Scale
) -> pd.DataFrame:
    """Each chosen measure compared with every other by paired differences of CMI without pairs of one with itself.

    ``p_max`` holds for all pairs of all measures at once, ``p_holm`` for the comparisons of the first chosen measure
    alone. Columns that begin with ``pgdl_`` are of CMI as PGDL counts. A pair of two chosen
    measures has one row.
    """
    numbers = numbers[list(dict.fromkeys([*chosen, *numbers.columns]))]
    by_count = []
    for self_pairs in (False, True):
        statistic = ConditionalMutualInformation(self_pairs=self_pairs)
        each = np.arange(len(gap))  # no two networks differ in their seed alone
        pairs = compare_measures(numbers, gap, hyper, statistic, draws=scale.draws, cells=each)
        by_count.append(pairs[pairs["measure"].isin(chosen)].reset_index(drop=True))
    distinct, pgdl = by_count
    named = distinct["measure"] == chosen[0]
    distinct["p_holm"] = np.nan
    distinct.loc[named, "p_holm"] = holm(distinct.loc[named, "p"].to_numpy())
    beside = pgdl[["difference", "low", "high", "p", "p_max"]].add_prefix("pgdl_")
    return distinct.join(beside)


def by_count(batches: pd.DataFrame, gap: pd.Series, hyper: pd.DataFrame, scale: Scale) -> Iterator[dict[str, Any]]:
    """CMI of Gi from so many batches, drawn many times over with repetition (their Figure 3, below)."""
    rng = np.random.default_rng(0)
    for kind, rows in batches.groupby("perturbation", sort=False):
        gi = rows.drop(columns=["network", "perturbation"]).to_numpy()
        for count, run in itertools.product((c for c in scale.counts if c <= gi.shape[1]), range(scale.runs)):
            drawn = gi[:, rng.integers(gi.shape[1], size=count)].mean(1)
            cmi = conditional_mutual_information(drawn, gap, hyper)
            yield {"perturbation": kind, "batches": count, "run": run, "cmi": cmi}


def equal_mixup(name: str, out: Path, scale: Scale) -> Iterator[dict[str, Any]]:
    """Pairs of networks whose mixup accuracies differ by less than 0.5 %: how often the greater Gi has the greater gap.

    And of those, pairs whose training accuracies differ little too. Intervals are from resampling networks. The two
    named are the pair whose Gi differ most (their Figure 2).
    """
    table = read(out, f"{name}_networks")
    columns = ("gi intra ℓ=0", "gap", "mixup", "train_accuracy")
    differences = {c: np.subtract.outer(table[c].to_numpy(), table[c].to_numpy()) for c in columns}
    gi = differences["gi intra ℓ=0"]
    times = multinomial_counts(len(table), scale.draws)
    near = np.triu(np.ones_like(gi, dtype=bool), 1)
    for column, within in (("mixup", 0.005), ("train_accuracy", 0.005), ("train_accuracy", 0.002)):
        near = near & (np.abs(differences[column]) < within)
        right = near & (gi * differences["gap"] > 0)
        low, high = percentile_interval([(t @ right @ t) / (t @ near @ t) for t in times if t @ near @ t])
        pair = np.unravel_index(np.argmax(np.where(near, np.abs(gi), -1)), gi.shape)
        one, other = table["network"].iloc[list(pair)]
        row = {"corpus": name, "also": column, "within": within, "pairs": int(near.sum()), "one": one, "other": other}
        yield row | {"right": right.sum() / max(near.sum(), 1), "right_low": float(low), "right_high": float(high)}


def table_three(out: Path, scale: Scale) -> None:
    """Which score predicts how well a network generalizes to perturbed test data, and Gi compared with the others.

    CMI is conditioned on the hyper-parameters that the paper names, and the level of augmentation is not among them:
    it is a control, as is the exact accuracy on the training data as shown.
    """
    cells, pairs = [], []
    for name in AUGMENTED:
        table = read(out, f"{name}_networks").rename(columns={"trained_accuracy": "train_accuracy"})
        hyper = [h for h in load_corpus_plan(HERE / f"{name}.yaml").grid if h in table]
        conditions = [h for h in hyper if h != "augmentation"]
        for kind, rows in table.groupby("perturbation", sort=False):
            good = rows if scale.small else rows[rows["train_accuracy"] >= ENOUGH]
            good = good.reset_index(drop=True)
            scores = good[list(SCORES)]
            numbers = scores.join(control_predictors(good, hyper))
            ranked = rank(numbers, good["gap"], good[conditions], scoring(scale), SCORES, np.arange(len(good)))
            ranked.insert(1, "kind", np.where(ranked["measure"].str.startswith(CONTROL), "control", "measure"))
            partial = partial_correlations(scores, good["gap"], affordable_controls(good, hyper)[0])
            ranked = ranked.join(partial, on="measure")
            if "cmi" in ranked:  # else there are too few networks
                whole = numbers[ranked["measure"][ranked["status"] == "ok"]]
                comparisons = compared(["gi"], whole, good["gap"], good[conditions], scale)
                pairs.append(comparisons.assign(corpus=name, perturbation=kind))
            cells.append(ranked.assign(corpus=name, perturbation=kind))
    write(out, "invariance_ranking", pd.concat(cells, ignore_index=True))
    if pairs:
        write(out, "invariance_comparisons", pd.concat(pairs, ignore_index=True))
