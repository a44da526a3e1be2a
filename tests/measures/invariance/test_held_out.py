"""Scores on held-out stimuli: an independent computation, closed forms, and intervals that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from assay.measures.invariance.held_out import FOLDS, SignedPairs, _folds, held_out_score, top_weights


def pairs(rng, units: int, blocks: int, size: int, local=None, rate=0.01) -> SignedPairs:
    unit = np.repeat(np.arange(units), size)
    block = rng.integers(blocks, size=len(unit))
    local = rng.integers(0, 12, len(unit)) / 11 if local is None else local[unit]
    return SignedPairs(unit, block, local, np.full(units, rate), np.ones(units))


def by_hand(signed: list[SignedPairs], p: float, blocks: int, seed: int) -> float:
    """The definition, unit by unit, with loops."""
    fold = _folds(blocks, seed)
    top = bottom = 0.0
    units = len(signed[0].rate)
    for k in sorted(set(fold)):
        best: list[tuple[float, int, int]] = []
        for i in range(units):
            options = []
            for s, one in enumerate(signed):
                values = [v for u, b, v in zip(one.unit, one.block, one.local, strict=True) if u == i and fold[b] != k]
                if values and one.preference[i] > 0:
                    options.append((one.preference[i], np.mean(values) / one.rate[i], -s))
            if options:
                _, score, s = max(options)
                best.append((score, i, -s))
        best.sort(reverse=True)
        count = int(np.ceil(p * len(best) - 1e-9))
        for _, i, s in best[:count]:
            one = signed[s]
            mine = [j for j, u in enumerate(one.unit) if u == i]
            for j in mine:
                if fold[one.block[j]] == k:
                    top += one.local[j] / one.rate[i] / len(mine)
                    bottom += 1 / len(mine)
    return top / bottom


@pytest.mark.parametrize("p", [0.2, 0.5, 1.0])
def test_it_is_the_definition(p):
    rng = np.random.default_rng(3)
    signed = [pairs(rng, 15, 6, 7, rate=rate) for rate in (0.01, 0.012)]
    signed = [  # no two scores alike, so that ties need no rule
        SignedPairs(s.unit, s.block, s.local + 1e-3 * rng.random(len(s.local)), s.rate, rng.integers(0, 3, 15))
        for s in signed
    ]
    assert held_out_score(signed, p, 6, seed=5).score == pytest.approx(by_hand(signed, p, 6, 5), rel=1e-12)


def test_without_a_choice_it_is_the_mean_of_all_scores():
    one = pairs(np.random.default_rng(0), 20, 8, 5)
    scores = np.bincount(one.unit, one.local) / 5 / 0.01
    assert held_out_score([one], 1.0, 8).score == pytest.approx(scores.mean(), rel=1e-12)


def test_units_that_are_all_alike_are_no_better_when_chosen():
    """The best of equal units are the best by luck; held out, they score what all do."""
    rng = np.random.default_rng(0)
    found = [held_out_score([pairs(rng, 100, 20, 10)], 0.2, 20).score for _ in range(40)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - 50) < 3 * error  # the mean of 0, 1/11 … 1 is one half
    chosen = [np.sort(np.bincount(one.unit, one.local))[-20:].mean() * 10 for one in [pairs(rng, 100, 20, 10)]]
    assert chosen[0] > 60  # on the stimuli that chose them


def test_exact_scores_have_no_spread():
    one = pairs(np.random.default_rng(0), 30, 9, 6, local=np.repeat([1.0, 0.4], 15))
    found = held_out_score([one], 0.5, 9, draws=50)
    assert found.score == pytest.approx(100) and np.ptp(found.draws) < 1e-9
    assert found.interval(100.0) == pytest.approx((100, 100))


def test_units_whose_z_is_one_block_cannot_be_chosen_without_it():
    unit = np.repeat(np.arange(4), 3)
    one = SignedPairs(unit, unit % 2, np.ones(12), np.full(4, 0.01), np.ones(4))
    found = held_out_score([one], 0.5, 2, draws=10)
    assert np.isnan(found.score) and np.isnan(found.interval(100.0)).all()


def test_blocks_are_dealt_evenly_and_resampled_alike_for_all_networks():
    fold = _folds(25, 0)
    assert sorted(np.bincount(fold)) == [2] * 5 + [3] * 5 and len(np.bincount(fold)) == FOLDS
    rng = np.random.default_rng(0)
    one = pairs(rng, 40, 12, 8)
    shifted = SignedPairs(one.unit, one.block, one.local + 0.1, one.rate, one.preference)
    a, b = (held_out_score([x], 1.0, 12, 100, seed=4, units_seed=(4, 7)).draws for x in (one, shifted))
    np.testing.assert_allclose(b - a, 10, rtol=1e-9)


def test_ties_at_the_end_share_their_place():
    weights = top_weights(np.array([5.0, 2.0, 2.0, 2.0, np.nan, 1.0]), 0.4)
    np.testing.assert_allclose(weights, [1, 1 / 3, 1 / 3, 1 / 3, 0, 0])
    assert not top_weights(np.full(3, np.nan), 0.5).any()


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.2, 1.0])
def test_intervals_hold_what_the_chosen_units_score_on_other_stimuli(p):
    """95 % intervals miss in at most 5 % of experiments; of 120, more than 12 misses have a probability of 1 %."""
    rng = np.random.default_rng(1)
    missed = 0
    for experiment in range(120):
        truth = rng.beta(2, 3, 60)
        unit = np.repeat(np.arange(60), 12)
        block = rng.integers(10, size=len(unit))
        shape = 3.0  # of how much a clip changes the rate of a unit
        clip = rng.beta(shape * truth[:, None], shape * (1 - truth[:, None]), (60, 10))
        local = rng.binomial(11, clip[unit, block]) / 11
        one = SignedPairs(unit, block, local, np.full(60, 0.01), np.ones(60))
        low, high = held_out_score([one], p, 10, 200, seed=experiment).interval(100.0)
        weights = top_weights(np.bincount(unit, local) / 12, p)
        missed += not low <= 100 * (weights @ truth) / weights.sum() <= high
    assert missed <= 12


def invariant_units(frames: int = 10):
    """Pairs of four units under two signs: unit 0 fires on the whole of one clip, the others here and there."""
    plus = SignedPairs(
        np.array([0] * frames + [1, 1, 1, 2, 2, 2, 3, 3, 3]),
        np.array([0] * frames + [1, 4, 7, 2, 5, 8, 3, 6, 9]),
        np.array([1.0] * frames + [0.125] * 9),
        np.full(4, 0.125),
        np.full(4, 2.0),
    )
    minus = SignedPairs(
        np.repeat(np.arange(4), 3), np.arange(12) % 10, np.full(12, 0.05), np.full(4, 0.125), np.full(4, 2.0)
    )
    return [plus, minus]


def test_at_p_one_a_unit_all_of_whose_z_is_in_one_clip_counts_with_the_sign_that_it_has():
    """Its score is 8, that of the others 1: the mean is 2.75; without it, 1 would be left."""
    found = held_out_score(invariant_units(), 1.0, 10)
    assert found.score == pytest.approx((8 + 1 + 1 + 1) / 4)


def test_below_p_one_there_is_no_score_where_the_best_units_cannot_be_held_out():
    assert np.isnan(held_out_score(invariant_units(), 0.25, 10).score)  # the best unit is the invariant one
    plus, _ = invariant_units()
    rest = plus.unit > 0
    without = SignedPairs(plus.unit[rest] - 1, plus.block[rest], plus.local[rest], plus.rate[1:], plus.preference[1:])
    assert held_out_score([without], 0.3, 10).score == pytest.approx(1)
