from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from assay.broad.systems.classifiers.linear import LinearSVM, LinearSVR
from assay.broad.systems.classifiers.remembered import Remembered
from assay.broad.systems.classifiers.svm import KernelSVM
from assay.broad.systems.classifiers.windows import Windowed


def test_work_on_the_same_arrays_is_done_once():
    remembered, a, b = Remembered(), np.ones(3), np.ones(3)
    calls = []
    for arrays in [(a, b), (a, b), (b, a), (a, a)]:
        remembered("sum", arrays, lambda arrays=arrays: calls.append(arrays) or np.zeros(2))
    remembered("other", (a, b), lambda: calls.append("other") or np.zeros(2))
    assert len(calls) == 4 and len(remembered) == 4


def test_an_array_in_the_place_of_a_dead_one_is_not_taken_for_it():
    remembered = Remembered()
    for i in range(50):  # without references kept, CPython gives several of these the same id
        assert remembered("value", (np.full(10, i),), lambda i=i: np.array(i)) == i


def test_what_is_kept_is_bounded_and_the_least_recently_used_goes_first():
    remembered = Remembered(limit=3 * 16_000)
    a, b, c, d = (np.zeros(1000) for _ in range(4))
    for array in (a, b, c, a, d):
        remembered("copy", (array,), array.copy)
    assert len(remembered) == 3
    assert remembered("copy", (a,), lambda: None) is not None  # still there
    assert remembered("copy", (b,), lambda: "again") == "again"


def test_copies_and_pickles_begin_empty():
    remembered = Remembered(limit=77)
    remembered("one", (np.zeros(1),), lambda: 1)
    for other in (copy.deepcopy(remembered), pickle.loads(pickle.dumps(remembered))):
        assert len(other) == 0 and other.limit == 77


@pytest.mark.parametrize("make", [LinearSVR, KernelSVM, lambda: Windowed(LinearSVM())])
def test_classifiers_share_what_they_remember_with_their_copies_only(make):
    first = make()
    for other in (first.with_settings(C=2.0), first.with_settings(C=2.0).with_settings(C=4.0)):
        assert other._remembered is first._remembered
    assert make()._remembered is not first._remembered
