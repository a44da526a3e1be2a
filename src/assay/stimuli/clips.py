"""Sequences: clips of frames, from folders, video files or arrays, read frame by frame."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import file_fingerprint, fingerprint
from assay.stimuli.pictures import SUFFIXES, Array, Color, picture_to_array, read_picture

VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".y4m"})


class Clip(ABC):
    """One sequence of frames of equal shape. ``condition`` says what it is a clip of: natural, or a control."""

    name: str
    condition: str = "natural"

    @abstractmethod
    def frames(self) -> Iterator[Array]:
        """The frames in order, each C×H×W float32 in [0, 1]; read as they are asked for."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Content hash."""

    def count(self) -> int:
        """How many frames; reads them where nothing else tells."""
        return sum(1 for _ in self.frames())

    def checked_frames(self) -> Iterator[Array]:
        """`frames`, with an error for a frame that is not finite or not shaped like the first."""
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


@dataclass(frozen=True)
class FrameFolder(Clip):
    """A folder of pictures, one per frame, in the order of their names (2 before 10)."""

    name: str
    paths: tuple[Path, ...]
    size: int | tuple[int, int] | None = None
    color: Color | None = None

    def frames(self) -> Iterator[Array]:
        """Read and resize one picture at a time."""
        for path in self.paths:
            yield picture_to_array(read_picture(path), self.size, self.color)

    def count(self) -> int:
        """One per picture."""
        return len(self.paths)

    @property
    def fingerprint(self) -> str:
        """Hash of the files' bytes and how they are read."""
        return fingerprint([file_fingerprint(p) for p in self.paths], self.size, self.color)


@dataclass(frozen=True)
class Video(Clip):
    """A video file, decoded frame by frame through PyAV; every ``step``-th frame of [start, stop)."""

    name: str
    path: Path
    size: int | tuple[int, int] | None = None
    color: Color | None = None
    start: int = 0
    stop: int | None = None
    step: int = 1

    def frames(self) -> Iterator[Array]:
        """Decode one frame at a time.

        Damage the decoder or the container can see is an error, not a shorter clip: a broken packet, or frames
        that end before the duration the file states. (An avi states none, and may be cut between two frames.)
        """
        import av

        t = -1
        try:
            with av.open(str(self.path)) as container:
                if not container.streams.video:
                    raise AssayError(f"{self.path} has no video stream")
                stream = container.streams.video[0]
                stream.codec_context.options = {"err_detect": "explode"}
                shown = 0.0
                for t, frame in enumerate(container.decode(stream)):
                    if frame.is_corrupt:
                        raise AssayError(f"{self.path} is damaged at frame {t}")
                    if self.stop is not None and t >= self.stop:
                        return
                    shown = _seconds_shown(frame, stream)
                    if t >= self.start and (t - self.start) % self.step == 0:
                        yield picture_to_array(frame.to_image(), self.size, self.color)  # type: ignore[no-untyped-call]
                length = _length_s(container, stream)
                slack = 1.5 / float(stream.average_rate or 10)
                if length is not None and shown + slack < length:
                    raise AssayError(f"{self.path} is damaged: its frames end at {shown:.2f} of {length:.2f} s")
        except (av.error.FFmpegError, EOFError) as error:
            raise AssayError(f"{self.path} cannot be decoded past frame {t} ({error})") from error
        if t < 0:
            raise AssayError(f"{self.path} holds no decodable frame")

    @property
    def fingerprint(self) -> str:
        """Hash of the file's bytes and how it is read."""
        window = (self.start, self.stop, self.step)
        return fingerprint(file_fingerprint(self.path), self.size, self.color, window)


def _seconds_shown(frame: Any, stream: Any) -> float:
    """When a frame ends, counted from the first; infinity where the file does not say."""
    if frame.pts is None:
        return float("inf")
    return float((frame.pts + (frame.duration or 0) - (stream.start_time or 0)) * stream.time_base)


