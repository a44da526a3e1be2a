from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from assay import AssayError
from assay.broad.systems.classifiers import svm
from assay.broad.systems.classifiers.linear import LinearSVM
from assay.broad.systems.classifiers.svm import KernelSVM
from assay.broad.systems.classifiers.windows import Windowed, windows


@pytest.fixture
def clips():
    """Bags of one to four windows; the last ten are not for training."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3 == 0
    bags = [rng.normal(size=(rng.integers(1, 5), 4)) + shown for shown in y]
    return bags[:30], y[:30], bags[30:]


# -- windows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (1, [(0, 1)]),
        (29, [(0, 29)]),
        (30, [(0, 30)]),
        (59, [(0, 59)]),
        (60, [(0, 30), (30, 60)]),
        (75, [(0, 30), (30, 75)]),
    ],
)
def test_thirty_frames_each_and_the_remainder_joins_the_last(frames, expected):
    assert windows(frames) == expected


def test_windows_may_overlap_or_leave_gaps():
    assert windows(10, size=4, hop=2) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert windows(11, size=4, hop=2)[-1] == (6, 11)
    assert windows(10, size=2, hop=4) == [(0, 2), (4, 6), (8, 10)]


@given(st.integers(1, 200), st.integers(1, 40), st.data())
def test_windows_cover_the_clip(frames, size, data):
    hop = data.draw(st.integers(1, size))
    spans = windows(frames, size, hop)
    assert set(range(frames)) == {frame for start, end in spans for frame in range(start, end)}
    assert all(end - start == size for start, end in spans[:-1])
    last = spans[-1][1] - spans[-1][0]
    assert last == frames if frames < size else size <= last < size + hop


# -- clips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", [LinearSVM(), KernelSVM(C=2.0)])
@pytest.mark.requirement("F4")
def test_a_clip_scores_as_its_best_window(clips, classifier):
    bags, y, new = clips
    pooled = Windowed(classifier).fit(bags, y)
    plain = classifier.with_settings().fit(np.concatenate(bags), np.repeat(y, [len(bag) for bag in bags]))
    # Sums over rows of a matrix product depend on its size in the last bits.
    np.testing.assert_allclose(pooled.margins(new), [plain.margins(bag).max() for bag in new], rtol=1e-10)
    np.testing.assert_allclose(pooled.predict(new), [plain.predict(bag).max() for bag in new], rtol=1e-10)
    assert not hasattr(classifier, "columns_")  # the one given has learned nothing


def test_one_window_each_is_the_plain_classifier(clips):
    bags, y, new = clips
    first, others = [bag[:1] for bag in bags], [bag[:1] for bag in new]
    plain = LinearSVM().fit(np.concatenate(first), y)
    pooled = Windowed(LinearSVM()).fit(first, y)
    np.testing.assert_array_equal(pooled.predict(others), plain.predict(np.concatenate(others)))
    matrix = Windowed(LinearSVM()).fit(np.concatenate(first), y)
    np.testing.assert_array_equal(matrix.predict(np.concatenate(others)), pooled.predict(others))


@given(st.integers(0, 2**32 - 1))
def test_another_window_never_lowers_a_score(seed):
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(rng.integers(1, 4), 3)) for _ in range(8)]
    pooled = Windowed(LinearSVM()).fit(bags, np.arange(8) % 2 == 0)
    longer = [np.concatenate([bag, rng.normal(size=(1, 3)) * 3]) for bag in bags]
    assert (pooled.margins(longer) >= pooled.margins(bags) - 1e-12).all()
    assert (pooled.predict(longer) >= pooled.predict(bags) - 1e-12).all()


def test_the_order_of_windows_does_not_matter(clips):
    bags, y, new = clips
    pooled = Windowed(LinearSVM()).fit(bags, y)
    np.testing.assert_allclose(pooled.predict([bag[::-1] for bag in new]), pooled.predict(new), rtol=1e-12)


def test_sparse_bags_are_dense_bags(clips):
    bags, y, new = clips
    thin = Windowed(LinearSVM()).fit([sparse.csr_matrix(bag) for bag in bags], y)
    dense = Windowed(LinearSVM()).fit(bags, y)
    np.testing.assert_allclose(thin.margins([sparse.csr_matrix(bag) for bag in new]), dense.margins(new), atol=1e-3)


def test_settings_are_those_of_the_classifier_and_kernels_are_shared(clips, monkeypatch):
    bags, y, new = clips
    calls = []
    slow = svm._COMPARE["linear"]
    monkeypatch.setitem(svm._COMPARE, "linear", lambda a, b: calls.append(len(a)) or slow(a, b))
    pooled = Windowed(KernelSVM())
    assert pooled.grid == KernelSVM().grid
    for cost in (0.1, 1.0, 10.0):
        chosen = pooled.with_settings(C=cost).fit(bags, y)
        chosen.predict(new)
        assert cost == chosen.classifier.C
    assert len(calls) == 2
    with pytest.raises(AssayError, match="KernelSVM has no setting 'size'"):
        pooled.with_settings(size=3)


def test_one_class_only_is_constant(clips):
    bags, y, new = clips
    pooled = Windowed(LinearSVM()).fit(bags, np.zeros(30))
    assert pooled.constant_ and (pooled.predict(new) == 0).all()
    assert not Windowed(LinearSVM()).fit(bags, y).constant_


# -- the rest -------------------------------------------------------------------------------------------

BAGS = [np.ones((2, 3)), np.zeros((1, 3))]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: windows(0), "frames=0, size=30 and hop=30 must be at least 1"),
        (lambda: windows(5, 2, 0), "hop=0"),
        (lambda: Windowed(LinearSVM()).fit([], np.array([])), "no clips"),
        (lambda: Windowed(LinearSVM()).fit([*BAGS, np.ones((0, 3))], np.ones(3)), r"clip 2 have shape \(0, 3\)"),
        (lambda: Windowed(LinearSVM()).fit([*BAGS, np.ones((1, 4))], np.ones(3)), r"clip 2 have shape \(1, 4\)"),
        (lambda: Windowed(LinearSVM()).fit([np.ones(3)], np.ones(1)), r"clip 0 have shape \(3,\)"),
        (lambda: Windowed(LinearSVM()).fit(BAGS, np.ones(3)), "there are 2 clips"),
        (lambda: Windowed(LinearSVM()).predict(BAGS), "Windowed has not learned anything yet"),
        (lambda: Windowed(LinearSVM()).fit([np.full((2, 3), np.nan)], np.ones(1)), "NaN"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
