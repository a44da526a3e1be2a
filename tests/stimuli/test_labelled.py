"""Labelled data: what is accepted, how it is shown, and the two formats it is read from."""

from __future__ import annotations

import gzip
import pickle
import struct

import numpy as np
import pytest
import torch

from assay import AssayError
from assay.stimuli import Labelled, as_labelled, load_labelled
from assay.stimuli.labelled import read_idx


def idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (6, 4, 5), dtype=np.uint8), np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8)


def test_bytes_are_shown_as_shares_of_255(arrays):
    pictures, labels = arrays
    data = Labelled(pictures, labels)
    assert data.shown(slice(0, 2)).dtype == torch.float32
    assert np.allclose(data.shown([3]).numpy(), pictures[3:4] / 255)
    assert data.inputs.dtype == np.uint8 and data.labels.dtype == np.int64


def test_a_batch_that_would_take_more_memory_than_the_limit_is_refused(monkeypatch):
    data = Labelled(np.zeros((9, 3, 64, 64), dtype=np.uint8), np.arange(9))
    monkeypatch.setenv("ASSAY_MOST_BYTES", "400000")  # as floats eight of them take 393,216 bytes
    assert len(data.shown(slice(0, 8))) == 8
    with pytest.raises(AssayError, match=r"9 inputs of .* in one batch, each 3×64×64, would take 432.0 KiB"):
        data.shown()


def test_a_sample_is_without_repetition_and_of_the_seed(arrays):
    data = Labelled(*arrays)
    some = data.sample(4, seed=1)
    assert len(some) == 4 and len({x.tobytes() for x in some.inputs}) == 4
    assert some.fingerprint == data.sample(4, seed=1).fingerprint != data.sample(4, seed=2).fingerprint
    assert len(data.sample(99)) == 6
    assert data.each(1).labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("packed", [True, False])
def test_idx_folders(tmp_path, arrays, packed):
    for name, array in zip(("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), arrays, strict=True):
        path = tmp_path / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    data = load_labelled(tmp_path, split="test")
    assert data.shape == (1, 4, 5) and np.array_equal(data.inputs[:, 0], arrays[0])
    assert np.array_equal(data.labels, arrays[1])
    with pytest.raises(AssayError, match="holds no train-images-idx3-ubyte"):
        load_labelled(tmp_path)


def test_files_of_arrays(tmp_path, arrays):
    colour = np.repeat(arrays[0][..., None], 3, -1)
    np.savez(tmp_path / "some.npz", train_images=colour, train_labels=arrays[1], vectors=np.eye(6))
    assert load_labelled(tmp_path / "some.npz").shape == (3, 4, 5)
    assert load_labelled(tmp_path / "some.npz", inputs="vectors").shape == (6,)
    with pytest.raises(AssayError, match="no array 'test_images'"):
        load_labelled(tmp_path / "some.npz", split="test")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0\0\x08", "not an IDX file"),
        (b"\0\0\x0d\x01", "not an IDX file"),
        (idx(np.zeros(5, dtype=np.uint8))[:-1], "cut short"),
        (b"\0\0\x08\x03\0\0", "cut short"),
    ],
)
def test_damaged_idx_files(tmp_path, data, words):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(AssayError, match=words):
        read_idx(tmp_path / "file")
    (tmp_path / "file.gz").write_bytes(gzip.compress(data)[:-6])
    with pytest.raises(AssayError, match=r"file\.gz"):
        read_idx(tmp_path / "file.gz")


@pytest.mark.parametrize(
    ("inputs", "labels", "words"),
    [
        (np.zeros((2, 3)), np.array([0.0, 1.0]), "whole numbers from 0"),
        (np.zeros((2, 3)), np.array([0, -1]), "whole numbers from 0"),
        (np.zeros((2, 3)), np.array([0]), "2 inputs and labels of shape"),
        (np.zeros(3), np.zeros(3, dtype=int), "N×…"),
        (np.zeros((0, 3)), np.zeros(0, dtype=int), "at least one"),
        (np.full((2, 3), np.nan), np.zeros(2, dtype=int), "NaN"),
        (np.zeros((2, 1, 3, 3), dtype=int), np.zeros(2, dtype=int), "uint8 or floats, and numbers of words"),
        (np.zeros((2, 3), dtype=complex), np.zeros(2, dtype=int), "complex128: give uint8, floats, or whole numbers"),
        ({"a": np.zeros((2, 3)), "b": np.zeros((3, 3))}, np.zeros(2, dtype=int), "'a' has 2, 'b' has 3"),
        ({"a": np.zeros((3, 3))}, np.zeros(2, dtype=int), "3 inputs and labels of shape"),
        ({}, np.zeros(2, dtype=int), "there is none"),
    ],
)
def test_what_is_not_labelled_data(inputs, labels, words):
    with pytest.raises(AssayError, match=words):
        Labelled(inputs, labels)


def test_files_that_are_not_there_or_not_arrays(tmp_path):
    with pytest.raises(AssayError, match="does not exist"):
        load_labelled(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(AssayError, match="cannot be read"):
        load_labelled(tmp_path / "text.npz")
    with pytest.raises(AssayError, match="split='val'"):
        load_labelled(tmp_path, split="val")


def test_numbers_of_words_are_shown_as_they_are():
    data = Labelled(np.array([[5, 300], [6, 0], [7, 1]], dtype=np.int32), np.array([0, 1, 0]))
    shown = data.shown(np.array([0, 2]))
    assert shown.dtype == torch.int64 and shown.tolist() == [[5, 300], [7, 1]]
    assert data.sample(2).inputs.dtype == np.int64 and data.shape == (2,)


def test_inputs_by_name_are_drawn_and_shown_together():
    inputs = {"ids": np.arange(8).reshape(4, 2), "picture": np.full((4, 1, 2, 2), 255, np.uint8)}
    data = Labelled(inputs, np.array([0, 1, 1, 0]))
    assert len(data) == 4 and data.shape == (1, 2, 2) and data.description.startswith("4 inputs of 2 (ids) and 1×2×2 (")
    one = data.sample(1, seed=3)
    row = one.inputs["ids"][0, 0] // 2
    assert one.labels.tolist() == [data.labels[row]]
    shown = data.each(1).shown()
    assert shown["ids"].tolist() == [[0, 1], [2, 3]] and shown["picture"].eq(1.0).all()
    assert data.fingerprint == Labelled(inputs, data.labels).fingerprint != one.fingerprint
    assert pickle.loads(pickle.dumps(data)).fingerprint == data.fingerprint
    assert as_labelled((inputs, ["b", "a", "a", "b"])).class_names == ("a", "b")
