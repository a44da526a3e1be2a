"""ONNX graphs as torch modules, one child per node, so that every layer can be recorded and split at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.errors import AssayError, first_line, optional


def load_onnx(path: str | Path) -> OnnxNetwork:
    """Read an ONNX file into torch (needs the ``onnx`` package)."""
    onnx = optional("onnx", "onnx", "reading ONNX files")
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf, checker and file errors share no base class
        raise AssayError(f"{path} cannot be read as an ONNX network ({first_line(error)})") from error
    return OnnxNetwork(model, str(path))


class OnnxNode(nn.Module):
    """One node of a graph: a torch function and its attributes; tensors from the file are buffers of the network."""

    def __init__(self, operator: str, attributes: dict[str, Any]) -> None:
        super().__init__()
        self.operator = operator
        self.attributes = attributes

    def extra_repr(self) -> str:
        """Return the operator and its attributes, which torch prints."""
        return f"{self.operator}, {self.attributes}"

    def forward(self, *inputs: Any) -> Any:
        """Apply the operator to the node's inputs."""
        return _OPERATORS[self.operator](self.attributes, *inputs)


class OnnxNetwork(nn.Module):
    """An ONNX graph with one input and one output, run node by node in torch."""

    def __init__(self, model: Any, where: str) -> None:
        super().__init__()
        from onnx import numpy_helper

        graph = model.graph
        unknown = sorted({n.op_type for n in graph.node} - set(_OPERATORS) - {"Constant"})
        if unknown:
            raise AssayError(f"{where} uses ONNX operators assay cannot run: {', '.join(unknown)}")
        weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        inputs = [i.name for i in graph.input if i.name not in weights]
        if len(inputs) != 1:
            raise AssayError(f"{where} has {len(inputs)} inputs: assay runs ONNX networks with one")
        self.input_name = inputs[0]
        self.output_name = graph.output[0].name
        self._buffer_names: dict[str, str] = {}
        self._plan: list[tuple[str, list[str], list[str]]] = []
        for node in graph.node:
            attributes = {a.name: _attribute(a) for a in node.attribute}
            if node.op_type == "Constant":
                weights[node.output[0]] = np.asarray(next(iter(attributes.values())))
                continue
            name = _module_name(node.name or node.output[0])
            while name in self._modules:
                name += "_"
            self.add_module(name, OnnxNode(node.op_type, attributes))
            self._plan.append((name, list(node.input), list(node.output)))
        for i, (name, array) in enumerate(weights.items()):
            self._buffer_names[name] = f"tensor{i}"
            self.register_buffer(f"tensor{i}", torch.from_numpy(np.array(array)))

    def forward(self, x: Tensor) -> Any:
        """Return the first output of the graph."""
        values: dict[str, Any] = {name: self.get_buffer(b) for name, b in self._buffer_names.items()}
        values[self.input_name] = x
        for name, inputs, outputs in self._plan:
            result = self._modules[name](*(values[i] if i else None for i in inputs))  # type: ignore[misc]
            values.update(zip(outputs, result if isinstance(result, tuple) else (result,), strict=False))
        return values[self.output_name]


def _module_name(name: str) -> str:
    return name.strip("/").replace("/", "_").replace(".", "_") or "node"


def _attribute(attribute: Any) -> Any:
    import onnx

    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


def _ints(tensor: Tensor) -> list[int]:
    return [int(v) for v in tensor.tolist()]


def _padded(a: dict[str, Any], x: Tensor, value: float = 0.0) -> Tensor:
    """Pad each side by its own amount, as ONNX does, for an unpadded convolution or pooling."""
    dims = x.dim() - 2
    pads = a.get("pads", [0] * 2 * dims)
    if a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise AssayError(f"ONNX auto_pad={a['auto_pad']} is not supported: export with explicit pads")
    if not any(pads):
        return x
    return F.pad(x, [p for d in reversed(range(dims)) for p in (pads[d], pads[dims + d])], value=value)


