"""The filters that models of early vision are made of: Gaussian, centre-surround, Gabor, steerable pyramid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.errors import AssayError

Numbers = Sequence[float] | Tensor


def gaussian(sigma: float, width: int) -> Tensor:
    """Sample a one-dimensional Gaussian density at ``width`` whole pixels around 0, in float64.

    g(x) = exp(−x²/(2σ²)) / (√(2π)·σ). A two-dimensional Gaussian is the product of two. It is cut off at the last pixel
    and not renormalised.

    Args:
        sigma: Standard deviation in pixels.
        width: Number of pixels, odd.

    Example:
        >>> gaussian(1.0, 3)
        tensor([0.2420, 0.3989, 0.2420], dtype=torch.float64)
    """
    _require_odd(width)
    if sigma <= 0:
        raise AssayError(f"sigma={sigma} is not a positive number of pixels")
    axis = torch.arange(width, dtype=torch.float64) - width // 2
    return torch.exp(-(axis**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)


def replicate_edges(x: Tensor, width: int) -> Tensor:
    """Repeat the outermost pixels of frames N×C×H×W, so that a filter of ``width`` pixels leaves H×W of them."""
    return F.pad(x, (width // 2,) * 4, mode="replicate")


def blur(x: Tensor, profile: Tensor) -> Tensor:
    """Filter grey frames N×1×H×W by a profile along columns and then along rows, without padding."""
    return F.conv2d(F.conv2d(x, profile[None, None, :, None]), profile[None, None, None, :])


class CentreSurround(nn.Module):
    """A narrow Gaussian minus a wide one, of unit sum: D = k·(w·g(centre) − g(surround)).

    A Gaussian is a product, so each runs as a column and a row. There is no padding.

    Args:
        centre: Standard deviation of the centre in pixels.
        surround: Standard deviation of the surround in pixels.
        weight: How much more the centre weighs than the surround, w.
        width: Number of pixels of the filter, odd.

    Example:
        >>> flat = torch.full((1, 1, 31, 31), 0.5)
        >>> round(CentreSurround()(flat).item(), 6)
        0.5
    """

    def __init__(
        self, centre: float = 0.85810719, surround: float = 6.95494106, weight: float = 1.25, width: int = 31
    ) -> None:
        super().__init__()
        self.weight = weight
        self.register_buffer("centre", gaussian(centre, width).float(), persistent=False)
        self.register_buffer("surround", gaussian(surround, width).float(), persistent=False)
        total = float(weight * self.get_buffer("centre").sum() ** 2 - self.get_buffer("surround").sum() ** 2)
        if total == 0:
            raise AssayError(
                f"weight={weight}: centre and surround cancel, so that the filter has no sum to scale to 1"
            )
        self.scale = 1 / total

    def forward(self, x: Tensor) -> Tensor:
        """Return the filtered frames, N×1×(H − width + 1)×(W − width + 1)."""
        centre, surround = blur(x, self.get_buffer("centre")), blur(x, self.get_buffer("surround"))
        return self.scale * (self.weight * centre - surround)


def gabor(
    frequency: Numbers, orientation_deg: Numbers, phase_deg: Numbers, sigma_x: Numbers, sigma_y: Numbers, width: int
) -> Tensor:
    """Make Gabor filters F×width×width: gratings under a Gaussian, in float64.

    exp(−(x'²/σx² + y'²/σy²)/2) / (2π·σx·σy) · cos(2π·f·x' + φ) with x' = X·cos θ + Y·sin θ, y' = −X·sin θ + Y·cos θ;
    X is the row and Y the column, counted from the middle.

    Args:
        frequency: Of each filter, f in cycles per pixel.
        orientation_deg: Of each filter, θ in degrees: at 0 the grating changes from row to row.
        phase_deg: Of each filter, φ in degrees.
        sigma_x: Of each filter, the standard deviation across the stripes, in pixels.
        sigma_y: Of each filter, the standard deviation along the stripes, in pixels.
        width: Number of pixels on a side, odd.

    Example:
        >>> filters = gabor([0.25], [0.0], [0.0], [1.0], [2.0], 3)
        >>> round(filters[0, 1, 1].item() * 4 * math.pi, 6), round(filters[0, 1, 0].item() * 4 * math.pi, 6)
        (1.0, 0.882497)

    Dapello et al. 2020.
    """
    _require_odd(width)
    given = (frequency, orientation_deg, phase_deg, sigma_x, sigma_y)
    f, theta, phi, sx, sy = (torch.as_tensor(v, dtype=torch.float64)[:, None, None] for v in given)
    axis = torch.arange(width, dtype=torch.float64) - width // 2
    rows, columns = axis[:, None], axis[None, :]
    theta, phi = torch.deg2rad(theta), torch.deg2rad(phi)
    x = rows * torch.cos(theta) + columns * torch.sin(theta)
    y = columns * torch.cos(theta) - rows * torch.sin(theta)
    envelope = torch.exp(-((x / sx) ** 2 + (y / sy) ** 2) / 2) / (2 * math.pi * sx * sy)
    return envelope * torch.cos(2 * math.pi * f * x + phi)


class GaborBank(nn.Module):
    """Filters that each read one channel of the picture: a strided convolution with zeros around the picture.

    Args:
        filters: The filters, F×width×width.
        channel: Which channel each filter reads; all read the first by default.
        channels: Number of channels of the pictures.
        stride: Number of pixels between neighbouring responses.

    Example:
        >>> bank = GaborBank(gabor([0.1, 0.2], [0, 90], [0, 0], [3, 3], [3, 3], 7), channel=[2, 0], channels=3)
        >>> bank(torch.rand(1, 3, 16, 16)).shape
        torch.Size([1, 2, 16, 16])
    """

    def __init__(
        self, filters: Tensor, channel: Sequence[int] | Tensor | None = None, channels: int = 1, stride: int = 1
    ) -> None:
        super().__init__()
        read = torch.zeros(len(filters), dtype=torch.long) if channel is None else torch.as_tensor(channel)
        if len(read) != len(filters) or not ((read >= 0) & (read < channels)).all():
            raise AssayError(f"channel: {len(filters)} filters of pictures of {channels} channels need as many numbers "
                             f"from 0 to {channels - 1}")  # fmt: skip
        self.channels = channels
        self.width = filters.shape[-1]
        self.stride = stride
        # Sorted by channel, every filter is multiplied with the one channel it reads, a third of the work in colour.
        order = torch.argsort(read, stable=True)
        self.counts = torch.bincount(read, minlength=channels).tolist()
        self.sorted = bool((order == torch.arange(len(order))).all())
        self.register_buffer("weight", filters[order].float(), persistent=False)
        self.register_buffer("place", torch.argsort(order), persistent=False)

    def extra_repr(self) -> str:
        """Return the settings that torch prints."""
        count, channels = len(self.get_buffer("weight")), self.channels
        return f"{count} filters of {self.width} pixels, channels={channels}, stride={self.stride}"

    def forward(self, x: Tensor) -> Tensor:
        """Return the responses N×F×h×w to pictures N×C×H×W."""
        if x.dim() != 4 or x.shape[1] != self.channels:
            raise AssayError(f"the filters see pictures N×{self.channels}×H×W, not {tuple(x.shape)}: set channels")
        weights = torch.split(self.get_buffer("weight").flatten(1), self.counts)
        responses = [
            # As a matrix product: torch's convolution takes 2.5 times as long for large strided filters of one channel.
            weight @ F.unfold(x[:, c : c + 1], self.width, padding=self.width // 2, stride=self.stride)
            for c, weight in enumerate(weights)
            if len(weight)
        ]
        together = responses[0] if len(responses) == 1 else torch.cat(responses, 1)
        rows, columns = ((side - 1) // self.stride + 1 for side in x.shape[-2:])
        placed = together if self.sorted else together[:, self.get_buffer("place")]
        return placed.view(len(x), -1, rows, columns)


class SteerablePyramid(nn.Module):
    """Oriented band-pass pairs in quadrature, coarser by a factor of two at each scale.

    On the Fourier plane in polar coordinates (r in radians per sample, θ), with K orientations:

    - L(r) = 2 for r ≤ π/4, 0 for r ≥ π/2, 2·cos(π/2·log₂(4r/π)) between;
    - H(r) = 0 for r ≤ π/4, 1 for r ≥ π/2, cos(π/2·log₂(2r/π)) between;
    - G_k(θ) = a_K·cos^{K−1}(θ − πk/K), a_K = 2^{K−1}(K−1)!/√(K(2K−2)!).

    The input is split by L₀(r) = L(r/2)/2 and H₀(r) = H(r/2); at each scale band k is the spectrum times H·G_k, and the
    next scale is the central half of the spectrum times L, divided by 4. A band's Hilbert partner keeps the
    positive frequencies of G_k, so the pair is one complex band. What the split and the last scale leave is dropped.

    Returns, for N×C×S×S input, one complex tensor N×C×K×s×s per scale, s = S, S/2, S/4, …

    Simoncelli & Freeman 1995.

    Example:
        >>> [tuple(band.shape) for band in SteerablePyramid(16, scales=2, orientations=4)(torch.rand(1, 1, 16, 16))]
        [(1, 1, 4, 16, 16), (1, 1, 4, 8, 8)]
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
        # All filters are kept in the order of the FFT, with frequency 0 first, so that no spectrum is ever shifted.
        radius, _ = _polar(size)
        self.register_buffer("split", _low(radius / 2) / 2, persistent=False)
        self.register_buffer("residual", _high(radius / 2), persistent=False)
        for scale in range(scales):
            radius, angle = _polar(size >> scale)
            bands = torch.stack([_oriented(angle, k, orientations) for k in range(orientations)])
            self.register_buffer(f"band{scale}", bands * _high(radius), persistent=False)
            self.register_buffer(f"low{scale}", central_half(_low(radius)), persistent=False)

    def extra_repr(self) -> str:
        """Return the settings that torch prints."""
        return f"size={self.size}, scales={self.scales}, orientations={self.orientations}"

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the complex bands of frames N×C×S×S, one tensor per scale."""
        if x.shape[-2:] != (self.size, self.size):
            raise AssayError(f"the pyramid was made for {self.size}×{self.size} frames, not {tuple(x.shape)}")
        spectrum = torch.fft.fft2(x) * self.get_buffer("split")
        bands = []
        for scale in range(self.scales):
            bands.append(torch.fft.ifft2(spectrum[..., None, :, :] * self.get_buffer(f"band{scale}")))
            if scale < self.scales - 1:
                spectrum = central_half(spectrum) * self.get_buffer(f"low{scale}") / 4
        return bands


def central_half(spectrum: Tensor) -> Tensor:
    """Keep the lower half of the frequencies along both axes of a spectrum that has frequency 0 first.

    Of an odd half there is one more frequency from 0 up than below it, as in any spectrum of odd length.

    Example:
        >>> central_half(torch.fft.fftfreq(8, 1 / 8).expand(8, 8))[0]
        tensor([ 0.,  1., -2., -1.])
        >>> central_half(torch.fft.fftfreq(6, 1 / 6).expand(6, 6))[0]
        tensor([ 0.,  1., -1.])
    """
    half = spectrum.shape[-1] // 2
    positive, negative = half - half // 2, half // 2
    rows = torch.cat([spectrum[..., :positive, :], spectrum[..., -negative:, :]], -2)
    return torch.cat([rows[..., :positive], rows[..., -negative:]], -1)


def _require_odd(width: int) -> None:
    if width < 1 or width % 2 == 0:
        raise AssayError(f"width={width}: a filter has an odd number of pixels, one of them in the middle")


def _polar(size: int) -> tuple[Tensor, Tensor]:
    """Return radius and angle of every frequency of a spectrum, frequency 0 first."""
    axis = torch.fft.ifftshift(torch.arange(size, dtype=torch.float64) - size // 2) * (2 * math.pi / size)
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
