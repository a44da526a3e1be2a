"""Content fingerprints: equal things have equal fingerprints, in every process and on every machine.

Two things that behave differently must not share a fingerprint, or a result would be reused that is not theirs;
two that behave alike may differ, which only costs time. So in doubt more is hashed: code, constants, attributes.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import pickle
import struct
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import nn

from assay.core.errors import AssayError

_LIBRARIES = ("torch", "numpy", "builtins", "abc", "typing", "functools", "collections", "math", "dataclasses")
_MODULE_STATE = frozenset(nn.Module().__dict__)


def fingerprint(*parts: Any) -> str:
    """SHA-256 (first 32 hex digits) of the content of ``parts``.

    Numbers, strings, containers, arrays, tensors and dataclasses are hashed by value; functions by their code,
    constants, defaults, and what they close over or read from their module; torch modules by structure, the
    source of their classes, attributes, parameters and buffers. Any other object must have a string attribute
    ``fingerprint`` of its own.

    >>> fingerprint({"a": 1, "b": 2.0}) == fingerprint({"b": 2.0, "a": 1})
    True
    >>> fingerprint(1) == fingerprint(1.0)
    False
    """
    hasher = _Hasher()
    for part in parts:
        hasher.feed(part)
    return hasher.digest.hexdigest()[:32]


class _Hasher:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.lenient = 0
        self.seen: dict[int, Any] = {}  # functions, modules and objects under way or done: cycles end here

    def tag(self, kind: str, payload: bytes = b"") -> None:
        # Length-prefixed, so that ("ab", "c") and ("a", "bc") differ.
        self.digest.update(f"{kind}:{len(payload)}:".encode() + payload)

    def feed(self, value: Any) -> None:
        own = getattr(value, "fingerprint", None)
        if isinstance(own, str) and not isinstance(value, type):
            self.tag("own", own.encode())
        elif isinstance(value, Enum):
            self.tag("enum", str(value).encode())
        elif value is None or value is ... or isinstance(value, (bool, int, str, bytes, complex)):
            self.tag(type(value).__name__, value if isinstance(value, bytes) else str(value).encode())
        elif isinstance(value, float):
            self.tag("float", struct.pack("<d", value))
        elif isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            array = np.ascontiguousarray(value)
            self.tag(f"array{array.shape}{array.dtype.str}", array.tobytes())
        elif isinstance(value, torch.Tensor):
            self.feed_tensor(value)
        elif isinstance(value, (torch.dtype, torch.device, torch.memory_format, torch.Size, PurePath, range, slice)):
            self.tag(type(value).__name__, str(value).encode())
        elif isinstance(value, Mapping):
            self.tag("mapping", str(len(value)).encode())
            for key in sorted(value, key=repr):
                self.feed(key)
                self.feed(value[key])
        elif isinstance(value, (list, tuple)):
            self.tag("sequence", str(len(value)).encode())
            for item in value:
                self.feed(item)
        elif isinstance(value, (set, frozenset)):
            self.feed(sorted(value, key=repr))
        elif isinstance(value, types.CodeType):
            self.feed_code(value)
        elif id(value) in self.seen:
            self.tag("again")
        else:
            self.seen[id(value)] = value
            self.feed_object(value)

    def feed_object(self, value: Any) -> None:
        if isinstance(value, nn.Module):
            self.feed_module(value)
        elif isinstance(value, type):
            self.feed_class(value)
        elif dataclasses.is_dataclass(value):
            self.feed_class(type(value))
            for f in dataclasses.fields(value):
                self.feed(f.name)
                self.feed(getattr(value, f.name))
        elif isinstance(value, functools.partial):
            self.feed([value.func, value.args, value.keywords])
        elif isinstance(value, types.MethodType):
            self.feed([value.__func__, value.__self__])
        elif isinstance(value, types.FunctionType):
            self.feed_function(value)
        elif inspect.isroutine(value) or isinstance(value, types.ModuleType):
            self.tag("name", _qualname(value).encode())
        elif self.lenient:
            try:
                self.tag("pickle", pickle.dumps(value))
            except Exception:  # what cannot be pickled either (a handle, a lock) has only its type
                self.tag("type", _qualname(type(value)).encode())
        else:
            raise AssayError(
                f"cannot fingerprint {value!r} ({_qualname(type(value))}): make it a dataclass, or give it a "
                "string attribute 'fingerprint'"
            )

    def feed_tensor(self, tensor: torch.Tensor) -> None:
        flat = tensor.detach().to("cpu", copy=False).contiguous().flatten()
        self.tag(f"tensor{tuple(tensor.shape)}{tensor.dtype}")
        self.digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")

    def feed_module(self, module: nn.Module) -> None:
        self.tag("module", repr(module).encode())
        for name, child in module.named_modules():
            self.tag("child", name.encode())
            self.feed_class(type(child))
            for key in sorted(set(child.__dict__) - _MODULE_STATE):
                self.tag("attribute", key.encode())
                self.feed_attribute(child.__dict__[key])
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self.tag("name", name.encode())
            self.feed_tensor(tensor)

    def feed_attribute(self, value: Any) -> None:
        """An attribute of a network, or a global of a function, may be anything: here nothing is refused."""
        self.lenient += 1
        self.feed(value)
        self.lenient -= 1

    def feed_class(self, kind: type) -> None:
        self.tag("class", _qualname(kind).encode())
        for cls in kind.__mro__:
            if cls.__module__.split(".")[0] not in _LIBRARIES:
                self.tag("source", source_of(cls).encode())

    def feed_function(self, function: types.FunctionType) -> None:
        self.tag("function", _qualname(function).encode())
        if function.__module__ and function.__module__.split(".")[0] in _LIBRARIES:
            return
        self.feed_code(function.__code__)
        self.feed([function.__defaults__, function.__kwdefaults__])
        for cell in function.__closure__ or ():
            self.feed(cell.cell_contents)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if value is not None and not isinstance(value, types.ModuleType):
                self.tag("global", name.encode())
                self.feed_attribute(value)

    def feed_code(self, code: types.CodeType) -> None:
        self.tag("code", code.co_code)
        self.feed([code.co_names, code.co_varnames, code.co_freevars])
        self.feed(code.co_consts)


def source_of(thing: Any) -> str:
    """Source text of a class or function, empty where there is none (built-in, typed at a prompt)."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return ""


def _qualname(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', None) or thing}"


@functools.cache
def package_code() -> str:
    """Hash of assay's own source: what any result depends on."""
    root = Path(__file__).parent
    return fingerprint([(str(p.relative_to(root)), p.read_bytes()) for p in sorted(root.rglob("*.py"))])


def file_fingerprint(path: Path) -> str:
    """SHA-256 of a file's bytes; remembered while its size and modification time stay the same."""
    stat = path.stat()
    return _file_fingerprint(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=65536)
def _file_fingerprint(path: Path, size: int, mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
