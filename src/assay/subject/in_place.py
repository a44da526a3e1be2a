"""Activations in place where nothing else can read what they overwrite: the same numbers, in half of the memory.

On a CPU new memory may cost more than the layer that fills it. In a pass whose outputs are looked at as they come and
are not kept, ``nn.Sequential`` may let a ReLU write over what the convolution before it returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

from torch import nn
from torch.nn.modules import module as of_all

_NEW: Final = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm,
)  # fmt: skip
"""Modules whose output is in new memory, of which they keep nothing."""
_SAME: Final = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Hardtanh)
"""Activations that compare and at most multiply: wherever they write, the numbers are the same."""


@contextmanager
def activations_in_place(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Let each ``nn.Sequential`` run its activations in place, inside the block, where it alone has their input.

    That is where the activation follows a module that returns new memory, and neither has hooks, in which somebody
    could keep what it returns. Code that calls the children of an ``nn.Sequential`` itself is not touched.

    Args:
        modules: All modules of a network; afterwards they are as they were.
    """
    changed: list[nn.Sequential] = []
    try:
        for module in modules:
            if isinstance(module, nn.Sequential) and (activations := _alone_with_their_input(module)):
                vars(module)["forward"] = _forward(module, activations)
                changed.append(module)
        yield
    finally:
        for module in changed:
            del vars(module)["forward"]


def _alone_with_their_input(sequence: nn.Sequential) -> set[int]:
    """The places in a sequence of activations whose input only the sequence has."""
    kind = type(sequence)
    if kind.forward is not nn.Sequential.forward or kind.__iter__ is not nn.Sequential.__iter__:
        return set()
    if "forward" in vars(sequence) or of_all._global_forward_hooks or of_all._global_forward_pre_hooks:
        return set()
    return {
        place
        for place, (before, activation) in enumerate(pairwise(sequence), start=1)
        if _is_plain(before, _NEW) and _is_plain(activation, _SAME) and not activation.inplace
    }


def _is_plain(module: nn.Module, kinds: tuple[type[nn.Module], ...]) -> bool:
    """Whether a module is of one of some kinds, and nobody has changed what it does or listens to it."""
    listens = module._forward_hooks or module._forward_pre_hooks
    return type(module) in kinds and not listens and "forward" not in vars(module)


def _forward(sequence: nn.Sequential, in_place: set[int]) -> Callable[[Any], Any]:
    """What a sequence does, with the activations at some places in place."""

    def forward(input: Any) -> Any:
        for place, module in enumerate(sequence):
            input = _in_place(module, input) if place in in_place else module(input)
        return input

    return forward


def _in_place(activation: Any, input: Any) -> Any:
    """What an activation returns when it writes over its input, in this call and no other."""
    activation.inplace = True
    try:
        return activation(input)
    finally:
        activation.inplace = False
