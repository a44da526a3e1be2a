"""Order of pictures in memory."""

from __future__ import annotations

import torch
from torch import Tensor


def channels_last(x: Tensor) -> Tensor:
    """Pictures N×C×H×W with the channels of a pixel side by side; others as they are.

    One channel is side by side anyway, but convolutions go by the strides: without them they would take grey pictures
    for the other order, and so would all that follows.

    Example:
        >>> channels_last(torch.zeros(2, 1, 4, 5)).stride()
        (20, 1, 5, 1)
    """
    if x.dim() != 4:
        return x
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    return x.as_strided(x.shape, (height * width, 1, width, 1)) if channels == 1 else x
