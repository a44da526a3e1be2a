"""Labelled videos of the user's own: clips in a folder for each class, or listed in a table."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from assay.broad.data.columns import number, read_columns
from assay.broad.data.dataset import Dataset, Inputs
from assay.core.errors import AssayError, first_line
from assay.core.reading import visible
from assay.stimuli.clips import Clip
from assay.stimuli.sequences import load_sequences


def load_labelled_videos(
    folder: str | Path, test: float | str | Path | None = None, seed: int = 0
) -> tuple[Dataset, Dataset]:
    """Load training and test clips from a folder of videos; each clip is decoded when it is asked for.

    Either ``folder`` holds a table ``labels.csv`` with the columns ``file``, ``label`` (several with ``;`` between
    them), ``split`` (train or test) and, if clips belong together, ``group``. Or it holds one sub-folder for each
    class, and ``test`` says which clips are kept for testing. A clip is a video file or a folder of pictures.

    Args:
        folder: Folder of the videos.
        test: The test clips: another folder with the same classes, or the share of each class to draw. Give it only
            where there is no ``labels.csv``.
        seed: Seed of the random draw of test clips.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise AssayError(f"videos: {folder} is not a folder")
    if (folder / "labels.csv").is_file():
        if test is not None:
            raise AssayError(
                f"test={test!r}: {folder / 'labels.csv'} has a column 'split' that says so; leave test out"
            )
        return _listed_videos(folder)
    if test is None:
        raise AssayError(f"{folder} has no labels.csv: give test, a share of the clips or another folder")
    clips = _class_folders(folder)
    if isinstance(test, (str, Path)):
        test_clips = _class_folders(Path(test))
        if set(test_clips) != set(clips):
            odd = sorted(set(test_clips) ^ set(clips))
            raise AssayError(f"test={str(test)!r} and {folder} have different classes: {', '.join(odd)} only in one")
        return _by_class(f"{folder.name} training", clips), _by_class(f"{folder.name} test", test_clips)
    if not 0 < test < 1:
        raise AssayError(f"test={test!r} is not a share between 0 and 1")
    rng = np.random.default_rng(seed)
    training_clips: dict[str, dict[str, Clip]] = {}
    held_out: dict[str, dict[str, Clip]] = {}
    for label, members in clips.items():
        if len(members) < 2:
            raise AssayError(f"class {label!r} has one clip: training and test need one each")
        count = min(max(int(test * len(members) + 0.5), 1), len(members) - 1)
        drawn = {list(members)[i] for i in rng.permutation(len(members))[:count]}
        training_clips[label] = {name: clip for name, clip in members.items() if name not in drawn}
        held_out[label] = {name: clip for name, clip in members.items() if name in drawn}
    return _by_class(f"{folder.name} training", training_clips), _by_class(f"{folder.name} test", held_out)


def _class_folders(folder: Path) -> dict[str, dict[str, Clip]]:
    """Load the clips of each sub-folder: clips by name, by class."""
    places = [place for place in visible(folder.iterdir(), folder) if place.is_dir()] if folder.is_dir() else []
    if not places:
        raise AssayError(f"videos: {folder} holds no sub-folders, one for each class")
    return {place.name: {clip.name: clip for clip in load_sequences(place)} for place in places}


def _by_class(name: str, clips: Mapping[str, Mapping[str, Clip]]) -> Dataset:
    labels = tuple(clips)
    labelled = [(f"{label}/{key}", clip, label) for label in labels for key, clip in clips[label].items()]
    targets = np.array([[label == other for other in labels] for _, _, label in labelled])
    return Dataset(
        name, "video", Inputs([c for _, c, _ in labelled], tuple(i for i, _, _ in labelled)), targets, labels
    )


def _listed_videos(folder: Path) -> tuple[Dataset, Dataset]:
    path = folder / "labels.csv"
    with path.open(encoding="utf-8-sig") as file:
        grouped = "group" in next(csv.reader(file), [])
    lines, cells = read_columns(path, ["file", "label", "split", *(["group"] if grouped else [])])
    clips: dict[str, Clip] = {}
    labelled = []
    for line, file_name, label, split in zip(lines, cells["file"], cells["label"], cells["split"], strict=True):
        clip_labels = [part.strip() for part in label.split(";") if part.strip()]
        if file_name in clips:
            raise AssayError(f"{path}, line {line}: {file_name!r} is listed twice; give its labels with ';' between")
        if not clip_labels:
            raise AssayError(f"{path}, line {line}: {file_name!r} has no label")
        if split not in ("train", "test"):
            raise AssayError(f"{path}, line {line}: split={split!r} is not 'train' or 'test'")
        try:
            (clips[file_name],) = load_sequences(folder / file_name)
        except ValueError as error:
            raise AssayError(f"{path}, line {line}: {file_name!r} is not one clip ({first_line(error)})") from error
        labelled.append(clip_labels)
    labels = tuple(sorted({label for clip_labels in labelled for label in clip_labels}))
    targets = np.array([[label in clip_labels for label in labels] for clip_labels in labelled])
    groups = number(cells["group"]) if grouped else None
    inputs = Inputs(list(clips.values()), tuple(clips))
    parts = []
    for split, name in (("train", "training"), ("test", "test")):
        where = np.flatnonzero(np.array(cells["split"]) == split)
        if not len(where):
            raise AssayError(f"{path}: no clip has split={split!r}")
        parts.append(Dataset(f"{folder.name} {name}", "video", inputs, targets, labels, groups).take(where))
    return parts[0], parts[1]
