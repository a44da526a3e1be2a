"""Margins: how far a network is from changing its mind, at its output, its input and its layers.

Jiang, Krishnan, Mobahi, Bengio 2019, "Predicting the generalization gap in deep networks with margin distributions";
Jiang et al. 2020, "Fantastic generalization measures and where to find them".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.arrays import as_tensor, varied_input
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, require_sample, row
from assay.stats.bootstrap import bootstrap_draws, percentile_interval
from assay.stats.evidence import Evidence
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import Array, batches, require_classes
from assay.subject.dry_run import OUTPUT
from assay.subject.gradients import INPUT, differentiate
from assay.subject.layers import Layers
from assay.subject.subject import Subject

SIGNATURE = ("lower fence", "lower quartile", "median", "upper quartile", "upper fence")


def output_margins(scores: Tensor | Array, labels: Tensor | Array) -> Tensor:
    """How much larger the score of the true class is than the largest other one.

    γ = f_y − max_{j≠y} f_j; negative where the network is wrong.

    Args:
        scores: The N×K outputs of the network.
        labels: The N true classes, from 0 to K−1.

    Example:
        >>> output_margins(torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]]), torch.tensor([0, 2]))
        tensor([ 1., -4.])

    Jiang et al. 2020.
    """
    f, y = as_tensor(scores), as_tensor(labels)
    if f.dim() != 2 or f.shape[1] < 2 or y.shape != f.shape[:1]:
        raise AssayError(f"scores of shape {tuple(f.shape)} are not N×K with a label each, K at least 2")
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < f.shape[1]:
        raise AssayError(f"labels from {int(y.min())} to {int(y.max())} are not classes 0 … {f.shape[1] - 1}")
    true = f.gather(1, y[:, None])
    return (true - f.scatter(1, y[:, None], -torch.inf).amax(1, keepdim=True))[:, 0]


def boundary_distances(margins: Tensor | Array, gradients: Tensor | Array) -> Tensor:
    """First-order distance to the boundary between the true class and its largest rival.

    d = (f_y − f_j)/‖∇(f_y − f_j)‖₂; exact for a linear network, NaN where the gradient is zero.

    Args:
        margins: The N values of f_y − f_j.
        gradients: The gradient of each margin with respect to its input or layer, N×….

    Example:
        >>> boundary_distances(torch.tensor([10.0]), torch.tensor([[3.0, 4.0]]))
        tensor([2.])

    Elsayed et al. 2018; Jiang et al. 2019.
    """
    m, g = as_tensor(margins), as_tensor(gradients)
    norms = g.flatten(1).norm(dim=1)
    return torch.where(norms > 0, m / norms, torch.nan)


def quartile_signature(values: Array) -> Array:
    """A distribution in five numbers: lower fence, lower quartile, median, upper quartile, upper fence.

    Fences are the extreme values within 1.5 interquartile ranges of the quartiles: min{x ≥ Q₁ − 1.5(Q₃ − Q₁)} and
    max{x ≤ Q₃ + 1.5(Q₃ − Q₁)}.

    Example:
        >>> quartile_signature(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 100.0])).tolist()
        [1.0, 2.25, 3.5, 4.75, 5.0]

    Jiang et al. 2019; fences as of McGill, Tukey & Larsen 1978.
    """
    if not len(values) or not np.isfinite(values).all():
        raise AssayError(f"a signature needs finite values, at least one; there are {len(values)}")
    lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75))
    reach = 1.5 * (upper - lower)
    inside = values[(values >= lower - reach) & (values <= upper + reach)]
    return np.array([inside.min(), lower, median, upper, inside.max()])


@dataclass(frozen=True)
class Margins(Measure):
    """The distribution of margins on a sample of the training set.

    At the output γ = f_y − max_{j≠y} f_j. At the input and at layers the distance to the decision boundary, to first
    order, in units of the spread of what the layer makes of the data: d/√ν with d = γ/‖∇_{x^ℓ} γ‖₂ and the total
    variation ν = Σ_k ‖x^ℓ_k − x̄^ℓ‖²/N. Only inputs classified rightly have such a distance; ν is over all.

    Table: of the output (``layer`` empty) ``accuracy`` (the share of positive margins), ``mean margin``, ``margin
    p10`` and so on for ``percentiles``, and ``log inverse squared margin`` log 1/γ² for the 10th percentile γ, where
    it is positive. Of ``input`` and each layer the ``total variation`` ν, and ``normalised margin mean``, ``normalised
    margin median`` and so on for the numbers of `quartile_signature` and ``percentiles``. ``low``, ``high``: 95 %
    interval (bootstrap over inputs, ν held); ``n`` inputs. ``status``: ``ok``, why there is no value, or how many
    inputs it leaves out whose gradient is zero. Of several inputs by name, ``input`` is the first floating-point one;
    whole numbers, such as those of words, have no gradient and no such distance.

    Args:
        data: The inputs and labels that the network was trained on.
        layers: Layers to measure besides the input; none by default. The paper takes the input and three layers spread
            over the depth.
        percentiles: Percentiles of the distributions to report.
        samples: Number of inputs, drawn at random; None for all.
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the random sample and resamples.
        batch_size: Number of inputs per pass; by default 32 on a CPU and 256 on a GPU.

    Example:
        >>> data = Labelled(np.array([[3.0, 4.0], [-3.0, 4.0]]), np.array([0, 1]))
        >>> net = torch.nn.Linear(2, 2, bias=False)
        >>> with torch.no_grad():
        ...     _ = net.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        >>> table = Margins(data, bootstrap=0)(Subject(net)).set_index(["quantity", "layer"])
        >>> table.value[[("mean margin", ""), ("normalised margin mean", "input")]].tolist()   # 3 away, ν = 3²
        [6.0, 1.0]
    """

    data: Labelled
    layers: Layers | None = None
    percentiles: tuple[float, ...] = (1.0, 10.0, 50.0, 90.0)
    samples: int | None = 5000
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "margins"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "mean margin"
    higher_is: ClassVar[str] = "farther from changing its mind"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        require_sample(self.samples, self.bootstrap)
        if any(not 0 <= p <= 100 for p in self.percentiles):
            raise AssayError(f"percentiles={self.percentiles} must be from 0 to 100")

    def check(self, subject: Subject) -> None:
        """Check that the network distinguishes at least the classes of the data, and has the layers and gradients."""
        require_classes(subject, self.data)
        x, labels = next(batches(self.data, 1, subject.device))
        layers = [layer for layer in self._chosen(subject) if layer != INPUT or varied_input(x) is not None]
        differentiate(subject, x, layers, partial(output_margins, labels=labels))

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the sample once, forth and back; rows for the output, the input and each layer."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show the sample once, forth and back; the table, and its values in resamples of the inputs."""
        self.check(subject)
        data = self.data.sample(self.samples, self.seed)
        layers = self._chosen(subject)
        undifferentiated = [INPUT] if data.varied.dtype not in (np.uint8, np.float32) else []
        layers = [layer for layer in layers if layer not in undifferentiated]
        margins_by_batch: list[Array] = []
        distances: dict[str, list[Array]] = {layer: [] for layer in layers}
        spreads = {layer: _Spread() for layer in layers}
        for x, labels in batches(data, batch_size(subject, self.batch_size), subject.device):
            margin, values, gradients = differentiate(subject, x, layers, partial(output_margins, labels=labels))
            margins_by_batch.append(margin.double().cpu().numpy())
            for layer in layers:
                distances[layer].append(boundary_distances(margin.double(), gradients[layer].double()).cpu().numpy())
                spreads[layer].extend(values[layer])
            report(f"{subject.name}: margins", sum(map(len, margins_by_batch)), len(data))
        margins = np.concatenate(margins_by_batch)
        rows = list(self._output_rows(margins))
        for layer in undifferentiated:
            rows += self._undefined_rows(layer, "the inputs are whole numbers, without a gradient")
        for layer in layers:
            rows += self._layer_rows(layer, np.concatenate(distances[layer])[margins > 0], spreads[layer])
        return Measured.of(rows)

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The accuracy on the sample, and the median distance of an input to the decision boundary."""
        output = [replace(one, proportion=True) for one in from_rows(measured, [("accuracy", "accuracy", "higher")])]
        median = "median margin at the input, in units of the data's spread"
        inside = from_rows(measured, [("normalised margin median", median, "higher")], layer=INPUT)
        # Only inputs that a network gets right have a distance; resamples of different inputs cannot be paired.
        return output + [replace(evidence, common=evidence.n == output[0].n) for evidence in inside]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the quantities of the output, and the normalised margins, each named with its layer.

        Margins are expected to fall with the gap, and their inverse to rise (Bartlett et al. 2017, Jiang et al. 2019).
        Of the accuracy on these data nothing is expected.
        """
        inside = table[table["quantity"].str.startswith("normalised")]
        names = inside["quantity"] + " at " + inside["layer"]
        directions = dict.fromkeys(table["quantity"], -1) | {"accuracy": 0, "log inverse squared margin": 1}
        keys = [Predictor(name, direction=-1) for name in names]
        return chosen(table, table["quantity"], directions) | dict(
            zip(keys, inside["value"].astype(float), strict=True)
        )

    def _chosen(self, subject: Subject) -> list[str]:
        names = [] if self.layers is None else subject.choose(self.layers)
        if INPUT in names or OUTPUT in names:
            raise AssayError(f"layers={self.layers!r}: {INPUT!r} and {OUTPUT!r} are measured anyway")
        return [INPUT, *names]

    def _output_rows(self, margins: Array) -> Iterator[dict[str, Any]]:
        names = ["accuracy", "mean margin", *(f"margin p{p:g}" for p in self.percentiles)]

        def statistic(m: Array) -> Array:
            return np.array([(m > 0).mean(), m.mean(), *np.percentile(m, self.percentiles)])

        yield from self._summary_rows("", margins, names, statistic)
        tenth = float(np.percentile(margins, 10))
        positive = tenth > 0
        status = "ok" if positive else "the 10th percentile is not positive"
        yield row("log inverse squared margin", -2 * log(tenth) if positive else NAN, len(margins), status=status)

    def _layer_rows(self, layer: str, distances: Array, spread: _Spread) -> Iterator[dict[str, Any]]:
        variation = spread.variation
        yield row("total variation", variation, spread.n, layer=layer, status="ok" if variation > 0 else "constant")
        others, names = self._normalised

        def statistic(m: Array) -> Array:
            return np.array([m.mean(), *quartile_signature(m), *np.percentile(m, others)])

        defined = distances[np.isfinite(distances)]
        lost = len(distances) - len(defined)
        if variation > 0 and len(defined):
            status = f"without {lost} of zero gradient" if lost else "ok"
            yield from self._summary_rows(layer, defined / sqrt(variation), names, statistic, status)
        else:
            yield from (row(name, NAN, 0, layer=layer, status="no input has one") for name in names)

    def _undefined_rows(self, layer: str, reason: str) -> Iterator[dict[str, Any]]:
        for name in ("total variation", *self._normalised[1]):
            yield row(name, NAN, 0, layer=layer, status=reason)

    @property
    def _normalised(self) -> tuple[list[float], list[str]]:
        """The percentiles of a layer's distances besides the median, and the names of all their numbers."""
        others = [p for p in self.percentiles if p != 50]
        return others, [f"normalised margin {s}" for s in ("mean", *SIGNATURE, *(f"p{p:g}" for p in others))]

    def _summary_rows(
        self, layer: str, values: Array, names: list[str], statistic: Callable[[Array], Array], status: str = "ok"
    ) -> Iterator[dict[str, Any]]:
        draws = bootstrap_draws(values, statistic, self.bootstrap, self.seed)
        low, high = (np.broadcast_to(bound, len(names)) for bound in percentile_interval(draws))
        for i, value in enumerate(statistic(values)):
            bounds = {"low": low[i], "high": high[i], "draws": draws[:, i] if len(draws) else None}
            yield row(names[i], value, len(values), layer=layer, status=status, **bounds)


class _Spread:
    """Accumulates the total variation ν = Σ‖x − x̄‖²/N of a stream of batches."""

    def __init__(self) -> None:
        self.n = 0
        self.sum = 0.0
        self.mean: Any = 0.0

    def extend(self, values: Tensor) -> None:
        """Add a batch: its mean is merged with the running one, its squares with the running sum (Chan et al. 1979)."""
        x = values.detach().flatten(1).double()
        mean, n = x.mean(0), self.n + len(x)
        between = (mean - self.mean) * (self.n > 0)
        self.sum += float((x - mean).square().sum() + between.square().sum() * (self.n * len(x) / n))
        self.mean = self.mean + (mean - self.mean) * (len(x) / n)
        self.n = n

    @property
    def variation(self) -> float:
        """The total variation ν of all that was added."""
        return self.sum / self.n