def _length_s(container: Any, stream: Any) -> float | None:
    if stream.duration is not None:
        return float(stream.duration * stream.time_base)
    return None if container.duration is None else float(container.duration / 1e6)


@dataclass(frozen=True, eq=False)
class ArrayClip(Clip):
    """Frames in memory: T×C×H×W or T×H×W, floating-point in [0, 1] or uint8."""

    name: str
    array: Array
    condition: str = "natural"

    def __post_init__(self) -> None:
        array = np.asarray(self.array)
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
        """One frame after another."""
        yield from self.array

    def count(self) -> int:
        """Length of the array."""
        return len(self.array)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the pixels."""
        return fingerprint(self.array)


@dataclass(frozen=True)
class PixelFade(Clip):
    """Control: the first frame of a clip fades linearly into its last, x_t = (1−w)·x_1 + w·x_T.

    A straight line in pixel space. Frames are not quantised. Hénaff et al. 2019.
    """

    clip: Clip
    condition: str = field(default="pixel_fade", init=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the clip it is made of."""
        return self.clip.name

    def frames(self) -> Iterator[Array]:
        """As many frames as the clip has."""
        first, last, n = _ends(self.clip)
        for w in np.linspace(0, 1, n, dtype=np.float64):
            yield ((1 - w) * first + w * last).astype(np.float32)

    @property
    def fingerprint(self) -> str:
        """That of the clip, marked."""
        return fingerprint("pixel_fade", self.clip.fingerprint)


