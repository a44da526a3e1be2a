"""Labelled data: what a classifier is trained or tested on."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError, first_line
from assay.core.fingerprint import fingerprint
from assay.stimuli.images import channels_first, read_arrays
from assay.stimuli.pictures import Array, as_array

_ROOM_FOR_NAMES = 80  # characters


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs N×… and the class of each, a whole number from 0.

    Inputs are kept as given, uint8 or floating point; bytes are shown as v/255. `assay.stimuli.as_labelled` makes such
    data of folders, files, data sets and tables.

    Args:
        inputs: The inputs, an array or tensor of N of them.
        labels: The class of each input.
        source: Where the data come from, for tables and errors.
        class_names: The names of the classes in the order of their labels; none where they are not known.

    Example:
        >>> data = Labelled(np.zeros((4, 1, 8, 8), dtype=np.uint8), np.array([0, 1, 1, 2]))
        >>> len(data), data.classes, data.shape
        (4, 3, (1, 8, 8))
    """

    inputs: Array
    labels: Array
    source: str = "given"
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        inputs = as_array(self.inputs, f"inputs of {self.source}")
        labels = as_array(self.labels, f"labels of {self.source}")
        if inputs.dtype != np.uint8:
            if not np.issubdtype(inputs.dtype, np.floating):
                raise AssayError(f"the inputs of {self.source} are {inputs.dtype}: give uint8 or floats")
            if not np.isfinite(inputs).all():
                raise AssayError(f"the inputs of {self.source} have NaN or infinite values")
            inputs = inputs.astype(np.float32)
        if inputs.ndim < 2 or 0 in inputs.shape:
            raise AssayError(f"the inputs of {self.source} are N×…, at least one, not {inputs.shape}")
        if labels.shape != (len(inputs),):
            raise AssayError(f"{self.source}: there are {len(inputs)} inputs and labels of shape {labels.shape}")
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
            raise AssayError(
                f"the labels of {self.source} must be whole numbers from 0; assay.stimuli.as_labelled((inputs, labels))"
                " numbers classes that have names"
            )
        object.__setattr__(self, "class_names", tuple(self.class_names))
        if self.class_names and len(self.class_names) <= labels.max():
            known = len(self.class_names)
            raise AssayError(f"class_names of {self.source} names {known} classes, and there is a label {labels.max()}")
        for name, array in (("inputs", inputs), ("labels", labels.astype(np.int64))):
            array = array.view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.inputs.shape[1:])

    @property
    def classes(self) -> int:
        """Number of classes: the largest label plus one."""
        return int(self.labels.max()) + 1

    @property
    def description(self) -> str:
        """Number and shape of the inputs, number of classes, their names if they are few, and source, in a line."""
        names = ", ".join(self.class_names)
        named = f" ({names})" if 0 < len(names) <= _ROOM_FOR_NAMES else ""
        shape = "×".join(map(str, self.shape))
        return f"{len(self)} inputs of {shape} in {self.classes} classes{named} from {self.source}"

    @property
    def fingerprint(self) -> str:
        """Hash of the inputs and the labels."""
        return fingerprint(self.inputs, self.labels)

    def shown(self, numbers: Array | slice = slice(None), device: torch.device | str = "cpu") -> Tensor:
        """Return inputs as a network sees them: float32, bytes divided by 255."""
        chosen = self.inputs[numbers]
        inputs = torch.from_numpy(chosen if chosen.flags.writeable else chosen.copy()).to(device)
        return inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs

    def sample(self, count: int | None, seed: int = 0) -> Labelled:
        """Draw ``count`` inputs in random order, without repetition; all if ``None`` or if there are no more."""
        order = np.random.default_rng(seed).permutation(len(self))[:count]
        return self._chosen(order)

    def each(self, count: int) -> Labelled:
        """Return the first ``count`` inputs of each class, in their order."""
        rank_in_class = np.empty(len(self), dtype=np.int64)
        for label in np.unique(self.labels):
            in_class = self.labels == label
            rank_in_class[in_class] = np.arange(in_class.sum())
        kept = rank_in_class < count
        return self._chosen(kept)

    def _chosen(self, numbers: Array) -> Labelled:
        return Labelled(self.inputs[numbers], self.labels[numbers], self.source, self.class_names)


def load_labelled(
    path: str | Path, *, split: str = "train", inputs: str | None = None, labels: str | None = None
) -> Labelled:
    """Load labelled data from a folder of IDX files (MNIST, Fashion-MNIST) or from an ``.npz`` file.

    Args:
        path: A folder with ``train-images-idx3-ubyte.gz`` and so on (``t10k-…`` for the test set), or a file of
            arrays.
        split: ``"train"`` or ``"test"``: in a file the arrays ``{split}_images`` and ``{split}_labels``.
        inputs: Name of another array of inputs in the file: N×H×W, N×H×W×3 or N×C×H×W pictures, or N×D.
        labels: Name of another array of labels in the file.
    """
    path = Path(path)
    if split not in ("train", "test"):
        raise AssayError(f"split={split!r} is not 'train' or 'test'")
    if not path.exists():
        raise AssayError(f"data: {path} does not exist")
    if path.is_dir():
        stem = "train" if split == "train" else "t10k"
        pictures = read_idx(_idx(path, f"{stem}-images-idx3-ubyte"))
        return Labelled(pictures[:, None], read_idx(_idx(path, f"{stem}-labels-idx1-ubyte")), f"{path.name}: {split}")
    array, label_array = read_arrays(path, inputs or f"{split}_images", labels or f"{split}_labels")
    pictures = array[:, None] if array.ndim == 3 else channels_first(array)
    return Labelled(pictures, label_array, f"{path.name}: {split}")


def _idx(folder: Path, name: str) -> Path:
    """Return the path of an IDX file, compressed or not."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    raise AssayError(f"data: {folder} holds no {name} or {name}.gz")


def read_idx(path: Path) -> Array:
    """Read an array of bytes in LeCun's IDX format: two zeros, type 8, the number of axes, their lengths, the bytes."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise AssayError(f"{path} cannot be read ({first_line(error)})") from error
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise AssayError(f"{path} is not an IDX file of bytes")
    axes = data[3]
    shape = np.frombuffer(data[4 : 4 + 4 * axes], dtype=">u4").astype(int) if len(data) >= 4 + 4 * axes else ()
    if len(data) != 4 + 4 * axes + int(np.prod(shape)):
        raise AssayError(f"{path} is cut short or damaged: {len(data)} bytes for {'×'.join(map(str, shape))}")
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
