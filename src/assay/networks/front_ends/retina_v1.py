"""The two-stage biological model of early vision: retina/LGN, then V1 complex cells."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.errors import AssayError
from assay.networks.front_ends.filters import CentreSurround, SteerablePyramid, blur, gaussian, replicate_edges


class Retina(nn.Module):
    """Centre-surround filtering with luminance and contrast gain control.

    With D = k·(1.25·g(0.858) − g(6.955)) of unit sum, y = (D∗x)/(1 + 1.714·(g(13.08)∗x));
    c = √(g(1.630)∗y² + 10⁻⁶); out = softplus(y/(1 + 5.834·c)). g(σ) is a 2-D Gaussian density sampled on
    31×31 pixels (the luminance one is cut off there, and not renormalised: its sum is 0.5840); edges are
    replicated. A Gaussian is a product, so each filter runs as a column and a row.

    Args:
        centre: Standard deviation of the centre of D, in pixels.
        surround: Standard deviation of its surround, in pixels.
        centre_weight: How much more the centre weighs than the surround.
        luminance: Standard deviation of the Gaussian over which luminance is averaged, in pixels.
        luminance_gain: How strongly luminance divides the response.
        contrast: Standard deviation of the Gaussian over which contrast is averaged, in pixels.
        contrast_gain: How strongly contrast divides the response.
        width: Number of pixels on a side of all filters.
    """

    def __init__(
        self,
        centre: float = 0.85810719,
        surround: float = 6.95494106,
        centre_weight: float = 1.25,
        luminance: float = 13.0766742,
        luminance_gain: float = 1.71438707,
        contrast: float = 1.6304118,
        contrast_gain: float = 5.83368648,
        width: int = 31,
    ) -> None:
        super().__init__()
        self.width = width
        self.luminance_gain = luminance_gain
        self.contrast_gain = contrast_gain
        self.difference = CentreSurround(centre, surround, centre_weight, width)
        self.register_buffer("luminance", gaussian(luminance, width).float(), persistent=False)
        self.register_buffer("contrast", gaussian(contrast, width).float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the responses to grey frames N×1×H×W in [0, 1], one for each pixel."""
        if x.dim() != 4 or x.shape[1] != 1:
            raise AssayError(f"the retina sees grey frames N×1×H×W, not {tuple(x.shape)}: set color='grey'")
        edged = replicate_edges(x, self.width)
        # Called directly, not as a module: linear filtering is not a layer of its own.
        difference = self.difference.forward(edged)
        y = difference / (1 + self.luminance_gain * blur(edged, self.get_buffer("luminance")))
        squares = replicate_edges(y**2, self.width)
        contrast = torch.sqrt(blur(squares, self.get_buffer("contrast")) + 1e-6)
        return F.softplus(y / (1 + self.contrast_gain * contrast))


class V1(nn.Module):
    """Complex-cell energies: squared magnitudes of all bands of a steerable pyramid, concatenated."""

    def __init__(self, size: int, scales: int = 6, orientations: int = 8) -> None:
        super().__init__()
        self.pyramid = SteerablePyramid(size, scales, orientations)

    def forward(self, x: Tensor) -> Tensor:
        """Return the energies N×units of frames N×1×H×W, finest scale first."""
        # Called directly, not as a module: its complex bands are not a layer of their own.
        bands = self.pyramid.forward(x)
        return torch.cat([(band.real**2 + band.imag**2).flatten(1) for band in bands], 1)


class RetinaV1(nn.Module):
    """Retina/LGN and V1 as two layers, ``retina`` and ``v1``, on grey frames of ``size`` pixels in [0, 1].

    The model of Hénaff et al. 2019 ("HenaffBio" in Harrington et al. 2022); nothing in it is learned.

    Args:
        size: Height and width of the frames in pixels.
        scales: Number of spatial scales of V1.
        orientations: Number of orientations of V1.

    Example:
        >>> model = RetinaV1(size=128)
        >>> model(torch.rand(2, 1, 128, 128, generator=torch.Generator().manual_seed(0))).shape
        torch.Size([2, 174720])
    """

    def __init__(self, size: int = 256, scales: int = 6, orientations: int = 8) -> None:
        super().__init__()
        self.retina = Retina()
        self.v1 = V1(size, scales, orientations)

    def forward(self, x: Tensor) -> Tensor:
        """Return the V1 energies of grey frames N×1×H×W."""
        energies: Tensor = self.v1(self.retina(x))
        return energies
