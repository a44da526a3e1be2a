"""Data in plans: folders of class folders, folders of pictures, and files of arrays, paths and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from assay import AssayError
from assay.plans.settings import convert, read_yaml
from assay.plans.stimuli import STIMULI
from assay.stimuli import Images, Labelled, Sequences


@pytest.fixture
def files(tmp_path):
    """The same six pictures of two classes in every form."""
    pictures = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    labels = np.array([0, 0, 0, 1, 1, 1])
    rows = ["path,label,split"]
    for i, picture in enumerate(pictures):
        for place in (tmp_path / "classes" / f"class{labels[i]}", tmp_path / "parts" / "train" / f"class{labels[i]}"):
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(place / f"{i}.png")
        (tmp_path / "flat").mkdir(exist_ok=True)
        Image.fromarray(picture).save(tmp_path / "flat" / f"{i}.png")
        rows.append(f"flat/{i}.png,{labels[i]},{'train' if i % 2 else 'test'}")
    (tmp_path / "table.csv").write_text("\n".join(rows))
    first = pictures.transpose(0, 3, 1, 2)
    np.savez(
        tmp_path / "data.npz", train_images=first, train_labels=labels, test_images=first[:2], test_labels=labels[:2]
    )
    np.savez(tmp_path / "plain.npz", images=first, labels=labels)
    np.save(tmp_path / "x.npy", first)
    np.save(tmp_path / "y.npy", labels)
    return tmp_path


def load(folder: Path, kind: type, value: object) -> object:
    (folder / "plan.yaml").write_text(yaml.safe_dump({"data": value}))
    return convert(read_yaml(folder / "plan.yaml")["data"], kind, STIMULI)


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("classes", 6),
        ({"path": "parts", "split": "train"}, 6),
        ("table.csv", 6),
        ({"path": "table.csv", "split": "test"}, 3),
        ("data.npz", 6),
        ({"path": "data.npz", "split": "test"}, 2),
        ("plain.npz", 6),
        ({"path": "plain.npz", "inputs": "images", "labels": "labels"}, 6),
        ({"path": "x.npy", "labels": "y.npy"}, 6),
        ({"path": "classes", "limit": 4}, 4),
        ({"path": "plain.npz", "limit": 4}, 4),
        ({"path": "data.npz", "limit": 4, "size": 8, "color": "rgb"}, 4),
        ({"path": "x.npy", "labels": "y.npy", "limit": 4}, 4),
        ({"path": "table.csv", "limit": 4}, 4),
        ({"path": "plain.npz", "inputs": ["images"], "limit": 4}, 4),
        ({"path": "classes", "stream": True, "limit": 4}, 4),
    ],
)
def test_labelled_data_in_every_form(files, written, count):
    data = load(files, Labelled, written)
    assert isinstance(data, Labelled) and len(data) == count and data.shape == (3, 8, 8)
    if count == 6:
        whole = load(files, Labelled, "data.npz")
        assert np.array_equal(data.inputs, whole.inputs) and np.array_equal(data.labels, whole.labels)


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("flat", 6),
        ("classes", 6),
        ("plain.npz", 6),
        ("x.npy", 6),
        ("table.csv", 6),
        ({"path": "flat", "count": 2}, 2),
        ({"path": "data.npz", "images": "test_images"}, 2),
        ({"path": "x.npy", "count": 3}, 3),
    ],
)
def test_images_in_every_form(files, written, count):
    images = load(files, Images, written)
    assert isinstance(images, Images) and images.array.shape == (count, 3, 8, 8)


def test_pictures_are_resized_and_made_grey(files):
    assert load(files, Labelled, {"path": "classes", "size": 4, "color": "grey"}).shape == (1, 4, 4)
    assert load(files, Images, {"path": "flat", "size": 4}).array.shape == (6, 3, 4, 4)


def test_sequences_of_a_folder_or_of_arrays(files):
    assert len(load(files, Sequences, "flat")) == 1
    assert len(load(files, Sequences, {"path": "x.npy", "control": ["natural", "pixel_fade"]})) == 2


@pytest.mark.parametrize(
    ("kind", "written", "sentence"),
    [
        (Labelled, "nowhere", "nowhere does not exist"),
        (Labelled, 3, "is 3, expected the path of a folder of class folders"),
        (Labelled, {"split": "train"}, "lacks the key 'path'"),
        (Labelled, {"path": "parts", "split": "tran"}, "has no folder 'tran'; did you mean 'train'?"),
        (Labelled, {"path": "classes", "labels": "y"}, "name arrays of an .npz file"),
        (Labelled, "x.npy", "give the .npy file of their labels as 'labels'"),
        (Labelled, "flat", "holds pictures without labels"),
        (Labelled, {"path": "data.npz", "splt": "train"}, "unknown key; did you mean 'split'?"),
        (Images, {"path": "flat", "images": "x"}, "name arrays of an .npz file"),
        (Sequences, "nowhere", "does not exist"),
    ],
)
def test_data_that_are_none_are_one_sentence_with_their_place(files, kind, written, sentence):
    with pytest.raises(AssayError) as error:
        load(files, kind, written)
    assert sentence in str(error.value) and "plan.yaml:" in str(error.value) and "\n" not in str(error.value)


def test_pictures_that_differ_are_told_in_the_words_of_a_plan(files):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(files / "classes" / "class0" / "odd.png")
    for written in ("classes", {"path": "classes", "limit": 7}):
        for kind in (Labelled, Images):
            with pytest.raises(
                AssayError, match=r"plan\.yaml:\d: data.* give size: 32, .* and color: rgb, in a mapping"
            ):
                load(files, kind, written if kind is Labelled or isinstance(written, str) else {"path": "classes"})
    assert load(files, Labelled, {"path": "classes", "size": 8, "color": "grey"}).shape == (1, 8, 8)


@pytest.mark.parametrize(
    ("kind", "written", "sentence"),
    [
        (
            Labelled,
            {"path": "plain.npz", "size": 4},
            "arrays of 3×8×8, which are used as they are and do not follow",
        ),
        (Labelled, {"path": "data.npz", "split": "test", "size": 4}, "do not follow size=4"),
        (Labelled, {"path": "data.npz", "color": "grey"}, "do not follow color='grey'"),
        (Labelled, {"path": "x.npy", "labels": "y.npy", "size": [8, 9]}, "do not follow size=(8, 9): leave it out"),
        (Labelled, {"path": "plain.npz", "inputs": ["images"], "size": 4}, "do not follow size=4"),
        (Labelled, {"path": "idx", "size": 4}, "arrays of 1×8×8, which are used as they are and do not follow size=4"),
        (Labelled, {"path": "idx", "color": "rgb"}, "do not follow color='rgb'"),
        (Labelled, {"path": "idx", "labels": "y"}, "labels='y' names an array of an .npz file"),
        (Labelled, {"path": "x.npy", "labels": "y.npy", "split": "test"}, "split='test' has no effect of an .npy file"),
        (
            Labelled,
            {"path": "data.npz", "inputs": "test_images", "labels": "test_labels", "split": "train"},
            "split='train' has no effect where both arrays are named: leave it out",
        ),
        (
            Labelled,
            {"path": "plain.npz", "inputs": ["images"], "split": "test"},
            "split='test' has no effect with a list of inputs: leave it out",
        ),
        (
            Labelled,
            {"path": "plain.npz", "inputs": ["images"], "stream": True},
            "stream=True has no effect with a list of inputs: leave it out",
        ),
        (Images, {"path": "plain.npz", "size": 4}, "do not follow size=4"),
        (Images, {"path": "x.npy", "color": "grey"}, "do not follow color='grey'"),
        (Sequences, {"path": "x.npy", "size": 4}, "do not follow size=4"),
    ],
)
def test_a_setting_that_the_data_cannot_follow_is_refused(files, kind, written, sentence):
    (files / "idx").mkdir()
    for stem, array in (("images-idx3", np.zeros((6, 8, 8))), ("labels-idx1", np.arange(6))):
        sides = b"".join(length.to_bytes(4, "big") for length in array.shape)
        head = b"\0\0\x08" + bytes([array.ndim]) + sides
        (files / "idx" / f"train-{stem}-ubyte").write_bytes(head + array.astype(np.uint8).tobytes())
    assert load(files, Labelled, "idx").shape == (1, 8, 8)
    with pytest.raises(AssayError) as error:
        load(files, kind, written)
    assert sentence in str(error.value) and "plan.yaml:" in str(error.value) and "\n" not in str(error.value)


def test_several_inputs_of_a_network_are_arrays_of_one_file_by_name(tmp_path):
    generator = np.random.default_rng(0)
    arrays = {"picture": generator.random((6, 1, 4, 4)), "ids": generator.integers(0, 9, (6, 3))}
    np.savez(tmp_path / "data.npz", **arrays, kind=np.arange(6) % 2)

    def load(data: str) -> Labelled:
        (tmp_path / "plan.yaml").write_text(f"data: {data}")
        return convert(read_yaml(tmp_path / "plan.yaml")["data"], Labelled, STIMULI)

    data = load("{path: data.npz, inputs: [picture, ids], labels: kind}")
    assert list(data.arrays) == ["picture", "ids"] and data.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert np.array_equal(data.arrays["ids"], arrays["ids"]) and data.source == "data.npz"
    with pytest.raises(AssayError, match="has no array 'pictures'; did you mean 'picture'"):
        load("{path: data.npz, inputs: [pictures, ids], labels: kind}")
    with pytest.raises(AssayError, match="a list of inputs names arrays of an"):
        load("{path: data.npz, inputs: []}")
