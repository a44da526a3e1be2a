"""The VOne front end: simple and complex cells of primary visual cortex, with their noise, and networks behind it."""

from __future__ import annotations

import functools
import math
from typing import Final

import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, nearest, shown
from assay.networks.front_ends.filters import GaborBank, gabor
from assay.networks.front_ends.gabor_draws import draw_gabors

NOISES: Final = ("off", "fixed", "fresh")


class SimpleCells(nn.Module):
    """Half-rectified responses of Gabor filters: gain · max(q₀, 0)."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.gain = gain

    def forward(self, q: Tensor) -> Tensor:
        """Return the rates of cells, one for each filter response."""
        return self.gain * torch.relu(q)


class ComplexCells(nn.Module):
    """Energies of Gabor filters in quadrature: gain · √(q₀² + q₁²) / √2."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.gain = gain

    def forward(self, q: Tensor) -> Tensor:
        """Return the rates of cells; the first half of the channels is q₀, the second q₁."""
        q0, q1 = q.chunk(2, dim=1)
        # The smallest number above 0 keeps the gradient of the root finite where a picture is black.
        energy = torch.sqrt(q0**2 + q1**2 + torch.finfo(q.dtype).tiny)
        return (self.gain / math.sqrt(2)) * energy


class CellNoise(nn.Module):
    """Gaussian noise whose variance grows with the rate of a cell, as spike counts vary.

    z = scale·r + level; z += N(0, 1)·√(max(z, 0) + 10⁻⁴); r = max((z − level)/scale, 0).

    Args:
        mode: ``"off"`` returns the rates as they are; ``"fixed"`` adds the same numbers N(0, 1) to every picture;
            ``"fresh"`` draws new ones for each, from torch's random numbers.
        scale: Spikes per unit of rate.
        level: Spikes at rest.
        seed: Seed of the numbers of fixed noise.
    """

    def __init__(self, mode: str = "off", scale: float = 0.35, level: float = 0.07, seed: int = 0) -> None:
        super().__init__()
        if scale <= 0:
            raise AssayError(f"noise_scale={scale} is not a positive number")
        self.mode = mode
        self.scale = scale
        self.level = level
        self.seed = seed

    @property
    def mode(self) -> str:
        """Whether noise is off, fixed or fresh; can be set at any time."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        if mode not in NOISES:
            raise AssayError(f"unknown noise={mode!r}{nearest(mode, NOISES)}")
        self._mode = mode

    def extra_repr(self) -> str:
        """Return the settings that torch prints."""
        return f"mode={self.mode!r}, scale={self.scale}, level={self.level}"

    def forward(self, rates: Tensor) -> Tensor:
        """Return the rates of cells N×C×h×w with noise."""
        if self.mode == "off":
            return rates
        if self.mode == "fixed":
            normal = _normal(tuple(rates.shape[1:]), self.seed, rates.device, rates.dtype)
        else:
            normal = torch.randn_like(rates)
        z = self.scale * rates + self.level
        z = z + normal * torch.sqrt(torch.relu(z) + 1e-4)
        return torch.relu((z - self.level) / self.scale)


class VOne(nn.Module):
    """A model of primary visual cortex: Gabor filters drawn from measured cells, then simple and complex cells.

    Filters of 25×25 pixels see the picture every 4 pixels, with zeros around it; 224 pixels are 8 degrees. Each reads
    one channel, drawn at random. simple = 25·max(q₀, 0); complex = 25·√(q₀² + q₁²)/√2, with q₁ the response of the same
    filter a quarter of a cycle on; see `gabor` and `draw_gabors`. Nothing in it is learned. The layers are ``simple``,
    ``complex`` and ``noise``, which has both kinds of cells, simple ones first, and adds the noise.

    The spatial frequencies, orientations and phases drawn are the attributes ``sf`` (cycles per degree),
    ``orientation`` and ``phase`` (degrees). The noise can be switched at any time: ``vone.noise.mode = "fresh"``.

    Args:
        simple: Number of simple cells at each place.
        complex: Number of complex cells at each place.
        channels: Number of channels of the pictures.
        noise: ``"off"``; ``"fixed"``, the same for every picture; or ``"fresh"``, drawn anew for every picture, as in
            the published networks.
        sf_max: Largest spatial frequency in cycles per degree. The released networks use 6.
        width: Number of pixels on a side of the filters.
        stride: Number of pixels between neighbouring cells.
        pixels_per_degree: Resolution of the pictures.
        gain: Factor of the rates of all cells.
        noise_scale: Spikes per unit of rate, on which the variance of the noise depends.
        noise_level: Spikes at rest.
        seed: Seed of the draws, and of fixed noise.

    Example:
        >>> vone = VOne()
        >>> vone(torch.rand(2, 3, 64, 64)).shape
        torch.Size([2, 512, 16, 16])
        >>> [round(float(sf), 5) for sf in vone.sf[:3]]
        [2.21517, 5.43425, 4.29826]

    Dapello et al. 2020, "Simulating a primary visual cortex at the front of CNNs improves robustness".
    """

    def __init__(
        self,
        simple: int = 256,
        complex: int = 256,
        channels: int = 3,
        noise: str = "off",
        *,
        sf_max: float = 9.0,
        width: int = 25,
        stride: int = 4,
        pixels_per_degree: float = 28.0,
        gain: float = 25.0,
        noise_scale: float = 0.35,
        noise_level: float = 0.07,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if simple < 1 or complex < 1:
            raise AssayError(f"simple={simple}, complex={complex}: there is at least one cell of each kind")
        draws = draw_gabors(simple + complex, seed, sf_max, channels=channels)
        self.sf, self.orientation, self.phase = draws.sf, draws.orientation, draws.phase
        self.nx, self.ny, self.channel = draws.nx, draws.ny, draws.channel
        self.cells = (simple, complex)
        frequency = torch.from_numpy(draws.sf / pixels_per_degree)
        shape = (frequency, torch.from_numpy(draws.orientation), torch.from_numpy(draws.phase))
        sizes = (torch.from_numpy(draws.nx) / frequency, torch.from_numpy(draws.ny) / frequency)
        filters = gabor(*shape, *sizes, width)
        quadrature = gabor(shape[0], shape[1], shape[2] + 90, *sizes, width)[simple:]
        reads = torch.from_numpy(draws.channel)
        self.filters = GaborBank(torch.cat([filters, quadrature]), torch.cat([reads, reads[simple:]]), channels, stride)
        self.simple = SimpleCells(gain)
        self.complex = ComplexCells(gain)
        self.noise = CellNoise(noise, noise_scale, noise_level, seed)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rates of all cells, N×cells×h×w, simple ones first, for pictures N×C×H×W in [0, 1]."""
        # Called directly, not as a module: linear filtering is not a layer of its own.
        q = self.filters.forward(x)
        simple = self.simple(q[:, : self.cells[0]])
        complex = self.complex(q[:, self.cells[0] :])
        rates: Tensor = self.noise(torch.cat([simple, complex], 1))
        return rates


