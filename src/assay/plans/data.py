"""Data as plans write them: a folder or a file, with the part, the size and the names of what is in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.core.reading import is_there, reading, require_room, visible
from assay.stimuli import Images, Labelled, Sequences, load_images, load_labelled
from assay.stimuli.datasets import as_images, as_labelled, as_sequences
from assay.stimuli.images import read_arrays
from assay.stimuli.pictures import Color
from assay.stimuli.stacking import ARRAY_SUFFIXES
from assay.stimuli.streaming import stream_labelled

Size = int | tuple[int, int]


def labelled_data(
    path: Path,
    split: str | None = None,
    size: Size | None = None,
    color: Color | None = None,
    inputs: str | tuple[str, ...] | None = None,
    labels: str | None = None,
    limit: int | None = None,
    stream: bool = False,
) -> Labelled:
    """Labelled data: a folder of class folders, of IDX or of Parquet files, an ``.npz``, ``.npy`` or ``.csv`` file.

    Args:
        path: The folder or file. In a ``.csv`` file the columns ``path`` (relative to the file) and ``label``.
        split: Which part: the sub-folder of this name; in an ``.npz`` file the arrays ``train_images`` and
            ``train_labels``, or ``test_…``; in a ``.csv`` file the rows with this word in the column ``split``.
        size: Side to which the central square of pictures in files is resized, or height and width. Arrays are used as
            they are, and another size than theirs is refused.
        color: ``grey`` or ``rgb``, to convert pictures in files to, in the same way.
        inputs: Name of the array of inputs in an ``.npz`` file; a list of names for a network that takes several, whose
            arguments have these names.
        labels: Name of the array of labels in an ``.npz`` file; for inputs in an ``.npy`` file the ``.npy`` file of
            their labels.
        limit: Largest number of inputs to take, spread evenly over all; by default 10,000 of a folder or table, and all
            of arrays and of pictures that stream.
        stream: Whether to read the pictures of class folders only when they are shown, whatever their number; those of
            Parquet files always are. ``inputs`` and ``labels`` name columns of these.
    """
    _require_there(path)
    if isinstance(inputs, tuple):
        _require_none("with a list of inputs", split=split, stream=stream or None)
        several = _several_inputs(path, inputs, labels or "labels")
        return as_labelled(several, size=size, color=color, limit=limit)
    place = path / split if split and (path / split).is_dir() else path
    parquet = visible(place.glob("*.parquet"), place)
    if stream or path.suffix == ".parquet" or parquet:
        streamed = stream_labelled(path, split=split, size=size, color=color, images=inputs, labels=labels)
        return as_labelled(streamed, limit=limit)
    if path.suffix == ".npz" and (split or inputs or labels or "train_images" in _names(path)):
        if inputs and labels:
            _require_none("where both arrays are named", split=split)
        arrays = load_labelled(path, split=split or "train", inputs=inputs, labels=labels)
        return as_labelled(arrays, size=size, color=color, limit=limit)
    if path.is_dir() and any(path.glob("*-idx?-ubyte*")):
        arrays = load_labelled(path, split=split or "train", inputs=inputs, labels=labels)
        return as_labelled(arrays, size=size, color=color, limit=limit)
    if inputs is not None or (labels is not None and path.suffix != ".npy"):
        raise AssayError(f"inputs and labels name arrays of an .npz file; {path} is none")
    if path.suffix == ".npy":
        if labels is None:
            raise AssayError(f"{path} holds inputs only: give the .npy file of their labels as 'labels'")
        _require_none("of an .npy file, which has no parts", split=split)
        return as_labelled((str(path), str(path.parent / labels)), size=size, color=color, limit=limit)
    if path.suffix == ".csv":
        return as_labelled(_table(path, split), size=size, color=color, limit=limit)
    return as_labelled(_part(path, split), size=size, color=color, limit=limit)


def image_set(
    path: Path,
    size: int | None = None,
    color: Color | None = None,
    images: str | None = None,
    labels: str | None = None,
    count: int | None = None,
) -> Images:
    """Images: a folder of pictures or of class folders, an ``.npz``, ``.npy`` or ``.csv`` file.

    Args:
        path: The folder (pictures in the order of their names) or the file. In a ``.csv`` file the column ``path``,
            relative to the file.
        size: Side to which the central square of pictures in files is resized. Arrays are used as they are, and another
            size than theirs is refused.
        color: ``grey`` or ``rgb``, to convert pictures in files to, in the same way.
        images: Name of the array in an ``.npz`` file; ``images`` by default.
        labels: Name of the array of labels in an ``.npz`` file.
        count: Number of images to load; of class folders and tables they are spread evenly, otherwise the first.
    """
    _require_there(path)
    if path.suffix == ".npz" and (images or labels or "images" in _names(path)):
        return load_images(path, size, color, images=images, labels=labels, count=count)
    if images is not None or labels is not None:
        raise AssayError(f"images and labels name arrays of an .npz file; {path} is none")
    if path.is_dir() and not any(p.is_dir() for p in visible(path.iterdir(), path)):
        return load_images(path, size, color, count=count)
    data = _table(path, None) if path.suffix == ".csv" else path
    limit = None if path.suffix in ARRAY_SUFFIXES else count  # of arrays, the first are taken below
    made = as_images(data, size=size, color=color, limit=limit)
    if count is None or count >= len(made):
        return made
    labels_taken = None if made.labels is None else made.labels[:count]
    return Images(made.array[:count], labels_taken, made.source, made.names[:count])


def clips_in(path: Path, size: Size | None = None, color: Color | None = None) -> Sequences:
    """Sequences: a folder of clips, a video, or an ``.npy`` or ``.npz`` file of frames.

    Args:
        path: The folder or file.
        size: Side to which the central square of frames in files is resized, or height and width. Arrays are used as
            they are, and another size than theirs is refused.
        color: ``grey`` or ``rgb``, to convert frames in files to, in the same way.
    """
    return as_sequences(str(path), size=size, color=color)


def _several_inputs(path: Path, inputs: tuple[str, ...], labels: str) -> Labelled:
    """Labelled data for a network of several inputs, from the arrays of an ``.npz`` file by name."""
    if path.suffix != ".npz" or not inputs:
        raise AssayError(f"a list of inputs names arrays of an .npz file; {path} with inputs={list(inputs)} has none")
    *arrays, classes = read_arrays(path, *inputs, labels)
    return replace(as_labelled((dict(zip(inputs, arrays, strict=True)), classes)), source=path.name)


def _require_none(where: str, **settings: object) -> None:
    """Refuse settings that would have no effect."""
    for name, value in settings.items():
        if value is not None:
            raise AssayError(f"{name}={value!r} has no effect {where}: leave it out")


def _require_there(path: Path) -> None:
    if not is_there(path):
        raise AssayError(f"{path} does not exist")


def _names(path: Path) -> list[str]:
    """The names of the arrays in a file; none where it cannot be read, which reading it then says."""
    try:
        with reading(path, "arrays"), np.load(path, allow_pickle=False) as file:
            return list(file)
    except Exception:
        return []


def _part(path: Path, split: str | None) -> Path:
    """The folder of a part of a data set."""
    if split is None:
        return path
    if not path.is_dir():
        raise AssayError(f"{path} has no parts: leave out split={split!r}")
    inside = [p.name for p in visible(path.iterdir(), path) if p.is_dir()]
    if split not in inside:
        raise AssayError(f"{path} has no folder {split!r}{nearest(split, inside)}")
    return path / split


def _table(path: Path, split: str | None) -> pd.DataFrame:
    """A table of paths and labels, with paths as seen from here."""
    with reading(path, "a table"):
        require_room(path, table=True)
        table = pd.read_csv(path)
    if "path" not in table:
        columns = ", ".join(map(repr, table.columns))
        raise AssayError(f"{path} has the columns {columns}: call the one with the pictures' paths 'path'")
    if split is not None:
        if "split" not in table:
            raise AssayError(f"{path} has no column 'split': leave out split={split!r}")
        table = table[table["split"] == split]
    chosen: pd.DataFrame = table[[column for column in ("path", "label") if column in table]]
    return chosen.assign(path=[str(path.parent / str(picture)) for picture in table["path"]])
