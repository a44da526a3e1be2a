"""The probe: how a network answers one small fixed input, layer by layer.

A fingerprint sees what a network is made of. What it cannot see (a value in a compiled extension, a file that is read
at every call, a patched function of an installed package) shows in what the network does. A cell keeps the answer of
its subject; a network that answers otherwise is another network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.arrays import as_tensor, tensors_in
from assay.core.determinism import seeded
from assay.subject.dry_run import OUTPUT
from assay.subject.hooks import all_paths, layer_hooks
from assay.subject.network import Network

_GOLDEN = 0.6180339887498949
# Of a layer's root mean square: rounding of float64, of float32 through a deep network, and of shorter mantissas (half
# precision; TF32, which a GPU may use where a CPU uses float32).
_EXACT, _ROUNDED, _COARSE = 1e-8, 1e-4, 2e-2


@dataclass(frozen=True)
class InputKind:
    """The kind of inputs that a network was shown: shape without the batch axis, type and range."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float

    @classmethod
    def of(cls, batch: Any) -> InputKind | None:
        """The kind of the first input of a batch; None where it is no array of numbers."""
        try:
            first = as_tensor(batch[:1])
        except (TypeError, ValueError, RuntimeError, IndexError):
            return None
        if first.numel() == 0 or first.is_complex() or first.layout != torch.strided:
            return None
        low, high = (float(x) for x in first.double().aminmax())
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = 0.0, 1.0
        return cls(tuple(first.shape[1:]), str(first.dtype).removeprefix("torch."), low, high)

    def make(self) -> Tensor:
        """One input of this kind, the same every time: a sequence that fills the range evenly.

        >>> InputKind((3,), "float32", 0.0, 1.0).make()
        tensor([[0.6180, 0.2361, 0.8541]])
        """
        dtype: torch.dtype = getattr(torch, self.dtype)
        evenly = torch.arange(1, math.prod(self.shape) + 1, dtype=torch.float64).mul(_GOLDEN).remainder(1.0)
        if dtype.is_floating_point:
            values = self.low + (self.high - self.low) * evenly
        else:
            values = (self.low + (self.high - self.low + 1) * evenly).floor().clamp_max(self.high)
        return values.to(dtype).reshape(1, *self.shape)


@dataclass(frozen=True)
class Probe:
    """A network's answer to one input: of each layer's output the mean, root mean square and a weighted mean.

    With it are kept the kinds of input that were shown, the device and the precision.
    """

    inputs: dict[str, InputKind]
    device: str
    dtype: str
    answers: dict[str, tuple[float, ...]]

    def to_json(self) -> dict[str, Any]:
        """The probe as plain data, with seven digits of each number."""
        kinds = {key: [list(k.shape), k.dtype, k.low, k.high] for key, k in self.inputs.items()}
        answers = {layer: [float(f"{x:.7g}") for x in numbers] for layer, numbers in self.answers.items()}
        return {"inputs": kinds, "device": self.device, "dtype": self.dtype, "answers": answers}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Probe:
        """Make a probe from the plain data of `to_json`."""
        kinds = {key: InputKind(tuple(s), t, low, high) for key, (s, t, low, high) in data["inputs"].items()}
        answers = {layer: tuple(numbers) for layer, numbers in data["answers"].items()}
        return cls(kinds, data["device"], data["dtype"], answers)

    def difference(self, other: Probe) -> str | None:
        """How another answer differs by more than rounding, as part of a sentence; None where it does not."""
        if list(self.answers) != list(other.answers):
            return "its layers are others"
        tolerance = {"float64": _EXACT, "float32": _ROUNDED}.get(self.dtype, _COARSE)
        tolerance = max(tolerance, _COARSE if self.device != other.device or "cuda" in self.device else 0.0)
        for layer, ours in self.answers.items():
            theirs = other.answers[layer]
            scale = max((abs(x) for x in (*ours, *theirs) if math.isfinite(x)), default=0.0)
            close = np.allclose(ours, theirs, rtol=1e-6, atol=tolerance * scale, equal_nan=True)
            if len(ours) != len(theirs) or not close:
                return f"layer {layer!r} answers otherwise"
        return None


def probe(network: Network, inputs: Mapping[str, InputKind]) -> Probe:
    """Show a network one input of the given kinds (``""`` for an input without a name) and note its answers."""
    made: Any = {key: kind.make() for key, kind in inputs.items()}
    numbers: dict[str, Tensor] = {}

    def note(layer: str, output: Any) -> None:
        tensor = next(tensors_in(output), None)
        if tensor is not None:
            numbers[layer] = _numbers(tensor)

    with seeded(0, network.device), network.undisturbed():
        ready = network.prepare(made[""] if set(made) == {""} else made)
        with layer_hooks(network.module, all_paths(network.module), note):
            note(OUTPUT, network.forward(ready, copy_input=True))
    answers = {layer: tuple(values.tolist()) for layer, values in numbers.items()}
    return Probe(dict(inputs), network.device.type, str(network.dtype).removeprefix("torch."), answers)


def input_kinds(batch: Any) -> dict[str, InputKind] | None:
    """The kinds of a batch's inputs by name, ``""`` for one without; None where they are no arrays of numbers."""
    named = batch if isinstance(batch, Mapping) else {"": batch}
    kinds = {key: InputKind.of(value) for key, value in named.items()}
    return {key: kind for key, kind in kinds.items() if kind is not None} if all(kinds.values()) else None


def example_kinds(example: Any) -> dict[str, InputKind] | None:
    """The kinds of an example's inputs by name, or of an input of the given shape."""
    if isinstance(example, Sequence):
        return {"": InputKind(tuple(int(side) for side in example), "float32", 0.0, 1.0)}
    return input_kinds(example)


def _numbers(tensor: Tensor) -> Tensor:
    """The mean, root mean square and a mean with weights that tell places apart, of a tensor in float64."""
    if tensor.is_quantized or tensor.layout != torch.strided:
        tensor = tensor.dequantize() if tensor.is_quantized else tensor.to_dense()
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    flat = tensor.detach().flatten().double()
    weights = torch.arange(1, flat.numel() + 1, dtype=torch.float64, device=flat.device).mul_(_GOLDEN).remainder_(1.0)
    return torch.stack([flat.mean(), flat.square().mean().sqrt(), (flat * weights).mean()])
