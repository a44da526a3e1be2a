"""Operations of torch by what they do to sums over paths: affine, of weight one, harmless, or none of these."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

ONLY = "not a network of affine maps, ReLU, pooling and sums"
# Operations of torch by name, without the underscores around it: `add` stands for ``Tensor.add_`` too.
AFFINE = frozenset(["linear", "conv1d", "conv2d", "conv3d"])
ADDING = frozenset(["add", "iadd", "radd", "sub", "isub", "rsub"])
MULTIPLYING = frozenset(["mul", "imul", "rmul"])
DIVIDING = frozenset(["div", "idiv", "truediv", "itruediv"])
AVERAGE_POOLING = frozenset(["avg_pool1d", "avg_pool2d", "avg_pool3d"])
ADAPTIVE_AVERAGE_POOLING = frozenset(["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"])
# Copies, sums and largest values, of weight one; on what is not negative a ReLU is the identity.
OF_WEIGHT_ONE = frozenset([
    "relu", "abs",
    "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices", "max",
    "flatten", "unflatten", "view", "view_as", "reshape", "reshape_as", "permute", "transpose", "swapaxes", "t", "T",
    "mT", "movedim", "moveaxis", "squeeze", "unsqueeze", "narrow", "select", "index_select", "flip", "roll", "repeat",
    "contiguous", "clone", "detach", "data", "to", "double", "type_as", "expand", "expand_as", "broadcast_to",
    "getitem", "chunk", "split", "tensor_split", "unbind", "cat", "concat", "concatenate", "stack", "pixel_shuffle",
    "pixel_unshuffle", "channel_shuffle", "sum", "amax", "maximum",
])  # fmt: skip
DROPPING = frozenset(["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"])
CHOOSING = frozenset(["getitem", "index_select", "to", "double", "type_as"])  # of numbers, by places that are fixed
# Tensors that take only their shape and type from another one.
CONSTANT = frozenset([
    "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty",
])  # fmt: skip
# What does not depend on the values of a tensor.
ABOUT_THE_TENSOR = frozenset([
    "shape", "size", "dim", "ndim", "ndimension", "numel", "nelement", "stride", "len", "dtype", "device", "layout",
    "type", "element_size", "itemsize", "nbytes", "storage_offset", "get_device", "requires_grad", "grad_fn",
    "grad", "names", "is_contiguous", "is_floating_point", "is_complex", "is_cuda", "is_cpu", "is_mps", "is_meta",
    "is_sparse", "is_leaf", "is_nested", "is_quantized", "is_mkldnn", "is_inference", "is_signed", "is_conj",
    "is_neg", "is_xla", "is_shared", "data_ptr", "untyped_storage", "version", "hash", "is_same_size",
])  # fmt: skip
PRODUCTS = frozenset([
    "mul", "imul", "rmul", "matmul", "rmatmul", "mm", "bmm", "einsum", "dot", "outer", "linear", "bilinear",
    "conv1d", "conv2d", "conv3d",
])  # fmt: skip


def operation_name(func: Any) -> tuple[str, str]:
    """The name of an operation as it was called, and without the underscores around it."""
    called = getattr(func, "__name__", str(func))
    called = func.__self__.__name__ if called == "__get__" else called  # a property such as x.T
    called = called.partition(".")[0]  # of an exported program: ``linear.default``
    return called, called.strip("_")


def slope(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> float:
    """The slope of a leaky ReLU below zero, from the arguments it is called with."""
    return negative_slope


def drops(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, **more: Any) -> bool:
    """Whether a dropout is called to drop anything: it is not at evaluation, unless somebody forgot to say so."""
    return bool(more.get("train", training)) and p > 0


def each_axis(value: Any, axes: int) -> tuple[int, ...]:
    """A setting for each axis, from one for all or one each."""
    return tuple(value) * (axes if len(value) == 1 else 1) if isinstance(value, tuple | list) else (value,) * axes


def fills(x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> bool:
    """Whether padding fills in something else than zeros or copies."""
    return bool(value)


def pooled(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> int:  # fmt: skip
    """Number of values that an average pools; 0 where it differs from place to place."""
    padded = any(each_axis(padding, 1)) and not count_include_pad
    return 0 if padded or ceil_mode or divisor_override else prod(each_axis(kernel_size, x.dim() - 2))


def adaptively_pooled(x: Tensor, result: Tensor) -> Tensor:
    """Number of values that an adaptive average pools at each place: ⌈(i + 1)·n/m⌉ − ⌊i·n/m⌋ along each axis."""
    counts = torch.ones((), dtype=x.dtype)
    for n, m in zip(x.shape[2:], result.shape[2:], strict=True):
        i = torch.arange(m)
        counts = counts[..., None] * (((i + 1) * n + m - 1) // m - i * n // m)
    return counts
