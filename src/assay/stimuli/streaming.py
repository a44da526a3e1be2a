"""Labelled pictures that are read from their files as they are shown: memory does not grow with their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from assay.core.errors import AssayError
from assay.core.reading import is_there, visible
from assay.stimuli.labelled import Labelled
from assay.stimuli.parquet_pictures import ParquetPictures
from assay.stimuli.picture_files import Size, class_folders, require_size
from assay.stimuli.pictures import Color
from assay.stimuli.stacking import numbered
from assay.stimuli.streamed import FolderPictures, PictureSource, StreamedPictures


def stream_labelled(
    path: str | Path,
    *,
    split: str | None = None,
    size: Size | None = None,
    color: Color | None = None,
    images: str | None = None,
    labels: str | None = None,
    argument: str = "data",
) -> Labelled:
    """Open a folder of class folders, or Parquet files, of any size: a picture is read when it is shown.

    Memory holds the labels, the names of the files and one batch. Measures that draw ``samples`` read only these.
    Training needs all pictures in memory. In fingerprints, names, sizes and times of change of files stand for their
    content, because reading all of it could take hours: copies with other times are measured anew.

    Args:
        path: A folder with a folder of pictures for every class (classes in alphabetical order), a ``.parquet`` file,
            or a folder of such files, which are read in the order of their names.
        split: Which part: the sub-folder of this name, or the Parquet files whose names begin with it.
        size: Side of the square that is cut from the centre of pictures and resized to, or (height, width); needed
            unless all pictures have one size.
        color: ``"grey"`` or ``"rgb"`` to convert pictures to; needed unless all are stored alike.
        images: Column of the pictures in Parquet; by default one that is called ``image`` or the like.
        labels: Column of the labels in Parquet; by default one that is called ``label`` or the like. Names of classes
            are numbered in alphabetical order.
        argument: The argument that errors name.

    Example:
        ```python
        data = assay.stimuli.stream_labelled("imagenet/train", size=224, color="rgb")
        assay.PerturbationResponse(data, ["intra", "inter"], [0, 1])(network)     # reads the 23,040 that it shows
        ```
    """
    path = Path(path)
    require_size(size)
    if color not in (None, "grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey', 'rgb' or None")
    if not is_there(path):
        raise AssayError(f"{path} does not exist")
    path, files = _part(path, split)
    source: PictureSource
    known: Any
    if files:
        parquet = ParquetPictures(files, images)
        if not len(parquet):
            raise AssayError(f"{path} holds no rows: give at least one picture")
        source, (known, names) = parquet, numbered(parquet.labels(labels), (), argument)
    elif path.is_dir():
        if images is not None or labels is not None:
            raise AssayError(f"images and labels name columns of Parquet files; {path} holds none")
        pictures, known, names = class_folders(path, argument)
        source = FolderPictures(path, pictures)
    else:
        raise AssayError(f"{argument}={str(path)!r} cannot be streamed: give a folder of class folders, or Parquet")
    streamed = StreamedPictures(source, size, color)
    _ = streamed.shape  # a first picture that cannot be read is an error at once
    return Labelled(cast(Any, streamed), known, str(path), names)


def _part(path: Path, split: str | None) -> tuple[Path, list[Path]]:
    """The place of a part of a data set, and the Parquet files in it."""
    if path.suffix == ".parquet":
        if split is not None:
            raise AssayError(f"{path} is one file, which has no parts: leave out split={split!r}")
        return path, [path]
    if not path.is_dir() or split is None:
        return path, _parquet_in(path)
    if (path / split).is_dir():
        return path / split, _parquet_in(path / split)
    files = [file for file in _parquet_in(path) if part_of(file) == split]
    if not files:
        raise AssayError(f"{path} has no folder {split!r} and no {split}-….parquet")
    return path, files


def _parquet_in(folder: Path) -> list[Path]:
    return visible(folder.glob("*.parquet"), folder)


def part_of(file: Path) -> str:
    """The part of a data set that a Parquet file belongs to, as Hugging Face names files.

    >>> part_of(Path("data/train-00000-of-00014.parquet")), part_of(Path("test.parquet"))
    ('train', 'test')
    """
    return file.stem.partition("-")[0]
