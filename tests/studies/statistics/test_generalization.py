from __future__ import annotations

import warnings
from math import log2

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import direct
from assay import AssayError
from assay.studies import (
    ConditionalMutualInformation,
    IncompleteGridWarning,
    compare_measures,
    conditional_mutual_information,
    information_by_condition,
    score_measures,
)
from assay.studies.statistics.grid import Grid
from assay.studies.statistics.pair_counts import FEW
from corpora import corpora, full_grid, named, relaxed

GRID = named(full_grid(3, 3, 2))
N = 18
GAP, MEASURE = np.random.default_rng(0).normal(size=(2, N))


def binary_entropy(p):
    return -p * log2(p) - (1 - p) * log2(1 - p)


# -- closed forms ---------------------------------------------------------------------------------------


def test_the_gap_itself_scores_1_and_so_does_any_increasing_function_of_it():
    assert conditional_mutual_information(GAP, GAP, GRID) == 1
    assert conditional_mutual_information(np.exp(GAP), GAP, GRID) == 1


def test_a_constant_and_each_hyperparameter_score_exactly_0():
    assert conditional_mutual_information(np.ones(N), GAP, GRID) == 0
    for column in GRID.values():
        assert conditional_mutual_information(column, GAP, GRID) == 0


def test_two_networks_in_the_wrong_order_as_worked_by_hand():
    """Pairs (i, i) twice false; of the others one is true for the gap only, one for the measure only."""
    columns = {"h": ["a", "b"]}
    h = binary_entropy(1 / 4)
    expected = (h + h - 3 / 2) / h  # joint entropy of ½, ¼, ¼
    found = conditional_mutual_information([2, 1], [0.1, 0.2], columns, sizes=(0,))
    assert found == pytest.approx(expected, rel=1e-14)  # rounding only
    assert conditional_mutual_information([2, 1], [0.1, 0.2], columns, sizes=(0,), self_pairs=False) == 1


def test_reversal_is_told_from_agreement_only_by_self_pairs():
    """Mutual information is blind to direction; self-pairs, always false, are not."""
    assert conditional_mutual_information(-GAP, GAP, GRID, self_pairs=False) == pytest.approx(1, rel=1e-14)
    assert 0.5 < conditional_mutual_information(-GAP, GAP, GRID) < 1
    near = GAP + 0.5 * MEASURE
    falls, rises = (conditional_mutual_information(m, GAP, GRID, self_pairs=False) for m in (-near, near))
    assert falls == pytest.approx(rises, rel=1e-13)  # rounding only
    assert conditional_mutual_information(-near, GAP, GRID) < conditional_mutual_information(near, GAP, GRID)


def test_cells_weigh_the_same_or_by_their_pairs():
    """Three networks of level a in order, two of level b tied in the measure; between levels the gap is settled."""
    gap, measure, columns = [1, 2, 3, 11, 12], [1, 2, 3, 5, 5], {"h": list("aaabb")}
    arguments = measure, gap, columns, (1,), False
    # H = 1 bit in both cells; all of it is told in a (6 pairs), none in b (2 pairs).
    assert conditional_mutual_information(*arguments) == pytest.approx(1 / 2, rel=1e-14)
    assert conditional_mutual_information(*arguments, cell_weight="count") == pytest.approx(6 / 8, rel=1e-14)


# -- the definition, pair by pair -----------------------------------------------------------------------


@relaxed
@given(corpora(), st.sampled_from([(2,), (0,), (1,), (0, 1, 2)]), st.booleans(), st.sampled_from(["uniform", "count"]))
def test_scores_equal_the_definition_taken_pair_by_pair(corpus, sizes, self_pairs, weight):
    measure, gap, columns = corpus
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteGridWarning)
        found = information_by_condition(measure, gap, named(columns), sizes, self_pairs, weight)
    whole = direct.complete(columns, sizes)
    expected = direct.information_by_condition(measure, gap, columns, sizes, self_pairs, weight if whole else "count")
    assert len(found) == len(expected)
    for value, reference in zip(found.values(), expected, strict=True):
        # Sums of a few hundred terms near 1, in another order: 1e-12 is far above their rounding.
        assert value == pytest.approx(np.nan if reference is None else reference, abs=1e-12, nan_ok=True)


@relaxed
@given(corpora(networks=(4, 9)), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["uniform", "count"]))
def test_a_resample_by_weights_equals_the_list_of_its_networks(corpus, seed, self_pairs, weight):
    """Two copies of one network are a pair of it with itself: without self-pairs the list leaves them out by name."""
    measure, gap, columns = corpus
    n = len(gap)
    chosen = np.random.default_rng(seed).integers(n, size=n)
    grid = Grid.of(named(columns), n)
    statistic = ConditionalMutualInformation((1, 2), self_pairs, weight)
    arguments = np.array([measure]), np.array(gap), grid, np.bincount(chosen, minlength=n)[None].astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteGridWarning)
        found = statistic.by_condition(*arguments)[0, :, 0]
        lowest = statistic.resampled(*arguments)[0, 0]
    expected = direct.information_by_condition(
        [measure[i] for i in chosen],
        [gap[i] for i in chosen],
        [[column[i] for i in chosen] for column in columns],
        (1, 2),
        self_pairs,
        weight if direct.complete(columns, (1, 2)) else "count",
        networks=chosen,
    )
    numbers = [np.nan if e is None else e for e in expected]
    np.testing.assert_allclose(found, numbers, atol=1e-12)
    defined = [e for e in expected if e is not None]
    assert lowest == pytest.approx(min(defined) if defined else np.nan, abs=1e-12, nan_ok=True)


