"""Labelled pictures that stream from class folders and Parquet: the same numbers as in memory, in bounded memory."""

from __future__ import annotations

import io
import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from assay import AssayError, Margins, PerturbationResponse, Subject
from assay.plans.data import labelled_data
from assay.stimuli import as_labelled, stream_labelled
from assay.studies.corpus.data import CorpusData
from memory_kit import told_by


def encoded(array, kind="PNG"):
    data = io.BytesIO()
    Image.fromarray(array).save(data, kind)
    return data.getvalue()


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (24, 9, 9, 3), np.uint8), np.arange(24) % 3


@pytest.fixture
def folder(tmp_path, drawn):
    """Three class folders of eight pictures each."""
    for number, (picture, label) in enumerate(zip(*drawn, strict=True)):
        place = tmp_path / "pictures" / "train" / f"class {label}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:02}.png").write_bytes(encoded(picture))
    return tmp_path / "pictures"


@pytest.fixture
def parquet(tmp_path, drawn):
    """Two files of Parquet as Hugging Face writes them, in groups of five rows."""
    (tmp_path / "table").mkdir()
    pictures, labels = drawn
    for part, rows in enumerate((range(14), range(14, 24))):
        column = [{"bytes": encoded(pictures[i]), "path": f"{i}.png"} for i in rows]
        table = pa.table({"image": column, "label": [int(labels[i]) for i in rows]})
        pq.write_table(table, tmp_path / "table" / f"train-{part:05}-of-00002.parquet", row_group_size=5)
    return tmp_path / "table"


def network():
    torch.manual_seed(0)
    return Subject(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 3)), "linear")


def test_a_folder_streams_what_it_holds_in_memory(folder):
    whole = as_labelled(folder / "train", size=8)
    data = stream_labelled(folder, split="train", size=8)
    assert len(data) == 24 and data.shape == (3, 8, 8) and data.class_names == whole.class_names
    assert np.array_equal(data.labels, whole.labels)
    for rows in (slice(None), slice(3, 9), np.array([5, 1, 5]), np.arange(24) % 2 == 0):
        assert torch.equal(data.shown(rows), whole.shown(rows))
    for name in ("sample", "balanced", "each"):
        ours, theirs = (getattr(one, name)(6 if name != "each" else 2) for one in (data, whole))
        assert torch.equal(ours.shown(), theirs.shown()) and np.array_equal(ours.labels, theirs.labels)


def test_parquet_streams_what_it_holds_across_files_and_groups_of_rows(parquet, drawn):
    data = stream_labelled(parquet)
    expected = torch.from_numpy(drawn[0].transpose(0, 3, 1, 2)).float() / 255
    assert torch.equal(data.shown(), expected) and np.array_equal(data.labels, drawn[1])
    rows = np.random.default_rng(0).permutation(24)
    assert torch.equal(data.shown(rows), expected[rows.tolist()])
    assert torch.equal(stream_labelled(parquet, split="train").shown(), expected)


def test_measures_say_the_same_of_streamed_pictures(folder):
    whole = as_labelled(folder / "train", size=8)
    data = stream_labelled(folder / "train", size=8)
    for ask in (
        lambda d: PerturbationResponse(d, ["intra", "inter"], magnitudes=3, bootstrap=5, batch_size=7),
        lambda d: Margins(d, bootstrap=5, samples=20, batch_size=7),
    ):
        assert ask(data)(network()).equals(ask(whole)(network()))


def test_fingerprints_follow_the_files_and_what_is_drawn_of_them(folder):
    data = stream_labelled(folder / "train", size=8)
    same = stream_labelled(folder / "train", size=8)
    assert data.fingerprint == same.fingerprint == pickle.loads(pickle.dumps(data)).fingerprint
    others = [stream_labelled(folder / "train", size=7), data.sample(5), data.sample(5, seed=1), data.each(2)]
    assert len({one.fingerprint for one in (data, *others)}) == 5
    file = next((folder / "train").rglob("*.png"))
    os.utime(file, ns=(1, 1))
    assert stream_labelled(folder / "train", size=8).fingerprint != data.fingerprint


def test_plans_and_corpora_stream(folder, parquet):
    assert type(labelled_data(folder, "train", size=8, stream=True).inputs).__name__ == "StreamedPictures"
    assert len(labelled_data(parquet, labels="label")) == 24
    for data in (CorpusData(folder, size=8, stream=True), CorpusData(parquet), CorpusData(parquet, train=10)):
        train = data.load_train(0)
        assert type(train.inputs).__name__ == "StreamedPictures" and len(train) == (data.train or 24)
        assert data.load_test(0) is None


