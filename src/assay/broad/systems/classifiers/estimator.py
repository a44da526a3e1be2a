"""Any scikit-learn estimator as a classifier of the broad evaluation, as it is.

A team's plan names the estimator's class, and its settings as parameters; ``grid`` among them lists what is tuned::

    classifier: {module: "sklearn.svm:LinearSVC", parameters: {max_iter: 5000, grid: {C: [0.1, 1.0, 10.0]}}}

An object of the same methods that is not from scikit-learn (``get_params``, ``set_params``, ``fit``, ``predict``) is
taken in the same way. scikit-learn itself is loaded with the first estimator: it takes a second, and most systems in
processes of their own need none.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.broad.systems.classifiers.classifier import (
    COSTS,
    HIGHEST,
    LOWEST,
    Classifier,
    Grid,
    checked_matrix,
    may_stop_early,
    squash,
)
from assay.core.errors import AssayError, nearest

# What is tuned where neither plan nor estimator says it: the weight of the data, or of the penalty, by the evaluators.
DEFAULT_GRIDS: dict[str, tuple[float, ...]] = {"C": COSTS, "alpha": tuple(1 / cost for cost in reversed(COSTS))}


class EstimatorClassifier(Classifier):
    """A scikit-learn estimator that is tuned, and answers with confidences (video) or ratings (text).

    Margins are the estimator's ``decision_function`` where it has one, else the probability of the action, else what it
    predicts. Ratings are those of a regressor; of a classifier with probabilities the expected rating Σ c·p(c), of any
    other the rating it predicts. Where a fold has one class only, nothing is learned and all instances are tied.

    Args:
        estimator: The estimator; a search over a grid (``GridSearchCV``) lends its estimator and its grid, and is
            tuned on the protocol's validation instances instead of its own.
        grid: Settings to tune, each with the values to try. By default the ``grid`` of the estimator, else costs from
            2⁻⁵ to 2¹⁵ for a setting ``C``, or their inverses for ``alpha``, else none.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
        >>> video = EstimatorClassifier(LogisticRegression(), {"C": [1.0]}).with_settings(C=1.0)
        >>> video.fit(X, np.array([False, False, True, True])).predict(X).round(2)
        array([0.17, 0.25, 0.75, 0.83])
    """

    def __init__(self, estimator: Any, grid: Grid | None = None) -> None:
        searched = getattr(estimator, "param_grid", None)
        if searched is not None and not isinstance(searched, Mapping):
            raise AssayError(f"{type(estimator).__name__}: param_grid is one mapping of settings to values")
        self.estimator = estimator if searched is None else estimator.estimator
        self.settings = dict(self.estimator.get_params())
        declared = grid if grid is not None else searched
        declared = declared if declared is not None else getattr(self.estimator, "grid", None)
        self.grid = {name: list(values) for name, values in (declared or self._default_grid()).items()}
        for name in self.grid:
            self._require_known(name)

    def with_settings(self, **chosen: Any) -> Self:
        """Make a fresh copy that has learned nothing, with some settings changed."""
        from sklearn.base import clone

        for name in chosen:
            self._require_known(name)
        fresh = copy.copy(self)
        for name in ("columns_", "constant_", "prevalence_", "ratings_"):
            fresh.__dict__.pop(name, None)
        fresh.estimator = clone(self.estimator, safe=False).set_params(**chosen)
        return fresh

    def fit(self, X: Features, y: Array) -> Self:
        """Learn from instances; y is of truth values for video, of ratings for text."""
        from sklearn.base import is_regressor

        matrix = self._taken(checked_matrix(X, y))
        self.columns_ = matrix.shape[1]
        self.constant_ = len(np.unique(y)) == 1
        self.prevalence_ = float(np.mean(y)) if y.dtype == bool else None
        self.rating_ = float(y[0])
        if not self.constant_:
            with may_stop_early():
                self.estimator.fit(matrix, y if y.dtype == bool or is_regressor(self.estimator) else np.rint(y))
        return self

    def margins(self, X: Features) -> Array:
        """Compute one raw value for each instance, before it is squashed or clipped."""
        matrix = self._checked(X)
        video = self.prevalence_ is not None
        if self.constant_:
            return np.full(matrix.shape[0], 0.0 if video else self.rating_)
        if video and hasattr(self.estimator, "decision_function"):
            return _vector(self.estimator.decision_function(matrix), self.estimator)
        if hasattr(self.estimator, "predict_proba"):
            p, classes = np.asarray(self.estimator.predict_proba(matrix)), np.asarray(self.estimator.classes_)
            return np.asarray(p[:, classes.tolist().index(True)] if video else p @ classes)
        return _vector(self.estimator.predict(matrix), self.estimator)

    def predict(self, X: Features) -> Array:
        """Predict confidences in [0, 1] (video), in the order of the margins, or ratings in [1, 5] (text)."""
        margins = self.margins(X)
        if self.prevalence_ is None:
            return np.clip(margins, LOWEST, HIGHEST)
        if self.constant_:
            return np.full_like(margins, self.prevalence_)
        probable = not hasattr(self.estimator, "decision_function") and hasattr(self.estimator, "predict_proba")
        return margins if probable else squash(margins)

    def _checked(self, X: Features) -> Any:
        if not hasattr(self, "columns_"):
            raise AssayError(f"{type(self.estimator).__name__} has not learned anything yet: call fit first")
        return self._taken(checked_matrix(X, columns=self.columns_))

    def _taken(self, matrix: Any) -> Any:
        """The matrix in a form that the estimator takes: dense where it takes no sparse one."""
        from sklearn.utils import get_tags

        try:
            takes_sparse = bool(get_tags(self.estimator).input_tags.sparse)
        except Exception:  # an object that is not from scikit-learn has no tags
            takes_sparse = True
        return matrix.toarray() if sparse.issparse(matrix) and not takes_sparse else matrix

    def _default_grid(self) -> Grid:
        named = [(name, name.rpartition("__")[2]) for name in self.settings]
        return dict(next(([(name, DEFAULT_GRIDS[last])] for name, last in named if last in DEFAULT_GRIDS), []))

    def _require_known(self, name: str) -> None:
        if name not in self.settings:
            raise AssayError(f"{type(self.estimator).__name__} has no setting {name!r}{nearest(name, self.settings)}")


def is_estimator(thing: Any) -> bool:
    """Whether something is an estimator of classes or values that lacks the contract of a `Classifier`.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.cluster import KMeans
    >>> is_estimator(Ridge()), is_estimator(KMeans())
    (True, False)
    """
    if hasattr(thing, "with_settings") or not all(hasattr(thing, m) for m in ("get_params", "set_params", "predict")):
        return False
    from sklearn.base import is_classifier, is_regressor

    try:
        return bool(is_classifier(thing) or is_regressor(thing))
    except Exception:  # no tags: it predicts, and is taken at its word unless it makes features
        return not hasattr(thing, "transform")


def _vector(values: Any, estimator: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise AssayError(f"{type(estimator).__name__} gives {array.shape}, not one number for each instance")
    return array
