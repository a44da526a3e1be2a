"""Hooks on the layers of a network: one way to see, keep or replace what its modules return.

A layer is called by its module's path; the second call of a module in a pass is ``path#2``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from assay.subject.functions import ActivationCalls, is_activation, is_function

AfterLayer = Callable[[str, Any], Any]
"""Called with a layer's name and what it returned; what it returns, unless None, takes the place of that."""
ALL_FUNCTIONS = "*()"
"""The path of `layer_hooks` that stands for every activation that is a function."""


def call_name(path: str, call: int) -> str:
    """The name of a layer: the path of its module, and which call of it from the second on.

    >>> call_name("relu", 1), call_name("relu", 2)
    ('relu', 'relu#2')
    """
    return path if call == 1 else f"{path}#{call}"


def module_path(layer: str) -> str:
    """The path of a layer's module.

    >>> module_path("block.relu#2")
    'block.relu'
    """
    path, mark, call = layer.rpartition("#")
    return path if mark and call.isdigit() else layer


@contextmanager
def layer_hooks(module: nn.Module, paths: Iterable[str], after: AfterLayer) -> Iterator[None]:
    """Call ``after`` whenever a module at one of the paths returns, inside the block; the hooks never leak.

    A path such as ``relu()`` stands for the calls of that function in the network's own code (see
    `assay.subject.functions`), and `ALL_FUNCTIONS` for those of every activation.
    """
    wanted = set(paths)
    calls: Counter[str] = Counter()
    handles: list[RemovableHandle] = []

    def counting(path: str) -> Callable[[nn.Module, Any, Any], Any]:
        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            calls[path] += 1
            return after(call_name(path, calls[path]), output)

        return hook

    def called(path: str, output: Any) -> Any:
        calls[path] += 1
        return after(call_name(path, calls[path]), output) if {path, ALL_FUNCTIONS} & wanted else None

    with ExitStack() as functions:
        try:
            for path, child in module.named_modules():
                if path in wanted:
                    handles.append(child.register_forward_hook(counting(path)))
            if any(map(is_function, wanted)):
                functions.enter_context(_functions(module, called, handles))
            yield
        finally:
            for handle in handles:
                handle.remove()


def _functions(module: nn.Module, called: AfterLayer, handles: list[RemovableHandle]) -> ActivationCalls:
    """What sees activations that are functions, and not those that a module of an activation calls itself."""
    inside: list[nn.Module] = []

    def enter(activation: nn.Module, args: Any) -> None:
        inside.append(activation)

    def leave(activation: nn.Module, args: Any, output: Any) -> None:
        inside.pop()

    for child in module.modules():
        if is_activation(child):
            handles.append(child.register_forward_pre_hook(enter))
            handles.append(child.register_forward_hook(leave, always_call=True))
    return ActivationCalls(called, lambda: bool(inside))


def all_paths(module: nn.Module) -> set[str]:
    """The paths of all modules inside a network; those of TorchScript are left out, since it calls no hooks."""
    return {path for path, inner in module.named_modules() if path and not isinstance(inner, torch.jit.ScriptModule)}
