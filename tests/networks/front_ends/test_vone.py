"""The VOne front end: its published draws, its cells against plain arithmetic, its noise, and networks behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm, spearmanr

from assay import AssayError, Subject
from assay.core.fingerprint import fingerprint
from assay.networks import VOne, VOneNet, small_resnet
from assay.networks.front_ends.gabor_draws import draw_gabors
from assay.networks.front_ends.vone import CellNoise


@pytest.fixture(scope="module")
def vone():
    return VOne()


def test_the_first_draws_are_the_published_ones(vone):
    np.testing.assert_allclose(vone.sf[:3], [2.21517, 5.43425, 4.29826], atol=5e-6)
    np.testing.assert_allclose(vone.orientation[:3], [106.69324, 98.12721, 89.77007], atol=5e-6)
    np.testing.assert_allclose(vone.phase[:3], [197.57286, 257.46817, 216.99482], atol=5e-6)


def test_draws_follow_the_histograms_of_measured_cells():
    draws = draw_gabors(40_000, seed=1)
    # Shares of 40,000 draws are within 5 standard errors, 5·√(¼/40,000) = 0.0125.
    shares = np.histogram(draws.sf, [0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8])[0] / 40_000
    np.testing.assert_allclose(shares, np.array([4, 4, 8, 25, 32, 26, 28, 12]) / 139, atol=0.0125)
    turned = np.where(draws.orientation >= 157.5, draws.orientation - 180, draws.orientation)
    shares = np.histogram(turned, [-22.5, 22.5, 67.5, 112.5, 157.5])[0] / 40_000
    np.testing.assert_allclose(shares, np.array([66, 49, 77, 54]) / 246, atol=0.0125)
    edges = 10 ** np.linspace(-1, 0.2, 6)
    cells = np.array([[2, 0, 1, 0, 0], [8, 9, 4, 1, 0], [1, 2, 19, 17, 3], [0, 0, 1, 7, 4], [0, 0, 0, 0, 0]])
    shares = np.histogram2d(draws.nx, draws.ny, [edges, edges])[0] / 40_000
    np.testing.assert_allclose(shares, cells / cells.sum(), atol=0.0125)
    # A Gaussian pair of correlation ρ has the rank correlation 6/π·asin(ρ/2), whatever it is turned into.
    assert spearmanr(draws.nx, draws.sf).statistic == pytest.approx(6 / math.pi * math.asin(0.375), abs=0.02)
    np.testing.assert_allclose(np.bincount(draws.channel) / 40_000, 1 / 3, atol=0.0125)


def test_the_highest_bins_can_be_left_out_as_in_the_released_networks():
    draws = draw_gabors(512, sf_max=6)
    assert draws.sf.max() <= 5.6 < draw_gabors(512).sf.max() <= 8
    assert np.array_equal(draws.orientation, draw_gabors(512).orientation)


def test_rates_are_the_formulas_of_single_cells(vone):
    """A simple and a complex cell, at the middle and at a corner, by explicit sums over the pixels they see."""
    generator = torch.Generator().manual_seed(0)
    picture = torch.rand(1, 3, 40, 40, generator=generator)
    rates = vone(picture)[0]
    around = np.pad(picture[0].double().numpy(), ((0, 0), (12, 12), (12, 12)))
    rows, columns = np.mgrid[-12:13, -12:13]

    def response(cell, row, column, phase):
        turn, f = np.deg2rad(vone.orientation[cell]), vone.sf[cell] / 28
        sx, sy = vone.nx[cell] / f, vone.ny[cell] / f
        x, y = rows * np.cos(turn) + columns * np.sin(turn), columns * np.cos(turn) - rows * np.sin(turn)
        envelope = np.exp(-(x**2 / sx**2 + y**2 / sy**2) / 2) / (2 * np.pi * sx * sy)
        seen = around[vone.channel[cell], 4 * row : 4 * row + 25, 4 * column : 4 * column + 25]
        return (seen * envelope * np.cos(2 * np.pi * f * x + np.deg2rad(phase))).sum()

    for cell in (0, 1, 100, 255):
        for row, column in ((0, 0), (5, 5), (9, 2)):
            q0 = response(cell, row, column, vone.phase[cell])
            assert rates[cell, row, column].item() == pytest.approx(25 * max(q0, 0), rel=1e-4, abs=1e-5)
    for cell in (256, 300, 511):
        q0 = response(cell, 5, 5, vone.phase[cell])
        q1 = response(cell, 5, 5, vone.phase[cell] + 90)
        assert rates[cell, 5, 5].item() == pytest.approx(25 * math.hypot(q0, q1) / math.sqrt(2), rel=1e-4)


def test_layers_are_simple_cells_complex_cells_and_all_of_them_with_noise(vone):
    subject = Subject(vone, example=(3, 32, 32))
    assert subject.layers == ["simple", "complex", "noise"]
    recorded = subject.record(torch.rand(1, 3, 32, 32))
    assert torch.equal(torch.cat([recorded["simple"], recorded["complex"]], 1), recorded["noise"])
    assert recorded["noise"].shape == (1, 512, 8, 8)


def test_fixed_noise_is_the_same_for_every_picture_and_fresh_noise_is_not():
    pictures = torch.rand(1, 3, 32, 32).expand(3, 3, 32, 32)
    model = VOne(16, 16, noise="fixed")
    before = torch.random.get_rng_state()
    fixed = model(pictures)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(fixed[0], fixed[2]) and torch.equal(model(pictures[:1])[0], fixed[0])
    assert not torch.equal(VOne(16, 16, noise="fixed", seed=1)(pictures), fixed)
    model.noise.mode = "fresh"
    fresh = model(pictures)
    assert not torch.equal(fresh[0], fresh[1]) and not torch.equal(model(pictures), fresh)
    model.noise.mode = "off"
    off = model(pictures)
    assert torch.equal(off[0], off[2]) and not torch.equal(off, fixed)
    assert torch.equal(off, VOne(16, 16)(pictures))


def test_noise_has_the_moments_of_a_rectified_gaussian_at_the_level_of_spikes():
    """For a rate r the mean is that of max(N(r, σ²), 0), σ = √(0.35 r + 0.07 + 10⁻⁴)/0.35."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for rate in (0.0, 0.5, 4.0):
            noisy = CellNoise("fresh")(torch.full((200_000,), rate))
            sigma = math.sqrt(0.35 * rate + 0.07 + 1e-4) / 0.35
            mean = rate * norm.cdf(rate / sigma) + sigma * norm.pdf(rate / sigma)
            # Five standard errors of the mean of 200,000.
            assert noisy.mean().item() == pytest.approx(mean, abs=5 * sigma / math.sqrt(200_000))
            assert noisy.min().item() == 0


