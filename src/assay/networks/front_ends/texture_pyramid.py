"""A steerable pyramid for statistics of textures: bands, low-passed pictures and what is left over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
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
        # So that the coarsest picture has an even side, whose middle is a pixel.
        if self.size < 1 or self.size % 2 ** (self.levels + 1):
            raise AssayError(
                f"size={self.size}: {self.levels} levels need a size divisible by {2 ** (self.levels + 1)}"
            )

    def images(self, row: Tensor) -> Images:
        """Return the images that the row of numbers of each picture consists of, without copying them."""
        images = [self.image(row, number) for number in range(len(self.shapes))]
        first_band = 2 + self.levels + 1
        real, imaginary = images[first_band : -self.levels], images[-self.levels :]
        return Images(images[0], images[1], images[2:first_band], real, imaginary)

    def image(self, row: Tensor, number: int) -> Tensor:
        """Return one of the images in the row of numbers of each picture, without copying it."""
        start = sum(math.prod(shape) for shape in self.shapes[:number])
        shape = self.shapes[number]
        return row[:, start : start + math.prod(shape)].view(len(row), *shape)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the images of a picture, in their order."""
        sides = [self.size >> level for level in range(self.levels + 1)]
        pictures = [(side, side) for side in (self.size, self.size, *sides)]
        bands = [(self.orientations, side, side) for side in (self.size, *sides[: self.levels - 1])]
        return (*pictures, *bands, *bands)


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
        side = layout.size + 2 * self.margin
        filters = SteerablePyramid(side, layout.levels, layout.orientations)
        # Pictures, and both parts of a band, are real: the half of a spectrum whose rows are not negative says all.
        # The one-sided filter of a complex band has an even part, which makes its real part, and an odd one.
        self.register_buffer("high", filters.get_buffer("residual")[: side // 2 + 1], persistent=False)
        self.register_buffer("split", filters.get_buffer("split")[: side // 2 + 1], persistent=False)
        for scale in range(layout.levels):
            rows = (side >> scale) // 2 + 1
            band = filters.get_buffer(f"band{scale}")
            mirrored = torch.roll(band.flip(-2, -1), (1, 1), (-2, -1))
            self.register_buffer(f"even{scale}", ((band + mirrored) / 2)[:, :rows], persistent=False)
            self.register_buffer(f"odd{scale}", ((band - mirrored) / 2)[:, :rows], persistent=False)
            low = filters.get_buffer(f"low{scale}")
            self.register_buffer(f"low{scale}", low[: rows // 2 + 1], persistent=False)

    def extra_repr(self) -> str:
        """Return the settings that torch prints."""
        return f"{self.layout}, margin={self.margin}"

    def forward(self, x: Tensor) -> Tensor:
        """Return the numbers N×units of the pyramids of grey pictures N×1×S×S, in the order of `Images`."""
        layout = self.layout
        if x.dim() != 4 or x.shape[1:] != (1, layout.size, layout.size):
            wanted = f"grey frames N×1×{layout.size}×{layout.size}"
            raise AssayError(f"the periphery model sees {wanted}, not {tuple(x.shape)}: set size= or color='grey'")
        row = x.new_empty(len(x), sum(math.prod(shape) for shape in layout.shapes))
        for number, image in self._numbered(x[:, 0]):
            layout.image(row, number).copy_(image)
        return row

    def _numbered(self, x: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Compute the images of pictures N×S×S, with their numbers in the layout."""
        levels = self.layout.levels
        whole = torch.fft.rfft2(F.pad(x, (self.margin,) * 4), dim=(-1, -2))
        spectrum = whole * self.get_buffer("split")
        yield 0, x
        yield 1, self._pictures(whole * self.get_buffer("high"), 0)
        yield 2, self._pictures(spectrum, 0)
        # For an even number of orientations the filter itself is odd, and its partner in quadrature even.
        even, odd = (levels, 0) if self.layout.orientations % 2 == 0 else (0, levels)
        for scale in range(levels):
            # Transforms that sample more finely than the spectrum do not divide by its size: it is done here.
            scaled = spectrum / spectrum.shape[-1] ** 2 if scale else spectrum
            bands = scaled[:, None] * self.get_buffer(f"even{scale}")
            yield 3 + levels + even + scale, self._bands(bands, scale)
            bands = (-1j * scaled)[:, None] * self.get_buffer(f"odd{scale}")
            yield 3 + levels + odd + scale, self._bands(bands, scale)
            quarter = spectrum.shape[-1] // 4
            kept = torch.cat([spectrum[..., :quarter], spectrum[..., -quarter:]], -1)[:, : quarter + 1]
            # A pyramid doubles the strength of its pictures at each scale; here they keep it.
            spectrum = kept * (self.get_buffer(f"low{scale}") / 8)
            yield 3 + scale, self._pictures(spectrum, scale + 1)

    # Transforms go along one axis at a time: what lies outside the picture is cut off before the second.

    def _pictures(self, spectrum: Tensor, halvings: int) -> Tensor:
        """Return the real pictures of half spectra, without the zeros around them."""
        inside, side = self._inside(halvings), spectrum.shape[-1]
        columns = torch.fft.ifft(spectrum, dim=-1)[..., inside]
        pictures: Tensor = torch.fft.irfft(columns, n=side, dim=-2)[..., inside, :]
        return pictures

    def _bands(self, spectrum: Tensor, scale: int) -> Tensor:
        """Return one part of the bands of a scale, after the first sampled twice as finely as they need."""
        if scale == 0:
            return self._pictures(spectrum, 0)
        inside, side = self._inside(scale - 1), spectrum.shape[-1]
        higher = torch.zeros_like(spectrum)
        spread = torch.cat([spectrum[..., : side // 2], higher, spectrum[..., side // 2 :]], -1)
        columns = torch.fft.ifft(spread, dim=-1, norm="forward")[..., inside]
        bands: Tensor = torch.fft.irfft(columns, n=2 * side, dim=-2, norm="forward")[..., inside, :]
        return bands

    def _inside(self, halvings: int) -> slice:
        """Return where a picture lies between its zeros, after its sides were halved so many times."""
        return slice(self.margin >> halvings, (self.margin + self.layout.size) >> halvings)
