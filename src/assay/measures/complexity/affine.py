"""The affine layers of a network, batch norm folded in, and the weights of the network so folded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.core.arrays import first_tensor
from assay.core.errors import AssayError
from assay.measures.complexity.path_norm import AffineLayer, Squaring
from assay.networks.imported.onnx_runtime import OnnxRuntimeNetwork, OnnxRuntimeNode
from assay.subject.anatomy import require_visible_layers
from assay.subject.classifier import scores_in
from assay.subject.network import Batch
from assay.subject.subject import Subject
from assay.subject.taking import taking
from assay.subject.unwrapped import copied


@dataclass(frozen=True)
class Affine:
    """The affine layers of a network, its weights, and the sum over its paths of squared products.

    ``weights`` are the network's own tensors: its parameters, or the weights and biases of its layers where it has no
    parameters (one imported from a file of buffers). ``squared`` is the sum of the outputs of the network with squared
    weights, shown ones. ``unsupported`` names the first operation after which that is no sum over paths, ``unreached``
    the parameters of two or more axes that are in no layer.
    """

    layers: list[AffineLayer]
    weights: dict[str, Tensor]
    squared: float
    unsupported: str
    unreached: list[str]


def affine_layers(subject: Subject, shape: tuple[int, ...] | Batch | None = None) -> Affine:
    """Find the affine layers of a network by running a float64 copy of it, with squared weights, once on ones.

    Batch norm at evaluation is x ↦ s·x + t with s = γ/√(v + ε) and t = β − s·m, of running mean m and variance v.
    Straight after a linear or convolutional layer it is folded into it: W ← s·W, b ← s·b + t. After anything else it
    is a layer of its own, with the diagonal of weights s.

    Args:
        subject: The network; it is copied and left as it is.
        shape: Shape of one input, without the batch axis, or inputs, of which whole numbers are shown as they are; by
            default those of the subject's example.
    """
    if isinstance(subject.module, OnnxRuntimeNetwork):
        return _of_onnxruntime(subject.module)
    require_visible_layers(subject)
    module = _precise(copied(subject.module, "which its norms need")).eval()
    ones = _ones(_example(subject, shape))
    trace = Squaring(module, *(ones.values() if isinstance(ones, Mapping) else [ones]))
    args, kwargs = subject.network.arguments(ones)
    with taking(subject.name, ones), subject.network.undisturbed(), trace:
        output = module(*args, **kwargs)
    scores = scores_in(output)
    output = scores if isinstance(scores, Tensor) else first_tensor(output)
    if id(output) not in trace.flowing:
        trace.refuse("a part that torch does not show")
    layers = [call.layer for call in trace.calls]
    own = {name: t.detach() for name, t in subject.module.named_parameters()}
    if not own:
        names = {layer.sources.get(key) for layer in layers for key in ("weight", "bias")}
        own = {name: t for name, t in subject.module.named_buffers() if name in names}
    unreached = [name for name, t in own.items() if t.dim() > 1 and name not in trace.used]
    parts = output.unbind() if output.is_nested else (output,)  # of unequal lengths, which torch does not sum
    return Affine(layers, own, sum(part.sum().real.item() for part in parts), trace.unsupported, unreached)


def _precise(module: nn.Module) -> nn.Module:
    """A network in float64 on the CPU, its complex numbers in complex128: torch would drop their imaginary parts."""
    module = module.cpu().double()
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.is_complex():
            tensor.data = tensor.data.to(torch.complex128)
    return module


def _of_onnxruntime(module: OnnxRuntimeNetwork) -> Affine:
    """The affine layers of a network that onnxruntime runs: they have norms, and it has no sum over paths."""
    own = dict(module.named_buffers())
    nodes = [(name, node) for name, node in module.named_children() if isinstance(node, OnnxRuntimeNode)]
    affine = [(name, node) for name, node in nodes if node.operator in ("Conv", "Gemm", "MatMul")]
    layers = [
        AffineLayer(name, node.get_buffer("weight"), own.get(f"{name}.bias"), (), (), groups=node.groups)
        for name, node in affine
        if f"{name}.weight" in own
    ]
    reached = {f"{layer.name}.weight" for layer in layers}
    unreached = [name for name, tensor in own.items() if tensor.dim() > 1 and name not in reached]
    return Affine(layers, own, 0.0, "operators that only onnxruntime runs", unreached)


def _example(subject: Subject, shape: tuple[int, ...] | Batch | None) -> Any:
    """One input of the given shape, or of the inputs given, or of the subject's example, after its preprocessing."""
    given: Any = subject.example if shape is None else shape
    if given is None:
        raise AssayError(
            f"no input of {subject.name!r} is known: give the measure shape=(3, 32, 32), of one input without the "
            "batch axis (in a plan 'shape: [3, 32, 32]'), or Subject(example=…)"
        )
    ready = subject.network.prepare_example(given)
    return {name: tensor[:1] for name, tensor in ready.items()} if isinstance(ready, Mapping) else ready[:1]


def _ones(ready: Any) -> Any:
    """Ones in place of floating-point inputs; whole numbers, such as those of words, as they are."""
    if isinstance(ready, Mapping):
        return {name: _ones(tensor) for name, tensor in ready.items()}
    return torch.ones_like(ready, dtype=torch.float64, device="cpu") if ready.is_floating_point() else ready.cpu()


@dataclass(frozen=True)
class FoldedWeights:
    """Tensors that make a network the same function without its batch norms, by the names they replace.

    ``weights`` names those of them that are weights or biases; the others hold the batch norms at the identity.
    """

    tensors: dict[str, Tensor]
    weights: list[str]


def folded_weights(subject: Subject, shape: tuple[int, ...] | Batch, fold: bool = True) -> FoldedWeights:
    """A network's weights, each batch norm folded into the layer before it; for `torch.func.functional_call`.

    A folded layer's bias is where its batch norm has one, else where the layer has one. Where neither has, and where
    a layer is called twice, nothing is folded; nor with ``fold`` off.
    """
    affine = affine_layers(subject, shape)
    tensors = dict(affine.weights)
    weights = list(affine.weights)
    modules = dict(subject.module.named_modules())
    layers = [layer for layer in affine.layers if {"weight", "norm"} <= set(layer.sources)]
    for layer in layers if fold else []:
        weight, norm = layer.sources["weight"], layer.sources["norm"]
        biases = [name for name in (f"{norm}.bias", layer.sources.get("bias", "")) if name in tensors]
        calls = sum(weight == other.sources["weight"] or norm == other.sources["norm"] for other in layers)
        batch_norm: Any = modules.get(norm)
        if not biases or calls > 1 or layer.bias is None or weight not in tensors or not hasattr(batch_norm, "eps"):
            continue
        at_rest = {f"{norm}.running_mean": 0.0, f"{norm}.running_var": 1 - batch_norm.eps}
        at_rest |= dict.fromkeys(biases, 0.0) | ({} if batch_norm.weight is None else {f"{norm}.weight": 1.0})
        tensors |= {name: torch.full_like(layer.bias, value).to(tensors[weight]) for name, value in at_rest.items()}
        tensors |= {weight: layer.weight.to(tensors[weight]), biases[0]: layer.bias.to(tensors[weight])}
        weights = [name for name in weights if name not in at_rest or name == biases[0]]
    return FoldedWeights(tensors, weights)
