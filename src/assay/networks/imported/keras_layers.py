"""The layers of Keras as torch modules, which take channels first and return the same numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite, prod
from types import MappingProxyType
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.utils import skip_init

from assay.core.errors import AssayError, first_line, nearest
from assay.networks.imported.keras_modules import (
    Flatten,
    GlobalAveragePool,
    GlobalMaxPool,
    Shape,
    UnevenAvgPool2d,
    UnevenConv2d,
    UnevenMaxPool2d,
    padded,
    picture,
    window,
)

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "elu": nn.ELU,
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "selu": nn.SELU,
    "sigmoid": nn.Sigmoid,
    "softmax": partial(nn.Softmax, 1),
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}
# Arguments that change nothing after training.
_IGNORED = {"layer_name", "batch_input_shape", "fused", "input_shape", "name", "noise_shape", "seed", "trainable"}
_IGNORED_ENDS = ("_initializer", "_regularizer", "_constraint")
# Arguments that are accepted only with these values.
_ONLY: dict[str, tuple[Any, ...]] = {
    "data_format": ("channels_last", None),
    "dtype": ("float32", None),
    "keepdims": (False,),
    "max_value": (None,),
    "negative_slope": (0,),
    "renorm": (False,),
    "threshold": (0,),
    "virtual_batch_size": (None,),
}


class Layer(NamedTuple):
    """A layer: its kind, its module, the shape of its output, and the tensors of its weights by Keras' names."""

    kind: str
    module: nn.Module
    shape: Shape
    weights: Mapping[str, Tensor] = MappingProxyType({})


