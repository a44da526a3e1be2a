"""Files that systems hide beside the user's are no data: a folder of data is what the user sees in it."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

from assay import AssayError
from assay.broad.data.videos import load_labelled_videos
from assay.plans.data import image_set, labelled_data
from assay.stimuli import as_images, as_labelled, load_images, load_rdms, load_sequences, stream_labelled

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    """Two class folders of three pictures each, with what macOS, Windows and Jupyter put there."""
    photos = tmp_path / ".data" / "photos"  # a hidden place of the user's own does not matter
    for i, pixels in enumerate(PIXELS):
        place = photos / ("cat", "owl")[i // 3]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{i}.png")
        (place / f"._{i}.png").write_bytes(b"\0\5\x16\7")
        (place / "Thumbs.db").write_bytes(b"")
    (photos / ".DS_Store").write_bytes(b"")
    for hidden in ("__MACOSX/cat", ".ipynb_checkpoints", "cat/.ipynb_checkpoints"):
        (photos / hidden).mkdir(parents=True)
        shutil.copy(photos / "cat/0.png", photos / hidden / "._0-checkpoint.png")
        shutil.copy(photos / "cat/0.png", photos / hidden / "0-checkpoint.png")
    return photos


def test_hidden_files_are_no_pictures_and_hidden_folders_no_classes(folder):
    for data in (as_labelled(folder), labelled_data(folder), stream_labelled(folder)):
        assert len(data) == 6 and data.class_names == ("cat", "owl") and data.labels.tolist() == [0, 0, 0, 1, 1, 1]
    shown = PIXELS[:3].transpose(0, 3, 1, 2)
    for images in (as_images(folder / "cat"), load_images(folder / "cat"), image_set(folder / "cat")):
        assert np.allclose(images.array, shown / 255, atol=1e-6) or np.array_equal(images.array, shown)


def test_hidden_files_are_no_frames_clips_or_rdms(folder):
    assert [(clip.name, clip.count()) for clip in load_sequences(folder)] == [("cat", 3), ("owl", 3)]
    videos = folder.parent / "videos"
    for label in ("run", "sit"):
        for clip in ("a", "b", ".c"):
            shutil.copytree(folder / "cat", videos / label / clip)
    shutil.copytree(folder / "cat", videos / "__MACOSX" / "a")
    train, test = load_labelled_videos(videos, test=0.5)
    assert train.labels == ("run", "sit") and len(train) + len(test) == 4
    rdm = np.ones((4, 4)) - np.eye(4)
    for name in ("anna.npy", "._anna.npy"):
        np.save(folder / name, rdm)
    assert load_rdms(folder).names == ("anna",)


def test_hidden_files_are_no_parquet(folder):
    (folder / "._train.parquet").write_bytes(b"\0\5\x16\7")
    assert len(stream_labelled(folder)) == len(labelled_data(folder)) == 6


def test_all_pictures_that_cannot_be_read_are_named_with_what_to_do(folder):
    (folder / "cat" / "1.png").write_bytes(b"no picture")
    with pytest.raises(AssayError, match=r"1.png cannot be read as a picture \(.*\): replace or delete it$"):
        as_labelled(folder)
    (folder / "owl" / "4.png").write_bytes(b"")
    cut = folder / "owl" / "5.png"
    cut.write_bytes(cut.read_bytes()[:-40])
    with pytest.raises(AssayError, match=r"1.png .* it; 2 other pictures cannot be read either: .*4.png, .*5.png$"):
        as_labelled(folder)


def test_an_empty_class_folder_is_named_once(folder):
    (folder / "elk").mkdir()
    with pytest.raises(AssayError, match=r"^the class folder .*elk holds no pictures \(.*\): fill or remove it"):
        labelled_data(folder)
