"""Augmentation robustness: how much a network changes its mind when a picture is flipped, recoloured or cut.

Aithal, Kashyap & Subramanyam 2021, "Robustness to augmentations as a generalization metric": second place of the
competition on predicting generalization; augmentations and penalties are those of the code they released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.arrays import varied_input, with_varied_input
from assay.core.errors import AssayError, nearest
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import Predictor, chosen, require_sample, row
from assay.stats.bootstrap import bootstrap_draws, percentile_interval
from assay.stats.differences import interval
from assay.stats.evidence import Evidence
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import Array, batches, class_scores, require_classes
from assay.subject.subject import Subject

PENALTIES = {
    "flip": 6.0, "saturation": 1.0, "crop": 2.0, "sobel": 3.0, "brightness": 1.0, "flip saturation": 12.0, "erase": 2.0,
}  # fmt: skip


def saturation(x: Tensor, factor: Tensor) -> Tensor:
    """RGB pictures in [0, 1] with the saturation of each multiplied by a factor, hue and value kept.

    With V = max_c x_c and S = 1 − min_c x_c/V, the new saturation is min(1, f·S): x_c ← V − (V − x_c)·min(f, 1/S).
    Grey pictures of one channel stay as they are.

    Example:
        >>> saturation(torch.tensor([0.8, 0.6, 0.4]).view(1, 3, 1, 1), torch.tensor([0.5])).flatten()
        tensor([0.8000, 0.7000, 0.6000])
    """
    value, least = x.amax(1, keepdim=True), x.amin(1, keepdim=True)
    most = torch.where(value > least, value / (value - least), torch.inf)
    return value - (value - x) * torch.minimum(factor.to(x).view(-1, 1, 1, 1), most)


def central_crop(x: Tensor, share: float = 0.9) -> Tensor:
    """Pictures without a border of ⌊(1 − share)·n/2⌋ at each side, resized bilinearly to the size they had.

    Example:
        >>> central_crop(torch.arange(4.0).expand(1, 1, 4, 4), 0.5)[0, 0, 0]
        tensor([1.0000, 1.2500, 1.7500, 2.0000])
    """
    height, width = x.shape[2:]
    top, left = (int((n - n * share) / 2) for n in (height, width))
    middle = x[:, :, top : height - top, left : width - left]
    return F.interpolate(middle, (height, width), mode="bilinear", align_corners=False)


def sobel(x: Tensor) -> Tensor:
    """Horizontal Sobel derivative of each channel, divided by 4, plus one half; edges are reflected.

    Example:
        >>> sobel(torch.tensor([0.0, 0.0, 0.25, 0.25]).expand(1, 1, 3, 4))[0, 0, 1]
        tensor([0.5000, 0.7500, 0.7500, 0.5000])
    """
    kernel = x.new_tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    channels = x.shape[1]
    padded = F.pad(x, (1, 1, 1, 1), mode="reflect")
    return F.conv2d(padded, kernel.expand(channels, 1, 3, 3), groups=channels) / 4 + 0.5


def erase(x: Tensor, boxes: Tensor) -> Tensor:
    """Pictures with a box of each set to zero; boxes are rows of top, left, height, width.

    Example:
        >>> erase(torch.ones(1, 1, 2, 3), torch.tensor([[0, 1, 1, 2]]))[0, 0]
        tensor([[1., 0., 0.],
                [1., 1., 1.]])
    """
    top, left, height, width = (b.view(-1, 1, 1, 1).to(x.device) for b in boxes.T)
    rows = torch.arange(x.shape[2], device=x.device).view(1, 1, -1, 1)
    columns = torch.arange(x.shape[3], device=x.device).view(1, 1, 1, -1)
    inside = (rows >= top) & (rows < top + height) & (columns >= left) & (columns < left + width)
    return x.masked_fill(inside, 0.0)


def penalties(before: Tensor, after: Tensor, penalty: float) -> Tensor:
    """Cost of each input: the penalty if its predicted class changed, else the change of that class's probability.

    |max softmax f(x) − max softmax f(x')| where argmax f(x) = argmax f(x'), otherwise ``penalty``.

    Example:
        >>> before, after = torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 1.0]])
        >>> penalties(before, after, 6.0)
        tensor([0., 6.])
    """
    p, q = before.softmax(1).amax(1), after.softmax(1).amax(1)
    return torch.where(before.argmax(1) == after.argmax(1), (p - q).abs(), penalty)


@dataclass(frozen=True)
class AugmentationRobustness(Measure):
    """How a network's predictions change under seven augmentations of a sample of the training set.

    ``flip`` left-right; ``saturation`` by a factor from [0.6, 1.6); ``crop`` of the central 0.9; ``sobel`` edges;
    ``brightness`` plus 0.5, not clipped; ``flip saturation`` both; ``erase`` a box to zero, its sides from
    √(0.02·0.3·H·W) to √(0.4·H·W/0.3). Factors and boxes are drawn for each picture (the released code draws one factor
    for each batch). Pictures of one channel have no saturation.

    Table: ``accuracy``; for every augmentation ``flip drop`` and so on, of the accuracy, and ``flip penalty``, the mean
    of `penalties`; over all ``mean drop``, and ``penalty``, the sum of the penalties (the released code's score is
    minus this, times the number of pictures). ``low``, ``high``: 95 % interval (bootstrap over inputs), ``n`` inputs.

    Args:
        data: The pictures and labels that the network was trained on, of 1 or 3 channels; saturation needs values in
            [0, 1]. Of several inputs by name, the first floating-point one is augmented; the others stay as they are.
        augmentations: Names of the augmentations to show; all seven by default.
        samples: Number of pictures, drawn at random; None for all. The released code takes 12,864.
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the random sample, factors, boxes and resamples.
        batch_size: Number of pictures per pass; by default 32 on a CPU and 256 on a GPU.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.AdaptiveMaxPool2d((1, 2)), torch.nn.Flatten())   # which half is lighter
        >>> data = Labelled(np.array([[[[9, 0], [0, 0]]], [[[0, 0], [0, 9]]]], dtype=np.uint8), np.array([0, 1]))
        >>> table = AugmentationRobustness(data, ("flip",), bootstrap=0)(Subject(net)).set_index("quantity")
        >>> table.value[["accuracy", "flip drop", "penalty"]].tolist()
        [1.0, 1.0, 6.0]
    """

    data: Labelled
    augmentations: tuple[str, ...] = tuple(PENALTIES)
    samples: int | None = 5000
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "augmentation"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "mean drop"
    higher_is: ClassVar[str] = "less robust to augmentation"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        require_sample(self.samples, self.bootstrap)
        for name in self.augmentations:
            if name not in PENALTIES:
                raise AssayError(f"unknown augmentation {name!r}{nearest(name, PENALTIES)}")
        if not self.augmentations or len(set(self.augmentations)) < len(self.augmentations):
            raise AssayError(f"augmentations={self.augmentations}: give at least one, none twice")
        shape = self.data.shape
        if len(shape) != 3 or shape[0] not in (1, 3) or min(shape[1:]) < 2:
            raise AssayError(f"{self.data.source} has inputs of shape {shape}: give pictures of 1 or 3 channels")
        recoloured = shape[0] == 3 and any("saturation" in name for name in self.augmentations)
        inputs = self.data.varied
        if recoloured and inputs.dtype != np.uint8 and not 0 <= inputs.min() <= inputs.max() <= 1:
            raise AssayError(
                f"{self.data.source} has values outside [0, 1], which have no saturation: leave saturation out of "
                "augmentations, or give pixels and let Subject(preprocess=…) normalise them"
            )

    def check(self, subject: Subject) -> None:
        """Check that the network distinguishes at least as many classes as the data have."""
        require_classes(subject, self.data)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show every picture as it is and augmented; accuracies, drops and penalties."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show every picture as it is and augmented; the table, and its values in resamples of the pictures."""
        self.check(subject)
        data = self.data.sample(self.samples, self.seed)
        drawn = _Drawn(len(data), data.shape, self.seed)
        outcomes: list[Array] = []  # per input: right as it is; right and penalty under each augmentation
        done = 0
        for x, labels in batches(data, batch_size(subject, self.batch_size), subject.device):
            before = class_scores(subject, x)
            pictures = varied_input(x)
            assert pictures is not None  # as `__post_init__` made sure
            columns = [(before.argmax(1) == labels).double()]
            for name in self.augmentations:
                augmented = drawn.augmented(name, pictures, slice(done, done + len(pictures)))
                after = class_scores(subject, with_varied_input(x, augmented))
                columns += [(after.argmax(1) == labels).double(), penalties(before, after, PENALTIES[name]).double()]
            outcomes.append(torch.stack(columns, 1).cpu().numpy())
            done += len(pictures)
            report(f"{subject.name}: augmented", done, len(data))
        return Measured.of(self._rows(np.concatenate(outcomes)))

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The accuracy, and the mean drop of accuracy under the augmentations.

        A network that is not clearly better than the answer "the most frequent class" has nothing to lose: its drop is
        left out.
        """
        accuracy, drop = from_rows(
            measured,
            [("accuracy", "accuracy", "higher"), ("mean drop", "drop of accuracy under augmentation", "lower")],
        )
        accuracy = replace(accuracy, proportion=True)
        chance = np.bincount(self.data.labels).max() / len(self.data)
        low, _ = interval(accuracy) or (accuracy.value, accuracy.value)
        if low <= chance:
            drop = replace(drop, value=np.nan, draws=np.zeros(0), status="its accuracy is that of chance")
        return [accuracy, drop]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the whole penalty, the mean drop and the drop of each augmentation, named ``augmentation …``.

        They are expected to rise with the gap (Aithal et al. 2021).
        """
        values = chosen(table, ["penalty", "mean drop", *(f"{name} drop" for name in self.augmentations)])
        return {Predictor(f"augmentation {name}", direction=1): value for name, value in values.items()}

    def _rows(self, outcomes: Array) -> Iterator[dict[str, Any]]:
        right = outcomes[:, :1]
        after = outcomes[:, 1::2]
        costs = outcomes[:, 2::2]
        drops = right - after
        values = {"accuracy": right[:, 0], "mean drop": drops.mean(1), "penalty": costs.sum(1)}
        values |= {f"{name} drop": drops[:, i] for i, name in enumerate(self.augmentations)}
        values |= {f"{name} penalty": costs[:, i] for i, name in enumerate(self.augmentations)}
        table = np.stack(list(values.values()), 1)
        draws = bootstrap_draws(table, lambda t: t.mean(0), self.bootstrap, self.seed)
        low, high = (np.broadcast_to(bound, len(values)) for bound in percentile_interval(draws))
        for i, quantity in enumerate(values):
            drawn = draws[:, i] if len(draws) else None
            yield row(quantity, table[:, i].mean(), len(table), low=low[i], high=high[i], draws=drawn)