class VOneNet(nn.Module):
    """Any network behind a VOne front end, with a learned 1×1 convolution between them.

    The convolution makes of the cells' channels as many as the network takes. The network sees one place for every 4
    pixels; leave out its own first layers, as the published networks do, or give larger pictures.

    Args:
        network: The network to put behind the front end.
        vone: The front end; as published by default.
        channels: Number of channels that the network takes; by default those of its first convolution.

    Example:
        >>> from torch.nn import AdaptiveAvgPool2d, Conv2d, Flatten, Linear, Sequential
        >>> small = Sequential(Conv2d(64, 8, 3), AdaptiveAvgPool2d(1), Flatten(), Linear(8, 10))
        >>> VOneNet(small, VOne(4, 4))(torch.rand(2, 3, 64, 64)).shape
        torch.Size([2, 10])
    """

    def __init__(self, network: nn.Module, vone: VOne | None = None, channels: int | None = None) -> None:
        super().__init__()
        if not isinstance(vone, VOne | None):
            raise AssayError(f"vone={shown(vone)} is no front end: give assay.networks.VOne(...), or leave it out")
        if channels is None:
            first = next((m for m in network.modules() if isinstance(m, nn.Conv2d)), None)
            if first is None:
                raise AssayError("network has no convolution to read its number of channels from: give channels=")
            channels = first.in_channels
        self.vone = VOne() if vone is None else vone
        self.bottleneck = nn.Conv2d(sum(self.vone.cells), channels, 1, bias=False)
        nn.init.kaiming_normal_(self.bottleneck.weight, mode="fan_out", nonlinearity="relu")
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return what the network makes of what the cells say of pictures N×C×H×W."""
        out: Tensor = self.network(self.bottleneck(self.vone(x)))
        return out


@functools.lru_cache(maxsize=4)
def _normal(shape: tuple[int, ...], seed: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return numbers N(0, 1) that depend on the shape and the seed only: drawn on the CPU, in float32."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(device, dtype)
