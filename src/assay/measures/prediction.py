"""Next-frame error: how far a network's predictions are from the frames that came, beside those of no model at all.

Lotter, Kreiman, Cox 2017; human-model similarity 2018.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from assay.core.arrays import as_tensor
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.base import Measure, require_batch_size
from assay.measures.evidence import Measured
from assay.measures.table import Predictor
from assay.stats.evidence import Evidence
from assay.stats.ratio import ratio_interval, ratio_parts
from assay.stimuli.clips import Clip
from assay.stimuli.sequences import Sequences
from assay.subject.as_subject import as_subject
from assay.subject.subject import Subject
from assay.subject.taking import showing

Array = np.ndarray[Any, Any]


def next_frame_error(frames: Tensor | Array, predictions: Tensor | Array) -> float:
    """Mean squared error of predicted frames, without the first, of which nothing can be known.

    MSE = mean over t ≥ 1, channels and pixels of (x_t − x̂_t)², in float64. (The mean of the square; the square of the
    mean, which the 2018 paper writes, is a slip.)

    Args:
        frames: The frames x, T×… for one video, or B×T×C×H×W for several.
        predictions: The predictions x̂ of the same shape, each made from the frames before it.

    Example:
        >>> frames = torch.tensor([[0.0], [1.0], [0.5]])
        >>> next_frame_error(frames, torch.tensor([[9.0], [0.0], [0.5]]))
        0.5
    """
    x, predicted = as_tensor(frames), as_tensor(predictions)
    if x.shape != predicted.shape:
        raise AssayError(f"predictions are {tuple(predicted.shape)}, the frames {tuple(x.shape)}: give one for each")
    return float(_squares(_over_time(x)[:, 1:], _over_time(predicted)[:, 1:]).mean())


def copy_last_error(frames: Tensor | Array) -> float:
    """Mean squared error of the prediction that nothing changes: of each frame from the second, the one before it.

    Example:
        >>> copy_last_error(torch.tensor([[0.0], [1.0], [0.5]]))   # (1 + 1/4) / 2
        0.625
    """
    x = _over_time(as_tensor(frames))
    return float(_squares(x[:, 1:], x[:, :-1]).mean())


@dataclass(frozen=True)
class NextFrameError(Measure):
    """Mean squared error of a network's predictions of the next frame, beside that of copying the last frame.

    Asked of networks of videos that predict: those whose module has ``video = True`` and ``prediction``, the name of
    the layer that predicts each frame from those before it (as `assay.PredNet`).

    Table: one row per clip. ``mse`` is the mean over all frames but the first of each sequence (`next_frame_error`),
    ``copy_last_mse`` the error of predicting that nothing changes, on the same frames, and ``gain`` how much smaller
    the network's is (negative: larger); ``frames`` is the number of predicted frames; ``status``: ``ok``, or ``not
    finite``. `summary` gives the means over all frames with their 95 % intervals over scenes.

    Args:
        sequences: The clips to show, which the network was not trained on.
        length: Number of frames of the sequences that clips are cut into, one after another; the network is shown each
            from rest. A shorter rest of two frames or more is shown too. None shows clips whole.
        batch_size: Number of sequences per pass; by default 4 on a CPU and 32 on a GPU.
    """

    sequences: Sequences
    length: int | None = 10
    batch_size: int | None = None

    name: ClassVar[str] = "next-frame-error"
    value: ClassVar[str] = "mse"
    higher_is: ClassVar[str] = "less predictive"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        if self.length is not None and self.length < 2:
            raise AssayError(f"length={self.length} must be at least 2: the first frame cannot be predicted")

    def check(self, subject: Subject) -> None:
        """Check that the network predicts, that every clip has two frames, and that it takes two."""
        layer = _prediction_layer(subject)
        for number, clip in enumerate(self.sequences):
            report("clips looked at", number, len(self.sequences))
            frames = list(islice(clip.checked_frames(), 2))
            _require_two(clip, len(frames))
        with showing("next-frame error shows videos"):
            subject.visit(torch.from_numpy(np.stack(frames))[None], lambda name, output: None, [layer])

    def __call__(self, subject: Subject | nn.Module) -> pd.DataFrame:
        """Show all clips; one row for each."""
        subject = as_subject(subject)
        layer = _prediction_layer(subject)
        clips = self.sequences.clips
        sums = np.zeros((len(clips), 2))
        pixels = np.zeros(len(clips))
        frames = np.zeros(len(clips), dtype=np.int64)
        shown = 0
        for batch, owners in self._batches(self.batch_size or (32 if subject.device.type == "cuda" else 4)):
            with showing("next-frame error shows videos"):
                predicted = subject.record(batch, [layer])[layer]
            targets = subject.network.prepare(batch)
            if predicted.shape != targets.shape:
                raise AssayError(
                    f"layer {layer!r} of {subject.name!r}, its prediction, is {tuple(predicted.shape)} for frames "
                    f"{tuple(targets.shape)}: it must predict each"
                )
            errors = torch.stack(
                [_squares(targets[:, 1:], predicted[:, 1:]), _squares(targets[:, 1:], targets[:, :-1])], -1
            )
            np.add.at(sums, owners, errors.flatten(1, -2).sum(1).cpu().numpy())
            np.add.at(pixels, owners, targets[0, 1:].numel())
            np.add.at(frames, owners, targets.shape[1] - 1)
            shown += batch.shape[0] * batch.shape[1]
            report(f"{subject.name}: frames", shown)
        means = sums / pixels[:, None]
        return pd.DataFrame(
            {
                "sequence": [clip.name for clip in clips],
                "scene": [clip.scene or clip.name for clip in clips],
                "mse": means[:, 0],
                "copy_last_mse": means[:, 1],
                "gain": means[:, 1] - means[:, 0],
                "frames": frames,
                "status": np.where(np.isfinite(means[:, 0]), "ok", "not finite"),
            }
        )

    def summary(self, table: pd.DataFrame) -> pd.DataFrame:
        """One row: the means over all frames, each with its interval over scenes (`assay.stats.ratio`).

        Columns: ``mse``, ``low``, ``high``; ``copy_last_mse``; ``gain``, ``gain_low``, ``gain_high``; ``n``, the number
        of scenes, of which the intervals need two; ``frames``; ``status``.
        """
        scenes = _by_scene(table)
        frames = scenes["frames"].to_numpy()
        row: dict[str, Any] = {}
        for column, bounds in (("mse", ("low", "high")), ("copy_last_mse", ()), ("gain", ("gain_low", "gain_high"))):
            sums = scenes[column].to_numpy()
            row[column] = float(sums.sum() / frames.sum())
            row |= dict(zip(bounds, ratio_interval(sums, frames), strict=False))
        finite = np.isfinite(row["mse"])
        row |= {"n": len(scenes), "frames": int(frames.sum()), "status": "ok" if finite else "not finite"}
        return pd.DataFrame([row])

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The mean squared error of the next frame, and what each scene adds to it."""
        scenes = _by_scene(measured.table)
        parts = ratio_parts(scenes["mse"].to_numpy(), scenes["frames"].to_numpy())
        items = dict(zip(map(str, scenes.index), map(float, parts), strict=True))
        value = float(parts.mean())
        status = "ok" if np.isfinite(value) else "not finite"
        return [Evidence("next-frame error", value, "", "lower", items, n=len(items), status=status)]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the error of the next frame."""
        return {Predictor("next-frame error"): float(self.summary(table)["mse"].iloc[0])}

    def _batches(self, size: int) -> Iterator[tuple[Tensor, Array]]:
        """All sequences, some of one shape at a time: B×T×C×H×W, and the number of the clip of each."""
        waiting: list[Array] = []
        owners: list[int] = []
        for number, clip in enumerate(self.sequences):
            for sequence in self._cut(clip):
                if waiting and (len(waiting) == size or sequence.shape != waiting[0].shape):
                    yield torch.from_numpy(np.stack(waiting)), np.array(owners)
                    waiting, owners = [], []
                waiting.append(sequence)
                owners.append(number)
        yield torch.from_numpy(np.stack(waiting)), np.array(owners)

    def _cut(self, clip: Clip) -> Iterator[Array]:
        """The sequences of a clip, T×C×H×W each."""
        frames = clip.checked_frames()
        count = 0
        while part := list(islice(frames, self.length)):
            count += len(part)
            if len(part) > 1:
                yield np.stack(part)
        _require_two(clip, count)


def _by_scene(table: pd.DataFrame) -> pd.DataFrame:
    """The sums over the frames of each scene, and their number."""
    weighted = table[["mse", "copy_last_mse", "gain"]].mul(table["frames"], axis=0)
    by_scene = weighted.assign(frames=table["frames"]).groupby(table["scene"], sort=False)
    sums = by_scene.sum()
    unknown = weighted.isna().groupby(table["scene"], sort=False).any()  # which pandas' sum leaves out
    return sums.mask(unknown.reindex(columns=sums.columns, fill_value=False))


def _prediction_layer(subject: Subject) -> str:
    layer = getattr(subject.module, "prediction", None)
    if not subject.video or not isinstance(layer, str):
        raise AssayError(
            f"next-frame error is asked of networks of videos that predict: {subject.name!r} does not say so, by "
            "video = True and prediction = the name of the layer that predicts each frame"
        )
    return layer


def _require_two(clip: Clip, frames: int) -> None:
    if frames < 2:
        raise AssayError(f"clip {clip.name!r} has {frames} frames: the first cannot be predicted, give at least 2")


def _over_time(frames: Tensor) -> Tensor:
    """Return videos with the batch first; those of fewer than five axes are one video."""
    if frames.dim() < 2:
        raise AssayError(f"frames are T×C×H×W or B×T×C×H×W, not {tuple(frames.shape)}")
    videos = frames if frames.dim() == 5 else frames[None]
    if videos.shape[1] < 2:
        raise AssayError(f"the video has {videos.shape[1]} frames: the first cannot be predicted, give at least 2")
    return videos


def _squares(a: Tensor, b: Tensor) -> Tensor:
    return (a.double() - b.double()).square()
