"""The hasher: feeds values of any kind to one SHA-256."""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import hashlib
import inspect
import struct
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from assay.core.errors import AssayError
from assay.core.introspection import (
    attributes,
    contents,
    is_cache,
    members,
    public,
    qualname,
    text,
    variables_read,
    without_file,
)
from assay.core.source_code import OURS, is_followed, package_version, source_fingerprint

_MODULE_STATE: Final = frozenset(nn.Module().__dict__)
_HOOKS: Final = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_DEEPEST: Final = 100
_EXACT: Final = (dict, list, tuple, set, frozenset, types.MappingProxyType)
_BUILTIN: Final = (Mapping, list, tuple, set, frozenset, int, float, str, bytes, complex)

remembered: contextvars.ContextVar[dict[int, tuple[Any, bytes]] | None] = contextvars.ContextVar(
    "remembered", default=None
)


class Hasher:
    """Feeds values of any kind to one SHA-256, so that different values give different bytes.

    An object is hashed on its own and its digest fed, so that the same value gives the same bytes however often it
    occurs and whether it is one object or two equal ones. Modules and parameters are numbered instead: for them it
    matters whether two places share one.
    """

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.lenient = 0
        self.depth = 0
        self.known: dict[int, tuple[Any, bytes]] = {}  # the object is kept, so that its id is not given to another
        self.under_way: dict[int, int] = {}
        self.outermost = _DEEPEST  # of the objects under way that were met again, the one that holds the others
        self.lasting = self.shared()
        self.numbers: dict[int, tuple[Any, int]] = {}

    def shared(self) -> dict[int, tuple[Any, bytes]]:
        """The digests of classes and stimuli that are kept beyond this hasher, inside `remembering`."""
        outlasting = remembered.get()
        return {} if outlasting is None else outlasting

    def of(self, parts: Iterable[Any]) -> str:
        """The first 32 hex digits of the hash of values."""
        for part in parts:
            self.feed(part)
        return self.digest.hexdigest()[:32]

    def tag(self, kind: str, payload: bytes = b"") -> None:
        """Feed bytes with their kind and length, so that ("ab", "c") and ("a", "bc") differ."""
        self.digest.update(f"{kind}:{len(payload)}:".encode() + payload)

    def feed(self, value: Any) -> None:
        """Feed one value of any kind."""
        if value is None or value is ... or type(value) in (bool, int, str, bytes, complex):
            self.tag(type(value).__name__, value if isinstance(value, bytes) else text(value))
        elif type(value) is float:
            self.tag("float", struct.pack("<d", value))
        elif isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            self.feed_array(value)
        elif isinstance(value, torch.Tensor):
            self.feed_tensor(value)
        elif isinstance(value, (torch.dtype, torch.device, torch.memory_format, torch.Size, PurePath, range, slice)):
            self.tag(type(value).__name__, text(value))
        elif isinstance(value, nn.Module):
            self.feed_module(value)
        elif (known := self.known.get(id(value)) or self.lasting.get(id(value))) is not None:
            self.digest.update(known[1])
        elif id(value) in self.under_way:
            self.outermost = min(self.outermost, self.under_way[id(value)])
            self.tag("cycle", str(self.depth - self.under_way[id(value)]).encode())
        elif self.depth >= _DEEPEST:
            self.tag("deep", text(qualname(type(value))))
        else:
            self.feed_apart(value)

    def feed_apart(self, value: Any) -> None:
        """Feed the digest of an object, made on its own and remembered."""
        outside, self.digest = self.digest, hashlib.sha256()
        self.under_way[id(value)] = self.depth
        self.depth += 1
        modules_before = len(self.numbers)
        outermost_before, self.outermost = self.outermost, _DEEPEST
        try:
            self.feed_object(value)
        finally:
            self.depth -= 1
            del self.under_way[id(value)]
            inside, self.digest = self.digest.digest(), outside
        # A digest with numbers of modules, or with a way back to what holds the object, is true at this place alone.
        if len(self.numbers) == modules_before and self.outermost >= self.depth:
            self.known[id(value)] = (value, inside)
            if isinstance(value, type) or hasattr(type(value), "fingerprint"):  # stimuli, which may be gigabytes
                self.lasting[id(value)] = (value, inside)
        self.outermost = min(self.outermost, outermost_before)
        self.digest.update(inside)

    def feed_object(self, value: Any) -> None:
        """Feed an object by what it is made of."""
        own = None if isinstance(value, type) else getattr(value, "fingerprint", None)
        if isinstance(own, str):
            self.tag("own", own.encode())
            self.feed(type(value))
        elif isinstance(value, Enum):
            self.feed([type(value), value.name])
            self.leniently(value.value)
        elif isinstance(value, _BUILTIN):
            self.feed_builtin(value)
        elif isinstance(value, np.ndarray):  # of objects
            self.feed([value.shape, value.ravel().tolist()])
        elif isinstance(value, types.CodeType):
            self.feed_code(value)
        elif isinstance(value, type):
            self.feed_class(value)
        elif isinstance(value, functools.partial):
            self.feed([value.func, value.args, value.keywords])
        elif isinstance(value, types.MethodType):
            self.feed([value.__func__, value.__self__])
        elif isinstance(value, types.FunctionType):
            self.feed_function(value)
        elif isinstance(value, (staticmethod, classmethod)):
            self.feed(value.__func__)
        elif isinstance(value, property):
            self.feed([value.fget, value.fset, value.fdel])
        elif isinstance(value, functools.cached_property):
            self.feed(value.func)
        elif isinstance(value, functools.partialmethod):
            self.feed([value.func, value.args, value.keywords])
        elif isinstance(wrapped := getattr(value, "__wrapped__", None), types.FunctionType):
            self.feed([qualname(type(value)), wrapped])  # such as functools.lru_cache makes
        elif inspect.isroutine(value) or isinstance(value, (types.ModuleType, np.ufunc)):
            self.tag("name", text(qualname(value)))
            owner = getattr(value, "__self__", None)
            if not isinstance(owner, (types.ModuleType, type, types.NoneType)):
                self.leniently(owner)  # a built-in method of an object
        elif dataclasses.is_dataclass(value):
            self.feed(type(value))
            names = [field.name for field in dataclasses.fields(value)]
            for name in names:
                self.feed(name)
                self.feed(getattr(value, name))
            self.leniently({k: v for k, v in attributes(value).items() if k not in names and not is_cache(value, k)})
        elif self.lenient:
            self.feed_anything(value)
        else:
            raise AssayError(
                f"cannot fingerprint {value!r} ({qualname(type(value))}): make it a dataclass, or give it a "
                "string attribute 'fingerprint'"
            )

    def feed_builtin(self, value: Any) -> None:
        """Feed a container, number or string; of a subclass also its class and its attributes."""
        if type(value) not in _EXACT and not isinstance(value, np.generic):
            self.feed(type(value))
            self.leniently(attributes(value))
        if isinstance(value, Mapping):
            self.tag("mapping", str(len(value)).encode())
            for key in self.keys_of(value):
                self.feed(key)
                self.feed(value[key])
        elif isinstance(value, (list, tuple)):
            self.tag("sequence", str(len(value)).encode())
            for item in value:
                self.feed(item)
        elif isinstance(value, (set, frozenset)):
            self.tag("set", str(len(value)).encode())
            for item in self.in_order(value):
                self.feed(item)
        elif isinstance(value, float):
            self.tag("float", struct.pack("<d", value))
        else:
            self.tag("plain", bytes(value) if isinstance(value, bytes) else text(value))

    def keys_of(self, mapping: Mapping[Any, Any]) -> Iterable[Any]:
        """The keys of a mapping in its own order, which is content: whoever goes through it can see it."""
        return mapping

    def in_order(self, items: Collection[Any]) -> list[Any]:
        """Members in an order that is the same in every process: words by value, others by hash."""
        if all(type(item) is str for item in items):
            return sorted(items)
        return sorted(items, key=self.digest_of)

    def digest_of(self, value: Any) -> bytes:
        """The digest of a value alone, nothing fed."""
        outside, self.digest = self.digest, hashlib.sha256()
        try:
            self.leniently(value)
            return self.digest.digest()
        finally:
            self.digest = outside

    def leniently(self, value: Any) -> None:
        """Feed an attribute of a network or a variable of a function, which may be anything: nothing is refused."""
        self.lenient += 1
        try:
            self.feed(value)
        finally:
            self.lenient -= 1

    def feed_anything(self, value: Any) -> None:
        """Feed an object of any kind: by its attributes, or as it would be copied; a handle or lock by its type."""
        kind = type(value)
        self.feed(kind)
        held = attributes(value)
        if held and is_followed(kind.__module__):
            self.feed(held)
            return
        try:
            copied = value.__reduce_ex__(4)
            parts = [copied] if isinstance(copied, str) else copied  # a name stands for a thing that is there anyway
            self.feed([list(part) if isinstance(part, Iterator) else part for part in parts])
        except Exception:  # cannot be copied: its attributes are all that can be seen
            self.feed(held)

    def feed_array(self, value: Any) -> None:
        """Feed an array by shape, type and content."""
        array = np.ascontiguousarray(value)
        self.tag(f"array{array.shape}{array.dtype.str}{array.nbytes}")
        self.digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")

    def feed_tensor(self, tensor: torch.Tensor) -> None:
        """Feed a tensor by shape, type and content; one of a lazy layer that has seen no input has its type only."""
        if isinstance(tensor, nn.UninitializedParameter | nn.UninitializedBuffer):
            self.tag(f"uninitialized{tensor.dtype}")
            return
        tensor = tensor.detach()
        if tensor.layout != torch.strided or tensor.is_quantized:
            self.tag(str(tensor.layout))
            tensor = tensor.dequantize() if tensor.is_quantized else tensor.to_dense()
        self.tag(f"tensor{tuple(tensor.shape)}{tensor.dtype}")
        if tensor.device.type != "meta" and tensor.numel():
            flat = tensor.to("cpu").resolve_conj().resolve_neg().contiguous().flatten()
            self.digest.update(flat.view(torch.uint8).numpy().data)

    def number(self, value: Any) -> bool:
        """Feed the number of a module or parameter, in order of first meeting; return whether it is new."""
        new = id(value) not in self.numbers
        _, number = self.numbers.setdefault(id(value), (value, len(self.numbers)))
        self.tag("number", str(number).encode())
        return new

    def feed_module(self, module: nn.Module) -> None:
        """Feed a network; a module or parameter that was met before is fed as the number it has."""
        self.tag("module")
        if not self.number(module):
            return
        self.feed(type(module))
        code = getattr(module, "code", None)  # of a scripted or captured network, whose class says nothing
        generated = isinstance(code, str)
        self.tag("generated", text(code) if isinstance(code, str) else b"")
        for key in sorted(set(module.__dict__) - _MODULE_STATE):
            if not (generated and key.startswith("_")):
                self.tag("attribute", text(key))
                self.leniently(module.__dict__[key])
        for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, tensor in tensors.items():
                self.tag(kind, text(name))
                if tensor is not None and self.number(tensor):
                    self.tag("learns" if tensor.requires_grad else "fixed")
                    self.feed(tensor)
        for name, child in module._modules.items():
            self.tag("child", text(name))
            self.feed(child)
        for kind in _HOOKS:
            if hooks := getattr(module, kind, None):
                self.tag(kind, str(len(hooks)).encode())
                self.leniently(list(hooks.values()))

    def feed_class(self, kind: type) -> None:
        """Feed a class: by version where it is installed, else by source and by what its members are now."""
        for cls in kind.__mro__:
            self.tag("class", text(qualname(cls)))
            if is_followed(cls.__module__):
                self.tag("source", source_fingerprint(cls.__module__).encode())
            elif not without_file(cls):
                self.tag("version", package_version(cls.__module__.partition(".")[0]).encode())
                continue
            self.leniently(members(cls))

    def feed_function(self, function: types.FunctionType) -> None:
        """Feed a function by its code, defaults, and what it closes over or reads from its module."""
        module = function.__globals__.get("__name__", function.__module__) or ""  # a decorator may have set the latter
        wrapped = getattr(function, "__wrapped__", None)
        if module.partition(".")[0] == OURS and isinstance(wrapped, types.FunctionType):
            self.feed_function(wrapped)  # assay only prepares what it is given (see `assay.Measure`)
            return
        self.tag("function", text(qualname(function)))
        if module and not is_followed(module) and not without_file(function):
            self.tag("version", package_version(module.partition(".")[0]).encode())
            # What a decorator of an installed package wraps is the user's own.
            inside = [getattr(function, "__wrapped__", None), *map(contents, function.__closure__ or ())]
            self.leniently([f for f in inside if isinstance(f, types.FunctionType) and is_followed(f.__module__ or "")])
            return
        self.feed_code(function.__code__)
        self.leniently([function.__defaults__, function.__kwdefaults__])
        self.leniently([contents(cell) for cell in function.__closure__ or ()])
        if module.partition(".")[0] != OURS:  # of assay the source says it all
            self.leniently(variables_read(function))

    def feed_code(self, code: types.CodeType) -> None:
        """Feed compiled code, without where it stands in its file."""
        self.tag("code", code.co_code)
        self.feed([code.co_names, code.co_varnames, code.co_freevars])
        self.leniently(code.co_consts)


