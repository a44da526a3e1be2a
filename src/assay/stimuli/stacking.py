"""Inputs and labels of any kind as two arrays; and the arrays of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.core.array_files import load_arrays
from assay.core.errors import AssayError, shown
from assay.core.reading import is_file, reading
from assay.stimuli.images import channels_first
from assay.stimuli.picture_files import PicturesDiffer, Size, picture_bytes, read_pictures
from assay.stimuli.pictures import Array, Color, as_array, standard_picture

ARRAY_SUFFIXES = (".npy", ".npz")


def stacked_by_name(inputs: Any, size: Size | None, color: Color | None, argument: str) -> Array | dict[str, Array]:
    """Make one array of inputs, or one for each name where an input is a mapping of several."""
    if isinstance(inputs, list) and inputs and all(isinstance(x, Mapping) for x in inputs):
        if any(set(x) != set(inputs[0]) for x in inputs):
            odd = next(x for x in inputs if set(x) != set(inputs[0]))
            raise AssayError(
                f"{argument} has inputs with the names {[*inputs[0]]} and with {[*odd]}: give all the same"
            )
        inputs = {name: [x[name] for x in inputs] for name in inputs[0]}
    if not isinstance(inputs, Mapping):
        return stacked(inputs, size, color, argument)
    return {str(name): stacked(x, size, color, f"{name!r} of {argument}") for name, x in inputs.items()}


def stacked(inputs: Any, size: Size | None, color: Color | None, argument: str) -> Array:
    """Make one array of inputs: an array or its ``.npy`` file, or a list of arrays, paths or pictures of PIL."""
    if isinstance(inputs, (str, Path)):
        inputs = read_array(Path(inputs), argument)
    if isinstance(inputs, np.ndarray) and inputs.dtype.kind in "UO" and inputs.ndim == 1:
        inputs = inputs.tolist()
    if not isinstance(inputs, Sequence):
        return _checked(channels_first(as_array(inputs, f"{argument} of type {type(inputs).__name__}")), argument)
    if not len(inputs):
        raise AssayError(f"{argument} has no inputs: give at least one")
    if all(isinstance(x, (str, Path)) for x in inputs):
        missing = next((x for x in inputs if not is_file(x)), None)
        if missing is not None:
            raise AssayError(f"{argument} names the picture {str(missing)!r}, which is no file here: give whole paths")
        return read_pictures([Path(x) for x in inputs], size, color)
    if any(isinstance(x, (str, Path)) for x in inputs):
        i, odd = next((i, x) for i, x in enumerate(inputs) if not isinstance(x, (str, Path)))
        raise AssayError(f"{argument} has {shown(odd)} for input {i} among paths: give a path for every input")
    arrays = [_one(x, size, color, f"input {i} of {argument}") for i, x in enumerate(inputs)]
    first = arrays[0]
    for i, array in enumerate(arrays):
        if array.shape != first.shape:
            if first.ndim == array.ndim == 3:
                raise PicturesDiffer(f"input 0 of {argument}", first.shape, f"input {i}", array.shape)
            shapes = f"input 0 is of shape {first.shape} and input {i} of shape {array.shape}"
            raise AssayError(f"{argument}: {shapes}, which do not go in one array: pad or cut them to one length")
    return _checked(channels_first(np.stack(arrays)), argument)


def _one(x: Any, size: Size | None, color: Color | None, what: str) -> Array:
    return picture_bytes(standard_picture(x), size, color) if isinstance(x, Image.Image) else as_array(x, what)


def _checked(array: Array, argument: str) -> Array:
    if array.dtype.kind not in "biuf":
        raise AssayError(f"{argument} has inputs of type {array.dtype}, which are no numbers: give arrays or pictures")
    if array.ndim == 0 or 0 in array.shape:
        raise AssayError(f"{argument} has inputs of shape {array.shape}: give at least one input, N×…")
    return array.astype(np.float32) if array.dtype == bool or array.dtype == np.float16 else array


def numbered(labels: Any, names: tuple[str, ...], argument: str) -> tuple[Array, tuple[str, ...]]:
    """Return labels as whole numbers, and the names of the classes; labels that are names are numbered by alphabet.

    Whole numbers stay as they are, also where they are written as 1.0 or in one column; one-hot rows become the place
    of their one.

    Args:
        labels: The labels: an array, tensor, list or ``.npy`` file.
        names: Names of the classes, where they are known.
        argument: The argument that errors name.

    Example:
        >>> numbered(["owl", "cat", "owl"], (), "data")
        (array([1, 0, 1]), ('cat', 'owl'))
        >>> numbered(np.eye(3)[[2, 0]], (), "data")
        (array([2, 0]), ())
    """
    if isinstance(labels, (str, Path)):
        labels = read_array(Path(labels), argument)
    if isinstance(labels, (list, tuple)):
        labels = [label.item() if getattr(label, "shape", None) == () else label for label in labels]
    if isinstance(labels, (list, tuple)) and any(isinstance(label, str) for label in labels):
        array = np.array(labels, dtype=object)
    else:
        array = as_array(labels, f"the labels of {argument}")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if (
        array.ndim == 2
        and array.dtype.kind in "biuf"
        and ((array == 0) | (array == 1)).all()
        and (array.sum(1) == 1).all()
    ):
        return array.argmax(1), names
    if array.ndim != 1:
        raise AssayError(f"{argument} has labels of shape {array.shape}: give one label for each input")
    if array.dtype.kind in "OUST":
        if not all(isinstance(label, (str, np.str_)) for label in array):
            other = next(label for label in array if not isinstance(label, (str, np.str_)))
            raise AssayError(f"{argument} has the label {other!r} among names: give a name or a number for every input")
        known, numbers = np.unique(array.astype(str), return_inverse=True)
        return numbers, tuple(known.tolist())
    if array.dtype.kind == "f":
        if not (np.isfinite(array) & (array == np.rint(array))).all():
            odd = next(v for v in array.tolist() if not np.isfinite(v) or v != round(v))
            raise AssayError(f"{argument} has the label {odd}: give whole numbers from 0, or names of classes")
    elif array.dtype.kind not in "biu":
        raise AssayError(f"{argument} has labels of type {array.dtype}: give whole numbers from 0, or names of classes")
    array = array.astype(np.int64)
    if len(array) and array.min() < 0:
        raise AssayError(f"{argument} has the label {array.min()}: number the classes from 0")
    return array, names if len(names) > array.max(initial=0) else ()


def read_array(path: Path, argument: str) -> Array:
    """Read the one array of an ``.npy`` file; no code in the file is run."""
    if path.suffix != ".npy" or not is_file(path):
        raise AssayError(f"{argument} names {str(path)!r}, which is no .npy file here: give an array, or such a file")
    arrays = file_arrays(path)
    if "" not in arrays:
        raise AssayError(f"{argument} names {str(path)!r}, which holds arrays with names: call it .npz")
    return arrays[""]


def file_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of an ``.npz`` file by name, or that of an ``.npy`` file under the empty name."""
    with reading(path, "arrays"), path.open("rb") as handle:
        content = load_arrays(handle, path)
        return (
            {"": content} if isinstance(content, np.ndarray) else {name: np.asarray(content[name]) for name in content}
        )
