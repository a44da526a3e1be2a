"""The dry run: what is learned of a network by showing it one input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from assay.core.arrays import batch_length, batch_rows, cloned, require_room_to_copy, tensors_in, version
from assay.core.errors import reason
from assay.subject.functions import is_function
from assay.subject.hooks import ALL_FUNCTIONS, all_paths, layer_hooks, module_path
from assay.subject.layers import ALL, Layers, choose_layers
from assay.subject.network import Network

OUTPUT: Final = "output"


@dataclass(frozen=True)
class DryRun:
    """The layers of a network and what it does in place, as learned from one input.

    Attributes:
        layers: Names of the layers in order of execution; a layer follows the layers inside it. ``"output"`` is listed
            when no module returns the very tensor that the network returns.
        overwritten: Layers whose output the network writes to after they returned it, while it is being recorded.
        per_sample: Layers whose first axis was the batch.
        several: Layers that return more than one tensor, of which they are the first.
        repeats: A layer that returned the very tensor of the layer before it, as a container returns that of its last
            child, with the first layer that returned it.
        writes_input: Whether the network writes to its input.
        out_of_place: Whether its in-place activations can be switched to new memory without changing what it computes.
        calls: The layers, and among them, in order of execution, the activations that are no modules but functions
            which the network calls, such as ``relu()``.
    """

    layers: tuple[str, ...]
    overwritten: frozenset[str]
    per_sample: frozenset[str]
    several: frozenset[str]
    repeats: dict[str, str]
    writes_input: bool
    out_of_place: bool
    calls: tuple[str, ...] = ()

    def choose(self, layers: Layers = ALL) -> list[str]:
        """Names of the chosen layers in order of execution; see `assay.choose_layers`.

        ``"output"`` always exists; activations that are functions exist for who asks for them by name.
        """
        named = [layers] if isinstance(layers, (str, int, float)) else layers
        asked = [call for call in self.calls if call in named and call not in self.layers]
        known = [call for call in self.calls if call in self.layers or call in asked] if asked else list(self.layers)
        also = [OUTPUT] if OUTPUT in named and OUTPUT not in self.layers else []
        return choose_layers([*known, *also], layers)


def dry_run(network: Network, ready: Any) -> DryRun:
    """Show a prepared batch twice, with in-place activations as they are and switched off, and compare."""
    try:
        as_it_is = _trace(network, ready, out_of_place=False)
    except Exception as error:  # the network is the user's
        if batch_length(ready) == 1 and _takes_two(network, ready):
            why = f"it takes two at a time but no single one, as measures show it ({reason(error)})"
            raise RuntimeError(why) from error
        raise
    elsewhere = _trace(network, ready, out_of_place=True)
    # A network may rely on what is written in place (it reads the tensor again): then it is left so.
    # One input may not show it: a black picture leaves nothing for a ReLU to do. So noise of both signs is shown too.
    out_of_place = _same_values(as_it_is, elsewhere) and all(
        map(partial(_indifferent, network), _probes(network, ready))
    )
    count = batch_length(ready)
    return DryRun(
        layers=tuple(step.layer for step in as_it_is.steps),
        overwritten=frozenset(step.layer for step in (elsewhere if out_of_place else as_it_is).steps if step.changed),
        per_sample=frozenset(layer for layer, value in as_it_is.values() if value.dim() > 0 and len(value) == count),
        several=frozenset(step.layer for step in as_it_is.steps if step.several),
        repeats=_repeats(as_it_is.steps),
        writes_input=as_it_is.writes_input,
        out_of_place=out_of_place,
        calls=_calls(network, ready, tuple(step.layer for step in as_it_is.steps)),
    )


def _probes(network: Network, ready: Any) -> Iterator[Any]:
    """Noise in place of a batch, and its negative, where there are activations in place to be switched off."""
    if not any(getattr(module, "inplace", False) is True for module in network.module.modules()):
        return
    generator = torch.Generator().manual_seed(0)

    def noise(given: Tensor) -> Tensor:
        if not given.is_floating_point():
            return given
        return torch.randn(given.shape, generator=generator).to(given)

    drawn = {key: noise(value) for key, value in ready.items()} if isinstance(ready, Mapping) else noise(ready)
    yield drawn
    negative = {k: -v if v.is_floating_point() else v for k, v in drawn.items()} if isinstance(drawn, dict) else -drawn
    yield negative


def _indifferent(network: Network, probe: Any) -> bool:
    """Whether a network computes the same with activations in place switched off; true if it cannot take the probe."""
    try:
        return _same_values(_trace(network, probe, out_of_place=False), _trace(network, probe, out_of_place=True))
    except Exception:  # not every network takes noise
        return True


def _takes_two(network: Network, ready: Any) -> bool:
    """Whether a network takes a batch of two inputs."""
    try:
        with network.undisturbed():
            network.forward(batch_rows(ready, 2))
    except Exception:
        return False
    return True


def _calls(network: Network, ready: Any, layers: tuple[str, ...]) -> tuple[str, ...]:
    """The layers and the activations that are functions, in order of execution."""
    calls: list[str] = []
    places = {ALL_FUNCTIONS, *all_paths(network.module)}
    try:
        with network.undisturbed(), layer_hooks(network.module, places, lambda layer, _: calls.append(layer)):
            network.forward(cloned(ready))
    except Exception:  # a network that cannot be watched so is known by its modules
        return layers
    known = {*layers, *(call for call in calls if is_function(module_path(call)))}
    ordered = tuple(call for call in calls if call in known)
    return ordered + tuple(layer for layer in layers if layer not in ordered)


class _Step(NamedTuple):
    """One call of a layer: the first tensor that it returned, its version and value then, and whether it was one."""

    layer: str
    tensor: Tensor
    returned_at: int
    value: Tensor
    several: bool = False

    @property
    def changed(self) -> bool:
        """Whether the tensor was written to after the layer returned it."""
        return version(self.tensor) != self.returned_at


class _Trace(NamedTuple):
    """All layers that ran on one input, the output of the network, and whether it wrote to the input."""

    steps: list[_Step]
    output: Tensor | None
    writes_input: bool

    def values(self) -> Iterator[tuple[str, Tensor]]:
        """The name and value of the network's output and of what each layer returned."""
        if self.output is not None:
            yield OUTPUT, self.output
        for step in self.steps:
            yield step.layer, step.value


