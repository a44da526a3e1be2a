"""Local contrast normalisation: what it must not depend on, and the obvious computation with a 3-D window."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.broad.systems.features.contrast import local_contrast
from assay.core.errors import AssayError


def noise(seed, shape=(9, 12, 14)):
    return torch.from_numpy(np.random.default_rng(seed).random(shape))


def obvious(clip, sigma, tau, c=None):
    """The window in three dimensions at once, its weights inside the clip divided by their sum."""
    x = np.asarray(clip, dtype=np.float64)
    x = (x - x.mean()) / x.std()
    time, space = math.ceil(3 * tau), math.ceil(3 * sigma)

    def smooth(values):
        found = np.zeros_like(values)
        for place in np.ndindex(values.shape):
            total = weights = 0.0
            near = [
                range(max(p - r, 0), min(p + r + 1, n))
                for p, r, n in zip(place, (time, space, space), values.shape, strict=True)
            ]
            for other in itertools.product(*near):
                dt, dy, dx = (a - b for a, b in zip(place, other, strict=True))
                weight = math.exp(-0.5 * ((dt / tau) ** 2 + (dy / sigma) ** 2 + (dx / sigma) ** 2))
                total, weights = total + weight * values[other], weights + weight
            found[place] = total / weights
        return found

    v = x - smooth(x)
    local = np.sqrt(smooth(v**2))
    return v / np.maximum(local.mean() if c is None else c, local)


@pytest.mark.parametrize("c", [None, 0.5])
@pytest.mark.requirement("B4")
def test_equals_the_obvious_computation(c):
    clip = noise(0, (4, 6, 7))
    expected = obvious(clip, 0.8, 0.6, c)
    np.testing.assert_allclose(local_contrast(clip, 0.8, 0.6, c), expected, atol=1e-10)
    # In float32 values of size 1 carry 1e-7 each; a dozen operations.
    np.testing.assert_allclose(local_contrast(clip.float(), 0.8, 0.6, c), expected, atol=1e-5)


@pytest.mark.parametrize("level", [0.0, 0.1, 0.7, 1.0])
def test_a_constant_clip_becomes_zero(level):
    assert not local_contrast(torch.full((5, 8, 9), level)).any()


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 999), st.floats(0.01, 100), st.floats(-10, 10))
def test_gain_and_offset_do_not_matter(seed, gain, offset):
    clip = noise(seed)
    # 10 + 0.01·x keeps 13 of 16 digits of x.
    torch.testing.assert_close(local_contrast(gain * clip + offset), local_contrast(clip), atol=1e-9, rtol=0)


def test_the_local_mean_inside_is_about_zero():
    """v = x − w∗x has local mean w∗x − w∗w∗x, small where x has only fine structure; y then divides evenly."""
    y = local_contrast(noise(1, (30, 40, 40)))
    means = y[6:-6, 6:-6, 6:-6].unfold(0, 7, 3).unfold(1, 7, 3).unfold(2, 7, 3).mean((3, 4, 5))
    # Means over 343 values of spread about 1 that are nearly independent: 0.05 each, and no bias.
    assert means.abs().max() < 0.2 and abs(float(means.mean())) < 0.01


def test_shape_and_type_are_kept():
    for shape in ((1, 1, 5), (2, 30, 7), (9, 12, 14)):
        assert local_contrast(noise(0, shape).float()).shape == shape
    assert local_contrast(noise(0).float()).dtype == torch.float32


def test_c_is_the_mean_local_deviation_and_limits_the_gain():
    """Where a clip is nearly flat, it stays nearly flat."""
    clip = noise(0, (9, 20, 40))
    clip[:, :, :20] = 0.5 + 1e-6 * clip[:, :, :20]
    assert local_contrast(clip)[:, :, :12].abs().max() < 1e-4
    assert local_contrast(clip, c=1e-9)[:, :, :12].abs().max() > 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: local_contrast(torch.zeros(3, 4)), "T×H×W"),
        (lambda: local_contrast(torch.zeros(3, 4, 5, dtype=torch.uint8)), "uint8"),
        (lambda: local_contrast(torch.full((3, 4, 5), math.nan)), "NaN"),
        (lambda: local_contrast(noise(0), sigma=0), "sigma=0 pixels"),
        (lambda: local_contrast(noise(0), c=0), "c=0 must be positive"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
