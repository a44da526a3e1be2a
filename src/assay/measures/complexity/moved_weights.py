"""How a network would classify a sample if its weights were perturbed; the network itself stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from assay.core.arrays import batch_length, cloned, real_parts
from assay.core.errors import AssayError
from assay.measures.complexity.affine import FoldedWeights, folded_weights
from assay.stimuli.labelled import Labelled
from assay.subject.agreement import agree
from assay.subject.anatomy import require_movable_weights
from assay.subject.classifier import Array, batches, checked_scores, class_scores
from assay.subject.subject import Subject
from assay.subject.taking import taking


class PerturbedWeights:
    """Shows a sample to a network whose weights, batch norm folded in, are perturbed by a given amount.

    Where folding would change the network (a layer's output also goes around its batch norm), and where the network
    cannot be copied to find its layers, nothing is folded. The real and imaginary parts of a complex weight are two
    weights, along a last axis of length 2.
    """

    def __init__(self, subject: Subject, data: Labelled, size: int) -> None:
        require_movable_weights(subject)
        self.subject = subject
        self.places = places_of(subject.module)
        prepare = subject.network.prepare
        self.shown = [(prepare(x), labels) for x, labels in batches(data, size, subject.device)]
        self.one = data.shown(slice(0, 1))
        self.fold: bool | None = True  # None where the layers of the network are not known
        try:
            self.folded = folded_weights(subject, self.one)
        except AssayError:
            self.folded, self.fold = _unfolded(subject), None
        if not self.folded.weights:
            raise AssayError(f"{subject.name!r} has no weights to move")
        if not self._folding_agrees(data.shown(slice(0, size), subject.device)):
            self.folded, self.fold = folded_weights(subject, self.one, fold=False), False
        self.weights = _real(self.folded)

    def _folding_agrees(self, first: Any) -> bool:
        """Whether the folded network gives the same class scores on the first batch as the network itself."""
        return agree(
            lambda: self._scores(self.folded.tensors, self.shown[0][0]), lambda: class_scores(self.subject, first)
        )

    def weights_of(self, other: Subject) -> dict[str, Tensor]:
        """The same weights of a network that differs in its weights alone, batch norm folded in where it is here."""
        folded = _unfolded(other) if self.fold is None else folded_weights(other, self.one, self.fold)
        if folded.weights != self.folded.weights:
            raise AssayError(f"{other.name!r} called other layers with other weights: they cannot be compared")
        return _real(folded)

    def right(self, perturbation: Mapping[str, Tensor]) -> Array:
        """Whether each input is classified rightly when the perturbation is added to the weights that it names."""
        perturbed = {name: self.weights[name] + u for name, u in perturbation.items()}
        tensors = self.folded.tensors | self._whole(perturbed)
        right = [_right(self._scores(tensors, x), labels) for x, labels in self.shown]
        return torch.cat(right).cpu().numpy()

    def gradient(self, perturbation: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Array]:
        """Gradient of the cross-entropy at the perturbed weights, and whether each input is classified rightly.

        Args:
            perturbation: What is added to each of the weights, by name.
        """
        right: list[Tensor] = []
        total = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        for x, labels in self.shown:
            with torch.enable_grad():
                perturbed = {name: (w + perturbation[name]).requires_grad_() for name, w in self.weights.items()}
                scores = self._scores(self.folded.tensors | self._whole(perturbed), x)
                loss = F.cross_entropy(scores, labels, reduction="sum")
                gradients = torch.autograd.grad(loss, list(perturbed.values()), allow_unused=True)
            right.append(_right(scores.detach(), labels))
            for name, gradient in zip(perturbed, gradients, strict=True):
                total[name] += 0 if gradient is None else gradient.nan_to_num()
        return total, torch.cat(right).cpu().numpy()

    def _whole(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights as the network has them: complex ones of their two parts."""
        own = self.folded.tensors
        return {k: torch.view_as_complex(w) if own[k].is_complex() else w for k, w in weights.items()}

    def _scores(self, tensors: Mapping[str, Tensor], ready: Any) -> Tensor:
        args, kwargs = self.subject.network.arguments(cloned(ready))  # the network may write to it
        with taking(self.subject.name, ready):
            output = functional_call(self.subject.module, self._placed(tensors), args, kwargs, tie_weights=False)
        return checked_scores(self.subject, output, batch_length(ready))

    def _placed(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors by every module that has them, each once.

        Torch's own way of tying weights leaves a module that is registered under two names with the new tensors.
        """
        return {name: tensors[first] for name, first in self.places.items() if first in tensors}


def places_of(module: nn.Module) -> dict[str, str]:
    """The names of all parameters and buffers, one for each module that holds it, with the first name of each."""
    first: dict[int, str] = {}
    places: dict[str, str] = {}
    for path, one in module.named_modules():  # each module once, under its first name
        for name, tensor in [*one._parameters.items(), *one._buffers.items()]:
            if tensor is not None:
                whole = f"{path}.{name}" if path else name
                places[whole] = first.setdefault(id(tensor), whole)
    return places


def _unfolded(subject: Subject) -> FoldedWeights:
    weights = {name: weight.detach() for name, weight in subject.module.named_parameters()}
    return FoldedWeights(weights, list(weights))


def _real(folded: FoldedWeights) -> dict[str, Tensor]:
    """The weights by name, complex ones as their real and imaginary parts."""
    return {name: real_parts(folded.tensors[name].detach()) for name in folded.weights}


def _right(scores: Tensor, labels: Tensor) -> Tensor:
    """Whether each input is classified rightly; one whose scores are not finite is not."""
    return (scores.argmax(1) == labels) & scores.isfinite().all(1)
