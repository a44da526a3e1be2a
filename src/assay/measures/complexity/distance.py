"""Distance from initialisation: how far training moved a network's weights, layer by layer.

Jiang, Neyshabur, Mobahi, Krishnan, Bengio 2020, "Fantastic generalization measures and where to find them"; Nagarajan &
Kolter 2019, "Generalization in deep networks: the role of distance from initialization".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from assay.core.arrays import real_numbers
from assay.core.errors import AssayError
from assay.measures.base import Measure
from assay.measures.complexity.affine import Affine, affine_layers
from assay.measures.complexity.norms import Convolution, Norms, layer_spectral_norm, require_layers, without_unreached
from assay.measures.complexity.path_norm import AffineLayer
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, row
from assay.stats.evidence import Evidence
from assay.subject.network import Batch
from assay.subject.past import Past, initial_subject
from assay.subject.subject import Subject


def log_spectral_complexity(spectral: Sequence[float], distances: Sequence[float]) -> float:
    """The logarithm of the product of squared spectral norms, times the sum of squared distances relative to them.

    log(Π_i ‖W_i‖₂² · Σ_j d_j²/‖W_j‖₂²). With d_j = ‖W_j − W_j⁰‖_F this, over the squared margin, is what the bound on
    the generalization error of Pitas et al. 2017 depends on; with d_j = ‖W_j‖_F that of Neyshabur et al. 2018.

    Args:
        spectral: The spectral norm of each layer, all positive.
        distances: The distance d_j of each layer, at least one positive.

    Example:
        >>> round(np.exp(log_spectral_complexity([2.0, 3.0], [4.0, 3.0])))   # 4·9·(16/4 + 9/9)
        180

    Jiang et al. 2020, equations 29 and 30: the logarithms of "spec-init-main" and "spec-orig-main", without the margin.
    """
    norms, d = np.asarray(spectral, dtype=np.float64), np.asarray(distances, dtype=np.float64)
    if norms.shape != d.shape or norms.ndim != 1 or not len(norms):
        raise AssayError(f"{norms.size} spectral norms and {d.size} distances: give one of each for every layer")
    if not (np.isfinite([norms, d]).all() and (norms > 0).all() and (d >= 0).all() and d.any()):
        raise AssayError("spectral norms must be positive, and distances not negative and not all zero")
    logs = np.log(norms)
    relative = np.logaddexp.reduce(2 * (np.log(d[d > 0]) - logs[d > 0]))  # squares of small numbers may be zero
    return float(2 * logs.sum() + relative)


@dataclass(frozen=True)
class Moved:
    """The layers of a network, the same with W_i − W_i⁰ for weights, and the distance of all of its parameters."""

    affine: Affine
    differences: list[AffineLayer]
    parameters: float


def moved_layers(subject: Subject, shape: tuple[int, ...] | Batch | None = None) -> Moved:
    """Find how far each affine layer of a network is from what it was before training.

    In both networks a batch norm is folded into the layer before it (see `affine_layers`): before training with the
    statistics it begins with, so that W⁰ has the scale at which it was drawn.
    """
    start = affine_layers(initial_subject(subject), shape)
    end = require_layers(subject, shape)
    if [(x.name, x.weight.shape) for x in start.layers] != [(x.name, x.weight.shape) for x in end.layers]:
        raise AssayError(f"{subject.name!r} called other layers before training than after it: it has no distance")
    pairs = zip(end.layers, start.layers, strict=True)
    moves = (real_numbers(t) - real_numbers(start.weights[name].to(t)) for name, t in end.weights.items())
    return Moved(
        end,
        [replace(after, weight=after.weight - before.weight) for after, before in pairs],
        sqrt(float(torch.stack([move.square().sum().cpu() for move in moves]).sum())),
    )


@dataclass(frozen=True)
class InitialDistance(Measure):
    """How far the weights of a network are from those before training; needs the shape of an input, no data.

    Layers are those of `Norms`: W_i of the linear or convolutional layer i, the batch norm after it folded in, without
    bias. The subject carries its initial weights (``Subject(initial_weights=…)``); those of a corpus do.

    Table: ``quantity`` per ``layer``: ``frobenius distance`` ‖W_i − W_i⁰‖_F and ``spectral distance`` ‖W_i − W_i⁰‖₂.
    Of the whole network (``layer`` empty): ``squared frobenius distance`` Σ‖W_i − W_i⁰‖_F², ``squared spectral
    distance`` Σ‖W_i − W_i⁰‖₂², ``distance over spectral norm`` Σ‖W_i − W_i⁰‖_F²/‖W_i‖₂², ``log initial spectral
    complexity`` (see `log_spectral_complexity`) and ``parameter distance`` ‖θ − θ⁰‖₂ over all parameters θ as they are
    trained, biases and batch norms among them, nothing folded; |θ − θ⁰|² of complex ones. ``n`` counts layers.
    ``status``: ``ok``, or why a value is missing or what it leaves out.

    Args:
        convolution: Which spectral norm a convolution has: ``reshaped`` or ``circular``, as in `Norms`.
        shape: Shape of one input, without the batch axis; by default that of the subject's example, or in a run that of
            the stimuli of other measures.

    Example:
        >>> net = torch.nn.Linear(2, 2)
        >>> start = {name: weight.detach().clone() for name, weight in net.state_dict().items()}
        >>> with torch.no_grad():
        ...     _ = net.weight.add_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> table = InitialDistance(shape=(2,))(Subject(net, initial_weights=start)).set_index("quantity")
        >>> table.value[["frobenius distance", "spectral distance", "squared frobenius distance"]].round(5).tolist()
        [5.0, 4.0, 25.0]

    Jiang et al. 2020, equations 40 and 41: "fro-dist" and "dist-spec-init"; Dziugaite et al. 2020.
    """

    convolution: Convolution = "reshaped"
    shape: tuple[int, ...] | None = None

    name: ClassVar[str] = "distance"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "squared frobenius distance"
    higher_is: ClassVar[str] = "farther from the initial weights"
    looks_back: ClassVar[tuple[Past, ...]] = ("initial_weights",)

    def __post_init__(self) -> None:
        super().__post_init__()
        Norms(self.convolution, self.shape)  # checks both

    def check(self, subject: Subject) -> None:
        """Check that the subject carries initial weights that fit, and takes an input of the shape."""
        moved_layers(subject, self.shape)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Compute the distance of each layer and of the whole network."""
        return pd.DataFrame(self._rows(moved_layers(subject, self.shape)))

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The distance of all parameters: exact, as weights are all of it."""
        numbers = from_rows(measured, [("parameter distance", "distance from the initial weights", "")])
        return [replace(one, exact=True) for one in numbers]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take every quantity of the whole network.

        All are expected to rise with the gap, as the bounds that they come from do (Nagarajan & Kolter 2019, Neyshabur
        et al. 2019).
        """
        return chosen(table, table["quantity"], 1)

    def _rows(self, moved: Moved) -> Iterator[dict[str, Any]]:
        frobenius, spectral, norms = [], [], []
        for layer, difference in zip(moved.affine.layers, moved.differences, strict=True):
            frobenius.append(difference.weight.norm().item())
            yield row("frobenius distance", frobenius[-1], 1, layer=layer.name)
            value, status = layer_spectral_norm(difference, self.convolution)
            spectral.append(value)
            yield row("spectral distance", value, 1, layer=layer.name, status=status)
            norms.append(layer_spectral_norm(layer, self.convolution)[0])
        count, status = len(norms), without_unreached(moved.affine)
        totals = distance_totals(frobenius, spectral, norms)
        for quantity, value in totals.items():
            known = bool(np.isfinite(value))
            missing = "no layer moved, or one is zero or has no norm"
            yield row(quantity, value if known else NAN, count, status=status if known else missing)
        yield row("parameter distance", moved.parameters, count)


def distance_totals(frobenius: Sequence[float], spectral: Sequence[float], norms: Sequence[float]) -> dict[str, float]:
    """The numbers of a whole network, of the distances and the spectral norm of each layer; NaN where not defined.

    Example:
        >>> distance_totals([3.0, 4.0], [1.0, 2.0], [1.0, 2.0])["distance over spectral norm"]
        13.0
    """
    f, s, w = (np.asarray(numbers, dtype=np.float64) for numbers in (frobenius, spectral, norms))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = float((f**2 / w**2).sum())
    defined = bool(np.isfinite(relative) and f.any())
    return {
        "squared frobenius distance": float((f**2).sum()),
        "squared spectral distance": float((s**2).sum()),
        "distance over spectral norm": relative,
        "log initial spectral complexity": log_spectral_complexity(norms, frobenius) if defined else NAN,
    }
