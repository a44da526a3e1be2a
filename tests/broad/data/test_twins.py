from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from assay import AssayError
from assay.broad.data.hollywood2 import ACTIONS, check_hollywood2
from assay.broad.data.opentable import RATINGS, check_opentable
from assay.broad.data.twins import (
    CLASS_SIZES,
    CORRELATIONS,
    PATTERNS,
    SHARES,
    generated_clips,
    generated_reviews,
)


def pixels(clip):
    return np.stack(list(clip.checked_frames()))


# -- reviews --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviews():
    return generated_reviews(count=40_000, restaurants=928, seed=0)  # 43 reviews per restaurant, as in the plan


def test_generated_reviews_differ_from_the_plans_corpus_in_size_only(reviews):
    assert check_opentable(reviews) == ["40,000 reviews, not 433,697", "928 restaurants, not 10,066"]


def test_scores_have_the_shares_asked_for(reviews):
    for column, shares in zip(reviews.targets.T, SHARES, strict=True):
        counts = np.bincount(column.astype(int), minlength=6)
        assert counts[0] == 0 and abs(counts[1:] / len(column) - shares).max() <= 1 / len(column)


def test_ratings_correlate_as_documented_less_what_rounding_to_scores_takes(reviews):
    found = np.corrcoef(reviews.targets.T)
    # Cutting a normal variable into these five scores keeps 0.87 to 0.95 of a correlation; 40,000 reviews in 928
    # restaurants leave a standard error of about 0.02.
    off = ~np.eye(5, dtype=bool)
    ratio = found[off] / CORRELATIONS[off]
    assert (found[off] < CORRELATIONS[off] + 0.03).all() and (found[off] > 0.8 * CORRELATIONS[off] - 0.03).all()
    assert ratio[CORRELATIONS[off] > 0.4].min() > 0.82


def test_food_ambiance_and_service_explain_most_of_overall():
    assert np.linalg.eigvalsh(CORRELATIONS).min() > 0
    parts, cross = CORRELATIONS[1:4, 1:4], CORRELATIONS[0, 1:4]
    assert cross @ np.linalg.solve(parts, cross) == pytest.approx(0.85, abs=0.005)


def test_restaurants_account_for_part_of_the_variance(reviews):
    sizes = np.bincount(reviews.groups)
    assert sizes.min() >= 1 and sizes.max() > 5 * sizes.mean()
    food = reviews.targets[:, 1]
    means = np.bincount(reviews.groups, food) / sizes
    within = (food - means[reviews.groups]).var()
    # One fifth of the variance before it is cut into scores; cutting takes about an eighth of that.
    assert 0.12 < 1 - within / food.var() < 0.24


def test_reviews_of_a_restaurant_share_words(reviews):
    big = np.argsort(-np.bincount(reviews.groups))[:2]
    rows = [np.flatnonzero(reviews.groups == g)[:100] for g in big]
    bags = [[set(reviews.inputs.items[i].split()) for i in some] for some in rows]
    vocabulary = [set().union(*sets) for sets in bags]
    frequent = [{w for w in v if sum(w in bag for bag in sets) > 10} for v, sets in zip(vocabulary, bags, strict=True)]
    assert len(frequent[0] - frequent[1]) >= 5 and len(frequent[1] - frequent[0]) >= 5


def test_word_frequencies_fall_like_zipf(reviews):
    counts = CountVectorizer().fit_transform(reviews.inputs.items[:5000]).sum(axis=0).A1
    ranked = np.sort(counts)[::-1]
    assert len(ranked) > 3000
    slope = np.polyfit(np.log(np.arange(100, 2000)), np.log(ranked[100:2000]), 1)[0]
    assert -1.3 < slope < -0.7