def _conv(a: dict[str, Any], x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    dims = x.dim() - 2
    conv: Callable[..., Tensor] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[dims]
    pads = a.get("pads", [0] * 2 * dims)
    settings = (a.get("strides", [1] * dims), a.get("dilations", [1] * dims), a.get("group", 1))
    if pads[:dims] == pads[dims:] and a.get("auto_pad", "NOTSET") == "NOTSET":
        return conv(x, w, b, settings[0], pads[:dims], *settings[1:])
    return conv(_padded(a, x), w, b, settings[0], 0, *settings[1:])


def _max_pool(a: dict[str, Any], x: Tensor) -> Tensor:
    dims = x.dim() - 2
    pool: Callable[..., Tensor] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[dims]
    x = _padded(a, x, float("-inf"))
    strides, dilations = a.get("strides", [1] * dims), a.get("dilations", [1] * dims)
    return pool(x, a["kernel_shape"], strides, 0, dilations, bool(a.get("ceil_mode", 0)))


def _average_pool(a: dict[str, Any], x: Tensor) -> Tensor:
    dims = x.dim() - 2
    pool: Callable[..., Tensor] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[dims]
    pads = a.get("pads", [0] * 2 * dims)
    if pads[:dims] != pads[dims:]:
        raise AssayError("ONNX AveragePool with unequal pads is not supported")
    strides = a.get("strides", [1] * dims)
    counted = bool(a.get("count_include_pad", 0))
    return pool(x, a["kernel_shape"], strides, pads[:dims], bool(a.get("ceil_mode", 0)), counted)


def _batch_norm(a: dict[str, Any], x: Tensor, *stats: Tensor) -> Tensor:
    weight, bias, mean, var = stats
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, a.get("epsilon", 1e-5))


def _gemm(a: dict[str, Any], x: Tensor, y: Tensor, z: Tensor | None = None) -> Tensor:
    x = x.T if a.get("transA") else x
    y = y.T if a.get("transB") else y
    out: Tensor = a.get("alpha", 1.0) * (x @ y)
    return out if z is None else out + a.get("beta", 1.0) * z


def _reshape(a: dict[str, Any], x: Tensor, shape: Tensor) -> Tensor:
    sizes = [x.shape[i] if s == 0 and not a.get("allowzero") else s for i, s in enumerate(_ints(shape))]
    return x.reshape(sizes)


def _axes(a: dict[str, Any], x: Tensor, axes: Tensor | None) -> list[int]:
    if axes is not None:
        return _ints(axes)
    return list(a.get("axes", range(x.dim())))


def _reduce_mean(a: dict[str, Any], x: Tensor, axes: Tensor | None = None) -> Tensor:
    return x.mean(_axes(a, x, axes), keepdim=bool(a.get("keepdims", 1)))


def _squeeze(a: dict[str, Any], x: Tensor, axes: Tensor | None = None) -> Tensor:
    return x.squeeze(tuple(_axes(a, x, axes)))


def _unsqueeze(a: dict[str, Any], x: Tensor, axes: Tensor | None = None) -> Tensor:
    chosen = _axes(a, x, axes)
    for axis in sorted(i % (x.dim() + len(chosen)) for i in chosen):
        x = x.unsqueeze(axis)
    return x


def _flatten(a: dict[str, Any], x: Tensor) -> Tensor:
    axis = a.get("axis", 1)
    return x.flatten(1) if axis == 1 else x.reshape(int(np.prod(x.shape[:axis])), -1)


def _layer_norm(a: dict[str, Any], x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    axis = a.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], w, b, a.get("epsilon", 1e-5))


def _clip(a: dict[str, Any], x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    bounds = [a.get("min") if low is None else low.item(), a.get("max") if high is None else high.item()]
    return x.clamp(*bounds)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda a, x, y: x + y,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": lambda a, *x: torch.cat(x, a["axis"]),
    "Conv": _conv,
    "Div": lambda a, x, y: x / y,
    "Dropout": lambda a, x, *_: x,
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Erf": lambda a, x: torch.erf(x),
    "Exp": lambda a, x: torch.exp(x),
    "Flatten": _flatten,
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "HardSigmoid": lambda a, x: (a.get("alpha", 0.2) * x + a.get("beta", 0.5)).clamp(0, 1),
    "Identity": lambda a, x: x,
    "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "Log": lambda a, x: torch.log(x),
    "LogSoftmax": lambda a, x: F.log_softmax(x, a.get("axis", -1)),
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": _max_pool,
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "Pow": lambda a, x, y: x**y,
    "ReduceMean": _reduce_mean,
    "Relu": lambda a, x: F.relu(x),
    "Reshape": _reshape,
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Softmax": lambda a, x: F.softmax(x, a.get("axis", -1)),
    "Softplus": lambda a, x: F.softplus(x),
    "Sqrt": lambda a, x: torch.sqrt(x),
    "Squeeze": _squeeze,
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: torch.tanh(x),
    "Transpose": lambda a, x: x.permute(a.get("perm", list(reversed(range(x.dim()))))),
    "Unsqueeze": _unsqueeze,
}
