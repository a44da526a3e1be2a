"""Values of layers, and gradients of a function of the class scores with respect to them, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.subject.classifier import as_taken, class_scores
from assay.subject.hooks import layer_hooks, module_path
from assay.subject.subject import Subject

INPUT = "input"


def differentiate(
    subject: Subject, x: Tensor, layers: list[str], of: Callable[[Tensor], Tensor]
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """A function of a batch's class scores, the values of layers, and its gradient with respect to each of them.

    The network is in eval mode; it, its gradients and the random state are left as found.

    Args:
        subject: The network; the inputs of a batch must not influence each other in it.
        x: The inputs, which are also the layer ``input``, before any preprocessing.
        layers: Names of layers, or ``input``.
        of: Function to differentiate, from N×K scores to N numbers.
    """
    with subject.showing(), torch.enable_grad(), _keeping(subject, layers) as kept:
        kept[INPUT] = x = x.detach().requires_grad_()
        value = of(class_scores(subject, x.clone(), lambda batch: subject.module(as_taken(subject, batch))))
        for layer in layers:
            if layer not in kept or len(kept[layer]) != len(x):
                raise AssayError(f"layer {layer!r} of {subject.name!r} does not return a tensor with a row per input")
        by_layer = torch.autograd.grad(value.sum(), [kept[layer] for layer in layers], allow_unused=True)
    gradients = {
        layer: torch.zeros_like(kept[layer]) if gradient is None else gradient
        for layer, gradient in zip(layers, by_layer, strict=True)
    }
    return value.detach(), {layer: kept[layer].detach() for layer in layers}, gradients


@contextmanager
def _keeping(subject: Subject, layers: list[str]) -> Iterator[dict[str, Tensor]]:
    """Keep what layers return, as nodes of the autograd graph; the network goes on with copies of it."""
    kept: dict[str, Tensor] = {}

    def keep(layer: str, output: Any) -> Any:
        if layer not in layers or not isinstance(output, Tensor):
            return None
        kept[layer] = output
        return output.clone()

    with layer_hooks(subject.module, [module_path(layer) for layer in layers if layer != INPUT], keep):
        yield kept
