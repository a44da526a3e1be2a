"""The complex steerable pyramid in the Fourier domain (Simoncelli & Freeman 1995)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from assay.core.errors import AssayError


class SteerablePyramid(nn.Module):
    """Oriented band-pass pairs in quadrature, coarser by a factor of two at each scale.

    On the Fourier plane in polar coordinates (r in radians per sample, θ), with K orientations:

    - L(r) = 2 for r ≤ π/4, 0 for r ≥ π/2, 2·cos(π/2·log₂(4r/π)) between;
    - H(r) = 0 for r ≤ π/4, 1 for r ≥ π/2, cos(π/2·log₂(2r/π)) between;
    - G_k(θ) = a_K·cos^{K−1}(θ − πk/K), a_K = 2^{K−1}(K−1)!/√(K(2K−2)!).

    The input is split by L₀(r) = L(r/2)/2; at each scale band k is the spectrum times H·G_k, and the next
    scale is the central half of the spectrum times L, divided by 4. A band's Hilbert partner keeps the
    positive frequencies of G_k, so the pair is one complex band. Residuals are dropped.

    Returns, for N×C×S×S input, one complex tensor N×C×K×s×s per scale, s = S, S/2, S/4, …
    """

    def __init__(self, size: int, scales: int = 6, orientations: int = 8) -> None:
        super().__init__()
        if size % 2 ** (scales - 1) or size // 2 ** (scales - 1) < 4:
            raise AssayError(
                f"size={size}: {scales} scales need a size divisible by {2 ** (scales - 1)} and at least "
                f"{4 * 2 ** (scales - 1)}"
            )
        self.size = size
        self.scales = scales
        self.orientations = orientations
        radius, _ = _polar(size)
        self.register_buffer("split", _low(radius / 2) / 2, persistent=False)
        for scale in range(scales):
            radius, angle = _polar(size >> scale)
            bands = torch.stack([_oriented(angle, k, orientations) for k in range(orientations)])
            self.register_buffer(f"band{scale}", bands * _high(radius), persistent=False)
            self.register_buffer(f"low{scale}", _low(radius), persistent=False)

    def extra_repr(self) -> str:
        """Return the settings that torch prints."""
        return f"size={self.size}, scales={self.scales}, orientations={self.orientations}"

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the complex bands of frames N×C×S×S, one tensor per scale."""
        if x.shape[-2:] != (self.size, self.size):
            raise AssayError(f"the pyramid was made for {self.size}×{self.size} frames, not {tuple(x.shape)}")
        spectrum = torch.fft.fftshift(torch.fft.fft2(x), dim=(-2, -1)) * self.split
        bands = []
        for scale in range(self.scales):
            oriented = spectrum[..., None, :, :] * self.get_buffer(f"band{scale}")
            bands.append(torch.fft.ifft2(torch.fft.ifftshift(oriented, dim=(-2, -1))))
            side = spectrum.shape[-1]
            inner = slice(side // 4, side // 4 + side // 2)
            spectrum = (spectrum * self.get_buffer(f"low{scale}"))[..., inner, inner] / 4
        return bands


def _polar(size: int) -> tuple[Tensor, Tensor]:
    """Return radius and angle of every frequency of a centred spectrum."""
    axis = (torch.arange(size, dtype=torch.float64) - size // 2) * (2 * math.pi / size)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    return torch.hypot(x, y), torch.atan2(y, x)


def _ramp(radius: Tensor, octave: float) -> Tensor:
    """Return cos(π/2·log₂(octave·r/π)), with r kept from 0 so that the logarithm is finite."""
    return torch.cos(math.pi / 2 * torch.log2(radius.clamp_min(1e-9) * octave / math.pi))


def _low(radius: Tensor) -> Tensor:
    inside = torch.where(radius <= math.pi / 4, 2.0, 2 * _ramp(radius, 4))
    return torch.where(radius >= math.pi / 2, 0.0, inside).float()


def _high(radius: Tensor) -> Tensor:
    inside = torch.where(radius <= math.pi / 4, 0.0, _ramp(radius, 2))
    return torch.where(radius >= math.pi / 2, 1.0, inside).float()


def _oriented(angle: Tensor, k: int, orientations: int) -> Tensor:
    """Return 2·G_k on the half-plane around its orientation: the analytic band, real part and Hilbert partner."""
    order = orientations - 1
    norm = 2**order * math.factorial(order) / math.sqrt(orientations * math.factorial(2 * order))
    turned = torch.remainder(angle - math.pi * k / orientations + math.pi, 2 * math.pi) - math.pi
    band = torch.where(turned.abs() < math.pi / 2, torch.cos(turned).pow(order), 0.0)
    scaled: Tensor = band * (2 * norm)
    return scaled.float()
