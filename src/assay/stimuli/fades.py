"""Control clips that are straight lines in pixel space: one frame fades into another, or loses its contrast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from assay.core.fingerprint import fingerprint
from assay.stimuli.clips import Clip
from assay.stimuli.pictures import Array


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