def test_copies_of_one_network_are_no_pair_as_worked_by_hand():
    """The networks have gaps 1, 2 and 3; the measure exchanges the last two."""
    measures, gap, grid = np.array([[1, 3, 2], [-1, -3, -2]]), np.array([1, 2, 3]), Grid.of({}, 3)
    weights = np.array([[2, 1, 0], [2, 1, 1], [3, 0, 0]])
    found = ConditionalMutualInformation(sizes=(0,), self_pairs=False).resampled(measures, gap, grid, weights)
    # Weights 2, 1, 0 leave one pair of networks, each order twice: all of its 1 bit is told. Weights 2, 1, 1 leave
    # 4² − (2² + 1² + 1²) = 10 ordered pairs, half of them wider, of which the measure has 1 of 5 the other way. Copies
    # of one network alone leave no pair.
    expected = [1, 1 - binary_entropy(1 / 5), np.nan]
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-14)  # rounding only


@relaxed
@given(
    st.lists(st.integers(2, 3), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(0, 1),
    st.sampled_from(["uniform", "count"]),
    st.integers(0, 2**32 - 1),
)
def test_a_measure_and_its_negative_score_the_same_in_every_resample(levels, seeds, lost, weight, seed):
    """Of distinct values, in grids with one to three networks in a cell, whole or without the first; gaps may tie."""
    columns = [(column * seeds)[lost:] for column in full_grid(*levels, 2)]
    n = len(columns[0])
    rng = np.random.default_rng(seed)
    gap = rng.integers(0, n, size=n)
    measures = np.stack([rng.permutation(n), gap + 0.3 * rng.normal(size=n)])
    draws = rng.multinomial(n, np.full(n, 1 / n), size=20)
    statistic = ConditionalMutualInformation(tuple(range(len(columns) + 1)), self_pairs=False, cell_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteGridWarning)
        rises, falls = (
            statistic.by_condition(m, gap, Grid.of(named(columns), n), draws) for m in (measures, -measures)
        )
    assert np.array_equal(rises, falls, equal_nan=True)  # counts are exact, and their terms are added in pairs


def test_a_measure_and_its_negative_have_one_interval_and_no_difference():
    both = {"rises": GAP + MEASURE, "falls": -GAP - MEASURE}
    rises, falls = score_measures(both, GAP, GRID, draws=100).drop(columns="measure").to_dict("records")
    assert rises == falls and rises["status"] == "ok"
    (compared,) = compare_measures(both, GAP, GRID, draws=100).to_dict("records")
    assert compared["difference"] == compared["se"] == 0 and compared["status"] == "no interval"


def test_many_resamples_in_parts_equal_one_at_a_time(monkeypatch):
    grid = Grid.of(GRID, N)
    weights = np.random.default_rng(1).multinomial(N, np.full(N, 1 / N), size=7).astype(float)
    measures = np.stack([MEASURE, GAP + MEASURE, np.zeros(N)])
    statistic = ConditionalMutualInformation()
    alone = np.concatenate([statistic.resampled(measures, GAP, grid, w[None]) for w in weights], axis=1)
    monkeypatch.setattr("assay.studies.statistics.pair_counts.CHUNK", 3 * N * N)
    # Sums over cells in another order: rounding.
    np.testing.assert_allclose(statistic.resampled(measures, GAP, grid, weights), alone, rtol=1e-13)


@pytest.mark.parametrize("networks", [40, 600])  # counts of a cell fit into bytes, and do not
def test_many_measures_are_scored_as_each_alone(networks):
    rng = np.random.default_rng(networks)
    measures, gap = rng.integers(0, 30, size=(FEW + 1, networks)), rng.normal(size=networks).round(1)
    grid = Grid.of({"h": rng.integers(0, 2, networks), "k": rng.integers(0, 2, networks)}, networks)
    statistic, once = ConditionalMutualInformation((0, 1, 2)), np.ones((1, networks))
    together = statistic.by_condition(measures, gap, grid, once)
    alone = [statistic.by_condition(measure[None], gap, grid, once)[0] for measure in measures]
    repeated = statistic.by_condition(measures, gap, grid, np.ones((2, networks)))
    assert np.array_equal(together, alone)
    np.testing.assert_allclose(repeated, np.repeat(together, 2, axis=2), rtol=1e-13)  # cells in another order


# -- what must not matter -------------------------------------------------------------------------------


def test_order_of_networks_and_names_of_levels_do_not_matter():
    value = conditional_mutual_information(MEASURE, GAP, GRID)
    shuffled = np.random.default_rng(1).permutation(N)
    other = {name: [f"level {v}" for v in np.array(column)[shuffled]] for name, column in GRID.items()}
    assert conditional_mutual_information(MEASURE[shuffled], GAP[shuffled], other) == pytest.approx(value, rel=1e-13)


def test_levels_whose_digits_run_together_are_kept_apart():
    """(1, 11) and (11, 1) read alike when written one after another; so do 1 and "1", True and 1."""
    value = conditional_mutual_information(MEASURE, GAP, GRID)
    for levels in ([1, 11, 111], [1, "1", 1.5], [True, 1, "True"], [None, 0, False]):
        columns = GRID | {"h0": [levels[v] for v in GRID["h0"]]}
        assert conditional_mutual_information(MEASURE, GAP, columns) == pytest.approx(value, rel=1e-13)


def test_tables_arrays_and_tensors_are_all_taken():
    torch = pytest.importorskip("torch")
    value = conditional_mutual_information(MEASURE, GAP, GRID)
    table = pd.DataFrame(GRID)
    assert conditional_mutual_information(pd.Series(MEASURE), pd.Series(GAP), table) == value
    tensors = {name: torch.tensor(column) for name, column in GRID.items()}
    assert conditional_mutual_information(torch.tensor(MEASURE), list(GAP), tensors) == value


def test_the_lowest_set_decides():
    by_set = information_by_condition(MEASURE, GAP, GRID)
    assert list(by_set) == [("h0", "h1"), ("h0", "h2"), ("h1", "h2")]
    assert conditional_mutual_information(MEASURE, GAP, GRID) == min(by_set.values())


# -- what cannot be scored ------------------------------------------------------------------------------


def test_incomplete_grids_are_weighted_by_count_with_a_warning():
    columns = {name: column[:-2] for name, column in GRID.items()}  # no network with h0 = 2 and h1 = 2
    arguments = MEASURE[:-2], GAP[:-2], columns
    with pytest.warns(IncompleteGridWarning, match=r"1 of 9 combinations of 'h0' and 'h1' have no network"):
        found = conditional_mutual_information(*arguments)
    assert found == conditional_mutual_information(*arguments, cell_weight="count")  # asked for: no warning
    assert found != conditional_mutual_information(*arguments, sizes=(1,))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"measure": np.where(np.arange(N) == 4, np.nan, MEASURE)}, r"measure is NaN or infinite for network 4 "),
        ({"gap": np.where(np.arange(N) > 15, np.inf, GAP)}, "gap is NaN or infinite for network 16, 17 "),
        ({"gap": GAP[:-1]}, "received numbers of values: measure 18, gap 17"),
        ({"measure": MEASURE[:1], "gap": GAP[:1]}, "1 networks: comparing needs two or more"),
        ({"measure": MEASURE[:, None]}, r"has shape \(18, 1\)"),
        ({"measure": ["high"] * N}, "must be numbers"),
        ({"gap": np.ones(N)}, "given 'h0' and 'h1', the order of no two gaps is open"),
        ({"hyperparameters": named(full_grid(3, 6))}, "given 'h0' and 'h1', the order of no two gaps is open"),
        ({"hyperparameters": {"h0": GRID["h0"]}}, r"sizes=\(2,\) asks for 2 hyper-parameters at once and there are 1"),
        ({"hyperparameters": GRID | {"h9": [5] * N}}, "'h9' is 5 in all 18 networks: leave it out"),
        ({"hyperparameters": GRID | {"h9": [1, 2]}}, "'h9' has 2 values for 18 networks"),
        ({"hyperparameters": GRID | {"h9": [float("nan")] + [1.0] * 17}}, "'h9' is missing for network 0 "),
        ({"hyperparameters": GRID | {"h9": [[1]] * N}}, "cannot be compared"),
        ({"sizes": (3, 4)}, "asks for 4"),
        ({"sizes": ()}, "whole numbers from 0"),
        ({"sizes": 2}, "whole numbers from 0"),
        ({"cell_weight": "counts"}, "did you mean 'count'"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(change, says):
    arguments = {"measure": MEASURE, "gap": GAP, "hyperparameters": GRID} | change
    with pytest.raises(AssayError, match=says):
        conditional_mutual_information(**arguments)


def test_networks_in_another_order_are_refused():
    gap = pd.Series(GAP, index=[f"model_{i}" for i in range(N)])
    measure = pd.Series(MEASURE, index=gap.index[::-1])
    table = pd.DataFrame(GRID, index=gap.index)
    with pytest.raises(AssayError, match="do not have the same index"):
        conditional_mutual_information(measure, gap, table)
    with pytest.raises(AssayError, match="do not have the same index"):
        conditional_mutual_information(MEASURE, gap, table[::-1])
    with pytest.raises(AssayError, match="two of one name"):
        conditional_mutual_information(MEASURE, gap, pd.concat([table, table], axis=1))
    assert 0 < conditional_mutual_information(measure[::-1], gap, table) < 1
