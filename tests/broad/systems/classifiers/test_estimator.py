"""Plain scikit-learn estimators are classifiers of the broad evaluation, as they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from assay import AssayError
from assay.broad.metrics import METRICS
from assay.broad.run.tuning import train_and_optimize_classifier
from assay.broad.systems.classifiers.classifier import COSTS, squash
from assay.broad.systems.classifiers.estimator import EstimatorClassifier
from assay.broad.systems.team import Module

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
SHOWN = X[:, 0] + 0.5 * RNG.normal(size=60) > 0
RATINGS = np.clip(np.rint(3 + X[:, 0]), 1, 5)


@pytest.mark.requirement("F9")
@pytest.mark.parametrize(
    ("name", "parameters", "grid"),
    [
        ("sklearn.svm:LinearSVC", {}, {"C": list(COSTS)}),
        ("sklearn.svm:LinearSVC", {"grid": {"C": [0.5, 2.0]}}, {"C": [0.5, 2.0]}),
        ("sklearn.linear_model:Ridge", {}, {"alpha": [1 / cost for cost in reversed(COSTS)]}),
        ("sklearn.naive_bayes:GaussianNB", {"var_smoothing": 1e-8}, {}),
    ],
)
def test_a_module_that_is_an_estimator_is_tuned_by_the_plans_grid_or_the_evaluators(name, parameters, grid):
    classifier = Module(name, parameters).build()
    assert classifier.grid == grid
    y, metric = (RATINGS, METRICS["RMSE"]) if "Ridge" in name else (SHOWN, METRICS["MAP"])
    tuned = train_and_optimize_classifier(classifier, X[:40], y[:40], X[40:], y[40:], metric)
    assert set(tuned.chosen) == set(grid)
    predicted = tuned.classifier.predict(X)
    assert predicted.min() >= (1 if "Ridge" in name else 0) and predicted.max() <= (5 if "Ridge" in name else 1)


def test_a_search_lends_its_estimator_and_its_grid_and_not_its_own_folds():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    classifier = EstimatorClassifier(GridSearchCV(pipeline, {"logisticregression__C": [0.1, 10.0]}))
    assert classifier.grid == {"logisticregression__C": [0.1, 10.0]}
    fitted = classifier.with_settings(logisticregression__C=0.1).fit(X, SHOWN)
    assert not hasattr(fitted.estimator, "best_params_")
    assert EstimatorClassifier(pipeline).grid == {"logisticregression__C": list(COSTS)}


def test_confidences_are_squashed_margins_or_probabilities():
    margins = LinearSVC().fit(X, SHOWN).decision_function(X)
    np.testing.assert_allclose(EstimatorClassifier(LinearSVC()).fit(X, SHOWN).predict(X), squash(margins))
    p = GaussianNB().fit(X, SHOWN).predict_proba(X)[:, 1]
    np.testing.assert_allclose(EstimatorClassifier(GaussianNB()).fit(X, SHOWN).predict(X), p)


def test_ratings_are_those_of_a_regressor_or_the_expected_ones_of_a_classifier():
    expected = np.clip(Ridge().fit(X, RATINGS).predict(X), 1, 5)
    np.testing.assert_allclose(EstimatorClassifier(Ridge()).fit(X, RATINGS).predict(X), expected)
    model = LogisticRegression().fit(X, RATINGS)
    expected = model.predict_proba(X) @ model.classes_
    np.testing.assert_allclose(EstimatorClassifier(LogisticRegression()).fit(X, RATINGS).predict(X), expected)
    chosen = EstimatorClassifier(LinearSVC()).fit(X, RATINGS).predict(X)
    np.testing.assert_array_equal(chosen, LinearSVC().fit(X, RATINGS).predict(X))


def test_one_class_only_ties_all_instances():
    shown = EstimatorClassifier(LinearSVC()).fit(X, np.zeros(60, dtype=bool))
    assert shown.constant_ and set(shown.predict(X)) == {0.0} and set(shown.margins(X)) == {0.0}
    rated = EstimatorClassifier(LogisticRegression()).fit(X, np.full(60, 4.0))
    assert set(rated.predict(X)) == {4.0}


def test_sparse_features_are_made_dense_where_an_estimator_takes_no_others():
    given = sparse.csr_matrix(np.maximum(X, 0))
    for estimator in (GaussianNB(), LinearSVC()):
        fitted = EstimatorClassifier(estimator).fit(given, SHOWN)
        np.testing.assert_allclose(
            fitted.predict(given), EstimatorClassifier(estimator).fit(np.maximum(X, 0), SHOWN).predict(given), atol=1e-3
        )


def test_copies_are_fresh_and_can_be_pickled():
    classifier = EstimatorClassifier(LinearRegression())
    assert classifier.grid == {}
    fitted = classifier.with_settings().fit(X, RATINGS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    with pytest.raises(AssayError, match="LinearRegression has not learned anything yet"):
        fitted.with_settings().predict(X)


def test_mistakes_are_named():
    with pytest.raises(AssayError, match="LinearSVC has no setting 'c'; known: 'C'"):
        Module("sklearn.svm:LinearSVC", {"grid": {"c": [1]}}).build()
    with pytest.raises(AssayError, match="unknown parameter 'colour'"):
        Module("sklearn.svm:LinearSVC", {"colour": 1}).build()
