"""Paths: what a stream of frames does in every layer's space, followed without keeping it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.straightness.triples import as_rows, triple_sums
from assay.subject.layers import ALL, Layers
from assay.subject.subject import Subject

PIXELS = "pixels"


def follow(subject: Subject, batches: Iterable[Tensor], layers: Layers = ALL) -> dict[str, np.ndarray[Any, Any] | None]:
    """Show a stream of frames and follow the path of every layer, and of the frames themselves (``pixels``).

    Args:
        subject: Who is shown the frames.
        batches: The frames in order, N×C×H×W, on any device; N may vary.
        layers: Which layers.

    Returns:
        By layer, for T frames, the T−2 turning angles in degrees. NaN where the angle is undefined (a step
        without length, or frames of different shapes); infinity where the layer was not finite; None for a
        layer whose first axis is not the frames (tokens first, patches folded into the batch).
    """
    tracks = {PIXELS: _Track()}
    not_per_frame: set[str] = set()
    shape = None
    shown = 0
    with subject.showing():
        for frames in batches:
            if frames.shape[1:] != shape:  # other frames, other spaces: no angle spans the change
                shape = frames.shape[1:]
                for track in tracks.values():
                    track.restart()
            count = len(frames)

            def visit(layer: str, output: Tensor, at: int = shown, count: int = count) -> None:
                if layer == PIXELS:
                    raise AssayError(f"a layer of {subject.name!r} is called {PIXELS!r}, as is the input: rename it")
                track = tracks.setdefault(layer, _Track())
                if subject.is_per_sample(layer) and len(output) == count and layer not in not_per_frame:
                    track.extend(output, at)
                else:
                    not_per_frame.add(layer)

            frames = frames.to(subject.device)
            tracks[PIXELS].extend(frames, shown)
            subject.visit(frames, visit, layers, repeats=False)
            shown += count
            report(f"{subject.name}: frames", shown)
    angles = {layer: None if layer in not_per_frame else path for layer, path in _collect(tracks, shown).items()}
    repeats = subject.repeats(layers)
    return {PIXELS: angles[PIXELS]} | {layer: angles[repeats.get(layer, layer)] for layer in subject.choose(layers)}


def angles_from_sums(sums: Tensor) -> Tensor:
    """Angles in degrees from rows of a = ‖v‖², b = ‖w‖², s = ‖w − v‖², p = ‖w + v‖².

    Multiplying `turning_angles`' unit vectors out: √(ab)·‖u − w‖² = s − (√a − √b)² and
    √(ab)·‖u + w‖² = p − (√a − √b)². Each is a sum of squares, so nothing cancels for steps of equal length;
    at worst (a straight line at uneven speed) rounding leaves 10⁻⁶ degrees.
    """
    a, b, s, p = sums.unbind(1)
    uneven = (a.sqrt() - b.sqrt()).square()
    angles = torch.rad2deg(2 * torch.atan2((s - uneven).clamp_min(0).sqrt(), (p - uneven).clamp_min(0).sqrt()))
    angles[(a == 0) | (b == 0)] = torch.nan
    angles[~torch.isfinite(sums).all(1)] = torch.inf
    return angles


class _Track:
    """One layer's path: the last two frames, and the sums (a, b, s, p) of every triple of frames so far."""

    def __init__(self) -> None:
        self.last: Tensor | None = None
        self.sums: list[tuple[int, Tensor]] = []

    def restart(self) -> None:
        self.last = None

    def extend(self, frames: Tensor, at: int) -> None:
        """Add frames ``at``, ``at + 1``, …; the sums end with the triple that the last of them closes."""
        rows = as_rows(frames)
        sums = triple_sums(rows, self.last)
        tail = rows[-2:]
        if len(tail) < 2 and self.last is not None:
            tail = torch.cat([self.last, tail])[-2:]
        self.last = tail.clone()
        self.sums.append((at + len(frames) - len(sums), sums))


def _collect(tracks: dict[str, _Track], shown: int) -> dict[str, np.ndarray[Any, Any]]:
    """Per layer the shown − 2 angles, one for each triple of frames; NaN where none was formed."""
    everything = {id(sums): sums for track in tracks.values() for _, sums in track.sums}
    angles = angles_from_sums(torch.cat(list(everything.values()))).cpu().numpy()  # one transfer for all
    starts = dict(zip(everything, np.cumsum([0, *map(len, everything.values())]), strict=False))
    out = {}
    for layer, track in tracks.items():
        out[layer] = np.full(max(shown - 2, 0), np.nan)
        for first, sums in track.sums:
            start = starts[id(sums)]
            out[layer][first - 2 : first - 2 + len(sums)] = angles[start : start + len(sums)]
    return out
