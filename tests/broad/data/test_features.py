from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from assay.broad.data.features import PARTS, FeatureStore, dense
from assay.core.folder import Folder

MATRIX = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("features", [MATRIX, sparse.csr_matrix(MATRIX), MATRIX[:, 0]])
def test_a_matrix_is_one_array(features):
    (found,) = dense(features)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, MATRIX if features.ndim == 2 else MATRIX[:, 0])


def test_instances_of_different_sizes_stay_apart():
    clips = [np.zeros((2, 3)), np.zeros((4, 3))]
    assert dense(clips) is clips


def test_features_are_forgotten_and_learners_stay(tmp_path):
    store = FeatureStore(Folder(str(tmp_path)))
    store.forget()  # there is nothing yet
    for key in ("one", "two"):
        store.write(key, dict.fromkeys(PARTS, MATRIX))
    learner = tmp_path / "features" / "one.learner"
    learner.write_bytes(b"learned")
    np.testing.assert_array_equal(store.read("one")["test"], MATRIX)
    store.forget()
    assert store.read("one") is None
    assert list((tmp_path / "features").iterdir()) == [learner]


@pytest.mark.parametrize("damage", [b"", b"garbage", "half"])
def test_a_damaged_file_is_named_and_its_features_are_computed_anew(tmp_path, caplog, damage):
    store = FeatureStore(Folder(str(tmp_path)))
    store.write("one", dict.fromkeys(PARTS, MATRIX))
    path = tmp_path / "features" / "one" / "validation"
    path.write_bytes(path.read_bytes()[:100] if damage == "half" else damage)
    assert store.read("one") is None
    assert f"{path} is damaged (" in caplog.text and "the features are computed anew" in caplog.text
    store.write("one", dict.fromkeys(PARTS, MATRIX))
    np.testing.assert_array_equal(store.read("one")["validation"], MATRIX)


def test_features_that_are_not_there_are_no_damage(tmp_path, caplog):
    store = FeatureStore(Folder(str(tmp_path)))
    store.write("one", dict.fromkeys(PARTS, MATRIX))
    (tmp_path / "features" / "one" / "test").unlink()
    assert store.read("one") is None and store.read("two") is None and not caplog.records