class StateHasher(Hasher):
    """Hashes what objects know and not how they work: public attributes, no code."""

    def __init__(self) -> None:
        super().__init__()
        self.lenient = 1  # a learner may hold anything

    def shared(self) -> dict[int, tuple[Any, bytes]]:
        """No digest is kept beyond this hasher, because what an object knows changes."""
        return {}

    def keys_of(self, mapping: Mapping[Any, Any]) -> Iterable[Any]:
        """The keys of a mapping in an order of their own: what a learner knows is the same in another order."""
        return self.in_order(mapping)

    def feed_object(self, value: Any) -> None:
        """Feed any object by its public attributes; functions and classes by name."""
        if isinstance(value, (type, types.FunctionType, types.MethodType)):
            self.tag("name", text(qualname(value)))
        elif dataclasses.is_dataclass(value):
            self.feed(public(value))
        else:
            super().feed_object(value)

    def feed_anything(self, value: Any) -> None:
        """Feed public attributes where there are any, else what a copy would be made from."""
        if hasattr(value, "__dict__") and not hasattr(value, "tocsr"):
            self.feed(public(value))
        else:
            super().feed_anything(value.tocsr() if hasattr(value, "tocsr") else value)

    def feed_module(self, module: nn.Module) -> None:
        """Feed the tensors and public attributes of a network."""
        self.tag("module")
        self.feed(dict(module.state_dict()))
        for name, child in module.named_modules():
            self.tag("child", text(name))
            self.leniently({k: v for k, v in public(child).items() if k != "training"})

    def feed_class(self, kind: type) -> None:
        """Feed the name of a class."""
        self.tag("class", text(qualname(kind)))
