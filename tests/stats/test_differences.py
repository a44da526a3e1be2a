"""Differences between networks: closed forms, pairs, and intervals that hold what they promise."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy import stats

from assay.measures.evidence import Measured
from assay.stats.bootstrap import bootstrap_draws
from assay.stats.differences import difference, interval
from assay.stats.evidence import Evidence
from assay.stats.seeds import SeedSpread, difference_of_recipes


def test_means_of_clips_are_compared_clip_by_clip():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 9))
    names = [f"clip {i}" for i in range(9)]
    of_a = Evidence("curvature", a.mean(), items=dict(zip(names, a, strict=True)))
    of_b = Evidence("curvature", b.mean(), items=dict(zip(names[::-1], b[::-1], strict=True)))
    apart = difference(of_a, of_b)
    reference = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert apart.paired and apart.df == 8 and apart.n == 9
    np.testing.assert_allclose(apart.interval(), reference, rtol=1e-12)  # the same formula in another order of sums
    low, high = stats.ttest_1samp(a, 0).confidence_interval(0.95)
    np.testing.assert_allclose(interval(of_a), (low, high), rtol=1e-12)


def test_common_resamples_leave_only_what_differs():
    """Two accuracies that differ on 8 of 400 inputs: the paired error is √(8 · (1 − …))/400, far below the unpaired."""
    rng = np.random.default_rng(1)
    right = rng.random(400) < 0.7
    other = right.copy()
    other[:8] = ~other[:8]
    numbers = [
        Evidence("accuracy", v.mean(), draws=bootstrap_draws(v.astype(float), np.mean, 2000, 3), n=400)
        for v in (right, other)
    ]
    apart = difference(*numbers)
    exact = (right.astype(float) - other).std() / 20  # σ/√n of the differences
    assert apart.paired and apart.df == inf
    np.testing.assert_allclose(apart.error, exact, rtol=0.06)  # a standard deviation of 2,000 draws is known to 1.6 %
    unpaired = difference(numbers[0], Evidence("accuracy", other.mean(), draws=numbers[1].draws, n=399))
    assert not unpaired.paired and unpaired.error > 3 * apart.error


def test_nothing_is_said_where_nothing_tells_how_sure_it_is():
    exact = Evidence("norm", 1.0)
    assert difference(exact, Evidence("norm", 2.0)) is None and interval(exact) is None
    assert difference(Evidence("x", np.nan, items={"a": 1.0, "b": 2.0}), exact) is None
    one = Evidence("x", 1.0, items={"a": 1.0})
    assert difference(one, one) is None and interval(one) is None
    assert difference(one, Evidence("x", 1.0, items={"b": 1.0, "c": 2.0})) is None, "no clip in common"


@pytest.mark.parametrize("kind", ["items", "draws"])
def test_intervals_of_differences_hold_what_they_promise(kind):
    """95 % intervals of a true difference of 0.3, over 400 samples of 12 clips or 100 inputs shown to both."""
    rng = np.random.default_rng(5)
    held = 0
    trials, n = 400, 12 if kind == "items" else 100
    for trial in range(trials):
        shared = rng.normal(size=n)
        values = [shared + rng.normal(size=n) + shift for shift in (0.3, 0.0)]
        if kind == "items":
            numbers = [Evidence("x", v.mean(), items={str(i): x for i, x in enumerate(v)}) for v in values]
        else:
            numbers = [Evidence("x", v.mean(), draws=bootstrap_draws(v, np.mean, 200, trial), n=n) for v in values]
        low, high = difference(*numbers).interval()
        held += low <= 0.3 <= high
    # 0.95 ± 2.6 standard errors of a share of 400 (p = 0.01); the bootstrap of 100 inputs is 1 % too narrow by itself.
    assert 0.915 <= held / trials <= 0.98


def test_draws_leave_the_table_as_it_was():
    measured = Measured.of([{"quantity": "a", "value": 1.0, "draws": [1, 2]}, {"quantity": "b", "value": 2.0}])
    assert list(measured.table.columns) == ["quantity", "value"]
    assert {number: drawn.tolist() for number, drawn in measured.draws.items()} == {0: [1.0, 2.0]}


def test_two_proportions_differ_by_no_more_than_one():
    rng = np.random.default_rng(0)
    a, b = (Evidence("accuracy", v, draws=v + 0.2 * rng.normal(size=200), n=9, proportion=True) for v in (0.95, 0.05))
    low, high = difference(a, b).interval()
    assert low < 0.9 and high == 1


@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
def test_seeds_make_no_interval_narrower(level):
    """Two clips leave one degree of freedom, to which many seeds add: Welch's approximation would gain from it."""
    a, b = (Evidence("curvature", v, items={"x": v, "y": v + d}) for v, d in ((2.0, 1.0), (1.0, 0.2)))
    alone = difference(a, b)
    both = difference_of_recipes(a, b, (SeedSpread(0.05, 40.0), SeedSpread(0.05, 40.0)))
    assert alone is not None and both is not None and both.error > alone.error and both.df > alone.df
    (low, high), (least, most) = both.interval(level), alone.interval(level)
    assert low <= least and high >= most
