"""Labelled data: what a classifier is trained or tested on."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from assay.core.arrays import copied_to
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.limits import BYTES, limit, require_array, require_bytes
from assay.core.reading import is_there, reading, require_room
from assay.stimuli.images import channels_first, read_arrays, require_no_arrays_named
from assay.stimuli.pictures import Array, as_array
from assay.stimuli.samples import spread, taken
from assay.stimuli.streamed import StreamedPictures
from assay.stimuli.thumbnails import stimuli_as_html

_ROOM_FOR_NAMES = 80  # characters


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs N×… and the class of each, a whole number from 0.

    Inputs are kept as given: bytes, which are shown as v/255; floating point; or whole numbers, such as the numbers of
    words N×T, which are shown as they are. `assay.stimuli.as_labelled` makes such data of folders, files, data sets and
    tables.

    Args:
        inputs: The inputs, an array or tensor of N of them; or, for a network of several inputs, a mapping of such
            arrays by the names of the arguments that the network takes. `assay.stimuli.stream_labelled` puts pictures
            here that are read when they are shown.
        labels: The class of each input.
        source: Where the data come from, for tables and errors.
        class_names: The names of the classes in the order of their labels; none where they are not known.

    Example:
        >>> data = Labelled(np.zeros((4, 1, 8, 8), dtype=np.uint8), np.array([0, 1, 1, 2]))
        >>> len(data), data.classes, data.shape
        (4, 3, (1, 8, 8))
        >>> words = {"input_ids": np.array([[5, 7], [6, 0]]), "attention_mask": np.array([[1, 1], [1, 0]])}
        >>> Labelled(words, np.array([0, 1])).shown(slice(0, 1))["input_ids"]
        tensor([[5, 7]])
    """

    inputs: Array | Mapping[str, Array]
    labels: Array
    source: str = "arrays in memory"
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        arrays = self._accepted_inputs()
        count = len(next(iter(arrays.values())))
        labels = as_array(self.labels, f"labels of {self.source}")
        if labels.shape != (count,):
            raise AssayError(f"{self.source}: there are {count} inputs and labels of shape {labels.shape}")
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
            raise AssayError(
                f"the labels of {self.source} must be whole numbers from 0; assay.stimuli.as_labelled((inputs, labels))"
                " numbers classes that have names"
            )
        object.__setattr__(self, "class_names", tuple(self.class_names))
        if self.class_names and len(self.class_names) <= labels.max():
            known = len(self.class_names)
            raise AssayError(f"class_names of {self.source} names {known} classes, and there is a label {labels.max()}")
        inputs = {name: _read_only(array) for name, array in arrays.items()}
        object.__setattr__(self, "inputs", inputs if isinstance(self.inputs, Mapping) else inputs[""])
        object.__setattr__(self, "labels", _read_only(labels.astype(np.int64)))

    def _accepted_inputs(self) -> dict[str, Array]:
        """The inputs as arrays of a type that networks take, by name; the name of a single one is empty."""
        if not isinstance(self.inputs, Mapping):
            inputs = _accepted(self.inputs, f"the inputs of {self.source}")
            if np.issubdtype(inputs.dtype, np.integer) and inputs.dtype != np.uint8 and inputs.ndim > 2:
                raise AssayError(
                    f"the inputs of {self.source} are {inputs.dtype}: give pictures as uint8 or floats, and numbers of "
                    "words N×T"
                )
            return {"": inputs}
        arrays = {str(name): _accepted(array, f"{name!r} of {self.source}") for name, array in self.inputs.items()}
        if len({len(array) for array in arrays.values()}) != 1:
            lengths = ", ".join(f"{name!r} has {len(array)}" for name, array in arrays.items()) or "there is none"
            raise AssayError(f"the inputs of {self.source} must each have a row for every label: {lengths}")
        return arrays

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays of inputs by name; the name of a single one is empty."""
        return self.inputs if isinstance(self.inputs, Mapping) else {"": self.inputs}

    @property
    def varied(self) -> Array:
        """The array of inputs that a measure varies while it holds the others: the first that is not whole numbers.

        Where all are whole numbers it is the first.
        """
        arrays = list(self.arrays.values())
        return next((array for array in arrays if array.dtype in (np.uint8, np.float32)), arrays[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input; of several, that of the one that measures vary."""
        return tuple(self.varied.shape[1:])

    @property
    def classes(self) -> int:
        """Number of classes: the largest label plus one."""
        return int(self.labels.max()) + 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "inputs": f"{len(self)} of " + " and ".join(_shape_in_words(n, a) for n, a in self.arrays.items()),
            "classes": ", ".join(self.class_names) or self.classes,
            "from": self.source,
        }
        labels, first = np.unique(self.labels, return_index=True)
        named = {label: self.class_names[label] if self.class_names else f"class {label}" for label in labels}
        pictures = ((named[label], self.varied[i]) for label, i in zip(labels, first, strict=True))
        return stimuli_as_html("Labelled data", facts, pictures)

    @property
    def description(self) -> str:
        """Number and shape of the inputs, number of classes, their names if they are few, and source, in a line."""
        names = ", ".join(self.class_names)
        named = f" ({names})" if 0 < len(names) <= _ROOM_FOR_NAMES else ""
        shape = " and ".join(_shape_in_words(name, array) for name, array in self.arrays.items())
        return f"{len(self)} inputs of {shape} in {self.classes} classes{named} from {self.source}"

    @property
    def fingerprint(self) -> str:
        """Hash of the inputs and the labels."""
        return fingerprint(self.inputs, self.labels)

    def shown(self, numbers: Array | slice = slice(None), device: torch.device | str = "cpu") -> Any:
        """Return inputs as a network sees them: float32, bytes divided by 255, whole numbers as they are.

        A tensor, or a dictionary of tensors where the inputs have names.
        """
        shown, count = {}, len(self.labels[numbers])
        for name, array in self.arrays.items():
            what = f"{count} inputs of {self.source} in one batch, each {_shape_in_words(name, array)},"
            require_array(what, (count, *array.shape[1:]))
            inputs = copied_to(device, array[numbers])
            shown[name] = inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs
        return shown if isinstance(self.inputs, Mapping) else shown[""]

    def sample(self, count: int | None, seed: int = 0) -> Labelled:
        """Draw ``count`` inputs in random order, without repetition; all if ``None`` or if there are no more."""
        return self._chosen(self.drawn(count, seed))

    def drawn(self, count: int | None, seed: int = 0) -> Array:
        """The numbers of the inputs of `sample`, for whoever shows them batch by batch and needs no copy of them all.

        Example:
            >>> data = Labelled(np.eye(5, dtype=np.float32), np.arange(5))
            >>> np.array_equal(data.sample(3).labels, data.labels[data.drawn(3)])
            True
        """
        return np.random.default_rng(seed).permutation(len(self))[:count]

    def each(self, count: int) -> Labelled:
        """Return the first ``count`` inputs of each class, in their order."""
        rank_in_class = np.empty(len(self), dtype=np.int64)
        for label in np.unique(self.labels):
            in_class = self.labels == label
            rank_in_class[in_class] = np.arange(in_class.sum())
        kept = rank_in_class < count
        return self._chosen(kept)

    def spread(self, count: int) -> Labelled:
        """Return ``count`` inputs, evenly spread over all in their order; these data themselves if there are no more.

        Example:
            >>> data = Labelled(np.zeros((6, 2), np.float32), np.arange(6))
            >>> data.spread(3).labels.tolist(), data.spread(3).source
            ([0, 2, 4], 'arrays in memory, 3 of 6')
        """
        if count >= len(self):
            return self
        return replace(self._chosen(spread(len(self), count)), source=taken(self.source, count, len(self)))

    def balanced(self, count: int, seed: int = 0) -> Labelled:
        """Draw the first ``count`` inputs of a random order in which the classes take turns.

        Of every class there are as many as of any other, up to one, as long as it has more. A larger draw with the same
        seed begins with the smaller one.

        Example:
            >>> data = Labelled(np.zeros((9, 2), np.float32), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2]))
            >>> np.bincount(data.balanced(6).labels).tolist(), np.bincount(data.balanced(8).labels).tolist()
            ([2, 3, 1], [3, 4, 1])
        """
        if not 0 < count <= len(self):
            raise AssayError(f"count={count}: {self.source} has {len(self)} inputs")
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self))
        turn = np.empty(len(self), dtype=np.int64)
        for label in np.unique(self.labels):
            in_class = np.flatnonzero(self.labels[order] == label)
            turn[in_class] = np.arange(len(in_class))
        return self._chosen(order[np.argsort(turn, kind="stable")][:count])

    def _chosen(self, numbers: Array) -> Labelled:
        chosen = {name: _read_only(_rows(array, numbers)) for name, array in self.arrays.items()}
        inputs = chosen if isinstance(self.inputs, Mapping) else chosen[""]
        return Labelled(inputs, self.labels[numbers], self.source, self.class_names)


