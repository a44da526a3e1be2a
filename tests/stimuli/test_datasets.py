"""Data as people have them: every kind becomes the same labelled data, and what cannot be used ends in one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from assay import AssayError
from assay.stimuli import ArrayClip, Images, Labelled, Sequences, as_images, as_labelled, as_sequences, load_images
from assay.stimuli.pictures import FORMATS, read_picture
from assay.stimuli.stacking import read_array

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
LABELS = np.array([0, 0, 0, 1, 1, 1])
NAMES = ("cat", "owl")


@pytest.fixture
def folder(tmp_path):
    """Two class folders of three pictures each."""
    for i, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        (tmp_path / NAMES[label]).mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / NAMES[label] / f"{i}.png")
    return tmp_path


class Pairs(Dataset):
    """A torch data set of pairs, in one of the forms that people write."""

    classes = NAMES

    def __init__(self, form="pair", length=6):
        self.form = form
        self.length = length
        self.asked = []

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        self.asked.append(i)
        x, y = PIXELS[i % 6], int(LABELS[i * 6 // self.length])
        return {
            "pair": (x, y),
            "triple": (x, y, {"path": "somewhere"}),
            "mapping": {"image": x, "label": y},
            "picture": (Image.fromarray(x), y),
            "tensor": (torch.tensor(x).permute(2, 0, 1), torch.tensor(y)),
            "pixel_values": {"pixel_values": torch.tensor(x).permute(2, 0, 1), "labels": y},
        }[self.form]


class Stream(IterableDataset):
    def __iter__(self):
        yield from zip(PIXELS, LABELS, strict=True)


class ClassLabel:
    names = NAMES


class HuggingFace:
    """What `datasets.Dataset` shows to the outside."""

    column_names = ("img", "label")

    @property
    def features(self):
        return {"img": object(), "label": ClassLabel()}

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"img": Image.fromarray(PIXELS[i]), "label": int(LABELS[i])}


def npz(folder, **arrays):
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def paths(folder):
    return [str(folder / NAMES[y] / f"{i}.png") for i, y in enumerate(LABELS)]


KINDS = {
    "folder": lambda folder: folder,
    "text": str,
    "npz": lambda folder: npz(folder, images=PIXELS, labels=LABELS),
    "keras npz": lambda folder: npz(folder, x_train=PIXELS, y_train=LABELS[:, None], x_test=PIXELS, y_test=LABELS),
    "odd names": lambda folder: npz(folder, photos=PIXELS, kinds=LABELS),
    "arrays": lambda folder: (PIXELS, LABELS),
    "list": lambda folder: [PIXELS, LABELS.tolist()],
    "tensors": lambda folder: (torch.tensor(PIXELS).permute(0, 3, 1, 2), torch.tensor(LABELS)),
    "mapping": lambda folder: {"x": PIXELS, "y": LABELS},
    "one-hot": lambda folder: (PIXELS, np.eye(2)[LABELS]),
    "words": lambda folder: (PIXELS, np.array(NAMES)[LABELS]),
    "whole floats": lambda folder: (PIXELS, LABELS.astype(float)),
    "pictures": lambda folder: ([Image.fromarray(x) for x in PIXELS], LABELS),
    "paths": lambda folder: (paths(folder), LABELS),
    "pairs": lambda folder: [(x, y) for x, y in zip(PIXELS, LABELS, strict=True)],
    "frame": lambda folder: pd.DataFrame({"path": paths(folder), "label": np.array(NAMES)[LABELS]}),
    "frame of odd names": lambda folder: pd.DataFrame({"photo": paths(folder), "kind": LABELS}),
    "tensor data set": lambda folder: TensorDataset(torch.tensor(PIXELS).permute(0, 3, 1, 2), torch.tensor(LABELS)),
    "loader": lambda folder: DataLoader(Pairs("tensor"), batch_size=4),
    "loader of mappings": lambda folder: DataLoader(Pairs("pixel_values"), batch_size=4),
    "loader without batches": lambda folder: DataLoader(Pairs("tensor"), batch_size=None),
    "subset": lambda folder: Subset(Pairs(), range(6)),
    "stream": lambda folder: Stream(),
    "generator": lambda folder: ((x, y) for x, y in zip(PIXELS, LABELS, strict=True)),
    "batches": lambda folder: ((PIXELS[i : i + 3], LABELS[i : i + 3]) for i in (0, 3)),
    "hugging face": lambda folder: HuggingFace(),
    **{
        form: (lambda folder, form=form: Pairs(form))
        for form in ("pair", "triple", "mapping", "picture", "tensor", "pixel_values")
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_becomes_the_same_labelled_data(folder, kind):
    data = as_labelled(KINDS[kind](folder))
    assert np.array_equal(data.inputs, PIXELS.transpose(0, 3, 1, 2))
    assert data.inputs.dtype == np.uint8 and data.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"generator"}))
def test_every_kind_of_data_becomes_the_same_images(folder, kind):
    images = as_images(KINDS[kind](folder))
    assert np.allclose(images.array, PIXELS.transpose(0, 3, 1, 2) / np.float32(255))


def test_what_is_made_already_is_returned_unchanged():
    data = Labelled(PIXELS, LABELS)
    images = Images(PIXELS[..., 0])
    clips = Sequences.of(one=np.zeros((3, 8, 8)))
    assert as_labelled(data) is data and as_images(images) is images and as_sequences(clips) is clips
    assert as_images(Labelled(PIXELS.transpose(0, 3, 1, 2), LABELS)).array.shape == (6, 3, 8, 8)


def test_names_of_classes_are_kept_in_the_description(folder):
    for data in (folder, Pairs(), Subset(Pairs(), range(6)), DataLoader(Pairs("tensor")), HuggingFace()):
        assert "in 2 classes (cat, owl) from" in as_labelled(data).description
    assert as_labelled(folder).sample(2).class_names == NAMES
    many = Labelled(PIXELS, LABELS, class_names=[f"class number {i}" for i in range(100)])
    assert "class number" not in many.description


def test_a_sample_is_spread_over_a_data_set_and_says_so():
    data = Pairs(length=600)
    chosen = as_labelled(data, limit=12)
    assert data.asked == list(range(0, 600, 50)) and chosen.labels.tolist() == [0] * 6 + [1] * 6
    assert chosen.source == "Pairs, 12 of 600"


def test_a_loader_is_read_up_to_the_limit_only():
    data = Pairs("tensor", length=600)
    chosen = as_labelled(DataLoader(data, batch_size=5), limit=12)
    assert len(chosen) == 12 and len(data.asked) == 15 and chosen.source == "DataLoader, 12 of 600"
    assert as_labelled(Stream(), limit=2).source == "Stream, the first 2"


def test_a_shuffling_loader_gives_the_same_inputs_again_and_leaves_the_random_numbers_alone():
    loader = DataLoader(Pairs("tensor"), batch_size=2, shuffle=True)
    before = torch.random.get_rng_state()
    first, second = as_labelled(loader, limit=4), as_labelled(loader, limit=4)
    assert first.fingerprint == second.fingerprint
    assert torch.equal(before, torch.random.get_rng_state())


def test_pictures_of_other_modes_are_read_as_documented(tmp_path):
    grey = PIXELS[0, :, :, 0]
    modes = {
        "grey": (Image.fromarray(grey), 1),
        "colour": (Image.fromarray(PIXELS[0]), 3),
        "alpha": (Image.fromarray(PIXELS[0]).convert("RGBA"), 3),
        "palette": (Image.fromarray(grey).convert("P"), 3),
        "bits": (Image.fromarray(grey).convert("1"), 1),
        "deep": (Image.fromarray(grey.astype(np.uint16) * 257), 1),
    }
    for mode, (picture, channels) in modes.items():
        place = tmp_path / mode
        place.mkdir()
        picture.save(place / "0.png")
        array = as_images(place).array
        assert array.shape == (1, channels, 8, 8)
        if mode in ("grey", "palette", "deep"):
            assert np.allclose(array[0, 0], grey / 255, atol=1e-6)
        if mode in ("colour", "alpha"):
            assert np.allclose(array[0], PIXELS[0].transpose(2, 0, 1) / 255)


def test_pictures_of_different_sizes_name_two_files_and_the_remedy(folder):
    Image.fromarray(np.zeros((12, 9, 3), np.uint8)).save(folder / "owl" / "large.png")
    with pytest.raises(AssayError, match=r"cat/0.png is 3×8×8 and .*owl/large.png is 3×12×9 .*size=…"):
        as_labelled(folder)
    assert as_labelled(folder, size=6).shape == (3, 6, 6)
    assert as_labelled(folder, size=(4, 6), color="grey").shape == (1, 4, 6)


def test_grey_among_colour_names_two_files_and_the_remedy(folder):
    Image.fromarray(PIXELS[0, :, :, 0]).save(folder / "owl" / "grey.png")
    with pytest.raises(AssayError, match=r"3×8×8 and .*owl/grey.png is 1×8×8 .*color='rgb'"):
        as_labelled(folder)
    assert as_labelled(folder, color="rgb").shape == (3, 8, 8)


@pytest.mark.parametrize("damage", [b"", b"no picture", "cut", "bomb"])
def test_a_damaged_picture_is_named(folder, damage, monkeypatch):
    file = folder / "owl" / "5.png"
    if damage == "bomb":
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
        file = folder / "cat" / "0.png"
    else:
        file.write_bytes(file.read_bytes()[:-40] if damage == "cut" else damage)
    with pytest.raises(AssayError, match=f"{file.name} cannot be read as a picture"):
        as_labelled(folder)


NAN_PIXELS = np.full((6, 3, 8, 8), np.nan)


class Broken(Pairs):
    def __getitem__(self, i):
        raise KeyError("no such picture")


UNUSABLE = [
    (None, "data=None cannot be used: give a folder of class folders"),
    (3, "data=3 cannot be used"),
    ("no/such/folder", "data='no/such/folder' does not exist: give a folder of class folders"),
    ("a" * 5000, "does not exist"),
    ("zero\0byte", "does not exist"),
    (b"bytes", "cannot be used"),
    (PIXELS, "without labels: give"),
    (torch.zeros(2, 3), "without labels: give"),
    ((PIXELS, LABELS[:4]), "6 inputs and 4 labels"),
    ((PIXELS, None), "labels"),
    ((None, LABELS), "data"),
    ((PIXELS, LABELS + 0.5), "the label 0.5: give whole numbers"),
    ((PIXELS, [0, 1, 0, 1, 0, float("nan")]), "the label nan"),
    ((PIXELS, LABELS - 1), "the label -1: number the classes from 0"),
    ((PIXELS, ["cat", "owl", 3, "cat", "owl", None]), "the label 3 among names"),
    ((PIXELS, np.zeros((6, 2, 2))), "labels of shape"),
    ((NAN_PIXELS, LABELS), "NaN or infinite"),
    ((np.zeros((0, 3, 8, 8)), []), "at least one input"),
    (([], []), "no inputs"),
    ([], "without inputs"),
    ({}, "has the entries"),
    ({"a": PIXELS, "b": PIXELS, "labels": LABELS}, "name one of them 'image'"),
    ({"train": Pairs(), "test": Pairs()}, r"give one part of it, such as \['train'\]"),
    ([PIXELS[0], PIXELS[1], PIXELS[2]], "samples without labels"),
    ([(PIXELS[0],), (PIXELS[1],), (PIXELS[2],)], "samples of 1 parts"),
    ([(PIXELS[0], 0), (PIXELS[1][:4], 1), (PIXELS[2], 1)], "input 1"),
    ((["no.png"], [0]), "'no.png', which is no file"),
    ((["text", 3], [0, 1]), "data"),
    ((np.array(["a", "b"]), [0, 1]), "is no file here"),
    ((object(), [0]), "data"),
    (Broken(), "that cannot be read .KeyError"),
    (DataLoader(Broken()), "that cannot be read .KeyError"),
    (DataLoader(TensorDataset(torch.zeros(3, 2))), "1 parts"),
    (pd.DataFrame(), "without rows"),
    (pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]}), "call the one with the classes 'label'"),
    (pd.DataFrame({"a": ["x"], "b": ["y"], "label": ["z"]}), "call the one with the pictures' paths 'path'"),
    (pd.DataFrame({"path": ["x.png"], "label": ["z"]}), "'x.png', which is no file"),
    (dict, "cannot be used"),
    (lambda x: x, "cannot be used"),
]


@pytest.mark.parametrize(("data", "said"), UNUSABLE, ids=range(len(UNUSABLE)))
def test_what_cannot_be_used_ends_in_one_sentence(data, said):
    with pytest.raises(AssayError, match=said) as caught:
        as_labelled(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [None, 3, "no/such", [], {}, object(), "zero\0", dict, ["text", 3], np.zeros(3), [None]]
)
@pytest.mark.parametrize("convert", [as_images, as_sequences, as_labelled])
def test_nothing_ends_in_an_error_of_python(convert, value):
    with pytest.raises(AssayError):
        convert(value)


def test_folders_that_are_no_data_say_what_is_missing(tmp_path, folder):
    with pytest.raises(AssayError, match="holds pictures without labels: put the pictures of each class"):
        as_labelled(folder / "cat")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AssayError, match=r"class folder .*empty holds no pictures"):
        as_labelled(folder)
    with pytest.raises(AssayError, match="holds no class folders"):
        as_labelled(tmp_path / "empty")
    for name in ("parts/train/a", "parts/train/b", "one/a"):
        (tmp_path / "empty" / name).mkdir(parents=True)
        Image.fromarray(PIXELS[0]).save(tmp_path / "empty" / name / "0.png")
    with pytest.raises(AssayError, match=r"parts of a data set, not classes: give one, such as .*train"):
        as_labelled(tmp_path / "empty" / "parts")
    with pytest.raises(AssayError, match="has one class folder, 'a'"):
        as_labelled(tmp_path / "empty" / "one")


def test_files_that_are_no_data_say_what_is_missing(tmp_path):
    np.save(tmp_path / "one.npy", PIXELS)
    with pytest.raises(AssayError, match="one array without labels"):
        as_labelled(tmp_path / "one.npy")
    assert len(as_images(tmp_path / "one.npy")) == 6
    with pytest.raises(AssayError, match="holds 'a', 'b', 'c': call them 'images' and 'labels'"):
        as_labelled(npz(tmp_path, a=PIXELS, b=LABELS, c=LABELS))
    for name, content in {"bad.npz": b"PK\x03\x04 damaged", "bad.npy": b"nothing"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AssayError, match=f"{name} cannot be read as arrays"):
            as_images(tmp_path / name)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(AssayError, match="cannot be read as arrays"):
        as_images(tmp_path / "objects.npy")
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(AssayError, match="no folder and no file of arrays: give a folder of class folders"):
        as_labelled(tmp_path / "text.txt")
    with pytest.raises(AssayError, match="no folder and no file of arrays: give a folder of pictures"):
        as_images(tmp_path / "text.txt")
    np.save(tmp_path / "labels.npy", LABELS)
    assert as_labelled((str(tmp_path / "one.npy"), str(tmp_path / "labels.npy"))).shape == (3, 8, 8)


def test_numbers_in_a_table_are_inputs():
    frame = pd.DataFrame({"height": [1.0, 2.0, 3.0], "width": [4, 5, 6], "label": [0, 1, 1]})
    data = as_labelled(frame)
    assert data.shape == (2,) and data.inputs[2].tolist() == [3.0, 6.0]


CLIPS = np.random.default_rng(1).random((2, 5, 3, 8, 8), dtype=np.float32)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (CLIPS, ["clip 0", "clip 1"]),
        (torch.tensor(CLIPS), ["clip 0", "clip 1"]),
        (CLIPS.transpose(0, 1, 3, 4, 2), ["clip 0", "clip 1"]),
        (CLIPS.transpose(0, 2, 1, 3, 4), ["clip 0", "clip 1"]),
        ({"a": CLIPS[0], "b": CLIPS[1]}, ["a", "b"]),
        ([CLIPS[0], CLIPS[1]], ["clip 0", "clip 1"]),
        ([ArrayClip("a", CLIPS[0]), ArrayClip("b", CLIPS[1])], ["a", "b"]),
        (TensorDataset(torch.tensor(CLIPS), torch.zeros(2)), ["clip 0", "clip 1"]),
        (DataLoader(TensorDataset(torch.tensor(CLIPS)), batch_size=2), ["clip 0", "clip 1"]),
    ],
    ids=range(9),
)
def test_clips_of_every_kind(given, names):
    clips = as_sequences(given)
    assert [clip.name for clip in clips] == names
    assert all(np.array_equal(np.stack(list(c.frames())), CLIPS[i]) for i, c in enumerate(clips))


def test_clips_of_files(tmp_path):
    np.save(tmp_path / "moving.npy", CLIPS[0])
    np.savez(tmp_path / "both.npz", a=CLIPS[0], b=CLIPS[1])
    assert [c.name for c in as_sequences(tmp_path / "moving.npy")] == ["moving"]
    assert [c.name for c in as_sequences(str(tmp_path / "both.npz"))] == ["a", "b"]
    assert len(as_sequences(CLIPS[0])) == 1 and len(as_sequences(ArrayClip("a", CLIPS[0]))) == 1


TOKENS = {"input_ids": np.array([[5, 7], [6, 0]]), "attention_mask": np.array([[1, 1], [1, 0]])}


def rows(extra):
    return [{name: values[i].tolist() for name, values in TOKENS.items()} | extra | {"label": i} for i in (0, 1)]


@pytest.mark.parametrize(
    "given",
    [(TOKENS, [0, 1]), {**TOKENS, "labels": [0, 1]}, rows({"text": "some words"}), DataLoader(rows({}))],
)
def test_what_a_tokenizer_made_keeps_its_names(given):
    if isinstance(given, DataLoader):
        given = DataLoader([{k: torch.tensor(v) for k, v in row.items()} for row in rows({})], batch_size=2)
    data = as_labelled(given)
    assert data.labels.tolist() == [0, 1] and list(data.inputs) == ["input_ids", "attention_mask"]
    assert all(np.array_equal(data.inputs[name], TOKENS[name]) for name in TOKENS)


def test_texts_of_different_lengths_say_that_they_must_be_padded():
    with pytest.raises(AssayError, match="pad or cut them to one length"):
        as_labelled([{"input_ids": [1, 2], "label": 0}, {"input_ids": [1], "label": 1}, {"input_ids": [1], "label": 1}])


def test_the_one_array_of_an_npy_file_is_no_label_of_itself(tmp_path):
    np.save(tmp_path / "pictures.npy", np.zeros((4, 3, 8, 8), np.float32))
    assert as_images(tmp_path / "pictures.npy").labels is None


def test_a_link_to_a_picture_that_is_gone_is_named_and_not_left_out(folder):
    (folder / "cat" / "gone.png").symlink_to("nowhere.png")
    with pytest.raises(AssayError, match=r"gone.png.* is no file here"):
        as_labelled(folder, size=8)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_of_pictures_is_read(tmp_path, kind):
    Image.fromarray(PIXELS[0]).save(tmp_path / "picture", kind)
    # Lossy formats keep the mean of random pixels to a few grey levels of 255.
    assert abs(np.asarray(read_picture(tmp_path / "picture")).mean() - PIXELS[0].mean()) < 8


def test_a_program_of_postscript_is_no_picture_and_is_not_run(folder, monkeypatch):
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_, **__: pytest.fail("it was run"))
    (folder / "cat" / "odd.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    with pytest.raises(AssayError, match=r"odd.png cannot be read as a picture \(cannot identify"):
        as_labelled(folder, size=8)


def test_an_npz_file_by_another_name_is_one_clear_sentence(tmp_path):
    np.savez(tmp_path / "pictures.npz", pictures=np.zeros((2, 8, 8), np.uint8))
    (tmp_path / "pictures.npz").rename(tmp_path / "pictures.npy")
    with pytest.raises(AssayError, match=r"holds arrays with names: call it \.npz"):
        read_array(tmp_path / "pictures.npy", "images")


WIDE = np.zeros((6, 3, 8, 12), np.float32)


@pytest.mark.parametrize(
    "given",
    [
        (WIDE, LABELS),
        {"image": WIDE, "label": LABELS},
        Labelled(WIDE, LABELS),
        TensorDataset(torch.tensor(WIDE), torch.tensor(LABELS)),
        DataLoader(TensorDataset(torch.tensor(WIDE), torch.tensor(LABELS)), batch_size=2),
        (WIDE.transpose(0, 2, 3, 1), LABELS),
    ],
    ids=["pair", "mapping", "labelled", "dataset", "loader", "channels last"],
)
@pytest.mark.parametrize("convert", [as_labelled, as_images])
def test_arrays_that_do_not_follow_a_size_or_colour_are_refused_with_the_remedy(given, convert):
    with pytest.raises(AssayError, match=r"holds arrays of 3×8×12, .* do not follow size=8: leave .*Resize\(8\)"):
        convert(given, size=8)
    with pytest.raises(AssayError, match=r"do not follow color='grey': leave .*'grey' in a plan"):
        convert(given, color="grey")
    assert convert(given, size=(8, 12), color="rgb").fingerprint == convert(given).fingerprint


def test_files_of_arrays_that_do_not_follow_a_size_or_colour_are_refused(tmp_path):
    np.savez(tmp_path / "data.npz", images=WIDE, labels=LABELS)
    np.save(tmp_path / "x.npy", WIDE[:, 0])
    for load in (as_labelled, as_images, load_images):
        with pytest.raises(AssayError, match="do not follow size=8"):
            load(tmp_path / "data.npz", size=8)
    with pytest.raises(AssayError, match=r"arrays of 8×12.* do not follow color='rgb': .* give arrays of 3 channels"):
        as_labelled((tmp_path / "x.npy", LABELS), color="rgb")
    assert as_labelled((tmp_path / "x.npy", LABELS), color="grey").shape == (8, 12)


def test_a_size_of_inputs_that_are_no_pictures_is_refused_and_of_pictures_beside_words_is_not(folder):
    with pytest.raises(AssayError, match="holds arrays of 12, which are no pictures: leave out size=8 and color='rgb'"):
        as_labelled((WIDE[:, 0, 0], LABELS), size=8, color="rgb")
    row = {"input_ids": [1, 2], "pixel_values": Image.fromarray(PIXELS[0]), "label": 0}
    made = as_labelled([row, row], size=4, color="grey")
    assert {name: array.shape for name, array in made.inputs.items()} == {
        "input_ids": (2, 2),
        "pixel_values": (2, 1, 4, 4),
    }


@pytest.mark.parametrize(
    "given",
    [
        CLIPS,
        {"a": CLIPS[0]},
        [CLIPS[0]],
        Sequences.of(a=CLIPS[0]),
        ArrayClip("a", CLIPS[0]),
        TensorDataset(torch.tensor(CLIPS)),
    ],
    ids=["array", "mapping", "list", "sequences", "clip", "dataset"],
)
def test_clips_that_do_not_follow_a_size_or_colour_are_refused(given):
    channels, side = CLIPS.shape[2], CLIPS.shape[3]
    with pytest.raises(AssayError, match=f"do not follow size={side + 1}"):
        as_sequences(given, size=side + 1)
    with pytest.raises(AssayError, match="do not follow color="):
        as_sequences(given, color="rgb" if channels == 1 else "grey")
    assert len(as_sequences(given, color="grey" if channels == 1 else "rgb")) == len(as_sequences(given))


def test_frames_in_files_follow_a_size_and_those_loaded_before_are_refused_another(folder):
    loaded = as_sequences(folder, size=4)
    assert next(loaded.clips[0].frames()).shape == (3, 4, 4)
    with pytest.raises(AssayError, match="do not follow size=6"):
        as_sequences(loaded, size=6)


def test_a_limit_holds_for_arrays_too_and_is_spread_over_them():
    labels = np.arange(6)
    for given in ((WIDE, labels), Labelled(WIDE, labels)):
        assert as_labelled(given, limit=3).labels.tolist() == [0, 2, 4] and len(as_labelled(given)) == 6
        assert as_labelled(given, limit=3).source == "arrays in memory, 3 of 6"
    assert len(as_images(WIDE, limit=4)) == 4 and len(as_images(Images(WIDE), limit=4)) == 4
    assert [clip.name for clip in as_sequences(np.stack([CLIPS[0]] * 6), limit=2)] == ["clip 0", "clip 3"]
    many = np.zeros((10_001, 2), np.float32)
    assert len(as_labelled((many, np.zeros(len(many), int)))) == len(many)
