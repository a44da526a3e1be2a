"""The clips that files and folders hold: pictures in order, videos, and arrays of frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError
from assay.core.names import writable
from assay.core.reading import reading, visible
from assay.stimuli.as_asked import require_as_asked
from assay.stimuli.clips import ArrayClip, Clip, FrameFolder
from assay.stimuli.pictures import SUFFIXES, Array, Color, as_array
from assay.stimuli.stacking import ARRAY_SUFFIXES, file_arrays
from assay.stimuli.video import VIDEO_SUFFIXES, Video


@dataclass(frozen=True)
class ClipFiles:
    """Reads the clips of a file, or of a folder and its sub-folders.

    Args:
        size: Size to resize frames of files to; see `picture_to_array`.
        color: What to convert frames of files to.
        frames: Which frames of each clip to show.
    """

    size: int | tuple[int, int] | None
    color: Color | None
    frames: slice

    def of(self, path: Path) -> list[Clip]:
        """The clips of a file or folder; none where a folder holds none.

        A sub-folder that holds no pictures itself, but clips, is a scene.
        """
        if path.is_file():
            clips = self._video(path) or self._arrays(path)
            if not clips:
                kinds = f"a video ({listed(VIDEO_SUFFIXES)}) or a file of arrays ({listed(ARRAY_SUFFIXES)})"
                raise AssayError(f"{path} is not a folder of sequences, {kinds}")
            return clips
        return self._of_folder(path, with_scenes=True)

    def _of_folder(self, folder: Path, with_scenes: bool) -> list[Clip]:
        clips = self._pictures(folder)
        with reading(folder):
            inside = visible(folder.iterdir(), folder)
        for place in inside:
            if not place.is_dir():
                clips += self._video(place)
            elif in_order := self._pictures(place):
                clips += in_order
            elif with_scenes:
                clips += [_in_scene(clip, place.name) for clip in self._of_folder(place, with_scenes=False)]
        if all(isinstance(clip, ArrayClip) for clip in clips):  # beside pictures and videos an array is something else
            clips += [clip for place in inside for clip in self._arrays(place)]
        return clips

    def _pictures(self, folder: Path) -> list[Clip]:
        with reading(folder):
            files = [p for p in visible(folder.iterdir(), folder) if p.suffix.lower() in SUFFIXES and p.is_file()]
        pictures = tuple(sorted(files, key=_natural)[self.frames])
        return [FrameFolder(folder.name, pictures, self.size, self.color)] if pictures else []

    def _video(self, path: Path) -> list[Clip]:
        if path.suffix.lower() not in VIDEO_SUFFIXES:
            return []
        start, stop, step = self.frames.start, self.frames.stop, self.frames.step
        return [Video(writable(path.stem), path, self.size, self.color, start, stop, step)]

    def _arrays(self, path: Path) -> list[Clip]:
        if path.suffix.lower() not in ARRAY_SUFFIXES or not path.is_file():
            return []
        stem = writable(path.stem)
        clips = list(clips_of_arrays({name or stem: array for name, array in file_arrays(path).items()}))
        require_as_asked([clip.array.shape[1:] for clip in clips], self.size, self.color, f"{path}")
        return [replace(clip, array=clip.array[self.frames]) for clip in clips]


def clips_of_arrays(arrays: Mapping[Any, Any]) -> Iterator[ArrayClip]:
    """Clips of arrays of frames by name; an array of several clips gives each, with its number."""
    for name, given in arrays.items():
        array = as_array(given, f"clip {name!r}")
        if array.ndim == 5:
            yield from (ArrayClip(f"{name} {i}", _frames_first(clip)) for i, clip in enumerate(array))
        else:
            yield ArrayClip(str(name), _frames_first(array))


def listed(suffixes: Iterable[str]) -> str:
    """Suffixes of files, as part of a sentence."""
    return ", ".join(sorted(suffixes))


def _in_scene(clip: Clip, scene: str) -> Clip:
    assert isinstance(clip, FrameFolder | Video | ArrayClip)
    return replace(clip, name=f"{scene} {clip.name}", scene=scene)


def _frames_first(array: Array) -> Array:
    """Return frames T×H×W×C or C×T×H×W as T×C×H×W, where the shape leaves no doubt; others stay as they are."""
    channels = [axis for axis, length in enumerate(array.shape) if length in (1, 3)]
    if array.ndim != 4 or 1 in channels or not channels:
        return array
    if channels == [0]:
        return array.swapaxes(0, 1)
    return array.transpose(0, 3, 1, 2) if channels == [3] else array


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that puts frame 2 before frame 10, whether or not their numbers are padded with zeros."""
    return [(1, int(w), "") if w.isdigit() else (0, 0, w) for w in re.split(r"(\d+)", path.name) if w]
