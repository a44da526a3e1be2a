"""PAC-Bayes bounds: how much noise the weights bear, beside how far they are from where they began.

McAllester 1999; Dziugaite & Roy 2017; Neyshabur et al. 2017; Jiang, Neyshabur, Mobahi, Krishnan, Bengio 2020,
"Fantastic generalization measures and where to find them".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.arrays import as_tensor, real_numbers
from assay.core.errors import AssayError
from assay.measures.base import Measure, batch_size
from assay.measures.complexity.moved_weights import PerturbedWeights
from assay.measures.complexity.sharpness import EPSILON, Kind, Sharpness
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, row
from assay.stats.bootstrap import percentile_interval
from assay.stats.evidence import Evidence
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import Array, require_classes
from assay.subject.past import Past, initial_subject
from assay.subject.subject import Subject

CONSTANT = 10  # of Jiang et al.'s bound; it is the same for all networks
_KINDS: tuple[Kind, ...] = ("sigma", "sigma magnitude")


def pac_bayes(distance: Tensor | Array, sigma: float, inputs: int) -> float:
    """The PAC-Bayes measure of noise that is the same for all weights.

    μ = ‖d‖₂²/(4σ²) + log(m/σ) + 10. For a σ that was fixed before the data were seen, with probability 1 − 1/m or more
    the expected error under the noise exceeds that on the m training inputs by no more than √(μ/(m − 1)). `PacBayes`
    searches for σ on the training set, which the bound does not pay for: its values order networks and guarantee
    nothing. ‖d‖²/(2σ²) is the Kullback–Leibler divergence between noise of standard deviation σ around the weights and
    the same noise around the point that d is the distance from.

    Args:
        distance: What the weights are less that point: w − w⁰, or w for the origin.
        sigma: Standard deviation of the noise.
        inputs: Number m of training inputs.

    Example:
        >>> round(pac_bayes(torch.tensor([3.0, 4.0]), sigma=0.5, inputs=100), 4)   # 25 + log 200 + 10
        40.2983

    Jiang et al. 2020, equations 48 and 49: "pac-bayes-init" and "pac-bayes-orig".
    """
    d = _vector(distance)
    _require(sigma, inputs)
    return float(d.square().sum()) / (4 * sigma**2) + log(inputs / sigma) + CONSTANT


def pac_bayes_magnitude(
    reference: Tensor | Array, moved: Tensor | Array, sigma: float, inputs: int, epsilon: float = EPSILON
) -> float:
    """The PAC-Bayes measure of noise in proportion to the weights.

    μ = ¼ Σ_i log((ε² + (σ² + 1)·‖r‖₂²/ω) / (ε² + σ²·d_i²)) + log(m/σ) + 10, for ω weights. Where r = d, the sum is half
    the divergence of noise of standard deviations √(σ²d_i² + ε²) around the weights from noise that is the same in all
    directions around the point that d is the distance from, at the size of the latter that makes it smallest.

    Args:
        reference: r: w − w⁰ for "init", w for "orig".
        moved: d = w − w⁰, in both as published. So "orig" is no divergence; its own would have w here too.
        sigma: Size σ of the noise relative to the weights.
        inputs: Number m of training inputs.
        epsilon: Noise that weights of zero have as well.

    Example:
        >>> d = torch.tensor([1.0, 1.0])   # equal distances: ½ log((σ² + 1)/σ²) + log(m/σ) + 10
        >>> round(pac_bayes_magnitude(d, d, sigma=0.5, inputs=100, epsilon=0.0), 4)
        16.103

    Jiang et al. 2020, equations 56 and 57: "pac-bayes-mag-init" and "pac-bayes-mag-orig".
    """
    r, d = _vector(reference), _vector(moved)
    _require(sigma, inputs)
    if r.shape != d.shape:
        raise AssayError(f"{r.numel()} and {d.numel()} weights: both must be of the same network")
    if epsilon < 0 or (epsilon == 0 and not d.all()):
        raise AssayError(f"epsilon={epsilon} must be positive where a weight has not moved")
    widest = epsilon**2 + (sigma**2 + 1) * r.square().sum() / len(r)
    own = epsilon**2 + sigma**2 * d.square()
    return float((widest.log() - own.log()).sum()) / 4 + log(inputs / sigma) + CONSTANT


@dataclass(frozen=True)
class PacBayes(Measure):
    """PAC-Bayes bounds of a network, from its initial weights and from the origin, by the noise that it bears.

    σ and the size relative to the weights are those of `Sharpness`: the largest noise that costs no more than ``drop``
    of the accuracy. w is what the noise is added to: all weights and biases, batch norm folded in; w⁰ is the same of
    the network before training (``Subject(initial_weights=…)``), whose batch norms have the statistics they begin
    with. The real and imaginary parts of a complex weight are two weights. m is the number of inputs of ``data``, of
    which ``samples`` are shown.

    Table: ``sigma`` and ``sigma magnitude``; ``pac-bayes init``, ``pac-bayes orig`` (see `pac_bayes`) and ``pac-bayes
    flatness`` 1/σ²; the same with ``pac-bayes magnitude`` (see `pac_bayes_magnitude`). ``low``, ``high``: 95 % interval
    (bootstrap over inputs and draws of noise), ``n`` inputs. ``status``: ``ok``, or beyond which end of the range that
    is searched the size lies.

    Args:
        data: The inputs and labels that the network was trained on.
        drop: Loss of accuracy that defines the size of the noise.
        draws: Number of draws of noise over which the accuracy is averaged.
        steps: Number of steps of the search for the size.
        samples: Number of inputs, drawn at random; None for all.
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the random sample, noise and resamples.
        batch_size: Number of inputs per pass.

    Example:
        >>> net = torch.nn.Linear(4, 2, bias=False)
        >>> start = {"weight": torch.zeros(2, 4)}
        >>> with torch.no_grad():
        ...     _ = net.weight.copy_(torch.tensor([[2.0], [0.0]]).expand(2, 4))
        >>> data = Labelled(np.eye(4), np.zeros(4, dtype=int))
        >>> table = PacBayes(data, bootstrap=0)(Subject(net, initial_weights=start)).set_index("quantity").value
        >>> bool(table["pac-bayes init"] == table["pac-bayes orig"])                          # it began at the origin
        True

    Jiang et al. 2020, appendix C: "pac-bayes-init", "pac-bayes-orig", "pac-bayes-flatness", "pac-bayes-mag-init",
    "pac-bayes-mag-orig" and "pac-bayes-mag-flatness"; there w has no biases, here it has, as the noise moves them too.
    """

    data: Labelled
    drop: float = 0.1
    draws: int = 10
    steps: int = 14
    samples: int | None = 2000
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = 256

    name: ClassVar[str] = "pac-bayes"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "pac-bayes init"
    higher_is: ClassVar[str] = "a weaker bound"
    looks_back: ClassVar[tuple[Past, ...]] = ("initial_weights",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sharpness()

    def check(self, subject: Subject) -> None:
        """Check that the subject carries initial weights that fit, and distinguishes the classes of the data."""
        initial_subject(subject)
        require_classes(subject, self.data)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Search for both sizes of noise; four rows for each."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Search for both sizes of noise; the table, and its values in resamples of the inputs and of the noise."""
        initial = initial_subject(subject)
        require_classes(subject, self.data)
        sample = self.data.sample(self.samples, self.seed)
        with subject.showing():
            perturbed = PerturbedWeights(subject, sample, batch_size(subject, self.batch_size))
        w, w0 = _flat(perturbed.weights), _flat(perturbed.weights_of(initial))
        del perturbed  # the search holds the sample itself
        return Measured.of(self._rows(self._sharpness().measured(subject), w, w - w0))

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The bound from the initial weights."""
        return from_rows(measured, [("pac-bayes init", "PAC-Bayes measure from the initial weights", "lower")])

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take every measure; the sizes of the noise are in them.

        All are expected to rise with the gap, as they bound it (Jiang et al. 2020, Dziugaite et al. 2020).
        """
        return chosen(table, table["quantity"][table["quantity"].str.startswith("pac-bayes")], 1)

    def _sharpness(self) -> Sharpness:
        """The search for the sizes of the noise."""
        return Sharpness(
            self.data,
            _KINDS,
            self.drop,
            self.draws,
            steps=self.steps,
            samples=self.samples,
            bootstrap=self.bootstrap,
            seed=self.seed,
            batch_size=self.batch_size,
        )

    def _rows(self, sharp: Measured, w: Tensor, moved: Tensor) -> Iterator[dict[str, Any]]:
        m = len(self.data)
        bounds: dict[str, tuple[Kind, Callable[[float], float]]] = {
            "pac-bayes init": ("sigma", lambda s: pac_bayes(moved, s, m)),
            "pac-bayes orig": ("sigma", lambda s: pac_bayes(w, s, m)),
            "pac-bayes flatness": ("sigma", lambda s: s**-2),
            "pac-bayes magnitude init": ("sigma magnitude", lambda s: pac_bayes_magnitude(moved, moved, s, m)),
            "pac-bayes magnitude orig": ("sigma magnitude", lambda s: pac_bayes_magnitude(w, moved, s, m)),
            "pac-bayes magnitude flatness": ("sigma magnitude", lambda s: s**-2),
        }
        numbers = {str(size["quantity"]): i for i, size in enumerate(sharp.table.to_dict("records"))}
        for kind in _KINDS:
            size = sharp.table.iloc[numbers[kind]].to_dict()
            n, status = int(size["n"]), str(size["status"])
            yield row(kind, float(size["value"]), n, low=size["low"], high=size["high"], status=status)
            # Sharpness keeps the resamples of log 1/σ².
            drawn = np.exp(-sharp.draws.get(numbers[f"log inverse squared {kind}"], np.zeros(0)) / 2)
            for name, (of, bound) in bounds.items():
                if of == kind:
                    value = bound(float(size["value"])) if status == "ok" else NAN
                    draws = np.array([bound(one) for one in drawn.tolist()])
                    low, high = percentile_interval(draws)
                    yield row(name, value, n, low=low, high=high, status=status, draws=draws if len(draws) else None)


def _flat(weights: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([weight.double().flatten().cpu() for weight in weights.values()])


def _vector(values: Tensor | Array) -> Tensor:
    vector = real_numbers(as_tensor(values).detach()).flatten()
    if not vector.numel() or not vector.isfinite().all():
        raise AssayError(f"{vector.numel()} weights or distances: give at least one, all of them finite")
    return vector


def _require(sigma: float, inputs: int) -> None:
    if not 0 < sigma < float("inf"):
        raise AssayError(f"sigma={sigma} must be positive and finite")
    if inputs < 1:
        raise AssayError(f"inputs={inputs} must be at least 1")
