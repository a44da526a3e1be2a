"""Statistics of textures: raw moments and correlations of a pyramid's images, averaged over the whole picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, nearest
from assay.networks.front_ends.texture_pyramid import Images, Layout

WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "mean": 2.0,
        "variance": 1.0,
        "skew": 1.0,
        "kurtosis": 1.0,
        "band-pass variance": 40.0,
        "edge mean": 10.0,
        "edge variance": 80.0,
        "edge stop": 100.0,
        "edge correlation": 80.0,
        "phase correlation": 400.0,
    }
)
"""The published weight of each kind of statistic, in the order in which the kinds are returned."""


class Label(NamedTuple):
    """What a statistic is.

    Attributes:
        kind: One of the kinds that have a weight.
        level: Level of the pyramid, the coarser one where two are compared; 0 for the picture and its high-pass.
        name: The statistic in words.
    """

    kind: str
    level: int
    name: str


def labels(layout: Layout) -> list[Label]:
    """Return what the statistics of a pyramid are, in their order: 150 for four levels and four orientations."""
    levels = range(1, layout.levels + 1)
    angles = [f"{180 * k / layout.orientations:g}°" for k in range(layout.orientations)]
    pairs = [f"{a} and {b}" for a, b in combinations(angles, 2)]
    statistics = [Label("mean", 0, "mean of the picture"), Label("variance", 0, "variance of the picture")]
    for kind in ("variance", "skew", "kurtosis"):
        statistics += [Label(kind, level, f"{kind} of low-pass {level}") for level in (*levels, layout.levels + 1)]
    statistics.append(Label("band-pass variance", 0, "variance of the high-pass"))
    for kind in ("edge mean", "edge variance", "edge stop"):
        statistics += [Label(kind, level, f"{kind} {level}, {angle}") for level in levels for angle in angles]
    across = {"edge correlation": [""], "phase correlation": [" imaginary", " real"]}
    for kind, parts in across.items():
        for level in levels:
            statistics += [Label(kind, level, f"{kind} {level}, {pair}") for pair in pairs]
            if level < layout.levels:
                names = [f"{kind} {level} and {level + 1},{part} {angle}" for part in parts for angle in angles]
                statistics += [Label(kind, level + 1, name) for name in names]
    return statistics


def texture_statistics(images: Images) -> Tensor:
    """Compute the raw statistics of pyramids, N×150, in the order of `labels`.

    With ⟨·⟩ the average over all pixels, x the picture, h its high-pass, l_i its low-pass of level i, and e = a + ib
    the edges of a level and an orientation, m = |e|:

    - mean ⟨x⟩; variance ⟨x²⟩, ⟨l_i²⟩; skew ⟨l_i³⟩; kurtosis ⟨l_i⁴⟩; band-pass variance ⟨h²⟩;
    - edge mean ⟨m⟩; edge variance ⟨m²⟩; edge stop ⟨(m − m')²⟩, with m' the magnitude 2^level pixels of the band further
      along the edge, and 0 for the difference where that is outside;
    - edge correlation ⟨m_j·m_k⟩ of two orientations of a level, and ⟨m_i·m_{i+1}⟩ of an orientation at two levels;
    - phase correlation ⟨a_j·a_k⟩ of two orientations of a level, and ⟨b_i·d_{i+1}⟩ and ⟨a_i·d_{i+1}⟩, with d = 2ab/m,
      the imaginary part of the edge of the next coarser level with its phase doubled, e²/m.

    Moments are raw: nothing is subtracted.

    Brown et al. 2023, after Portilla & Simoncelli 2000.
    """
    pooled: dict[str, list[Tensor]] = {kind: [] for kind in WEIGHTS}
    pooled["mean"] = [_average(images.picture)]
    pooled["variance"] = [_product(images.picture[:, None], images.picture[:, None])]
    pooled["band-pass variance"] = [_product(images.high[:, None], images.high[:, None])]
    for low in images.low:
        first, square = low[:, None], (low * low)[:, None]
        pooled["variance"].append(_product(first, first))
        pooled["skew"].append(_product(first, square))
        pooled["kurtosis"].append(_product(square, square))
    levels = list(_levels(images))
    for number, level in enumerate(levels, 1):
        products = _products(level.magnitude)
        pooled["edge mean"].append(_average(level.magnitude))
        pooled["edge variance"].append(products.diagonal(dim1=1, dim2=2))
        pooled["edge stop"].append(_edge_stops(level.magnitude, 2**number))
        pooled["edge correlation"].append(_of_pairs(products))
        pooled["phase correlation"].append(_of_pairs(_products(level.real)))
        if number < len(levels):
            coarser = levels[number]
            half_doubled = coarser.fine_real * coarser.fine_imaginary / coarser.fine_magnitude
            pooled["edge correlation"].append(_product(level.magnitude, coarser.fine_magnitude))
            pooled["phase correlation"].append(2 * _product(level.imaginary, half_doubled))
            pooled["phase correlation"].append(2 * _product(level.real, half_doubled))
    count = len(images.picture)
    return torch.cat([value.reshape(count, -1) for values in pooled.values() for value in values], 1)


class TextureStatistics(nn.Module):
    """The weighted statistics of a pyramid: each times the weight of its kind and a power of its level.

    See `texture_statistics` for what they are.

    Args:
        layout: How the images of the pyramid lie in a row of numbers.
        weights: Weights of kinds that are to differ from the published ones.
        level_gain: Factor for each level.
    """

    def __init__(self, layout: Layout, weights: Mapping[str, float], level_gain: float = math.sqrt(2)) -> None:
        super().__init__()
        unknown = next((kind for kind in weights if kind not in WEIGHTS), None)
        if unknown is not None:
            raise AssayError(f"weights: there is no kind of statistic {unknown!r}{nearest(unknown, WEIGHTS)}")
        self.layout = layout
        weight = {**WEIGHTS, **weights}
        scale = [weight[label.kind] * level_gain**label.level for label in labels(layout)]
        self.register_buffer("scale", torch.tensor(scale), persistent=False)

    def forward(self, row: Tensor) -> Tensor:
        """Return the statistics of pyramids whose images lie in rows of numbers."""
        return texture_statistics(self.layout.images(row)) * self.get_buffer("scale")


class _Level(NamedTuple):
    """Edges of a level as fine as the level before, and as fine as their own frequencies need."""

    fine_real: Tensor
    fine_imaginary: Tensor
    fine_magnitude: Tensor
    real: Tensor
    imaginary: Tensor
    magnitude: Tensor


def _levels(images: Images) -> Iterator[_Level]:
    for number, (real, imaginary) in enumerate(zip(images.real, images.imaginary, strict=True)):
        # The smallest number above 0 keeps the phase defined, and gradients finite, where there is no edge.
        tiny = real.new_tensor(torch.finfo(real.dtype).tiny)
        magnitude = torch.sqrt(torch.addcmul(torch.addcmul(tiny, real, real), imaginary, imaginary))
        fine = (real, imaginary, magnitude)
        own = [image[..., ::2, ::2] if number else image for image in fine]
        yield _Level(*fine, *own)


def _average(image: Tensor) -> Tensor:
    return image.mean((-2, -1))


def _product(first: Tensor, second: Tensor) -> Tensor:
    """Return the average products N×K of two bands each."""
    flat = first.flatten(2)
    return (flat[:, :, None] @ second.flatten(2)[..., None])[:, :, 0, 0] / flat.shape[2]


def _products(bands: Tensor) -> Tensor:
    """Return the average products N×K×K of all pairs of bands N×K×s×s."""
    flat = bands.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


def _of_pairs(products: Tensor) -> Tensor:
    first, second = torch.triu_indices(products.shape[1], products.shape[2], 1)
    return products[:, first, second]


def _edge_stops(magnitude: Tensor, distance: int) -> Tensor:
    """Return the average squared difference of magnitudes along the edges, N×K."""
    orientations, side = magnitude.shape[1], magnitude.shape[-1]
    energies = []
    for k in range(orientations):
        # The frequencies of orientation k point to the angle πk/K from the columns towards the rows; edges cross them.
        angle = math.pi * k / orientations
        down, right = round(distance * math.cos(angle)), -round(distance * math.sin(angle))
        band, further = _shifted(magnitude[:, k], down, right)
        energies.append(((band - further) ** 2).sum((-2, -1)) / side**2)
    return torch.stack(energies, 1)


def _shifted(image: Tensor, down: int, right: int) -> tuple[Tensor, Tensor]:
    """Return the parts of an image that lie on each other when it is shifted; empty ones if none do."""
    rows, columns = max(image.shape[-2] - abs(down), 0), max(image.shape[-1] - abs(right), 0)
    top, left = max(-down, 0), max(-right, 0)
    here = image[..., top : top + rows, left : left + columns]
    there = image[..., top + down : top + down + rows, left + right : left + right + columns]
    return here, there
