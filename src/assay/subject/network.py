"""Network: a torch module ready to be shown inputs, and left as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.arrays import channels_last, cloned
from assay.core.errors import AssayError

Batch = Tensor | np.ndarray[Any, Any] | Mapping[str, Any]


class Network:
    """A module with its preprocessing, device, precision and memory format.

    If ``device``, ``dtype`` or ``in_channels_last`` ask for something else than the module is, a converted copy is
    used.
    """

    def __init__(
        self,
        module: nn.Module,
        preprocess: Callable[[Any], Any] | None,
        device: str | torch.device | None,
        dtype: torch.dtype | None,
        in_channels_last: bool,
    ) -> None:
        if not isinstance(module, nn.Module):
            raise AssayError(f"module={module!r} is not a torch.nn.Module")
        self.preprocess = preprocess
        self.channels_last = in_channels_last
        tensors = [*module.parameters(), *module.buffers()]
        own = next((t for t in tensors if t.is_floating_point()), torch.empty(0))
        self.device = torch.empty(0, device=device).device if device is not None else own.device
        self.dtype = dtype or own.dtype
        if self.device != own.device or self.dtype != own.dtype or in_channels_last:
            module = copy.deepcopy(module).to(self.device, self.dtype)
            if in_channels_last:
                module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.module = module
        self._one_showing = False

    def prepare(self, batch: Batch) -> Any:
        """Prepare a batch as the module takes it: preprocessed, on its device, in its precision and memory format."""
        if self.preprocess is not None:
            batch = self.preprocess(torch.as_tensor(batch) if isinstance(batch, np.ndarray) else batch)
        if isinstance(batch, Mapping):
            return {key: self._to_device(value) for key, value in batch.items()}
        return self._to_device(batch)

    def prepare_example(self, example: Batch | Sequence[int]) -> Any:
        """A prepared example input, made from one that is given or from its shape without the batch axis."""
        if isinstance(example, Sequence):
            # Not zeros: a network may divide by a norm. Not random: the dry run must not need a seed.
            size = 1
            for side in example:
                size *= int(side)
            example = torch.linspace(0, 1, size).reshape(1, *example)
        return self.prepare(example)

    def _to_device(self, value: Any) -> Tensor:
        tensor = torch.as_tensor(value)
        if tensor.dtype == torch.uint8:
            raise AssayError("the batch is uint8: show networks floating-point values (pixels in [0, 1])")
        tensor = tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)
        return channels_last(tensor) if self.channels_last else tensor

    def forward(self, ready: Any, copy_input: bool = False) -> Any:
        """What the module returns for a prepared batch; ``copy_input`` keeps it from writing to the batch."""
        ready = cloned(ready) if copy_input else ready
        return self.module(**ready) if isinstance(ready, Mapping) else self.module(ready)

    @contextmanager
    def undisturbed(self, out_of_place: bool = False) -> Iterator[None]:
        """Run in eval mode, without gradients, on a forked random state inside the block; afterwards all is as before.

        With ``out_of_place``, modules with an ``inplace`` switch have it off: what they would overwrite stays.
        """
        changes = [(m, "training", True) for m in self.module.modules() if m.training]
        if out_of_place:
            changes += [(m, "inplace", True) for m in self.module.modules() if getattr(m, "inplace", False) is True]
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(devices=devices, enabled=not self._one_showing):
            try:
                for module, switch, _ in changes:
                    setattr(module, switch, False)
                yield
            finally:
                for module, switch, before in changes:
                    setattr(module, switch, before)

    @contextmanager
    def one_showing(self) -> Iterator[None]:
        """Make several batches one showing: a network that draws random numbers goes on drawing between them."""
        with self.undisturbed():
            self._one_showing = True
            try:
                yield
            finally:
                self._one_showing = False

    def weight_versions(self) -> int:
        """A number that changes whenever a parameter or buffer is written to or replaced."""
        return hash(tuple((id(t), t._version) for t in [*self.module.parameters(), *self.module.buffers()]))
