from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge

from assay import AssayError
from assay.broad.data.opentable import RATINGS, check_opentable
from assay.broad.data.twin_reviews import CORRELATIONS, SHARES, generated_reviews


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


@settings(max_examples=25)
@given(st.integers(1, 400), st.data())
def test_reviews_of_any_number_stay_within_bounds(count, data):
    restaurants = data.draw(st.integers(1, count))
    twin = generated_reviews(count, restaurants, seed=data.draw(st.integers(0, 2**32)))
    assert all(30 <= len(text) <= 750 for text in twin.inputs.items)
    assert set(twin.groups.tolist()) == set(range(restaurants))
    assert set(np.unique(twin.targets)) <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generated_reviews(count=5, restaurants=6), "restaurants=6, count=5"),
        (lambda: generated_reviews(count=5, restaurants=0), "restaurants=0, count=5"),
    ],
)
def test_wrong_sizes_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
