"""The filters of models of early vision against their formulas, written out plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from assay import AssayError
from assay.networks import SteerablePyramid
from assay.networks.front_ends.filters import CentreSurround, GaborBank, blur, central_half, gabor, gaussian


def test_a_gaussian_is_a_density_of_unit_integral_and_is_cut_off_without_scaling():
    assert gaussian(2.0, 41).sum().item() == pytest.approx(1, abs=1e-12)  # the sum misses the integral by e^(−2π²σ²)
    assert gaussian(13.0766742, 31).sum().item() ** 2 == pytest.approx(0.5840, abs=5e-5)


def test_blur_is_the_two_dimensional_filter():
    profile, x = gaussian(1.3, 5), torch.rand(1, 1, 9, 9, dtype=torch.float64)
    torch.testing.assert_close(blur(x, profile), F.conv2d(x, torch.outer(profile, profile)[None, None]))


def test_centre_surround_answers_a_point_with_its_kernel():
    """A point of light, filtered without padding, gives the kernel of unit sum back."""
    point = torch.zeros(1, 1, 61, 61)
    point[0, 0, 30, 30] = 1
    centre, surround = (torch.outer(g, g) for g in (gaussian(0.85810719, 31), gaussian(6.95494106, 31)))
    kernel = 1.25 * centre - surround
    kernel = (kernel / kernel.sum()).float()
    response = CentreSurround()(point)[0, 0]
    torch.testing.assert_close(response, kernel, rtol=1e-5, atol=1e-7)
    assert response.sum().item() == pytest.approx(1, abs=1e-5)  # float32


def test_gabor_filters_are_the_formula_pixel_by_pixel():
    f, theta, phi, sx, sy = 0.11, 33.0, 200.0, 2.5, 4.0
    made = gabor([f], [theta], [phi], [sx], [sy], 9)[0]
    for i in range(9):
        for j in range(9):
            row, column, turn = i - 4, j - 4, math.radians(theta)
            x = row * math.cos(turn) + column * math.sin(turn)
            y = -row * math.sin(turn) + column * math.cos(turn)
            envelope = math.exp(-((x / sx) ** 2 + (y / sy) ** 2) / 2) / (2 * math.pi * sx * sy)
            expected = envelope * math.cos(2 * math.pi * f * x + math.radians(phi))
            assert made[i, j].item() == pytest.approx(expected, abs=1e-15)


def test_a_quarter_turn_of_a_gabor_is_its_transpose():
    upright, turned = gabor([0.1, 0.1], [0, 90], [40, 40], [2, 2], [3, 3], 11)
    torch.testing.assert_close(upright.T, turned)


def test_a_bank_is_the_convolution_in_which_each_filter_sees_one_channel():
    random = np.random.default_rng(0)
    filters = torch.from_numpy(random.normal(size=(7, 5, 5)))
    reads = [2, 0, 1, 1, 0, 2, 2]
    dense = torch.zeros(7, 3, 5, 5)
    dense[torch.arange(7), torch.tensor(reads)] = filters.float()
    x = torch.rand(2, 3, 16, 16)
    expected = F.conv2d(x, dense, stride=2, padding=2)
    torch.testing.assert_close(GaborBank(filters, reads, 3, stride=2)(x), expected, rtol=1e-5, atol=1e-5)


def test_a_bank_for_grey_pictures_needs_no_channels_named():
    filters = gabor([0.1, 0.2], [0, 45], [0, 90], [2, 2], [2, 2], 5)
    x = torch.rand(1, 1, 8, 8)
    torch.testing.assert_close(GaborBank(filters)(x), F.conv2d(x, filters[:, None].float(), padding=2))


@pytest.mark.parametrize("size", [128, 192, 160, 224])  # the coarsest side of the last two is odd: 5 and 7
def test_a_grating_has_the_amplitude_that_the_filters_give_it_at_every_scale(size):
    """A wave A·cos(ωx) is A·ω's gain in the complex band: a product of the radial filters and a_K·cos^(K−1)."""
    scales, orientations = 6, 4
    pyramid = SteerablePyramid(size, scales, orientations).double()
    x = torch.arange(size, dtype=torch.float64)

    def low(r):
        inside = 2 * math.cos(math.pi / 2 * math.log2(4 * r / math.pi))
        return 2 if r <= math.pi / 4 else 0 if r >= math.pi / 2 else inside

    def high(r):
        inside = math.cos(math.pi / 2 * math.log2(2 * r / math.pi))
        return 0 if r <= math.pi / 4 else 1 if r >= math.pi / 2 else inside

    for cycles in (2, 5, 11, 40):
        wave = 0.7 * torch.cos(2 * torch.pi * cycles / size * x + 0.3)
        bands = pyramid(wave.expand(1, 1, size, size).contiguous())
        radius = 2 * math.pi * cycles / size
        gain = low(radius / 2) / 2
        for scale, band in enumerate(bands):
            r = radius * 2**scale
            for k in range(orientations):
                directed = 2 / math.sqrt(5) * abs(math.cos(math.pi * k / orientations)) ** 3
                expected = 0.7 * gain * high(r) * directed
                # The filters are kept in float32, whose steps are 6·10⁻⁸.
                assert band[0, 0, k].abs().max().item() == pytest.approx(expected, abs=1e-5)
                assert band[0, 0, k].abs().min().item() == pytest.approx(expected, abs=1e-5)
            gain *= low(r)  # and a quarter of the spectrum's numbers stand for a picture of a quarter of the pixels


def test_the_central_half_keeps_the_lowest_frequencies():
    for side in (8, 20, 6, 14):
        frequencies = torch.fft.fftfreq(side, 1 / side)
        half = torch.fft.fftfreq(side // 2, 2 / side)
        assert torch.equal(central_half(frequencies.expand(side, side))[0], half)


def test_filters_that_cannot_be_are_refused():
    with pytest.raises(AssayError, match="width=4: a filter has an odd number"):
        gaussian(1.0, 4)
    with pytest.raises(AssayError, match=r"sigma=0\.0 is not a positive number"):
        gaussian(0.0, 5)
    with pytest.raises(AssayError, match="centre and surround cancel"):
        CentreSurround(2.0, 2.0, weight=1.0)
    with pytest.raises(AssayError, match="2 filters of pictures of 3 channels need as many numbers from 0 to 2"):
        GaborBank(torch.zeros(2, 3, 3), [0, 3], 3)
    with pytest.raises(AssayError, match="pictures N×1×H×W"):
        GaborBank(torch.zeros(2, 3, 3))(torch.rand(1, 3, 8, 8))
