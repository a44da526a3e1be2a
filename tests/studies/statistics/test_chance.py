"""The best of many measures against the best by chance: level, exactness, and what is permuted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from assay import AssayError
from assay.studies import ConditionalMutualInformation, KendallTau, against_chance, compare_measures
from assay.studies.statistics import pair_counts
from assay.studies.statistics.chance import order_within
from assay.studies.statistics.grid import Grid

LEVELS = (2, 2, 3, 2)
CODES = np.array(list(product(*map(range, LEVELS))))
GRID = {f"h{k}": CODES[:, k] for k in range(len(LEVELS))}
ALL = Grid.of(GRID, len(CODES))
ONCE = np.ones((1, len(CODES)))


def corpus(seed: int, measures: int, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gap = CODES @ rng.normal(size=len(LEVELS)) + rng.normal(size=len(CODES))
    values = rng.normal(size=(measures, len(CODES)))
    return (values.round(0), gap.round(0)) if ties else (values, gap)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "statistic",
    [
        ConditionalMutualInformation(self_pairs=False),
        ConditionalMutualInformation(),
        ConditionalMutualInformation(sizes=(0, 1), cell_weight="count"),
        KendallTau(),
    ],
    ids=str,
)
def test_the_best_in_each_order_is_that_of_scoring_every_measure(statistic, ties):
    values, gap = corpus(0, 7, ties)
    rng = np.random.default_rng(1)
    orders = np.stack([rng.permutation(len(gap)) for _ in range(11)])
    each = np.stack([statistic.resampled(v[orders], gap, ALL, ONCE)[:, 0] for v in values])
    for block in range(len(statistic.blocks(ALL))):
        best = statistic.best_of_reordered(values, gap, ALL, orders, block)
        assert best == pytest.approx(statistic.strength(each).max(axis=0), abs=1e-12)


def test_the_best_is_the_same_whether_logarithms_are_looked_up_or_computed(monkeypatch):
    """Cells of many networks have too many pairs for a table: 10,000 in one would take 800 MB."""
    values, gap = corpus(4, 20)
    measures = dict(enumerate(values))
    looked_up = against_chance(measures, gap, GRID, permutations=19).maxima
    monkeypatch.setattr(pair_counts, "TABULATED", 3)
    np.testing.assert_array_equal(against_chance(measures, gap, GRID, permutations=19).maxima, looked_up)


def test_scores_of_the_whole_corpus_are_those_of_a_resample_with_each_network_once():
    values, gap = corpus(2, 5, ties=True)
    statistic = ConditionalMutualInformation()
    once, resamples = (statistic.by_condition(values, gap, ALL, np.ones((k, len(gap)))) for k in (1, 2))
    assert once[:, :, 0] == pytest.approx(resamples[:, :, 1], abs=1e-14)


def test_p_is_counted_by_hand_for_one_measure_without_conditions():
    """With no condition, p is the share of permutations whose |τ| is as large, the order at hand counted as one."""
    values, gap = corpus(3, 1)
    found = against_chance({"m": values[0]}, gap, statistic="kendall_tau", permutations=99, seed=5)
    tau = abs(found.table["value"].item())
    assert found.table["p_max"].item() == (1 + sum(m >= tau - 1e-12 for m in found.maxima)) / 100
    assert (found.measures, found.networks) == (1, len(gap))


def test_the_more_measures_are_asked_the_more_chance_gives():
    values, gap = corpus(4, 40)
    values[0] += 0.3 * gap
    few, many = (
        against_chance({str(i): v for i, v in enumerate(values[:n])}, gap, statistic="kendall_tau", permutations=99)
        for n in (1, 40)
    )
    assert few.chance() < many.chance()
    assert few.table["p_max"].iloc[0] < many.table["p_max"].iloc[0]


def test_copies_of_a_measure_count_as_one():
    """All measures of a network are permuted together, so that their dependence is kept."""
    values, gap = corpus(5, 1)
    once = against_chance({"m": values[0]}, gap, GRID, permutations=99)
    copies = {f"copy {i}": values[0] * (i + 1) for i in range(30)}
    assert against_chance(copies, gap, GRID, permutations=99).maxima == pytest.approx(once.maxima)


def test_a_measure_that_repeats_two_hyperparameters_is_not_better_than_chance():
    """It follows the gap closely, and is exchangeable given the two."""
    rng = np.random.default_rng(6)
    repeated = 10 * CODES[:, 2] + 3 * CODES[:, 0] + 0.1 * rng.normal(size=len(CODES))
    gap = 10 * CODES[:, 2] + 3 * CODES[:, 0] + rng.normal(size=len(CODES))
    found = against_chance({"repeated": repeated}, gap, GRID, permutations=99).table
    alone = against_chance({"repeated": repeated}, gap, statistic="kendall_tau", permutations=99).table
    assert found["p_max"].item() > 0.2 and alone["p_max"].item() == 0.01


def test_networks_are_exchanged_with_those_of_their_setting_only():
    """Given three hyper-parameters two networks can be exchanged: a measure that follows the three keeps its order."""
    rng = np.random.default_rng(7)
    block = ALL.settings((0, 1, 2))
    for _ in range(5):
        order = order_within(block, rng)
        assert sorted(order) == list(range(len(block))) and (block[order] == block).all()


def test_seeds_of_a_cell_move_together_and_with_cells_of_as_many_networks():
    cells = np.repeat(np.arange(8), [3, 3, 2, 3, 2, 3, 1, 1])[np.random.default_rng(1).permutation(18)]
    block = np.array([0, 0, 0, 0, 0, 1, 1, 1])[cells]
    rng, size, moved = np.random.default_rng(8), np.bincount(cells), set()
    for _ in range(200):
        order = order_within(block, rng, cells)
        assert sorted(order) == list(range(18)) and (block[order] == block).all()
        for cell in range(8):
            (source,) = set(cells[order[cells == cell]])  # all of them come from one cell
            assert size[source] == size[cell]
            moved.add((cell, int(source)))
    alone, small, large = {(5, 5)}, {2, 4}, {0, 1, 3}
    swapped = {(a, b) for those in (small, large, {6, 7}) for a in those for b in those}
    assert moved == alone | swapped


def test_measures_that_follow_cells_are_not_good_because_cells_have_three_seeds():
    """Measures and gap follow each cell in their own way. Were the seeds exchanged one by one, 10 of 25 were good."""
    good = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        cells = np.repeat(np.arange(16), 3)
        grid = {f"h{k}": (cells >> k) & 1 for k in range(4)}
        gap, *noise = rng.normal(size=(11, 16))[:, cells] + 0.3 * rng.normal(size=(11, 48))
        measures = {f"noise {i}": row for i, row in enumerate(noise)}
        good += (against_chance(measures, gap, grid, permutations=39, seed=seed).table["p_max"] <= 0.05).any()
    assert good <= 2  # of 12 where 5 % are expected: more with a probability of 0.02


@pytest.mark.parametrize(
    ("change", "said"),
    [({"permutations": 5}, "permutations=5 is fewer than 19"), ({"measures": {}}, "measures is empty")],
)
def test_what_cannot_be_tested(change, said):
    _, gap = corpus(8, 1)
    with pytest.raises(AssayError, match=said):
        against_chance(**({"measures": {"gap": gap}, "gap": gap, "hyperparameters": GRID} | change))


def test_comparisons_hold_for_all_pairs_at_once():
    """Of measures that are equally good, the best and the worst differ by chance alone: p_max says so, p does not."""
    rng = np.random.default_rng(9)
    alarms = {"p": 0, "p_max": 0}
    for repetition in range(20):
        gap = rng.normal(size=60)
        measures = {str(i): gap + 0.8 * rng.normal(size=60) for i in range(12)}
        table = compare_measures(measures, gap, statistic="kendall_tau", draws=200, seed=repetition)
        assert (table["p_max"] >= table["p"]).all()
        for column in alarms:
            alarms[column] += int((table[column] <= 0.05).any())
    assert alarms["p"] >= 10 and alarms["p_max"] <= 4
