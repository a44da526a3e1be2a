"""Stacks of layers that learn without labels, one after the other; they speak scikit-learn too."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from assay.core.errors import AssayError
from assay.training import Greedy, greedy
from assay.training.populations import stacked


def per_layer(name: str, value: float | Sequence[float], layers: int) -> list[float]:
    """A setting of each layer: one for all, or as many as there are layers."""
    values = [float(value)] * layers if isinstance(value, (int, float)) else [float(v) for v in value]
    if len(values) != layers:
        raise AssayError(f"{name}={value} has {len(values)} values for {layers} layers")
    return values


class LearnedStack(nn.Module):
    """Layers of one algorithm; each has ``loss(x)`` to learn by and ``forward(x)`` to represent.

    As a torch module it is a subject for measures (its layers are named by ``layers``); as a learner it has
    ``fit(X)`` without labels, ``transform(X, layer)`` and ``shallow()``.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        if not layers:
            raise AssayError(f"{type(self).__name__} needs at least one layer")
        self.stack = nn.ModuleList(layers)
        self.start = copy.deepcopy(self.stack.state_dict())

    @property
    def layers(self) -> list[str]:
        """Names of its layers, the first one first."""
        return [f"stack.{i}" for i in range(len(self.stack))]

    def forward(self, x: Tensor) -> Tensor:
        """The representation of the last layer."""
        for layer in self.stack:
            x = layer(x)
        return x

    def fit(self, X: Tensor | np.ndarray[Any, Any], y: None = None, settings: Greedy | None = None) -> Self:
        """Learn from inputs alone, from the initial weights on; labels are not taken."""
        if y is not None:
            raise AssayError(f"{type(self).__name__} learns without labels: fit(X) only")
        self.stack.load_state_dict(self.start)
        greedy(self, X, settings)
        return self

    def transform(self, X: Tensor | np.ndarray[Any, Any], layer: int = -1, batch_size: int = 256) -> Any:
        """The representation of a layer, samples × features, as NumPy."""
        self.require_layer(layer)
        parameter = next(self.parameters())
        wanted = range(layer % len(self.stack) + 1)
        found = []
        with torch.no_grad():
            for batch in torch.split(torch.as_tensor(X), batch_size):
                x = batch.to(parameter.device, parameter.dtype)
                for i in wanted:
                    x = self.stack[i](x)
                found.append(x.flatten(1).cpu())
        return torch.cat(found).numpy()

    def require_layer(self, layer: int) -> None:
        """A layer by its number, from 0, or from −1 backwards."""
        if not -len(self.stack) <= layer < len(self.stack):
            raise AssayError(f"layer={layer}: there are {len(self.stack)} layers")

    def shallow(self) -> Self:
        """The same with its first layer only, as it was before learning."""
        alone = copy.deepcopy(self)
        alone.stack = alone.stack[:1]
        alone.start = {name: value for name, value in self.start.items() if name.startswith("0.")}
        alone.stack.load_state_dict(alone.start)
        return alone


class Together(nn.Module):
    """Many stacks of one shape as one network: each layer gives samples × networks × units.

    One pass shows a stimulus to all of them. Unit u of network i is unit i·U + u of the layer, U the units of one
    network.

    Args:
        networks: What is put together; their weights are copied.
    """

    def __init__(self, networks: Sequence[LearnedStack]) -> None:
        super().__init__()
        if not networks:
            raise AssayError("no networks to put together")
        depth = len(networks[0].stack)
        self.stack = nn.ModuleList(_Abreast([n.stack[i] for n in networks], shared=i == 0) for i in range(depth))
        self.layers = [f"stack.{i}" for i in range(depth)]

    def forward(self, x: Tensor) -> Tensor:
        """The last layer of all."""
        for layer in self.stack:
            x = layer(x)
        return x


class _Abreast(nn.Module):
    """One layer of many networks."""

    def __init__(self, layers: Sequence[nn.Module], shared: bool) -> None:
        super().__init__()
        parameters, buffers = stack_module_state(list(layers))
        self.names = list(parameters | buffers)
        for i, value in enumerate((parameters | buffers).values()):
            self.register_buffer(f"stacked{i}", value.detach())
        self.shared = shared
        self.form = [copy.deepcopy(layers[0])]  # in a list: not a layer of its own

    def forward(self, x: Tensor) -> Tensor:
        """Samples × networks × …, from samples (shared) or samples × networks × …"""
        state = {name: self.get_buffer(f"stacked{i}") for i, name in enumerate(self.names)}
        return stacked(self.form[0], axis=1)(state, x, self.shared)
