"""How many inputs a GPU has room for in one pass."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from assay.subject.subject import Subject

MOST: Final = 1024  # inputs: beyond it launching kernels costs nothing more, and the host would hold gigabytes
_TRIED: Final = 8  # inputs of the pass that is measured
_SHARE: Final = 0.5  # of the memory that is free; convolutions of larger batches may want more room than in proportion


def fitting_batch(subject: Subject, one: Tensor, most: int = MOST) -> int:
    """The largest power of two of inputs that fit in half of the free memory of the subject's GPU, at most ``most``.

    A few copies of the input are shown, and the memory that this takes at its peak is counted for each.

    Args:
        subject: A network on a GPU.
        one: One input, 1 × its shape.
        most: The largest number to return.
    """
    device = subject.device
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    subject.visit(one.expand(_TRIED, *one.shape[1:]), lambda layer, output: None)
    each = max(torch.cuda.max_memory_allocated(device) - before, 1) / _TRIED
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + unused
    return room(_SHARE * free, each, most)


def room(free: float, each: float, most: int) -> int:
    """The largest power of two of things of ``each`` bytes in ``free`` bytes; at least 1, at most ``most``.

    Example:
        >>> room(free=1000, each=100, most=1024)
        8
    """
    fit = int(min(free // each, most))
    return 1 << max(fit.bit_length() - 1, 0)