def _shape_in_words(name: str, array: Array) -> str:
    shape = "×".join(map(str, array.shape[1:]))
    return f"{shape} ({name})" if name else shape


def _rows(array: Any, numbers: Array) -> Array:
    """Some rows of an array; of streamed pictures, still unread."""
    rows: Any = array.chosen(numbers) if isinstance(array, StreamedPictures) else array[numbers]
    return cast(Array, rows)


def _accepted(values: Any, what: str) -> Array:
    """An array of bytes, truth values, whole numbers (int64) or finite floating point (float32), N×…."""
    if isinstance(values, StreamedPictures):
        return cast(Array, values)
    array = as_array(values, what)
    if np.issubdtype(array.dtype, np.floating):
        if not np.isfinite(array).all():
            raise AssayError(f"{what} have NaN or infinite values")
        array = array.astype(np.float32, copy=array.flags.writeable)  # what nobody can change need not be copied
    elif np.issubdtype(array.dtype, np.integer) and array.dtype != np.uint8:
        array = array.astype(np.int64)
    elif array.dtype not in (np.uint8, np.bool_):
        raise AssayError(f"{what} are {array.dtype}: give uint8, floats, or whole numbers such as those of words")
    if array.ndim < 2 or 0 in array.shape:
        raise AssayError(f"{what} are N×…, at least one, not {array.shape}")
    return array