def test_a_subject_with_another_noise_has_another_fingerprint():
    prints = {fingerprint(VOne(4, 4, noise=noise)) for noise in ("off", "fixed", "fresh")}
    assert len(prints) == 3 and fingerprint(VOne(4, 4)) in prints


def test_any_network_can_be_mounted_behind_it_and_learns():
    torch.manual_seed(0)
    network = VOneNet(small_resnet(), VOne(8, 8))
    assert network.bottleneck.weight.shape == (3, 16, 1, 1)
    layers = Subject(network, example=(3, 64, 64)).layers
    assert layers[:5] == ["vone.simple", "vone.complex", "vone.noise", "vone", "bottleneck"]
    assert all(name.startswith("network") for name in layers[5:])
    network(torch.rand(2, 3, 64, 64)).sum().backward()
    assert network.bottleneck.weight.grad.abs().sum() > 0
    assert not list(network.vone.parameters())


def test_what_the_network_takes_can_be_said():
    network = VOneNet(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(5 * 16, 2)), VOne(2, 2), channels=5)
    assert network(torch.rand(1, 3, 16, 16)).shape == (1, 2)
    with pytest.raises(AssayError, match="no convolution to read its number of channels from: give channels="):
        VOneNet(torch.nn.Linear(4, 2))


def test_gradients_are_finite_for_a_black_picture():
    black = torch.zeros(1, 3, 16, 16, requires_grad=True)
    VOne(4, 4)(black).sum().backward()
    assert torch.isfinite(black.grad).all()


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(AssayError, match=r"unknown noise='frseh'; did you mean 'fresh'"):
        VOne(4, 4, noise="frseh")
    with pytest.raises(AssayError, match="simple=0, complex=4"):
        VOne(0, 4)
    with pytest.raises(AssayError, match=r"sf_max=0\.6: the lowest bin"):
        VOne(4, 4, sf_max=0.6)
    with pytest.raises(AssayError, match="pictures N×3×H×W"):
        VOne(4, 4)(torch.rand(1, 1, 16, 16))
    with pytest.raises(AssayError, match="noise_scale=0 is not a positive number"):
        VOne(4, 4, noise_scale=0)


def test_a_front_end_that_is_none_is_refused_in_a_sentence():
    with pytest.raises(AssayError, match=r"vone='fresh' is no front end: give assay.networks.VOne"):
        VOneNet(torch.nn.Conv2d(3, 4, 3), "fresh")
    with pytest.raises(AssayError, match="unknown noise='loud'; known: 'off', 'fixed', 'fresh'"):
        VOne(4, 4, noise="loud")
