from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assay import AssayError
from assay.measures.invariance.firing import SignedScores, firing_thresholds, invariance_scores, top_proportion_mean


def orbits(n: int, size: int) -> np.ndarray:
    """Stimuli in groups of ``size`` that are each other's transforms."""
    return (np.arange(n) // size * size)[:, None] + np.arange(size)


def obvious(responses, trajectories, firing_rate, near_max, signs, among=None):
    """The definition, one unit and one stimulus at a time."""
    n = len(responses)
    k = int(np.ceil(firing_rate * n - 1e-9))
    rows = []
    for h in responses.T:
        best, best_meets = (np.nan, np.nan, np.nan, 0, np.nan), -1
        for sign in (1, -1) if signs == "choose" else (1,):
            v = sign * h
            candidates = [t for t in sorted(set(v)) if (v > t).sum() >= k]
            if not candidates:
                continue
            t = max(candidates)
            fires = v > t
            driven = [i for i in (range(n) if among is None else among) if fires[i]]
            if fires.sum() > n / 2 or not driven:
                continue
            g = fires.mean()
            count = near_max if isinstance(near_max, int) else int(np.ceil(near_max * len(driven) - 1e-9))
            cutoff = sorted((v[i] for i in driven), reverse=True)[min(max(count, 1), len(driven)) - 1]
            z = [i for i in driven if v[i] >= cutoff]
            local = np.mean([np.mean([fires[j] for j in trajectories[i]]) for i in z])
            meets = fires.sum() <= 1.25 * k
            if meets > best_meets or (meets == best_meets and local / g > best[0] * (1 + 1e-12)):
                best, best_meets = (local / g, g, local, sign, t), meets
        rows.append(best)
    return pd.DataFrame(rows, columns=["score", "global_rate", "local_rate", "sign", "threshold"])


# -- closed forms ---------------------------------------------------------------------------------------


def test_exactly_invariant_unit_scores_one_over_g():
    energy = np.repeat(np.random.default_rng(0).normal(size=500), 20)[:, None]
    (unit,) = invariance_scores(energy, orbits(10_000, 20)).itertuples()
    assert unit.score == pytest.approx(100, abs=1e-12)
    assert (unit.global_rate, unit.local_rate, unit.status) == (0.01, 1.0, "ok")


@pytest.mark.slow
def test_cyclic_shifts_of_noise_score_a_sixteenth_over_g():
    """E[L] = 1/16 + 15/16·G, so S ≈ 7.2 at G = 0.01, whatever Z inside the firing set."""
    x = np.random.default_rng(0).normal(size=(5_000, 16))
    responses = np.stack([np.roll(x, -s, axis=1)[:, 0] for s in range(16)], 1).reshape(-1, 1)
    expected = (1 / 16 + 15 / 16 * 0.01) / 0.01
    same = orbits(len(responses), 16)
    for near_max in (1.0, 0.5, 200):
        (unit,) = invariance_scores(responses, same, near_max=near_max).itertuples()
        # L is a mean of |Z| shares with 15 chances of 1 % each: SD of S below 0.25 for |Z| = 200.
        assert unit.score == pytest.approx(expected, abs=0.75)


def test_always_on_dead_and_sparse_units_have_a_status_and_no_score():
    n = 1000
    responses = np.zeros((n, 4))
    responses[:, 1] = 5.0  # always on
    responses[:3, 2] = [1, 2, 3]  # a rectified unit above zero on 0.3 % of the stimuli
    responses[7, 3] = np.nan
    table = invariance_scores(responses, orbits(n, 10), signs="positive")
    assert table.status.tolist() == ["constant", "constant", "sparse", "not finite"]
    assert table.score.isna().all()


def test_a_unit_at_its_largest_response_most_of_the_time_is_always_on():
    saturated = np.minimum(np.random.default_rng(0).normal(size=(1000, 1)), -1.0)
    assert invariance_scores(saturated, orbits(1000, 10), signs="positive").status.tolist() == ["always on"]
    (unit,) = invariance_scores(saturated, orbits(1000, 10)).itertuples()
    assert (unit.status, unit.sign) == ("ok", -1)


def test_a_unit_that_fires_on_none_of_the_stimuli_asked_about_is_silent():
    responses = np.arange(1000.0)[:, None]
    table = invariance_scores(responses, orbits(1000, 10), signs="positive", among=np.arange(500))
    assert table.status.tolist() == ["silent"] and table.score.isna().all()


def test_padding_is_no_part_of_a_trajectory():
    responses = np.random.default_rng(0).normal(size=(1000, 3))
    rows = [np.arange(max(i - 2, 0), min(i + 3, 1000)) for i in range(1000)]
    padded = np.full((1000, 5), -1)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    pd.testing.assert_frame_equal(invariance_scores(responses, padded), invariance_scores(responses, rows))


def test_repeated_values_fire_together_and_are_marked():
    values = np.concatenate([np.ones(30), np.linspace(0, 0.9, 970)])[:, None]
    (unit,) = invariance_scores(values, orbits(1000, 10), signs="positive").itertuples()
    assert unit.status == "tied" and unit.global_rate == 0.03 and unit.threshold == 0.9
    assert unit.score == pytest.approx(1 / 0.03)


def test_complex_cells_are_phase_invariant_and_simple_cells_are_not():
    size, phases = 24, 40
    axis = np.arange(size) - size / 2
    y, x = np.meshgrid(axis, axis, indexing="ij")
    envelope = np.exp(-(x**2 + y**2) / (2 * 4.0**2))
    even, odd = (envelope * f(2 * np.pi * x / 6) for f in (np.cos, np.sin))
    stimuli = []
    for frequency in np.linspace(0.02, 0.3, 15):
        for angle in np.linspace(0, np.pi, 12, endpoint=False):
            along = 2 * np.pi * frequency * (x * np.cos(angle) + y * np.sin(angle))
            stimuli += [np.sin(along - phase) for phase in np.arange(phases) * 2 * np.pi / phases]
    shown = np.array(stimuli).reshape(len(stimuli), -1)
    simple = shown @ even.ravel()
    energy = simple**2 + (shown @ odd.ravel()) ** 2
    table = invariance_scores(np.stack([simple, energy], 1), orbits(len(shown), phases), near_max=1, signs="positive")
    assert table.score[1] > 90 and table.score[0] < 60


# -- properties -----------------------------------------------------------------------------------------

small = st.integers(0, 2**32 - 1)


@st.composite
def cases(draw):
    size = draw(st.sampled_from([2, 3, 5]))
    n = size * draw(st.integers(5, 12))
    units = draw(st.integers(1, 4))
    elements = draw(st.sampled_from([st.floats(-5, 5, width=16), st.integers(-3, 3).map(float)]))
    responses = draw(hnp.arrays(np.float64, (n, units), elements=elements))
    rate = draw(st.sampled_from([0.1, 0.25, 0.4]))
    near = draw(st.sampled_from([1, 2, 0.5, 1.0]))
    among = draw(st.none() | st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    return responses, orbits(n, size), rate, near, draw(st.sampled_from(["choose", "positive"])), among


@pytest.mark.slow
@given(cases())
def test_scores_equal_the_obvious_computation(case):
    ours = invariance_scores(*case)
    theirs = obvious(*case)
    numbers = ["score", "global_rate", "local_rate", "threshold"]
    np.testing.assert_allclose(ours[numbers].to_numpy(float), theirs[numbers].to_numpy(float), atol=1e-12)
    assert (ours.sign == theirs.sign).all()
    assert (ours.score.isna() == ~ours.status.isin(["ok", "tied"])).all()


@pytest.mark.slow
@given(cases(), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_stimuli(case, chance):
    responses, trajectories, *settings, among = case
    order = list(range(len(responses)))
    chance.shuffle(order)
    place = np.argsort(order)
    where = None if among is None else place[among]
    moved = invariance_scores(responses[order], place[trajectories[order]], *settings, where)
    pd.testing.assert_frame_equal(moved, invariance_scores(*case))


@pytest.mark.slow
@given(cases())
def test_scores_do_not_change_under_increasing_functions(case):
    responses, *rest = case
    plain, bent = invariance_scores(responses, *rest), invariance_scores(np.arctan(responses) * 3 + 7, *rest)
    pd.testing.assert_frame_equal(plain.drop(columns="threshold"), bent.drop(columns="threshold"))


@given(cases())
def test_thresholds_give_the_smallest_rate_not_below_the_one_asked_for(case):
    responses, _, rate, *_ = case
    thresholds = firing_thresholds(responses, rate)
    k = int(np.ceil(rate * len(responses) - 1e-9))
    for h, t in zip(responses.T, thresholds, strict=True):
        if np.isnan(t):
            assert not any((h > other).sum() >= k for other in h)
        else:
            assert (h > t).sum() >= k and (h > h[h > t].min()).sum() < k


# -- the rest -------------------------------------------------------------------------------------------


def test_top_proportion():
    scores = np.array([5.0, 1.0, np.nan, 3.0, 2.0])
    assert top_proportion_mean(scores, 0.5) == 4 and top_proportion_mean(scores, 1.0) == 2.75
    assert np.isnan(top_proportion_mean(np.array([np.nan]), 0.5))
    assert top_proportion_mean(torch.tensor([2.0, 4.0]), 0.1) == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: firing_thresholds(np.zeros((50, 2))),
            "a firing rate of 0.01 needs at least 100 stimuli, there are 50",
        ),
        (lambda: firing_thresholds(np.zeros((50, 2)), 1.5), "firing_rate=1.5 is not a rate"),
        (lambda: firing_thresholds(np.full((200, 1), np.nan)), "NaN"),
        (lambda: firing_thresholds(np.zeros(5)), "stimuli × units"),
        (lambda: invariance_scores(np.zeros((200, 1)), orbits(100, 10)), "200 stimuli and 100 trajectories"),
        (lambda: invariance_scores(np.zeros((200, 1)), [[]] * 200), "trajectory of stimulus 0 is empty"),
        (lambda: invariance_scores(np.zeros((200, 1)), [[999]] * 200), "names stimulus 999, but there are 200"),
        (lambda: invariance_scores(np.zeros((200, 1)), orbits(200, 10), near_max=0), "near_max=0"),
        (lambda: invariance_scores(np.zeros((200, 1)), orbits(200, 10), signs="both"), "signs='both'"),
        (lambda: top_proportion_mean(np.ones(3), 0), "p=0 is not a proportion"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_responses_in_half_precision_are_scored_as_the_numbers_that_they_are(dtype):
    responses = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    path = [[i] for i in range(200)]
    ours, theirs = (invariance_scores(r, path, 0.05) for r in (responses, responses.double().numpy()))
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)  # thresholds are responses, in their precision


def test_stimuli_to_choose_from_must_be_there():
    responses, path = np.random.default_rng(0).random((50, 2)), [[i] for i in range(50)]
    for among in ([], [50], [0, 99], [-1]):
        with pytest.raises(AssayError, match="must name at least one of the 50 stimuli"):
            invariance_scores(responses, path, 0.1, among=np.array(among))
    mask = np.arange(50) % 2 == 0
    one, other = (invariance_scores(responses, path, 0.1, among=among) for among in (mask, np.flatnonzero(mask)))
    pd.testing.assert_frame_equal(one, other)


def test_a_firing_rate_a_quarter_too_high_meets_the_target_however_many_stimuli_there_are():
    n = np.arange(10, 8000)
    asked = np.ceil(n / 100)
    a_quarter = asked % 4 == 0
    assert a_quarter.sum() > 1900
    for n_i, k in zip(n[a_quarter], asked[a_quarter], strict=True):
        rates = np.array([1.25 * k / n_i, (1.25 * k + 1) / n_i])
        both = SignedScores(1, np.zeros(2), rates, rates, np.array(["tied", "tied"]))
        assert both.preference(k / n_i).tolist() == [2, 1], n_i
