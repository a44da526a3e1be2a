from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.svm import SVC

from assay import AssayError
from assay.broad.data.violation import NotApplicable
from assay.broad.systems.classifiers import svm
from assay.broad.systems.classifiers.classifier import squash
from assay.broad.systems.classifiers.svm import SVM_GRID, KernelSVM


@pytest.fixture
def task():
    """Noisy histograms, one in four positive; the last 30 are not for training."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 4 == 0
    X = rng.poisson(2.0 + y[:, None] * rng.uniform(0, 3, 12)).astype(float)
    return X[:60], y[:60], X[60:]


# -- closed forms ---------------------------------------------------------------------------------------


def test_two_points_have_the_widest_margin_between_them():
    """x = ±2 on a line: w = 1/2, b = 0."""
    machine = KernelSVM(C=1e3).fit(np.array([[2.0], [-2.0]]), np.array([True, False]))
    # LIBSVM stops when the conditions of the optimum hold to 1e-3.
    np.testing.assert_allclose(machine.margins(np.array([[4.0], [0.0], [-3.0]])), [2, 0, -1.5], atol=2e-3)


def test_rare_positives_weigh_as_much_as_all_negatives():
    """At a small cost every instance is inside the margin, so its dual weight is C·s: C·n/2 in all for each class."""
    y = np.array([True] + [False] * 9)
    machine = KernelSVM(C=0.01).fit(np.random.default_rng(1).normal(size=(10, 3)), y)
    shown = y[machine.support_]
    np.testing.assert_allclose(machine.dual_[shown], [0.01 * 10 / 2], rtol=1e-9)
    np.testing.assert_allclose(machine.dual_[~shown], np.full(9, -0.01 * 10 / 18), rtol=1e-9)


# -- references -----------------------------------------------------------------------------------------


def test_linear_margins_are_those_of_libsvm(task):
    X, y, new = task
    theirs = SVC(kernel="linear", C=2.0, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(KernelSVM(C=2.0).fit(X, y).margins(new), theirs.decision_function(new), atol=2e-3)


def test_chi2_margins_are_those_of_a_kernel_written_out(task):
    X, y, new = task
    far = -additive_chi2_kernel(X, X) / 2
    scale = far[~np.eye(60, dtype=bool)].mean()

    def kernel(a, b):
        return np.exp(additive_chi2_kernel(a, b) / 2 / scale)

    theirs = SVC(kernel=kernel, C=8.0, class_weight="balanced").fit(X, y)
    ours = KernelSVM("chi2", C=8.0).fit(X, y)
    assert ours.scale_ == pytest.approx(scale, rel=1e-12)
    np.testing.assert_allclose(ours.margins(new), theirs.decision_function(new), atol=2e-3)


@pytest.mark.parametrize("kernel", ["linear", "chi2", "intersection"])
def test_sparse_features_give_the_same_margins_and_one_row_the_same_as_many(task, kernel):
    X, y, new = task
    dense = KernelSVM(kernel).fit(X, y)
    thin = KernelSVM(kernel).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.margins(sparse.csr_matrix(new)), dense.margins(new), atol=2e-3)
    alone = np.concatenate([dense.predict(new[i : i + 1]) for i in range(len(new))])
    np.testing.assert_allclose(alone, dense.predict(new), rtol=1e-12)


def test_a_pickle_predicts_the_same(task):
    X, y, new = task
    machine = KernelSVM("chi2").fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict(new), machine.predict(new))


def test_a_solver_that_gives_up_says_so(task):
    X, y, _ = task
    assert KernelSVM(C=10.0).fit(X, y).converged_ and not KernelSVM(C=10.0, steps=5).fit(X, y).converged_


# -- confidences ----------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=20))
@pytest.mark.requirement("G1")
def test_confidences_are_in_the_order_of_the_margins(values):
    margins = np.unique(np.round(values, 6))
    confidences = squash(margins)
    assert (np.diff(confidences) > 0).all() and ((confidences > 0) & (confidences < 1)).all()


def test_a_logistic_function_would_make_ties_where_this_one_does_not():
    margins = np.array([40.0, 41.0, 9999.0, 9999.000001])
    assert len(set(1 / (1 + np.exp(-margins)))) == 1 and len(set(squash(margins))) == 4


def test_predictions_are_squashed_margins(task):
    X, y, new = task
    machine = KernelSVM("intersection").fit(X, y)
    margins, confidences = machine.margins(new), machine.predict(new)
    assert (margins.argsort() == confidences.argsort()).all() and not machine.constant_
    np.testing.assert_array_equal(confidences > 0.5, margins > 0)


@pytest.mark.parametrize("shown", [False, True])
def test_one_class_only_gives_a_constant_that_is_its_prevalence(task, shown):
    X, _, new = task
    machine = KernelSVM("chi2").fit(X, np.full(60, shown))
    assert machine.constant_
    assert (machine.predict(new) == float(shown)).all() and (machine.margins(new) == 0).all()


# -- tuning ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("F1")
def test_grids_are_the_ones_of_the_specification():
    assert SVM_GRID["kernel"] == ("linear", "chi2", "intersection") and KernelSVM().grid is SVM_GRID
    assert np.log2(SVM_GRID["C"]).tolist() == list(range(-5, 16, 2))


def test_a_search_over_costs_and_classes_compares_instances_once(task, monkeypatch):
    X, y, new = task
    calls = []
    slow = svm._COMPARE["chi2"]
    monkeypatch.setitem(svm._COMPARE, "chi2", lambda a, b: calls.append(len(a)) or slow(a, b))
    searched = [KernelSVM().with_settings(kernel="linear")]
    for labels in (y, ~y):
        for cost in (0.1, 1.0, 10.0):
            searched.append(searched[0].with_settings(kernel="chi2", C=cost).fit(X, labels))
            searched[-1].predict(new)
    assert calls == [60, 30]
    alone = KernelSVM("chi2", C=10.0).fit(X.copy(), ~y)
    np.testing.assert_array_equal(searched[-1].margins(new), alone.margins(new))


def test_a_copy_with_settings_has_learned_nothing(task):
    X, y, new = task
    machine = KernelSVM(C=4.0).fit(X, y)
    fresh = machine.with_settings(kernel="chi2")
    assert (fresh.kernel, fresh.C, machine.kernel) == ("chi2", 4.0, "linear")
    with pytest.raises(AssayError, match="KernelSVM has not learned anything yet"):
        fresh.predict(new)


# -- the rest -------------------------------------------------------------------------------------------

ONES = np.ones((4, 2))
HALF = np.array([1, 1, 0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KernelSVM("chi"), "kernel='chi' is unknown; did you mean 'chi2'"),
        (lambda: KernelSVM(C=0), "C=0 is not a positive number"),
        (lambda: KernelSVM().with_settings(cost=3), "KernelSVM has no setting 'cost'"),
        (lambda: KernelSVM().fit(ONES, np.array([1, 2, 0, 0])), "entries other than True and False"),
        (lambda: KernelSVM().fit(ONES, np.array([1, np.nan, 0, 0])), "entries other than True and False"),
        (lambda: KernelSVM().fit(ONES, HALF[:3]), r"y has shape \(3,\), there are 4 instances"),
        (lambda: KernelSVM().fit(ONES * np.nan, HALF), "NaN or infinite"),
        (lambda: KernelSVM().fit(ONES[:0], HALF[:0]), r"not \(0, 2\)"),
        (lambda: KernelSVM().fit([ONES, ONES], HALF[:2]), "list of 2 arrays"),
        (lambda: KernelSVM().fit(ONES.astype(str), HALF), "features are numbers"),
        (lambda: KernelSVM().fit(ONES, HALF).predict(np.ones((1, 3))), "3 columns, the classifier was fitted on 2"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()


def test_histogram_kernels_are_not_applicable_to_negative_features():
    with pytest.raises(NotApplicable, match="negative values"):
        KernelSVM("chi2").fit(-ONES, HALF)
