"""Content fingerprints: equal things have equal fingerprints, in every process and on every machine."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import nn

from assay.errors import AssayError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


class _Hash(Protocol):
    def update(self, data: Buffer, /) -> None: ...


def fingerprint(*parts: Any) -> str:
    """SHA-256 (first 32 hex digits) of the content of ``parts``.

    Numbers, strings, containers, arrays, tensors, dataclasses, torch modules (structure, code of their
    classes, parameters and buffers) and functions (source) are hashed by content; any other object must
    have a ``fingerprint`` attribute of its own.

    >>> fingerprint({"a": 1, "b": 2.0}) == fingerprint({"b": 2.0, "a": 1})
    True
    >>> fingerprint(1) == fingerprint(1.0)
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()[:32]


def _tag(h: _Hash, kind: str, payload: bytes = b"") -> None:
    # Length-prefixed, so that ("ab", "c") and ("a", "bc") differ.
    h.update(f"{kind}:{len(payload)}:".encode() + payload)


def _feed(h: _Hash, value: Any) -> None:
    own = getattr(value, "fingerprint", None)
    if isinstance(own, str) and not isinstance(value, type):
        _tag(h, "own", own.encode())
    elif value is None or (isinstance(value, (bool, int, str, bytes, complex)) and not isinstance(value, Enum)):
        _tag(h, type(value).__name__, value if isinstance(value, bytes) else str(value).encode())
    elif isinstance(value, float):
        _tag(h, "float", struct.pack("<d", value))
    elif isinstance(value, Enum):
        _tag(h, "enum", str(value).encode())
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        _tag(h, f"array{array.shape}{array.dtype.str}", array.tobytes())
    elif isinstance(value, torch.Tensor):
        _feed_tensor(h, value)
    elif isinstance(value, nn.Module):
        _feed_module(h, value)
    elif isinstance(value, (torch.dtype, torch.device, torch.memory_format, PurePath)):
        _tag(h, type(value).__name__, str(value).encode())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _tag(h, "dataclass", _qualname(type(value)).encode())
        for f in dataclasses.fields(value):
            _feed(h, f.name)
            _feed(h, getattr(value, f.name))
    elif isinstance(value, Mapping):
        _tag(h, "mapping", str(len(value)).encode())
        for key in sorted(value, key=repr):
            _feed(h, key)
            _feed(h, value[key])
    elif isinstance(value, (list, tuple)):
        _tag(h, "sequence", str(len(value)).encode())
        for item in value:
            _feed(h, item)
    elif isinstance(value, (set, frozenset)):
        _feed(h, sorted(value, key=repr))
    elif isinstance(value, functools.partial):
        _feed(h, [value.func, value.args, value.keywords])
    elif inspect.isroutine(value) or isinstance(value, type):
        _tag(h, "code", (_qualname(value) + source_of(value)).encode())
        for cell in getattr(value, "__closure__", None) or ():
            _feed(h, cell.cell_contents)
    else:
        raise AssayError(
            f"cannot fingerprint {value!r} ({_qualname(type(value))}): make it a dataclass, or give it a "
            "string attribute 'fingerprint'"
        )


def _feed_tensor(h: _Hash, tensor: torch.Tensor) -> None:
    flat = tensor.detach().to("cpu", copy=False).contiguous().flatten()
    _tag(h, f"tensor{tuple(tensor.shape)}{tensor.dtype}")
    h.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")


def _feed_module(h: _Hash, module: nn.Module) -> None:
    _tag(h, "module", repr(module).encode())
    for kind in sorted({type(m) for m in module.modules()}, key=_qualname):
        _tag(h, "class", _qualname(kind).encode())
        if not kind.__module__.startswith("torch."):
            _tag(h, "source", source_of(kind).encode())
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        _tag(h, "name", name.encode())
        _feed_tensor(h, tensor)


def source_of(thing: Callable[..., Any] | type) -> str:
    """Source text of a class or function, empty where there is none (built-in, typed at a prompt)."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return ""


def _qualname(thing: Any) -> str:
    return f"{thing.__module__}.{getattr(thing, '__qualname__', thing)}"


def file_fingerprint(path: Path) -> str:
    """SHA-256 of a file's bytes; remembered while its size and modification time stay the same."""
    stat = path.stat()
    return _file_fingerprint(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=65536)
def _file_fingerprint(path: Path, size: int, mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
