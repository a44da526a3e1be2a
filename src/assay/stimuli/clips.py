"""One sequence of frames: the contract of a clip, and clips from folders of pictures and from arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from assay.core.errors import AssayError
from assay.core.fingerprint import file_fingerprint, fingerprint
from assay.stimuli.pictures import Array, Color, as_array, picture_to_array, read_picture
from assay.stimuli.thumbnails import stimuli_as_html


class Clip(ABC):
    """One sequence of frames of equal shape.

    ``condition`` says whether the clip is natural or which control it is. Clips of one ``scene``, such as several
    movements over one photograph, are alike: errors are counted over scenes. By default each clip is its own.
    """

    name: str
    condition: str = "natural"
    scene: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _repr_html_(self) -> str:
        frames = ((f"frame {t}", frame) for t, frame in enumerate(self.frames()))
        return stimuli_as_html(f"Clip {self.name}", {"condition": self.condition}, frames)

    @abstractmethod
    def frames(self) -> Iterator[Array]:
        """The frames in order, each C×H×W float32 in [0, 1]; each is read only when it is needed."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that decides what the frames show."""

    def count(self) -> int:
        """Count the frames; all of them are read unless a subclass knows their number."""
        return sum(1 for _ in self.frames())

    def checked_frames(self) -> Iterator[Array]:
        """Yield the frames, and raise an error for one that is not finite or not shaped like the first."""
        shape = None
        for t, frame in enumerate(self.frames()):
            shape = shape or frame.shape
            if frame.shape != shape:
                raise AssayError(f"clip {self.name!r}: frame {t} is {frame.shape}, the first is {shape}")
            if not np.isfinite(frame).all():
                raise AssayError(f"clip {self.name!r}: frame {t} has NaN or infinite pixels")
            yield frame
        if shape is None:
            raise AssayError(f"clip {self.name!r} has no frames")


@dataclass(frozen=True, repr=False)
class FrameFolder(Clip):
    """A folder of pictures, one per frame, in the order of their names (2 before 10)."""

    name: str
    paths: tuple[Path, ...]
    size: int | tuple[int, int] | None = None
    color: Color | None = None
    scene: str = ""

    def frames(self) -> Iterator[Array]:
        """Read and resize the pictures, one at a time."""
        for picture in self.pictures():
            yield picture_to_array(picture, self.size, self.color)

    def pictures(self) -> Iterator[Image.Image]:
        """Read the pictures, one at a time, in their own size and colours."""
        return map(read_picture, self.paths)

    def count(self) -> int:
        """Return the number of pictures: each is one frame."""
        return len(self.paths)

    @property
    def fingerprint(self) -> str:
        """Hash of the bytes of the files and of how they are read."""
        return fingerprint([file_fingerprint(p) for p in self.paths], self.size, self.color)


@dataclass(frozen=True, eq=False, repr=False)
class ArrayClip(Clip):
    """Frames in memory: T×C×H×W or T×H×W, floating-point in [0, 1] or uint8."""

    name: str
    array: Array
    condition: str = "natural"
    scene: str = ""

    def __post_init__(self) -> None:
        array = as_array(self.array, f"clip {self.name!r}")
        if array.ndim not in (3, 4):
            raise AssayError(f"clip {self.name!r}: frames are T×C×H×W or T×H×W, not {array.shape}")
        if array.dtype == np.uint8:
            array = array.astype(np.float32) / 255
        if not np.issubdtype(array.dtype, np.floating):
            raise AssayError(f"clip {self.name!r}: frames are {array.dtype}; give floats in [0, 1] or uint8")
        array = array.astype(np.float32)  # a copy, so that its fingerprint stays true
        array.setflags(write=False)
        object.__setattr__(self, "array", array[:, None] if array.ndim == 3 else array)

    def frames(self) -> Iterator[Array]:
        """Yield the frames of the array in order."""
        yield from self.array

    def count(self) -> int:
        """Return the number of frames in the array."""
        return len(self.array)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the pixels of all frames."""
        return fingerprint(self.array)
