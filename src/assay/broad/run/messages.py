"""What a worker may say to its keeper: plain text and arrays of numbers, each checked as it arrives.

An answer is one message of JSON that announces the arrays, then the bytes of each. Nothing in it can run: no pickle, no
archive that swells when it is opened, no more bytes than were agreed on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.broad.data.violation import Violation

_TEXT_BYTES = 2**22  # of the JSON of an answer
_NUMBERS = {np.dtype(kind).str for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")}
_ARRAYS = 2**20  # in one answer


def send(connection: Connection, said: dict[str, Any], arrays: Sequence[Array] = ()) -> None:
    """Answer with text and arrays of numbers; what is none is a `Violation`, before anything is sent."""
    plain = [_plain(a) for a in arrays]
    head = {**said, "arrays": [[a.dtype.str, list(a.shape)] for a in plain]}
    connection.send_bytes(json.dumps(head).encode())
    for a in plain:
        connection.send_bytes(a.reshape(-1).view(np.uint8).data if a.size else b"")


def receive(connection: Connection, most_bytes: int) -> tuple[dict[str, Any], list[Array]]:
    """Receive an answer of at most so many bytes; one that is not as it should be is a `Violation`.

    Where the connection ends instead, `EOFError` or `ConnectionError` is raised.
    """
    head = _json(_message(connection, _TEXT_BYTES))
    announced = head.pop("arrays", None)
    if not isinstance(announced, list) or len(announced) > _ARRAYS:
        raise Violation("invalid", "the system's process gave an answer that is none")
    left = most_bytes
    arrays = []
    for entry in announced:
        dtype, shape = _announced(entry)
        size = math.prod(shape) * dtype.itemsize
        left -= size
        if left < 0:
            raise Violation("invalid", f"the system gave more than the {most_bytes:,} bytes that it may give")
        data = _message(connection, max(size, 1))
        if len(data) != size:
            raise Violation("invalid", f"the system's process announced {size:,} bytes and gave {len(data):,}")
        arrays.append(np.frombuffer(bytearray(data), dtype).reshape(shape))
    return head, arrays


def features_as_arrays(features: Features) -> tuple[str, list[Array]]:
    """Take features apart: their form, and the arrays they are made of."""
    given: Any = features
    if isinstance(given, (list, tuple)):
        return "list", [np.asarray(a) for a in given]
    if sparse.issparse(given):
        matrix = sparse.csr_matrix(given)
        return "sparse", [matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape)]
    return "matrix", [np.asarray(given)]


def features_of_arrays(form: Any, arrays: list[Array], whose: str) -> Features:
    """Put features together again; what does not fit together is a `Violation`."""
    if form == "list":
        return arrays
    if form == "matrix" and len(arrays) == 1 and arrays[0].ndim >= 1:
        return arrays[0]
    if form == "sparse" and len(arrays) == 4:
        try:
            matrix = sparse.csr_matrix((arrays[0], arrays[1], arrays[2]), shape=tuple(arrays[3].tolist()))
            matrix.check_format(full_check=True)  # or an index outside would be followed
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            raise Violation("invalid", f"{whose} gave a sparse matrix that is none ({error})") from error
        return matrix
    raise Violation("invalid", f"{whose} gave something that is no features")


def _plain(given: Any) -> Array:
    a = np.ascontiguousarray(given) if np.ndim(given) else np.asarray(given)
    if a.dtype.newbyteorder("=").str not in _NUMBERS:
        raise Violation("invalid", f"the system gave an array of {a.dtype}, which is no kind of number")
    return np.ascontiguousarray(a, a.dtype.newbyteorder("="))


def _announced(entry: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    try:
        kind, shape = entry
        sizes = tuple(int(n) for n in shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise Violation("invalid", "the system's process announced an array that is none") from error
    if not isinstance(kind, str) or kind not in _NUMBERS or len(sizes) > 8 or any(not 0 <= n < 2**48 for n in sizes):
        raise Violation("invalid", "the system's process announced an array that is none")
    return np.dtype(kind), sizes


def _json(data: bytes) -> dict[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Violation("invalid", "the system's process gave an answer that is no JSON") from error
    if not isinstance(said, dict):
        raise Violation("invalid", "the system's process gave an answer that is none")
    return said


def _message(connection: Connection, most: int) -> bytes:
    try:
        return connection.recv_bytes(most)
    except EOFError:
        raise
    except OSError as error:
        if error.errno is None:  # so it is where a message is longer than it may be: the kernel had no part in it
            raise Violation("invalid", f"the system's process gave a message of more than {most:,} bytes") from error
        raise
