"""What an evaluation wrote is read back; what is missing, damaged or unreadable is told apart."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.broad.run.results import FoldInfo, Results
from assay.core.folder import Folder

INFO = FoldInfo("abc", [{"C": 1.0}], [0.5], ["one class only"], 1.25)


@pytest.fixture
def results(tmp_path):
    kept = Results(str(tmp_path))
    for fold in (1, 2):
        kept.write_fold("text:Food", "6s", fold, {"predictions": np.full((4, 1), fold, np.float32)}, INFO)
    return kept


def first_fold(results) -> Path:
    return Path(results.folder.path("runs/text-Food/6s/fold01.npz"))


def archive(**arrays) -> bytes:
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def one_array() -> bytes:
    held = io.BytesIO()
    np.save(held, np.ones(3))
    return held.getvalue()


def test_a_fold_comes_back_as_it_was_written(results, caplog):
    arrays, info = results.read_fold("text:Food", "6s", 2)
    assert info == INFO and set(arrays) == {"predictions"}
    np.testing.assert_array_equal(arrays["predictions"], np.full((4, 1), 2))
    assert results.predictions("text:Food", "6s", 2).shape == (2, 4, 1)
    assert not caplog.records


def test_a_fold_that_was_never_written_is_not_there_and_nothing_is_said(results, caplog):
    assert results.read_fold("text:Food", "6s", 3) is None
    assert results.predictions("text:Food", "6s", 3) is None
    assert not caplog.records


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"not an archive",
        lambda whole: whole[:100],
        lambda whole: whole[: len(whole) // 2] + bytes(40) + whole[len(whole) // 2 + 40 :],
        lambda whole: one_array(),
        lambda whole: archive(predictions=np.ones(3)),
        lambda whole: archive(info=np.frombuffer(b"{", np.uint8)),
        lambda whole: archive(info=np.frombuffer(json.dumps({"seed": 1}).encode(), np.uint8)),
    ],
    ids=["empty", "text", "cut short", "overwritten", "one array", "no info", "broken info", "other info"],
)
def test_a_damaged_fold_is_named_in_a_warning_and_counts_as_not_done(results, caplog, damage):
    place = first_fold(results)
    place.write_bytes(damage(place.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert results.read_fold("text:Food", "6s", 1) is None
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{place} is damaged (") and said.endswith("): the fold is done anew")
    assert "pickle" not in said


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_no_change_of_a_few_bytes_ends_in_an_exception(tmp_path_factory, changes):
    results = Results(str(tmp_path_factory.getbasetemp() / "changed"))
    results.write_fold("video", "1", 1, {"predictions": np.linspace(0, 1, 50)}, INFO)
    place = Path(results.folder.path("runs/video/1/fold01.npz"))
    data = bytearray(place.read_bytes())
    for where, value in changes:
        data[where % len(data)] = value
    place.write_bytes(data)
    results.read_fold("video", "1", 1)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error"), MemoryError()])
def test_any_other_error_is_raised(results, monkeypatch, error):
    def fails(self, name):
        raise error

    monkeypatch.setattr(Folder, "read", fails)
    with pytest.raises(type(error)):
        results.read_fold("text:Food", "6s", 1)
