"""Files of MATLAB: whole ones are read as scipy reads them, and damaged ones are refused before scipy dies of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy import io, sparse

from assay import AssayError
from assay.stimuli.matlab_files import read_matlab
from memory_kit import told_by

OF_SCIPY = sorted((Path(scipy.__file__).parent / "io/matlab/tests/data").glob("*.mat"))


def kinds():
    rng = np.random.default_rng(0)
    people = np.zeros((1, 2), dtype=[("RDM", object), ("name", object)])
    for number, person in enumerate(people[0]):
        person["RDM"], person["name"] = rng.random((3, 3)), f"subject {number}"
    return {
        "RDMs": people, "complex": rng.random((2, 3)) * (1 + 2j), "few": sparse.csc_array(np.eye(3)), "text": "hello",
        "whole": np.arange(5, dtype=np.int16), "cells": np.array([[1, "a", np.eye(2)]], dtype=object),
    }  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"do_compression": True}], ids=["plain", "compressed"])
def test_variables_of_every_kind_are_read(tmp_path, settings):
    io.savemat(tmp_path / "all.mat", kinds(), **settings)
    found = read_matlab(tmp_path / "all.mat")
    assert list(found) == list(kinds())
    np.testing.assert_array_equal(found["complex"], kinds()["complex"])
    np.testing.assert_array_equal(found["RDMs"]["RDM"][0, 1], kinds()["RDMs"]["RDM"][0, 1])
    assert found["cells"][0, 1] == "a" and found["few"].sum() == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", OF_SCIPY, ids=lambda path: path.name)
def test_files_that_scipy_keeps_to_test_itself_are_read_or_refused_as_by_it(path):
    try:
        wanted = [name for name in io.loadmat(path) if not name.startswith("__")]
    except Exception:
        with pytest.raises(AssayError, match=r"cannot be read as a \.mat file"):
            read_matlab(path)
    else:
        assert list(read_matlab(path)) == wanted


DAMAGED = r"""
import pathlib, warnings
from assay import AssayError
from assay.stimuli.matlab_files import read_matlab

warnings.simplefilter("ignore")
whole = pathlib.Path(sys.argv[1]).read_bytes()
place = pathlib.Path(sys.argv[2])
told = {"read": 0, "refused": 0}
for at in range(126, len(whole)):
    for bit in (0, 3, 6):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            read_matlab(place)
            told["read"] += 1
        except AssayError:
            told["refused"] += 1
print(json.dumps(told))
"""


@pytest.mark.slow
def test_no_damaged_byte_ends_the_process(tmp_path):
    """Scipy 1.17 looks up types of data past the end of a table, and dies of it, as often as once in 200 such files."""
    io.savemat(tmp_path / "whole.mat", kinds())
    told = told_by(DAMAGED, tmp_path / "whole.mat", tmp_path / "damaged.mat")
    assert told["read"] > 500 and told["refused"] > 500, told


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (176, 0x4009, r"cannot be read as a \.mat file \(an array lacks its numbers\)"),
        (144, 0x806, r"cannot be read as a \.mat file \(an array lacks its numbers\)"),
        (152, 3, "an array lacks its dimensions or its name"),
        (160, 1 << 30, "an array of 1073741824×3 has only 120 bytes"),
        (136, 7, "an array does not begin with its flags"),
        (144, 0x63, "there is no class 99 of arrays"),
        (128, 3, "there is data of type 3 where an array should be"),
        (132, 4000, "an element is longer than what it is in"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, at, value, said):
    io.savemat(tmp_path / "one.mat", {"RDMs": np.eye(3)})
    data = bytearray((tmp_path / "one.mat").read_bytes())
    data[at : at + 4] = value.to_bytes(4, "little")
    (tmp_path / "one.mat").write_bytes(data)
    with pytest.raises(AssayError, match=said):
        read_matlab(tmp_path / "one.mat")
