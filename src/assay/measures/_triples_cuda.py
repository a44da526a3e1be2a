"""`triple_sums` on a GPU: one kernel that reads every frame once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(x, out, frames, units, stride, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Each program takes ``block`` units and walks through time, so a frame is read once."""
    program = tl.program_id(0)
    columns = program.to(tl.int64) * block + tl.arange(0, block)
    inside = columns < units
    before = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
    now = tl.load(x + stride + columns, mask=inside, other=0.0).to(tl.float32)
    step = now - before
    length = tl.sum((step * step).to(tl.float64))
    for t in range(2, frames):
        after = tl.load(x + tl.cast(t, tl.int64) * stride + columns, mask=inside, other=0.0).to(tl.float32)
        next_step = after - now
        bend = next_step - step
        span = after - before
        next_length = tl.sum((next_step * next_step).to(tl.float64))
        row = out + (program.to(tl.int64) * (frames - 2) + (t - 2)) * 4
        tl.store(row, length)
        tl.store(row + 1, next_length)
        tl.store(row + 2, tl.sum((bend * bend).to(tl.float64)))
        tl.store(row + 3, tl.sum((span * span).to(tl.float64)))
        before, now, step, length = now, after, next_step, next_length


def triple_sums_cuda(rows: Tensor) -> Tensor:
    """See `assay.measures.triples.triple_sums`; ``rows`` is T × D on a CUDA device."""
    if rows.dtype == torch.float64 or rows.stride(1) != 1:
        rows = rows.float().contiguous()
    frames, units = rows.shape
    programs = triton.cdiv(units, _BLOCK)
    partial = torch.empty(programs, frames - 2, 4, dtype=torch.float64, device=rows.device)
    with torch.cuda.device(rows.device):
        _kernel[(programs,)](rows, partial, frames, units, rows.stride(0), block=_BLOCK)
    return partial.sum(0)
