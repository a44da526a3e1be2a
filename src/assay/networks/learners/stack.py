"""Stacks of layers that learn without labels, one after the other, with the interface of scikit-learn."""

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
    """Return a setting of each layer, given as one value for all layers or as one value for each."""
    values = [float(value)] * layers if isinstance(value, (int, float)) else [float(v) for v in value]
    if len(values) != layers:
        raise AssayError(f"{name}={value} has {len(values)} values for {layers} layers")
    return values


class LearnedStack(nn.Module):
    """A stack of layers that learn by one algorithm: ``loss(x)`` is minimised, ``forward(x)`` is the representation.

    As a torch module it is a subject for measures (``layers`` are the names of its layers); as a learner it has
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
        """Names of the layers in order."""
        return [f"stack.{i}" for i in range(len(self.stack))]

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation of the last layer."""
        for layer in self.stack:
            x = layer(x)
        return x

    def fit(self, X: Tensor | np.ndarray[Any, Any], y: None = None, settings: Greedy | None = None) -> Self:
        """Learn from inputs alone, starting from the initial weights; labels are refused."""
        if y is not None:
            raise AssayError(f"{type(self).__name__} learns without labels: fit(X) only")
        self.stack.load_state_dict(self.start)
        greedy(self, X, settings)
        return self

    def transform(self, X: Tensor | np.ndarray[Any, Any], layer: int = -1, batch_size: int = 256) -> Any:
        """Return the representation of a layer, samples × features, as a NumPy array."""
        self.require_layer(layer)
        parameter = next(self.parameters())
        depths = range(layer % len(self.stack) + 1)
        representations = []
        with torch.no_grad():
            for batch in torch.split(torch.as_tensor(X), batch_size):
                x = batch.to(parameter.device, parameter.dtype)
                for i in depths:
                    x = self.stack[i](x)
                representations.append(x.flatten(1).cpu())
        return torch.cat(representations).numpy()

    def require_layer(self, layer: int) -> None:
        """Raise an error unless a layer of this number exists, counted from 0, or backwards from −1."""
        if not -len(self.stack) <= layer < len(self.stack):
            raise AssayError(f"layer={layer}: there are {len(self.stack)} layers")

    def shallow(self) -> Self:
        """Return a copy that has only the first layer, as it was before learning."""
        first_only = copy.deepcopy(self)
        first_only.stack = first_only.stack[:1]
        first_only.start = {name: value for name, value in self.start.items() if name.startswith("0.")}
        first_only.stack.load_state_dict(first_only.start)
        return first_only


class Together(nn.Module):
    """Many stacks of one shape as one network, each layer of which returns samples × networks × units.

    One pass shows a stimulus to all of them. Unit u of network i is unit i·U + u of the layer, where U is the number
    of units of one network.

    Args:
        networks: The stacks that are joined; their weights are copied.
    """

    def __init__(self, networks: Sequence[LearnedStack]) -> None:
        super().__init__()
        if not networks:
            raise AssayError("no networks to put together")
        depth = len(networks[0].stack)
        self.stack = nn.ModuleList(_Abreast([n.stack[i] for n in networks], shared=i == 0) for i in range(depth))
        self.layers = [f"stack.{i}" for i in range(depth)]

    def forward(self, x: Tensor) -> Tensor:
        """Return the representations of the last layer of all networks."""
        for layer in self.stack:
            x = layer(x)
        return x


class _Abreast(nn.Module):
    """One layer of many networks, side by side."""

    def __init__(self, layers: Sequence[nn.Module], shared: bool) -> None:
        super().__init__()
        parameters, buffers = stack_module_state(list(layers))
        self.names = list(parameters | buffers)
        for i, value in enumerate((parameters | buffers).values()):
            self.register_buffer(f"stacked{i}", value.detach())
        self.shared = shared
        self.form = [copy.deepcopy(layers[0])]  # in a list, so that it is not registered as a layer

    def forward(self, x: Tensor) -> Tensor:
        """Return samples × networks × … for inputs samples × … (if shared) or samples × networks × …"""
        state = {name: self.get_buffer(f"stacked{i}") for i, name in enumerate(self.names)}
        return stacked(self.form[0], axis=1)(state, x, self.shared)
