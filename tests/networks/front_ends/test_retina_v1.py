from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from assay import AssayError, Subject
from assay.networks import RetinaV1, SteerablePyramid
from assay.networks.front_ends.retina_v1 import Retina


def gaussian(sigma: float) -> torch.Tensor:
    axis = torch.arange(31, dtype=torch.float64) - 15
    return torch.exp(-(axis[:, None] ** 2 + axis**2) / (2 * sigma**2)) / (2 * torch.pi * sigma**2)


def test_layers_are_retina_and_v1():
    assert Subject(RetinaV1(128), example=(1, 128, 128)).layers == ["retina", "v1"]


def test_luminance_filter_is_cut_and_not_renormalised():
    assert Retina().luminance.double().sum() ** 2 == pytest.approx(0.5840, abs=5e-5)


def test_separable_retina_equals_the_31_by_31_filters_of_the_specification():
    x = torch.rand(2, 1, 40, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def conv(image, kernel):
        return F.conv2d(F.pad(image, (15,) * 4, mode="replicate"), kernel[None, None])

    d = 1.25 * gaussian(0.85810719) - gaussian(6.95494106)
    y = conv(x, d / d.sum()) / (1 + 1.71438707 * conv(x, gaussian(13.0766742)))
    c = torch.sqrt(conv(y**2, gaussian(1.6304118)) + 1e-6)
    expected = F.softplus(y / (1 + 5.83368648 * c))
    torch.testing.assert_close(Retina()(x.float()).double(), expected, rtol=1e-5, atol=1e-6)


def test_pyramid_bands_tile_the_fourier_plane():
    """Σ over bands of |response|² is flat over the orientations of a grating: steerability."""
    size = 64
    pyramid = SteerablePyramid(size, scales=3, orientations=4)
    grid = torch.arange(size, dtype=torch.float32)
    energies = []
    for fy, fx in ((8, 0), (0, 8), (8, 8)):
        wave = torch.cos(2 * torch.pi * (fy * grid[:, None] + fx * grid[None]) / size)[None, None]
        bands = pyramid(wave)
        energies.append(sum((b.abs() ** 2).mean() * 4**i for i, b in enumerate(bands)).item())
    assert energies[0] == pytest.approx(energies[1], rel=1e-4)


def test_band_and_hilbert_partner_are_in_quadrature():
    size = 64
    phases = torch.linspace(0, 2 * torch.pi, 9)[:-1]
    grid = torch.arange(size, dtype=torch.float32)
    waves = torch.cos(2 * torch.pi * 12 * grid[None] / size + phases[:, None])[:, None, None, :].expand(-1, 1, size, -1)
    band = SteerablePyramid(size, scales=2, orientations=4)(waves.contiguous())[0][:, 0, 0]
    energy = band.abs() ** 2
    assert energy.mean() > 1e-3
    torch.testing.assert_close(energy, energy[:1].expand_as(energy), rtol=1e-3, atol=1e-5)


def test_wrong_input_is_named():
    with pytest.raises(AssayError, match="grey frames N×1×H×W"):
        RetinaV1(128)(torch.rand(1, 3, 128, 128))
    with pytest.raises(AssayError, match="made for 128×128 frames"):
        RetinaV1(128)(torch.rand(1, 1, 64, 64))
    with pytest.raises(AssayError, match="size=100: 6 scales need"):
        RetinaV1(100)
