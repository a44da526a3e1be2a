"""TFRecord files, read without TensorFlow: checked records, and the ``Example`` and tensor messages in them.

A record is its length (8 bytes), a checksum of the length (4), the payload, and a checksum of the payload (4).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import AssayError, first_line
from assay.core.reading import read_bytes
from assay.stimuli.pictures import Array

Words = NDArray[np.uint32]
_HEADER, _FOOTER = 12, 4
_BLOCK = 1 << 22  # bytes checked at a time; many more leave the processor's cache
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LISTS = {1: "bytes_list", 2: "float_list", 3: "int64_list"}
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 17: "<u2", 19: "<f2"}


def read_records(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a file in order, each as (the byte at which it begins, its payload), checksums verified.

    Source: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
    """
    data = read_bytes(path)
    for offset, length, count in _runs(data, path):
        size = _HEADER + length + _FOOTER
        rows = np.frombuffer(data, dtype=np.uint8, count=count * size, offset=offset).reshape(count, size)
        intact = _masked(_checksums(rows[:, _HEADER:-_FOOTER])) == rows[:, -_FOOTER:].copy().view("<u4")[:, 0]
        for i, start in enumerate(range(offset, offset + count * size, size)):
            if not intact[i]:
                raise AssayError(f"{path} is damaged: the payload of the record at byte {start} fails its checksum")
            yield start, data[start + _HEADER : start + _HEADER + length]


def _runs(data: bytes, path: str | Path) -> Iterator[tuple[int, int, int]]:
    """Yield runs of successive records of one length: where the first begins, that length, and their number."""
    offset = 0
    while offset < len(data):
        header = data[offset : offset + _HEADER]
        if len(header) < _HEADER:
            raise AssayError(f"{path} is cut short: the record at byte {offset} ends in its header")
        if int(_masked(_checksums(np.frombuffer(header[:8], dtype=np.uint8)[None]))[0]) != _uint(header[8:]):
            raise AssayError(f"{path} is damaged: the length of the record at byte {offset} fails its checksum")
        length = _uint(header[:8])
        size = _HEADER + length + _FOOTER
        if offset + size > len(data):
            raise AssayError(
                f"{path} is cut short: the record at byte {offset} needs {size} bytes, {len(data) - offset} are there"
            )
        count, following = 1, offset + size
        while count * size < _BLOCK and following + size <= len(data) and data.startswith(header, following):
            count, following = count + 1, following + size
        yield offset, length, count
        offset = following


def _uint(data: bytes) -> int:
    return int.from_bytes(data, "little")


# -- checksums ------------------------------------------------------------------------------------------------


def crc32c(data: bytes) -> int:
    """Return Castagnoli's checksum: polynomial 0x1EDC6F41 reflected; the register starts at 2³²−1 and is inverted last.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'

    RFC 3720, §12.1 and appendix B.4.
    """
    return int(_checksums(np.frombuffer(data, dtype=np.uint8)[None])[0])


def _masked(checksums: Words) -> Words:
    """Return checksums as a file stores them: rotated right by 15 bits, plus a constant (modulo 2³²)."""
    return (checksums >> np.uint32(15) | checksums << np.uint32(17)) + np.uint32(0xA282EAD8)


_START = np.frombuffer(bytes.fromhex("54641f64"), dtype=np.uint8)  # brings the register from 0 to 2³²−1


def _checksums(rows: NDArray[np.uint8]) -> Words:
    """Return the CRC-32C of every row.

    The register is linear, r(ab) = shift(r(a), |b|) ⊕ r(b), and zeros in front leave it at 0. So the rows, after
    four bytes that bring it to 2³²−1, are joined word by word, then pair by pair, and so on, all at once.
    """
    count, length = rows.shape
    padded = np.zeros((count, 4 + length + -length % 4), dtype=np.uint8)
    padded[:, padded.shape[1] - length :] = rows
    padded[:, -length % 4 : -length % 4 + 4] = _START
    words: Words = padded.view("<u4")
    level = 2
    while words.shape[1] > 1:
        odd = words.shape[1] % 2
        joined = _shifted(words[:, odd::2], level) ^ words[:, odd + 1 :: 2]
        words = np.hstack([words[:, :1], joined]) if odd else joined
        level += 1
    return ~_shifted(words[:, 0], 2)


def _shifted(registers: Words, level: int) -> Words:
    """Return the registers after 2^level further zero bytes."""
    tables = _tables(level)
    parts = np.ascontiguousarray(registers).view(np.uint8).reshape(*registers.shape, 4)
    shifted: Words = tables[0].take(parts[..., 0])
    for i in (1, 2, 3):
        shifted ^= tables[i].take(parts[..., i])
    return shifted


