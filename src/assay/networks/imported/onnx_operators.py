"""Operators of ONNX as functions of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError


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


OPERATORS: dict[str, Callable[..., Any]] = {
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
