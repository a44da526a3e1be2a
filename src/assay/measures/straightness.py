"""Straightness: how curved the path is that a video takes through a layer's space.

Hénaff et al. 2019; Harrington et al. 2022, Eqs. 1–4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from assay.errors import AssayError
from assay.layers import ALL, Layers
from assay.measures.base import Measure
from assay.measures.triples import as_rows, triple_sums
from assay.progress import report
from assay.stimuli.sequences import Sequences
from assay.subject import Subject, Visitor

PIXELS = "pixels"


def turning_angles(trajectory: Tensor | np.ndarray[Any, Any]) -> Tensor:
    """The T−2 angles, in degrees, between successive steps of a trajectory with time first.

    With v_t = x_{t+1} − x_t and unit vectors u = v_t/‖v_t‖, w = v_{t+1}/‖v_{t+1}‖:
    c_t = 2·atan2(‖u − w‖, ‖u + w‖), in float64 (an arccos of the dot product loses all angles below 0.03°
    in float32). NaN where a step has no length: the angle is undefined.

    Example:
        >>> square = torch.tensor([[0., 0.], [1., 0.], [1., 1.], [0., 1.]])
        >>> turning_angles(square)
        tensor([90., 90.], dtype=torch.float64)

    Eqs. 1–3.
    """
    x = torch.as_tensor(trajectory)
    if x.dim() < 2:
        raise AssayError(f"a trajectory is time × dimensions, not {tuple(x.shape)}")
    if len(x) < 3:
        raise AssayError(f"curvature needs at least 3 points, the trajectory has {len(x)}")
    steps = x.flatten(1).double().diff(dim=0)
    units = steps / steps.norm(dim=1, keepdim=True)
    difference, total = (units[1:] - units[:-1]).norm(dim=1), (units[1:] + units[:-1]).norm(dim=1)
    return torch.rad2deg(2 * torch.atan2(difference, total))


def curvature(trajectory: Tensor | np.ndarray[Any, Any], batched: bool | None = None) -> Any:
    """Global curvature in degrees: the mean of the defined angles between successive steps.

    c = mean_t c_t (see `turning_angles`); T points give T−2 angles.

    Args:
        trajectory: Time first (T × dimensions); or a batch of trajectories (batch × T × dimensions …).
        batched: Whether the first axis is a batch. By default an array of two axes is one trajectory and
            one of three or more is a batch; pass False for a trajectory of pictures (T×C×H×W).

    Returns:
        A float for one trajectory, a NumPy array for a batch; NaN where no angle is defined.

    Example:
        >>> t = torch.arange(13, dtype=torch.float64) * (2 * torch.pi / 12)
        >>> round(curvature(torch.stack([t.cos(), t.sin()], 1)), 6)   # a regular 12-gon turns by 360°/12
        30.0

    Eq. 4 (whose index is loose: the released code averages the T−2 angles).
    """
    x = torch.as_tensor(trajectory)
    if batched is None:
        batched = x.dim() >= 3
    if batched:
        return np.array([curvature(one, batched=False) for one in x])
    if not torch.isfinite(x).all():
        raise AssayError("the trajectory has NaN or infinite values")
    return turning_angles(x).nanmean().item()


@dataclass(frozen=True)
class Straightness(Measure):
    """Curvature of every sequence at every layer, and its change from the pixels of the same frames.

    Frames stream through the network in batches; of each layer only the last two frames are kept, so memory
    does not grow with the number of frames.

    Table: one row per layer and sequence; the layer ``pixels`` is the input, before any preprocessing.
    ``curvature_deg`` is the mean of ``n`` turning angles, ``change_deg`` its difference from the pixels
    (negative: the layer straightens), ``undefined`` the number of angles left out because two consecutive
    frames were identical, there or in the layer's space. ``status`` is ``ok``, ``undefined`` (no angle is
    defined) or ``not finite`` (the layer returned NaN or infinity).

    Args:
        sequences: What to show.
        layers: Which layers; all by default.
        batch_size: Frames per forward pass; by default 32 on a CPU and 256 on a GPU.
    """

    sequences: Sequences
    layers: Layers = ALL
    batch_size: int | None = None

    name: ClassVar[str] = "straightness"
    value: ClassVar[str] = "curvature_deg"

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            raise AssayError(f"batch_size={self.batch_size} must be at least 1")

    def check(self, subject: Subject) -> None:
        """One frame through the network; the layers must exist."""
        frames, _ = next(iter(self.sequences.batches(1)))
        _show(subject, torch.from_numpy(frames), lambda layer, output: None, self.layers)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show all sequences once."""
        owners: list[np.ndarray[Any, Any]] = []
        size = self.batch_size or (256 if subject.device.type == "cuda" else 32)

        def batches() -> Iterator[Tensor]:
            for frames, owner in self.sequences.batches(size):
                owners.append(owner)
                yield torch.from_numpy(frames)

        angles = follow(subject, batches(), self.layers)
        return self._table(np.concatenate(owners), angles)

    def _table(self, owner: np.ndarray[Any, Any], paths: dict[str, np.ndarray[Any, Any]]) -> pd.DataFrame:
        clips = self.sequences.clips
        for i, clip in enumerate(clips):
            if (frames := int((owner == i).sum())) < 3:
                raise AssayError(f"clip {clip.name!r} has {frames} frames: curvature needs at least 3")
        within = (owner[2:] == owner[:-2]) if len(owner) > 2 else np.zeros(0, bool)
        still = np.isnan(paths[PIXELS])
        rows = []
        reference: dict[int, float] = {}
        for order, (layer, angles) in enumerate(paths.items()):
            undefined = still | np.isnan(angles)
            for i, clip in enumerate(clips):
                mine = within & (owner[2:] == i)
                kept = mine & ~undefined
                finite = not np.isinf(angles[mine]).any()
                value = float(angles[kept].mean()) if finite and kept.any() else float("nan")
                if layer == PIXELS:
                    reference[i] = value
                rows.append(
                    {
                        "layer": layer,
                        "order": order,
                        "sequence": clip.name,
                        "condition": clip.condition,
                        "curvature_deg": value,
                        "change_deg": value - reference[i],
                        "n": int(kept.sum()),
                        "undefined": int((mine & undefined).sum()),
                        "status": "not finite" if not finite else "ok" if kept.any() else "undefined",
                    }
                )
        return pd.DataFrame(rows)

    def summary(self, table: pd.DataFrame) -> pd.DataFrame:
        """Per layer and condition: mean over sequences, SEM, 95 % interval (Student's t), n."""
        rows = []
        for (order, layer, condition), group in table.groupby(["order", "layer", "condition"], sort=False):
            good = group[group["status"] == "ok"]
            mean, sem, low, high = _mean_interval(good["curvature_deg"].to_numpy())
            rows.append(
                {
                    "layer": layer,
                    "order": order,
                    "condition": condition,
                    "curvature_deg": mean,
                    "sem_deg": sem,
                    "low": low,
                    "high": high,
                    "change_deg": good["change_deg"].mean(),
                    "n": len(good),
                    "left_out": len(group) - len(good),
                }
            )
        return pd.DataFrame(rows)


