"""Running a network with squared weights, and keeping the affine layers it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from assay.core.arrays import tensors_in
from assay.measures.complexity.path_operations import (
    ABOUT_THE_TENSOR,
    ADAPTIVE_AVERAGE_POOLING,
    ADDING,
    AFFINE,
    AVERAGE_POOLING,
    CHOOSING,
    CONSTANT,
    DIVIDING,
    DROPPING,
    MULTIPLYING,
    OF_WEIGHT_ONE,
    PRODUCTS,
    adaptively_pooled,
    drops,
    each_axis,
    fills,
    operation_name,
    pooled,
    slope,
)
from assay.subject.dry_run import OUTPUT


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


def squared(weight: Tensor) -> Tensor:
    """The squares w² of weights, |w|² of complex ones, which stay of a complex type as what they meet may be.

    Example:
        >>> squared(torch.tensor([3.0 + 4.0j])).tolist(), squared(torch.tensor([-2.0])).tolist()
        ([(25+0j)], [4.0])
    """
    return (weight.real.square() + weight.imag.square()).to(weight) if weight.is_complex() else weight.square()


def _of_numbers(tensor: Tensor) -> bool:
    """Whether a tensor holds real or complex numbers, which are computed with, and not whole ones, which count."""
    return tensor.is_floating_point() or tensor.is_complex()


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
        self.module = module
        self.inside: list[nn.Module] = []  # the modules that are running, from the network to the innermost
        self.hooks: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        flows = any(id(t) in self.flowing for t in tensors)
        result = self._squared(func, args, kwargs) if flows else func(*args, **kwargs)
        made_of = tuple(dict.fromkeys(name for t in tensors for name in self.names.get(id(t), ())))
        for tensor in pytree.tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.kept.append(tensor)
                if flows and operation_name(func)[1] not in CONSTANT:
                    self.flowing.add(id(tensor))
                else:
                    self.names.setdefault(id(tensor), made_of)
        return result

    def _squared(self, func: Any, args: Any, kwargs: Any) -> Any:
        called, name = operation_name(func)
        if name in AFFINE and self._weights_are_constant(args, kwargs):
            return self._affine(func, *args, **kwargs)
        if name == "batch_norm" and isinstance(func, torch._ops.OpOverload):
            x, weight, bias, mean, variance, training, momentum, eps = args[:8]
            return self._batch_norm(F.batch_norm, x, mean, variance, weight, bias, training, momentum, eps)
        if name == "batch_norm" and self._weights_are_constant(args, kwargs):
            return self._batch_norm(func, *args, **kwargs)
        if name in ("matmul", "mm") and id(args[1]) not in self.flowing and args[1].dim() == 2:
            return self._affine(F.linear, args[0], self._transposed(args[1]))
        if name == "addmm" and not kwargs and not {id(args[0]), id(args[2])} & self.flowing:
            return self._affine(F.linear, args[1], self._transposed(args[2]), args[0])
        if name == "neg":
            return args[0].clone()  # of weight −1
        of_weight_one = (
            (name in OF_WEIGHT_ONE and (name not in CHOOSING or self._chooses_numbers(args, kwargs)))
            or (name in DROPPING and not drops(*args, **kwargs))
            or (name == "leaky_relu" and abs(slope(*args, **kwargs)) <= 1)
            or (name == "pad" and not fills(*args, **kwargs))
        )
        if of_weight_one:
            return func(*self._square(args), **self._square(kwargs))
        if name in ADDING and not kwargs:
            added = getattr(Tensor, called.replace("sub", "add"), torch.add)
            return added(*self._square(args, numbers=True))
        scales = name in MULTIPLYING or name in DIVIDING
        if scales and not kwargs and self._one_flows(args[0], args[1], ordered=name in DIVIDING):
            return func(*self._square(args, numbers=True))
        result = func(*args, **kwargs)
        if name in ABOUT_THE_TENSOR or name in CONSTANT:
            return result
        if name == "mean" and not kwargs.get("dtype"):
            return result * (result.numel() / args[0].numel())
        if name in AVERAGE_POOLING and (count := pooled(*args, **kwargs)):
            return result / count
        if name in ADAPTIVE_AVERAGE_POOLING:
            return result / adaptively_pooled(args[0], result)
        of_two = sum(id(t) in self.flowing for t in pytree.tree_leaves((args, kwargs))) > 1
        self.refuse(
            f"a product of two values that depend on the input ({name})" if of_two and name in PRODUCTS else name
        )
        return result

    def refuse(self, operation: str) -> None:
        """Keep what is no sum over paths, the first time: the kind of torch's own module, else the operation."""
        kind = type(self.inside[-1]) if self.inside else None
        if kind is not None and kind.__module__.startswith("torch.nn."):
            operation = kind.__name__
        self.unsupported = self.unsupported or operation

    def __enter__(self) -> Squaring:
        for module in self.module.modules():
            if isinstance(module, torch.jit.ScriptModule):  # it shows neither its operations nor its layers
                self.unsupported = self.unsupported or "TorchScript"
                continue
            self.hooks.append(module.register_forward_pre_hook(self._enter_module, with_kwargs=True))
            self.hooks.append(module.register_forward_hook(self._leave_module, with_kwargs=True))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for hook in self.hooks:
            hook.remove()

    def _enter_module(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self.inside.append(module)

    def _leave_module(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Refuse a module that returns what no operation of torch was seen to make, such as compiled code."""
        self.inside.pop()
        leaves = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        if any(id(t) in self.flowing for t in leaves) and self.lost(output):
            self.unsupported = self.unsupported or type(module).__name__

    def lost(self, output: Any) -> bool:
        """Whether a tensor came from nowhere: neither from the input nor from weights and constants."""
        made = [t for t in tensors_in(output) if _of_numbers(t)]
        return any(id(t) not in self.flowing and id(t) not in self.names for t in made)

    def _chooses_numbers(self, args: Any, kwargs: Any) -> bool:
        """Whether values that depend on the input are chosen by what does not, and not the other way round."""
        flows = id(args[0]) in self.flowing and _of_numbers(args[0])
        return flows and self._weights_are_constant(args, kwargs)

    def _weights_are_constant(self, args: Any, kwargs: Any) -> bool:
        """Whether of all tensors of a layer only the first, what it is applied to, depends on the input."""
        tensors = [t for t in pytree.tree_leaves((args[1:], kwargs)) if isinstance(t, Tensor)]
        return not any(id(t) in self.flowing for t in tensors)

    def _transposed(self, weight: Tensor) -> Tensor:
        """The transpose of a weight, which keeps its name."""
        transposed = weight.mT
        self.kept.append(transposed)
        self.names[id(transposed)] = self.names.get(id(weight), ())
        return transposed

    def _one_flows(self, a: Any, b: Any, ordered: bool) -> bool:
        """Whether exactly one factor of a product, or the dividend alone of a quotient, depends on the input."""
        return id(b) not in self.flowing if id(a) in self.flowing else not ordered

    def _square(self, values: Any, numbers: bool = False) -> Any:
        def square(value: Any) -> Any:
            if isinstance(value, Tensor):
                return squared(value) if id(value) not in self.flowing and _of_numbers(value) else value
            return abs(value) ** 2 if numbers and isinstance(value, float | int | complex) else value

        return pytree.tree_map(square, values)

    def _affine(self, func: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any, **more: Any) -> Any:
        def run(weight: Tensor, bias: Tensor | None) -> Tensor:
            # A network that says ``x.to(torch.complex64)`` says so of its float64 copy too.
            squares = squared(weight), None if bias is None else squared(bias)
            result: Tensor = func(x.to(weight.dtype), *squares, *rest, **more)
            return result

        settings = {"stride": 1, "dilation": 1, "groups": 1}
        settings |= dict(zip(("stride", "padding", "dilation", "groups"), rest, strict=False)) | more
        stride, dilation = (each_axis(settings[key], weight.dim() - 2) for key in ("stride", "dilation"))
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
            self.refuse("batch norm without running statistics")
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
            return x * squared(weight).view(wide) + squared(bias).view(wide)

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
