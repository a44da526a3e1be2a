"""Data as people have them: folders, files, arrays, data sets, loaders and tables made into what measures are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from assay.core.errors import AssayError, shown
from assay.core.reading import reading, require_room, visible
from assay.stimuli.as_asked import require_as_asked
from assay.stimuli.clip_files import clips_of_arrays
from assay.stimuli.clips import Clip, FrameFolder
from assay.stimuli.images import Images
from assay.stimuli.labelled import Labelled, load_labelled
from assay.stimuli.picture_files import Size, class_folders, picture_names, pictures_in, require_size
from assay.stimuli.pictures import SUFFIXES, Array, Color, as_array
from assay.stimuli.samples import Samples, is_dataset, named_parts, read_frame, read_samples, spread, taken
from assay.stimuli.sequences import Sequences, load_sequences
from assay.stimuli.stacking import ARRAY_SUFFIXES, file_arrays, numbered, stacked, stacked_by_name
from assay.stimuli.video import Video

LIMIT = 10_000
"""The largest number of inputs that are read from a folder, data set, loader or table, unless another is given."""

_LABELLED = (
    "a folder of class folders, an .npz or .csv file, (inputs, labels), a torch Dataset or DataLoader, a pandas table "
    "of paths and labels, a Hugging Face data set, or assay.stimuli.Labelled"
)
_IMAGES = (
    "a folder of pictures, an .npy, .npz or .csv file, an array N×C×H×W, a torch Dataset or DataLoader, a pandas table "
    "of paths, or assay.stimuli.Images"
)
_SEQUENCES = (
    "a folder of clips, a video, an array T×C×H×W or N×T×C×H×W, a mapping of names to such arrays, or "
    "assay.stimuli.Sequences"
)


def as_labelled(
    data: Any,
    *,
    size: Size | None = None,
    color: Color | None = None,
    limit: int | None = None,
    argument: str = "data",
) -> Labelled:
    """Make labelled data of what people have: a folder, file, arrays, data set, loader or table.

    A folder of class folders (classes in alphabetical order) or of IDX files; an ``.npz`` file with arrays such as
    ``images`` and ``labels``; a pair or mapping of inputs and labels, each an array, tensor, list or ``.npy`` file,
    inputs also paths or pictures of PIL; a torch ``Dataset`` or ``DataLoader`` or a Hugging Face data set, whose
    samples are pairs or mappings; a pandas table with columns of paths and labels, or a ``.csv`` file of one, whose
    column ``path`` is relative to it. `Labelled` is returned unchanged, or the part of it that ``limit`` allows.

    Samples with ``input_ids`` keep what the tokenizer made by name, and a mapping of arrays may stand for the inputs of
    a network that takes several. Pictures N×H×W×C become N×C×H×W, and bytes N×H×W become N×1×H×W. Labels may be whole
    numbers, one-hot rows, or names, which are numbered in alphabetical order.

    Args:
        data: What to make labelled data of.
        size: Side of the square that is cut from the centre of pictures and resized to, or (height, width); for files
            and pictures of PIL. Arrays are used as they are: to ask for another size than theirs is an error.
        color: ``"grey"`` or ``"rgb"`` to convert pictures to, in the same way.
        limit: Largest number of inputs to take: evenly spread over all, and the first ones of a loader or stream. By
            default 10,000 of a folder, data set, loader or table, and all of arrays and `Labelled`.
        argument: The argument that errors name.

    Example:
        >>> data = as_labelled((np.zeros((3, 8, 8, 3), np.uint8), ["cat", "owl", "cat"]))
        >>> data.shape, data.labels.tolist(), data.class_names
        ((3, 8, 8), [0, 1, 0], ('cat', 'owl'))
    """
    _require(size, color, limit)
    if isinstance(data, Labelled):
        require_as_asked((array.shape[1:] for array in data.arrays.values()), size, color, argument)
        return data if limit is None else data.spread(limit)
    samples = _samples(data, limit or LIMIT, argument, labelled=True)
    if samples.labels is None:
        raise AssayError(f"{argument} has inputs and no labels: give {_LABELLED}")
    labels, names = numbered(samples.labels, samples.class_names, argument)
    inputs = stacked_by_name(samples.inputs, size, color, argument)
    count = len(next(iter(inputs.values()), ())) if isinstance(inputs, dict) else len(inputs)
    if len(labels) != count:
        raise AssayError(f"{argument} has {count} inputs and {len(labels)} labels: give one label for each input")
    if not isinstance(inputs, dict) and inputs.ndim == 3 and inputs.dtype == np.uint8:
        inputs = inputs[:, None]
    made = Labelled(inputs, labels, samples.source, names)
    require_as_asked((array.shape[1:] for array in made.arrays.values()), size, color, argument)
    return made if limit is None else made.spread(limit)


def as_images(
    images: Any,
    *,
    size: Size | None = None,
    color: Color | None = None,
    limit: int | None = None,
    argument: str = "images",
) -> Images:
    """Make a set of images of what people have: a folder, file, array, data set, loader or table.

    As `as_labelled`, without the need of labels; a folder of pictures, an ``.npy`` file, an array N×C×H×W, N×H×W or
    N×H×W×C, and a list of paths or pictures of PIL serve too. `Images` are returned unchanged, or the part of them that
    ``limit`` allows.

    Args:
        images: What to make images of.
        size: Side of the square that is cut from the centre of pictures and resized to, or (height, width); for files
            and pictures of PIL. Arrays are used as they are: to ask for another size than theirs is an error.
        color: ``"grey"`` or ``"rgb"`` to convert pictures to, in the same way.
        limit: Largest number of images to take, as for `as_labelled`.
        argument: The argument that errors name.

    Example:
        >>> as_images(torch.zeros(5, 3, 8, 8)).description
        '5 images of 3×8×8 from Tensor'
    """
    _require(size, color, limit)
    if isinstance(images, Images):
        made = images
    else:
        samples = _samples(images, limit or LIMIT, argument, labelled=False)
        labels = None if samples.labels is None else as_array(samples.labels, f"the labels of {argument}")
        array = stacked(samples.inputs, size, color, argument)
        made = Images(array, labels, samples.source, picture_names(samples.inputs))
    require_as_asked([made.array.shape[1:]], size, color, argument)
    return made if limit is None else made.spread(limit)


def as_sequences(
    sequences: Any,
    *,
    size: Size | None = None,
    color: Color | None = None,
    limit: int | None = None,
    argument: str = "sequences",
) -> Sequences:
    """Make sequences of what people have: a folder of clips or a video, arrays of frames, a data set of clips.

    A folder or video as for `load_sequences`; an ``.npy`` file or array of one clip (T×C×H×W, T×H×W, T×H×W×C) or of
    several (N×T×C×H×W, N×T×H×W×C); an ``.npz`` file or a mapping of names to clips; a list of clips; a torch
    ``Dataset`` or ``DataLoader`` of clips, whose labels are ignored. `Sequences` are returned unchanged, or the part of
    them that ``limit`` allows.

    Args:
        sequences: What to make sequences of.
        size: Side of the central square of each frame to resize to, or (height, width); for files. Arrays are used as
            they are: to ask for another size than theirs is an error.
        color: ``"grey"`` or ``"rgb"`` to convert frames to, in the same way.
        limit: Largest number of clips to take, evenly spread over all, and the first ones of a loader or stream. By
            default 10,000 of a data set or loader, and all of files, arrays and `Sequences`.
        argument: The argument that errors name.

    Example:
        >>> [clip.name for clip in as_sequences(np.zeros((2, 5, 1, 8, 8)))]
        ['clip 0', 'clip 1']
    """
    _require(size, color, limit)
    made = _sequences(sequences, size, color, limit or LIMIT, argument)
    shapes = (next(clip.frames()).shape for clip in made if not _is_read_as(clip, size, color))
    require_as_asked(shapes, size, color, argument)
    if limit is None or limit >= len(made):
        return made
    return Sequences(tuple(made.clips[i] for i in spread(len(made), limit)), taken(made.source, limit, len(made)))


def _is_read_as(clip: Clip, size: Size | None, color: Color | None) -> bool:
    """Whether a clip of files is resized and converted as was asked when its frames are read."""
    return isinstance(clip, FrameFolder | Video) and (clip.size, clip.color) == (size, color)


def _sequences(sequences: Any, size: Size | None, color: Color | None, limit: int, argument: str) -> Sequences:
    """Sequences of data of any kind; files are resized and converted, arrays are taken as they are."""
    if isinstance(sequences, Sequences):
        return sequences
    if isinstance(sequences, Clip):
        return Sequences((sequences,))
    if isinstance(sequences, (str, Path)):
        return load_sequences(_existing(sequences, argument, _SEQUENCES), size, color)
    if isinstance(sequences, Mapping):
        return Sequences(tuple(_clips(sequences)))
    if isinstance(sequences, (np.ndarray, torch.Tensor)):
        return Sequences(tuple(_clips({"clip": sequences})))
    if not is_dataset(sequences) or isinstance(sequences, pd.DataFrame):
        raise AssayError(_unusable(sequences, argument, _SEQUENCES))
    if isinstance(sequences, (list, tuple)) and all(isinstance(clip, Clip) for clip in sequences):
        return Sequences(tuple(sequences))
    samples = read_samples(sequences, limit, argument, labelled=False)
    if all(isinstance(clip, (str, Path)) for clip in samples.inputs):
        loaded = (load_sequences(_existing(p, argument, _SEQUENCES), size, color) for p in samples.inputs)
        return Sequences(tuple(clip for clips in loaded for clip in clips), samples.source)
    return Sequences(tuple(_clips({f"clip {i}": clip for i, clip in enumerate(samples.inputs)})), samples.source)


def as_tuple(values: Any, argument: str, kind: type | tuple[type, ...]) -> tuple[Any, ...]:
    """Return a list or tuple as a tuple, and raise an error where it is none or holds something of another kind."""
    if not isinstance(values, (tuple, list)) or not all(isinstance(value, kind) for value in values):
        kinds = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise AssayError(f"{argument}={shown(values)} does not fit: give a list, each of which is of type {kinds}")
    return tuple(values)


def _samples(data: Any, limit: int, argument: str, labelled: bool) -> Samples:
    """Take inputs, and labels if there are any, from data of any kind."""
    wanted = _LABELLED if labelled else _IMAGES
    if isinstance(data, Labelled):
        return Samples(data.inputs, data.labels, data.source, data.class_names)
    if isinstance(data, Images):
        return Samples(data.array, data.labels, data.source)
    if isinstance(data, (str, Path)):
        return _from_path(_existing(data, argument, wanted), limit, argument, labelled)
    if isinstance(data, pd.DataFrame):
        return read_frame(data, limit, argument, labelled)
    if isinstance(data, Mapping):
        return Samples(*named_parts(data, argument, labelled), "arrays in memory")
    if isinstance(data, (np.ndarray, torch.Tensor)):
        if labelled:
            raise AssayError(
                f"{argument} is an array of shape {tuple(data.shape)} without labels: give (inputs, labels)"
            )
        return Samples(data, None, type(data).__name__)
    if isinstance(data, (tuple, list)) and len(data) == 2 and _is_pair(data[0], data[1], labelled):
        return Samples(data[0], data[1], "arrays in memory")
    if not is_dataset(data):
        raise AssayError(_unusable(data, argument, wanted))
    return read_samples(data, limit, argument, labelled)


def _is_pair(inputs: Any, labels: Any, labelled: bool) -> bool:
    """Whether two things are the inputs and the labels of a data set, rather than two of its samples."""
    if isinstance(inputs, (tuple, Mapping)) and isinstance(labels, (tuple, Mapping)):
        return False
    axes = as_array(labels, "labels").ndim
    return labelled or axes == 1 or (axes == 2 and getattr(inputs, "ndim", 0) > 2)


def _from_path(path: Path, limit: int, argument: str, labelled: bool) -> Samples:
    """Take inputs, and labels if there are any, from a folder or file."""
    if path.suffix == ".parquet" or visible(path.glob("*.parquet"), path):
        raise AssayError(f"{argument}={str(path)!r} is Parquet: give assay.stimuli.stream_labelled({str(path)!r})")
    if path.is_dir() and not labelled and (pictures := pictures_in(path)):
        chosen = spread(len(pictures), limit)
        return Samples([pictures[i] for i in chosen], None, taken(str(path), len(chosen), len(pictures)))
    if path.is_dir():
        if any(path.glob("*-idx?-ubyte*")):
            data = load_labelled(path)
            return Samples(data.inputs, data.labels, data.source)
        files, labels, names = class_folders(path, argument)
        chosen = spread(len(files), limit)
        source = taken(str(path), len(chosen), len(files))
        return Samples([files[i] for i in chosen], [labels[i] for i in chosen], source, names)
    if path.suffix.lower() == ".csv":
        samples = read_frame(_table(path, argument), limit, argument, labelled)
        return replace(samples, source=f"{path.name}, {samples.source}")
    if path.suffix.lower() in SUFFIXES and not labelled:
        return Samples([path], None, str(path))
    if path.suffix.lower() not in ARRAY_SUFFIXES:
        wanted = _LABELLED if labelled else _IMAGES
        raise AssayError(f"{argument}={str(path)!r} is no folder and no file of arrays: give {wanted}")
    arrays = file_arrays(path)
    if "" in arrays and labelled:
        raise AssayError(f"{argument}={str(path)!r} holds one array without labels: give (inputs, labels)")
    inputs, labels_array = _inputs_and_labels(arrays, path, argument, labelled)
    return Samples(inputs, labels_array, path.name)


def _table(path: Path, argument: str) -> pd.DataFrame:
    """Read a table, with the paths of pictures as seen from here instead of from the file."""
    with reading(path, "a table"):
        require_room(path, table=True)
        table = pd.read_csv(path)
    for column in table.columns.intersection(["path"]):
        table[column] = [str(path.parent / str(picture)) for picture in table[column]]
    return table


def _inputs_and_labels(arrays: dict[str, Array], path: Path, argument: str, labelled: bool) -> tuple[Array, Any]:
    """Find the inputs and labels among the arrays of a file, by their usual names or for want of others."""
    for inputs, labels in _NAMED_ARRAYS:
        if inputs in arrays and (labels in arrays or not labelled):
            return arrays[inputs], arrays.get(labels)
    flat = [name for name, array in arrays.items() if array.ndim == 1]
    deep = [name for name, array in arrays.items() if array.ndim > 1]
    if len(deep) != 1 or (labelled and len(flat) != 1):
        names = ", ".join(map(repr, arrays)) or "no arrays"
        wanted = "'images' and 'labels'" if labelled else "'images'"
        raise AssayError(
            f"{argument}={str(path)!r} holds {names}: call them {wanted}, or name them in "
            f"assay.stimuli.{'load_labelled' if labelled else 'load_images'}"
        )
    return arrays[deep[0]], arrays[flat[0]] if len(flat) == 1 else None


_NAMED_ARRAYS = (
    ("", "labels"),  # the one array of an .npy file has no name, and no labels beside it
    ("images", "labels"),
    ("inputs", "labels"),
    ("data", "labels"),
    ("train_images", "train_labels"),
    ("test_images", "test_labels"),
    ("x_train", "y_train"),
    ("x_test", "y_test"),
    ("x", "y"),
    ("X", "y"),
    ("arr_0", "arr_1"),
)


def _clips(clips: Mapping[Any, Any]) -> Iterator[Clip]:
    """Yield clips, and clips of arrays, by name."""
    for name, given in clips.items():
        if isinstance(given, Clip):
            yield given
        else:
            yield from clips_of_arrays({name: given})


def _existing(path: str | Path, argument: str, wanted: str) -> Path:
    try:
        if (place := Path(path).expanduser()).exists():
            return place
    except (OSError, ValueError, RuntimeError):  # a name too long, with a zero in it, or of no user's home
        pass
    raise AssayError(f"{argument}={str(path)[:200]!r} does not exist: give {wanted}")


def _require(size: Any, color: Any, limit: Any) -> None:
    require_size(size)
    if color not in (None, "grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey', 'rgb' or None")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise AssayError(f"limit={limit!r} is not a number of inputs of at least 1")


def _unusable(value: Any, argument: str, wanted: str) -> str:
    return f"{argument}={shown(value)} cannot be used: give {wanted}"
