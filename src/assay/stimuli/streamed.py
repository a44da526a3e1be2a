"""Pictures that stay in their files until they are shown: data sets of any size in bounded memory."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_array
from assay.stimuli.picture_files import PicturesDiffer, Size, picture_bytes
from assay.stimuli.pictures import Array, Color, read_picture

_THREADS = 8  # decoders at a time; PIL lets other threads run while it decodes


class PictureSource(ABC):
    """Many stored pictures, read by their numbers."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of pictures."""

    @abstractmethod
    def pictures(self, numbers: Array) -> list[Image.Image]:
        """Read some pictures, in the order of the numbers."""

    @abstractmethod
    def name(self, number: int) -> str:
        """What errors call a picture."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of which files there are, how large they are, and when they were last changed."""


class FolderPictures(PictureSource):
    """Pictures in files below one folder.

    Args:
        folder: The folder.
        files: Path of each file.
    """

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        self.folder = folder
        # Bytes in one array: a million paths of Python's would take ten times the memory.
        self._names = np.array([os.fsencode(file.relative_to(folder)) for file in files])

    def __len__(self) -> int:
        return len(self._names)

    def name(self, number: int) -> str:
        """The path of a picture."""
        return str(self.folder / os.fsdecode(self._names[number]))

    def pictures(self, numbers: Array) -> list[Image.Image]:
        """Read some pictures, several at a time."""
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(lambda number: read_picture(Path(self.name(number))), numbers.tolist()))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the names, the sizes and the times of change of all files."""
        states = np.array([file_state(Path(self.name(number))) for number in range(len(self))])
        return fingerprint(self._names, states)


def file_state(path: Path) -> tuple[int, int]:
    """Size and time of the last change of a file, which stand for its content where reading it would take hours."""
    try:
        known = path.stat()
    except OSError as error:
        raise AssayError(f"{path} cannot be read ({error.strerror})") from error
    return known.st_size, known.st_mtime_ns


class StreamedPictures:
    """Pictures N×C×H×W of bytes that behave as an array does when rows are taken from it: these are read then.

    It stands where `Labelled` has an array of inputs. A part of it that `Labelled.sample` or `each` draws is streamed
    too.

    Args:
        source: Where the pictures are.
        size: Side of the square to cut from the centre and resize to, or (height, width) to resize the whole to.
        color: ``"grey"`` or ``"rgb"`` to convert to.
        numbers: Which of the pictures, in which order; all by default.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(
        self, source: PictureSource, size: Size | None = None, color: Color | None = None, numbers: Array | None = None
    ) -> None:
        self.source = source
        self.size = size
        self.color = color
        self.numbers = np.arange(len(source)) if numbers is None else numbers
        if not len(self.numbers):
            raise AssayError("there is no picture to stream: give at least one")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of pictures and shape of the first, N×C×H×W; the others must have the same."""
        return len(self.numbers), *self._arrays(self.numbers[:1])[0].shape

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the files, of which pictures are taken from them, and of what is done to these."""
        return fingerprint(self.source.fingerprint, self.numbers, self.size, self.color)

    def __len__(self) -> int:
        return len(self.numbers)

    def chosen(self, rows: Any) -> StreamedPictures:
        """Some of the pictures, by their places or by truth values, unread."""
        return StreamedPictures(self.source, self.size, self.color, self.numbers[rows])

    def __getitem__(self, rows: Any) -> Array:
        """Read some of the pictures: by a place, a slice, places or truth values, as from an array."""
        numbers = self.numbers[rows]
        single = not isinstance(numbers, np.ndarray)
        wanted = np.atleast_1d(numbers)
        require_array(f"{len(wanted)} streamed pictures at once", (len(wanted), *self.shape[1:]), 1)
        read = np.empty((len(wanted), *self.shape[1:]), np.uint8)
        for place, array in enumerate(self._arrays(wanted)):
            read[place] = array
        return read[0] if single else read

    def _arrays(self, numbers: Array) -> list[Array]:
        arrays = []
        expected = self.__dict__.get("shape", (0,))[1:]
        for number, picture in zip(numbers.tolist(), self.source.pictures(numbers), strict=True):
            array = picture_bytes(picture, self.size, self.color)
            if array.dtype != np.uint8:
                raise AssayError(f"{self.source.name(number)} has more than 8 bits a colour: only bytes are streamed")
            if expected and array.shape != expected:
                first = self.source.name(int(self.numbers[0]))
                raise PicturesDiffer(first, expected, self.source.name(number), array.shape)
            arrays.append(array)
        return arrays
