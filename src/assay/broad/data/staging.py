"""Instances on their way to a worker: clips under neutral names, in files that say nothing but what they show."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Inputs
from assay.core.errors import AssayError
from assay.core.fingerprint import file_fingerprint
from assay.stimuli.clips import Clip, FrameFolder
from assay.stimuli.video import Video


@dataclass(frozen=True, repr=False)
class StoredClip(Clip):
    """Frames in a file of their own, T×C×H×W, read one at a time.

    Args:
        name: Name of the clip.
        path: File of the frames, as NumPy writes it.
    """

    name: str
    path: Path

    def frames(self) -> Iterator[Array]:
        """Read the frames, one at a time."""
        for frame in np.load(self.path, mmap_mode="r", allow_pickle=False):
            yield np.array(frame)

    def count(self) -> int:
        """Return the number of frames in the file."""
        return len(np.load(self.path, mmap_mode="r", allow_pickle=False))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the bytes of the file."""
        return file_fingerprint(self.path)


def staged(inputs: Inputs, folder: Path) -> Inputs:
    """Copy clips into a folder under the ids of the instances; text is given as it is.

    A folder named after a class, a date, the order in which files were made, or a recipe for drawing a clip would all
    tell what a clip shows. Videos and pictures are copied byte by byte, in the order of the ids; frames that are drawn
    or in memory are written out.

    Args:
        inputs: Instances under neutral ids.
        folder: Folder to copy clips into.
    """
    items: Any = inputs.items
    if sparse.issparse(items) or not len(items) or not isinstance(items[0], Clip):
        return inputs
    clips = [_staged(clip, name, folder) for clip, name in zip(items, inputs.ids, strict=True)]
    return Inputs(clips, inputs.ids)


def _staged(clip: Clip, name: str, folder: Path) -> Clip:
    if type(clip) is Video:
        target = folder / f"{name}{clip.path.suffix.lower()}"
        shutil.copyfile(clip.path, target)
        return replace(clip, name=name, path=target)
    if type(clip) is FrameFolder:
        place = folder / name
        place.mkdir()
        paths = [place / f"frame-{i:06d}{path.suffix.lower()}" for i, path in enumerate(clip.paths)]
        for source, target in zip(clip.paths, paths, strict=True):
            shutil.copyfile(source, target)
        return replace(clip, name=name, paths=tuple(paths))
    frames = list(clip.frames())
    if len({frame.shape for frame in frames}) != 1:
        raise AssayError(f"clip {clip.name!r} has no frames, or frames of several sizes")
    target = folder / f"{name}.npy"
    np.save(target, np.stack(frames))
    return StoredClip(name, target)
