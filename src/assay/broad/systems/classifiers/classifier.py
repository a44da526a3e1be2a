"""The interface of all classifiers of the broad evaluation: they are tuned, learn from one fold, and predict.

Plan §5.3.1, §5.3.2 and Fig. 5.
"""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.core.errors import AssayError, nearest

Grid = Mapping[str, Sequence[Any]]
COSTS = tuple(2.0**k for k in range(-5, 16, 2))  # the values that LIBSVM's authors advise to search
STEPS = 300_000
LOWEST, HIGHEST = 1, 5  # ratings


class Classifier(ABC):
    """Predicts from features the confidence of one class (video) or a rating (text).

    Subclasses are dataclasses whose fields are their settings; what they learn is in attributes that end in ``_``.
    """

    grid: Grid
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @abstractmethod
    def fit(self, X: Features, y: Array) -> Self:
        """Learn from instances; y says of each whether it shows the action (video), or gives its rating (text)."""

    @abstractmethod
    def margins(self, X: Features) -> Array:
        """Compute one raw value for each instance, before it is squashed or clipped."""

    @abstractmethod
    def predict(self, X: Features) -> Array:
        """Predict one value for each instance: a confidence in [0, 1] (video) or a rating in [1, 5] (text)."""

    def with_settings(self, **chosen: Any) -> Self:
        """Make a fresh copy that has learned nothing, with some settings changed."""
        settings = [field.name for field in dataclasses.fields(self) if field.init]
        for name in chosen:
            if name not in settings:
                raise AssayError(f"{type(self).__name__} has no setting {name!r}{nearest(name, settings)}")
        return dataclasses.replace(self, **chosen)


class _Learns(Classifier):
    """A classifier that checks its inputs, and leaves the learning to subclasses."""

    columns_: int

    @abstractmethod
    def _learn(self, X: Any, y: Array) -> None: ...

    @abstractmethod
    def _values(self, X: Any) -> Array: ...

    def _checked(self, X: Features) -> Any:
        if not hasattr(self, "columns_"):
            raise AssayError(f"{type(self).__name__} has not learned anything yet: call fit first")
        return checked_matrix(X, columns=self.columns_)


class BinaryClassifier(_Learns):
    """A classifier of two classes, for video.

    Where only one class is among the instances it learns from, there is nothing to learn: ``constant_`` is True, all
    margins are 0 and all confidences are the share of positives (0 or 1), so that all instances are tied.
    """

    constant_: bool

    def fit(self, X: Features, y: Array) -> Self:
        """Learn from instances and whether they show the action."""
        matrix = checked_matrix(X, y)
        positive = checked_classes(y)
        self.columns_ = matrix.shape[1]
        self.prevalence_ = float(positive.mean())
        self.constant_ = self.prevalence_ in (0, 1)
        if not self.constant_:
            self._learn(matrix, positive)
        return self

    def margins(self, X: Features) -> Array:
        """Compute margins, positive where an instance is more likely to show the action than not."""
        matrix = self._checked(X)
        return np.zeros(matrix.shape[0]) if self.constant_ else self._values(matrix)

    def predict(self, X: Features) -> Array:
        """Predict confidences, in the order of the margins."""
        margins = self.margins(X)
        return np.full_like(margins, self.prevalence_) if self.constant_ else squash(margins)


class Rater(_Learns):
    """A predictor of ratings from 1 to 5, for text."""

    def fit(self, X: Features, y: Array) -> Self:
        """Learn from instances and their ratings."""
        matrix = checked_matrix(X, y)
        ratings = np.asarray(y, dtype=np.float64)
        if not ((ratings >= LOWEST) & (ratings <= HIGHEST)).all():  # not NaN either
            raise AssayError("y has ratings that are missing or not from 1 to 5: leave those instances out")
        self.columns_ = matrix.shape[1]
        self._learn(matrix, ratings)
        return self

    def margins(self, X: Features) -> Array:
        """Predict ratings that may lie outside of [1, 5]."""
        return self._values(self._checked(X))

    def predict(self, X: Features) -> Array:
        """Predict ratings in [1, 5]."""
        return np.asarray(np.clip(self.margins(X), LOWEST, HIGHEST))


def squash(margins: Array) -> Array:
    """Turn margins m into confidences in [0, 1], in the same order: ½ + ½·m/(1 + |m|).

    A logistic function is flat in floating point from 37 on and would make ties of margins that differ; this one
    still distinguishes margins near 10⁴ that differ by a few parts in 10¹².

    >>> squash(np.array([-3.0, 0.0, 1.0]))
    array([0.125, 0.5  , 0.75 ])
    """
    tail = 0.5 / (1 + np.abs(margins))
    confidences: Array = np.where(margins < 0, tail, 1 - tail)
    return confidences


def balanced(shown: Array) -> dict[bool, float]:
    """Weights of the two classes, n/(2n₊) and n/(2n₋): each class weighs as much as the other.

    >>> balanced(np.array([True, False, False, False]))
    {True: 2.0, False: 0.6666666666666666}
    """
    n = len(shown)
    positive = int(shown.sum())
    return {True: n / (2 * positive), False: n / (2 * (n - positive))}


@contextmanager
def may_stop_early() -> Iterator[None]:
    """Silence the warning of a solver that stops early; callers look at the solver's state instead."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def checked_cost(C: float) -> None:
    """Raise an error unless C is a positive number."""
    if not 0 < C < np.inf:
        raise AssayError(f"C={C} is not a positive number")


def checked_classes(y: Array) -> Array:
    """Turn classes, which may be 1 and 0, into True and False."""
    classes = np.asarray(y)
    if not np.isin(classes, (0, 1)).all():
        raise AssayError("y has entries other than True and False (1 and 0): give one class at a time")
    return classes.astype(bool)


def checked_matrix(X: Features, y: Array | None = None, columns: int | None = None) -> Any:
    """Check that features are a finite matrix, a row for each instance, and give it as floats (dense or csr).

    A matrix that is as it should be is given back itself, not a copy.
    """
    if isinstance(X, list) and X and np.ndim(X[0]) != 1:
        raise AssayError(f"features are a list of {len(X)} arrays: this classifier needs one vector for each instance")
    given: Any = X
    matrix = given.tocsr() if sparse.issparse(given) else np.asarray(given)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise AssayError(f"features are instances × columns, at least one of each, not {matrix.shape}")
    if matrix.dtype.kind not in "fiub":
        raise AssayError(f"features are numbers, not {matrix.dtype}")
    if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
        raise AssayError("the features have NaN or infinite values: mend the module that made them")
    if columns is not None and matrix.shape[1] != columns:
        raise AssayError(f"features have {matrix.shape[1]} columns, the classifier was fitted on {columns}")
    if y is not None and np.shape(y) != (matrix.shape[0],):
        raise AssayError(f"y has shape {np.shape(y)}, there are {matrix.shape[0]} instances: give one entry for each")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
