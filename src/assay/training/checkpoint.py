"""Checkpoints of training: its progress, in one file of tensors that is replaced as a whole."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from assay.core.checkpoints import read_checkpoint, write_checkpoint
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint


class Checkpoint:
    """The checkpoint of one training: weights, the optimiser's state, and how far training has come.

    No random state is kept: every epoch begins from its own seed.

    Args:
        path: Path of the file.
        network: The network as it is before training.
        recipe: How the network is trained, a dataclass of settings.
        data: Fingerprint of the data that the network is trained on.
        every_s: Least number of seconds between two writes of the file.
    """

    def __init__(self, path: Path, network: nn.Module, recipe: Any, data: str, every_s: float) -> None:
        self.path = path
        self.network = network
        self.every_s = every_s
        settings = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
        self.training = fingerprint(settings, repr(network), network.state_dict(), data)
        self.written = time.monotonic()

    def read(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Restore network and optimiser, and return the progress; empty if training has not begun."""
        if not self.path.exists():
            return {}
        tensors, progress = read_checkpoint(self.path)
        if progress.get("training") != self.training:
            raise AssayError(
                f"checkpoint={self.path} is of another training (other data, recipe, network or initial weights): "
                "delete it, or give another path"
            )
        self.network.load_state_dict(_under("weights.", tensors))
        for name, parameter in self.network.named_parameters():
            moments = _under(f"optimizer.{name}.", tensors)
            if moments:
                optimizer.state[parameter] = {key: _like(value, parameter) for key, value in moments.items()}
        return progress

    def write(self, optimizer: torch.optim.Optimizer, progress: dict[str, Any], due: bool = False) -> None:
        """Write the checkpoint, if it is due or the last one is old enough."""
        if not due and time.monotonic() - self.written < self.every_s:
            return
        tensors: dict[str, Tensor] = {f"weights.{name}": value for name, value in self.network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            for key, value in optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{key}"] = value
        write_checkpoint(self.path, tensors, {"training": self.training, **progress})
        self.written = time.monotonic()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    """Return a value on the parameter's device and in its memory layout, which fused optimisers require."""
    if value.shape == parameter.shape:
        return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
    return value.to(parameter.device)