class _Drawn:
    """The random part of the augmentations, drawn for each picture: factors of saturation, and boxes to erase."""

    def __init__(self, n: int, shape: tuple[int, ...], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.factors = {name: torch.from_numpy(rng.uniform(0.6, 1.6, n)) for name in ("saturation", "flip saturation")}
        area = shape[1] * shape[2]
        least, most = max(1, round(sqrt(0.02 * 0.3 * area))), round(sqrt(0.4 * area / 0.3))
        sides = [rng.integers(least, max(least + 1, min(most, side)), n) for side in shape[1:]]
        corners = [rng.integers(0, side - length + 1) for side, length in zip(shape[1:], sides, strict=True)]
        self.boxes = torch.from_numpy(np.stack([*corners, *sides], 1))

    def augmented(self, name: str, x: Tensor, rows: slice) -> Tensor:
        """A batch of pictures, augmented; ``rows`` are the numbers of the pictures in it."""
        augmentations: dict[str, Callable[[], Tensor]] = {
            "flip": lambda: x.flip(3),
            "saturation": lambda: saturation(x, self.factors[name][rows]),
            "crop": lambda: central_crop(x),
            "sobel": lambda: sobel(x),
            "brightness": lambda: x + 0.5,
            "flip saturation": lambda: saturation(x.flip(3), self.factors[name][rows]),
            "erase": lambda: erase(x, self.boxes[rows]),
        }
        return augmentations[name]()
