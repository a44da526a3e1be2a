"""A model of peripheral vision: statistics of a steerable pyramid, pooled over the whole picture."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor, nn

from assay.networks.front_ends.texture_pyramid import Layout, TexturePyramid
from assay.networks.front_ends.texture_statistics import TextureStatistics, labels


class Periphery(nn.Module):
    """Peripheral vision as 150 statistics of texture, pooled over one region, the whole picture.

    Two layers on grey frames of ``size`` pixels in [0, 1]: ``pyramid``, the images of a steerable pyramid
    (`TexturePyramid`), and ``statistics``, their raw moments and correlations (`texture_statistics`), each times the
    weight of its kind and √2^level. The names of the statistics are the attribute ``names``. Nothing in it is learned.

    The model of Brown et al. 2023 ("PeriphNet" in Harrington et al. 2022).

    Args:
        size: Height and width of the frames in pixels.
        levels: Number of levels of edges.
        orientations: Number of orientations of edges.
        periodic: Whether opposite sides of a frame touch, as in Portilla & Simoncelli 2000; else zeros surround it.
        weights: Weights of kinds of statistics that are to differ from the published ones, such as ``{"mean": 6}``.
        level_gain: Factor of the statistics for each level.

    Example:
        >>> import torch
        >>> model = Periphery(size=64)
        >>> model(torch.rand(2, 1, 64, 64)).shape, model.names[0]
        (torch.Size([2, 150]), 'mean of the picture')
    """

    def __init__(
        self,
        size: int = 224,
        levels: int = 4,
        orientations: int = 4,
        periodic: bool = False,
        weights: Mapping[str, float] | None = None,
        level_gain: float = math.sqrt(2),
    ) -> None:
        super().__init__()
        layout = Layout(size, levels, orientations)
        self.names = tuple(label.name for label in labels(layout))
        self.pyramid = TexturePyramid(layout, periodic)
        self.statistics = TextureStatistics(layout, weights or {}, level_gain)

    def forward(self, x: Tensor) -> Tensor:
        """Return the weighted statistics N×150 of grey frames N×1×S×S."""
        statistics: Tensor = self.statistics(self.pyramid(x))
        return statistics