@lru_cache
def _tables(level: int) -> Words:
    """Tabulate `_shifted` for all values of each of the four bytes of a register, lowest first: 4×256."""
    if level > 0:
        return _shifted(_tables(level - 1), level - 1)
    lowest = np.arange(256, dtype=np.uint32)
    tables = lowest << np.array([[0], [0], [8], [16]], dtype=np.uint32)  # the upper three move down by a byte
    for _ in range(8):
        tables[0] = tables[0] >> 1 ^ (tables[0] & 1) * np.uint32(0x82F63B78)
    return tables


# -- protocol buffers -----------------------------------------------------------------------------------------


def parse_example(payload: bytes) -> dict[str, list[bytes] | Array]:
    """Return the features of a serialized ``tf.train.Example``: lists of bytes, float32 arrays or int64 arrays.

    A feature that holds no list is left out.

    Example:
        >>> parse_example(b"\\n\\r\\n\\x0b\\n\\x01a\\x12\\x06\\x1a\\x04\\n\\x02\\x05\\x07")
        {'a': array([5, 7])}

    Source: tensorflow/core/example/{example,feature}.proto; https://protobuf.dev/programming-guides/encoding
    """
    features: dict[str, list[bytes] | Array] = {}
    for entry in _message_fields(_joined(_message_fields(payload), 1))[1]:
        parts = _message_fields(entry)
        name, lists = _joined(parts, 1).decode("utf-8", "replace"), _message_fields(_joined(parts, 2))
        kinds = sorted(lists.keys() & _LISTS.keys())
        if len(kinds) > 1:
            raise AssayError(f"the feature {name!r} is {' and '.join(_LISTS[k] for k in kinds)} at once")
        for kind in kinds:
            values = _message_fields(_joined(lists, kind))[1]
            features[name] = values if kind == 1 else _numbers(b"".join(values), name, floats=kind == 2)
    return features


def _numbers(packed: bytes, name: str, floats: bool) -> Array:
    if not floats:
        return np.array(_varints(packed), dtype=np.uint64).view(np.int64)
    if len(packed) % 4:
        raise AssayError(f"the feature {name!r} has {len(packed)} bytes of float32 values: not a multiple of 4")
    return np.frombuffer(packed, dtype="<f4").astype(np.float32, copy=False)


def parse_tensor(message: bytes) -> Array:
    """Read an array from a serialized ``TensorProto``, as ``tf.io.serialize_tensor`` writes it.

    Example:
        >>> parse_tensor(b"\\x08\\x03\\x12\\x04\\x12\\x02\\x08\\x02\\x22\\x08\\x05\\0\\0\\0\\x07\\0\\0\\0")
        array([5, 7], dtype=int32)

    Source: tensorflow/core/framework/{tensor,tensor_shape,types}.proto
    """
    fields = _message_fields(message)
    number = (_varints(_joined(fields, 1)) or [0])[-1]
    if number not in _DTYPES:
        raise AssayError(f"a tensor has type number {number}: assay reads {', '.join(map(str, _DTYPES))}")
    dtype, content = np.dtype(_DTYPES[number]), _joined(fields, 4)
    shape = [(_varints(_joined(_message_fields(dim), 1)) or [0])[-1] for dim in _message_fields(_joined(fields, 2))[2]]
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise AssayError(f"a tensor {'×'.join(map(str, shape))} of {dtype} has {len(content)} bytes of content")
    try:
        return np.frombuffer(content, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
    except (ValueError, OverflowError) as error:
        raise AssayError(f"a tensor has the shape {shape} ({first_line(error)})") from error


def _message_fields(message: bytes) -> defaultdict[int, list[bytes]]:
    """Return the values of a message's fields as bytes, by field number, without the length that precedes a value."""
    fields: defaultdict[int, list[bytes]] = defaultdict(list)
    position = 0
    while position < len(message):
        start = _end_of_varint(message, position)
        (key,) = _varints(message[position:start])
        if key & 7 == _VARINT:
            position = _end_of_varint(message, start)
        elif key & 7 == _BYTES:
            length, start = start, _end_of_varint(message, start)
            position = start + _varints(message[length:start])[0]
        elif key & 7 in (_FIXED64, _FIXED32):
            position = start + (8 if key & 7 == _FIXED64 else 4)
        else:
            raise AssayError(f"a message has wire type {key & 7}: it is no Example")
        if position > len(message):
            raise AssayError(f"a message ends within its field {key >> 3}: it is no Example")
        fields[key >> 3].append(message[start:position])
    return fields


def _joined(fields: defaultdict[int, list[bytes]], number: int) -> bytes:
    """Join all values of a field: repeated messages merge, and packed numbers read like single ones."""
    return b"".join(fields[number])


def _end_of_varint(message: bytes, start: int) -> int:
    for end in range(start, min(start + 10, len(message))):
        if message[end] < 128:
            return end + 1
    raise AssayError("a message ends within a number: it is no Example")


def _varints(data: bytes) -> list[int]:
    """Decode little-endian numbers of 7 bits a byte; the eighth bit is set in all bytes of a number but the last."""
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number & 0xFFFFFFFFFFFFFFFF)
            number = shift = 0
    return numbers
