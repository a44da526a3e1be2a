"""Sharpness: how far weights may move before a network forgets what it was trained on.

Keskar et al. 2017; Neyshabur et al. 2017; Jiang et al. 2020, "Fantastic generalization measures and where to find
them".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.complexity.moved_weights import PerturbedWeights
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, require_sample, row
from assay.stats.bootstrap import crossed_picks, percentile_interval
from assay.stats.evidence import Evidence
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import Array, require_classes
from assay.subject.subject import Subject

Kind = Literal["sigma", "sigma magnitude", "alpha", "alpha magnitude"]
KINDS = ("sigma", "sigma magnitude", "alpha", "alpha magnitude")
EPSILON = 1e-3
RANGE = (1e-5, 1e2)


def reach(weight: Tensor, size: float, kind: Kind) -> Tensor:
    """How far each weight is moved: the standard deviation of noise, or the half-width of a box.

    ``sigma``: σ. ``sigma magnitude``: √(σ²w² + ε²). ``alpha``: α. ``alpha magnitude``: α|w| + ε. With ε = 0.001, which
    keeps weights of zero from staying at zero.

    Example:
        >>> reach(torch.tensor([1.0, -2.0]), 0.5, "alpha magnitude")
        tensor([0.5010, 1.0010])

    Jiang et al. 2020, appendix C.
    """
    if kind not in KINDS:
        raise AssayError(f"kind={kind!r} is not known{nearest(kind, KINDS)}")
    if weight.is_complex():
        raise AssayError("complex weights have no reach: give their parts, torch.view_as_real(weight)")
    if kind == "sigma magnitude":
        return (size**2 * weight.square() + EPSILON**2).sqrt()
    return size * weight.abs() + EPSILON if kind == "alpha magnitude" else torch.full_like(weight, size)


def largest_within(drop: Callable[[float], float], limit: float, low: float, high: float, steps: int) -> float:
    """The largest size with drop(size) ≤ limit, by bisection of the logarithm; drop is taken to grow with the size.

    The last two sizes tried on either side of the limit, a factor of (high/low)^(2^−steps) apart, are interpolated. 0
    where no size tried is within the limit, infinity where all are.

    Example:
        >>> round(largest_within(lambda size: size / 2, 0.1, 1e-5, 1e2, 14), 6)
        0.2
    """
    tried: dict[float, float] = {}
    within, beyond = low, high
    for _ in range(steps):
        middle = (within * beyond) ** 0.5
        tried[middle] = drop(middle)
        within, beyond = (middle, beyond) if tried[middle] <= limit else (within, middle)
    if within == low or beyond == high:
        return 0.0 if within == low else float("inf")
    ends = np.array([within, beyond])
    return float(np.exp(_crossing(np.log(ends), np.array([tried[within], tried[beyond]]), limit)))


@dataclass(frozen=True)
class Sharpness(Measure):
    """How far all weights can be moved at once before the accuracy on a sample of the training set drops by ``drop``.

    σ is the largest size of Gaussian noise such that A(w) − E[A(w + u)] ≤ ``drop``, u_i ~ N(0, σ²), the expectation
    over ``draws`` (the same for every σ, so that only the size changes). α is the largest half-width of a box such that
    A(w) − min A(w + u) ≤ ``drop``, |u_i| ≤ α, the minimum sought by ``ascent`` steps of the sign of the gradient of the
    cross-entropy, from a random start; what it finds is a lower bound on the drop, so α is an upper bound. Sizes
    relative to the weights (``magnitude``) are as of `reach`.

    Weights are those with batch norm folded in (see `assay.measures.complexity.affine.folded_weights`), biases among
    them: a weight before a batch norm has no scale of its own. The real and imaginary parts of a complex weight are two
    weights. The network itself is not written to.

    Table: for every kind (``sigma``, ``sigma magnitude``, ``alpha``, ``alpha magnitude``) the size, its ``inverse
    squared`` such as 1/σ², and ``log inverse squared``; large is sharp. ``low``, ``high``: 95 % interval (bootstrap
    over inputs and draws), ``n`` inputs. ``status``: ``ok``, or beyond which end of the range, 1e-05 to 100, the size
    lies.

    Args:
        data: The inputs and labels that the network was trained on.
        kinds: Which sizes to search for; α needs a forward and a backward pass for every step of ascent.
        drop: Loss of accuracy that defines the size: the largest size that costs no more is taken.
        draws: Number of draws of noise over which the accuracy is averaged.
        ascent: Number of steps up the loss in search of the worst point of a box.
        steps: Number of steps of the bisection; 14 leave an error of 0.1 %.
        samples: Number of inputs, drawn at random; None for all.
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the random sample, noise and resamples.
        batch_size: Number of inputs per pass.

    Example:
        >>> net = torch.nn.Linear(4, 2, bias=False)
        >>> with torch.no_grad():
        ...     _ = net.weight.copy_(torch.tensor([[2.0], [0.0]]).expand(2, 4))
        >>> data = Labelled(np.eye(4), np.zeros(4, dtype=int))   # a margin of 2, lost when both weights move by 1
        >>> Sharpness(data, kinds=("alpha",), bootstrap=0)(Subject(net)).value.round(2).tolist()   # and 1/α², log 1/α²
        [1.0, 1.0, 0.0]

    Jiang et al. 2020, appendix C: "pac-bayes-flatness", "pac-bayes-mag-flatness", "sharpness-flatness" and
    "sharpness-mag-flatness" are the inverse squares. Of the box relative to the weights there are several: α|w| in the
    PGDL competition's baseline, α(|w| + 1) in Keskar et al. 2017; here it is α|w| + ε, with the ε of the noise.
    """

    data: Labelled
    kinds: tuple[Kind, ...] = ("sigma", "sigma magnitude")
    drop: float = 0.1
    draws: int = 10
    ascent: int = 20
    steps: int = 14
    samples: int | None = 2000
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = 256

    name: ClassVar[str] = "sharpness"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "log inverse squared sigma"
    higher_is: ClassVar[str] = "sharper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        require_sample(self.samples, self.bootstrap)
        for kind in self.kinds:
            reach(torch.zeros(0), 0.0, kind)
        if not 0 < self.drop < 1:
            raise AssayError(f"drop={self.drop} must be between 0 and 1")
        for setting in ("draws", "ascent", "steps"):
            if getattr(self, setting) < 1:
                raise AssayError(f"{setting}={getattr(self, setting)} must be at least 1")

    def check(self, subject: Subject) -> None:
        """Check that the network distinguishes at least as many classes as the data have."""
        require_classes(subject, self.data)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Search for every kind of size; three rows for each."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Search for every kind of size; the table, and its values in resamples of the inputs and of the noise."""
        self.check(subject)
        data = self.data.sample(self.samples, self.seed)
        with subject.showing():
            perturbed = PerturbedWeights(subject, data, batch_size(subject, self.batch_size))
            return Measured.of([row for kind in self.kinds for row in self._rows(perturbed, kind)])

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The logarithm of the inverse squared size of every kind of perturbation of the weights."""
        shown = {kind: f"sharpness, log 1/{kind}²" for kind in self.kinds}
        numbers = from_rows(measured, [(f"log inverse squared {kind}", name, "lower") for kind, name in shown.items()])
        return [
            one if one.status == "ok" else replace(one, status=f"size {one.status}, where the search ends")
            for one in numbers
        ]

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the logarithm of the inverse squared size of every kind.

        It is expected to rise with the gap: sharper minima generalize worse (Keskar et al. 2017, Jiang et al. 2020).
        """
        return chosen(table, (f"log inverse squared {kind}" for kind in self.kinds), 1)

    def _rows(self, perturbed: PerturbedWeights, kind: Kind) -> Iterator[dict[str, Any]]:
        unperturbed = perturbed.right({})
        right_by_size: dict[float, Array] = {}  # draws × inputs

        def drop(size: float) -> float:
            if kind.startswith("sigma"):
                right_by_size[size] = np.stack(self._noisy(perturbed, size, kind))
            else:
                right_by_size[size] = self._worst(perturbed, size, kind)[None]
            report(f"{perturbed.subject.name}: {kind}", len(right_by_size), self.steps)
            return float(unperturbed.mean() - right_by_size[size].mean())

        size, n = largest_within(drop, self.drop, *RANGE, self.steps), len(unperturbed)
        status = "ok" if 0 < size < float("inf") else f"below {RANGE[0]:g}" if size == 0 else f"above {RANGE[1]:g}"
        draws = self._draws(unperturbed, right_by_size) if status == "ok" else np.zeros(0)
        low, high = (float(np.exp(bound)) for bound in percentile_interval(draws))
        value = size if status == "ok" else NAN
        yield row(kind, value, n, low=low, high=high, status=status)
        yield row(f"inverse squared {kind}", value**-2, n, low=high**-2, high=low**-2, status=status)
        logs = (-2 * log(v) if v > 0 else NAN for v in (value, high, low))
        log_value, log_low, log_high = logs
        yield row(
            f"log inverse squared {kind}", log_value, n, low=log_low, high=log_high, status=status, draws=-2 * draws
        )

    def _noisy(self, perturbed: PerturbedWeights, size: float, kind: Kind) -> list[Array]:
        """Whether each input is classified rightly, for every draw of noise on the weights."""
        seeds = np.random.SeedSequence(self.seed).generate_state(self.draws)
        right = []
        for seed in seeds.tolist():
            generator = torch.Generator().manual_seed(seed)
            noise = {k: torch.randn(w.shape, generator=generator).to(w) for k, w in perturbed.weights.items()}
            right.append(perturbed.right({k: reach(w, size, kind) * noise[k] for k, w in perturbed.weights.items()}))
        return right

    def _worst(self, perturbed: PerturbedWeights, size: float, kind: Kind) -> Array:
        """Whether each input is classified rightly at the point of lowest accuracy on the way up the loss."""
        generator = torch.Generator().manual_seed(self.seed)
        box = {k: reach(w, size, kind) for k, w in perturbed.weights.items()}
        start = {k: (torch.rand(b.shape, generator=generator) - 0.5).to(b) for k, b in box.items()}
        u = {k: b * start[k] for k, b in box.items()}
        rate = 2.5 / self.ascent  # enough to cross the box
        right_by_step = []
        for done in range(self.ascent):
            report(f"{perturbed.subject.name}: steps up the loss", done, self.ascent)
            gradient, right = perturbed.gradient(u)
            right_by_step.append(right)
            u = {k: (u[k] + rate * b * gradient[k].sign()).clamp(-b, b) for k, b in box.items()}
        return min(*right_by_step, perturbed.right(u), key=np.sum)

    def _draws(self, unperturbed: Array, right_by_size: Mapping[float, Array]) -> Array:
        """Logarithm of the size at which the accuracy of a resample has dropped by ``drop``, for every resample."""
        sizes = np.array(sorted(right_by_size))
        right = np.stack([right_by_size[size] for size in sizes])
        drawn = []
        for inputs, draws in crossed_picks((len(unperturbed), right.shape[1]), self.bootstrap, self.seed):
            drops = unperturbed[inputs].mean() - right[:, draws].mean(1)[:, inputs].mean(1)
            drawn.append(_crossing(np.log(sizes), drops, self.drop))
        return np.array(drawn)


def _crossing(positions: Array, values: Array, limit: float) -> float:
    """Position at which values first exceed a limit, by linear interpolation; an end where they do at once or never."""
    beyond = np.flatnonzero(values > limit)
    if not len(beyond) or beyond[0] == 0:
        return float(positions[0 if len(beyond) else -1])
    i = beyond[0]
    share = (limit - values[i - 1]) / (values[i] - values[i - 1])
    return float(positions[i - 1] + share * (positions[i] - positions[i - 1]))
