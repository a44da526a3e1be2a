"""Sets of clips to show: given as arrays, or loaded from a folder of pictures and videos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from assay.core.errors import AssayError, nearest, shown
from assay.core.fingerprint import fingerprint
from assay.core.names import require_writable
from assay.core.reading import is_there
from assay.stimuli.clip_files import ClipFiles, listed
from assay.stimuli.clips import ArrayClip, Clip
from assay.stimuli.fades import ContrastFade, PixelFade
from assay.stimuli.pictures import Array, Color
from assay.stimuli.stacking import ARRAY_SUFFIXES
from assay.stimuli.thumbnails import stimuli_as_html
from assay.stimuli.video import VIDEO_SUFFIXES


@dataclass(frozen=True)
class Sequences:
    """A set of clips to show, and where they come from."""

    clips: tuple[Clip, ...]
    source: str = "memory"

    def __post_init__(self) -> None:
        if not isinstance(self.clips, (tuple, list)) or not all(isinstance(clip, Clip) for clip in self.clips):
            remedy = "give a list of clips; assay.stimuli.as_sequences makes them of arrays, folders and videos"
            raise AssayError(f"clips={shown(self.clips)}: {remedy}")
        object.__setattr__(self, "clips", tuple(self.clips))
        if not self.clips:
            raise AssayError(f"no sequences in {self.source}")
        seen: set[tuple[str, str]] = set()
        for clip in self.clips:
            for name in (clip.name, clip.condition, clip.scene):
                require_writable(name, "the name of a clip, its condition or its scene")
            if (clip.name, clip.condition) in seen:
                raise AssayError(f"two {clip.condition} clips are called {clip.name!r}: name them apart")
            seen.add((clip.name, clip.condition))

    @classmethod
    def of(cls, **arrays: Array) -> Sequences:
        """Make sequences of arrays T×C×H×W or T×H×W, by name: ``Sequences.of(dot=array, noise=other)``."""
        return cls(tuple(ArrayClip(name, array) for name, array in arrays.items()))

    def __len__(self) -> int:
        return len(self.clips)

    def __iter__(self) -> Iterator[Clip]:
        return iter(self.clips)

    def __add__(self, other: Sequences) -> Sequences:
        return Sequences(self.clips + other.clips, f"{self.source} + {other.source}")

    def __repr__(self) -> str:
        return f"Sequences({len(self.clips)} clips from {self.source})"

    def _repr_html_(self) -> str:
        conditions = ", ".join(dict.fromkeys(clip.condition for clip in self.clips))
        facts = {"clips": len(self), "conditions": conditions, "from": self.source}
        first_frames = ((clip.name, frame) for clip in self.clips for frame in islice(clip.frames(), 1))
        return stimuli_as_html("Sequences", facts, first_frames)

    @cached_property
    def description(self) -> str:
        """Number, frame size and source of the clips, in a line."""
        shape = "×".join(map(str, next(self.clips[0].frames()).shape))
        clips = "clip" if len(self.clips) == 1 else "clips"
        return f"{len(self.clips)} {clips} of {shape} from {self.source}"

    @property
    def fingerprint(self) -> str:
        """Hash of the names, conditions, contents and classes of all clips."""
        return fingerprint([(clip.name, clip.condition, clip) for clip in self.clips])

    def pixel_fade(self) -> Sequences:
        """Return the pixel-fade control of every clip."""
        return replace(self, clips=tuple(PixelFade(c) for c in self.clips))

    def contrast_fade(self, low: float = 0.1) -> Sequences:
        """Return the contrast-fade control of every clip."""
        return replace(self, clips=tuple(ContrastFade(c, low) for c in self.clips))

    def batches(self, size: int) -> Iterator[tuple[Array, Array]]:
        """Yield all frames of all clips in order, ``size`` at a time: (frames N×C×H×W, index of the clip of each).

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

    def whole_clips(self) -> Iterator[tuple[Array, Array]]:
        """Yield the clips one by one, each whole: (frames T×C×H×W, index of the clip for each frame)."""
        for index, clip in enumerate(self.clips):
            frames = np.stack(list(clip.checked_frames()))
            yield frames, np.full(len(frames), index)


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
    """Load sequences from a folder, or from one video file or file of arrays.

    In the folder, every sub-folder of pictures, every video file and every clip of an ``.npy`` or ``.npz`` file is one
    clip; if the folder itself holds pictures, they are one clip. A sub-folder of such clips is a *scene*: its clips,
    called by its name and theirs, resemble each other, and intervals draw them together.

    Args:
        folder: The folder, or the file.
        size: Size to resize frames to (LANCZOS): an integer for the central square, (height, width) for the whole
            frame. Arrays are used as they are: to ask for another size than theirs is an error.
        color: ``"grey"`` or ``"rgb"``; by default frames stay as stored. Grey frames become rgb by repeating.
        names: Load only the clips of these names.
        start: First frame of each clip to show.
        stop: Show frames up to, not including, this one.
        step: Show every step-th frame.
    """
    folder = Path(folder)
    if not is_there(folder):
        raise AssayError(f"sequences: {folder} does not exist")
    if color not in (None, "grey", "rgb"):
        raise AssayError(f"color={color!r} is not 'grey', 'rgb' or None")
    sides = (size,) if isinstance(size, int) else size or ()
    if any(not isinstance(s, int) or s < 1 for s in sides):
        raise AssayError(f"size={size!r} is not a positive number of pixels, or (height, width)")
    if step < 1 or start < 0:
        raise AssayError(f"start={start}, step={step}: start must be at least 0 and step at least 1")
    clips = ClipFiles(size, color, slice(start, stop, step)).of(folder)
    if not clips:
        raise AssayError(
            f"{folder} holds no sub-folder of pictures, no video ({listed(VIDEO_SUFFIXES)}) and no arrays of frames "
            f"({listed(ARRAY_SUFFIXES)})"
        )
    if names is not None:
        wanted = list(names)
        known = {c.name: c for c in clips}
        for name in wanted:
            if name not in known:
                raise AssayError(f"no clip {name!r} in {folder}{nearest(name, known)}")
        clips = [known[name] for name in wanted]
    return Sequences(tuple(clips), str(folder))
