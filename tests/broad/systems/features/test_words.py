from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from assay import AssayError
from assay.broad.data.dataset import Inputs
from assay.broad.systems.features.words import WEIGHTS, BagOfWords

WORD = r"\w+(?:['’]\w+)*"


def given_as(items) -> Inputs:
    return Inputs(items, tuple(map(str, range(items.shape[0] if sparse.issparse(items) else len(items)))))


@pytest.fixture
def reviews() -> Inputs:
    """200 reviews of up to 30 words; words are the rarer, the larger their number."""
    rng = np.random.default_rng(0)
    numbers = (rng.geometric(0.05, size=rng.integers(1, 30)) for _ in range(200))
    return given_as([" ".join(f"Word{n}" for n in some) + "!" for some in numbers])


# -- references -----------------------------------------------------------------------------------------


def test_counts_are_those_of_scikit_learn(reviews):
    theirs = CountVectorizer(token_pattern=WORD)
    words = BagOfWords(terms=10**6).fit(reviews)
    expected = theirs.fit_transform(reviews.items)
    assert words.vocabulary_ == sorted(theirs.vocabulary_)
    np.testing.assert_array_equal(words.transform(reviews).toarray(), expected.toarray())


def test_presence_is_that_of_scikit_learn(reviews):
    theirs = CountVectorizer(token_pattern=WORD, binary=True).fit_transform(reviews.items)
    np.testing.assert_array_equal(
        BagOfWords(weights="binary").fit(reviews).transform(reviews).toarray(), theirs.toarray()
    )


def test_tfidf_is_that_of_scikit_learn(reviews):
    train, new = reviews.take(np.arange(150)), reviews.take(np.arange(150, 200))
    theirs = TfidfVectorizer(token_pattern=WORD).fit(train.items)
    ours = BagOfWords(10**6, "tfidf").fit(train)
    # Single precision.
    np.testing.assert_allclose(ours.transform(new).toarray(), theirs.transform(new.items).toarray(), atol=1e-6)


def test_text_and_its_counts_give_the_same_columns(reviews):
    """The matrix has one column for each word, in alphabetical order, so that ties fall the same way."""
    counts = CountVectorizer(token_pattern=WORD).fit_transform(reviews.items).tocsr()
    for weights in ("counts", "binary", "tfidf"):
        text, matrix = (BagOfWords(20, weights).fit(given_as(items)) for items in (reviews.items, counts))
        ours, same = text.transform(reviews), matrix.transform(given_as(counts))
        assert ours.shape == (200, 20) and ours.nnz == same.nnz
        np.testing.assert_allclose(ours.toarray(), same.toarray(), rtol=1e-6)


# -- closed forms ---------------------------------------------------------------------------------------


def test_the_most_frequent_terms_are_chosen_and_ties_fall_by_the_alphabet():
    train = given_as(["b b c", "a d", "e b"])
    assert BagOfWords(3).fit(train).vocabulary_ == ["a", "b", "c"]
    counts = sparse.csr_matrix(np.array([[0, 2, 1, 0, 0], [0, 0, 1, 1, 1]]))
    assert BagOfWords(3).fit(given_as(counts)).vocabulary_ == [1, 2, 3]
    assert BagOfWords(9).fit(given_as(counts)).vocabulary_ == [1, 2, 3, 4]  # the first never occurs


def test_terms_come_from_the_training_reviews_only():
    words = BagOfWords().fit(given_as(["good food"]))
    assert words.transform(given_as(["bad food food"])).toarray().tolist() == [[2, 0]]


def test_a_review_without_known_words_is_an_empty_row():
    for weights in WEIGHTS:
        words = BagOfWords(weights=weights).fit(given_as(["good food"]))
        row = words.transform(given_as(["xyzzy", "", "food"]))
        assert row.getnnz(axis=1).tolist() == [0, 0, 1] and np.isfinite(row.data).all()


def test_capitals_and_apostrophes():
    words = BagOfWords().fit(given_as(["Don't stop, DON'T! it’s 5 o'clock"]))
    assert words.vocabulary_ == ["5", "don't", "it’s", "o'clock", "stop"]
    assert BagOfWords(lower=False).fit(given_as(["Good good"])).vocabulary_ == ["Good", "good"]


def test_tfidf_rows_have_length_one(reviews):
    rows = BagOfWords(weights="tfidf").fit(reviews).transform(reviews)
    np.testing.assert_allclose(np.sqrt(rows.multiply(rows).sum(axis=1)), 1, rtol=1e-6)


# -- properties -----------------------------------------------------------------------------------------


@given(st.lists(st.text("ab c'é", max_size=12), min_size=1, max_size=8), st.sampled_from(["counts", "binary", "tfidf"]))
def test_reviews_together_are_reviews_one_by_one(texts, weights):
    words = BagOfWords(3, weights).fit(given_as(["a b", "b é", "c c c", "aa"]))
    together = words.transform(given_as(texts)).toarray()
    np.testing.assert_array_equal(together, np.vstack([words.transform(given_as([t])).toarray() for t in texts]))


def test_the_matrix_given_is_left_as_it_is():
    counts = sparse.csr_matrix(np.array([[0.0, 3.0], [2.0, 1.0]], dtype=np.float32))
    before = counts.copy()
    BagOfWords(weights="binary").fit(given_as(counts)).transform(given_as(counts))
    assert (counts != before).nnz == 0


# -- the rest -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BagOfWords(0), "terms=0 must be at least 1"),
        (lambda: BagOfWords(weights="idf"), "weights='idf' is none of 'counts', 'binary', 'tfidf'"),
        (lambda: BagOfWords().fit(given_as([])), "no reviews"),
        (lambda: BagOfWords().fit(given_as(["", "!?"])), "2 training reviews have no words"),
        (lambda: BagOfWords().fit(given_as(sparse.csr_matrix((2, 3)))), "2 training reviews have no words"),
        (lambda: BagOfWords().fit(given_as([np.ones(3)])), "reviews as text or a sparse matrix of counts"),
        (lambda: BagOfWords().fit(given_as(sparse.csr_matrix([[-1.0]]))), "negative, NaN or infinite"),
        (lambda: BagOfWords().fit(given_as(sparse.csr_matrix([[np.nan]]))), "negative, NaN or infinite"),
        (lambda: BagOfWords().transform(given_as(["a"])), "BagOfWords has not chosen any terms yet"),
        (lambda: BagOfWords().fit(given_as(["a"])).transform(given_as(sparse.csr_matrix([[1]]))), "the same kind"),
        (
            lambda: (
                BagOfWords().fit(given_as(sparse.csr_matrix([[1]]))).transform(given_as(sparse.csr_matrix([[1, 2]])))
            ),
            "2 columns, the training reviews had 1",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
