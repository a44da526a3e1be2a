"""Cluster separation: how well a layer keeps the classes apart.

Davies & Bouldin 1979; as a measure of generalization Natekar & Sharma 2020, "Representation based complexity measures
for predicting generalization in deep learning".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.arrays import as_tensor, real_numbers
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import Measured
from assay.measures.table import NAN, Predictor, row
from assay.stats.bootstrap import bootstrap_interval
from assay.stats.evidence import Evidence
from assay.stimuli.labelled import Labelled
from assay.subject.anatomy import layer_module, require_visible_layers, weighted_layers
from assay.subject.classifier import Array
from assay.subject.dry_run import OUTPUT
from assay.subject.subject import Subject

QUANTITY = "davies-bouldin index"
_MOST_OVERLAP = 0.5  # share of the inputs in a round, above which rounds say next to nothing about other inputs


def davies_bouldin_index(x: Tensor | Array, labels: Tensor | Array) -> float:
    """How large clusters are beside the distance to the one most like them; low is well separated.

    With centroids c_i, S_i the mean distance of a cluster's points to c_i, and M_ij = ‖c_i − c_j‖₂:
    DB = (1/K) Σ_i max_{j≠i} (S_i + S_j)/M_ij.

    A cluster of one point has S_i = 0. Where two centroids coincide the index is infinite, and NaN if both clusters
    are points (scikit-learn counts such a pair as 0, the best there is).

    Args:
        x: The points, N × dimensions.
        labels: The cluster of each point; at least two clusters.

    Example:
        >>> x = np.array([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
        >>> davies_bouldin_index(x, np.array([0, 0, 1, 1]))   # (1 + 1)/4
        0.5

    Davies & Bouldin 1979, with their p = 2 and q = 1.
    """
    points = real_numbers(as_tensor(x)).flatten(1)
    if len(points) != len(labels) or not len(points):
        raise AssayError(f"there are {len(points)} points and {len(labels)} labels")
    if not points.isfinite().all():
        raise AssayError("the points have NaN or infinite values")
    counts = torch.unique(as_tensor(labels), return_inverse=True, return_counts=True)
    cluster, count = (t.to(points.device) for t in counts[1:])
    if len(count) < 2:
        raise AssayError(f"separation needs at least 2 clusters, there is {len(count)}")
    centroid = points.new_zeros(len(count), points.shape[1]).index_add(0, cluster, points) / count[:, None]
    scatter = points.new_zeros(len(count)).index_add(0, cluster, (points - centroid[cluster]).norm(dim=1)) / count
    distance = torch.cdist(centroid, centroid, compute_mode="donot_use_mm_for_euclid_dist")  # exact differences
    ratio = (scatter[:, None] + scatter) / distance
    ratio.fill_diagonal_(0)
    return float(ratio.amax(1).mean())


@dataclass(frozen=True)
class ClusterSeparation(Measure):
    """The Davies–Bouldin index of the classes in an early layer's responses to the training set.

    The mean over ``rounds`` of the index of ``images`` inputs drawn at random; maps are pooled by their maximum over
    squares of side ``pool``. A round with one class only has no index and is left out; a class with one image has no
    scatter, counts as the definition says, and is mentioned in the status.

    Table: one row: ``value`` is the mean over rounds, ``low``, ``high`` its 95 % interval (bootstrap over rounds, as
    if they shared no inputs; a report shows the wider interval that counts what they share), ``n`` the rounds.
    ``status``: ``ok``, ``undefined`` (no round has an index, or two classes coincide), or what is wrong with how many
    rounds.

    Args:
        data: The inputs and labels that the network was trained on.
        layer: Layer to measure; by default the first convolution, or the first layer with weights where there is none.
        rounds: Number of random draws of inputs.
        images: Number of inputs in each draw.
        pool: Side of the squares over which maps are pooled; 1 for no pooling.
        bootstrap: Number of resamples for the interval; 0 for none.
        seed: Seed of the random draws and resamples.
        batch_size: Number of inputs per pass; by default 32 on a CPU and 256 on a GPU.

    Example:
        >>> data = Labelled(np.array([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]]), np.array([0, 0, 1, 1]))
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2))
        >>> with torch.no_grad():
        ...     _ = net[0].weight.copy_(torch.eye(2))
        >>> round(ClusterSeparation(data)(Subject(net)).value.item(), 6)
        0.5
    """

    data: Labelled
    layer: str | int | float | None = None
    rounds: int = 10
    images: int = 120
    pool: int = 4
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "clusters"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "davies-bouldin index"
    higher_is: ClassVar[str] = "less separated classes"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        for setting, least in (("rounds", 1), ("images", 2), ("pool", 1), ("bootstrap", 0)):
            if getattr(self, setting) < least:
                raise AssayError(f"{setting}={getattr(self, setting)} must be at least {least}")
        if self.data.labels.min() == self.data.labels.max():
            raise AssayError(f"the data ({self.data.source}) have one class: separation needs at least 2")

    def check(self, subject: Subject) -> None:
        """Check that the network takes an input and has the layer."""
        subject.visit(self.data.shown(slice(0, 1)), lambda layer, output: None, 0)
        self._chosen(subject)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Draw inputs, show them, and compute the index of their classes, round after round; one row."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Draw inputs, show them, and compute the index of their classes; the table, and the index of every round."""
        self.check(subject)
        layer = self._chosen(subject)
        rng = np.random.default_rng(self.seed)
        indices: list[float] = []
        rounds_with_a_single_image = 0
        rounds_with_one_class = 0
        for done in range(self.rounds):
            report(f"{subject.name}: rounds", done, self.rounds)
            drawn = rng.permutation(len(self.data))[: self.images]
            labels = self.data.labels[drawn]
            counts = np.unique_counts(labels).counts
            if len(counts) < 2:
                rounds_with_one_class += 1
                continue
            rounds_with_a_single_image += bool((counts == 1).any())
            indices.append(davies_bouldin_index(self._features(subject, layer, drawn), labels))
        remarks = {
            "with one class left out": rounds_with_one_class,
            "with a class of one image": rounds_with_a_single_image,
        }
        said = (f"{n} round{'' if n == 1 else 's'} {remark}" for remark, n in remarks.items() if n)
        status = ", ".join(said) or "ok"
        value = float(np.mean(indices)) if indices else NAN
        if not np.isfinite(value):
            return Measured.of([row(QUANTITY, NAN, len(indices), layer=layer, status="undefined")])
        low, high = bootstrap_interval(np.array(indices), np.mean, self.bootstrap, self.seed)
        bounds = {"low": low, "high": high, "draws": indices}
        return Measured.of([row(QUANTITY, value, len(indices), layer=layer, status=status, **bounds)])

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The mean index; its rounds are paired where they do not use the same inputs most of the time."""
        only = measured.table.iloc[0]
        overlap = self.images / len(self.data)
        rounds = measured.draws.get(0, np.zeros(0)) if overlap <= _MOST_OVERLAP else ()
        items = {f"round {i + 1}": float(index) for i, index in enumerate(rounds)}
        name = f"Davies–Bouldin index of the classes at {only['layer']}"
        n, status = int(only["n"]), str(only["status"])
        return [Evidence(name, float(only["value"]), "", "lower", items, n=n, status=status, overlap=overlap)]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the mean Davies–Bouldin index over rounds, expected to rise with the gap (Natekar & Sharma 2020)."""
        return {Predictor(QUANTITY, direction=1): float(table["value"].item())}

    def budget(self, table: pd.DataFrame) -> str:
        """How many images each round takes, and how many rounds there are."""
        return f"{self.images} inputs × {self.rounds} rounds"

    def _chosen(self, subject: Subject) -> str:
        if self.layer is None:
            layers = weighted_layers(subject)
            maps = [name for name in layers if getattr(layer_module(subject, name), "kernel_size", None)]
            if not layers:
                require_visible_layers(subject)
            if not maps and not layers and not list(subject.module.parameters()):
                raise AssayError(f"{subject.name!r} has no weights: give layer=…")
            return (maps or layers or [OUTPUT])[0]
        return subject.choose_one(self.layer)

    def _features(self, subject: Subject, layer: str, rows: Array) -> Tensor:
        size = batch_size(subject, self.batch_size)
        kept: list[Tensor] = []

        def keep(name: str, output: Tensor) -> None:
            whole = output.dim() < 2 or len(output) != len(rows[start : start + size])
            if whole or not output.isfinite().all():
                raise AssayError(f"layer {name!r} of {subject.name!r} gives no finite tensor with a row per input")
            kept.append(real_numbers(_pooled(output, self.pool)).flatten(1).clone())

        for start in range(0, len(rows), size):
            subject.visit(self.data.shown(rows[start : start + size], subject.device), keep, layer)
        return torch.cat(kept)


def _pooled(output: Tensor, side: int) -> Any:
    """Maps pooled by their maximum over whole squares, smaller maps over all places; what is no map stays as it is."""
    if output.dim() != 4 or side == 1:
        return output
    if output.is_complex():
        raise AssayError("complex maps cannot be pooled by their maximum: give pool=1")
    height, width = output.shape[2:]
    return F.max_pool2d(output, (min(side, height), min(side, width)))