def test_a_linear_model_of_words_beats_a_constant_on_every_rating_and_a_constant_does_not(reviews):
    words = CountVectorizer(max_features=3000).fit_transform(reviews.inputs.items[:5000]).astype(float)
    shuffled = np.random.default_rng(0).permutation(3000)
    for j, rating in enumerate(RATINGS):
        y = reviews.targets[:5000, j]
        constant = np.sqrt(((y[3000:] - y[:3000].mean()) ** 2).mean())

        def rmse(answers, y=y):
            predicted = np.clip(Ridge(alpha=100).fit(words[:3000], answers).predict(words[3000:]), 1, 5)
            return np.sqrt(((y[3000:] - predicted) ** 2).mean())

        assert rmse(y[:3000]) < 0.85 * constant, rating
        # The words tell nothing once ratings are dealt out at random.
        assert rmse(y[:3000][shuffled]) > 0.98 * constant, rating
        # Nor does any constant: the best one is the mean, and it is as wrong as ratings vary.
        assert constant == pytest.approx(y[3000:].std(), rel=0.02)


def test_overall_is_predicted_better_than_by_its_mean_but_not_perfectly(reviews):
    """The twin is no toy: a linear model trained on as many reviews as a fold of the plan keeps an error."""
    words = CountVectorizer().fit_transform(reviews.inputs.items[:3000]).astype(float)
    y = reviews.targets[:3000, 0]
    predicted = Ridge(alpha=100).fit(words[:1000], y[:1000]).predict(words[1000:])
    assert 0.5 < np.sqrt(((predicted - y[1000:]) ** 2).mean()) < 0.95 * y.std()


def test_reviews_follow_from_the_seed():
    a, b, c = (generated_reviews(count=500, restaurants=20, seed=seed) for seed in (3, 3, 4))
    assert list(a.inputs.items) == list(b.inputs.items) and a.inputs.ids == b.inputs.ids
    np.testing.assert_array_equal(a.targets, b.targets)
    np.testing.assert_array_equal(a.groups, b.groups)
    assert list(a.inputs.items) != list(c.inputs.items)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 400), st.data())
def test_reviews_of_any_number_stay_within_bounds(count, data):
    restaurants = data.draw(st.integers(1, count))
    twin = generated_reviews(count, restaurants, seed=data.draw(st.integers(0, 2**32)))
    assert all(30 <= len(text) <= 750 for text in twin.inputs.items)
    assert set(twin.groups.tolist()) == set(range(restaurants))
    assert set(np.unique(twin.targets)) <= {1, 2, 3, 4, 5}


# -- clips ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    return generated_clips(training=160, test=160, frames=(14, 18), size=(48, 36), seed=0)


def test_generated_clips_have_the_plans_numbers():
    training, test = generated_clips()
    assert check_hollywood2(training, test) == []
    assert training.targets.sum(axis=0).tolist() == list(CLASS_SIZES["training"])
    assert test.targets.sum(axis=0).tolist() == list(CLASS_SIZES["test"])
    assert not set(training.groups) & set(test.groups)
    assert (len(set(training.groups)), len(set(test.groups))) == (33, 36)
    assert {40, 80} == {f({c.count() for c in training.inputs.items}) for f in (min, max)}


@settings(deadline=None, max_examples=15)
@given(st.integers(12, 900), st.integers(12, 900), st.integers(0, 2**32))
def test_other_sizes_keep_the_proportions_and_every_action(training, test, seed):
    for twin, count, by_labels in zip(
        generated_clips(training, test, seed=seed), (training, test), ((750, 68, 5), (798, 84, 2)), strict=True
    ):
        assert len(twin) == count and twin.targets.any(axis=0).all()
        assert len({c.fingerprint for c in twin.inputs.items}) == count
        found = np.bincount(twin.targets.sum(axis=1), minlength=4)
        expected = count * np.array(by_labels) / sum(by_labels)
        assert found[0] == 0 and (abs(found[1:] - expected) < 1).all()


def test_clips_follow_from_their_fields_and_survive_pickling(small):
    (clip, other), (same, _) = (
        small[0].inputs.items[:2],
        generated_clips(160, 160, (14, 18), (48, 36))[0].inputs.items[:2],
    )
    copy = pickle.loads(pickle.dumps(clip))
    assert copy == clip == same and copy.fingerprint == clip.fingerprint == same.fingerprint != other.fingerprint
    shown = pixels(clip)
    assert shown.shape == (clip.count(), 3, 36, 48) and shown.dtype == np.float32
    assert shown.min() >= 0 and shown.max() <= 1 and 14 <= len(shown) <= 18
    np.testing.assert_array_equal(shown, pixels(copy))
    assert abs(shown[:14] - pixels(other)[:14]).max() > 0.1
    other_seed = generated_clips(160, 160, (14, 18), (48, 36), seed=1)[0].inputs.items[0]
    assert other_seed.fingerprint != clip.fingerprint


