"""A network with its weights moved, itself untouched, shown a sample."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from assay.core.errors import AssayError
from assay.measures.complexity.affine import folded_weights
from assay.stimuli.labelled import Labelled
from assay.subject.agreement import agree
from assay.subject.classifier import Array, as_taken, batches, class_scores
from assay.subject.subject import Subject


class MovedNetwork:
    """What a network would say of a sample if its weights, batch norm folded in, were moved.

    Where folding would change the network (a layer's output also goes around its batch norm), weights are its own.
    """

    def __init__(self, subject: Subject, data: Labelled, size: int) -> None:
        self.subject = subject
        self.shown = [(as_taken(subject, x), labels) for x, labels in batches(data, size, subject.device)]
        self.folded = folded_weights(subject, data.shape)
        if not self.folded.weights:
            raise AssayError(f"{subject.name!r} has no weights to move")
        if not self._same(data.shown(slice(0, size), subject.device)):
            self.folded = folded_weights(subject, data.shape, fold=False)
        self.weights = {name: self.folded.tensors[name] for name in self.folded.weights}

    def _same(self, first: Tensor) -> bool:
        """Whether folding leaves the network what it is, on the first batch."""
        return agree(
            lambda: self._scores(self.folded.tensors, self.shown[0][0]), lambda: class_scores(self.subject, first)
        )

    def right(self, by: Mapping[str, Tensor]) -> Array:
        """Whether each input is classified rightly with the named weights moved ``by`` so much."""
        tensors = self.folded.tensors | {name: self.weights[name] + u for name, u in by.items()}
        found = []
        for x, labels in self.shown:
            found.append(_right(self._scores(tensors, x), labels))
        return torch.cat(found).cpu().numpy()

    def gradient(self, by: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Array]:
        """Of the cross-entropy over the sample, with all weights moved ``by`` so much; and whether inputs are right."""
        right: list[Tensor] = []
        total = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        for x, labels in self.shown:
            with torch.enable_grad():
                moved = {name: (w + by[name]).requires_grad_() for name, w in self.weights.items()}
                scores = self._scores(self.folded.tensors | moved, x)
                loss = F.cross_entropy(scores, labels, reduction="sum")
                found = torch.autograd.grad(loss, list(moved.values()), allow_unused=True)
            right.append(_right(scores.detach(), labels))
            for name, gradient in zip(moved, found, strict=True):
                total[name] += 0 if gradient is None else gradient.nan_to_num()
        return total, torch.cat(right).cpu().numpy()

    def _scores(self, tensors: Mapping[str, Tensor], ready: Tensor) -> Tensor:
        scores: Tensor = functional_call(self.subject.module, dict(tensors), (ready.clone(),))  # it may write to it
        return scores


def _right(scores: Tensor, labels: Tensor) -> Tensor:
    """An output that is not finite is not right."""
    return (scores.argmax(1) == labels) & scores.isfinite().all(1)
