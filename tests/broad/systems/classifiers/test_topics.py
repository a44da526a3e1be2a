from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import psi
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.linear_model import Ridge

from assay import AssayError
from assay.broad.data.dataset import Inputs
from assay.broad.data.violation import NotApplicable
from assay.broad.systems.classifiers import topics as module
from assay.broad.systems.classifiers.topics import TopicPredictor, Topics, learn_topics
from assay.broad.systems.features.words import BagOfWords


def corpus(seed: int, reviews: int, topics: int = 2, words: int = 30, length: int = 40):
    """Counts drawn by LDA's own recipe, with the proportions and the topics they were drawn from."""
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.full(words, 0.1), topics)
    theta = rng.dirichlet(np.full(topics, 0.5), reviews)
    counts = np.array([rng.multinomial(rng.poisson(length), row) for row in theta @ beta])
    return sparse.csr_matrix(counts), theta, beta


# -- what LDA must do -----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 12))
def test_the_bound_never_falls(seed, topics, length):
    counts, _, _ = corpus(seed, 20, words=8, length=length)
    bounds = learn_topics(counts, topics, passes=30, tolerance=0, seed=seed).bounds
    # Rounding of sums of some hundred terms.
    assert (np.diff(bounds) >= -1e-10 * abs(bounds[0])).all()


def test_proportions_sum_to_one():
    counts, _, _ = corpus(0, 300)
    theta = learn_topics(counts, 7).proportions(counts)
    assert (theta > 0).all()
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-12)


def test_two_planted_topics_are_found_up_to_their_order():
    counts, theta, beta = corpus(1, 1000)
    learned = learn_topics(counts, 2, tolerance=1e-6)
    found = learned.word_weights / learned.word_weights.sum(axis=1, keepdims=True)
    order = min(([0, 1], [1, 0]), key=lambda o: np.abs(found[o] - beta).sum())
    # Total variation; 20,000 words a topic place each of 30 probabilities to within about a tenth of its square root.
    assert np.abs(found[order] - beta).sum(axis=1).max() / 2 < 0.05
    # 40 words tell a proportion to about 1/√40 = 0.16.
    assert np.abs(learned.proportions(counts)[:, order] - theta).mean() < 0.16


# -- references -----------------------------------------------------------------------------------------


def test_one_topic_has_a_closed_form():
    """φ = 1, so λ = η + counts, γ = α + length, and the bound is the log-probability of a Dirichlet-multinomial."""
    from scipy.special import gammaln

    counts, _, _ = corpus(2, 50)
    learned = learn_topics(counts, 1, alpha=0.3, eta=0.7, passes=3, tolerance=0)
    totals = np.asarray(counts.sum(axis=0)).ravel()
    np.testing.assert_allclose(learned.word_weights[0], 0.7 + totals, rtol=1e-12)
    evidence = gammaln(30 * 0.7) - gammaln(30 * 0.7 + totals.sum()) + (gammaln(0.7 + totals) - gammaln(0.7)).sum()
    assert learned.bounds[-1] == pytest.approx(evidence, rel=1e-12)
    np.testing.assert_array_equal(learned.proportions(counts), 1)


def theirs(topics: Topics, words: int) -> LatentDirichletAllocation:
    """scikit-learn's LDA with our topics, and its inference run to the end."""
    n = len(topics.word_weights)
    model = LatentDirichletAllocation(
        n, doc_topic_prior=topics.alpha, topic_word_prior=1 / n, mean_change_tol=1e-12, max_doc_update_iter=5000
    )
    model.fit(np.ones((1, words)))  # sets it up
    model.components_ = topics.word_weights
    model.exp_dirichlet_component_ = np.exp(
        psi(topics.word_weights) - psi(topics.word_weights.sum(axis=1, keepdims=True))
    )
    return model


def test_proportions_approach_those_of_scikit_learn(monkeypatch):
    counts, _, _ = corpus(3, 60, topics=4)
    learned = learn_topics(counts, 4)
    expected = theirs(learned, 30).transform(counts)
    after_20 = np.abs(learned.proportions(counts) - expected).mean()
    monkeypatch.setattr(module, "UPDATES", 2000)
    # Single precision, summed over 2,000 updates.
    np.testing.assert_allclose(learned.proportions(counts), expected, atol=1e-3)
    assert after_20 < 0.02


def test_the_bound_is_that_of_scikit_learn():
    """Once λ has settled, γ has too, so theirs (γ found anew) and ours agree."""
    counts, _, _ = corpus(4, 40, topics=3)
    learned = learn_topics(counts, 3, passes=3000, tolerance=0)
    assert theirs(learned, 30).score(counts) == pytest.approx(learned.bounds[-1], rel=1e-5)