def keras_layer(entry: Any, shape: Shape) -> list[Layer]:
    """Build the layer described by a mapping of ``layer_name`` and Keras' arguments, and its activation if it has one.

    Args:
        entry: The mapping. Missing arguments have Keras' defaults; those that matter only in training are ignored.
        shape: Shape of one input: C×H×W, or D.

    Example:
        >>> conv, relu = keras_layer(
        ...     {"layer_name": "Conv2D", "filters": 8, "kernel_size": 3, "activation": "relu"}, (3, 9, 9)
        ... )
        >>> conv.kind, conv.shape, relu.kind
        ('conv', (8, 7, 7), 'relu')

    Source: https://keras.io/2/api/layers
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("layer_name"), str):
        raise AssayError(f"{entry!r} is not a mapping with a 'layer_name'")
    name = entry["layer_name"]
    if name not in _LAYERS:
        raise AssayError(f"unknown layer_name {name!r}{nearest(name, _LAYERS)}")
    parameters = inspect.signature(_LAYERS[name]).parameters.values()
    known = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    for key, value in entry.items():
        if key in _ONLY and value not in _ONLY[key]:
            raise AssayError(f"{name} has {key}={value!r}: assay reads only {_ONLY[key][0]!r}")
        if key not in {*known, *_ONLY, *_IGNORED} and not key.endswith(_IGNORED_ENDS):
            raise AssayError(f"{name} has an unknown argument {key!r}{nearest(key, known)}")
    for key, default in known.items():
        if default is inspect.Parameter.empty and key not in entry:
            raise AssayError(f"{name} lacks its argument {key!r}")
    try:
        return _LAYERS[name](shape, **{key: entry[key] for key in known if key in entry})
    except ValueError as error:  # ours or torch's
        raise AssayError(f"{name}: {first_line(error)}") from error


# -- each kind; the defaults are Keras' -----------------------------------------------------------------------


def _dense(shape: Shape, *, units: Any, activation: Any = None, use_bias: bool = True) -> list[Layer]:
    if len(shape) != 1:
        raise AssayError("it follows pictures: a Flatten or a global pooling must come before it")
    out = (whole("units", units),)
    module: nn.Module = skip_init(nn.Linear, *shape, *out, bias=bool(use_bias))  # type: ignore[no-untyped-call]
    return [Layer("dense", module, out, _kernel_and_bias(module)), *_activation(out, activation)]


def _conv(
    shape: Shape,
    *,
    filters: Any,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "valid",
    dilation_rate: Any = 1,
    groups: Any = 1,
    activation: Any = None,
    use_bias: bool = True,
) -> list[Layer]:
    channels, groups = whole("filters", filters), whole("groups", groups)
    if shape[0] % groups or channels % groups:
        raise AssayError(f"groups={groups} does not divide {shape[0]} channels and {channels} filters")
    kernel, stride = _pair("kernel_size", kernel_size), _pair("strides", strides)
    dilation = _pair("dilation_rate", dilation_rate)
    pads, size = window(shape, padding, kernel, stride, dilation)
    kinds = (partial(skip_init, nn.Conv2d), partial(skip_init, UnevenConv2d))
    settings = {"stride": stride, "dilation": dilation, "groups": groups, "bias": bool(use_bias)}
    module = padded(*kinds, pads, in_channels=shape[0], out_channels=channels, kernel_size=kernel, **settings)
    out = (channels, *size)
    return [Layer("conv", module, out, _kernel_and_bias(module)), *_activation(out, activation)]


def _pool(
    kind: str, plain: Any, uneven: Any, shape: Shape, *, pool_size: Any = 2, strides: Any = None, padding: Any = "valid"
) -> list[Layer]:
    kernel = _pair("pool_size", pool_size)
    stride = kernel if strides is None else _pair("strides", strides)
    pads, size = window(shape, padding, kernel, stride)
    return [Layer(kind, padded(plain, uneven, pads, kernel_size=kernel, stride=stride), (shape[0], *size))]


def _global_pool(kind: str, module: Callable[[], nn.Module], shape: Shape) -> list[Layer]:
    return [Layer(kind, module(), picture(shape)[:1])]


def _flatten(shape: Shape) -> list[Layer]:
    return [Layer("flatten", Flatten(), (prod(shape),))]


def _dropout(shape: Shape, *, rate: Any) -> list[Layer]:
    return [Layer("dropout", nn.Dropout(_number("rate", rate)), shape)]


def _batch_norm(
    shape: Shape,
    *,
    axis: Any = -1,
    momentum: Any = 0.99,
    epsilon: Any = 1e-3,
    center: bool = True,
    scale: bool = True,
) -> list[Layer]:
    if axis not in (-1, len(shape), [-1], [len(shape)]):
        raise AssayError(f"axis={axis!r} is not the last one, the channels")
    kind = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
    module = kind(shape[0], eps=_number("epsilon", epsilon), momentum=1 - _number("momentum", momentum))
    weights = {"moving_mean": module.get_buffer("running_mean"), "moving_variance": module.get_buffer("running_var")}
    weights |= {"gamma": module.weight} if scale else {}
    weights |= {"beta": module.bias} if center else {}
    return [Layer("batch_norm", module, shape, weights)]


def _activation(shape: Shape, activation: Any) -> list[Layer]:
    if activation in (None, "linear"):
        return []
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise AssayError(f"unknown activation {activation!r}{nearest(str(activation), _ACTIVATIONS)}")
    return [Layer(activation, _ACTIVATIONS[activation](), shape)]


def _softmax(shape: Shape, *, axis: Any = -1) -> list[Layer]:
    if axis not in (-1, len(shape)):
        raise AssayError(f"axis={axis!r} is not the last one, the channels")
    return _activation(shape, "softmax")


_average_pool = partial(_pool, "average_pool", partial(nn.AvgPool2d, count_include_pad=False), UnevenAvgPool2d)
_max_pool = partial(_pool, "max_pool", nn.MaxPool2d, UnevenMaxPool2d)
_global_average_pool = partial(_global_pool, "global_average_pool", GlobalAveragePool)
_global_max_pool = partial(_global_pool, "global_max_pool", GlobalMaxPool)
_LAYERS: dict[str, Callable[..., list[Layer]]] = {
    "Activation": lambda shape, *, activation: _activation(shape, activation),
    "AveragePooling2D": _average_pool,
    "AvgPool2D": _average_pool,
    "BatchNormalization": _batch_norm,
    "Conv2D": _conv,
    "Convolution2D": _conv,
    "Dense": _dense,
    "Dropout": _dropout,
    "Flatten": _flatten,
    "GlobalAveragePooling2D": _global_average_pool,
    "GlobalAvgPool2D": _global_average_pool,
    "GlobalMaxPool2D": _global_max_pool,
    "GlobalMaxPooling2D": _global_max_pool,
    "MaxPool2D": _max_pool,
    "MaxPooling2D": _max_pool,
    "ReLU": lambda shape: _activation(shape, "relu"),
    "Softmax": _softmax,
}


def _kernel_and_bias(module: nn.Module) -> dict[str, Tensor]:
    names = {"weight": "kernel", "bias": "bias"}
    return {names[name]: tensor for name, tensor in module.named_parameters()}


def _pair(key: str, value: Any) -> tuple[int, int]:
    both = value if isinstance(value, list) else [value, value]
    if len(both) != 2:
        raise AssayError(f"{key}={value!r} is neither a number nor two")
    return whole(key, both[0]), whole(key, both[1])


def whole(key: str, value: Any) -> int:
    """Return a whole number from 1 as int, or raise an error; JSON may have written it as 3.0."""
    if not _number(key, value).is_integer() or value < 1:
        raise AssayError(f"{key}={value!r} is not a whole number from 1")
    return int(value)


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise AssayError(f"{key}={value!r} is not a number")
    return float(value)
