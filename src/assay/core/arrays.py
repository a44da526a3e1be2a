"""Tensors in memory, and tensors nested in the tuples and mappings that networks take and return."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.limits import BYTES, limit, require_bytes

_LOCKED = 2**26  # bytes of a batch that are locked in their place while they are copied to a GPU


def channels_last(x: Tensor) -> Tensor:
    """Pictures N×C×H×W with the channels of a pixel side by side in memory; other tensors stay as they are.

    One channel is side by side anyway, but convolutions go by the strides: without them they would take grey pictures
    for the other order, and so would all that follows.

    Example:
        >>> channels_last(torch.zeros(2, 1, 4, 5)).stride()
        (20, 1, 5, 1)
    """
    if x.dim() != 4:
        return x
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    return x.as_strided(x.shape, (height * width, 1, width, 1)) if channels == 1 else x


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every tensor in nested mappings, lists, tuples and dataclasses, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif _is_record(value):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name))


def first_tensor(value: Any) -> Tensor:
    """The first tensor in what a layer returned.

    Example:
        >>> first_tensor({"hidden": [torch.ones(2)], "pooled": torch.zeros(1)})
        tensor([1., 1.])
    """
    first = next(tensors_in(value), None)
    if first is None:
        raise AssayError(f"a layer returned {type(value).__name__}, which holds no tensor")
    require_room_to_copy(first)
    return first


def require_room_to_copy(tensor: Tensor) -> None:
    """Refuse an expanded tensor, which takes next to no memory itself, where a copy of it would take too much."""
    amount = tensor.numel() * tensor.element_size()
    if isinstance(amount, int) and amount > limit(BYTES) and tensor.layout == torch.strided and 0 in tensor.stride():
        require_bytes(f"a layer's output of shape {tuple(tensor.shape)}", amount)


def with_first_tensor(structure: Any, tensor: Tensor) -> Any:
    """A copy of nested mappings, lists, tuples and dataclasses with the first tensor replaced."""
    if isinstance(structure, Tensor):
        return tensor
    if isinstance(structure, Mapping):
        for key, value in structure.items():
            if next(tensors_in(value), None) is not None:
                copied = type(structure)(structure)  # type: ignore[call-arg]
                operator.setitem(copied, key, with_first_tensor(value, tensor))  # type: ignore[call-overload]
                return copied
    if isinstance(structure, (list, tuple)):
        for i, value in enumerate(structure):
            if next(tensors_in(value), None) is not None:
                items = [*structure[:i], with_first_tensor(value, tensor), *structure[i + 1 :]]
                return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    elif _is_record(structure):
        for field in dataclasses.fields(structure):
            value = getattr(structure, field.name)
            if next(tensors_in(value), None) is not None:
                return dataclasses.replace(structure, **{field.name: with_first_tensor(value, tensor)})
    raise AssayError(f"a layer returned {type(structure).__name__}, which holds no tensor")


def _is_record(value: Any) -> bool:
    """Whether a value is an instance of a dataclass, as networks return that name their outputs."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def cloned(batch: Any) -> Any:
    """A copy of a batch: one tensor, or a mapping of them."""
    return {key: value.clone() for key, value in batch.items()} if isinstance(batch, Mapping) else batch.clone()


def as_tensor(values: Any) -> Tensor:
    """A tensor of what is given, without a copy but where it is an array that must not be written to."""
    read_only = isinstance(values, np.ndarray) and not values.flags.writeable
    return torch.as_tensor(values.copy() if read_only else values)


def copied_to(device: torch.device | str, values: Any) -> Tensor:
    """A tensor of what is given, on a device; for the copy of a batch to a GPU the host does not wait.

    A plain copy to a GPU waits until the GPU has done all that it was given before. One from memory that is locked in
    its place does not. Locking takes memory away from everything else, so only what is small is copied so.
    """
    tensor = as_tensor(values)
    if torch.device(device).type != "cuda" or tensor.nbytes > _LOCKED:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def real_parts(values: Tensor) -> Tensor:
    """A tensor as real numbers: of a complex one the real and the imaginary part of each, along a last axis."""
    return torch.view_as_real(values.resolve_conj()) if values.is_complex() else values


def real_numbers(values: Tensor) -> Tensor:
    """The `real_parts` of a tensor in float64.

    Example:
        >>> real_numbers(torch.tensor([3.0 + 4.0j])).tolist(), real_numbers(torch.tensor([1.0])).tolist()
        ([[3.0, 4.0]], [1.0])
    """
    return real_parts(values).double()


def batch_length(batch: Any) -> int:
    """Number of inputs that a batch holds."""
    return len(next(iter(batch.values())) if isinstance(batch, Mapping) else batch)


def batch_rows(batch: Any, n: int) -> Any:
    """The first ``n`` inputs of a batch, repeated where it has fewer."""
    if isinstance(batch, Mapping):
        return {key: batch_rows(value, n) for key, value in batch.items()}
    return batch[torch.arange(n, device=batch.device) % len(batch)]


def varied_input(batch: Any) -> Tensor | None:
    """The input that a measure varies: the batch itself, or the first floating-point one of several by name.

    The others of several are held as they are. None where all inputs are whole numbers, such as the numbers of words:
    between two of them there is nothing.

    Example:
        >>> varied_input({"ids": torch.zeros(2, 3, dtype=torch.int64), "picture": torch.ones(2, 1)}).shape
        torch.Size([2, 1])
    """
    tensors = batch.values() if isinstance(batch, Mapping) else [batch]
    return next((tensor for tensor in tensors if tensor.is_floating_point()), None)


def with_varied_input(batch: Any, tensor: Tensor) -> Any:
    """A batch with another tensor in place of its `varied_input`, and everything else held."""
    if not isinstance(batch, Mapping):
        return tensor
    changed = varied_input(batch)
    return {key: tensor if value is changed else value for key, value in batch.items()}


def version(tensor: Tensor) -> int:
    """Number of times a tensor was written to; −1 where torch does not count them (inference mode)."""
    return -1 if tensor.is_inference() else tensor._version
