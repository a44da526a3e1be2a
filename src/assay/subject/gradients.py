"""Values of layers, and gradients of a function of the class scores with respect to them, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from assay.core.arrays import batch_length, cloned, tensors_in, varied_input, with_first_tensor, with_varied_input
from assay.core.errors import AssayError, first_line
from assay.subject.classifier import class_scores
from assay.subject.hooks import layer_hooks, module_path
from assay.subject.network import Batch
from assay.subject.subject import Subject

INPUT = "input"


def differentiate(
    subject: Subject, x: Batch, layers: list[str], of: Callable[[Tensor], Tensor]
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """A function of a batch's class scores, the values of layers, and its gradient with respect to each of them.

    The network is in eval mode; it, its gradients and the random state are left as found.

    Args:
        subject: The network; the inputs of a batch must not influence each other in it.
        x: The inputs, before any preprocessing. They are also the layer ``input``; of several inputs by name, the first
            floating-point one is.
        layers: Names of layers, or ``input``.
        of: Function to differentiate, from N×K scores to N numbers.
    """
    with subject.showing(), torch.enable_grad(), _keeping(subject, layers) as kept:
        varied = varied_input(x)
        if varied is not None:
            kept[INPUT] = varied.detach().requires_grad_()
            x = with_varied_input(x, kept[INPUT])
        network = subject.network
        value = of(class_scores(subject, cloned(x), lambda batch: network.forward(network.prepare(batch))))
        for layer in layers:
            if layer not in kept or not kept[layer].dim() or len(kept[layer]) != batch_length(x):
                raise AssayError(f"layer {layer!r} of {subject.name!r} does not return a tensor with a row per input")
        wanted = [kept[layer] for layer in layers]
        if wanted and not (value.requires_grad and all(output.requires_grad for output in wanted)):
            raise AssayError(
                f"{subject.name!r} gives scores without a gradient: it computes them in torch.no_grad() or detaches "
                "them, and a distance to the decision boundary needs the gradient"
            )
        try:
            by_layer = torch.autograd.grad(value.sum(), wanted, allow_unused=True) if wanted else ()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # the network's own: what a gradient needs is overwritten in place
            raise AssayError(f"{subject.name!r} cannot be differentiated: {first_line(error)}") from error
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
        tensor = next(tensors_in(output), None)
        if layer not in layers or tensor is None or not tensor.is_floating_point():
            return None
        # Nothing before it that is differentiated: weights that are not trained, inputs that are whole numbers.
        kept[layer] = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        return with_first_tensor(output, kept[layer].clone())

    with layer_hooks(subject.module, [module_path(layer) for layer in layers if layer != INPUT], keep):
        yield kept
