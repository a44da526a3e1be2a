"""ONNX graphs as torch modules, one child per node, so that every layer can be recorded and split at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, first_line
from assay.networks.imported.onnx_graph import OnnxGraph, attributes_of, read_onnx
from assay.networks.imported.onnx_operators import OPERATORS
from assay.networks.imported.onnx_runtime import OnnxRuntimeNetwork


def load_onnx(path: str | Path) -> OnnxNetwork | OnnxRuntimeNetwork:
    """Read an ONNX file as a torch module whose children are its nodes (needs the ``onnx`` package).

    A graph of one input whose operators assay knows is run by torch, with gradients. Any other is run by onnxruntime
    (see `OnnxRuntimeNetwork`), which has to be installed for it.
    """
    graph = read_onnx(path)
    if why_not_torch(graph):
        return OnnxRuntimeNetwork(graph, why_not_torch(graph))
    try:
        return OnnxNetwork(graph)
    except AssayError:
        raise
    except Exception as error:  # a file that was made by hand may be wrong in any way
        raise AssayError(f"{path} cannot be read as an ONNX network ({first_line(error)})") from error


def why_not_torch(graph: OnnxGraph) -> str:
    """Say why assay cannot run a graph by torch; empty where it can."""
    nodes = [node for _, node in graph.nodes()]
    unknown = sorted({n.op_type for n in nodes if n.op_type not in OPERATORS or n.domain not in ("", "ai.onnx")})
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        return f"it has the operators {', '.join(unknown[:3])}{more}"
    if len(graph.inputs) != 1:
        return f"it has {len(graph.inputs)} inputs"
    if graph.opset < 7 or (graph.opset < 13 and any(n.op_type in ("Softmax", "LogSoftmax") for n in nodes)):
        return f"its operators are of version {graph.opset}"
    for node in nodes:
        settings = attributes_of(node)
        pads = settings.get("pads", [])
        if settings.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            return f"it pads by auto_pad={settings['auto_pad']}"
        if node.op_type == "AveragePool" and pads[: len(pads) // 2] != pads[len(pads) // 2 :]:
            return "it averages with unequal pads"
    return ""


class OnnxNode(nn.Module):
    """One node of a graph: a torch function, its attributes, and the tensors of the file that it takes as buffers.

    A layer has its weights and biases as ``weight`` and ``bias``, and a convolution its ``kernel_size``.
    """

    def __init__(
        self, operator: str, attributes: dict[str, Any], tensors: dict[int, tuple[str, Tensor]] | None = None
    ) -> None:
        super().__init__()
        self.operator = operator
        self.attributes = attributes
        self.places: dict[int, str] = {}
        for place, (name, tensor) in (tensors or {}).items():
            self.places[place] = name
            self.register_buffer(name, tensor)
        if operator == "Conv" and 1 in self.places:
            self.kernel_size = tuple(self.get_buffer("weight").shape[2:])

    def extra_repr(self) -> str:
        """Return the operator and its attributes, which torch prints."""
        return f"{self.operator}, {self.attributes}"

    def forward(self, *inputs: Any) -> Any:
        """Apply the operator to the node's inputs; those that are tensors of the file are its own."""
        given = list(inputs)
        for place, name in self.places.items():
            given[place] = self.get_buffer(name)
        return OPERATORS[self.operator](self.attributes, *given)


class OnnxNetwork(nn.Module):
    """An ONNX graph with one input, run node by node in torch; it returns the first output."""

    def __init__(self, graph: OnnxGraph) -> None:
        super().__init__()
        (self.input_name,) = graph.inputs
        self.output_name = graph.outputs[0]
        self._plan = [(name, list(node.input), list(node.output)) for name, node in graph.nodes()]
        shared: dict[int, Tensor] = {}
        for name, node in sorted(graph.nodes(), key=lambda named: graph.first_tensor(named[1])):
            tensors = {}
            for place, (role, array) in graph.tensors(node).items():
                tensor = shared.setdefault(id(array), torch.from_numpy(np.array(array)))
                tensors[place] = (role, tensor)
            self.add_module(name, OnnxNode(node.op_type, attributes_of(node), tensors))
        made = {self.input_name, *(output for _, _, outputs in self._plan for output in outputs)}
        if self.output_name not in made:
            raise AssayError(f"{graph.where} has an output {self.output_name!r} that does not depend on its input")
        self._example = graph.example

    @property
    def example(self) -> Any:
        """An input of the shape that the file states; None where it leaves an axis open."""
        return None if self._example is None else torch.from_numpy(self._example[self.input_name])

    def forward(self, x: Tensor) -> Any:
        """Return the first output of the graph."""
        values: dict[str, Any] = {self.input_name: x}
        for name, inputs, outputs in self._plan:
            result = self._modules[name](*(values.get(i) for i in inputs))  # type: ignore[misc]
            values.update(zip(outputs, result if isinstance(result, tuple) else (result,), strict=False))
        return values[self.output_name]
