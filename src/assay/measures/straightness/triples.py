"""Sums of squares over consecutive triples of frames: all that curvature needs, in one pass over them."""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 2**20  # numbers per block


def triple_sums(frames: Tensor, before: Tensor | None = None) -> Tensor:
    """The sums ‖y−x‖², ‖z−y‖², ‖z−2y+x‖² and ‖z−x‖² of each triple (x, y, z) of consecutive frames.

    Differences are taken in the frames' own precision (float32 at least) and accumulated in float64.

    Args:
        frames: The frames, T × units (see `as_rows`).
        before: Up to two frames that came just before them; triples that begin there are included.

    Returns:
        One row per triple that ends in ``frames`` (T − 2 plus the number of frames before, at least 0) × 4,
        float64, on the frames' device.
    """
    if frames.is_cuda:
        from assay.measures.straightness.triples_cuda import triple_sums_cuda

        return triple_sums_cuda(frames, before)
    inside = _sums(frames)
    return inside if before is None else torch.cat([_sums(torch.cat([before, frames[:2]])), inside])


def _sums(rows: Tensor) -> Tensor:
    sums = torch.zeros(max(len(rows) - 2, 0), 4, dtype=torch.float64)
    # A block of units at a time: the differences stay in the cache, and their memory is used again.
    width = max(1, _BLOCK // len(rows))
    precision = torch.float64 if rows.dtype == torch.float64 else torch.float32
    for start in range(0, rows.shape[1] if len(sums) else 0, width):
        part = rows[:, start : start + width].to(precision)
        steps = part[1:] - part[:-1]
        lengths = _squared_norms(steps)
        bends = _squared_norms(steps[1:] - steps[:-1])
        spans = _squared_norms(part[2:] - part[:-2])
        sums += torch.stack([lengths[:-1], lengths[1:], bends, spans], 1)
    return sums


def _squared_norms(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms.square()


def as_rows(frames: Tensor) -> Tensor:
    """Frames as T × units, without a copy where memory allows: a sum does not care in which order the units come."""
    if frames.is_complex():
        frames = torch.view_as_real(frames)
    if frames.dim() == 4 and frames.is_contiguous(memory_format=torch.channels_last):
        frames = frames.permute(0, 2, 3, 1)
    return frames.flatten(1) if frames.dim() > 1 else frames[:, None]
