"""Sets of pictures of one size, with or without labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from assay.core.array_files import load_arrays
from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_array
from assay.core.reading import is_there, reading
from assay.stimuli.as_asked import require_as_asked
from assay.stimuli.picture_files import picture_names, pictures_in, read_pictures, require_size
from assay.stimuli.pictures import SUFFIXES, Array, Color, as_array
from assay.stimuli.samples import spread, taken
from assay.stimuli.thumbnails import stimuli_as_html


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures N×C×H×W in [0, 1] (uint8 and N×H×W are converted), with one label each if labels are given.

    Args:
        array: The pictures.
        labels: The label of each, or None.
        source: Where they come from, in words.
        names: The name of each, where they have some; those of files are the names of the files without suffix.

    Example:
        >>> images = Images(np.zeros((3, 8, 8), dtype=np.uint8))
        >>> images.array.shape, len(images)
        ((3, 1, 8, 8), 3)
    """

    array: Array
    labels: Array | None = None
    source: str = "arrays in memory"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        array = as_array(self.array, f"images of {self.source}")
        if array.ndim == 3:
            array = array[:, None]
        if array.ndim != 4 or 0 in array.shape:
            raise AssayError(f"images are N×C×H×W or N×H×W, not {array.shape}")
        if array.dtype != np.uint8 and not np.issubdtype(array.dtype, np.floating):
            raise AssayError(f"the images of {self.source} are {array.dtype}: give uint8, or floats in [0, 1]")
        if array.dtype == np.uint8:
            require_array(f"{len(array)} images of {'×'.join(map(str, array.shape[1:]))}", array.shape)
            array = array.astype(np.float32)
            array /= 255
        else:
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            raise AssayError(f"the images of {self.source} have NaN or infinite pixels")
        array.setflags(write=False)
        object.__setattr__(self, "array", array)
        if self.labels is not None:
            labels = as_array(self.labels, f"labels of {self.source}")
            if labels.ndim == 0 or len(labels) != len(array):
                count = len(labels) if labels.ndim else repr(self.labels)
                raise AssayError(f"there are {len(array)} images and {count} labels: give one for each")
            object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        if self.names and len(self.names) != len(array):
            raise AssayError(f"names has {len(self.names)} entries for {len(array)} images: name each")

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description})"

    def _repr_html_(self) -> str:
        facts = {"images": f"{len(self)} of {'×'.join(map(str, self.array.shape[1:]))}", "from": self.source}
        names = (f"image {i}" for i in range(len(self))) if self.labels is None else map(str, self.labels)
        return stimuli_as_html("Images", facts, zip(names, self.array, strict=False))

    @property
    def description(self) -> str:
        """Number, size and source of the images, in a line."""
        return f"{len(self)} images of {'×'.join(map(str, self.array.shape[1:]))} from {self.source}"

    def spread(self, count: int) -> Images:
        """Return ``count`` images, evenly spread over all in their order; these images themselves if there are no more.

        Example:
            >>> Images(np.zeros((6, 8, 8)), source="arrays").spread(2).description
            '2 images of 1×8×8 from arrays, 2 of 6'
        """
        if count >= len(self):
            return self
        rows = spread(len(self), count)
        labels = None if self.labels is None else self.labels[rows]
        names = tuple(self.names[i] for i in rows) if self.names else ()
        return Images(self.array[rows], labels, taken(self.source, count, len(self)), names)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the pixels and the labels."""
        return fingerprint(self.array, self.labels)


def load_images(
    path: str | Path,
    size: int | None = None,
    color: Color | None = None,
    *,
    images: str | None = None,
    labels: str | None = None,
    count: int | None = None,
) -> Images:
    """Load images from a folder of pictures or from an ``.npz`` file of arrays.

    Args:
        path: The folder (pictures in the order of their names) or the file.
        size: Side to resize pictures of a folder to (central square, LANCZOS). Arrays of a file are used as they are:
            to ask for another size than theirs is an error.
        color: ``"grey"`` or ``"rgb"``, to convert pictures of a folder to, in the same way.
        images: Name of the array in the file: N×H×W, N×H×W×3 or N×C×H×W, uint8 or floats in [0, 1]; ``images`` by
            default.
        labels: Name of the array of labels in the file.
        count: Load only this many images, from the first on.
    """
    path = Path(path)
    if not is_there(path):
        raise AssayError(f"images: {path} does not exist")
    require_size(size)
    if color not in (None, "grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey', 'rgb' or None")
    if path.is_dir():
        require_no_arrays_named(path, images=images, labels=labels)
        files = pictures_in(path)[:count]
        if not files:
            raise AssayError(f"{path} holds no pictures ({', '.join(sorted(SUFFIXES))})")
        return Images(read_pictures(files, size, color), None, str(path), picture_names(files))
    if path.suffix != ".npz":
        raise AssayError(f"{path} is not a folder of pictures or an .npz file")
    name = images or "images"
    array, *label_arrays = read_arrays(path, name, *filter(None, (labels,)))
    first_labels = label_arrays[0][:count] if label_arrays else None
    made = Images(channels_first(array[:count]), first_labels, f"{path.name}: {name}")
    require_as_asked([made.array.shape[1:]], size, color, str(path))
    return made


def require_no_arrays_named(folder: Path, **names: str | None) -> None:
    """Refuse settings that name arrays where there are none."""
    for setting, name in names.items():
        if name is not None:
            raise AssayError(f"{setting}={name!r} names an array of an .npz file; {folder} is a folder: leave it out")


def read_arrays(path: Path, *names: str) -> list[Array]:
    """Read arrays of an ``.npz`` file by name; no code in the file is run."""
    with reading(path, "arrays"), path.open("rb") as handle:
        file = load_arrays(handle, path, names)
        if isinstance(file, np.ndarray):
            raise AssayError(f"{path} holds one array without a name: give an .npz file, or the array itself")
        for name in names:
            if name not in file:
                raise AssayError(f"{path} has no array {name!r}{nearest(name, list(file))}")
        return [np.asarray(file[name]) for name in names]


def channels_first(array: Array) -> Array:
    """Return pictures N×H×W×C as N×C×H×W, and any other array unchanged."""
    last = array.ndim == 4 and array.shape[-1] in (1, 3) and array.shape[1] not in (1, 3)
    return array.transpose(0, 3, 1, 2) if last else array
