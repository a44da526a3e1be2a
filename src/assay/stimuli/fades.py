"""Control clips that are straight lines in pixel space: one frame fades into another, or loses its contrast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from assay.core.fingerprint import fingerprint
from assay.core.progress import report
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
        """The name of the clip that the fade is made of."""
        return self.clip.name

    @property
    def scene(self) -> str:  # type: ignore[override]
        """The scene of the clip that the fade is made of."""
        return self.clip.scene

    def frames(self) -> Iterator[Array]:
        """Yield as many frames as the clip has."""
        first, last, count = _ends(self.clip)
        for w in np.linspace(0, 1, count, dtype=np.float64):
            yield ((1 - w) * first + w * last).astype(np.float32)

    @property
    def fingerprint(self) -> str:
        """Hash of the clip that the fade is made of, and of its class."""
        return fingerprint("pixel_fade", self.clip)


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
        """The name of the clip that the fade is made of."""
        return self.clip.name

    @property
    def scene(self) -> str:  # type: ignore[override]
        """The scene of the clip that the fade is made of."""
        return self.clip.scene

    def frames(self) -> Iterator[Array]:
        """Yield as many frames as the clip has."""
        first, _, count = _ends(self.clip)
        mean = first.mean(dtype=np.float64)
        for c in np.linspace(1, self.low, count, dtype=np.float64):
            yield (mean + c * (first - mean)).astype(np.float32)

    @property
    def fingerprint(self) -> str:
        """Hash of the lowest contrast, and of the clip that the fade is made of and its class."""
        return fingerprint("contrast_fade", self.low, self.clip)


def _ends(clip: Clip) -> tuple[Array, Array, int]:
    """Return the first frame, the last frame and the number of frames of a clip."""
    frames = clip.checked_frames()
    first = last = next(frames)
    count = 1
    for frame in frames:
        last = frame
        count += 1
        if count % 1000 == 0:
            report(f"{clip.name}: frames looked through", count)
    return first, last, count
