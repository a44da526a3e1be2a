"""Tensors in memory, and tensors nested in the tuples and mappings that networks take and return."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from assay.core.errors import AssayError


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
    """Every tensor in nested mappings, lists and tuples, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def first_tensor(value: Any) -> Tensor:
    """The first tensor in what a layer returned.

    Example:
        >>> first_tensor({"hidden": [torch.ones(2)], "pooled": torch.zeros(1)})
        tensor([1., 1.])
    """
    first = next(tensors_in(value), None)
    if first is None:
        raise AssayError(f"a layer returned {type(value).__name__}, which holds no tensor")
    return first


def with_first_tensor(structure: Any, tensor: Tensor) -> Any:
    """A copy of nested mappings, lists and tuples with the first tensor replaced."""
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
    raise AssayError(f"a layer returned {type(structure).__name__}, which holds no tensor")


def cloned(batch: Any) -> Any:
    """A copy of a batch: one tensor, or a mapping of them."""
    return {key: value.clone() for key, value in batch.items()} if isinstance(batch, Mapping) else batch.clone()


def batch_length(batch: Any) -> int:
    """Number of inputs that a batch holds."""
    return len(next(iter(batch.values())) if isinstance(batch, Mapping) else batch)


def batch_rows(batch: Any, n: int) -> Any:
    """The first ``n`` inputs of a batch, repeated where it has fewer."""
    if isinstance(batch, Mapping):
        return {key: batch_rows(value, n) for key, value in batch.items()}
    return batch[torch.arange(n, device=batch.device) % len(batch)]


def version(tensor: Tensor) -> int:
    """Number of times a tensor was written to; −1 where torch does not count them (inference mode)."""
    return -1 if tensor.is_inference() else tensor._version
