"""The two-stage biological model of early vision: retina/LGN, then V1 complex cells."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.errors import AssayError
from assay.networks.front_ends.steerable import SteerablePyramid

_WIDTH = 31


class Retina(nn.Module):
    """Centre-surround filtering with luminance and contrast gain control.

    With D = k·(1.25·g(0.858) − g(6.955)) of unit sum, y = (D∗x)/(1 + 1.714·(g(13.08)∗x));
    c = √(g(1.630)∗y² + 10⁻⁶); out = softplus(y/(1 + 5.834·c)). g(σ) is a 2-D Gaussian density sampled on
    31×31 pixels (the luminance one is cut off there, and not renormalised: its sum is 0.5840); edges are
    replicated. A Gaussian is a product, so each filter runs as a column and a row.
    """

    luminance_gain, contrast_gain = 1.71438707, 5.83368648

    def __init__(self) -> None:
        super().__init__()
        sigmas = {
            "centre": 0.85810719,
            "surround": 6.95494106,
            "luminance": 13.0766742,
            "contrast": 1.6304118,
        }
        for name, sigma in sigmas.items():
            axis = torch.arange(_WIDTH, dtype=torch.float64) - _WIDTH // 2
            profile = torch.exp(-(axis**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
            self.register_buffer(name, profile.float(), persistent=False)
        self.scale = 1 / float(1.25 * self.get_buffer("centre").sum() ** 2 - self.get_buffer("surround").sum() ** 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return the responses to grey frames N×1×H×W in [0, 1], one for each pixel."""
        if x.dim() != 4 or x.shape[1] != 1:
            raise AssayError(f"the retina sees grey frames N×1×H×W, not {tuple(x.shape)}: set color='grey'")
        edged = _replicate(x)
        difference = self.scale * (1.25 * self._blur(edged, "centre") - self._blur(edged, "surround"))
        y = difference / (1 + self.luminance_gain * self._blur(edged, "luminance"))
        contrast = torch.sqrt(self._blur(_replicate(y**2), "contrast") + 1e-6)
        return F.softplus(y / (1 + self.contrast_gain * contrast))

    def _blur(self, edged: Tensor, name: str) -> Tensor:
        profile = self.get_buffer(name)
        return F.conv2d(F.conv2d(edged, profile[None, None, :, None]), profile[None, None, None, :])


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

    Example:
        >>> model = RetinaV1(size=128)
        >>> model(torch.rand(2, 1, 128, 128, generator=torch.Generator().manual_seed(0))).shape
        torch.Size([2, 174720])
    """

    def __init__(self, size: int = 256) -> None:
        super().__init__()
        self.retina = Retina()
        self.v1 = V1(size)

    def forward(self, x: Tensor) -> Tensor:
        """Return the V1 energies of grey frames N×1×H×W."""
        energies: Tensor = self.v1(self.retina(x))
        return energies


def _replicate(x: Tensor) -> Tensor:
    return F.pad(x, (_WIDTH // 2,) * 4, mode="replicate")
