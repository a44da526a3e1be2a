"""Stamp: what can be seen of a network without running it, so that a captured graph is not kept for another network."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import is_
from typing import Any, Final

from torch import Tensor, nn
from torch.nn.modules import module as of_all_modules

from assay.core.arrays import version
from assay.subject.memory import OF_TORCH

_STRUCTURE: Final = OF_TORCH - {"training"}
_BY_VALUE: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})
_CONTAINERS: Final = frozenset({dict, OrderedDict, defaultdict, list, tuple, set, frozenset, deque})
_MOST_MEMBERS: Final = 1000  # of an attribute that is looked into: more are data, such as a vocabulary
_GLOBAL_HOOKS: Final = ("_global_forward_pre_hooks", "_global_forward_hooks")


class Stamp:
    """A note of things, which is equal to another if nothing was replaced, written to in place or given a new value.

    Things are compared as the very same objects, and are kept, so that no other can come to lie in their place in
    memory; tensors by their count of writes too; numbers and text by value; lists, tuples, sets and dictionaries by
    their members, unless they have more than ``most``.

    Example:
        >>> import torch
        >>> scale = torch.ones(1)
        >>> before = Stamp([{"scale": scale, "power": 2}])
        >>> before == Stamp([{"scale": scale, "power": 2}]), before == Stamp([{"scale": scale, "power": 3}])
        (True, False)
        >>> _ = scale.mul_(2)
        >>> before == Stamp([{"scale": scale, "power": 2}])
        False
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, noted: Iterable[Any], most: float = math.inf) -> None:
        self._things: list[Any] = []
        self._values: list[Any] = []
        self._most = most
        self._seen: set[int] = set()  # containers that were looked into: one may hold itself
        for thing in noted:
            self._note(thing)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stamp):
            return NotImplemented
        same = len(self._things) == len(other._things) and all(map(is_, self._things, other._things))
        return same and self._values == other._values

    def _note(self, thing: Any) -> None:
        kind = type(thing)
        if kind in _BY_VALUE:
            self._things.append(kind)
            self._values.append(thing)
        elif kind in _CONTAINERS and len(thing) <= self._most and id(thing) not in self._seen:
            self._things.append(kind)
            self._values.append(len(thing))
            self._seen.add(id(thing))
            for member in chain.from_iterable(thing.items()) if isinstance(thing, dict) else thing:
                self._note(member)
        else:
            self._things.append(thing)
            if isinstance(thing, Tensor):
                self._values.append(version(thing))


def structure_stamp(modules: Sequence[nn.Module]) -> Stamp:
    """What torch holds of every module: its code, parameters, buffers, the modules inside it, and all hooks.

    Not whether it is in training mode: networks are shown everything in eval mode.
    """
    code = [(module, type(module), getattr(type(module), "forward", None)) for module in modules]
    held = [{name: value for name, value in vars(module).items() if name in _STRUCTURE and value} for module in modules]
    return Stamp([*code, *held, *(getattr(of_all_modules, name) for name in _GLOBAL_HOOKS)])


def attributes_stamp(modules: Sequence[nn.Module]) -> Stamp:
    """The attributes of every module that are its own: numbers, text, tensors, functions and other objects."""
    own = [{name: value for name, value in vars(module).items() if name not in OF_TORCH} for module in modules]
    return Stamp(own, _MOST_MEMBERS)