def test_a_clip_shows_as_many_windows_as_it_has_labels(small):
    """Change over time is mostly inside the windows: with several labels, more of the frame changes."""
    training = small[0]
    counts = training.targets.sum(axis=1)
    moving = np.array([np.diff(pixels(c).mean(axis=1), axis=0).std(axis=0).max(axis=0) for c in training.inputs.items])
    share = (moving > 0.12).mean(axis=1)
    assert share[counts >= 2].mean() > 1.4 * share[counts == 1].mean()


def motion(clip):
    """How much of the change in a clip is along each direction at each speed: a histogram of space-time gradients."""
    grey = pixels(clip).mean(axis=1)
    grey = (grey[:, :-1, :-1] + grey[:, 1:, :-1] + grey[:, :-1, 1:] + grey[:, 1:, 1:]) / 4
    gt, gy, gx = np.gradient(grey)
    steep = np.hypot(gx, gy)
    angle = ((np.arctan2(gy, gx) / (2 * np.pi) + 1 / 16) % 1 * 8).astype(int)
    speed = np.digitize(gt / (steep + 0.02), [-1, -0.3, 0.3, 1])
    weight = np.sqrt(steep**2 + gt**2)
    cell = (np.digitize(weight, [0.03, 0.06, 0.12]) * 8 + angle) * 5 + speed
    return np.sqrt(np.bincount(cell.ravel(), weight.ravel(), minlength=4 * 8 * 5))


def test_a_linear_model_of_motion_beats_chance_on_clips_and_a_constant_does_not(small):
    training, test = small
    shown = StandardScaler().fit([motion(c) for c in training.inputs.items])
    x, z = (shown.transform([motion(c) for c in part.inputs.items]) for part in small)
    learned, constant = [], []
    for j in range(len(ACTIONS)):
        model = LogisticRegression(C=0.1, max_iter=1000, class_weight="balanced").fit(x, training.targets[:, j])
        learned.append(average_precision_score(test.targets[:, j], model.decision_function(z)))
        constant.append(average_precision_score(test.targets[:, j], np.ones(len(test))))
    prevalence = test.targets.mean(axis=0)
    np.testing.assert_allclose(constant, prevalence, atol=1e-12)
    assert np.mean(learned) > 3 * prevalence.mean()
    assert np.mean(learned) < 0.95  # not trivial


@pytest.mark.parametrize(
    ("action", "reverse"), [("AnswerPhone", "DriveCar"), ("GetOutCar", "HugPerson"), ("SitDown", "StandUp")]
)
def test_some_actions_are_others_run_backwards_so_that_no_single_frame_tells_them_apart(action, reverse):
    y, x = np.mgrid[-2:2:9j, -2:2:9j]
    for t in (0.0, 0.3, 1.7):
        # Equal but for the rounding of sums below 5 turns, in radians.
        np.testing.assert_allclose(PATTERNS[action](x, y, t), PATTERNS[reverse](x, y, -t), atol=1e-13)
        assert abs(PATTERNS[action](x, y, 0.25) - PATTERNS[reverse](x, y, 0.25)).max() > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generated_reviews(count=5, restaurants=6), "restaurants=6, count=5"),
        (lambda: generated_reviews(count=5, restaurants=0), "restaurants=0, count=5"),
        (lambda: generated_clips(training=11), "training=11: the 12 actions need at least 12 clips"),
        (lambda: generated_clips(test=3), "test=3"),
        (lambda: generated_clips(frames=(9, 5)), r"frames=\(9, 5\)"),
        (lambda: generated_clips(size=(96, 4)), r"size=\(96, 4\)"),
    ],
)
def test_wrong_sizes_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
