"""Enormous sizes and counts are refused before memory is asked for; the limit has a name, and can be raised."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import assay
from assay import AssayError
from assay.core.limits import BYTES, COUNT, OBJECTS, limit, require_bytes
from assay.core.shapes import shape_of
from assay.core.tensor_limits import limited_tensors
from assay.measures.perturbation.measure import PerturbationResponse
from assay.plans.data import labelled_data
from assay.runs.run import Run
from assay.stimuli import (
    Gratings,
    Labelled,
    camera_sequences,
    camera_video,
    load_labelled,
    load_rdms,
    novel_objects,
    turning_objects,
)
from assay.stimuli.datasets import as_labelled
from assay.stimuli.labelled import read_idx
from assay.stimuli.pictures import picture_to_array
from assay.stimuli.transforms import Resize
from assay.studies.corpus.architecture import Architecture
from assay.studies.search.space import Range
from assay.subject.source import SubjectSource
from assay.training.recipe import Recipe

ENORMOUS = {
    "gratings of many pixels": (lambda: Gratings(size=10**6), BYTES),
    "gratings of many phases": (lambda: Gratings(size=8, phases=10**9), COUNT),
    "frames of a camera": (lambda: camera_sequences(size=10**6), BYTES),
    "a clip of many frames": (lambda: camera_sequences(length=10**9), COUNT),
    "many clips": (lambda: camera_video(clips=10**9), OBJECTS),
    "many turning objects": (lambda: turning_objects(count=10**9), OBJECTS),
    "pictures of objects": (lambda: novel_objects(size=10**6), BYTES),
    "rays of objects": (lambda: novel_objects(samples=10**6), BYTES),
    "many objects": (lambda: novel_objects(count=10**9), OBJECTS),
    "a picture resized": (lambda: Resize(10**6)(torch.zeros(1, 3, 8, 8)), BYTES),
    "a picture of a file": (lambda: picture_to_array(Image.new("RGB", (8, 8)), 10**6, None), BYTES),
    "an input": (lambda: shape_of((3, 10**6, 10**6)), BYTES),
    "epochs": (lambda: Recipe(epochs=10**9), COUNT),
    "a grid of a search": (lambda: Range(0, 10**12, whole=True).values, COUNT),
    "a setting of a measure": (
        lambda: PerturbationResponse(Labelled(torch.rand(4, 1, 8, 8).numpy(), [0, 0, 1, 1]), bootstrap=10**12),
        COUNT,
    ),
    "a wide network of a plan": (lambda: SubjectSource("torch.nn:Linear", args=_linear(10**9)).load(), BYTES),
    "a network of a corpus": (lambda: Architecture("conv", Path()).build({"width": 10**6}, 10, 3), BYTES),
    "a deep network of a corpus": (lambda: Architecture("conv", Path()).build({"depth": 10**7}, 10, 3), OBJECTS),
}


def _linear(inputs):
    return {"in_features": inputs, "out_features": 10**9}


@pytest.mark.parametrize("what", ENORMOUS)
def test_what_is_enormous_is_refused_before_memory_is_asked_for(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OBJECTS, "200")
    make, name = ENORMOUS[what]
    with pytest.raises(AssayError, match=name) as raised:
        make()
    assert "limit" in str(raised.value) and "set ASSAY_MOST" in str(raised.value)


def test_a_limit_is_raised_in_the_environment(monkeypatch):
    monkeypatch.setenv(BYTES, "8e9")
    assert limit(BYTES) == 8_000_000_000
    require_bytes("an array", 7e9)
    monkeypatch.setenv(COUNT, "500")
    with pytest.raises(AssayError, match="epochs=501 is more than the limit of 500"):
        Recipe(epochs=501)
    monkeypatch.setenv(COUNT, "many")
    with pytest.raises(AssayError, match="ASSAY_MOST_COUNT=many in the environment is no number"):
        limit(COUNT)


def test_a_network_is_the_same_where_its_tensors_are_counted():
    def made():
        torch.manual_seed(1)
        return assay.networks.resnet(8, width=4)

    free = made().state_dict()
    with limited_tensors("a network"):
        counted = made().state_dict()
    assert all(torch.equal(free[name], counted[name]) for name in free)


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setenv(BYTES, "100000")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_packed_in_a_file_is_refused_before_it_is_unpacked(small):
    np.savez_compressed("packed.npz", train_images=np.zeros((200, 32, 32)), train_labels=np.zeros(200, int))
    np.save("array.npy", np.zeros((9, 100, 100)))
    with gzip.open("train-images-idx3-ubyte.gz", "wb") as file:
        file.write(b"\0\0\x08\x01\0\x0f\x42\x40" + bytes(1_000_000))
    reads = [
        lambda: load_labelled("packed.npz"), lambda: as_labelled("packed.npz"), lambda: load_rdms("packed.npz"),
        lambda: load_rdms("array.npy"), lambda: read_idx(Path("train-images-idx3-ubyte.gz")),
    ]  # fmt: skip
    for read in reads:
        with pytest.raises(AssayError, match=rf"(packed|array|train).*the limit is 97.7 KiB: .* set {BYTES}"):
            read()


def test_only_the_arrays_that_are_read_are_counted(small):
    np.savez("parts.npz", train_images=np.zeros((9, 100, 100)), test_images=np.zeros((2, 8, 8)), test_labels=[0, 1])
    assert len(load_labelled("parts.npz", split="test")) == 2


def test_a_long_text_is_refused_before_it_is_read(small):
    for name in ("table.csv", "manifest.json"):
        with Path(name).open("wb") as file:
            file.truncate(10**12)  # takes no room on the disk
    for read in (
        lambda: as_labelled("table.csv"),
        lambda: Run(small).measures,
        lambda: labelled_data(Path("table.csv")),
    ):
        with pytest.raises(AssayError, match=rf"(table.csv|manifest.json).*: .* set {BYTES}"):
            read()
