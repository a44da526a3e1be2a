"""What layers do, and how an output changes with it: values and gradients in one pass."""

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
    """A function of a batch's class scores, what the layers did, and the gradient of the one by the other.

    The network is in eval mode; it, its gradients and the random state are left as found.

    Args:
        subject: The network; its inputs must not meet within a batch.
        x: Inputs; the layer ``input`` is these, before any preprocessing.
        layers: Names of layers, or ``input``.
        of: From N×K scores to N numbers.
    """
    with subject.showing(), torch.enable_grad(), _keeping(subject, layers) as kept:
        kept[INPUT] = x = x.detach().requires_grad_()
        value = of(class_scores(subject, x.clone(), lambda batch: subject.module(as_taken(subject, batch))))
        for layer in layers:
            if layer not in kept or len(kept[layer]) != len(x):
                raise AssayError(f"layer {layer!r} of {subject.name!r} does not return a tensor with a row per input")
        found = torch.autograd.grad(value.sum(), [kept[layer] for layer in layers], allow_unused=True)
    gradients = {
        layer: torch.zeros_like(kept[layer]) if gradient is None else gradient
        for layer, gradient in zip(layers, found, strict=True)
    }
    return value.detach(), {layer: kept[layer].detach() for layer in layers}, gradients


@contextmanager
def _keeping(subject: Subject, layers: list[str]) -> Iterator[dict[str, Tensor]]:
    """What layers return, as nodes of the graph; the network goes on with copies, and may write to those."""
    kept: dict[str, Tensor] = {}

    def keep(layer: str, output: Any) -> Any:
        if layer not in layers or not isinstance(output, Tensor):
            return None
        kept[layer] = output
        return output.clone()

    with layer_hooks(subject.module, [module_path(layer) for layer in layers if layer != INPUT], keep):
        yield kept