def follow(subject: Subject, batches: Iterable[Tensor], layers: Layers = ALL) -> dict[str, np.ndarray[Any, Any]]:
    """Show a stream of frames and follow the path of every layer, and of the frames themselves (``pixels``).

    Args:
        subject: Who is shown the frames.
        batches: The frames in order, N×C×H×W, on any device; N may vary.
        layers: Which layers.

    Returns:
        By layer, for T frames, the T−2 turning angles in degrees. NaN where the angle is undefined (a step
        without length, or frames of different shapes); infinity where the layer was not finite.
    """
    tracks = {PIXELS: _Track()}
    shape = None
    shown = 0
    for frames in batches:
        if frames.shape[1:] != shape:  # other frames, other spaces: no angle spans the change
            shape = frames.shape[1:]
            for track in tracks.values():
                track.restart()
        seen = _Seen()

        def visit(layer: str, output: Tensor, at: int = shown, seen: _Seen = seen) -> None:
            tracks.setdefault(layer, _Track()).extend(output, at, seen)

        frames = frames.to(subject.device)
        visit(PIXELS, frames)
        _show(subject, frames, visit, layers)
        shown += len(frames)
        report(f"{subject.name}: frames", shown)
    return _collect(tracks, shown)


def _show(subject: Subject, frames: Tensor, visit: Visitor, layers: Layers) -> None:
    try:
        subject.visit(frames, visit, layers)
    except RuntimeError as error:  # torch's own complaint about shapes
        raise AssayError(
            f"{subject.name!r} cannot see frames of shape {tuple(frames.shape[1:])}: {str(error).splitlines()[0]}"
        ) from error


