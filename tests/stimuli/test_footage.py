"""Footage from folders and videos, in one size; and KITTI's recordings in their own layout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import assay
from assay.stimuli.footage import cover, load_footage, load_kitti

DRIVES = {
    "city": ("2011_09_26_drive_0001", "2011_09_26_drive_0005", "2011_09_26_drive_0104"),
    "residential": ("2011_09_26_drive_0079", "2011_10_03_drive_0027"),
    "road": ("2011_09_26_drive_0070", "2011_09_29_drive_0004"),
    "person": ("2011_09_28_drive_0053",),  # a category that is not used
}


@pytest.fixture
def kitti(tmp_path):
    """Three frames of each drive, with a camera that is not used beside the one that is."""
    rng = np.random.default_rng(0)
    for category, drives in DRIVES.items():
        for drive in drives:
            for camera in ("image_02", "image_03"):
                folder = tmp_path / category / drive[:10] / f"{drive}_sync" / camera / "data"
                folder.mkdir(parents=True)
                for t in range(3):
                    frame = rng.integers(0, 256, (37, 124, 3), dtype=np.uint8)
                    Image.fromarray(frame).save(folder / f"{t:010d}.png")
    return tmp_path


def test_kitti_is_split_as_published(kitti):
    val, test, train = (load_kitti(kitti, part, (16, 24)) for part in ("val", "test", "train"))
    assert list(val) == ["city/2011_09_26_drive_0005"]
    assert list(test) == [
        "city/2011_09_26_drive_0104",
        "residential/2011_09_26_drive_0079",
        "road/2011_09_26_drive_0070",
    ]
    assert list(train) == [
        "city/2011_09_26_drive_0001",
        "residential/2011_10_03_drive_0027",
        "road/2011_09_29_drive_0004",
    ]
    assert all(clip.shape == (3, 3, 16, 24) and clip.dtype == torch.uint8 for clip in train.values())


def test_kitti_is_scaled_to_the_height_and_cut_to_the_central_width(kitti):
    folder = kitti / "city/2011_09_26/2011_09_26_drive_0005_sync/image_03/data"
    with Image.open(folder / "0000000001.png") as picture:
        scaled = picture.resize((round(16 / 37 * 124), 16), Image.Resampling.BILINEAR)
    left = (scaled.width - 24) // 2
    by_hand = np.asarray(scaled)[:, left : left + 24].transpose(2, 0, 1)
    assert np.array_equal(load_kitti(kitti, "val", (16, 24))["city/2011_09_26_drive_0005"][1].numpy(), by_hand)


@pytest.mark.parametrize("given", [(20, 10), (10, 20), (7, 9), (16, 8)])
def test_a_picture_of_any_shape_is_covered_without_distortion(given):
    width, height = given
    columns = np.tile(np.linspace(0, 255, width, dtype=np.uint8), (height, 1))
    covered = np.asarray(cover(Image.fromarray(columns), (8, 8)))
    assert covered.shape == (8, 8, 3)
    assert (np.diff(covered[..., 0].astype(int), axis=1) >= 0).all() and (covered == covered[:1]).all()


def test_grey_and_floating_point_pictures_become_colours():
    grey = cover(Image.fromarray(np.full((8, 8), 51, np.uint8)), (8, 8))
    floating = cover(Image.fromarray(np.full((8, 8), 0.2, np.float32)), (8, 8))
    assert np.array_equal(np.asarray(grey), np.asarray(floating)) and np.asarray(grey).shape == (8, 8, 3)


def test_folders_of_pictures_are_clips_in_the_order_of_their_numbers(tmp_path):
    (tmp_path / "walk").mkdir()
    for t in (0, 2, 10):
        Image.fromarray(np.full((8, 8, 3), t, np.uint8)).save(tmp_path / "walk" / f"frame{t}.png")
    footage = load_footage(tmp_path, (8, 8))
    assert list(footage) == ["walk"] and footage["walk"][:, 0, 0, 0].tolist() == [0, 2, 10]
    assert load_footage(tmp_path, (8, 8), start=1)["walk"].shape == (2, 3, 8, 8)


def test_real_videos_are_read_at_a_size(shared_data):
    footage = load_footage(shared_data / "videos", (16, 24), names=["realshort", "bikes"], stop=5)
    assert {name: tuple(clip.shape) for name, clip in footage.items()} == {
        "realshort": (5, 3, 16, 24),
        "bikes": (5, 3, 16, 24),
    }
    assert all(clip.float().std() > 10 for clip in footage.values())


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (lambda folder: load_kitti(folder), "holds no drive of KITTI's part 'train'"),
        (lambda folder: load_kitti(folder, "valid"), "unknown part='valid'"),
        (lambda folder: load_footage(folder), "no sub-folder of pictures, no video"),
        (lambda folder: load_footage(folder, (0, 8)), "size=(0, 8)"),
        (lambda folder: load_footage(folder / "absent"), "does not exist"),
    ],
)
def test_what_holds_no_footage_is_named(tmp_path, load, said):
    with pytest.raises(assay.AssayError) as error:
        load(tmp_path)
    assert said in str(error.value)
