"""Running a network with squared weights, and keeping the affine layers it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from assay.subject.dry_run import OUTPUT

# Operations of torch by name, without the underscores around it: `add` stands for ``Tensor.add_`` too.
_AFFINE = frozenset(["linear", "conv1d", "conv2d", "conv3d"])
_ADDING = frozenset(["add", "iadd", "radd", "sub", "isub", "rsub"])
_MULTIPLYING = frozenset(["mul", "imul", "rmul"])
_DIVIDING = frozenset(["div", "idiv", "truediv", "itruediv"])
_AVERAGE_POOLING = frozenset(["avg_pool1d", "avg_pool2d", "avg_pool3d"])
_ADAPTIVE_AVERAGE_POOLING = frozenset(["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"])
# Copies, sums and largest values, of weight one; on what is not negative a ReLU is the identity.
_OF_WEIGHT_ONE = frozenset([
    "relu", "leaky_relu", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "flatten", "unflatten", "view", "reshape", "permute", "transpose", "T", "mT", "movedim", "squeeze", "unsqueeze",
    "contiguous", "clone", "detach", "data", "to", "expand", "getitem", "chunk", "split", "cat", "stack",
    "sum", "amax", "maximum",
])  # fmt: skip


@dataclass(frozen=True)
class AffineLayer:
    """One call of a linear or convolutional layer, or of a batch norm that follows none.

    ``weight`` (outputs × inputs/groups × kernel) and ``bias`` are those of the layer and of the batch norm after it,
    as one map. ``inputs`` and ``outputs`` are shapes without the batch axis, ``sources`` the names in the network of
    its ``weight``, ``bias`` and ``norm``.
    """

    name: str
    weight: Tensor
    bias: Tensor | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> int:
        """Number of weights and biases; those of a kernel count once, wherever it is applied."""
        return self.weight.numel() + (0 if self.bias is None else self.bias.numel())


@dataclass
class _Call:
    """A layer that was called, how to run it with other weights, and its output with the version it had then."""

    layer: AffineLayer
    run: Callable[[Tensor, Tensor | None], Tensor]
    output: Tensor
    version: int


class Squaring(TorchFunctionMode):
    """Runs a network with squared weights, in every operation that depends on the input.

    A tensor that does not depend on the input is a weight, or made of weights: it is squared where it meets one that
    does. Numbers that add or multiply are weights too, and so are the 1/n of an average.
    """

    def __init__(self, module: nn.Module, *inputs: Tensor) -> None:
        super().__init__()
        named = [*module.named_parameters(), *module.named_buffers()]
        self.names: dict[int, tuple[str, ...]] = {id(t): (name,) for name, t in named}
        self.flowing = {id(tensor) for tensor in inputs}
        self.kept: list[Any] = [*inputs]  # a tensor that is kept alive keeps its id to itself
        self.calls: list[_Call] = []
        self.used: set[str] = set()
        self.unsupported = ""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        flows = any(id(t) in self.flowing for t in tensors)
        result = self._squared(func, args, kwargs) if flows else func(*args, **kwargs)
        made_of = tuple(dict.fromkeys(name for t in tensors for name in self.names.get(id(t), ())))
        for tensor in pytree.tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.kept.append(tensor)
                if flows:
                    self.flowing.add(id(tensor))
                else:
                    self.names.setdefault(id(tensor), made_of)
        return result

    def _squared(self, func: Any, args: Any, kwargs: Any) -> Any:
        called = getattr(func, "__name__", str(func))
        called = func.__self__.__name__ if called == "__get__" else called  # a property such as x.T
        name = called.strip("_")
        if name in _AFFINE:
            return self._affine(func, *args, **kwargs)
        if name == "batch_norm":
            return self._batch_norm(func, *args, **kwargs)
        if name in ("matmul", "mm") and id(args[1]) not in self.flowing and args[1].dim() == 2:
            weight = args[1].mT
            self.kept.append(weight)
            self.names[id(weight)] = self.names.get(id(args[1]), ())
            return self._affine(F.linear, args[0], weight)
        if name in _OF_WEIGHT_ONE or (name == "pad" and not _fill(*args, **kwargs)):
            return func(*self._square(args), **self._square(kwargs))
        if name in _ADDING and not kwargs:
            added = getattr(Tensor, called.replace("sub", "add"), torch.add)
            return added(*self._square(args, numbers=True))
        scales = name in _MULTIPLYING or name in _DIVIDING
        if scales and not kwargs and self._one_flows(args[0], args[1], ordered=name in _DIVIDING):
            return func(*self._square(args, numbers=True))
        result = func(*args, **kwargs)
        if not isinstance(result, Tensor):
            return result  # a shape, a length
        if name == "mean":
            return result * (result.numel() / args[0].numel())
        if name in _AVERAGE_POOLING and (count := _pooled(*args, **kwargs)):
            return result / count
        if name in _ADAPTIVE_AVERAGE_POOLING:
            return result / _adaptively_pooled(args[0], result)
        self.unsupported = self.unsupported or name
        return result

    def _one_flows(self, a: Any, b: Any, ordered: bool) -> bool:
        """Whether exactly one factor of a product, or the dividend alone of a quotient, depends on the input."""
        return id(b) not in self.flowing if id(a) in self.flowing else not ordered

    def _square(self, values: Any, numbers: bool = False) -> Any:
        def square(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.square() if id(value) not in self.flowing and value.is_floating_point() else value
            return value**2 if numbers and isinstance(value, float | int) else value

        return pytree.tree_map(square, values)

    def _affine(self, func: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any, **more: Any) -> Any:
        def run(weight: Tensor, bias: Tensor | None) -> Tensor:
            result: Tensor = func(x, weight.square(), None if bias is None else bias.square(), *rest, **more)
            return result

        settings = {"stride": 1, "dilation": 1, "groups": 1}
        settings |= dict(zip(("stride", "padding", "dilation", "groups"), rest, strict=False)) | more
        stride, dilation = (_each(settings[key], weight.dim() - 2) for key in ("stride", "dilation"))
        sources = {key: self._named(t) for key, t in (("weight", weight), ("bias", bias)) if t is not None}
        output = run(weight, bias)
        shapes = tuple(x.shape[1:]), tuple(output.shape[1:])
        name = self._layer(sources["weight"])
        layer = AffineLayer(name, weight, bias, *shapes, stride, dilation, int(settings["groups"]), sources)
        self.calls.append(_Call(layer, run, output, output._version))
        return output

    def _batch_norm(
        self, func: Any, x: Tensor, mean: Tensor | None, variance: Tensor | None, weight: Tensor | None = None,
        bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
    ) -> Any:  # fmt: skip
        if training or mean is None or variance is None:
            self.unsupported = self.unsupported or "batch norm without running statistics"
            return func(x, mean, variance, weight, bias, training, momentum, eps)
        scale = (variance + eps).rsqrt() * (1 if weight is None else weight)
        shift = (0 if bias is None else bias) - scale * mean
        norm = self._named(mean).removesuffix("running_mean").removesuffix(".")
        for call in self.calls:
            per_output = x.dim() == 2 or call.layer.weight.dim() > 2  # else the norm is over another axis
            if call.output is x and call.version == x._version and per_output:
                return _fold(call, scale, shift, norm)
        shape = tuple(x.shape[1:])
        layer = AffineLayer(norm, scale[:, None], shift, shape, shape, groups=len(scale), sources={"norm": norm})
        wide = (1, -1, *[1] * (x.dim() - 2))

        def run(weight: Tensor, bias: Tensor | None) -> Tensor:
            assert bias is not None
            return x * weight.square().view(wide) + bias.square().view(wide)

        output = run(layer.weight, layer.bias)
        self.calls.append(_Call(layer, run, output, -1))
        return output

    def _named(self, tensor: Tensor) -> str:
        names = self.names.get(id(tensor), ())
        self.used.update(names)
        return names[0] if names else "constant"

    def _layer(self, weight: str) -> str:
        """The name of a layer in tables: that of `Subject.layers`, where the weight is a module's own."""
        name = OUTPUT if weight == "weight" else weight.removesuffix(".weight")
        again = sum(call.layer.sources.get("weight") == weight for call in self.calls)
        return f"{name}#{again + 1}" if again else name


