"""What an ONNX file holds: its nodes by name, its inputs, and which of its tensors are weights of which node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import AssayError, optional
from assay.core.reading import is_file, reading

Array = np.ndarray[Any, np.dtype[Any]]

# The tensors of a file that each operator takes, by their place among its inputs.
_NAMED_INPUTS: Mapping[str, tuple[str, ...]] = {
    "Conv": ("", "weight", "bias"),
    "ConvTranspose": ("", "weight", "bias"),
    "Gemm": ("", "weight", "bias"),
    "BatchNormalization": ("", "weight", "bias", "running_mean", "running_var"),
    "LayerNormalization": ("", "weight", "bias"),
    "LSTM": ("", "weight", "recurrent_weight", "bias"),
    "GRU": ("", "weight", "recurrent_weight", "bias"),
    "RNN": ("", "weight", "recurrent_weight", "bias"),
    "Gather": ("weight",),  # an embedding
}
ACTIVATIONS = frozenset([
    "Celu", "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "LogSoftmax", "Mish", "PRelu", "Relu",
    "Selu", "Sigmoid", "Softmax", "Softplus", "Softsign", "Swish", "Tanh", "ThresholdedRelu",
])  # fmt: skip
_PASSED_ON = ("Identity", "Transpose")  # exporters put them between a tensor and its layer


@dataclass(frozen=True)
class OnnxGraph:
    """An ONNX model that was read and checked, and what it is made of.

    Attributes:
        model: The model itself, of the ``onnx`` package.
        where: The file it comes from, for errors.
        constants: The tensors of the file by name: initializers and constants.
        inputs: The type and the shape of each input that a user gives, by name; axes that may vary are None.
    """

    model: Any
    where: str
    constants: dict[str, Array]
    inputs: dict[str, tuple[np.dtype[Any], tuple[int | None, ...]]]

    @property
    def opset(self) -> int:
        """Version of the operators that the graph uses."""
        return max((o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx")), default=1)

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs of the graph."""
        return [output.name for output in self.model.graph.output]

    def nodes(self) -> Iterator[tuple[str, Any]]:
        """Yield the nodes, except constants, in order, each with the name of its layer."""
        taken: set[str] = set()
        for node in self.model.graph.node:
            if node.op_type == "Constant":
                continue
            name = (node.name or node.output[0]).strip("/").replace("/", "_").replace(".", "_") or "node"
            while name in taken:
                name += "_"
            taken.add(name)
            yield name, node

    def tensors(self, node: Any) -> dict[int, tuple[str, Array]]:
        """Return the tensors of the file that a node takes, by place, each with a name such as ``weight``."""
        tensors: dict[int, tuple[str, Array]] = {}
        for place, source in enumerate(node.input):
            if source not in self.constants:
                continue
            array = self.constants[source]
            named = _NAMED_INPUTS.get(node.op_type, ())
            name = named[place] if place < len(named) else ""
            if node.op_type == "MatMul" and array.ndim == 2:
                name = "weight"
            elif node.op_type == "Gather" and array.ndim < 2:
                name = ""
            tensors[place] = (name or f"constant{place}", array)
        return tensors

    def first_tensor(self, node: Any) -> int:
        """Return the place in the file of the first of its tensors that a node takes; after all of them if none."""
        places = {name: place for place, name in enumerate(self.constants)}
        return min((places[name] for name in node.input if name in places), default=len(places))

    def folded(self) -> dict[str, Array]:
        """Return the tensors of the file and what identities and transposes make of them, by name."""
        known = dict(self.constants)
        for node in self.model.graph.node:
            if node.op_type in _PASSED_ON and node.input[0] in known:
                axes = attributes_of(node).get("perm")
                array = known[node.input[0]]
                known[node.output[0]] = array if node.op_type == "Identity" else array.transpose(axes)
        return known

    @property
    def example(self) -> dict[str, Array] | None:
        """One input for each name, of the shape that the file states; None where it leaves an axis open."""
        shapes = {name: shape[1:] for name, (_, shape) in self.inputs.items()}
        if not shapes or any(None in shape for shape in shapes.values()):
            return None
        ramps = {name: np.linspace(0, 1, max(int(np.prod(shape)), 1)) for name, shape in shapes.items()}  # type: ignore[arg-type]
        return {name: ramps[name].reshape(1, *shape).astype(self.inputs[name][0]) for name, shape in shapes.items()}


def read_onnx(path: str | Path) -> OnnxGraph:
    """Read and check an ONNX file (needs the ``onnx`` package); nothing in it is run."""
    onnx = optional("onnx", "onnx", "reading ONNX files")
    if not is_file(path):
        raise AssayError(f"{path} is not a file: give the path of an ONNX network")
    with reading(path, "an ONNX network"):
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
        graph = model.graph
        for node in graph.node:
            if not all(isinstance(name, str) for name in (node.name, node.op_type, *node.input, *node.output)):
                raise ValueError("the name of a node is no text")
        constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = np.asarray(next(iter(attributes_of(node).values())))
        inputs = {i.name: _declared(onnx, i) for i in graph.input if i.name not in constants}
    if not inputs or not graph.output:
        raise AssayError(f"{path} has {len(inputs)} inputs and {len(graph.output)} outputs: it is no network")
    return OnnxGraph(model, str(path), constants, inputs)


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of a node as numbers, texts, lists and arrays."""
    import onnx

    attributes = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode()
        elif hasattr(value, "__iter__") and not isinstance(value, str):
            value = list(value)
        attributes[attribute.name] = value
    return attributes


def _declared(onnx: Any, given: Any) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """Return the type and the shape that a file states of an input."""
    kind = given.type.tensor_type
    if not given.type.HasField("tensor_type"):
        raise ValueError(f"the input {given.name!r} is no tensor")
    sides = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else None for d in kind.shape.dim)
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)), sides
