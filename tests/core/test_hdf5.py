"""HDF5 files are read by another process first, because the library may crash or hang on damaged ones."""

from __future__ import annotations

import numpy as np
import pytest

from assay import AssayError
from assay.core import hdf5
from assay.core.hdf5 import open_hdf5

h5py = pytest.importorskip("h5py")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.hdf5"
    with h5py.File(path, "w") as out:
        out.attrs["layer_names"] = ["a", "b"]
        out["a/kernel"] = np.arange(6.0).reshape(2, 3)
    return path


def test_a_whole_file_is_opened(file):
    with open_hdf5(file, "weights", "this test") as opened:
        assert opened["a/kernel"][1].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("child", "said"),
    [
        ("import time; time.sleep(600)", "does not come to an end in 2 s"),
        ("import os; os.kill(os.getpid(), 11)", "is ended by signal 11"),
        ("raise RuntimeError('bad heap')", "bad heap"),
    ],
)
def test_what_the_library_does_not_survive_is_one_sentence(file, child, said, monkeypatch):
    monkeypatch.setattr(hdf5, "LONGEST_S", 2.0 if "sleep" in child else 600.0)
    monkeypatch.setattr(hdf5, "_READ_ALL", child)
    with pytest.raises(AssayError, match=said) as error, open_hdf5(file, "weights", "this test"):
        pass
    assert "weights.hdf5 cannot be read as weights" in str(error.value) and "\n" not in str(error.value)


def test_every_cut_of_a_file_is_read_or_refused(file):
    whole = file.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 8):
        file.write_bytes(whole[:size])
        with pytest.raises(AssayError, match="cannot be read as weights"), open_hdf5(file, "weights", "this test"):
            pass
