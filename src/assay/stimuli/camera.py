"""Camera motion over still pictures: sequences whose every parameter is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.nn import functional as F

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.limits import OBJECTS, require_array, require_count
from assay.stimuli.clips import Clip
from assay.stimuli.pictures import Array, Color, photographs
from assay.stimuli.sequences import Sequences

MOTIONS = ("translation", "rotation", "zoom")
_FRAMES_AT_ONCE = 32  # rendered together, unless they are large
_PIXELS_AT_ONCE = 2**21
_NUMBERS = 32  # of 8 bytes, for each pixel that is rendered


@dataclass(frozen=True, eq=False, repr=False)
class CameraClip(Clip):
    """A window that slides, turns or zooms over a picture, sampled bilinearly.

    Frame t of T shows the picture through a window of ``size`` pixels whose centre, angle and scale move at
    constant speed: ``shift`` (rows, columns) in pixels per frame, ``turn_deg`` per frame, ``zoom`` as a
    factor per frame; in the middle of the clip the window is at ``centre`` (rows, columns from the picture's centre).
    """

    name: str
    picture: Array
    size: int
    length: int
    shift: tuple[float, float] = (0.0, 0.0)
    turn_deg: float = 0.0
    zoom: float = 1.0
    centre: tuple[float, float] = (0.0, 0.0)
    scene: str = ""

    def frames(self) -> Iterator[Array]:
        """Render the frames in order, a few at a time."""
        picture = torch.from_numpy(np.ascontiguousarray(self.picture))[None].double()
        height, width = picture.shape[-2:]
        axis = torch.arange(self.size, dtype=torch.float64) - (self.size - 1) / 2
        rows, columns = torch.meshgrid(axis, axis, indexing="ij")
        times = torch.arange(self.length, dtype=torch.float64) - (self.length - 1) / 2
        for t in torch.split(times[:, None, None], frames_at_once(self.size)):
            angle, scale = torch.deg2rad(self.turn_deg * t), self.zoom**t
            y = scale * (angle.cos() * rows - angle.sin() * columns) + self.shift[0] * t + self.centre[0]
            x = scale * (angle.sin() * rows + angle.cos() * columns) + self.shift[1] * t + self.centre[1]
            grid = torch.stack([x / ((width - 1) / 2), y / ((height - 1) / 2)], -1)
            copies = picture.expand(len(t), -1, -1, -1)
            frames = F.grid_sample(copies, grid, mode="bilinear", padding_mode="reflection", align_corners=True)
            yield from frames.float().numpy()

    def count(self) -> int:
        """Return the number of frames the clip was made with."""
        return self.length

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the picture and of the camera's motion."""
        motion = (self.shift, self.turn_deg, self.zoom, self.centre)
        return fingerprint(self.picture, self.size, self.length, motion)


def frames_at_once(size: int) -> int:
    """How many frames of this side are rendered together."""
    return max(1, min(_FRAMES_AT_ONCE, _PIXELS_AT_ONCE // size**2))


def require_rendered(size: int, length: int, clips: int) -> None:
    """Refuse clips that are too large, too long or too many to be rendered."""
    if min(size, length, clips) < 1:
        raise AssayError(f"size={size}, length={length}, {clips} clips: all must be at least 1")
    require_array(f"rendering frames of size={size}", (_NUMBERS, size, size), 8)
    require_count(f"length={length} frames of a clip", length)
    require_count(f"{clips} clips", clips, OBJECTS)


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
        motions: Which motions to show, of translation, rotation and zoom.
        pictures: Use only this many photographs.
    """
    if size < 1 or length < 1:
        raise AssayError(f"size={size}, length={length}: both must be at least 1")
    require_rendered(size, length, 1)
    unknown = set(motions) - set(MOTIONS)
    if unknown:
        raise AssayError(f"unknown motion {min(unknown)!r}; known: {', '.join(MOTIONS)}")
    clips: list[Clip] = []
    # Twice the window, so that its whole path lies inside the picture.
    for name, picture in list(photographs(2 * size, color))[:pictures]:
        if "translation" in motions:
            shift = (0.7 * size / 64, 1.9 * size / 64)
            clips.append(CameraClip(f"{name}-translation", picture, size, length, shift=shift, scene=name))
        if "rotation" in motions:
            clips.append(CameraClip(f"{name}-rotation", picture, size, length, turn_deg=3.0, scene=name))
        if "zoom" in motions:
            clips.append(CameraClip(f"{name}-zoom", picture, size, length, zoom=1.03, scene=name))
    return Sequences(tuple(clips), f"camera motion over photographs, {size} px")


def camera_video(
    size: int = 32,
    length: int = 100,
    color: Color = "grey",
    clips: int = 3,
    speed: float = 1.0,
    turn_deg: float = 2.0,
    pictures: int | None = None,
    seed: int = 0,
) -> dict[str, Sequences]:
    """Camera motion for the video test: clips of pure ``translation`` and clips of pure ``rotation_2d``.

    The camera passes over the photographs (see `photographs`) at their own resolution: in a random direction at
    ``speed`` pixels a frame, or turning by ``turn_deg`` a frame around the centre of the window, at a random place.

    Args:
        size: Side of the frames in pixels.
        length: Frames per clip.
        color: ``"rgb"`` or ``"grey"``.
        clips: Clips per photograph and motion.
        speed: How fast the camera translates, in pixels per frame.
        turn_deg: How fast the camera turns, in degrees per frame.
        pictures: Use only this many photographs.
        seed: Seed of the random directions and places.
    """
    if min(size, length, clips) < 1:
        raise AssayError(f"size={size}, length={length}, clips={clips}: all must be at least 1")
    require_rendered(size, length, clips)
    rng = np.random.default_rng(seed)
    clips_by_motion: dict[str, list[Clip]] = {"translation": [], "rotation_2d": []}
    for name, picture in list(photographs(None, color))[:pictures]:
        for i in range(clips):
            for motion, same_motion in clips_by_motion.items():
                angle = rng.uniform(0, 2 * np.pi)
                shift = (speed * np.sin(angle), speed * np.cos(angle)) if motion == "translation" else (0.0, 0.0)
                turn = 0.0 if motion == "translation" else float(turn_deg * rng.choice((-1, 1)))
                # The window's whole path lies inside the picture, where it fits.
                room = [
                    max(side / 2 - size * 0.75 - abs(step) * length / 2, 0)
                    for side, step in zip(picture.shape[-2:], shift, strict=True)
                ]
                centre = (float(rng.uniform(-room[0], room[0])), float(rng.uniform(-room[1], room[1])))
                clip = CameraClip(f"{name}-{i}", picture, size, length, shift, turn, centre=centre, scene=name)
                same_motion.append(clip)
    return {
        motion: Sequences(tuple(same_motion), f"camera {motion}, {size} px")
        for motion, same_motion in clips_by_motion.items()
    }