@pytest.mark.requirement("F2")
def test_the_rating_is_a_ridge_regression_on_proportions():
    counts, theta, _ = corpus(5, 300)
    ratings = 1 + 4 * theta[:, 0]
    predictor = TopicPredictor(topics=3, ridge=0.5).fit(counts[:200], ratings[:200])
    features = predictor.topics_.proportions(counts)
    expected = Ridge(alpha=0.5).fit(features[:200], ratings[:200]).predict(features[200:])
    np.testing.assert_allclose(predictor.margins(counts[200:]), expected, atol=1e-10)
    np.testing.assert_allclose(predictor.predict(counts[200:]), np.clip(expected, 1, 5), atol=1e-10)


def test_ratings_that_depend_on_topics_are_predicted():
    counts, theta, _ = corpus(6, 600)
    ratings = 1 + 4 * theta[:, 0]
    error = TopicPredictor(topics=2).fit(counts[:300], ratings[:300]).predict(counts[300:]) - ratings[300:]
    assert np.sqrt((error**2).mean()) < ratings[300:].std() / 2


# -- properties -----------------------------------------------------------------------------------------


def test_a_review_gets_the_same_proportions_whatever_comes_with_it():
    counts, _, _ = corpus(7, 400, topics=3)
    learned = learn_topics(counts, 5)
    together = learned.proportions(counts)
    order = np.random.default_rng(0).permutation(400)
    # Padding changes the order of sums in single precision, 20 times over.
    np.testing.assert_allclose(learned.proportions(counts[order]), together[order], atol=1e-4)
    np.testing.assert_allclose(learned.proportions(counts[17]), together[17:18], atol=1e-4)


def test_the_same_seed_gives_the_same_topics_and_another_others():
    counts, _, _ = corpus(8, 50)
    first, again, other = (learn_topics(counts, 3, seed=seed).word_weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_reviews_without_words_or_with_unknown_ones_have_proportions():
    counts = np.zeros((6, 5), dtype=int)
    counts[:4, :3] = [[4, 1, 0], [5, 0, 0], [0, 1, 6], [0, 0, 5]]
    learned = learn_topics(counts, 2)
    theta = learned.proportions(np.vstack([counts, [[0, 0, 0, 9, 9]]]))
    np.testing.assert_array_equal(theta[4:6], 0.5)
    assert np.isfinite(theta).all()
    np.testing.assert_array_equal(learned.proportions(np.zeros((3, 5), dtype=int)), 0.5)
    np.testing.assert_allclose(learn_topics(np.zeros((3, 5)), 2).proportions(counts[:1]).sum(), 1)


def test_many_topics_and_long_reviews_stay_finite():
    counts, _, _ = corpus(9, 30, topics=5, words=200, length=3000)
    theta = learn_topics(counts, 300, passes=3).proportions(counts)
    assert np.isfinite(theta).all()
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-12)


def test_the_number_of_topics_is_tuned():
    counts, theta, _ = corpus(10, 60)
    predictor = TopicPredictor()
    assert predictor.grid == {"topics": (5, 10, 20, 50)}
    fitted = predictor.with_settings(topics=4).fit(counts, 1 + 4 * theta[:, 0])
    assert len(fitted.topics_.word_weights) == 4 and not hasattr(predictor, "topics_")


# -- what it is not for ---------------------------------------------------------------------------------

TEXTS = ["good food good wine", "bad food", "good wine", "noisy bad place"]


def words(weights):
    inputs = Inputs(TEXTS, ("a", "b", "c", "d"))
    return BagOfWords(weights=weights).fit(inputs).transform(inputs)


@pytest.mark.parametrize("weights", ["counts", "binary"])
def test_counts_and_presence_are_applicable(weights):
    predictions = TopicPredictor(topics=2).fit(words(weights), np.array([5, 1, 4, 2])).predict(words(weights))
    assert ((predictions >= 1) & (predictions <= 5)).all()


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        (words("tfidf"), "not whole numbers"),
        (np.tanh(np.random.default_rng(0).normal(size=(4, 6))), "negative values"),
        (np.full((4, 6), 0.5, dtype=np.float32), "not whole numbers"),
    ],
)
def test_what_are_no_counts_is_not_applicable(features, reason):
    with pytest.raises(NotApplicable, match=f"LDA needs counts of words, and the features .*{reason}"):
        TopicPredictor(topics=2).fit(features, np.array([5, 1, 4, 2]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TopicPredictor(ridge=0), "ridge=0 must be positive"),
        (lambda: TopicPredictor(topics=0).fit(np.ones((2, 2)), np.ones(2)), "topics=0"),
        (lambda: learn_topics(np.ones((2, 2)), 2, alpha=0), "alpha=0"),
        (lambda: learn_topics(np.full((2, 2), np.nan), 2), "NaN"),
        (lambda: TopicPredictor().predict(np.ones((2, 2))), "TopicPredictor has not learned anything yet"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