@dataclass(frozen=True)
class ContrastFade(Clip):
    """Control: the first frame of a clip loses contrast, x_t = m + c_t·(x_1 − m), m its mean.

    c falls linearly from 1 to ``low``. A straight line in pixel space. The published stimuli name this
    control but give neither its range nor its values; the range here is ours.
    """

    clip: Clip
    low: float = 0.1
    condition: str = field(default="contrast_fade", init=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the clip it is made of."""
        return self.clip.name

    def frames(self) -> Iterator[Array]:
        """As many frames as the clip has."""
        first, _, n = _ends(self.clip)
        mean = first.mean(dtype=np.float64)
        for c in np.linspace(1, self.low, n, dtype=np.float64):
            yield (mean + c * (first - mean)).astype(np.float32)

    @property
    def fingerprint(self) -> str:
        """That of the clip, marked."""
        return fingerprint("contrast_fade", self.low, self.clip.fingerprint)


def _ends(clip: Clip) -> tuple[Array, Array, int]:
    frames = clip.checked_frames()
    first = last = next(frames)
    n = 1
    for frame in frames:
        n, last = n + 1, frame
    return first, last, n


@dataclass(frozen=True)
class Sequences:
    """A set of clips to show, and where they come from."""

    clips: tuple[Clip, ...]
    source: str = "given"

    def __post_init__(self) -> None:
        if not self.clips:
            raise AssayError(f"no sequences in {self.source}")
        seen: set[tuple[str, str]] = set()
        for clip in self.clips:
            if (clip.name, clip.condition) in seen:
                raise AssayError(f"two {clip.condition} clips are called {clip.name!r}: name them apart")
            seen.add((clip.name, clip.condition))

    @classmethod
    def of(cls, **arrays: Array) -> Sequences:
        """Sequences from arrays: ``Sequences.of(dot=array, noise=other)``, each T×C×H×W or T×H×W."""
        return cls(tuple(ArrayClip(name, array) for name, array in arrays.items()))

    def __len__(self) -> int:
        return len(self.clips)

    def __iter__(self) -> Iterator[Clip]:
        return iter(self.clips)

    def __add__(self, other: Sequences) -> Sequences:
        return Sequences(self.clips + other.clips, f"{self.source} + {other.source}")

    @cached_property
    def description(self) -> str:
        """How many clips, how large, from where."""
        shape = "×".join(map(str, next(self.clips[0].frames()).shape))
        return f"{len(self.clips)} clips of {shape} from {self.source}"

    @property
    def fingerprint(self) -> str:
        """Content hash of all clips, names and conditions."""
        return fingerprint([(c.name, c.condition, c.fingerprint) for c in self.clips])

    def pixel_fade(self) -> Sequences:
        """The pixel-fade control of every clip."""
        return replace(self, clips=tuple(PixelFade(c) for c in self.clips))

    def contrast_fade(self, low: float = 0.1) -> Sequences:
        """The contrast-fade control of every clip."""
        return replace(self, clips=tuple(ContrastFade(c, low) for c in self.clips))

    def batches(self, size: int) -> Iterator[tuple[Array, Array]]:
        """All frames of all clips in order, ``size`` at a time: (frames N×C×H×W, index of the clip of each).

        A batch ends early where the frame shape changes.
        """
        frames: list[Array] = []
        owners: list[int] = []
        for index, clip in enumerate(self.clips):
            for frame in clip.checked_frames():
                if frames and (len(frames) == size or frame.shape != frames[0].shape):
                    yield np.stack(frames), np.array(owners)
                    frames, owners = [], []
                frames.append(frame)
                owners.append(index)
        if frames:
            yield np.stack(frames), np.array(owners)


def load_sequences(
    folder: str | Path,
    size: int | tuple[int, int] | None = None,
    color: Color | None = None,
    *,
    names: Sequence[str] | None = None,
    start: int = 0,
    stop: int | None = None,
    step: int = 1,
) -> Sequences:
    """Sequences from a folder, or from one video file.

    In the folder, every sub-folder of pictures and every video file is one clip; if the folder itself holds
    pictures, they are one clip.

    Args:
        folder: Where they are.
        size: Resize (LANCZOS): an integer for the central square, (height, width) for the whole frame.
        color: ``"grey"`` or ``"rgb"``; as stored by default. Grey frames become rgb by repeating.
        names: Only these clips.
        start: First frame of each clip to show.
        stop: Show frames up to, not including, this one.
        step: Show every step-th frame.
    """
    folder = Path(folder)
    if not folder.exists():
        raise AssayError(f"sequences: {folder} does not exist")
    if color not in (None, "grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey', 'rgb' or None")
    sides = (size,) if isinstance(size, int) else size or ()
    if any(not isinstance(s, int) or s < 1 for s in sides):
        raise AssayError(f"size={size!r} is not a positive number of pixels, or (height, width)")
    if step < 1 or start < 0:
        raise AssayError(f"start={start}, step={step}: start must be at least 0 and step at least 1")
    window: dict[str, Any] = {"start": start, "stop": stop, "step": step}
    clips: list[Clip] = []
    if folder.is_file():
        if folder.suffix.lower() not in VIDEO_SUFFIXES:
            raise AssayError(f"{folder} is not a folder of sequences or a video ({_listed(VIDEO_SUFFIXES)})")
        clips.append(Video(folder.stem, folder, size, color, **window))
    else:
        for place in [folder, *sorted(folder.iterdir())]:
            if place.is_dir():
                frames = sorted(_pictures(place), key=_natural)[start:stop:step]
                if frames:
                    clips.append(FrameFolder(place.name, tuple(frames), size, color))
            elif place.suffix.lower() in VIDEO_SUFFIXES:
                clips.append(Video(place.stem, place, size, color, **window))
    if not clips:
        raise AssayError(f"{folder} holds no sub-folder of pictures and no video ({_listed(VIDEO_SUFFIXES)})")
    if names is not None:
        wanted = list(names)
        known = {c.name: c for c in clips}
        for name in wanted:
            if name not in known:
                raise AssayError(f"no clip {name!r} in {folder}{nearest(name, known)}")
        clips = [known[name] for name in wanted]
    return Sequences(tuple(clips), str(folder))


def _pictures(folder: Path) -> Iterator[Path]:
    return (p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """A sort key that counts: frame 2 before frame 10, padded or not."""
    return [(1, int(w), "") if w.isdigit() else (0, 0, w) for w in re.split(r"(\d+)", path.name) if w]


def _listed(suffixes: Iterable[str]) -> str:
    return ", ".join(sorted(suffixes))
