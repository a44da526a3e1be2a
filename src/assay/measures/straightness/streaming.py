"""Follows the path that a stream of frames takes through the space of every layer, without keeping the stream."""

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
        subject: The network that is shown the frames.
        batches: The frames in order, N×C×H×W, on any device; N may vary. A network of videos takes each batch as one
            video, which it is shown from rest.
        layers: Layers to follow; all by default.

    Returns:
        By layer, for T frames, the T−2 turning angles in degrees. NaN where the angle is undefined (a step
        without length, or frames of different shapes); infinity where the layer was not finite; None for a
        layer whose first axis is not the frames (tokens first, patches folded into the batch).
    """
    paths = _Paths(subject, layers)
    with subject.showing():
        for frames in batches:
            paths.show(frames)
    angles = paths.angles()
    repeats = subject.repeats(layers)
    return {PIXELS: angles[PIXELS]} | {layer: angles[repeats.get(layer, layer)] for layer in subject.choose(layers)}


def angles_from_sums(sums: Tensor) -> Tensor:
    """Turning angles in degrees from rows of a = ‖v‖², b = ‖w‖², s = ‖w − v‖², p = ‖w + v‖².

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


class _Paths:
    """The paths of all layers that are followed, and of the pixels."""

    def __init__(self, subject: Subject, layers: Layers) -> None:
        self.subject = subject
        self.layers = layers
        self.tracks = {PIXELS: _Track()}
        self.not_per_frame: set[str] = set()
        self.shown = 0  # frames before the batch at hand
        self.count = 0  # frames in the batch at hand
        self.frame_shape: torch.Size | None = None

    def show(self, frames: Tensor) -> None:
        """Show the next frames, and extend the path of every layer."""
        if frames.shape[1:] != self.frame_shape:  # other frames, other spaces: no angle spans the change
            self.frame_shape = frames.shape[1:]
            for track in self.tracks.values():
                track.restart()
        self.count = len(frames)
        frames = frames.to(self.subject.device)
        self.tracks[PIXELS].extend(frames, self.shown)
        self.subject.visit(frames[None] if self.subject.video else frames, self._visit, self.layers, repeats=False)
        self.shown += self.count
        report(f"{self.subject.name}: frames", self.shown)

    def _visit(self, layer: str, output: Tensor) -> None:
        if layer == PIXELS:
            raise AssayError(f"a layer of {self.subject.name!r} is called {PIXELS!r}, as is the input: rename it")
        if self.subject.video and output.dim() > 1 and len(output) == 1:
            output = output[0]  # the frames of the one clip shown
        track = self.tracks.setdefault(layer, _Track())
        if self.subject.is_per_sample(layer) and len(output) == self.count and layer not in self.not_per_frame:
            track.extend(output, self.shown)
        else:
            self.not_per_frame.add(layer)

    def angles(self) -> dict[str, np.ndarray[Any, Any] | None]:
        """The turning angles of each layer, one for each triple of frames; None where its output is not per frame."""
        angles = _collect(self.tracks, self.shown)
        return {layer: None if layer in self.not_per_frame else path for layer, path in angles.items()}


class _Track:
    """The path of one layer: the last two frames, and the sums (a, b, s, p) of every triple of frames so far."""

    def __init__(self) -> None:
        self.last: Tensor | None = None
        self.sums: list[tuple[int, Tensor]] = []

    def restart(self) -> None:
        """Forget the last frames, so that no triple spans what came before and what comes next."""
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
    """The angles of each layer, one for each triple of the frames shown; NaN where no triple was formed."""
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
