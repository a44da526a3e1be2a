"""Perturbation response: how a network's accuracy falls as its input, or what a layer made of it, is changed.

Schiff, Quanz, Das, Chen 2021, "Predicting deep neural network generalization with perturbation response curves".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import DRAWS, Measured
from assay.measures.perturbation.curves import Curve, require_varied, show_perturbed
from assay.measures.perturbation.scores import fold_curve, gi_score, pal_score
from assay.measures.table import Predictor, require_sample
from assay.stats.bootstrap import counts, percentile_interval
from assay.stats.evidence import Better, Evidence
from assay.stimuli.labelled import Labelled
from assay.stimuli.perturbations import Perturbation, in_words
from assay.stimuli.perturbations import perturbation as perturbation_named
from assay.subject.anatomy import nonlinearity_after, require_visible_layers, weighted_layers
from assay.subject.classifier import require_classes
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
Depth = int | float | str
INPUT = "input"
SCORES = ("gi", "pal", "mean accuracy", "end accuracy", "random accuracy")


@dataclass(frozen=True)
class PerturbationResponse(Measure):
    """Accuracy against the magnitude α of a perturbation T_α of the input or of a layer's output, and its scores.

    A(α) = accuracy of f_ℓ(T_α(x^(ℓ))) on a sample of the training set. Several perturbations and layers share what
    they can: α = 0 is shown once, what comes before a layer runs once for all its magnitudes, and for mixup of the
    input so does the first affine layer, since it may come before the mixing as well as after it.

    Table: one row per point and one per score, for each perturbation and layer. ``quantity`` is ``accuracy`` (at
    ``magnitude``), ``gi`` (low is good), ``pal`` (high is good), ``mean accuracy`` (of the curve's points), ``end
    accuracy`` (at the largest magnitude: mixup accuracy for ``intra`` at layer 0, manifold mixup at layer 1) or
    ``random accuracy`` (every input at a magnitude of its own, uniform over the range). ``value`` has a 95 % interval
    ``low``, ``high`` (bootstrap over inputs), ``n`` inputs; ``left_out`` counts those alone in their class (or, between
    classes, in a batch without another). ``layer`` is as asked for, ``at`` the layer that was. ``status``: ``ok``,
    ``not finite`` (the network gave NaN or infinity), ``undefined`` (no accuracy at the smallest magnitudes).

    Args:
        data: The inputs and labels that the network was trained on. Of several inputs by name, the first
            floating-point one is perturbed; the others stay as they are. Whole numbers, such as those of words, cannot
            be perturbed, but the layers after them can.
        perturbation: Perturbation to show: a name (intra, inter, noise, rotation, translation_x, translation_y,
            color_jitter, blur, dim), a `assay.stimuli.Perturbation`, or several.
        layer: Layer to perturb: 0 is the input; 1, 2, … the layers with weights, in order; a name; a share of the depth
            such as 0.5; or several.
        nonlinearity: Whether layer 1, 2, … is taken ``after`` or ``before`` the nonlinearity that follows it, if one
            does.
        magnitudes: Number of magnitudes α, evenly over the range, or the magnitudes themselves.
        samples: Number of inputs, drawn at random; None, or more than there are, for all.
        fold: Whether to average A over ±α before Gi is taken (see `gi_score`).
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the random sample, partners, noise and resamples.
        batch_size: Number of inputs per pass; partners are drawn within a batch.

    Example:
        >>> import torch
        >>> data = Labelled(np.eye(8, dtype=np.float32), np.arange(8) // 4)
        >>> net = torch.nn.Linear(8, 2)
        >>> with torch.no_grad():
        ...     _ = net.weight.copy_(torch.eye(2).repeat_interleave(4, 1)), net.bias.zero_()
        >>> table = PerturbationResponse(data, "intra", bootstrap=0)(Subject(net))   # linear within a class: ideal
        >>> table.set_index("quantity").loc[["gi", "pal"], "value"].round(6).tolist()
        [0.0, 84.0]
    """

    data: Labelled
    perturbation: str | Perturbation | tuple[str | Perturbation, ...] = "intra"
    layer: Depth | tuple[Depth, ...] = 0
    nonlinearity: Literal["after", "before"] = "after"
    magnitudes: int | tuple[float, ...] = 21
    samples: int | None = 180 * 128
    fold: bool = False
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = 128

    name: ClassVar[str] = "perturbation"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "gi"
    higher_is: ClassVar[str] = "less robust to the perturbation"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        if self.nonlinearity not in ("after", "before"):
            raise AssayError(f"nonlinearity={self.nonlinearity!r} is not 'after' or 'before'")
        require_sample(self.samples, self.bootstrap)
        names = [p.name for p in self.perturbations]
        if not names or len(set(names)) < len(names):
            raise AssayError(f"perturbation={names}: give at least one, no name twice")
        if not self.layers or len(set(self.layers)) < len(self.layers):
            raise AssayError(f"layer={self.layers}: give at least one, none twice")
        for perturbation in self.perturbations:
            alpha = self.points(perturbation)
            if self.fold and len(alpha) > 1:
                fold_curve(alpha, np.ones(len(alpha)))

    @property
    def perturbations(self) -> tuple[Perturbation, ...]:
        """The perturbations to show, made from their names."""
        given = self.perturbation
        return tuple(map(perturbation_named, given if isinstance(given, tuple) else (given,)))

    @property
    def layers(self) -> tuple[Depth, ...]:
        """The layers to perturb, as they were asked for."""
        return self.layer if isinstance(self.layer, tuple) else (self.layer,)

    def points(self, perturbation: Perturbation) -> tuple[float, ...]:
        """The magnitudes at which a perturbation is shown."""
        if isinstance(self.magnitudes, int):
            if self.magnitudes < 2:
                raise AssayError(f"magnitudes={self.magnitudes}: a curve needs at least 2")
            return perturbation.magnitudes(self.magnitudes)
        alpha = self.magnitudes
        if not alpha or not np.isfinite(alpha).all() or not (np.diff(alpha) > 0).all():
            raise AssayError(f"magnitudes={alpha} must be finite and increasing")
        return alpha

    def check(self, subject: Subject) -> None:
        """Check that the network distinguishes as many classes as the data have, and what is to be perturbed."""
        require_classes(subject, self.data, finite=False)
        if None in [self._where(subject, layer) for layer in self.layers]:
            require_varied(subject, self.data.shown(slice(0, 1)))

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the sample at every magnitude; rows for the points of the curves and for their scores."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show the sample at every magnitude; the table, and its scores in resamples of the inputs."""
        return self.scored(subject, self.curves(subject))

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The Gi score and the mean accuracy of every curve."""
        evidence = []
        table = measured.table.reset_index(drop=True)
        directions: dict[str, Better] = {"gi": "lower", "mean accuracy": "higher"}
        for quantity, better in directions.items():
            for number, row in table[table["quantity"] == quantity].iterrows():
                kind = in_words(str(row["perturbation"]))
                of = f"{kind} at {'the input' if row['at'] == INPUT else row['at']}"
                shown = f"Gi-score (Gini) under {of}" if quantity == "gi" else f"mean accuracy under {of}"
                draws = measured.draws.get(int(str(number)), np.zeros(0))
                value, n = float(row["value"]), int(row["n"])
                evidence.append(
                    Evidence(
                        shown, value, "", better, {}, draws, n, str(row["status"]),
                        proportion=quantity == "mean accuracy", least=0.0, most=1.0,
                    )
                )  # fmt: skip
        return evidence

    def curves(self, subject: Subject) -> dict[tuple[Perturbation, Depth], Curve]:
        """Show the sample at every magnitude: whether each input was classified rightly, batch after batch."""
        self.check(subject)
        sample = self.data.drawn(self.samples, self.seed)
        points = {perturbation: self.points(perturbation) for perturbation in self.perturbations}
        where = {layer: self._where(subject, layer) for layer in self.layers}
        size = batch_size(subject, self.batch_size)
        return show_perturbed(subject, self.data, points, where, size, self.seed, sample)

    def table(self, subject: Subject, curves: Mapping[tuple[Perturbation, Depth], Curve]) -> pd.DataFrame:
        """The table of accuracies and scores of curves that were already measured."""
        return self.scored(subject, curves).table

    def scored(self, subject: Subject, curves: Mapping[tuple[Perturbation, Depth], Curve]) -> Measured:
        """The table of curves that were already measured, and its scores in resamples of the inputs."""
        rows = []
        resampled = _resampled([curve.right for curve in curves.values()], self.bootstrap, self.seed)
        for ((perturbation, layer), curve), drawn in zip(curves.items(), resampled, strict=True):
            where = {"layer": str(layer), "at": self._where(subject, layer) or INPUT}
            rows += [
                {"perturbation": perturbation.name} | where | row for row in self._rows(perturbation, curve, drawn)
            ]
        return Measured.of(rows)

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the scores of every curve, under names such as ``gi intra ℓ=0``.

        Gi is expected to rise with the gap, Pal and accuracies of perturbed inputs to fall (Schiff et al. 2021, §3.2).
        """
        scores = table[table["quantity"].isin(SCORES)]
        directions = [1 if quantity == "gi" else -1 for quantity in scores["quantity"]]
        keys = map(Predictor, scores["quantity"], scores["perturbation"], scores["layer"], directions)
        return dict(zip(keys, scores["value"], strict=True))

    # -- rows -----------------------------------------------------------------------------------------

    def _rows(self, perturbation: Perturbation, curve: Curve, drawn: Array) -> Iterator[dict[str, Any]]:
        alpha, n = self.points(perturbation), curve.right.shape[1]
        if not n:
            raise AssayError(
                f"{perturbation.name}: no input has another to be mixed with in a batch: give more, or more classes"
            )
        accuracy, finite = curve.right.mean(1, dtype=np.float64), np.asarray(curve.finite.all(1))
        common = {"n": n, "left_out": curve.left_out}
        for i, a in enumerate(alpha):
            yield {"quantity": "accuracy", "magnitude": a} | _cell(accuracy[i], drawn[:, i], finite[i]) | common
        for quantity, score in self._scores(alpha).items():
            defined = bool(finite[-1] if quantity == "random accuracy" else finite[:-1].all())
            cell = _cell(score(accuracy), score(drawn), defined)
            yield {"quantity": quantity, "magnitude": np.nan} | cell | common | {DRAWS: np.asarray(score(drawn))}

    def _scores(self, alpha: tuple[float, ...]) -> dict[str, Callable[[Array], Any]]:
        """The scores as functions of the accuracies of a curve, of which the last is at random magnitudes."""
        curves: dict[str, Callable[[Array], Any]] = {
            "gi": lambda a: gi_score(alpha, a[..., :-1], self.fold),
            "pal": lambda a: pal_score(alpha, a[..., :-1]),
        }
        single: dict[str, Callable[[Array], Any]] = {
            "mean accuracy": lambda a: a[..., :-1].mean(-1),
            "end accuracy": lambda a: a[..., -2],
            "random accuracy": lambda a: a[..., -1],
        }
        return curves | single if len(alpha) > 1 else single

    # -- where ----------------------------------------------------------------------------------------

    def _where(self, subject: Subject, layer: Depth) -> str | None:
        """The name of the layer that a setting asks for; None is the input."""
        if not isinstance(layer, int):
            return subject.choose_one(layer)
        if layer == 0:
            return None
        require_visible_layers(subject)
        names = weighted_layers(subject)
        if not 0 < layer <= len(names):
            raise AssayError(f"layer={layer}: {subject.name!r} has {len(names)} layers with weights")
        name = names[layer - 1]
        return name if self.nonlinearity == "before" else nonlinearity_after(subject, name) or name


def _resampled(curves: Sequence[Array], draws: int, seed: int) -> list[Array]:
    """The accuracies at every magnitude in resamples of the inputs, of each curve: resamples × magnitudes.

    Curves of as many inputs share their resamples, which are drawn once.
    """
    resampled: list[Array] = [np.empty((0, len(right))) for right in curves]
    for n in {right.shape[1] for right in curves} - {0}:
        of_n = [i for i, right in enumerate(curves) if right.shape[1] == n]
        together = np.concatenate([curves[i] for i in of_n]).T
        # Counts below 2²⁴ are exact in float32.
        sums = [weights.astype(np.float32) @ together for weights in counts(n, draws, seed)]
        accuracies = np.concatenate([np.empty((0, together.shape[1])), *sums]) / n
        ends = np.cumsum([len(curves[i]) for i in of_n])[:-1]
        for i, part in zip(of_n, np.split(accuracies, ends, axis=1), strict=True):
            resampled[i] = part
    return resampled


def _cell(value: Any, drawn: Array, finite: bool) -> dict[str, Any]:
    if not finite:
        return {"value": np.nan, "low": np.nan, "high": np.nan, "status": "not finite"}
    value = float(value)
    if not np.isfinite(value):
        return {"value": np.nan, "low": np.nan, "high": np.nan, "status": "undefined"}
    low, high = percentile_interval(drawn[np.isfinite(drawn)])
    return {"value": value, "low": float(low), "high": float(high), "status": "ok"}
