"""Inputs and labels taken one by one from data sets, loaders, tables and mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from assay.core.determinism import seeded
from assay.core.errors import ANYTHING, AssayError, reason
from assay.stimuli.pictures import Array, as_array

INPUT_NAMES = (
    "image", "images", "img", "picture", "pictures", "pixel_values", "input", "inputs", "x", "X", "data", "features",
    "path", "paths", "file", "filename", "file_name", "filepath", "file_path", "image_path",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "y", "Y", "target", "targets", "class", "classes", "category", "fine_label", "coarse_label",
)  # fmt: skip
# What a tokenizer makes of a text; such inputs keep their names.
TOKEN_NAMES = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


@dataclass(frozen=True)
class Samples:
    """Inputs with their labels, before they are made into arrays.

    Attributes:
        inputs: An array of all inputs, or a list of them; a mapping of such, where a network takes several by name.
        labels: The labels as they were found; None where there are none.
        source: Where they come from, and how many of how many were taken.
        class_names: Names of the classes in the order of their labels, where the data set has them.
    """

    inputs: Any
    labels: Any
    source: str
    class_names: tuple[str, ...] = ()


def taken(source: str, count: int, there: int | None) -> str:
    """Return a source with the number of inputs that were taken of it, where these are not all.

    Example:
        >>> taken("photos", 10, 10), taken("photos", 10, 99), taken("stream", 10, None)
        ('photos', 'photos, 10 of 99', 'stream, the first 10')
    """
    if count == there:
        return source
    return f"{source}, the first {count}" if there is None else f"{source}, {count} of {there}"


def spread(there: int, limit: int) -> Array:
    """Choose at most ``limit`` of ``there`` numbers, evenly over all of them.

    So every class is met, even where the data are sorted by class.

    Example:
        >>> spread(10, 4).tolist(), spread(3, 4).tolist()
        ([0, 2, 5, 7], [0, 1, 2])
    """
    return np.arange(there) if there <= limit else np.arange(limit) * there // limit


def is_dataset(value: Any) -> bool:
    """Whether inputs can be taken from a value one by one: a torch or Hugging Face data set, or a loader of batches."""
    if isinstance(value, (str, bytes, Mapping, np.ndarray, torch.Tensor, Path, type)):
        return False
    if isinstance(value, torch.utils.data.DataLoader):
        return True
    return hasattr(value, "__iter__") or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))


def read_samples(data: Any, limit: int, argument: str, labelled: bool) -> Samples:
    """Read at most ``limit`` inputs: evenly spread where a data set has a length, from the first on where it has none.

    Random numbers that a data set or loader draws from torch are seeded, so that the same inputs come every time.

    Args:
        data: A torch ``Dataset`` or ``DataLoader``, a Hugging Face data set, or a list of samples.
        limit: Largest number of inputs to read.
        argument: The argument that errors name.
        labelled: Whether labels are wanted; without them they are read where there are any.
    """
    kind = type(data).__name__
    is_loader = isinstance(data, torch.utils.data.DataLoader)
    inputs: list[Any] = []
    labels: list[Any] = []
    with seeded(0):
        for item in _items(data, limit, argument):
            x, y = _input_and_label(item, argument, labelled)
            if data.batch_sampler is not None if is_loader else _is_batch(data, x, y):
                inputs += list(_rows(x, argument))
                labels += [] if y is None else list(_rows(y, argument))
            else:
                inputs.append(x)
                labels += [] if y is None else [y]
            if len(inputs) >= limit:
                break
    if not inputs:
        raise AssayError(f"{argument} is a {kind} without inputs: give at least one")
    if labels and len(labels) != len(inputs):
        raise AssayError(f"{argument} is a {kind} of {len(inputs)} inputs and {len(labels)} labels: give one for each")
    source = taken(kind, len(inputs[:limit]), _length(data.dataset if is_loader else data))
    return Samples(inputs[:limit], labels[:limit] or None, source, _class_names(data))


def read_frame(frame: pd.DataFrame, limit: int, argument: str, labelled: bool) -> Samples:
    """Read a table of pictures' paths and labels, or of numbers and labels: one row for each input.

    The label is in a column called ``label``, ``class``, ``target`` or the like, or the second of two columns; inputs
    are in a column called ``path``, ``file``, ``image`` or the like, or all other columns where they are numbers.
    """
    if not len(frame):
        raise AssayError(f"{argument} is a table without rows: give at least one")
    columns = [str(c) for c in frame.columns]
    label = next((c for c in LABEL_NAMES if c in columns), None)
    given = next((c for c in INPUT_NAMES if c in columns), None)
    if label is None and len(columns) == 2:
        label = next(c for c in reversed(columns) if c != given)
    others = [c for c in columns if c != label]
    if labelled and label is None:
        raise AssayError(f"{argument} is a table of columns {columns}: call the one with the classes 'label'")
    given = others[0] if given is None and len(others) == 1 else given
    rows = frame.iloc[spread(len(frame), limit)]
    rows.columns = pd.Index(columns)
    if given is not None:
        inputs = list(rows[given])
    elif others and all(pd.api.types.is_numeric_dtype(rows[c]) for c in others):
        inputs = list(rows[others].to_numpy(np.float32))
    else:
        raise AssayError(f"{argument} is a table of columns {columns}: call the one with the pictures' paths 'path'")
    labels = None if label is None else list(rows[label])
    return Samples(inputs, labels, taken("table", len(inputs), len(frame)))


def named_parts(data: Mapping[str, Any], argument: str, labelled: bool) -> tuple[Any, Any]:
    """Take inputs and labels from a mapping by the usual names: ``image`` and ``label``, ``x`` and ``y``.

    Where it holds ``input_ids``, the inputs are a mapping of what the tokenizer made.
    """
    keys = list(data)
    given = next((k for k in INPUT_NAMES if k in data), None)
    label = next((k for k in LABEL_NAMES if k in data), None)
    if "input_ids" in data and (label is not None or not labelled):
        tokens = {k: data[k] for k in (*TOKEN_NAMES, "pixel_values") if k in data}
        return tokens, None if label is None else data[label]
    if given is None and len(others := [k for k in keys if k != label]) == 1:
        (given,) = others
    if given is None or (labelled and label is None):
        missing = "'image' or 'input'" if given is None else "'label'"
        splits = [k for k in keys if k in ("train", "test", "validation")]
        remedy = f"give one part of it, such as [{splits[0]!r}]" if splits else f"name one of them {missing}"
        raise AssayError(f"{argument} has the entries {keys}: {remedy}")
    return data[given], None if label is None else data[label]


def _items(data: Any, limit: int, argument: str) -> Iterator[Any]:
    """Yield the samples of a data set, or the batches of a loader; an error of the user's code becomes a sentence."""
    length = None if isinstance(data, torch.utils.data.DataLoader) else _length(data)
    try:
        if length is not None and hasattr(data, "__getitem__"):
            for i in spread(length, limit).tolist():
                yield data[i]
        else:
            yield from data
    except AssayError:
        raise
    except ANYTHING as error:  # the data set is the user's: whatever it raises is about what it holds
        raise AssayError(f"{argument} is a {type(data).__name__} that cannot be read ({reason(error)})") from error


