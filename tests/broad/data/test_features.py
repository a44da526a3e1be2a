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
    (path,) = (tmp_path / "features" / "one").glob("validation-*")
    path.write_bytes(path.read_bytes()[:100] if damage == "half" else damage)
    assert store.read("one") is None
    assert f"{path} is damaged (" in caplog.text and "the features are computed anew" in caplog.text
    store.write("one", dict.fromkeys(PARTS, MATRIX))
    np.testing.assert_array_equal(store.read("one")["validation"], MATRIX)


def test_features_that_are_not_there_are_no_damage(tmp_path, caplog):
    store = FeatureStore(Folder(str(tmp_path)))
    store.write("one", dict.fromkeys(PARTS, MATRIX))
    (missing,) = (tmp_path / "features" / "one").glob("test-*")
    missing.unlink()
    assert store.read("one") is None and store.read("two") is None and not caplog.records


def test_what_two_runs_write_at_the_same_time_is_not_mixed(tmp_path):
    """Each shows other test instances a second time: answers to those of one are no answers to those of the other."""

    def known(number: int) -> dict:
        return dict.fromkeys(PARTS, MATRIX) | {"few": MATRIX[[number]], "which": np.array([number])}

    def other_run(number: int) -> None:
        FeatureStore(Folder(str(tmp_path))).write("one", known(number))

    class BesideAnother(Folder):
        def write(self, name, *more):
            if not name.endswith("whole.json"):
                other_run(0)
            super().write(name, *more)

        def read(self, name):
            content = super().read(name)
            other_run(1)
            return content

    FeatureStore(BesideAnother(str(tmp_path))).write("one", known(2))
    for folder in (Folder(str(tmp_path)), BesideAnother(str(tmp_path))):
        found = FeatureStore(folder).read("one")
        np.testing.assert_array_equal(found["test"][found["which"]], found["few"])
