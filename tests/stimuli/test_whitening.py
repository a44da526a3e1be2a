from __future__ import annotations

import numpy as np
import pytest

from assay import AssayError
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


def test_patches_are_cut_from_the_pictures_given_and_centred():
    low, high = np.full((1, 20, 30), 0.25, np.float32), np.full((1, 9, 40), 0.75, np.float32)
    patches = natural_patches(10, 50, whitened=False, pictures=[low, high])  # the second is too small
    assert patches.shape == (50, 1, 10, 10) and (patches == 0.25).all()
    textured = np.random.default_rng(0).random((1, 40, 40), np.float32)
    plain, centred = (natural_patches(8, 20, pictures=[textured], centred=c) for c in (False, True))
    # Float32 sums of 64 pixels of the order of 1 are off by less than 1e-6.
    np.testing.assert_allclose(centred, plain - plain.mean((1, 2, 3), keepdims=True), atol=1e-6)
    assert np.abs(centred.mean((1, 2, 3))).max() < 1e-6 < np.abs(plain.mean((1, 2, 3))).max()
    for pictures, sentence in (([np.zeros((3, 20, 20))], "grey"), ([high], "larger than every photograph")):
        with pytest.raises(AssayError, match=sentence):
            natural_patches(10, 2, pictures=pictures)
