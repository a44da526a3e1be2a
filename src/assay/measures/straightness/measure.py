"""Straightness: how curved the path is that a video, or a text, takes through a layer's space.

Hénaff et al. 2019; Harrington et al. 2022, Eqs. 1–4; Hosseini & Fedorenko 2023 for texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.arrays import as_tensor
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import Measured
from assay.measures.straightness.streaming import PIXELS, follow
from assay.measures.straightness.tokens import TOKENS, follow_texts
from assay.measures.table import Predictor
from assay.stats.evidence import Better, Evidence
from assay.stats.paired import standard_error, t_interval
from assay.stimuli.clips import Clip
from assay.stimuli.sequences import Sequences
from assay.stimuli.texts import Text, Texts
from assay.subject.fitting import fitting_batch
from assay.subject.layers import ALL, Layers
from assay.subject.subject import Subject
from assay.subject.taking import showing


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
    x = as_tensor(trajectory)
    if x.dim() < 2:
        raise AssayError(f"a trajectory is time × dimensions, not {tuple(x.shape)}")
    if len(x) < 3:
        raise AssayError(f"curvature needs at least 3 points, the trajectory has {len(x)}")
    if x.is_complex():
        x = torch.view_as_real(x)
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
    x = as_tensor(trajectory)
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

    Frames stream through the network in batches; of each layer only the last two frames are kept, and four
    numbers for every three frames. A network of videos is shown each clip whole, from rest, and the path of a layer is
    its states frame by frame. A language model is shown texts (`assay.stimuli.as_texts`), those of equal length
    together and without padding, and the path of a layer is its states token by token; what stands in for the pixels
    are the ``tokens``, all equally far apart.

    Table: one row per layer and sequence; the layer ``pixels`` is the input, before any preprocessing. Sequences of one
    ``scene``, such as several movements over one photograph, are alike; by default each is its own.
    ``curvature_deg`` is the mean of ``n`` turning angles, ``change_deg`` its difference from the same angles of the
    pixels (negative: the layer straightens), ``undefined`` the number of angles left out because two consecutive
    frames were identical, there or in the layer's space. ``status`` is ``ok``, ``undefined`` (no angle is
    defined), ``not finite`` (the layer returned NaN or infinity) or ``not per frame`` (its output does not have
    one entry per frame), which of texts is ``not per token``.

    Args:
        sequences: The clips or texts to show.
        layers: Layers to measure; all by default.
        batch_size: Number of frames, or of texts of equal length, per pass; by default 32 on a CPU, and on a GPU 256
            texts, or as many frames as half of its free memory holds, up to 1024.
    """

    sequences: Sequences
    layers: Layers = ALL
    batch_size: int | None = None

    name: ClassVar[str] = "straightness"
    value: ClassVar[str] = "curvature_deg"
    higher_is: ClassVar[str] = "more curved"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)

    def check(self, subject: Subject) -> None:
        """Check that every clip has three frames, that the network takes a frame, and that the layers exist."""
        for number, clip in enumerate(self.sequences):
            report("clips looked at", number, len(self.sequences))
            _require_three(clip, sum(1 for _ in islice(clip.checked_frames(), 3)))
        if isinstance(self.sequences, Texts):
            first = as_tensor(self.sequences.texts[0].ids)[None]
        else:
            frames, _ = next(iter(self.sequences.batches(1)))
            first = torch.from_numpy(frames[None] if subject.video else frames)
        with showing(self._what):
            subject.visit(first, lambda layer, output: None, self.layers)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show all sequences once; one row per layer and sequence."""
        owners: list[np.ndarray[Any, Any]] = []
        if isinstance(self.sequences, Texts):
            for text in self.sequences:
                _require_three(text, text.count())
            together = batch_size(subject, self.batch_size)
            with showing(self._what):
                return self._table(*follow_texts(subject, self.sequences, self.layers, together))

        size = self.batch_size
        if size is None and subject.device.type == "cuda" and not subject.video:
            with showing(self._what):
                size = fitting_batch(subject, torch.from_numpy(next(iter(self.sequences.batches(1)))[0]))
        size = batch_size(subject, size)

        def batches() -> Iterator[Tensor]:
            for frames, owner in self.sequences.whole_clips() if subject.video else self.sequences.batches(size):
                owners.append(owner)
                yield torch.from_numpy(frames)

        with showing(self._what):
            angles = follow(subject, batches(), self.layers)
        return self._table(np.concatenate(owners), angles)

    @property
    def _what(self) -> str:
        return f"straightness shows {'texts' if isinstance(self.sequences, Texts) else 'frames of sequences'}"

    @property
    def _input(self) -> str:
        """What the input is called, from which changes are counted."""
        return TOKENS if isinstance(self.sequences, Texts) else PIXELS

    def _table(self, owner: np.ndarray[Any, Any], paths: dict[str, np.ndarray[Any, Any] | None]) -> pd.DataFrame:
        clips = self.sequences.clips
        for i, clip in enumerate(clips):
            _require_three(clip, int((owner == i).sum()))
        within = (owner[2:] == owner[:-2]) if len(owner) > 2 else np.zeros(0, bool)
        pixels = paths[self._input]
        assert pixels is not None
        absent = "not per token" if self._input == TOKENS else "not per frame"
        rows = []
        for order, (layer, path) in enumerate(paths.items()):
            angles = np.full(len(pixels), np.nan) if path is None else path
            undefined = np.isnan(pixels) | np.isnan(angles)
            for i, clip in enumerate(clips):
                of_clip = within & (owner[2:] == i)
                kept = of_clip & ~undefined
                finite = not np.isinf(angles[of_clip]).any()
                value = float(angles[kept].mean()) if finite and kept.any() else float("nan")
                reference = float(pixels[kept].mean()) if kept.any() else float("nan")  # of the same angles
                status = "ok" if kept.any() else "undefined"
                rows.append(
                    {
                        "layer": layer,
                        "order": order,
                        "sequence": clip.name,
                        "scene": clip.scene or clip.name,
                        "condition": clip.condition,
                        "curvature_deg": value,
                        "change_deg": value - reference,
                        "n": int(kept.sum()),
                        "undefined": int((of_clip & undefined).sum()),
                        "status": absent if path is None else status if finite else "not finite",
                    }
                )
        return pd.DataFrame(rows)

    def summary(self, table: pd.DataFrame) -> pd.DataFrame:
        """Mean over sequences of each layer and condition, with its standard error and 95 % interval (Student's t).

        Returns:
            One row per layer and condition. ``layer`` and ``order``, its place from the input, which is 0;
            ``condition``, ``natural`` or the name of a control; ``curvature_deg`` with ``sem_deg``, ``low`` and
            ``high``, over sequences; ``change_deg``, the mean difference from the input, sequence by sequence, with
            ``change_low`` and ``change_high``, over scenes, of which clips of one scene make one; ``n``, the number of
            sequences in the means; and ``left_out``, that of sequences whose status is not ``ok`` there.
        """
        rows = []
        scenes = self._scenes()
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
                    **_change_interval(good, scenes),
                    "n": len(good),
                    "left_out": len(group) - len(good),
                }
            )
        return pd.DataFrame(rows)

    def _scenes(self) -> dict[str, str]:
        """The scene of each sequence, by name; a sequence without one is its own."""
        return {clip.name: clip.scene or clip.name for clip in self.sequences.clips}

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The change of curvature from the pixels, scene by scene: at the last layer, and the mean over all layers."""
        table = measured.table
        evidence = []
        scenes = self._scenes()
        for condition, group in table.groupby("condition", sort=False):
            inside = group[(group["order"] > 0) & (group["status"] == "ok")]
            if inside.empty:
                continue
            last = inside[inside["order"] == inside["order"].max()].set_index("sequence")["change_deg"]
            mean = inside.groupby("sequence", sort=False)["change_deg"].mean()
            of = "" if condition == "natural" else f", {str(condition).replace('_', ' ')}"
            for name, changes in (("at the last layer", last), ("mean of layers", mean)):
                quantity = f"change of curvature from the {self._input}, {name}{of}"
                by_scene = changes.groupby(changes.index.map(scenes), sort=False).mean()
                items = {str(scene): float(value) for scene, value in by_scene.items()}
                better: Better = "lower" if condition == "natural" else ""  # a fade is straight: nothing to straighten
                evidence.append(Evidence(quantity, float(changes.mean()), "°", better, items, n=len(items)))
        return evidence

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the mean change of curvature from the pixels, at the last layer and at the layer where it is lowest."""
        inside = table[(table["order"] > 0) & (table["status"] == "ok")]
        change = inside.groupby("order")["change_deg"].mean()
        last, lowest = (change.iloc[-1], change.min()) if len(change) else (float("nan"),) * 2
        return {
            Predictor("curvature change of the last layer"): float(last),
            Predictor("lowest curvature change"): float(lowest),
        }


def _require_three(clip: Clip, frames: int) -> None:
    if frames < 3:
        kind, units = ("text", "tokens") if isinstance(clip, Text) else ("clip", "frames")
        raise AssayError(f"{kind} {clip.name!r} has {frames} {units}: curvature needs at least 3")


def _change_interval(good: pd.DataFrame, scenes: dict[str, str]) -> dict[str, float]:
    """95 % interval of the mean change over scenes; NaN for fewer than two."""
    by_scene = good.groupby(good["sequence"].map(lambda name: scenes.get(name, name)), sort=False)["change_deg"].mean()
    low, high = t_interval(by_scene.to_numpy())
    return {"change_low": low, "change_high": high}


def _mean_interval(values: np.ndarray[Any, Any]) -> tuple[float, float, float, float]:
    mean = float(values.mean()) if len(values) else float("nan")
    return mean, float(standard_error(values)), *t_interval(values)
