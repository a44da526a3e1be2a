from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVR

from assay import AssayError
from assay.broad.systems.classifiers.classifier import COSTS
from assay.broad.systems.classifiers.linear import LinearSVM, LinearSVR, Logistic


@pytest.fixture
def shown():
    """Whether an action is shown: features, labels (one in five), new features."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 5 == 0
    X = rng.normal(size=(80, 6)) + y[:, None]
    return X[:60], y[:60], X[60:]


@pytest.fixture
def rated():
    """Ratings from 1 to 5 that depend on sparse features."""
    rng = np.random.default_rng(1)
    X = sparse.random(150, 20, 0.3, format="csr", rng=rng)
    score = X @ rng.normal(size=20)
    y = 1 + np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8])).astype(float)
    return X[:100], y[:100], X[100:]


# -- references -----------------------------------------------------------------------------------------


def test_linear_svm_minimises_its_objective(shown):
    X, y, _ = shown
    sign, share = np.where(y, 1, -1), np.where(y, 60 / (2 * y.sum()), 60 / (2 * (~y).sum()))
    extended = np.column_stack([X, np.ones(60)])  # the intercept is penalised too

    def objective(w):
        return w @ w / 2 + 0.5 * (share * np.maximum(0, 1 - sign * (extended @ w)) ** 2).sum()

    machine = LinearSVM(C=0.5).fit(X, y)
    ours = np.append(machine.weights_, machine.offset_)
    best = minimize(objective, np.zeros(7), options={"gtol": 1e-8})
    # LIBLINEAR stops at a gradient 1e-4 (times the rarer class's share) of the first.
    np.testing.assert_allclose(ours, best.x, atol=2e-3)
    assert machine.converged_


def test_logistic_is_one_against_the_rest_with_probabilities_that_sum_to_one(rated):
    X, y, new = rated
    theirs = OneVsRestClassifier(LogisticRegression(C=3.0, solver="liblinear")).fit(X, y)
    ours = Logistic(C=3.0).fit(X, y)
    np.testing.assert_allclose(ours.probabilities(new), theirs.predict_proba(new), atol=1e-12)
    np.testing.assert_allclose(ours.probabilities(new).sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(ours.predict(new), theirs.predict_proba(new) @ [1, 2, 3, 4, 5], atol=1e-12)
    np.testing.assert_array_equal(Logistic(C=3.0, most_likely=True).fit(X, y).predict(new), theirs.predict(new))


@pytest.mark.requirement("F3")
def test_svr_is_that_of_libsvm_with_a_linear_kernel(rated):
    X, y, new = rated
    for cost in (0.1, 1.0, 30.0):
        theirs = SVR(kernel="linear", C=cost, epsilon=0.2).fit(X.toarray(), y)
        ours = LinearSVR(C=cost, epsilon=0.2).fit(X, y)
        # LIBSVM stops when the conditions of the optimum hold to 1e-3; the intercept is free within that.
        np.testing.assert_allclose(ours.margins(new), theirs.predict(new.toarray()), atol=5e-3)


# -- closed forms ---------------------------------------------------------------------------------------


def test_svr_fits_a_line_within_epsilon():
    X = np.linspace(0, 2, 9)[:, None]
    machine = LinearSVR(C=1e3, epsilon=0.1).fit(X, 1 + 2 * X[:, 0])
    # The flattest line through the tube: from +ε at 0 to −ε at 2.
    np.testing.assert_allclose([machine.weights_[0], machine.offset_], [1.9, 1.1], atol=2e-3)


def test_svr_predictions_are_clipped():
    X = np.linspace(0, 1, 9)[:, None]
    machine = LinearSVR(C=1e3, epsilon=0).fit(X, 2 + 2 * X[:, 0])
    new = np.array([[-2.0], [0.5], [5.0], [9.0]])
    assert machine.predict(new).tolist() == [1, pytest.approx(3, abs=2e-3), 5, 5]
    np.testing.assert_allclose(machine.margins(new), [-2, 3, 12, 20], atol=0.05)


def test_probabilities_too_small_for_a_float_still_give_a_rating():
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    machine = Logistic(C=100).fit(np.repeat(X, 20, axis=0), np.repeat([1.0, 2, 4], 20))
    machine.offsets_ = np.full(3, -2000.0)  # all three round to zero
    np.testing.assert_allclose(machine.predict(np.zeros((1, 3))), 7 / 3, rtol=1e-12)


def test_a_solver_that_gives_up_says_so(rated):
    X, y, _ = rated
    assert LinearSVR(C=10.0).fit(X, y).converged_ and not LinearSVR(C=10.0, steps=5).fit(X, y).converged_


# -- missing classes ------------------------------------------------------------------------------------


def test_a_rating_that_no_instance_has_is_never_expected(rated):
    X, y, new = rated
    some = (y != 1) & (y != 3)
    machine = Logistic(C=10).fit(X[some], y[some])
    assert machine.ratings_.tolist() == [2, 4, 5] and not machine.constant_
    assert ((machine.predict(new) > 2) & (machine.predict(new) < 5)).all()
    most_likely = machine.with_settings(most_likely=True).fit(X[some], y[some])
    assert set(most_likely.predict(new)) <= {2, 4, 5}


@pytest.mark.parametrize("kind", [Logistic, LinearSVR])
def test_one_rating_only_is_the_answer(rated, kind):
    X, y, new = rated
    machine = kind().fit(X, np.full_like(y, 4.0))
    np.testing.assert_allclose(machine.predict(new), 4, atol=1e-12)


def test_two_ratings_are_one_logistic_regression(rated):
    X, y, new = rated
    high = np.where(y > 3, 5.0, 2.0)
    theirs = LogisticRegression(solver="liblinear").fit(X, high)
    # Each direction is solved to LIBLINEAR's own tolerance.
    np.testing.assert_allclose(Logistic().fit(X, high).probabilities(new), theirs.predict_proba(new), atol=1e-3)


@pytest.mark.parametrize("present", [False, True])
def test_one_class_only_gives_a_constant(shown, present):
    X, _, new = shown
    machine = LinearSVM().fit(X, np.full(60, present))
    assert machine.constant_ and (machine.predict(new) == present).all()


# -- properties -----------------------------------------------------------------------------------------


def test_confidences_rank_as_margins(shown):
    X, y, new = shown
    machine = LinearSVM().fit(X, y)
    confidences = machine.predict(new)
    assert (confidences.argsort() == machine.margins(new).argsort()).all()
    assert ((confidences > 0) & (confidences < 1)).all()


@pytest.mark.parametrize("kind", [LinearSVM, Logistic, LinearSVR])
def test_dense_sparse_single_precision_and_one_by_one_agree(rated, kind):
    X, y, new = rated
    target = y > 3 if kind is LinearSVM else y
    machine = kind().fit(X, target)
    expected = machine.margins(new)
    np.testing.assert_allclose(kind().fit(X.toarray(), target).margins(new.toarray()), expected, atol=1e-3)
    np.testing.assert_allclose(machine.margins(new.astype(np.float32)), expected, rtol=1e-5)
    np.testing.assert_allclose(np.concatenate([machine.margins(row) for row in new]), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [LinearSVM, Logistic, LinearSVR])
def test_costs_are_tuned_on_fresh_copies(rated, kind):
    X, y, new = rated
    target = y > 3 if kind is LinearSVM else y
    machine = kind()
    assert machine.grid == {"C": COSTS}
    tried = [machine.with_settings(C=cost).fit(X, target).margins(new) for cost in (0.03, 3.0)]
    assert not np.allclose(*tried) and not hasattr(machine, "columns_")
    np.testing.assert_array_equal(tried[1], kind(C=3.0).fit(X, target).margins(new))


# -- the rest -------------------------------------------------------------------------------------------

ONES, RATINGS = np.ones((4, 2)), np.array([1.0, 2, 3, 5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearSVM(C=-1), "C=-1 is not a positive number"),
        (lambda: LinearSVR(epsilon=-1), "epsilon=-1 must not be negative"),
        (lambda: LinearSVR().fit(ONES * np.nan, RATINGS), "NaN or infinite values: mend the module"),
        (lambda: Logistic().fit(sparse.csr_matrix(ONES * np.inf), RATINGS), "NaN or infinite values"),
        (lambda: LinearSVR().fit(ONES, RATINGS * np.nan), "missing or not from 1 to 5"),
        (lambda: LinearSVR().fit(ONES, RATINGS - 1), "missing or not from 1 to 5"),
        (lambda: Logistic().fit(ONES, RATINGS - 0.5 * (RATINGS > 2)), "not whole numbers"),
        (lambda: Logistic().predict(ONES), "Logistic has not learned anything yet"),
        (lambda: LinearSVR().fit(ONES, RATINGS).predict(ONES * np.nan), "NaN"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
