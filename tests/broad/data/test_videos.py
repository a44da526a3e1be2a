from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from assay import AssayError
from assay.broad.data.videos import load_labelled_videos


def write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def frames(folder, value=0, n=2):
    folder.mkdir(parents=True)
    for i in range(n):
        Image.fromarray(np.full((4, 6), value, dtype=np.uint8)).save(folder / f"{i}.png")


@pytest.fixture
def classes(tmp_path):
    for label, count in (("wave", 5), ("jump", 3)):
        for i in range(count):
            frames(tmp_path / "videos" / label / f"clip{i}", value=10 * i)
    return tmp_path / "videos"


def test_sub_folders_are_classes_and_a_share_of_each_is_kept_for_testing(classes):
    training, test = load_labelled_videos(classes, test=0.4)
    assert training.labels == test.labels == ("jump", "wave") and training.modality == "video"
    assert (training.targets.sum(axis=0).tolist(), test.targets.sum(axis=0).tolist()) == ([2, 3], [1, 2])
    assert sorted(training.inputs.ids + test.inputs.ids) == sorted(
        [f"wave/clip{i}" for i in range(5)] + [f"jump/clip{i}" for i in range(3)]
    )
    for part in (training, test):
        assert part.targets.dtype == bool and (part.targets.sum(axis=1) == 1).all()
        for name, clip, shown in zip(part.inputs.ids, part.inputs.items, part.targets, strict=True):
            label, key = name.split("/")
            assert shown[part.labels.index(label)]
            assert next(clip.frames()).max() == pytest.approx(10 * int(key[-1]) / 255)
    again, _ = load_labelled_videos(classes, test=0.4)
    assert again.inputs.ids == training.inputs.ids
    assert len({load_labelled_videos(classes, test=0.4, seed=s)[1].inputs.ids for s in range(8)}) > 1


def test_another_folder_may_be_the_test_set(classes, tmp_path):
    frames(tmp_path / "later" / "wave" / "a")
    with pytest.raises(AssayError, match="have different classes: jump only in one"):
        load_labelled_videos(classes, test=tmp_path / "later")
    frames(tmp_path / "later" / "jump" / "b")
    training, test = load_labelled_videos(classes, test=tmp_path / "later")
    assert len(training) == 8 and test.inputs.ids == ("jump/b", "wave/a")


def test_a_table_gives_several_labels_the_split_and_groups(classes):
    write(
        classes / "labels.csv",
        ["file", "label", "split", "group"],
        ["wave/clip0", "wave; smile", "train", "film b"],
        ["jump/clip1", "jump", "test", "film a"],
        ["wave/clip2", "wave", "train", "film b"],
    )
    training, test = load_labelled_videos(classes)
    assert training.labels == test.labels == ("jump", "smile", "wave")
    assert training.targets.tolist() == [[False, True, True], [False, False, True]]
    assert test.targets.tolist() == [[True, False, False]]
    assert training.inputs.ids == ("wave/clip0", "wave/clip2") and test.inputs.ids == ("jump/clip1",)
    assert training.groups.tolist() == [0, 0] and test.groups.tolist() == [1]
    with pytest.raises(AssayError, match=r"test=0\.5: .*labels\.csv has a column 'split'"):
        load_labelled_videos(classes, test=0.5)


def test_real_videos_load_by_table(shared_data, tmp_path):
    (tmp_path / "bikes.mp4").symlink_to(shared_data / "videos" / "bikes.mp4")
    frames(tmp_path / "still")
    write(
        tmp_path / "labels.csv", ["file", "label", "split"], ["bikes.mp4", "ride", "train"], ["still", "rest", "test"]
    )
    training, test = load_labelled_videos(tmp_path)
    assert next(training.inputs.items[0].frames()).ndim == 3 and test.groups is None


ROWS = [["wave/clip0", "wave", "train"], ["jump/clip1", "jump", "test"]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["wave/clip0", "smile", "train"], "line 4: 'wave/clip0' is listed twice"),
        (["wave/clip1", " ; ", "train"], "line 4: 'wave/clip1' has no label"),
        (["wave/clip1", "wave", "dev"], "line 4: split='dev' is not 'train' or 'test'"),
        (["wave/clip9", "wave", "test"], "line 4: 'wave/clip9' is not one clip .*does not exist"),
        (["wave", "wave", "test"], "line 4: 'wave' is not one clip"),
    ],
)
def test_bad_rows_of_a_table_are_named_by_their_line(classes, row, message):
    write(classes / "labels.csv", ["file", "label", "split"], *ROWS, row)
    with pytest.raises(AssayError, match=message):
        load_labelled_videos(classes)


def test_unusable_folders_are_one_clear_sentence(classes, tmp_path):
    cases = [
        ((tmp_path / "none", 0.5), "none is not a folder"),
        ((classes, None), r"has no labels\.csv: give test"),
        ((classes, 1.5), r"test=1\.5 is not a share"),
        ((classes / "wave" / "clip0", 0.5), "holds no sub-folders, one for each class"),
        ((classes, tmp_path / "nowhere"), "nowhere holds no sub-folders"),
    ]
    for arguments, message in cases:
        with pytest.raises(AssayError, match=message):
            load_labelled_videos(*arguments)
    frames(classes / "rare" / "only")
    with pytest.raises(AssayError, match="class 'rare' has one clip"):
        load_labelled_videos(classes, test=0.5)
    write(classes / "labels.csv", ["file", "label", "split"], ROWS[0])
    with pytest.raises(AssayError, match="no clip has split='test'"):
        load_labelled_videos(classes)
