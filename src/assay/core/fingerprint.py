"""Content fingerprints: equal things have equal fingerprints, in every process and on every machine.

Two things that behave differently must not share a fingerprint, or a result would be reused that is not theirs;
two that behave alike may differ, which only costs time. So in doubt more is hashed: code, constants, attributes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.core.hasher import Hasher, StateHasher, remembered


def fingerprint(*parts: Any) -> str:
    """SHA-256 (first 32 hex digits) of the content of ``parts``.

    Numbers, strings, containers, arrays, tensors and dataclasses are hashed by value; functions by their code,
    constants, defaults, and what they close over or read from their module; classes by the source they depend on
    (see `assay.core.source_code`) and by their members as they are now; torch modules by structure (which module is
    called where, shared or not), class, attributes, hooks, parameters and buffers. An object with a string attribute
    ``fingerprint`` of its own is hashed by that and its class. Any other object is refused, except as an attribute of
    a network or a variable of a function.

    The order of a mapping counts, because code that goes through it can depend on it; that of a set does not.

    >>> fingerprint({"a": 1, "b": 2.0}) == fingerprint({"b": 2.0, "a": 1})
    False
    >>> fingerprint({"a", "b"}) == fingerprint({"b", "a"})
    True
    >>> fingerprint(1) == fingerprint(1.0)
    False
    """
    return Hasher().of(parts)


def state_fingerprint(thing: Any) -> str:
    """SHA-256 of all that an object knows: its parameters and fitted attributes, however deep, without its code.

    Attributes whose names begin with an underscore are caches and do not count; nor does whether a network is in
    training mode.

    >>> state_fingerprint([1, 23]) == state_fingerprint([12, 3])
    False
    """
    return StateHasher().of([thing])


@contextmanager
def remembering() -> Iterator[None]:
    """Hash every class, and everything with a fingerprint of its own, only once inside the block.

    None may change there. Fingerprints are the same as outside.
    """
    token = remembered.set({})
    try:
        yield
    finally:
        remembered.reset(token)


def file_fingerprint(path: Path) -> str:
    """SHA-256 of a file's bytes; remembered while its size and modification time stay the same."""
    stat = path.stat()
    return _file_fingerprint(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=65536)
def _file_fingerprint(path: Path, size: int, mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
