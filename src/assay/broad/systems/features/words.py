"""Bag of words: which words a review has, and how often.

Plan §5.3.5: "a simple bag-of-words (BOW) feature extractor because LDA … requires this representation"; the two
teams' text preprocessors are the same with other weights (1 where a word occurs: Glorot, Bordes, Bengio 2011).
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from assay.broad.data.dataset import Array, Inputs
from assay.core.errors import AssayError

Weights = Literal["counts", "binary", "tfidf"]
WEIGHTS = ("counts", "binary", "tfidf")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(eq=False)
class BagOfWords:
    """Turns reviews into rows of counts, one column for each of the most frequent terms of the training reviews.

    Where reviews come as a matrix of counts, its columns are the terms. A review that has none of the terms is an
    empty row. Terms as frequent as the last one taken are taken in the order of the alphabet (of the columns).

    Args:
        terms: The largest number of terms, taken by how often they occur in all.
        weights: Value of a term: ``"counts"``; ``"binary"``, 1 where a term occurs; ``"tfidf"``, counts times
            ln((1 + n) / (1 + n_t)) + 1, where n_t of n training reviews have term t, each row of Euclidean length 1.
        lower: Whether capitals are made lower-case.

    Example:
        >>> reviews = Inputs(["Good food, good wine", "Bad food"], ("a", "b"))
        >>> words = BagOfWords(terms=3).fit(reviews)
        >>> words.vocabulary_, words.transform(reviews).toarray().tolist()
        (['bad', 'food', 'good'], [[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]])

    Plan §5.3.5.
    """

    terms: int = 5000
    weights: Weights = "counts"
    lower: bool = True

    def __post_init__(self) -> None:
        if self.terms < 1:
            raise AssayError(f"terms={self.terms} must be at least 1")
        if self.weights not in WEIGHTS:
            raise AssayError(f"weights={self.weights!r} is none of {', '.join(map(repr, WEIGHTS))}")

    def fit(self, inputs: Inputs) -> Self:
        """Choose the terms from training reviews."""
        items: Any = inputs.items
        if len(inputs) == 0:
            raise AssayError("there are no reviews to choose terms from")
        if sparse.issparse(items):
            counts = _checked(items)
            self.width_ = counts.shape[1]
            totals = np.asarray(counts.sum(axis=0)).ravel()
            ranked = np.argsort(-totals, kind="stable")[: self.terms]
            self.vocabulary_: list[Any] = np.sort(ranked[totals[ranked] > 0]).tolist()
            having = np.asarray((counts > 0).sum(axis=0)).ravel()[self.vocabulary_]
        else:
            self.width_ = None
            tally: Counter[str] = Counter()
            reviews: Counter[str] = Counter()
            for text in items:
                words = self._words(text)
                tally.update(words)
                reviews.update(set(words))
            self.vocabulary_ = sorted(sorted(tally, key=lambda term: (-tally[term], term))[: self.terms])
            having = np.array([reviews[term] for term in self.vocabulary_])
        if not self.vocabulary_:
            raise AssayError(f"the {len(inputs)} training reviews have no words at all")
        self.idf_: Array = np.log((1 + len(inputs)) / (1 + having)) + 1
        return self

    def transform(self, inputs: Inputs) -> sparse.csr_matrix:
        """Compute the weighted counts of terms, reviews × terms."""
        counted = self._counted(inputs)
        if self.weights == "binary":
            counted.data[:] = 1
        if self.weights == "tfidf":
            counted.data *= self.idf_[counted.indices].astype(counted.dtype)
            counted = normalize(counted, copy=False)
        return counted

    def _counted(self, inputs: Inputs) -> sparse.csr_matrix:
        if not hasattr(self, "vocabulary_"):
            raise AssayError(f"{type(self).__name__} has not chosen any terms yet: call fit first")
        items: Any = inputs.items
        if sparse.issparse(items) != (self.width_ is not None):
            raise AssayError("some reviews are text and others a matrix of counts: fit and transform the same kind")
        if self.width_ is not None:
            counts = _checked(items)
            if counts.shape[1] != self.width_:
                raise AssayError(f"the counts have {counts.shape[1]} columns, the training reviews had {self.width_}")
            counted = counts[:, self.vocabulary_].astype(np.float32)
        else:
            place = {term: column for column, term in enumerate(self.vocabulary_)}
            columns = array("i")
            ends = array("q", [0])
            for text in items:
                columns.extend([place[word] for word in self._words(text) if word in place])
                ends.append(len(columns))
            parts = np.ones(len(columns), np.float32), np.frombuffer(columns, np.int32), np.frombuffer(ends, np.int64)
            counted = sparse.csr_matrix(parts, shape=(len(inputs), len(self.vocabulary_)))
        counted.sum_duplicates()
        counted.eliminate_zeros()
        return counted

    def _words(self, text: Any) -> list[str]:
        if not isinstance(text, str):
            raise AssayError(f"a bag of words needs reviews as text or a sparse matrix of counts, not {type(text)}")
        return _WORD.findall(text.lower() if self.lower else text)


def _checked(counts: Any) -> sparse.csr_matrix:
    if not (np.isfinite(counts.data).all() and (counts.data >= 0).all()):
        raise AssayError("the matrix of counts has negative, NaN or infinite values")
    return counts.tocsr()
