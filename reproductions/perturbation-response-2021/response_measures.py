"""Measures of this reproduction alone, in a file of their own: an edit to a table or figure keeps their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from assay import Measure, PerturbationResponse, Subject, gi_score
from assay.measures.perturbation.curves import show_perturbed
from assay.stimuli import Labelled
from assay.stimuli.perturbations import perturbation

GI_OF_BATCH = "gi of a batch"


@dataclass(frozen=True)
class ResponseByBatch(PerturbationResponse):
    """Perturbation response whose table also has the Gi-score of each whole batch, where the input was perturbed.

    The score is linear in accuracies, so that of many batches is the mean of theirs.
    """

    name: ClassVar[str] = ""  # the name in plans stays that of `PerturbationResponse`

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the sample at every magnitude once, for the curves, their scores and the scores of their batches."""
        curves = self.curves(subject)
        rows = []
        for (kind, layer), curve in curves.items():
            if layer != 0:
                continue
            alphas, n = self.points(kind), curve.right.shape[1]
            size = min(self.batch_size or n, n)
            batches = curve.right[: len(alphas), : n // size * size].reshape(len(alphas), -1, size).mean(2).T
            row = {"perturbation": kind.name, "layer": str(layer), "quantity": GI_OF_BATCH, "n": size, "status": "ok"}
            rows += [row | {"value": value} for value in gi_score(alphas, batches)]
        return pd.concat([self.table(subject, curves), pd.DataFrame(rows)], ignore_index=True)


@dataclass(frozen=True)
class PerturbedAccuracy(Measure):
    """Accuracy on data each input of which is perturbed at a magnitude of its own, uniform over the whole range.

    Args:
        data: Inputs that are all shown, in random batches.
        kind: Name of the perturbation.
        seed: Seed of the batches and of the magnitudes.
        batch_size: Number of inputs per forward pass.
    """

    data: Labelled
    kind: str
    seed: int = 0
    batch_size: int = 128

    value: ClassVar[str] = "accuracy"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show all inputs once."""
        shown = perturbation(self.kind)
        curve = show_perturbed(subject, self.data, {shown: ()}, {0: None}, self.batch_size, self.seed)[shown, 0]
        return pd.DataFrame({"accuracy": [float(curve.right.mean())], "n": [curve.right.shape[1]]})
