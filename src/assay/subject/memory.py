"""What a network remembers of what it was shown, taken back after it.

A network may keep its last activations as an attribute, count its calls in a buffer, or fill a list or a dictionary.
Were that left in it, the next batch would find another network, and its fingerprint would never be the same twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import is_
from typing import Any, Final

import torch
from torch import Tensor, nn

from assay.core.arrays import version

OF_TORCH: Final = frozenset(nn.Module().__dict__)
_CONTAINERS: Final = (list, dict, set, deque)
_PLAIN: Final = (bool, int, float, str, tuple, type(None))

Place = tuple[int, str]
"""A tensor that a network holds: the number of its module in the order of ``modules()``, and its name there."""


class Memory:
    """Takes back what showing a network something changes in its attributes, buffers, lists and dictionaries.

    The parameters are left alone, and so are objects of other classes that the network holds. A tensor that the network
    writes to must be copied beforehand. The first time all are, later only those that were seen to change; and torch's
    own layers, of which a network has many, are looked after only where they were seen to change.
    """

    def __init__(self) -> None:
        self.written: set[Place] | None = None
        self.changing: set[int] = set()

    @contextmanager
    def taken_back(self, modules: Sequence[nn.Module]) -> Iterator[None]:
        """Leave a network, given as all its modules, as it was before the block, whatever it was shown inside."""
        first = self.written is None
        before = [
            _Before(number, module, self.written)
            for number, module in enumerate(modules)
            if first or number in self.changing or not type(module).__module__.startswith("torch.nn.modules.")
        ]
        try:
            yield
        finally:
            self.written = self.written or set()
            for module in before:
                if module.put_back(self.written):
                    self.changing.add(module.number)


class _Before:
    """One module as it was: what its attributes are, and copies of those that can change from within."""

    def __init__(self, number: int, module: nn.Module, written: set[Place] | None) -> None:
        self.number = number
        self.module = module
        self.attributes = dict(vars(module))
        self.buffers = dict(module._buffers) if isinstance(module._buffers, dict) else {}  # TorchScript has its own
        self.containers: list[tuple[Any, Any]] = []
        self.tensors: list[tuple[str, Tensor, int, Tensor]] = []
        for name in self.attributes.keys() - OF_TORCH:
            value = self.attributes[name]
            if type(value) in _CONTAINERS:
                self._keep_container(value)
            elif type(value) not in _PLAIN and isinstance(value, Tensor):
                self._keep_tensor(name, value, written)
        for name, value in self.buffers.items():
            if value is not None:
                self._keep_tensor(name, value, written)

    def _keep_container(self, container: Any) -> None:
        self.containers.append((container, container.copy()))
        for value in container.values() if isinstance(container, dict) else container:
            if type(value) in _CONTAINERS and len(self.containers) < 100:  # a container may hold itself
                self._keep_container(value)

    def _keep_tensor(self, name: str, tensor: Tensor, written: set[Place] | None) -> None:
        if written is None or (self.number, name) in written:
            self.tensors.append((name, tensor, version(tensor), tensor.detach().clone()))

    def put_back(self, written: set[Place]) -> bool:
        """Make the module what it was, note which tensors were written to, and return whether anything changed."""
        changed = _rebind(vars(self.module), self.attributes, OF_TORCH)
        changed |= bool(self.buffers) and _rebind(self.module._buffers, self.buffers)
        for container, before in self.containers:
            changed |= _refill(container, before)
        for name, tensor, version_before, copy in self.tensors:
            if version(tensor) != version_before:
                changed = True
                written.add((self.number, name))
                with torch.no_grad():
                    tensor.copy_(copy) if tensor.shape == copy.shape else tensor.set_(copy)  # type: ignore[call-overload]
        return changed


def _same(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    return len(now) == len(before) and all(map(is_, now.values(), before.values()))


def _rebind(now: dict[str, Any], before: dict[str, Any], excepted: frozenset[str] = frozenset()) -> bool:
    """Give every name the very value that it had, take new names away, and return whether there was need to."""
    if _same(now, before):
        return False
    new = [name for name in now if name not in before and name not in excepted]
    other = [name for name, value in before.items() if name not in excepted and now.get(name, now) is not value]
    for name in new:
        del now[name]
    for name in other:
        now[name] = before[name]
    return bool(new or other)


def _refill(container: Any, before: Any) -> bool:
    """Give a list, dictionary, set or deque the very members that it had, and return whether there was need to."""
    if isinstance(container, set):
        same = container == before
    elif isinstance(container, dict):
        same = _same(container, before) and all(map(is_, container, before))
    else:
        same = len(container) == len(before) and all(map(is_, container, before))
    if not same:
        container.clear()
        container.update(before) if isinstance(container, (dict, set)) else container.extend(before)
    return not same
