"""Margin bounds: the norms of a network over the square of its margin, as bounds on the generalization error have them.

Bartlett, Foster & Telgarsky 2017; Neyshabur, Bhojanapalli & Srebro 2018; Jiang, Neyshabur, Mobahi, Krishnan, Bengio
2020, "Fantastic generalization measures and where to find them".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.complexity.distance import log_spectral_complexity, moved_layers
from assay.measures.complexity.margins import output_margins
from assay.measures.complexity.norms import Convolution, Norms, require_layers
from assay.measures.evidence import Measured, from_rows
from assay.measures.table import NAN, Predictor, chosen, require_sample, row
from assay.stats.bootstrap import bootstrap_draws, percentile_interval
from assay.stats.evidence import Evidence
from assay.stimuli.labelled import Labelled
from assay.subject.classifier import Array, batches, class_scores, require_classes
from assay.subject.past import Past
from assay.subject.subject import Subject

PERCENTILE = 10
NOT_POSITIVE = "the 10th percentile of the margins is not positive"
MARGIN = "log inverse squared margin"


def log_inverse_squared_margin(margins: Array) -> float:
    """The logarithm of 1/γ², where γ is the 10th percentile of the margins; NaN where γ is not positive.

    The smallest margin of all, as in the theorems, is that of one input, which may be mislabelled.

    Args:
        margins: The margin of each input, f_y − max_{j≠y} f_j, all finite.

    Example:
        >>> log_inverse_squared_margin(np.array([1.0, 1.0, 1.0])), log_inverse_squared_margin(np.array([-1.0, 2.0]))
        (0.0, nan)

    Jiang et al. 2020, equation 22.
    """
    m = np.asarray(margins, dtype=np.float64)
    if m.ndim != 1 or not len(m) or not np.isfinite(m).all():
        raise AssayError(f"margins of shape {m.shape} must be finite numbers in a row, at least one")
    tenth = float(np.percentile(m, PERCENTILE))
    return -2 * float(np.log(tenth)) + 0.0 if tenth > 0 else NAN


@dataclass(frozen=True)
class NormOverMargin:
    """A norm of a whole network, to be divided by a power of its margin γ: log norm + share · log 1/γ².

    The share is 1 for what is squared and grows with the product of all layers. It is 1/L for a sum over L layers that
    share the scale of the network evenly, L·(Π‖W_i‖²/γ²)^(1/L), and 1/2 for the path norm φ, which becomes φ/γ.

    Args:
        name: What the table calls it.
        log: The logarithm of the norm; NaN where it is not defined.
        share: How much of log 1/γ² is added.
        status: ``ok``, or why the norm is missing or what it leaves out.

    Example:
        >>> NormOverMargin("log spectral sum over margin", log=2.0, share=1 / 2).at(log_inverse=4.0)
        4.0

    Jiang et al. 2020, equations 29 to 43.
    """

    name: str
    log: float
    share: float = 1.0
    status: str = "ok"

    def at(self, log_inverse: float) -> float:
        """The logarithm of the norm over the margin, of the logarithm of 1/γ²."""
        return self.log + self.share * log_inverse

    def row(self, log_inverse: float, drawn: Array, n: int) -> dict[str, Any]:
        """The row of the table, of the logarithm of 1/γ², its values in resamples and the number of inputs."""
        draws = np.array([self.at(one) for one in drawn]) if np.isfinite(self.log) else np.zeros(0)
        low, high = percentile_interval(draws)
        status = NOT_POSITIVE if np.isfinite(self.log) and not np.isfinite(log_inverse) else self.status
        kept = draws if len(draws) else None
        return row(self.name, self.at(log_inverse), n, low=low, high=high, status=status, draws=kept)


@dataclass(frozen=True)
class MarginBounds(Measure):
    """Norms of the weights over the squared margin γ², the 10th percentile of the margins on the training set.

    A network may be scaled, W ← c·W and b ← c·b in its last layer, without changing what it says: norms and margins
    then grow together, and their ratio stays. This holds for every row but ``log inverse squared margin``, which falls
    by 2 log c, and ``log initial spectral complexity over margin``, since the distance from initial weights, which stay
    where they were, does not grow in proportion. Layers and norms are those of `Norms`, batch norm folded in, without
    biases but in the path norm.

    Table: ``log inverse squared margin`` log 1/γ²; the natural logarithms of norms over the margin as of
    `NormOverMargin`: ``log spectral product over margin``, ``log frobenius product over margin``, ``log spectral sum
    over margin``, ``log frobenius sum over margin`` and ``log path norm over margin``; ``log spectral complexity over
    margin``, log(Π‖W_i‖₂² · Σ‖W_j‖_F²/‖W_j‖₂² / γ²); and where the subject carries its initial weights W⁰, ``log
    initial spectral complexity over margin``, the same with ‖W_j − W_j⁰‖_F² in place of ‖W_j‖_F². ``low``, ``high``:
    95 % interval (bootstrap over inputs), none where a resample has no positive γ; ``n`` inputs. ``status``: ``ok``,
    or why a value is missing or what it leaves out.

    Args:
        data: The inputs and labels that the network was trained on.
        convolution: Which spectral norm a convolution has: ``reshaped`` or ``circular``, as in `Norms`.
        samples: Number of inputs, drawn at random; None for all.
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the random sample and resamples.
        batch_size: Number of inputs per pass; by default 32 on a CPU and 256 on a GPU.

    Example:
        >>> import torch
        >>> net = torch.nn.Linear(2, 2, bias=False)
        >>> with torch.no_grad():
        ...     _ = net.weight.copy_(torch.eye(2) * 3)
        >>> data = Labelled(np.eye(2, dtype=np.float32), np.array([0, 1]))                 # both margins are 3
        >>> table = MarginBounds(data, bootstrap=0)(Subject(net)).set_index("quantity")
        >>> table.value[["log spectral product over margin", "log frobenius product over margin"]].round(6).tolist()
        [0.0, 0.693147]

    Jiang et al. 2020, appendix C: "prod-of-spec/margin", "prod-of-fro/margin", "sum-of-spec/margin",
    "sum-of-fro/margin", "path-norm/margin" (the square of ours), "spec-orig-main" and "spec-init-main".
    """

    data: Labelled
    convolution: Convolution = "reshaped"
    samples: int | None = 5000
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "margin-bounds"
    value: ClassVar[str] = "value"
    quantity: ClassVar[str] = "log spectral product over margin"
    higher_is: ClassVar[str] = "larger weights for the margin"
    looks_back: ClassVar[tuple[Past, ...]] = ("initial_weights",)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        require_sample(self.samples, self.bootstrap)
        Norms(self.convolution)

    def check(self, subject: Subject) -> None:
        """Check that the network tells the classes of the data apart, and has layers with norms."""
        require_classes(subject, self.data)
        one = self.data.shown(slice(0, 1))
        if subject.initial_weights is None:
            require_layers(subject, one)
        else:
            moved_layers(subject, one)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the sample once; a row for each norm over the margin."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show the sample once; the table, and its values in resamples of the inputs."""
        require_classes(subject, self.data)
        norms = [NormOverMargin(MARGIN, 0.0), *self._norms(subject)]
        data = self.data.sample(self.samples, self.seed)
        margins: list[Array] = []
        for x, labels in batches(data, batch_size(subject, self.batch_size), subject.device):
            margins.append(output_margins(class_scores(subject, x).double(), labels).cpu().numpy())
            report(f"{subject.name}: margins", sum(map(len, margins)), len(data))
        margin_of_each = np.concatenate(margins)
        inverse = log_inverse_squared_margin(margin_of_each)
        drawn = bootstrap_draws(margin_of_each, log_inverse_squared_margin, self.bootstrap, self.seed)
        drawn = drawn if np.isfinite(drawn).all() else np.zeros(0)
        return Measured.of(norm.row(inverse, drawn, len(margin_of_each)) for norm in norms)

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The logarithm of the product of spectral norms over the squared margin."""
        return from_rows(measured, [(self.quantity, self.quantity, "")])

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take every norm over the margin; the margin alone is a predictor of `Margins`.

        All are expected to rise with the gap, as the bounds do (Bartlett et al. 2017, Neyshabur et al. 2018).
        """
        return chosen(table, table["quantity"][table["quantity"] != MARGIN], 1)

    def _norms(self, subject: Subject) -> Iterator[NormOverMargin]:
        """The norms of the whole network, each with its share of the margin."""
        one = self.data.shown(slice(0, 1))
        moved = None if subject.initial_weights is None else moved_layers(subject, one)
        affine = require_layers(subject, one) if moved is None else moved.affine
        table = pd.DataFrame(Norms(self.convolution).rows(affine))
        whole: dict[str, Any] = {str(r["quantity"]): r for r in table[table["layer"] == ""].to_dict("records")}
        layers = len(affine.layers)
        shares = {
            "log spectral product": 1.0,
            "log frobenius product": 1.0,
            "log spectral sum": 1 / layers,
            "log frobenius sum": 1 / layers,
            "log path norm": 1 / 2,
        }
        for name, share in shares.items():
            norm = whole[name]
            yield NormOverMargin(f"{name} over margin", norm["value"], share, norm["status"])
        by_kind = table.groupby("quantity")["value"].apply(list)
        distances = {"log spectral complexity over margin": by_kind["frobenius norm"]}
        if moved is not None:
            apart = [layer.weight.norm().item() for layer in moved.differences]
            distances["log initial spectral complexity over margin"] = apart
        product = whole["log spectral product"]
        for name, d in distances.items():
            if np.isfinite(product["value"]) and any(d):
                log = log_spectral_complexity(by_kind["spectral norm"], d)
                yield NormOverMargin(name, log, status=product["status"])
            else:
                yield NormOverMargin(name, NAN, status="no layer moved, or one is zero or has no norm")
