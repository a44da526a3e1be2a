"""How Gabor-like a filter is: the share of its variance that the best Gabor function explains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report

Array = np.ndarray[Any, Any]


def gabor(size: int, x0: float, y0: float, theta: float, frequency: float, phase: float, sx: float, sy: float) -> Array:
    """A Gabor function of size × size pixels: a wave under a Gaussian envelope around (x0, y0).

    exp(−u²/2s_x² − v²/2s_y²)·cos(2π·frequency·u + phase), with u = x cos θ + y sin θ along the wave and v across it.
    Positions are in pixels from the centre, the frequency in cycles per pixel.
    """
    axis = np.arange(size) - (size - 1) / 2
    y, x = np.meshgrid(axis - y0, axis - x0, indexing="ij")
    u, v = x * np.cos(theta) + y * np.sin(theta), -x * np.sin(theta) + y * np.cos(theta)
    wave = np.cos(2 * np.pi * frequency * u + phase)
    return np.asarray(np.exp(-0.5 * ((u / sx) ** 2 + (v / sy) ** 2)) * wave)


def fit_gabor(filters: Tensor | Array) -> pd.DataFrame:
    """Fit a Gabor function to each filter by least squares.

    The filter less its mean is approached by α·(gabor less its mean), α the best amplitude. The fit starts from the
    peaks of the filter's spectrum and of its local energy. ``r2`` = 1 − ‖filter − fit‖²/‖filter − mean‖²: 1 for a
    Gabor function, near 0 for noise (nine parameters explain a little of any filter).

    Args:
        filters: The filters, units × side × side.

    Returns:
        One row per filter: ``r2``, ``frequency`` (cycles per pixel), ``theta_deg``, ``phase_deg``, ``x0``, ``y0``,
        ``sx``, ``sy``; the amplitude, which may be negative, is left out. NaN for a constant filter.

    Example:
        >>> made = gabor(14, 1.0, -2.0, 0.6, 0.15, 0.3, 2.5, 3.0)
        >>> fit = fit_gabor(made[None]).iloc[0]
        >>> round(fit.r2, 6), round(fit.frequency, 6), round(fit.theta_deg, 3)
        (np.float64(1.0), np.float64(0.15), np.float64(34.377))
    """
    values = np.asarray(filters.detach().cpu() if isinstance(filters, Tensor) else filters, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] != values.shape[2]:
        raise AssayError(f"filters are units × side × side, not {values.shape}")
    rows = []
    for i, image in enumerate(values):
        rows.append(_fit(image - image.mean()))
        report("fitting Gabor functions", i + 1, len(values))
    return pd.DataFrame(rows)


def _fit(image: Array) -> dict[str, float]:
    size, power = len(image), float((image**2).sum())
    names = ("x0", "y0", "theta", "frequency", "phase", "sx", "sy")
    best = (np.nan, dict.fromkeys(names, np.nan))
    if power > 0:
        image = image / np.sqrt(power)

        def residual(p: Array) -> Array:
            wave = gabor(size, *p)
            wave = wave - wave.mean()
            norm = float((wave**2).sum())
            return np.asarray((image - (float((image * wave).sum()) / norm if norm else 0.0) * wave).ravel())

        half = size / 2
        low = (-half, -half, -np.inf, 0.01, -np.inf, 0.5, 0.5)
        high = (half, half, np.inf, 0.5, np.inf, size, size)
        for start in _starts(image):
            fit = scipy.optimize.least_squares(residual, start, bounds=(low, high), max_nfev=200)
            r2 = 1 - 2 * fit.cost
            if not r2 <= best[0]:
                best = (r2, dict(zip(names, map(float, fit.x), strict=True)))
    r2, p = best
    turned = np.degrees(p["theta"]) % 360 >= 180  # the same wave seen from its other end: θ − 180°, −phase
    phase = -p["phase"] if turned else p["phase"]
    return {
        "r2": float(r2),
        "frequency": p["frequency"],
        "theta_deg": float(np.degrees(p["theta"]) % 180),
        "phase_deg": float(np.degrees(phase) % 360),
        **{name: p[name] for name in ("x0", "y0", "sx", "sy")},
    }


def _starts(image: Array) -> list[Array]:
    """Parameters from which the fit starts: the centre of energy, the strongest wave, two phases and two widths.

    Two phases are enough, since the amplitude may be negative.
    """
    size = len(image)
    axis = np.arange(size) - (size - 1) / 2
    energy = image**2
    y0, x0 = (float((energy.sum(axis=1 - a) * axis).sum() / energy.sum()) for a in (0, 1))
    padded = 4 * size
    spectrum = np.abs(np.fft.fft2(image, (padded, padded)))
    fy, fx = np.meshgrid(np.fft.fftfreq(padded), np.fft.fftfreq(padded), indexing="ij")
    spectrum[(fx < 0) | (np.hypot(fx, fy) > 0.5) | (np.hypot(fx, fy) < 0.02)] = 0
    at = np.unravel_index(spectrum.argmax(), spectrum.shape)
    frequency, theta = float(np.hypot(fx[at], fy[at])), float(np.arctan2(fy[at], fx[at]))
    return [
        np.array([x0, y0, theta, np.clip(frequency, 0.02, 0.49), phase, width, width])
        for phase in (0.0, np.pi / 2)
        for width in (size / 8, size / 4)
    ]