def _trace(network: Network, ready: Any, out_of_place: bool) -> _Trace:
    steps: list[_Step] = []

    def keep(layer: str, output: Any) -> None:
        tensors = list(tensors_in(output))
        if tensors:
            tensor = tensors[0]
            require_room_to_copy(tensor)
            steps.append(_Step(layer, tensor, version(tensor), tensor.clone(), len(tensors) > 1))

    inputs = cloned(ready)
    before = [version(t) for t in tensors_in(inputs)]
    with network.undisturbed(out_of_place), layer_hooks(network.module, all_paths(network.module), keep):
        output = next(tensors_in(network.forward(inputs)), None)
    named = {step.layer for step in steps}
    if output is not None:
        require_room_to_copy(output)
    if output is not None and OUTPUT not in named and not any(output is step.tensor for step in steps):
        steps.append(_Step(OUTPUT, output, version(output), output))
    return _Trace(steps, output, before != [version(t) for t in tensors_in(inputs)])


def _same_values(a: _Trace, b: _Trace) -> bool:
    return [step.layer for step in a.steps] == [step.layer for step in b.steps] and all(
        torch.allclose(x.value, y.value, rtol=0, atol=0, equal_nan=True) for x, y in zip(a.steps, b.steps, strict=True)
    )


def _repeats(steps: list[_Step]) -> dict[str, str]:
    repeats: dict[str, str] = {}
    for before, step in pairwise(steps):
        if step.tensor is before.tensor and step.returned_at == before.returned_at >= 0:
            repeats[step.layer] = repeats.get(before.layer, before.layer)
    return repeats
