from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import direct
from assay import AssayError
from assay.studies import SignError, sign_error
from assay.studies.statistics.grid import Grid
from corpora import corpora, full_grid, named, relaxed

settings = st.tuples(st.sampled_from(["levels", "settings"]), st.sampled_from([None, 5]), st.sampled_from([1.0, 1.5]))


def test_right_order_is_0_wrong_order_1_and_a_tie_a_half():
    grid = {"depth": [1, 2]}
    assert sign_error([1, 2], [0.1, 0.2], grid).worst == 0
    assert sign_error([2, 1], [0.1, 0.2], grid).worst == 1
    assert sign_error([1, 1], [0.1, 0.2], grid).worst == 0.5


def test_the_worst_environment_is_the_change_of_level_that_fails():
    """The measure is right but for depth 1 → 2, wrong at one of two widths."""
    depth, width = full_grid(3, 2)
    gap = 10 * np.array(width) + np.array(depth)
    measure = gap + 1.5 * ((np.array(depth) == 1) & (np.array(width) == 0))
    found = sign_error(measure, gap, {"depth": depth, "width": width})
    assert found.worst == 0.5 and found.mean == pytest.approx(0.5 / 4)
    table = found.environments
    assert table[["hyperparameter", "a", "b"]].to_numpy().tolist() == [
        ["depth", 0, 1], ["depth", 0, 2], ["depth", 1, 2], ["width", 0, 1],
    ]  # fmt: skip
    assert table["error"].tolist() == [0, 0, 0.5, 0] and table["pairs"].tolist() == [2, 2, 2, 3]


def test_settings_are_environments_of_their_own():
    depth, width = full_grid(3, 2)
    gap = 10 * np.array(width) + np.array(depth)
    measure = gap + 1.5 * ((np.array(depth) == 1) & (np.array(width) == 0))
    found = sign_error(measure, gap, {"depth": depth, "width": width}, environment="settings")
    assert found.worst == 1 and found.mean == pytest.approx(1 / 9) and len(found.environments) == 9
    bad = found.environments[found.environments["error"] == 1]
    assert bad[["hyperparameter", "a", "b", "others"]].to_numpy().tolist() == [["depth", 1, 2, "width=0"]]


def test_pairs_whose_gaps_may_differ_by_chance_count_less_or_not():
    """n = 10,000: gaps 0.05 apart are sure (ω ≈ ½), 0.01 apart are not (ω = 0)."""
    grid = {"h": [0, 1, 2]}
    found = sign_error([3, 2, 1], [0.10, 0.11, 0.15], grid, test_size=10_000).environments
    assert found[["a", "b"]].to_numpy().tolist() == [[0, 2], [1, 2]]  # 0 → 1 has no weight left
    sure = sign_error([3, 2, 1, 1], [0.1, 0.15, 0.1, 0.12], {"h": [0, 1, 0, 1]}, test_size=10_000).environments
    omega = [max(0, (1 - 2 * np.exp(-5000 * d**2)) ** 2 - 0.5) for d in (0.05, 0.02, 0.05, 0.02)]
    errors = [1, 1, 0, 0.5]
    assert sure["error"].item() == pytest.approx(np.average(errors, weights=omega), rel=1e-12)  # rounding
    assert sure["effective_pairs"].item() == pytest.approx(sum(omega) ** 2 / sum(w * w for w in omega), rel=1e-12)


@relaxed
@given(corpora(), settings)
def test_errors_equal_the_definition_taken_pair_by_pair(corpus, setting):
    measure, gap, columns = corpus
    expected = direct.sign_errors(measure, gap, columns, *setting)
    if expected:
        found = sign_error(measure, gap, named(columns), *setting)
        # Ratios of sums of at most 66 weights: rounding.
        assert sorted(found.environments["error"]) == pytest.approx(sorted(expected), abs=1e-12)
        assert found.worst == pytest.approx(max(expected)) and found.mean == pytest.approx(np.mean(expected))
    else:
        with pytest.raises(AssayError, match=r"there is no environment|no environment has min_pairs"):
            sign_error(measure, gap, named(columns), *setting)


@relaxed
@given(corpora(), settings, st.sampled_from(["worst", "mean"]), st.integers(0, 2**32 - 1))
def test_a_resample_by_weights_equals_the_list_of_its_networks(corpus, setting, over, seed):
    measure, gap, columns = corpus
    n = len(gap)
    chosen = np.random.default_rng(seed).integers(n, size=n)
    weights = np.bincount(chosen, minlength=n)[None].astype(float)
    grid = Grid.of(named(columns), n)
    statistic = SignError(over, *setting)
    if not len(direct.sign_errors(measure, gap, columns, setting[0])):
        return
    found = statistic.resampled(np.array([measure]), np.array(gap), grid, weights)[0, 0]
    listed = [[column[i] for i in chosen] for column in (measure, gap, *columns)]
    errors = direct.sign_errors(listed[0], listed[1], listed[2:], *setting)
    expected = np.nan if not errors else max(errors) if over == "worst" else np.mean(errors)
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"environment": "setting"}, "environment='setting' is unknown; did you mean 'settings'"),
        ({"test_size": 0}, "test_size=0 is not a number of samples"),
        ({"min_pairs": 0}, "min_pairs=0 must be above 0"),
        ({"min_pairs": 3}, "no environment has min_pairs=3 effective pairs, the most is 2"),
        ({"hyperparameters": {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}}, "no two networks differ in one alone"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(change, says):
    arguments = {"measure": [1, 2, 3, 4], "gap": [1, 2, 3, 4], "hyperparameters": named(full_grid(2, 2))} | change
    with pytest.raises(AssayError, match=says):
        sign_error(**arguments)
