"""Activations that a network's own code computes by calling a function, with no module of their own.

The first call of ``torch.relu``, ``torch.nn.functional.relu`` or ``x.relu()`` in a pass is the layer ``relu()``, the
second ``relu()#2``. Such layers can be asked for by name; they are not among the layers of a subject, which are
modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from assay.networks.imported.onnx_graph import ACTIVATIONS

_CALLED: Final = "()"
_FUNCTIONS: Final[Mapping[Any, str]] = {
    function: name
    for name, functions in {
        "relu": (F.relu, F.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_),
        "relu6": (F.relu6,),
        "leaky_relu": (F.leaky_relu, F.leaky_relu_),
        "prelu": (F.prelu, torch.prelu, Tensor.prelu),
        "elu": (F.elu, F.elu_),
        "selu": (F.selu, F.selu_, torch.selu, torch.selu_),
        "celu": (F.celu, F.celu_, torch.celu, torch.celu_),
        "gelu": (F.gelu,),
        "silu": (F.silu,),
        "mish": (F.mish,),
        "hardswish": (F.hardswish,),
        "hardtanh": (F.hardtanh, F.hardtanh_),
        "hardsigmoid": (F.hardsigmoid,),
        "softplus": (F.softplus,),
        "softsign": (F.softsign,),
        "tanh": (F.tanh, torch.tanh, torch.tanh_, Tensor.tanh, Tensor.tanh_),
        "sigmoid": (F.sigmoid, torch.sigmoid, torch.sigmoid_, Tensor.sigmoid, Tensor.sigmoid_),
    }.items()
    for function in functions
}
_CLAMPS: Final = (
    torch.clamp, torch.clamp_, torch.clip, torch.clip_, torch.clamp_min, torch.clamp_min_,
    Tensor.clamp, Tensor.clamp_, Tensor.clip, Tensor.clip_, Tensor.clamp_min, Tensor.clamp_min_,
)  # fmt: skip


def is_function(path: str) -> bool:
    """Whether a layer is a call of a function, by the path of its name.

    >>> is_function("relu()"), is_function("features.relu")
    (True, False)
    """
    return path.endswith(_CALLED)


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an activation of torch's own or of an ONNX graph, whose inside is no layer of its own."""
    return type(module).__module__ == nn.ReLU.__module__ or getattr(module, "operator", None) in ACTIVATIONS


class ActivationCalls(TorchFunctionMode):
    """Calls ``after`` whenever the code of a network has called an activation, inside the block.

    Args:
        after: Called with the path of the layer and what the function returned; what it returns, unless None, takes the
            place of that, also where the function wrote over its argument.
        is_inside: Whether the call comes from inside a module that is a layer itself.
    """

    def __init__(self, after: Callable[[str, Any], Any], is_inside: Callable[[], bool]) -> None:
        super().__init__()
        self.after = after
        self.is_inside = is_inside

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run a function of torch, and if it is an activation, say so."""
        kwargs = kwargs or {}
        returned = func(*args, **kwargs)
        name = _activation(func, args, kwargs)
        if name is None or self.is_inside() or not isinstance(returned, Tensor):
            return returned
        changed = self.after(f"{name}{_CALLED}", returned)
        if changed is None:
            return returned
        if args and returned is args[0]:  # in place: who holds the argument must see the change
            return returned.copy_(changed)
        return changed


def _activation(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """The name of an activation; a clamp is one where it cuts at 0, as a ReLU does."""
    if func in _CLAMPS:
        least = kwargs.get("min", args[1] if len(args) > 1 else None)
        return "clamp" if isinstance(least, (int, float)) and least == 0 else None
    return _FUNCTIONS.get(func)
