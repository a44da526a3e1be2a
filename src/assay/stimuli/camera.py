"""Camera motion over still pictures: sequences whose every parameter is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.nn import functional as F

from assay.errors import AssayError
from assay.fingerprint import fingerprint
from assay.stimuli.pictures import Array, Color, photographs
from assay.stimuli.sequences import Clip, Sequences

MOTIONS = ("translation", "rotation", "zoom")


@dataclass(frozen=True, eq=False)
class CameraClip(Clip):
    """A window that slides, turns or zooms over a picture, sampled bilinearly.

    Frame t of T shows the picture through a window of ``size`` pixels whose centre, angle and scale move at
    constant speed: ``shift`` (rows, columns) in pixels per frame, ``turn_deg`` per frame, ``zoom`` as a
    factor per frame; the path is centred on the picture's centre.
    """

    name: str
    picture: Array
    size: int
    length: int
    shift: tuple[float, float] = (0.0, 0.0)
    turn_deg: float = 0.0
    zoom: float = 1.0

    def frames(self) -> Iterator[Array]:
        """Render one frame at a time."""
        picture = torch.from_numpy(np.ascontiguousarray(self.picture))[None].double()
        height, width = picture.shape[-2:]
        axis = torch.arange(self.size, dtype=torch.float64) - (self.size - 1) / 2
        rows, columns = torch.meshgrid(axis, axis, indexing="ij")
        for t in range(self.length):
            s = t - (self.length - 1) / 2
            angle, scale = np.radians(self.turn_deg * s), self.zoom**s
            y = scale * (np.cos(angle) * rows - np.sin(angle) * columns) + self.shift[0] * s
            x = scale * (np.sin(angle) * rows + np.cos(angle) * columns) + self.shift[1] * s
            grid = torch.stack([x / ((width - 1) / 2), y / ((height - 1) / 2)], -1)[None]
            frame = F.grid_sample(picture, grid, mode="bilinear", padding_mode="reflection", align_corners=True)
            yield frame[0].float().numpy()

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the picture and the motion."""
        return fingerprint(self.picture, self.size, self.length, self.shift, self.turn_deg, self.zoom)


def camera_sequences(
    size: int = 64,
    length: int = 11,
    color: Color = "rgb",
    motions: tuple[str, ...] = MOTIONS,
    pictures: int | None = None,
) -> Sequences:
    """Camera motion over the photographs of scikit-learn and scikit-image (see `photographs`).

    One clip per photograph and motion: translation by (0.7, 1.9)·size/64 pixels a frame, rotation by 3° a
    frame, zoom by 3 % a frame.

    Args:
        size: Side of the frames in pixels.
        length: Frames per clip.
        color: ``"rgb"`` or ``"grey"``.
        motions: Which of translation, rotation, zoom.
        pictures: Use only this many photographs.
    """
    if size < 1 or length < 1:
        raise AssayError(f"size={size}, length={length}: both must be at least 1")
    unknown = set(motions) - set(MOTIONS)
    if unknown:
        raise AssayError(f"unknown motion {min(unknown)!r}; known: {', '.join(MOTIONS)}")
    clips: list[Clip] = []
    # Twice the window, so that its whole path lies inside the picture.
    for name, picture in list(photographs(2 * size, color))[:pictures]:
        if "translation" in motions:
            shift = (0.7 * size / 64, 1.9 * size / 64)
            clips.append(CameraClip(f"{name}-translation", picture, size, length, shift=shift))
        if "rotation" in motions:
            clips.append(CameraClip(f"{name}-rotation", picture, size, length, turn_deg=3.0))
        if "zoom" in motions:
            clips.append(CameraClip(f"{name}-zoom", picture, size, length, zoom=1.03))
    return Sequences(tuple(clips), f"camera motion over photographs, {size} px")