def _read_only(given: Any) -> Array:
    if isinstance(given, StreamedPictures):
        return cast(Array, given)
    array: Array = given.view()
    array.setflags(write=False)
    return array


def load_labelled(
    path: str | Path, *, split: str = "train", inputs: str | None = None, labels: str | None = None
) -> Labelled:
    """Load labelled data from a folder of IDX files (MNIST, Fashion-MNIST) or from an ``.npz`` file.

    Args:
        path: A folder with ``train-images-idx3-ubyte.gz`` and so on (``t10k-…`` for the test set), or a file of
            arrays.
        split: ``"train"`` or ``"test"``: in a file the arrays ``{split}_images`` and ``{split}_labels``, unless others
            are named.
        inputs: Name of another array of inputs in the file: N×H×W, N×H×W×3 or N×C×H×W pictures, or N×D.
        labels: Name of another array of labels in the file.
    """
    path = Path(path)
    if split not in ("train", "test"):
        raise AssayError(f"split={split!r} is not 'train' or 'test'")
    if not is_there(path):
        raise AssayError(f"data: {path} does not exist")
    if path.is_dir():
        require_no_arrays_named(path, inputs=inputs, labels=labels)
        stem = "train" if split == "train" else "t10k"
        pictures = read_idx(_idx(path, f"{stem}-images-idx3-ubyte"))
        return Labelled(pictures[:, None], read_idx(_idx(path, f"{stem}-labels-idx1-ubyte")), f"{path.name}: {split}")
    array, label_array = read_arrays(path, inputs or f"{split}_images", labels or f"{split}_labels")
    pictures = array[:, None] if array.ndim == 3 else channels_first(array)
    return Labelled(pictures, label_array, f"{path.name}: {split}")


def _idx(folder: Path, name: str) -> Path:
    """Return the path of an IDX file, compressed or not."""
    for path in (folder / name, folder / f"{name}.gz"):
        if is_there(path):
            return path
    raise AssayError(f"data: {folder} holds no {name} or {name}.gz")


def read_idx(path: Path) -> Array:
    """Read an array of bytes in LeCun's IDX format: two zeros, type 8, the number of axes, their lengths, the bytes."""
    with reading(path, "an IDX file"):
        require_room(path)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(limit(BYTES) + 1)  # what is packed may be a thousand times larger
            require_bytes(f"{path}: what is packed in it", len(data))
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise AssayError(f"{path} is not an IDX file of bytes")
    axes = data[3]
    shape = np.frombuffer(data[4 : 4 + 4 * axes], dtype=">u4").astype(int) if len(data) >= 4 + 4 * axes else ()
    if len(data) != 4 + 4 * axes + int(np.prod(shape)):
        raise AssayError(f"{path} is cut short or damaged: {len(data)} bytes for {'×'.join(map(str, shape))}")
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
