"""Simple linear classifiers: LIBLINEAR's SVM and logistic regression, LIBSVM's ε-support vector regression.

Plan §5.3.2. In LIBLINEAR the intercept is penalised with the weights, in LIBSVM it is free.
``converged_`` is False where either gave up before it was done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVR, LinearSVC

from assay.broad.data.dataset import Array, Features
from assay.broad.systems.classifiers import kernels
from assay.broad.systems.classifiers.classifier import (
    COSTS,
    STEPS,
    BinaryClassifier,
    Grid,
    Rater,
    balanced,
    checked_cost,
    may_stop_early,
)
from assay.broad.systems.classifiers.remembered import Remembering
from assay.core.errors import AssayError

COST_GRID: Grid = {"C": COSTS}
ROWS = 65_536  # number of dense rows that are multiplied at a time


@dataclass(eq=False)
class LinearSVM(BinaryClassifier):
    """LIBLINEAR's support vector machine with squared hinge loss (−s 2).

    min ½‖(w, b)‖² + C Σ s(yᵢ)·max(0, 1 − yᵢ(w·xᵢ + b))², with s(y) = n/(2n₊) or n/(2n₋).

    Args:
        C: Cost of margins below 1.
        grid: Settings to tune, each with the values to try.

    Example:
        >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]])
        >>> LinearSVM().fit(X, np.array([1, 1, 0, 0])).margins(X).round(2)
        array([ 1.6,  0.8, -0.8, -1.6])
    """

    C: float = 1.0
    grid: Grid = field(default_factory=lambda: COST_GRID, repr=False)

    def __post_init__(self) -> None:
        checked_cost(self.C)

    def _learn(self, X: Any, y: Array) -> None:
        machine = LinearSVC(C=self.C, dual=False, class_weight=balanced(y))
        with may_stop_early():
            machine.fit(X, y)
        self.converged_ = bool(machine.n_iter_ < machine.max_iter)
        self.weights_ = machine.coef_[0]
        self.offset_ = machine.intercept_[0]

    def _values(self, X: Any) -> Array:
        return np.asarray(product(X, self.weights_) + self.offset_)


@dataclass(eq=False)
class Logistic(Rater):
    """LIBLINEAR's logistic regression (−s 0) of each rating against the others; gives the expected rating Σ c·p(c).

    min ½‖(w, b)‖² + C Σ log(1 + exp(−yᵢ(w·xᵢ + b))) for each rating c; the probabilities p(c) are made to sum to 1.
    A rating that no training instance has is never expected; where all have the same one, it is the answer.

    Args:
        C: Weight of the training instances' loss against the penalty on large weights.
        most_likely: Whether to give the most probable rating instead of the expected one.
        grid: Settings to tune, each with the values to try.

    Example:
        >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
        >>> Logistic(C=100).fit(X, np.array([1, 1, 5, 5])).predict(np.array([[-1.0], [0.0], [1.0]])).round(2)
        array([1.08, 3.  , 4.92])
    """

    C: float = 1.0
    most_likely: bool = False
    grid: Grid = field(default_factory=lambda: COST_GRID, repr=False)

    def __post_init__(self) -> None:
        checked_cost(self.C)

    def _learn(self, X: Any, y: Array) -> None:
        self.ratings_ = np.unique(y)
        if not np.equal(np.mod(self.ratings_, 1), 0).all():
            raise AssayError("y has ratings that are not whole numbers: a classifier of ratings needs 1, 2, 3, 4, 5")
        self.constant_ = len(self.ratings_) == 1
        self.converged_ = True
        self.weights_ = np.zeros((X.shape[1], len(self.ratings_)))
        self.offsets_ = np.zeros(len(self.ratings_))
        for j, rating in enumerate(self.ratings_ if not self.constant_ else ()):
            machine = LogisticRegression(C=self.C, solver="liblinear", max_iter=1000)
            with may_stop_early():
                machine.fit(X, y == rating)
            self.converged_ &= bool(machine.n_iter_[0] < machine.max_iter)
            self.weights_[:, j] = machine.coef_[0]
            self.offsets_[j] = machine.intercept_[0]

    def probabilities(self, X: Features) -> Array:
        """Compute the probabilities p(c) of the ratings in ``ratings_``, for each instance."""
        # In logarithms, because all of them can be too small for a float before they are made to sum to 1.
        return np.asarray(softmax(log_expit(product(self._checked(X), self.weights_) + self.offsets_), axis=1))

    def _values(self, X: Any) -> Array:
        p = self.probabilities(X)
        return np.asarray(self.ratings_[p.argmax(axis=1)] if self.most_likely else p @ self.ratings_)


@dataclass(eq=False)
class LinearSVR(Remembering, Rater):
    """LIBSVM's ε-support vector regression with a linear kernel (−s 3 −t 0).

    min ½‖w‖² + C Σ max(0, |yᵢ − w·xᵢ − b| − ε); predictions are w·x + b, whatever the number of support vectors.

    Args:
        C: Cost of errors larger than ε.
        epsilon: Largest error ε that costs nothing.
        steps: Number of steps after which LIBSVM gives up; its own limit is 10,000,000, which takes minutes where 1,000
            instances have fewer columns and C is large.
        grid: Settings to tune, each with the values to try.

    Example:
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> LinearSVR(C=100, epsilon=0).fit(X, np.array([1, 2, 3])).margins(np.array([[0.5], [9.0]])).round(3)
        array([ 1.5, 10. ])
    """

    C: float = 1.0
    epsilon: float = 0.1
    steps: int = STEPS
    grid: Grid = field(default_factory=lambda: COST_GRID, repr=False)

    def __post_init__(self) -> None:
        checked_cost(self.C)
        if not self.epsilon >= 0:
            raise AssayError(f"epsilon={self.epsilon} must not be negative")

    def _learn(self, X: Any, y: Array) -> None:
        # Inner products from one matrix product, not pair by pair inside LIBSVM, and only once for all of a grid.
        products = self._remembered("linear", (X,), lambda: kernels.linear(X, X))
        machine = SVR(kernel="precomputed", C=self.C, epsilon=self.epsilon, max_iter=self.steps)
        with may_stop_early():
            machine.fit(products, y)
        self.converged_ = machine.fit_status_ == 0
        self.weights_ = X[machine.support_].T @ machine.dual_coef_[0]
        self.offset_ = machine.intercept_[0]

    def _values(self, X: Any) -> Array:
        return np.asarray(product(X, self.weights_) + self.offset_)


def product(X: Any, weights: Array) -> Array:
    """Multiply features by weights, many dense rows a part at a time: NumPy copies rows that are not float64."""
    if sparse.issparse(X) or X.shape[0] <= ROWS or X.dtype == weights.dtype:
        return np.asarray(X @ weights)
    return np.concatenate([X[first : first + ROWS] @ weights for first in range(0, X.shape[0], ROWS)])
