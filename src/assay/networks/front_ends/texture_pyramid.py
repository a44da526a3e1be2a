"""A steerable pyramid for statistics of textures: bands, low-passed pictures and what is left over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.errors import AssayError
from assay.networks.front_ends.filters import SteerablePyramid


class Images(NamedTuple):
    """The images of a pyramid.

    The bands of every level but the first are as large as those of the level before, twice what their frequencies
    need, so that levels can be compared pixel by pixel.

    Attributes:
        picture: The picture itself, N×S×S.
        high: Its highest frequencies, N×S×S.
        low: Its low-passed versions of levels 1, 2, …, each half as large as the one before.
        real: The oriented bands N×K×s×s of levels 1, 2, ….
        imaginary: Their partners in quadrature.
    """

    picture: Tensor
    high: Tensor
    low: list[Tensor]
    real: list[Tensor]
    imaginary: list[Tensor]


@dataclass(frozen=True)
class Layout:
    """Which images a pyramid has, and how they lie one after the other in a row of numbers.

    Args:
        size: Height and width of the pictures in pixels.
        levels: Number of levels of edges.
        orientations: Number of orientations of edges.
    """

    size: int
    levels: int
    orientations: int

    def __post_init__(self) -> None:
        if self.levels < 1 or self.orientations < 1:
            wrong = f"levels={self.levels}, orientations={self.orientations}"
            raise AssayError(f"{wrong}: the periphery model needs at least one of each")
        # So that the coarsest picture has an even side: see `central_half`.
        if self.size < 1 or self.size % 2 ** (self.levels + 1):
            raise AssayError(
                f"size={self.size}: {self.levels} levels need a size divisible by {2 ** (self.levels + 1)}"
            )

    def images(self, row: Tensor) -> Images:
        """Return the images that the row of numbers of each picture consists of, without copying them."""
        sides = [self.size >> level for level in range(self.levels + 1)]
        shapes: list[tuple[int, ...]] = [(self.size, self.size)] * 2
        shapes += [(side, side) for side in sides]
        first_band = len(shapes)
        shapes += [(self.orientations, side, side) for side in (self.size, *sides[: self.levels - 1])] * 2
        parts = torch.split(row, [math.prod(shape) for shape in shapes], 1)
        images = [part.view(len(row), *shape) for part, shape in zip(parts, shapes, strict=True)]
        real, imaginary = images[first_band : -self.levels], images[-self.levels :]
        return Images(images[0], images[1], images[2:first_band], real, imaginary)


class TexturePyramid(nn.Module):
    """A steerable pyramid with all that is left over, its images in one row of numbers for each picture.

    The filters are those of `SteerablePyramid`: with r in units of the highest frequency, low(r) = 1 for r ≤ ½, 0 for
    r ≥ 1, cos(π/2·log₂(2r)) between, and high = √(1 − low²), an octave lower at each level. Level 0 is the high-pass
    residual, levels 1 to L have edges and a low-passed picture, and level L+1 has a low-passed picture. All images
    are as strong as they are in the picture. The real part of an edge is the response of G_k, which for an even number
    of orientations is an odd function; the imaginary part is that of its partner in quadrature.

    Args:
        layout: The size of the pictures, and the numbers of levels and orientations.
        periodic: Whether opposite sides of a picture touch; else there are 2^(L+1) zeros on each side.
    """

    def __init__(self, layout: Layout, periodic: bool = False) -> None:
        super().__init__()
        self.layout = layout
        self.margin = 0 if periodic else 2 ** (layout.levels + 1)
        self.filters = SteerablePyramid(layout.size + 2 * self.margin, layout.levels, layout.orientations)

    def extra_repr(self) -> str:
        """Return the settings that torch prints."""
        return f"{self.layout}, margin={self.margin}"

    def forward(self, x: Tensor) -> Tensor:
        """Return the numbers N×units of the pyramids of grey pictures N×1×S×S, in the order of `Images`."""
        size, filters = self.layout.size, self.filters
        if x.dim() != 4 or x.shape[1:] != (1, size, size):
            wanted = f"grey frames N×1×{size}×{size}"
            raise AssayError(f"the periphery model sees {wanted}, not {tuple(x.shape)}: set size= or color='grey'")
        whole = filters.spectrum(F.pad(x[:, 0], (self.margin,) * 4))
        spectrum = filters.low_spectrum(whole)
        images = [x[:, 0], self._real(filters.high_spectrum(whole), 0), self._real(spectrum, 0)]
        edges = []
        for scale in range(self.layout.levels):
            bands = filters.band_spectrum(spectrum, scale)
            edges.append(self._complex(twice_as_fine(bands) if scale else bands, max(scale - 1, 0)))
            # The pyramid doubles the strength of its pictures at each scale; here they keep it.
            spectrum = filters.next_spectrum(spectrum, scale) / 2
            images.append(self._real(spectrum, scale + 1))
        odd_order = self.layout.orientations % 2 == 0
        images += [edge.imag if odd_order else edge.real for edge in edges]
        images += [edge.real if odd_order else edge.imag for edge in edges]
        return torch.cat([image.flatten(1) for image in images], 1)

    def _real(self, spectrum: Tensor, halvings: int) -> Tensor:
        side = spectrum.shape[-1]
        # The spectrum of a real picture is symmetric: half of it is enough.
        return self._inside(torch.fft.irfft2(spectrum[..., : side // 2 + 1], s=(side, side)), halvings)

    def _complex(self, spectrum: Tensor, halvings: int) -> Tensor:
        return self._inside(torch.fft.ifft2(spectrum), halvings)

    def _inside(self, picture: Tensor, halvings: int) -> Tensor:
        """Cut the zeros around a picture off, after its sides were halved so many times."""
        kept = slice(self.margin >> halvings, (self.margin + self.layout.size) >> halvings)
        return picture[..., kept, kept]


def twice_as_fine(spectrum: Tensor) -> Tensor:
    """Return the spectrum of the same pictures, sampled twice as finely along both axes.

    Example:
        >>> x = torch.tensor([[0.0, 1.0, 0.0, -1.0]]).expand(4, 4)
        >>> torch.fft.ifft2(twice_as_fine(torch.fft.fft2(x))).real[0].round(decimals=3).abs()
        tensor([0.0000, 0.7070, 1.0000, 0.7070, 0.0000, 0.7070, 1.0000, 0.7070])
    """
    side = spectrum.shape[-1]
    positive, negative = side - side // 2, side // 2
    fine = spectrum.new_zeros(*spectrum.shape[:-2], 2 * side, 2 * side)
    for rows in (slice(positive), slice(-negative, None)):
        for columns in (slice(positive), slice(-negative, None)):
            fine[..., rows, columns] = 4 * spectrum[..., rows, columns]
    return fine
