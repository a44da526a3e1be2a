"""`triple_sums` on a GPU: one kernel over all triples, the frames before the batch included."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_SETTINGS = {"chunk": 8192, "block": 256, "num_warps": 2}  # units per program, units at a time: fastest on an H200


@triton.jit
def _row(x, early, row, rows, earlier, units, stride, begin, lane):  # type: ignore[no-untyped-def]
    """Load one block of a row of the frames before the batch, or of the batch (its last row, past the end)."""
    row = tl.minimum(row, rows - 1)
    if row < earlier:
        place = early + row.to(tl.int64) * units + begin
    else:
        place = x + (row - earlier).to(tl.int64) * stride + begin
    return tl.load(place + lane, mask=lane < units - begin, other=0.0).to(tl.float32)


@triton.jit
def _store(out, a, b, s, p, wanted):  # type: ignore[no-untyped-def]
    tl.store(out, tl.sum(a.to(tl.float64)), mask=wanted)
    tl.store(out + 1, tl.sum(b.to(tl.float64)), mask=wanted)
    tl.store(out + 2, tl.sum(s.to(tl.float64)), mask=wanted)
    tl.store(out + 3, tl.sum(p.to(tl.float64)), mask=wanted)


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(x, early, out, rows, earlier, units, stride, chunk: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sums over one chunk of units for four triples, that is six rows read once and five steps between them.

    Each thread adds ``chunk / block`` squares in float32 before they go into float64: conversions are what a GPU
    is slowest at, and a sum of 32 keeps its relative error below 10⁻⁶, averaged out over the threads.
    """
    part, first = tl.program_id(0), tl.program_id(1) * 4
    lane = tl.arange(0, block)
    zero = tl.zeros((block,), tl.float32)
    a0, a1, a2, a3, a4 = zero, zero, zero, zero, zero
    s0, s1, s2, s3 = zero, zero, zero, zero
    p0, p1, p2, p3 = zero, zero, zero, zero
    for start in range(0, chunk, block):
        begin = part * chunk + start
        r0 = _row(x, early, first, rows, earlier, units, stride, begin, lane)
        r1 = _row(x, early, first + 1, rows, earlier, units, stride, begin, lane)
        r2 = _row(x, early, first + 2, rows, earlier, units, stride, begin, lane)
        r3 = _row(x, early, first + 3, rows, earlier, units, stride, begin, lane)
        r4 = _row(x, early, first + 4, rows, earlier, units, stride, begin, lane)
        r5 = _row(x, early, first + 5, rows, earlier, units, stride, begin, lane)
        v0, v1, v2, v3, v4 = r1 - r0, r2 - r1, r3 - r2, r4 - r3, r5 - r4
        a0, a1, a2, a3, a4 = a0 + v0 * v0, a1 + v1 * v1, a2 + v2 * v2, a3 + v3 * v3, a4 + v4 * v4
        b0, b1, b2, b3 = v1 - v0, v2 - v1, v3 - v2, v4 - v3
        s0, s1, s2, s3 = s0 + b0 * b0, s1 + b1 * b1, s2 + b2 * b2, s3 + b3 * b3
        d0, d1, d2, d3 = r2 - r0, r3 - r1, r4 - r2, r5 - r3
        p0, p1, p2, p3 = p0 + d0 * d0, p1 + d1 * d1, p2 + d2 * d2, p3 + d3 * d3
    count = rows - 2
    place = out + (part.to(tl.int64) * count + first) * 4
    _store(place, a0, a1, s0, p0, first < count)
    _store(place + 4, a1, a2, s1, p1, first + 1 < count)
    _store(place + 8, a2, a3, s2, p2, first + 2 < count)
    _store(place + 12, a3, a4, s3, p3, first + 3 < count)


def triple_sums_cuda(rows: Tensor, earlier: Tensor | None) -> Tensor:
    """The sums of `triple_sums` for rows T × D on a GPU, triples that begin in up to two earlier rows included."""
    if rows.dtype == torch.float64 or rows.stride(1) != 1:
        rows = rows.float().contiguous()
    known = 0 if earlier is None else len(earlier)
    early = rows if earlier is None else earlier.to(rows.dtype).contiguous()
    units = rows.shape[1]
    count = len(rows) + known - 2
    if count < 1:
        return torch.zeros(0, 4, dtype=torch.float64, device=rows.device)
    grid = (triton.cdiv(units, _SETTINGS["chunk"]), triton.cdiv(count, 4))
    partial = torch.empty(grid[0], count, 4, dtype=torch.float64, device=rows.device)
    with torch.cuda.device(rows.device):
        _kernel[grid](rows, early, partial, count + 2, known, units, rows.stride(0), **_SETTINGS)
    return partial.sum(0)
