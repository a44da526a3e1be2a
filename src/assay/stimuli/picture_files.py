"""Many files of pictures as one array, and the classes of a folder of class folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.core.errors import AssayError
from assay.core.reading import reading, visible
from assay.stimuli.pictures import SUFFIXES, Array, Color, picture_to_array, read_picture

Size = int | tuple[int, int]
_NAMED = 10  # files in a sentence


def pictures_in(folder: Path) -> list[Path]:
    """Return the files of pictures that lie in a folder itself and are not hidden, in the order of their names."""
    with reading(folder):
        return [p for p in visible(folder.iterdir(), folder) if _is_picture(p)]


def _is_picture(path: Path) -> bool:
    """Whether something is named like a picture; a link that leads nowhere is one too, which reading it then says."""
    return path.suffix.lower() in SUFFIXES and not path.is_dir()


def picture_names(files: Any) -> tuple[str, ...]:
    """Name pictures by their files, without suffix; none where these are no files, or share a name.

    Example:
        >>> picture_names([Path("seen/cat.png"), "seen/owl.jpg"]), picture_names(["a/1.png", "b/1.png"])
        (('cat', 'owl'), ())
    """
    if not isinstance(files, (list, tuple)) or not all(isinstance(file, (str, Path)) for file in files):
        return ()
    names = tuple(Path(file).stem for file in files)
    return names if len(set(names)) == len(names) else ()


def read_pictures(files: Sequence[Path], size: Size | None = None, color: Color | None = None) -> Array:
    """Read pictures of one shape into one array N×C×H×W, uint8 where all files have 8 bits, else float32 in [0, 1].

    Args:
        files: The files, at least one.
        size: Side of the square to cut from the centre and resize to, or (height, width) to resize the whole to.
        color: ``"grey"`` or ``"rgb"`` to convert to; by default pictures stay as stored.

    Raises:
        AssayError: Pictures cannot be read, which are all named, or differ in shape.
    """
    require_size(size)
    if color not in (None, "grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey', 'rgb' or None")
    arrays: list[Array] = []
    broken: list[tuple[Path, AssayError]] = []
    for file in files:
        try:
            picture = read_picture(file)
        except AssayError as error:
            broken.append((file, error))
            continue
        array = picture_bytes(picture, size, color)
        if arrays and array.shape != arrays[0].shape:
            raise PicturesDiffer(str(files[0]), arrays[0].shape, str(file), array.shape)
        arrays.append(array)
    if len(broken) == 1:
        raise broken[0][1]
    if broken:
        others = ", ".join(str(file) for file, _ in broken[1:_NAMED])
        more = f", and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        raise AssayError(f"{broken[0][1]}; {len(broken) - 1} other pictures cannot be read either: {others}{more}")
    if len({array.dtype for array in arrays}) > 1:  # bytes among 16-bit pictures become shares of 255
        arrays = [a.astype(np.float32) / 255 if a.dtype == np.uint8 else a for a in arrays]
    return np.stack(arrays)


class PicturesDiffer(AssayError):
    """Two pictures do not fit in one array; the remedy is written as the place is where the pictures were named.

    Args:
        first: What the first picture is called.
        one: Its shape, C×H×W.
        second: What the second picture is called.
        other: Its shape.
    """

    def __init__(self, first: str, one: tuple[int, ...], second: str, other: tuple[int, ...]) -> None:
        self.in_size, self.in_color = one[-2:] != other[-2:], one[0] != other[0]
        shapes = ["×".join(map(str, shape)) for shape in (one, other)]
        self.fact = f"{first} is {shapes[0]} and {second} is {shapes[1]} (C×H×W), which do not go in one array"
        super().__init__()
        self.reworded("size=…", "color='rgb' or color='grey'", " to assay.stimuli.as_labelled or as_images")

    def sentence(self, size: str, color: str) -> str:
        """The error with its remedy, in words for a size and for a colour that can be given."""
        remedies = [f"{size}, which cuts the central square and resizes it,"] if self.in_size else []
        remedies += [color] if self.in_color else []
        return f"{self.fact}: give {' and '.join(remedies).removesuffix(',') or 'arrays of one shape'}"

    def reworded(self, size: str, color: str, place: str = "") -> PicturesDiffer:
        """This error, for another place: what to write there for a size and for a colour, and where."""
        self.args = (self.sentence(size, color) + (place if self.in_size or self.in_color else ""),)
        return self


def picture_bytes(image: Image.Image, size: Size | None = None, color: Color | None = None) -> Array:
    """Convert a picture as `picture_to_array` does, to uint8 where it has 8 bits, a quarter as large."""
    array = picture_to_array(image, size, color)
    return array if image.mode == "F" else np.rint(array * 255).astype(np.uint8)


def require_size(size: Any) -> None:
    """Refuse a size that is neither None, a positive number of pixels nor (height, width)."""
    sides = (size,) if isinstance(size, int) else () if size is None else size
    fits = isinstance(sides, (tuple, list)) and (isinstance(size, int) or size is None or len(sides) == 2)
    if not fits or any(isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in sides):
        raise AssayError(f"size={size!r} is not a positive number of pixels, or (height, width)")


def class_folders(folder: Path, argument: str) -> tuple[list[Path], list[int], tuple[str, ...]]:
    """List the pictures of a folder of class folders, the class of each, and the names of the classes.

    Classes are numbered in the alphabetical order of their folders, as torchvision's ``ImageFolder`` does. Pictures may
    lie deeper in the folder of their class. Files and folders that are hidden are passed over.

    Args:
        folder: The folder whose sub-folders are the classes.
        argument: The argument that errors name.
    """
    with reading(folder):
        inside = [p for p in visible(folder.iterdir(), folder) if p.is_dir()]
        files_by_class = {p.name: [file for file in visible(p.rglob("*"), p) if _is_picture(file)] for p in inside}
    known = ", ".join(sorted(SUFFIXES))
    if not any(files_by_class.values()):
        if pictures_in(folder):
            remedy = "put the pictures of each class in a sub-folder with its name, or give (inputs, labels)"
            raise AssayError(f"{argument}={str(folder)!r} holds pictures without labels: {remedy}")
        raise AssayError(f"{argument}={str(folder)!r} holds no class folders with pictures ({known}) and no IDX files")
    for place in inside:
        if not files_by_class[place.name]:
            raise AssayError(f"the class folder {place} holds no pictures ({known}): fill or remove it")
    split = next((place for place in inside if place.name.lower() in _SPLITS and not pictures_in(place)), None)
    if split is not None:
        raise AssayError(
            f"{argument}={str(folder)!r} holds parts of a data set, not classes: give one, such as {split}"
        )
    if len(inside) < 2:
        raise AssayError(f"{argument}={str(folder)!r} has one class folder, {inside[0].name!r}: give at least two")
    files = [file for place in inside for file in files_by_class[place.name]]
    labels = [label for label, place in enumerate(inside) for _ in files_by_class[place.name]]
    return files, labels, tuple(files_by_class)


_SPLITS = ("train", "training", "test", "testing", "val", "valid", "validation")
