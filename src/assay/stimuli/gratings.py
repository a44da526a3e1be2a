"""Sinusoidal gratings over a grid of frequency, orientation and phase."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_array, require_count
from assay.stimuli.invariance_test import ClosedTest
from assay.stimuli.pictures import Array

UNIT = 32  # pixels: the length that frequencies are counted on
AXES = ("frequency", "orientation", "phase")
_AT_ONCE = 32  # pictures in a batch, usually


@dataclass(frozen=True)
class Gratings(ClosedTest):
    """All gratings I(x, y) = b + a·sin(ω(x cos θ + y sin θ) − φ) of a grid; x, y in pixels from the centre.

    Stimulus number ((f·O) + o)·P + p has the f-th frequency, o-th orientation and p-th phase.

    Args:
        size: Side of the picture in pixels.
        frequencies: Cycles per 32 pixels, so that a value means the same grating in a picture of any size.
        orientations: Number of orientations, spread evenly over [0, π).
        phases: Number of phases, spread evenly over [0, 2π).
        amplitude: a, half of the difference between the brightest and the darkest value.
        mean: b, the value around which a grating varies.
        channels: Number of colour channels; all show the same grating.

    Example:
        >>> gratings = Gratings(size=14)
        >>> len(gratings), next(gratings.batches(5)).shape
        (5600, (5, 1, 14, 14))
        >>> gratings.trajectories("phase")[0][:3]
        array([0, 1, 2])

    Goodfellow et al. 2009, §5: frequencies between 2 and 8 (no unit is given; here wavelengths of 16 to 4 pixels),
    orientation and phase in steps of π/20. With 2, 4, 6, 8 alone, one frequency and orientation would hold 1/80 of all
    gratings, and a unit that fires at all phases of it but on only 1 % of the gratings could not score above 80;
    frequencies × orientations must be at least 1/G for a phase-invariant unit to reach 1/G.
    """

    size: int
    frequencies: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    orientations: int = 20
    phases: int = 40
    amplitude: float = 0.5
    mean: float = 0.5
    channels: int = 1

    name = "gratings"
    sampled = False

    def __post_init__(self) -> None:
        counts = (self.size, self.orientations, self.phases, self.channels)
        if not all(isinstance(count, Integral) for count in counts):
            raise AssayError(
                f"gratings of size={self.size}, orientations={self.orientations}, phases={self.phases}, "
                f"channels={self.channels}: all must be whole numbers"
            )
        if not (math.isfinite(self.amplitude) and math.isfinite(self.mean)):
            raise AssayError(f"gratings of amplitude={self.amplitude} around mean={self.mean}: both must be finite")
        if not isinstance(self.frequencies, Collection) or not all(isinstance(f, Real) for f in self.frequencies):
            raise AssayError(
                f"frequencies={self.frequencies!r} must be numbers, one after the other, such as (2, 4, 8)"
            )
        if len(set(self.frequencies)) < len(self.frequencies):
            raise AssayError(f"frequencies={self.frequencies} name one twice")
        if self.size < 2 or self.orientations < 1 or self.phases < 1 or self.channels < 1 or not self.frequencies:
            raise AssayError(
                f"gratings of size={self.size}, frequencies={self.frequencies}, orientations={self.orientations}, "
                f"phases={self.phases}, channels={self.channels}: all must be positive"
            )
        if not 0 < min(self.frequencies) <= max(self.frequencies) <= UNIT / 2:
            raise AssayError(
                f"frequencies={self.frequencies} are cycles per {UNIT} pixels: above 0 and at most {UNIT // 2}"
            )
        require_count(f"{len(self)} gratings, orientations={self.orientations} × phases={self.phases}, that", len(self))
        require_array(f"the trajectories of {len(self)} gratings", (len(self), max(self.shape)), 8)
        pictures = f"gratings of size={self.size}, channels={self.channels}, {_AT_ONCE} at a time,"
        require_array(pictures, (_AT_ONCE, self.channels + 4, self.size, self.size))

    @property
    def transformations(self) -> tuple[str, ...]:
        """Those of frequency, orientation and phase that take more than one value."""
        return tuple(axis for axis, count in zip(AXES, self.shape, strict=True) if count > 1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of frequencies, of orientations and of phases."""
        return len(self.frequencies), self.orientations, self.phases

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def description(self) -> str:
        """Number and size of the gratings and the grid they form, in a line."""
        cycles = ", ".join(f"{f:g}" for f in self.frequencies)
        grid = f"{cycles} cycles per {UNIT} pixels × {self.orientations} orientations × {self.phases} phases"
        return f"{len(self)} gratings of {self.channels}×{self.size}×{self.size}: {grid}"

    @property
    def fingerprint(self) -> str:
        """Hash of the settings of the grid."""
        settings = (self.size, self.frequencies, self.orientations, self.phases)
        return fingerprint("gratings", settings, self.amplitude, self.mean, self.channels)

    def batches(self, size: int) -> Iterator[Array]:
        """Yield the gratings in order, ``size`` at a time, N×C×H×W float32."""
        axis = np.arange(self.size) - (self.size - 1) / 2
        y, x = np.meshgrid(axis, axis, indexing="ij")
        angles = np.arange(self.orientations) * math.pi / self.orientations
        phases = np.arange(self.phases) * 2 * math.pi / self.phases
        for start in range(0, len(self), size):
            index = np.unravel_index(np.arange(start, min(start + size, len(self))), self.shape)
            frequency, angle, phase = (
                np.asarray(values)[i][:, None, None]
                for values, i in zip((self.frequencies, angles, phases), index, strict=True)
            )
            along = x * np.cos(angle) + y * np.sin(angle)
            wave = self.mean + self.amplitude * np.sin(2 * math.pi * frequency / UNIT * along - phase)
            yield np.repeat(wave[:, None].astype(np.float32), self.channels, axis=1)

    def trajectories(self, axis: str) -> Array:
        """Return, for each grating, the gratings that differ from it only in phase, orientation or frequency.

        An orientation is turned by less than a quarter to either side, or by a quarter. Past 0 or π a grating is one of
        the grid again, but with phase π − φ: sin(ω(x cos(θ + π) + y sin(θ + π)) − φ) = sin(ω(x cos θ + y sin θ) − (π −
        φ)). Where ``phases`` is odd the grid lacks that phase, and the trajectory ends there (−1).
        """
        position = self._position(axis)
        along = np.indices(self.shape).reshape(3, -1, 1)
        index = np.broadcast_to(along, (3, len(self), self.shape[position])).copy()
        index[position] = np.arange(self.shape[position])
        if axis != "orientation":
            return np.asarray(np.ravel_multi_index(tuple(index), self.shape))
        turned = along[1] + self.magnitude_of(axis) - (self.orientations - 1) // 2  # not yet brought back to [0, π)
        beyond = turned != index[1]
        index[2] = np.where(beyond, self._reversed(index[2]), index[2])
        numbers = np.ravel_multi_index(tuple(index), self.shape)
        return np.where(beyond & bool(self.phases % 2), -1, numbers)

    def blocks(self, axis: str) -> Array:
        """Return the number of the circle or line that each grating is on: those whose trajectories meet share it."""
        frequency, orientation, phase = np.indices(self.shape).reshape(3, -1)
        if axis == "orientation" and self.phases % 2 == 0:
            phase = np.minimum(phase, self._reversed(phase))
        kept = [index for name, index in zip(AXES, (frequency, orientation, phase), strict=True) if name != axis]
        return np.unique(np.stack(kept), axis=1, return_inverse=True)[1].reshape(-1)

    def _reversed(self, phase: Array) -> Array:
        """The number of the phase π − φ for the number of each phase φ."""
        return (self.phases // 2 - phase) % self.phases

    def magnitudes(self, axis: str) -> Array:
        """Return the differences in cycles per 32 pixels or in degrees; those of angles lie within half a turn."""
        if self._position(axis) == 0:
            values = np.array(self.frequencies)
            return np.unique((values - values[:, None]).round(9))
        count, turn = (self.orientations, 180.0) if axis == "orientation" else (self.phases, 360.0)
        return (np.arange(count) - (count - 1) // 2) * turn / count

    def magnitude_of(self, axis: str) -> Array:
        """Return, for each grating and each on its trajectory, the number of their difference among the magnitudes."""
        position = self._position(axis)
        own = np.indices(self.shape)[position].reshape(-1, 1)
        other = np.arange(self.shape[position])
        if position == 0:
            values = np.array(self.frequencies)
            return np.asarray(np.searchsorted(self.magnitudes(axis), (values[other] - values[own]).round(9)))
        count = self.shape[position]
        return np.asarray((other - own + (count - 1) // 2) % count)

    def _position(self, axis: str) -> int:
        if axis not in AXES:
            raise AssayError(f"gratings vary in {', '.join(AXES)}, not in {axis!r}")
        return AXES.index(axis)
