"""Checkpoints of training: its progress, in one file of tensors that is replaced as a whole."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from assay.core.checkpoints import read_checkpoint, write_checkpoint
from assay.core.errors import AssayError, first_line, reason, shown
from assay.core.fingerprint import fingerprint
from assay.training.callbacks import Callback, Remembering

log = logging.getLogger(__name__)
Epoch = TypeVar("Epoch")
STATUSES = ("stopped", "halted", "ended", "diverged")


class Checkpoint:
    """The checkpoint of one training: weights, how far it has come, and the state of the optimiser and the callback.

    No random state is kept: every epoch begins from its own seed.

    Args:
        path: Path of the file.
        network: The network as it is before training.
        recipe: How the network is trained, a dataclass of settings.
        data: Fingerprint of the data that the network is trained on.
        every_s: Least number of seconds between two writes of the file.
        callback: The callback of the training, if it has one.
    """

    def __init__(
        self,
        path: Path | str,
        network: nn.Module,
        recipe: Any,
        data: str,
        every_s: float,
        callback: Callback | None = None,
    ) -> None:
        self.path = Path(path)
        self.network = network
        self.every_s = every_s
        self.callback = callback
        self.epochs: int = recipe.epochs
        settings = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
        self.training = fingerprint(settings, repr(network), network.state_dict(), data)
        self.written = time.monotonic()

    def read(
        self, optimizer: torch.optim.Optimizer, key: str, epoch: Callable[[Any], Epoch]
    ) -> tuple[Any, list[Epoch]]:
        """Restore network, optimiser and callback, and return how far training has come.

        Args:
            optimizer: The optimiser of the network.
            key: Under which name the file holds the epochs.
            epoch: Makes of what the file says of an epoch what the training knows of it; anything else raises.

        Returns:
            How training ended, None if it has not; and its epochs, none if it has not begun.
        """
        if not self.path.exists():
            return None, []
        tensors, progress = read_checkpoint(self.path)
        if progress.get("training") != self.training:
            raise AssayError(
                f"checkpoint={self.path} is of another training (other data, recipe, network or initial weights): "
                "delete it, or give another path"
            )
        with whole(self.path):
            status, entries = progress["status"], progress[key]
            most = self.epochs if status is not None else self.epochs - 1
            if status not in (None, *STATUSES) or not isinstance(entries, list) or not 0 < len(entries) <= most:
                raise AssayError(f"status {shown(status)} after {shown(entries)}, of {self.epochs} epochs")
            epochs = [epoch(entry) for entry in entries]
            self._load(tensors, optimizer)
            if isinstance(self.callback, Remembering):
                self._remind(self.callback, progress.get("callback"), len(epochs))
        return status, epochs

    def _load(self, tensors: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
        """Give the network and the optimiser what the file holds, if it is all there."""
        weights = _under("weights.", tensors)
        if _shapes(weights) != _shapes(self.network.state_dict()):
            raise AssayError(f"its weights are not those of {type(self.network).__name__}")
        self.network.load_state_dict(weights)
        for name, parameter in self.network.named_parameters():
            moments = _under(f"optimizer.{name}.", tensors)
            if moments:
                optimizer.state[parameter] = {moment: _like(value, parameter) for moment, value in moments.items()}
        if not optimizer.state:
            raise AssayError("it has no state of the optimiser")

    def _remind(self, callback: Remembering, state: Any, epochs: int) -> None:
        if state is None:
            log.warning(
                "checkpoint=%s has no state of the callback: what it saw in the first %d epochs is not known to it",
                self.path,
                epochs,
            )
        else:
            callback.load_state_dict(state)

    def write(self, optimizer: torch.optim.Optimizer, status: str | None, key: str, epochs: Sequence[Any]) -> None:
        """Write the checkpoint, if training has ended or the last one is old enough.

        Args:
            optimizer: The optimiser of the network.
            status: How training ended, None if it has not.
            key: Under which name the file holds the epochs.
            epochs: What is known of each epoch, as JSON can hold it.
        """
        if status is None and time.monotonic() - self.written < self.every_s:
            return
        tensors: dict[str, Tensor] = {f"weights.{name}": value for name, value in self.network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            for moment, value in optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{moment}"] = value
        progress = {"training": self.training, "status": status, key: list(epochs)}
        if isinstance(self.callback, Remembering):
            progress["callback"] = _plain(self.callback.state_dict())
        write_checkpoint(self.path, tensors, progress)
        self.written = time.monotonic()


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Make one sentence of whatever is wrong with the content of a checkpoint."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, AssayError) else reason(error)
        raise AssayError(
            f"checkpoint={path} does not hold what this training writes ({why}): delete it to begin anew"
        ) from error


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a callback, which must be one that JSON can hold."""
    try:
        json.dumps(state)
    except (TypeError, ValueError) as error:
        raise AssayError(
            f"the state_dict of the callback cannot be kept in a checkpoint ({first_line(error)}): return numbers, "
            "texts, lists and dictionaries"
        ) from error
    return state


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    """Return a value on the parameter's device and in its memory layout, which fused optimisers require."""
    if value.shape == parameter.shape:
        return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
    if value.dim():
        raise AssayError(f"a moment of shape {tuple(value.shape)} for a parameter of {tuple(parameter.shape)}")
    return value.to(parameter.device)
