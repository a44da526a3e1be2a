"""Whether something has learned: the hash of what it knows, before and after."""

from __future__ import annotations

import hashlib
import pickle
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

_ROUTINES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)


def state_hash(thing: Any) -> str:
    """SHA-256 of all that a module knows: its parameters and fitted attributes, however deep.

    Attributes whose names begin with an underscore are caches and do not count; nor does whether a network is in
    training mode.

    >>> state_hash([1, 23]) == state_hash([1, 23]), state_hash([1, 23]) == state_hash([12, 3])
    (True, False)
    """
    state = _State()
    state.feed(thing)
    return state.digest.hexdigest()


class _State:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.above: set[int] = set()  # what is being looked into: a thing that holds itself ends here

    def tag(self, kind: str, payload: bytes = b"") -> None:
        self.digest.update(f"{kind}:{len(payload)}:".encode() + payload)

    def feed(self, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            tensor = value.detach().cpu()
            tensor = tensor if tensor.layout == torch.strided else tensor.to_dense()
            self.tag(f"tensor{tuple(tensor.shape)}{tensor.dtype}")
            value = tensor.contiguous().flatten().view(torch.uint8).numpy()
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.tag(f"array{value.shape}{value.dtype}", np.ascontiguousarray(value).tobytes())
        elif sparse.issparse(value):
            matrix = value.tocsr()
            self.feed([matrix.data, matrix.indices, matrix.indptr, matrix.shape])
        elif value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
            self.tag(type(value).__name__, value if isinstance(value, bytes) else repr(value).encode())
        elif isinstance(value, (type, types.ModuleType, *_ROUTINES)):
            self.tag("name", f"{getattr(value, '__module__', '')}.{value.__name__}".encode())
        elif id(value) in self.above:
            self.tag("above")
        else:
            self.above.add(id(value))
            self.look_into(value)
            self.above.remove(id(value))

    def look_into(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self.feed([value.shape, *value.ravel().tolist()])
        elif isinstance(value, Mapping):
            self.tag("mapping", str(len(value)).encode())
            for key in sorted(value, key=repr):
                self.tag("key", repr(key).encode())
                self.feed(value[key])
        elif isinstance(value, (list, tuple, set, frozenset)):
            self.tag("sequence", str(len(value)).encode())
            for element in sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value:
                self.feed(element)
        elif isinstance(value, nn.Module):
            self.feed(value.state_dict())
            self.feed({name: _public(child) for name, child in value.named_modules()})
        elif hasattr(value, "__dict__"):
            self.feed(_public(value))
        else:  # compiled: a random generator, a tree
            try:
                self.tag("pickle", pickle.dumps(value))
            except Exception:
                self.tag("type", repr(type(value)).encode())


def _public(thing: Any) -> dict[str, Any]:
    mode = {"training"} if isinstance(thing, nn.Module) else set()
    return {name: value for name, value in vars(thing).items() if not name.startswith("_") and name not in mode}
