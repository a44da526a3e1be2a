"""A limit on the tensors that a network is made of: refused before their memory is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assay.core.limits import OBJECTS, require_bytes, require_count

_MADE_BY = ("empty", "zeros", "ones", "full", "rand", "randn", "arange", "eye", "linspace")


class _Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the tensors that are made from nothing, and their bytes, before they are made."""

    def __init__(self, what: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.what = what
        self.tensors = 0
        self.bytes = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ in _MADE_BY:
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            shape = args[0] if args and isinstance(args[0], (list, tuple)) else args[:1]
            self.tensors += 1
            self.bytes += math.prod(map(float, shape)) * dtype.itemsize
            require_bytes(f"{self.what}: its weights", self.bytes)
            require_count(f"{self.what}: it has {self.tensors} tensors, which", self.tensors, OBJECTS)
        return func(*args, **kwargs)


@contextmanager
def limited_tensors(what: str) -> Iterator[None]:
    """Refuse to make more or larger tensors in the block than the limits allow, whoever's code makes them.

    Args:
        what: What makes the tensors, as the error begins.
    """
    with _Counted(what):
        yield
