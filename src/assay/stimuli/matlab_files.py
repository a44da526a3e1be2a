"""The variables of ``.mat`` files of every version, damaged ones refused by a sentence."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, Final

from assay.core.limits import require_bytes
from assay.core.reading import reading
from assay.stimuli.rdm_hdf5 import hdf5_arrays

_HEADER: Final = 128
_NUMBERS: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})
"""Types of data elements; the last three are text."""
_FLAGS, _MATRIX, _COMPRESSED = 6, 14, 15
_DIMENSIONS: Final = (5, 6)
_SPARSE, _OPAQUE = 5, 17  # classes of arrays
_OF_NUMBERS: Final = range(4, 16)  # classes of arrays: text, sparse, and numbers of every kind
_CLASSES: Final = range(1, 19)
_COMPLEX: Final = 0x08  # among the flags of an array
_MOST_DIMENSIONS: Final = 32
_EMPTY: Final = 1 << 16  # structures without fields, of which nothing is in the file
_DEEPEST: Final = 100  # structures and cells inside each other


def read_matlab(path: Path) -> dict[str, Any]:
    """Read the variables of a ``.mat`` file by name, of version 7.3 too."""
    from scipy import io  # half a second, which only those who read such files need

    with reading(path, "a .mat file"):
        with path.open("rb") as handle:
            head = handle.read(_HEADER)
            if head.startswith(b"\x89HDF") or b"MATLAB 7.3" in head:
                return hdf5_arrays(path)
            data = head + handle.read()
        if io.matlab.matfile_version(BytesIO(data))[0] == 1:
            _require_sound(data)
        # Scipy is given the bytes that were looked at, and not the file, which may have changed.
        return {name: value for name, value in io.loadmat(BytesIO(data)).items() if not name.startswith("__")}


def _require_sound(data: bytes) -> None:
    """Refuse a file of version 5 that scipy would follow past the end of its tables, and of this process.

    Scipy looks up the type of a data element by its number, whatever that is, and reads as many elements as the flags
    of an array promise, whether or not they are there.
    """
    order = "<" if data[126:128] == b"IM" else ">"
    for kind, body in _elements(memoryview(data)[_HEADER:], order, padded=False):
        if kind == _COMPRESSED:
            for inner, of_inner in _elements(memoryview(_decompressed(body)), order, padded=False):
                _require_sound_array(inner, of_inner, order, 0)
        else:
            _require_sound_array(kind, body, order, 0)


def _require_sound_array(kind: int, body: memoryview, order: str, depth: int) -> None:
    if kind != _MATRIX:
        raise ValueError(f"there is data of type {kind} where an array should be")
    if depth > _DEEPEST:
        raise ValueError(f"arrays are nested more than {_DEEPEST} deep")
    if not len(body):
        return
    elements = list(_elements(body, order, padded=True))
    kinds = [kind for kind, _ in elements]
    if kinds[:1] != [_FLAGS] or len(elements[0][1]) != 8:
        raise ValueError("an array does not begin with its flags")
    flags = struct.unpack(f"{order}I", elements[0][1][:4])[0]
    array_class = flags & 0xFF
    if array_class not in _CLASSES:
        raise ValueError(f"there is no class {array_class} of arrays")
    if array_class != _OPAQUE:
        sides = len(elements[1][1]) / 4 if len(elements) > 2 and kinds[1] in _DIMENSIONS else 0
        if sides not in range(2, _MOST_DIMENSIONS + 1):
            raise ValueError("an array lacks its dimensions or its name")
        shape = struct.unpack(f"{order}{int(sides)}I", elements[1][1])
        if array_class != _SPARSE and prod(shape) > max(len(body), _EMPTY):
            raise ValueError(f"an array of {'×'.join(map(str, shape))} has only {len(body)} bytes")
    if array_class in _OF_NUMBERS:
        wanted = 3 + (3 if array_class == _SPARSE else 1) + bool(flags >> 8 & _COMPLEX)
        if len(elements) < wanted or not _NUMBERS.issuperset(kinds):
            raise ValueError("an array lacks its numbers")
    for kind, part in elements:
        if kind == _MATRIX:
            _require_sound_array(kind, part, order, depth + 1)
        elif kind not in _NUMBERS:
            raise ValueError(f"there is no data type {kind}")


def _elements(data: memoryview, order: str, padded: bool) -> Iterator[tuple[int, memoryview]]:
    """The type and the bytes of each element; those inside an array are ``padded`` to multiples of eight bytes."""
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise ValueError("it ends in the middle of an element")
        kind, size = struct.unpack(f"{order}II", data[at : at + 8])
        if kind >> 16:  # a small one: type and size share four bytes, and the other four are its own
            kind, size, begin, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            begin, end = at + 8, at + 8 + (-(-size // 8) * 8 if padded else size)
        if begin + size > min(end, len(data)):
            raise ValueError("an element is longer than what it is in")
        yield kind, data[begin : begin + size]
        at = end


def _decompressed(body: memoryview) -> bytes:
    unpacking = zlib.decompressobj()
    parts, total = [], 0
    rest = bytes(body)
    while rest:
        parts.append(unpacking.decompress(rest, 1 << 24))
        total += len(parts[-1])
        require_bytes("a compressed variable", total)
        rest = unpacking.unconsumed_tail
    return b"".join([*parts, unpacking.flush()])  # what was held back where a part was full