def _angles(sums: Tensor) -> Tensor:
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


def _mean_interval(values: np.ndarray[Any, Any]) -> tuple[float, float, float, float]:
    n = len(values)
    if n == 0:
        return (float("nan"),) * 4
    mean = float(values.mean())
    if n == 1:
        return mean, float("nan"), float("nan"), float("nan")
    sem = float(values.std(ddof=1) / np.sqrt(n))
    half = float(stats.t.ppf(0.975, n - 1)) * sem
    return mean, sem, mean - half, mean + half


class _Track:
    """One layer's path: the last two frames, and the sums (a, b, s, p) of every triple of frames so far."""

    def __init__(self) -> None:
        self.last: Tensor | None = None
        self.found: list[tuple[int, Tensor]] = []

    def restart(self) -> None:
        self.last = None

    def extend(self, frames: Tensor, at: int, seen: _Seen) -> None:
        """Add frames ``at``, ``at + 1``, …; the sums end with the triple that the last of them closes."""
        if not seen.has(frames, self.last):
            rows = as_rows(frames)
            sums = triple_sums(rows, self.last)
            tail = rows[-2:]
            if len(tail) < 2 and self.last is not None:
                tail = torch.cat([self.last, tail])[-2:]
            seen.remember(frames, self.last, sums, tail.clone())
        self.last = seen.last
        self.found.append((at + len(frames) - len(seen.sums), seen.sums))


def _collect(tracks: dict[str, _Track], shown: int) -> dict[str, np.ndarray[Any, Any]]:
    """Per layer the shown − 2 angles, one for each triple of frames; NaN where none was formed."""
    everything = {id(sums): sums for track in tracks.values() for _, sums in track.found}
    angles = _angles(torch.cat(list(everything.values()))).cpu().numpy()  # one transfer for all
    starts = dict(zip(everything, np.cumsum([0, *map(len, everything.values())]), strict=False))
    out = {}
    for layer, track in tracks.items():
        out[layer] = np.full(max(shown - 2, 0), np.nan)
        for first, sums in track.found:
            start = starts[id(sums)]
            out[layer][first - 2 : first - 2 + len(sums)] = angles[start : start + len(sums)]
    return out


class _Seen:
    """What the layer before made of its frames: a container returns the very tensor of its last child."""

    def __init__(self) -> None:
        self.frames: Tensor | None = None

    def has(self, frames: Tensor, before: Tensor | None) -> bool:
        return (
            frames is self.frames
            and before is self.before
            and not frames.is_inference()
            and frames._version == self.version
        )

    def remember(self, frames: Tensor, before: Tensor | None, sums: Tensor, last: Tensor) -> None:
        self.frames, self.before, self.sums, self.last = frames, before, sums, last
        self.version = -1 if frames.is_inference() else frames._version
