"""Perceptual curvature: the observer, trajectories, simulated observers, and their curvature recovered."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import assay
from assay import AssayError, Discrimination, curvature, perceptual_curvature, random_trajectory, simulate_observer
from assay.measures.straightness.discrimination import require_lapse
from assay.measures.straightness.measure import turning_angles
from assay.measures.straightness.observer import axb_log_probabilities, distances, path
from assay.measures.straightness.perception import perceptual_curvatures

PUBLISHED = {0: 0.5, 1: 0.5996561877, 2: 0.7876514882, 3: 0.9185097923, 5: 0.9935893857}
FEW = {"iterations": 100, "draws": 40}


@pytest.mark.parametrize(("distance", "probability"), PUBLISHED.items())
def test_the_probability_of_a_correct_answer_is_as_published(distance, probability):
    assert assay.axb_probability(float(distance)) == pytest.approx(probability, abs=1e-9)
    assert assay.axb_probability(np.array([distance, distance]))[1] == pytest.approx(probability, abs=1e-9)
    right, wrong = axb_log_probabilities(torch.tensor([float(distance)], dtype=torch.float64))
    assert right.exp().item() == pytest.approx(probability, abs=1e-9)
    assert wrong.exp().item() == pytest.approx(1 - probability, abs=1e-9)


def test_the_probability_is_that_of_an_ideal_observer_of_noisy_frames():
    """Looks at A and B tell which is which, and one at X which of the two it is: both right, or both wrong."""
    rng, n, d = np.random.default_rng(0), 200_000, 1.7
    a, b, x = rng.normal(size=n), d + rng.normal(size=n), rng.normal(size=n)  # X is A
    share = ((a < b) == (x < d / 2)).mean()
    assert share == pytest.approx(assay.axb_probability(d), abs=4 * math.sqrt(0.25 / n))  # four standard errors


def test_a_wrong_answer_to_frames_far_apart_keeps_its_digits():
    _, wrong = axb_log_probabilities(torch.tensor([20.0], dtype=torch.float64))
    exact = norm.logsf(10) + np.log1p(norm.sf(20 / 2**0.5) / norm.sf(10))  # Φ(−10)·Φ(√200) + Φ(10)·Φ(−√200)
    assert wrong.item() == pytest.approx(exact, rel=1e-9)
    _, lapsing = axb_log_probabilities(torch.tensor([20.0], dtype=torch.float64), 0.1)
    assert lapsing.exp().item() == pytest.approx(0.05)


@pytest.mark.parametrize("distance", [-1.0, float("nan"), np.array([1.0, -0.1]), "far"])
def test_a_distance_that_is_none_is_refused(distance):
    with pytest.raises(AssayError, match="distance="):
        assay.axb_probability(distance)


def test_a_path_has_the_steps_and_angles_it_is_made_of():
    rng = np.random.default_rng(0)
    steps, angles = rng.uniform(0.5, 2, 7), rng.uniform(0.1, 3, 6)
    points = path(*map(torch.from_numpy, (steps, angles, rng.normal(size=(6, 7)))))
    np.testing.assert_allclose(points.diff(dim=0).norm(dim=1), steps, rtol=1e-12)
    np.testing.assert_allclose(turning_angles(points), np.degrees(angles), rtol=1e-9)
    apart = distances(points, torch.tensor([0, 2]), torch.tensor([1, 5]))
    np.testing.assert_allclose(apart, [steps[0], (points[5] - points[2]).norm()], rtol=1e-12)


@pytest.mark.parametrize("degrees", [0, 5, 90, 179])
def test_a_random_trajectory_has_the_curvature_asked_for(degrees):
    # The streaming-free definition; an angle of 0 is known to the square root of the rounding error.
    assert curvature(random_trajectory(degrees, spread_deg=20, seed=3)) == pytest.approx(degrees, abs=1e-6)


def test_answers_to_frames_in_either_order_count_for_one_pair():
    trials = np.full((3, 3), 10) - 10 * np.eye(3, dtype=int)
    table = Discrimination(np.array([[0, 6, 9], [5, 0, 7], [10, 4, 0]]), trials).table()
    assert table["correct"].tolist() == [11, 19, 11] and table["trials"].tolist() == [20, 20, 20]


def counts(frames, value):
    return np.triu(np.full((frames, frames), value), 1)


@pytest.mark.parametrize(
    ("correct", "trials", "match"),
    [
        (counts(2, 3), counts(2, 5), "of 2 frames: curvature needs at least 3"),
        (counts(3, 6), counts(3, 5), r"correct\[0, 1\]=6 is above trials\[0, 1\]=5"),
        (counts(3, 3) * np.nan, counts(3, 5), "correct has NaN or infinite counts"),
        (counts(3, 3), counts(3, 5) - 1, "trials has counts that are negative"),
        (counts(3, 0.5), counts(3, 5), "no whole numbers"),
        (counts(3, 3), counts(4, 5), r"correct is \(3, 3\) and trials \(4, 4\)"),
        (np.ones(3), np.ones(3), r"correct of shape \(3,\) must be frames × frames"),
        (counts(3, 0), counts(3, 5) + np.eye(3), "a frame, 0, that was to be told from itself"),
        (counts(3, 0), np.array([[0, 9, 0], [0, 0, 0], [0, 0, 0]]), "none of frame 2"),
        ([["a"]], [["b"]], "correct=.* holds no numbers"),
    ],
)
def test_answers_that_cannot_be_are_named(correct, trials, match):
    with pytest.raises(AssayError, match=match):
        Discrimination(correct, trials)


def test_settings_of_a_simulation_or_fit_that_cannot_be_are_named():
    seen = simulate_observer(random_trajectory(30, 4))
    for match, call in {
        "curvature_deg=200": lambda: random_trajectory(200),
        "frames=2": lambda: random_trajectory(20, 2),
        "3 or more finite points": lambda: simulate_observer(np.full((4, 2), np.nan)),
        "trials=0": lambda: simulate_observer(np.zeros((3, 1)), 0),
        "lapse=1.5": lambda: require_lapse(1.5),
        "draws=-1": lambda: perceptual_curvature(seen, draws=-1),
        "iterations=0": lambda: perceptual_curvature(seen, iterations=0),
        "of 3 and 4 frames": lambda: perceptual_curvatures([seen, simulate_observer(random_trajectory(30, 3))]),
        "observers are none": lambda: perceptual_curvatures([]),
        "each of which is a Discrimination": lambda: perceptual_curvatures([1]),
    }.items():
        with pytest.raises(AssayError, match=match):
            call()


@pytest.mark.slow
def test_the_posterior_of_three_frames_is_that_of_weighted_draws_from_the_prior():
    """An independent computation: many draws from the priors, weighted by their likelihood."""
    seen = simulate_observer(random_trajectory(70, 3, step=1.5), 60, seed=1)
    rng = np.random.default_rng(0)
    n = 200_000
    typical, step_spread, angle_mean, angle_spread = rng.normal(size=(4, n))
    steps = np.exp(typical + 0.2 * np.exp(0.7 * step_spread) * rng.normal(size=(2, n)))
    angle = np.pi * norm.cdf(angle_mean) + np.radians(15) * np.exp(0.7 * angle_spread) * rng.normal(size=n)
    span = np.sqrt(np.maximum(steps[0] ** 2 + steps[1] ** 2 + 2 * steps[0] * steps[1] * np.cos(angle), 0))
    correct = seen.table()["correct"].to_numpy()  # pairs 0–1, 0–2, 1–2
    p = np.clip(assay.axb_probability(np.stack([steps[0], span, steps[1]])), 0, 1 - 1e-15)
    log_weight = (correct[:, None] * np.log(p) + (60 - correct[:, None]) * np.log1p(-p)).sum(0)
    weight = np.exp(log_weight - log_weight.max())
    folded = np.degrees(np.arccos(np.cos(angle)))
    mean = np.average(folded, weights=weight)
    spread = math.sqrt(np.average((folded - mean) ** 2, weights=weight))
    fit = perceptual_curvature(seen, lapse=0.0, iterations=80, draws=50)
    # 200 draws, of which perhaps a third are independent: four standard errors of their mean.
    assert fit.curvature_deg == pytest.approx(mean, abs=4 * spread / math.sqrt(65))
    assert (fit.high - fit.low) / (2 * 1.96 * spread) == pytest.approx(1, abs=0.3)


@pytest.mark.slow
def test_the_curvature_of_simulated_observers_lies_in_their_intervals():
    true = [10, 50, 90, 130] * 3
    observers = [simulate_observer(random_trajectory(c, 4, 1.5, seed=i), 200, seed=i) for i, c in enumerate(true)]
    fits = perceptual_curvatures(observers, lapse=0.0, **FEW)
    held = [fit.low <= c <= fit.high for fit, c in zip(fits, true, strict=True)]
    assert sum(held) >= 9  # of 12 at 95 %: fewer would be by chance once in 4,000 times
    assert np.corrcoef(true, [fit.curvature_deg for fit in fits])[0, 1] > 0.8
    assert all(len(fit.angles) == 2 and len(fit.steps) == 3 and len(fit.pairs) == 6 for fit in fits)
    assert max(np.abs(fit.pairs["share"] - fit.pairs["predicted"]).mean() for fit in fits) < 0.05


def test_the_variational_fit_raises_its_bound_and_is_the_same_again():
    seen = simulate_observer(random_trajectory(40, 4, 1.5), 200, lapse=0.1)
    one, other = (perceptual_curvature(seen, iterations=120, draws=0, seed=2) for _ in range(2))
    assert one.elbo[-10:].mean() > one.elbo[:10].mean() + 1
    assert one.curvature_deg == other.curvature_deg and one.low < one.curvature_deg < one.high
    assert 0 < one.lapse < 0.5 and repr(one).startswith("PerceptualCurvature(")


def test_figures_show_the_answers_and_the_curvature():
    seen = simulate_observer(random_trajectory(40, 4), 50)
    fit = perceptual_curvature(seen, iterations=20, draws=0)
    assert assay.plot_discrimination(fit.pairs).figure.axes and assay.plot_discrimination(seen.table()).figure.axes
    assert assay.plot_perceptual_curvature({"one": fit}, {"one": 50.0}).figure.axes
    with pytest.raises(AssayError, match="has no column 'first'"):
        assay.plot_discrimination(fit.angles)
    with pytest.raises(AssayError, match="'two', which is not among the fits"):
        assay.plot_perceptual_curvature({"one": fit}, {"two": 50.0})
    with pytest.raises(AssayError, match="one or more"):
        assay.plot_perceptual_curvature({})


def answers_of(seen: Discrimination) -> pd.DataFrame:
    """One row for each trial of an observer, whose frames are numbered from 1."""
    rows = []
    for first, second, correct, trials in seen.table()[["first", "second", "correct", "trials"]].to_numpy():
        rows += [{"first": first + 1, "second": second + 1, "correct": i < correct} for i in range(int(trials))]
    return pd.DataFrame(rows)


def test_a_table_of_trials_and_one_of_pairs_count_as_the_matrices_do():
    seen = simulate_observer(random_trajectory(30, frames=4), trials=20)
    trials = answers_of(seen)
    pd.testing.assert_frame_equal(Discrimination.from_table(trials).table(), seen.table())
    turned = trials.rename(columns={"first": "second", "second": "first"})
    pd.testing.assert_frame_equal(Discrimination.from_table(turned).table(), seen.table())
    pd.testing.assert_frame_equal(Discrimination.from_table(seen.table()).table(), seen.table())
    names = {number: f"frame{13 - number}" for number in range(1, 5)}
    named = trials.assign(first=trials["first"].map(names), second=trials["second"].map(names))
    pd.testing.assert_frame_equal(Discrimination.from_table(named, list(names.values())).table(), seen.table())


@pytest.mark.parametrize(
    ("table", "frames", "message"),
    [
        ("answers.csv", None, r"table='answers.csv' is no table: give pandas.read_csv"),
        (pd.DataFrame({"a": [1], "b": [2], "correct": [1]}), None, "no column 'first', but 'a', 'b', 'correct'"),
        (pd.DataFrame({"first": ["x"], "second": ["y"], "correct": [1]}), None, "give their names in order as frames="),
        (pd.DataFrame({"first": [1], "second": [2], "correct": [0.6]}), None, "not 1 or 0 in every trial"),
        (pd.DataFrame({"first": [1], "second": [9], "correct": [1]}), [1, 2], "the frame 9, which is not among"),
    ],
)
def test_a_table_that_cannot_be_counted_says_what_to_change(table, frames, message):
    with pytest.raises(AssayError, match=message):
        Discrimination.from_table(table, frames)


def test_a_table_given_for_a_discrimination_is_told_how_it_becomes_one():
    with pytest.raises(AssayError, match=r"give Discrimination\(correct, trials\), or for a table of answers"):
        perceptual_curvature(pd.DataFrame({"first": [1]}))


def test_pixels_that_are_one_number_are_refused_in_a_sentence():
    seen = simulate_observer(random_trajectory(30, frames=3), trials=20)
    fit = perceptual_curvature(seen, iterations=5, draws=0)
    with pytest.raises(AssayError, match="pixels=80 must be curvatures by the names of the fits"):
        assay.plot_perceptual_curvature({"a": fit}, pixels=80)


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_draws_too_few_to_compare_chains_are_refused(draws):
    seen = Discrimination(np.triu(np.full((4, 4), 30), 1), np.triu(np.full((4, 4), 50), 1))
    with pytest.raises(AssayError, match=f"draws={draws} are too few"):
        perceptual_curvature(seen, draws=draws, iterations=1)


def test_counts_beyond_whole_numbers_and_steps_of_no_length_are_refused():
    with pytest.raises(AssayError, match=r"correct has the count 1e\+300"):
        Discrimination(np.triu(np.full((3, 3), 1e300), 1), np.triu(np.full((3, 3), 1e300), 1))
    for step in (0.0, -1.0, math.nan):
        with pytest.raises(AssayError, match="must be a positive length"):
            random_trajectory(40, step=step)