def _fold(call: _Call, scale: Tensor, shift: Tensor, norm: str) -> Tensor:
    layer = call.layer
    weight = layer.weight * scale.view(-1, *[1] * (layer.weight.dim() - 1))
    bias = shift if layer.bias is None else scale * layer.bias + shift
    call.layer = replace(layer, weight=weight, bias=bias, sources=layer.sources | {"norm": norm})
    return call.run(weight, bias)


def _each(value: Any, axes: int) -> tuple[int, ...]:
    return tuple(value) * (axes if len(value) == 1 else 1) if isinstance(value, tuple | list) else (value,) * axes


def _fill(x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> bool:
    return bool(value)


def _pooled(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
            count_include_pad: bool = True, divisor_override: int | None = None) -> int:  # fmt: skip
    """Number of values that an average pools; 0 where it differs from place to place."""
    padded = any(_each(padding, 1)) and not count_include_pad
    return 0 if padded or ceil_mode or divisor_override else prod(_each(kernel_size, x.dim() - 2))


def _adaptively_pooled(x: Tensor, result: Tensor) -> Tensor:
    """Number of values that an adaptive average pools at each place: ⌈(i + 1)·n/m⌉ − ⌊i·n/m⌋ along each axis."""
    counts = torch.ones((), dtype=x.dtype)
    for n, m in zip(x.shape[2:], result.shape[2:], strict=True):
        i = torch.arange(m)
        counts = counts[..., None] * (((i + 1) * n + m - 1) // m - i * n // m)
    return counts
