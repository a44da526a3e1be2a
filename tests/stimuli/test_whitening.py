from __future__ import annotations

import numpy as np
import pytest

from assay.stimuli import natural_patches, smooth_contrast, whiten


def test_whitening_multiplies_every_frequency_by_the_filter():
    # A cosine that fits the mirrored border is an eigenfunction: R(f) = f·exp(−(f/0.4)⁴).
    for u, v in ((3, 0), (0, 5), (6, 7)):
        y, x = np.meshgrid(np.arange(16) + 0.5, np.arange(24) + 0.5, indexing="ij")
        wave = np.cos(np.pi * u * y / 16) * np.cos(np.pi * v * x / 24)
        f = np.hypot(u / 32, v / 48)
        np.testing.assert_allclose(whiten(wave), f * np.exp(-((f / 0.4) ** 4)) * wave, atol=1e-6)


def test_whitening_flattens_the_spectrum_of_a_photograph():
    raw, white = (natural_patches(64, 40, whitened=w)[:, 0] for w in (False, True))
    low, high = slice(2, 4), slice(14, 18)

    def power(x, band):
        return (np.abs(np.fft.fft2(x - x.mean((1, 2), keepdims=True))) ** 2).mean(0)[0, band].mean()

    assert power(raw, low) / power(raw, high) > 10
    assert power(white, low) / power(white, high) < 4


def test_contrast_is_scaled_by_a_constant_that_varies_smoothly():
    rng = np.random.default_rng(0)
    frames = [rng.normal(size=(1, 8, 8)) * (1 if t < 50 else 20) for t in range(100)]
    scaled = np.stack(list(smooth_contrast(frames, sigma=5)))
    factor = np.array([np.median(s / f) for s, f in zip(scaled, frames, strict=True)])
    assert len(scaled) == 100 and np.abs(scaled).max() <= 1
    assert np.abs(np.diff(np.log(factor))).max() < 0.8  # no jump, though the contrast jumps by log 20 = 3.0
    for t in (5, 95):
        assert np.sqrt((scaled[t] ** 2).mean()) == pytest.approx(1 / 3, rel=0.15)
    assert not np.stack(list(smooth_contrast([np.zeros((1, 4, 4))] * 3))).any()