def test_parquet_is_named_where_it_is_not_read_and_parts_that_are_not_there_too(parquet):
    with pytest.raises(AssayError, match=r"is Parquet: give assay.stimuli.stream_labelled\("):
        as_labelled(parquet)
    with pytest.raises(AssayError, match=r"has no folder 'other' and no other-….parquet"):
        labelled_data(parquet, split="other")


def test_names_of_classes_in_parquet_are_numbered(tmp_path, drawn):
    table = pa.table({"img": [encoded(p) for p in drawn[0][:3]], "kind": ["owl", "cat", "owl"]})
    pq.write_table(table, tmp_path / "few.parquet")
    data = stream_labelled(tmp_path / "few.parquet", labels="kind", color="grey")
    assert data.labels.tolist() == [1, 0, 1] and data.class_names == ("cat", "owl") and data.shape == (1, 9, 9)
    with pytest.raises(AssayError, match="has the columns img, kind: name the one with the labels"):
        stream_labelled(tmp_path / "few.parquet")
    with pytest.raises(AssayError, match="has no column 'imgs'; did you mean 'img'"):
        stream_labelled(tmp_path / "few.parquet", images="imgs", labels="kind")
    with pytest.raises(AssayError, match=r"few\.parquet, 'kind' holds str and no bytes"):
        stream_labelled(tmp_path / "few.parquet", images="kind", labels="kind")


def test_damaged_files_and_pictures_that_differ_are_named_when_they_are_met(folder, tmp_path, parquet):
    files = sorted((folder / "train").rglob("*.png"))
    files[9].write_bytes(b"no picture")
    files[20].write_bytes(encoded(np.zeros((5, 6, 3), np.uint8)))
    data = stream_labelled(folder / "train")
    assert len(data.shown(slice(0, 9))) == 9
    with pytest.raises(AssayError, match=rf"{files[9].name} cannot be read as a picture"):
        data.shown(slice(0, 12))
    with pytest.raises(AssayError, match=rf"{files[20].name} is 3×5×6 .*size"):
        data.shown(slice(18, 24))
    files[20].unlink()
    with pytest.raises(AssayError, match=rf"{files[20].name} cannot be read"):
        data.shown(slice(18, 24))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(AssayError, match=r"bad\.parquet cannot be read as Parquet"):
        stream_labelled(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("path", "words"),
    [("nothing", "does not exist"), ("file.txt", "cannot be streamed"), ("empty", "holds no class folders")],
)
def test_what_cannot_be_streamed_is_refused(tmp_path, path, words):
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AssayError, match=words):
        stream_labelled(tmp_path / path)


def test_more_at_once_than_memory_allows_is_refused_before_it_is_read(folder, monkeypatch):
    data = stream_labelled(folder / "train", size=8)
    monkeypatch.setenv("ASSAY_MOST_BYTES", "4000")
    with pytest.raises(AssayError, match=r"24 inputs of .* in one batch, each .* would take"):
        data.shown()
    assert len(data.shown(slice(0, 4))) == 4


CODE = r"""
import torch
from assay import PerturbationResponse, Subject
from assay.stimuli import as_labelled, stream_labelled

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.AvgPool2d(32), torch.nn.Flatten(), torch.nn.Linear(3 * 7 * 7, 2))
ask = dict(magnitudes=2, bootstrap=0, batch_size=32, samples=None)
first = stream_labelled(sys.argv[1], size=224).each(200)
PerturbationResponse(first, **ask)(Subject(net))                  # a third of the pictures
before = peak()
streamed = PerturbationResponse(stream_labelled(sys.argv[1], size=224), **ask)(Subject(net))
grown = peak() - before
whole = PerturbationResponse(as_labelled(sys.argv[1], size=224), **ask)(Subject(net))
print(json.dumps({"streamed": grown, "whole": peak() - before, "same": bool(streamed.equals(whole))}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "parquet"])
def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path, kind):
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (40, 8, 8, 3), np.uint8)
    pictures = [encoded(np.asarray(Image.fromarray(p).resize((224, 224))), "JPEG") for p in small]
    rows = []
    for number in range(1200):  # 172 MiB of pixels
        place = tmp_path / "data" / f"class {number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(pictures[number % 40])
        rows.append((pictures[number % 40], number % 2))
    code = CODE
    if kind == "parquet":
        table = pa.table({"image": [row[0] for row in rows], "label": [row[1] for row in rows]})
        pq.write_table(table, tmp_path / "data.parquet", row_group_size=100)
        code = code.replace("as_labelled(", "stream_labelled(")
    place = tmp_path / ("data.parquet" if kind == "parquet" else "data")
    said = told_by(code, place)
    assert said["same"] and said["streamed"] < 30e6, said
    if kind == "folder":
        assert said["whole"] > 160e6, said
