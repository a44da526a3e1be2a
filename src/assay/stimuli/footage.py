"""Footage to learn from: frames of videos and of folders of pictures, all of one size, as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.core.progress import report
from assay.stimuli.clips import FrameFolder
from assay.stimuli.sequences import load_sequences
from assay.stimuli.video import Video

Part = Literal["train", "val", "test"]

# The parts of KITTI's raw recordings in Lotter et al. 2017: all of these categories, but for a few drives.
KITTI_CATEGORIES = ("city", "residential", "road")
KITTI_CAMERA = "image_03"
_KITTI_HELD_OUT: dict[tuple[str, str], Part] = {
    ("city", "2011_09_26_drive_0005"): "val",
    ("city", "2011_09_26_drive_0104"): "test",
    ("residential", "2011_09_26_drive_0079"): "test",
    ("road", "2011_09_26_drive_0070"): "test",
}


def cover(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Scale a picture until it just covers a size (height, width), and cut out its centre, as RGB.

    A picture that is wider than the size keeps its whole height. Scaling is PIL's BILINEAR, as in the published
    preparation of KITTI.

    Example:
        >>> cover(Image.new("L", (1242, 375)), (128, 160)).size  # PIL gives width, height
        (160, 128)
    """
    height, width = size
    if picture.mode == "F":  # in [0, 1]
        values = np.asarray(picture, dtype=np.float32)
        picture = Image.fromarray((values.clip(0, 1) * 255 + 0.5).astype(np.uint8))
    picture = picture.convert("RGB")
    scale = max(height / picture.height, width / picture.width)
    scaled = max(round(scale * picture.width), width), max(round(scale * picture.height), height)
    if scaled != picture.size:
        picture = picture.resize(scaled, Image.Resampling.BILINEAR)
    left, top = (scaled[0] - width) // 2, (scaled[1] - height) // 2
    return picture.crop((left, top, left + width, top + height))


def load_footage(
    folder: str | Path,
    size: tuple[int, int] = (128, 160),
    *,
    names: Sequence[str] | None = None,
    start: int = 0,
    stop: int | None = None,
    step: int = 1,
) -> dict[str, Tensor]:
    """Load footage from a folder of videos and of sub-folders of pictures, or from one video file.

    Args:
        folder: The folder, or the video file; see `load_sequences`.
        size: Height and width of the frames, which are scaled and cut by `cover`.
        names: Load only the clips of these names.
        start: First frame of each clip to load.
        stop: Load frames up to, not including, this one.
        step: Load every step-th frame.

    Returns:
        The frames of each clip by its name, T×3×H×W uint8.

    Example:
        ```python
        footage = assay.stimuli.load_footage("videos", size=(64, 80))
        assay.training.train_next_frame(assay.PredNet(), footage.values())
        ```
    """
    _require_size(size)
    footage: dict[str, Tensor] = {}
    for clip in load_sequences(folder, names=names, start=start, stop=stop, step=step):
        if not isinstance(clip, Video | FrameFolder):
            raise AssayError(f"{folder} holds the array {clip.name!r}: footage is read from pictures and videos")
        footage[clip.name] = _gathered(clip.name, clip.pictures(), size)
    return footage


def load_kitti(root: str | Path, part: Part = "train", size: tuple[int, int] = (128, 160)) -> dict[str, Tensor]:
    """Load recordings of KITTI's raw data as Lotter et al. 2017 prepared them.

    Of the categories city, residential and road the left colour camera (image_03) is taken; the height is scaled to
    128, and the centre cut to a width of 160. ``val`` is the drive city 0005; ``test`` are city 0104, residential 0079
    and road 0070, all of 2011_09_26; ``train`` are all other drives.

    Args:
        root: The folder that holds ``city``, ``residential`` and ``road``, in them the unpacked archives of the drives:
            ``city/2011_09_26/2011_09_26_drive_0005_sync/image_03/data/0000000000.png``.
        part: ``"train"``, ``"val"`` or ``"test"``.
        size: Height and width of the frames.

    Returns:
        The frames of each drive by category and name (``city/2011_09_26_drive_0005``), T×3×H×W uint8.
    """
    if part not in get_args(Part):
        raise AssayError(f"unknown part={part!r} of KITTI{nearest(str(part), get_args(Part))}")
    _require_size(size)
    root = Path(root)
    footage: dict[str, Tensor] = {}
    for category, drive, folder in _kitti_drives(root):
        if _KITTI_HELD_OUT.get((category, drive), "train") == part:
            clips = load_sequences(folder).clips
            pictures = next((clip.pictures() for clip in clips if isinstance(clip, FrameFolder)), iter(()))
            footage[f"{category}/{drive}"] = _gathered(f"{category}/{drive}", pictures, size)
    if not footage:
        raise AssayError(
            f"{root} holds no drive of KITTI's part {part!r}: it should hold "
            f"city/2011_09_26/2011_09_26_drive_0005_sync/{KITTI_CAMERA}/data and its like"
        )
    return footage


def _kitti_drives(root: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the category, name and folder of frames of every drive, in order."""
    for category in KITTI_CATEGORIES:
        for folder in sorted((root / category).glob(f"**/*_drive_*/{KITTI_CAMERA}/data")):
            yield category, re.sub(r"_(sync|extract)$", "", folder.parents[1].name), folder


def _gathered(name: str, pictures: Iterator[Image.Image], size: tuple[int, int]) -> Tensor:
    frames = []
    for picture in pictures:
        frames.append(np.asarray(cover(picture, size)).transpose(2, 0, 1))
        report(f"reading {name}, in frames", len(frames))
    if not frames:
        raise AssayError(f"clip {name!r} has no frames")
    return torch.from_numpy(np.stack(frames))


def _require_size(size: tuple[int, int]) -> None:
    if len(tuple(size)) != 2 or any(not isinstance(side, int) or side < 1 for side in size):
        raise AssayError(f"size={size!r} is not a height and a width in pixels, such as (128, 160)")
