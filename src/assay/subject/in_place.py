"""Activations in place where nothing else can read what they overwrite: the same numbers in less new memory.

On a CPU new memory may cost more than the layer that fills it. In a pass whose outputs are looked at as they come and
are not kept, ``nn.Sequential`` may let a ReLU write over what the convolution before it returned.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.modules import module as of_all_modules
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

_NEW: Final = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm,
)  # fmt: skip
"""Modules whose output is in new memory, of which they keep nothing."""
_SAME: Final = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Hardtanh)
"""Activations that compare and at most multiply: wherever they write, the numbers are the same."""
_OF_TORCH: Final = "torch.nn.modules."


def writing_over(module: nn.Module) -> nn.Module:
    """The same network, with activations that write over what the module before them returned.

    That is done for an ``nn.Sequential`` all of whose modules are torch's own and have no hooks yet: then no other code
    runs in a pass, and what is between two modules is the sequence's alone. Any other network is returned as it is.
    The sequences and activations are shallow copies, which share weights and hooks with the network's own; those stay
    untouched.

    Args:
        module: The network.

    Example:
        >>> network = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> x, seen = torch.ones(1, 2), []
        >>> same = writing_over(network)
        >>> hook = network[0].register_forward_hook(lambda module, args, output: seen.append(output))
        >>> with torch.no_grad():
        ...     same(x) is seen[0], torch.equal(same(x), network(x))
        (True, True)
    """
    if type(module) is nn.Sequential and not _watched() and all(map(_is_plain, module.modules())):
        return _sequence(module)
    return module


def _watched() -> bool:
    """Whether code of anybody's sees what all modules or functions return."""
    hooks = of_all_modules._has_any_global_hook()  # type: ignore[no-untyped-call]
    modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    return bool(hooks or modes or _get_current_dispatch_mode_stack())


def _is_plain(module: nn.Module) -> bool:
    """Whether a module runs torch's own code, which nobody has replaced, and no hooks."""
    kind = type(module)
    if not kind.__module__.startswith(_OF_TORCH):  # asked before anything else: others' need not be like torch's
        return False
    replaced = any(callable(getattr(kind, name, None)) for name in vars(module)) or module._compiled_call_impl
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return kind.forward.__module__.startswith(_OF_TORCH) and not replaced and not any(hooks)


def _sequence(sequence: nn.Sequential) -> nn.Sequential:
    """A copy of a sequence with copies of those of its activations that follow new memory."""
    same = copy.copy(sequence)
    before: nn.Module | None = None
    children: dict[str, nn.Module | None] = {}
    for name, child in sequence._modules.items():
        if type(child) is nn.Sequential:
            children[name] = _sequence(child)
        elif type(child) in _SAME and type(before) in _NEW and not getattr(child, "inplace", False):
            children[name] = _overwriting(child)
        else:
            children[name] = child
        before = child
    vars(same)["_modules"] = children
    return same


def _overwriting(activation: nn.Module) -> nn.Module:
    """A copy of an activation that writes over its input, unless its output would lie in memory in another order."""
    same = copy.copy(activation)
    vars(same)["forward"] = partial(_write_over, same)
    return same


def _write_over(activation: Any, x: Tensor) -> Any:
    activation.inplace = type(x) is Tensor and not torch.is_grad_enabled() and _lies_as_returned(x)
    return type(activation).forward(activation, x)


def _lies_as_returned(x: Tensor) -> bool:
    """Whether an activation gives its output the strides of its input: where an axis has length 1, it need not."""
    return 1 not in x.shape or x.stride() == torch.empty(x.shape, device="meta").stride()