def _is_batch(data: Any, x: Any, y: Any) -> bool:
    """Whether a stream that is no data set yields batches: as many labels as inputs."""
    if hasattr(data, "__getitem__") or not isinstance(y, (np.ndarray, torch.Tensor)) or y.ndim != 1:
        return False
    return isinstance(x, (np.ndarray, torch.Tensor)) and x.ndim > 0 and len(x) == len(y)


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except Exception:  # a stream has no length, and says so in many ways
        return None


def _input_and_label(item: Any, argument: str, labelled: bool) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        return named_parts(item, argument, labelled)
    if isinstance(item, (tuple, list)):
        if not item or (labelled and len(item) < 2):
            raise AssayError(f"{argument} gives samples of {len(item)} parts: give pairs of an input and its label")
        return item[0], item[1] if len(item) > 1 else None
    if labelled:
        words = "pairs of an input and its label, or mappings with 'image' and 'label'"
        raise AssayError(f"{argument} gives samples without labels ({type(item).__name__}): give {words}")
    return item, None


def _rows(batch: Any, argument: str) -> Iterable[Any]:
    if isinstance(batch, Mapping):
        columns = {name: list(_rows(values, argument)) for name, values in batch.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(batch, (list, tuple)):
        return batch
    array = as_array(batch, f"a batch of {argument}")
    if array.ndim == 0:
        raise AssayError(f"{argument} gives batches of {type(batch).__name__}: give arrays with a row for each input")
    return array


def _class_names(data: Any) -> tuple[str, ...]:
    """Return the names of the classes as torchvision's data sets, their subsets, and Hugging Face's keep them."""
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        named = next((features[k] for k in LABEL_NAMES if k in features), None)
        names = getattr(named, "names", None)
    else:
        names = getattr(data, "classes", None)
        if names is None and hasattr(data, "dataset"):  # a subset, or a loader
            return _class_names(data.dataset)
    fits = isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(n, str) for n in names)
    return tuple(names) if fits and names is not None else ()
