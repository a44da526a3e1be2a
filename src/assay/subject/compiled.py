"""Compiled: a captured graph as fast kernels, batch norm folded into the layer before it, and checked."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from assay.subject.agreement import require_same
from assay.subject.silence import silence

_AFFINE = {
    torch.ops.aten.linear.default,
    torch.ops.aten.conv1d.default,
    torch.ops.aten.conv2d.default,
    torch.ops.aten.conv3d.default,
}
BACKEND = "inductor"
_BATCH_NORM = torch.ops.aten.batch_norm.default


def compiled(module: fx.GraphModule, example: Sequence[Any]) -> Callable[..., Any]:
    """The module compiled for any batch size, batch norm folded; an error where it then does something else.

    Args:
        module: A captured graph.
        example: Inputs to check it with; the graph may write to them.
    """
    with torch.no_grad(), silence():
        faster: Callable[..., Any] = torch.compile(folded(module), dynamic=True, backend=BACKEND)
        require_same(faster(*_copies(example)), module(*_copies(example)))
    return faster


def _copies(values: Sequence[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, Tensor) else value for value in values]


def folded(module: fx.GraphModule) -> fx.GraphModule:
    """A graph in which batch norm is part of the convolution or linear layer before it; see `fold`.

    Only where nothing else reads what is between the two. The graph folds the weights whenever it runs, because what is
    written to ``weight.data`` leaves no trace by which weights folded earlier could be known to be old.
    """
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    module = fx.GraphModule(module, graph)
    for norm in list(module.graph.nodes):
        if norm.op == "call_function" and norm.target is _BATCH_NORM and norm.args[5] is False:
            _fold_node(module.graph, norm)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def fold(
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Weight and bias of one layer that does what a layer and the batch norm after it do.

    Formula: γ·(Wx + b − μ)/√(σ² + ε) + β = W'x + b' with W' = sW, b' = s(b − μ) + β and s = γ/√(σ² + ε), in float64
    but for sW, which is the product of float32 numbers where weights are no longer than that.

    Example:
        >>> one = torch.ones(1)
        >>> fold(torch.full((1, 2), 3.0), one, 4 * one, 5 * one, 2 * one, 3 * one, 1.0)
        (tensor([[6., 6.]]), tensor([3.]))
    """
    scale = (var.double() + eps).rsqrt() * (1 if gamma is None else gamma.detach().double())
    shift = scale * ((0 if bias is None else bias.detach().double()) - mean.double())
    shift = shift + (0 if beta is None else beta.detach().double())
    wide = torch.promote_types(weight.dtype, torch.float32)
    by_row = scale.to(wide).view(-1, *[1] * (weight.dim() - 1))
    return (weight.detach().to(wide) * by_row).to(weight.dtype), shift.to(weight.dtype)


def _fold_node(graph: fx.Graph, norm: fx.Node) -> None:
    """Fold one batch norm of a graph into the layer before it, if it can be."""
    layer, *of_norm = norm.args[:5]
    if not isinstance(layer, fx.Node) or layer.target not in _AFFINE or len(layer.users) > 1:
        return
    if layer.target is torch.ops.aten.linear.default and layer.meta["val"].dim() != 2:
        return  # its features are not on the axis that batch norm takes for channels
    tensors = (layer.args[1], layer.args[2] if len(layer.args) > 2 else None, *of_norm)
    if any(isinstance(node, fx.Node) and node.op != "get_attr" for node in tensors) or None in tensors[4:]:
        return  # something is computed, or taken from the batch
    with graph.inserting_before(layer):  # the graph itself may read the tensors of batch norm only after the layer
        read = [graph.get_attr(str(node.target)) if isinstance(node, fx.Node) else None for node in tensors]
        both = graph.call_function(fold, (*read, norm.args[7]))
        weight, bias = (graph.call_function(operator.getitem, (both, i)) for i in (0, 1))
    layer.args = (layer.args[0], weight, bias, *layer.args[3:])
    norm.replace_all_uses_with(layer)
