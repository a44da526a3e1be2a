"""The natural-video test: time is the transformation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np

from assay.core.errors import AssayError, shown
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_array, require_count
from assay.stimuli.clips import Clip
from assay.stimuli.datasets import as_sequences
from assay.stimuli.invariance_test import ClosedTest
from assay.stimuli.pictures import Array
from assay.stimuli.sequences import Sequences
from assay.stimuli.whitening import smooth_contrast, whiten


@dataclass(frozen=True, eq=False)
class NaturalVideo(ClosedTest):
    """Frames of natural sequences, each dominated by one transformation; T(z) is the frames around z in time.

    P(x) is the patches of all frames of the clips of one transformation: each transformation is a test of its own, with
    its own thresholds. T(z) is the frames up to ``reach`` before and after z at the same place (fewer at the ends of a
    clip).

    Stimuli are numbered clip by clip, in a clip frame by frame, in a frame place by place.

    Args:
        clips: Sequences by transformation, under any names: ``{"translation": …, "rotation_2d": …}``.
        reach: γ, how many frames before and after z belong to its trajectory.
        patch: Side of the patches in pixels, the receptive field of what is tested; None for whole frames.
        places: Number of patches per frame: 1 is the centre, which is where a turning camera has its centre of
            rotation; n² is a regular n×n grid.
        whitened: Whether every frame passes through `whiten` and `smooth_contrast`. Then pixels lie in [−1, 1]
            around 0; use False for a network trained on pictures in [0, 1].
        pooled: Whether P(x) is the patches of all clips instead, so that a unit has one threshold for all
            transformations, and only Z comes from the clips of each. The stimuli that drive a unit most may then all
            belong to one transformation, and Z of another lie barely above the threshold: see ``z_quantile`` in the
            table of `assay.Invariance`.

    Example:
        >>> from assay.stimuli import camera_sequences
        >>> moving = camera_sequences(32, length=20, color="grey", motions=("translation",), pictures=2)
        >>> video = NaturalVideo({"translation": moving}, patch=14, places=4)
        >>> len(video), next(video.batches(8)).shape
        (160, (8, 1, 14, 14))
        >>> video.trajectories("translation")[0].tolist()
        [0, 4, 8, 12, 16, 20, -1, -1, -1, -1, -1]

    Goodfellow et al. 2009, §6: 60 frames a second, at least 100 frames a clip, γ = −5 … 5.
    """

    clips: Mapping[str, Sequences]
    reach: int = 5
    patch: int | None = None
    places: int = 1
    whitened: bool = True
    pooled: bool = False

    name = "video"

    def __post_init__(self) -> None:
        if not isinstance(self.clips, Mapping):
            raise AssayError(
                f"clips={shown(self.clips)} is no mapping: give sequences by transformation, {{name: clips}}"
            )
        clips = {name: as_sequences(given, argument=f"clips[{name!r}]") for name, given in self.clips.items()}
        object.__setattr__(self, "clips", clips)
        if not self.clips:
            raise AssayError("clips is empty: give sequences for at least one transformation")
        if not isinstance(self.reach, Integral) or self.reach < 1:
            raise AssayError(f"reach={self.reach!r} frames must be a whole number from 1")
        if self.patch is not None and self.patch < 1:
            raise AssayError(f"patch={self.patch} pixels must be at least 1")
        if self.places < 1 or round(self.places**0.5) ** 2 != self.places:
            raise AssayError(f"places={self.places} is not a square number: 1, 4, 9, …")
        require_count(f"places={self.places} patches of a frame", self.places)
        if self.places > 1 and self.patch is None:
            raise AssayError(f"places={self.places} needs the side of a patch")

    @property
    def transformations(self) -> tuple[str, ...]:
        """Names of the transformations that there are clips of."""
        return tuple(self.clips)

    def parts(self) -> tuple[NaturalVideo, ...]:
        """Return the test of each transformation by itself; the whole where they are pooled."""
        if self.pooled or len(self.clips) == 1:
            return (self,)
        return tuple(replace(self, clips={name: clips}) for name, clips in self.clips.items())

    @property
    def _all(self) -> list[tuple[str, Clip]]:
        return [(transformation, clip) for transformation, sequences in self.clips.items() for clip in sequences]

    @cached_property
    def _lengths(self) -> list[int]:
        lengths = []
        for _, clip in self._all:
            lengths.append(clip.count())
            if lengths[-1] < 2:
                raise AssayError(f"clip {clip.name!r} has {lengths[-1]} frames: the video test needs at least 2")
        return lengths

    def __len__(self) -> int:
        return sum(self._lengths) * self.places

    @property
    def description(self) -> str:
        """Number of stimuli, the clips they come from and how they are cut out, in a line."""
        parts = ", ".join(f"{len(sequences)} clips of {name}" for name, sequences in self.clips.items())
        cut = "whole frames" if self.patch is None else f"{self.places} patches of {self.patch}×{self.patch} a frame"
        how = f"{', whitened' if self.whitened else ''}{', pooled' if self.pooled else ''}"
        return f"{len(self)} stimuli from {parts}; {cut}{how}; ±{self.reach} frames"

    @property
    def fingerprint(self) -> str:
        """Hash of the clips, of their classes and of the settings."""
        clips = list(self.clips.items())
        return fingerprint("natural video", clips, self.reach, self.patch, self.places, self.whitened, self.pooled)

    def batches(self, size: int) -> Iterator[Array]:
        """Yield all patches in order; a batch ends early where the shape changes."""
        batch: list[Array] = []
        for _, clip in self._all:
            frames = clip.checked_frames()
            if self.whitened:
                frames = smooth_contrast(whiten(frame) for frame in frames)
            for frame in frames:
                for patch in self._patches(frame, clip.name):
                    if batch and (len(batch) == size or patch.shape != batch[0].shape):
                        yield np.stack(batch)
                        batch = []
                    batch.append(patch)
        if batch:
            yield np.stack(batch)

    def blocks(self, transformation: str) -> Array:
        """Return the number of the scene of each stimulus: frames of one clip resemble each other, and its clips do.

        A clip that names no scene is a scene of its own.
        """
        self._require_known(transformation)
        scenes: dict[str | int, int] = {}
        numbers = [scenes.setdefault(clip.scene or i, len(scenes)) for i, (_, clip) in enumerate(self._all)]
        return np.repeat(numbers, np.array(self._lengths) * self.places)

    def trajectories(self, transformation: str) -> Array:
        """Return, for each stimulus, the frames within reach in the same clip, at the same place."""
        self._require_known(transformation)
        return self._neighbours

    @cached_property
    def _neighbours(self) -> Array:
        reach, places = self.reach, self.places
        require_array(f"the trajectories of {len(self)} stimuli with reach={reach}", (len(self), 2 * reach + 1), 8)
        rows = np.full((len(self), 2 * reach + 1), -1)
        first = 0
        for length in self._lengths:
            for t in range(length):
                near = np.arange(max(t - reach, 0), min(t + reach + 1, length))
                for place in range(places):
                    rows[first + t * places + place, : len(near)] = first + near * places + place
            first += length * places
        return rows

    def magnitudes(self, transformation: str) -> Array:
        """Return the number of frames from before to after z."""
        self._require_known(transformation)
        return np.arange(-self.reach, self.reach + 1)

    def magnitude_of(self, transformation: str) -> Array:
        """Return, for each stimulus and each on its trajectory, how many frames later it is, counted from 0."""
        rows = self.trajectories(transformation)
        later = (rows - np.arange(len(rows))[:, None]) // self.places + self.reach
        return np.where(rows < 0, -1, later)

    def among(self, transformation: str) -> Array:
        """Return the numbers of the patches that come from clips of a transformation."""
        self._require_known(transformation)
        owner = np.repeat([name for name, _ in self._all], np.array(self._lengths) * self.places)
        return np.flatnonzero(owner == transformation)

    def _require_known(self, transformation: str) -> None:
        if transformation not in self.clips:
            raise AssayError(f"this video test has {', '.join(self.clips)}, not {transformation!r}")

    def _patches(self, frame: Array, clip: str) -> Iterator[Array]:
        if self.patch is None:
            yield frame
            return
        side, (height, width) = self.patch, frame.shape[-2:]
        if min(height, width) < side:
            raise AssayError(f"clip {clip!r}: frames of {height}×{width} are smaller than patch={side}")
        n = round(self.places**0.5)
        for i in range(n):
            for j in range(n):
                top, left = (round((k + 1) / (n + 1) * whole - side / 2) for k, whole in ((i, height), (j, width)))
                top, left = min(max(top, 0), height - side), min(max(left, 0), width - side)
                yield frame[:, top : top + side, left : left + side]
