"""Writes what assay reads: TFRecords (by Google's protobuf), Keras weights (by h5py), tasks; and runs Keras layers in
NumPy, channels last, by their definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
BYTES, FLOAT, INT64, INT32, STRING = (
    Field.TYPE_BYTES, Field.TYPE_FLOAT, Field.TYPE_INT64, Field.TYPE_INT32, Field.TYPE_STRING,
)  # fmt: skip


def _schema(packed: bool) -> Any:
    """TensorFlow's Example and TensorProto as classes of Google's library, repeated numbers packed or not."""
    package = f"packed_{packed}".lower()
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")

    def message(name: str, *fields: tuple[str, int, Any, bool]) -> None:
        made = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
            added = made.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = Field.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                added.type = kind
                if repeated and kind in (FLOAT, INT64):
                    added.options.packed = packed

    message("BytesList", ("value", 1, BYTES, True))
    message("FloatList", ("value", 1, FLOAT, True))
    message("Int64List", ("value", 1, INT64, True))
    message(
        "Feature",
        ("bytes_list", 1, "BytesList", False),
        ("float_list", 2, "FloatList", False),
        ("int64_list", 3, "Int64List", False),
    )
    message("Entry", ("key", 1, STRING, False), ("value", 2, "Feature", False))
    message("Features", ("feature", 1, "Entry", True))
    message("Example", ("features", 1, "Features", False))
    message("Dim", ("size", 1, INT64, False), ("name", 2, STRING, False))
    message("Shape", ("dim", 2, "Dim", True))
    message(
        "TensorProto",
        ("dtype", 1, INT32, False),
        ("tensor_shape", 2, "Shape", False),
        ("version_number", 3, INT32, False),
        ("tensor_content", 4, BYTES, False),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


SCHEMAS = {packed: _schema(packed) for packed in (True, False)}
DTYPES = {"f4": 1, "f8": 2, "i4": 3, "u1": 4, "i2": 5, "i1": 6, "i8": 9, "b1": 10, "u2": 17, "f2": 19}


def example(features: dict[str, tuple[str, list[Any]]], packed: bool = True) -> bytes:
    """A serialized Example: by name, which list and its values."""
    made = SCHEMAS[packed]("Example")()
    for name, (kind, values) in features.items():
        entry = made.features.feature.add(key=name)
        getattr(entry.value, kind).SetInParent()
        getattr(entry.value, kind).value.extend(values)
    return bytes(made.SerializeToString())


def tensor(array: np.ndarray) -> bytes:
    """A serialized TensorProto with its values in tensor_content."""
    made = SCHEMAS[True]("TensorProto")(dtype=DTYPES[array.dtype.str[1:]], tensor_content=array.tobytes())
    made.tensor_shape.SetInParent()
    for side in array.shape:
        made.tensor_shape.dim.add(size=side)
    return bytes(made.SerializeToString())


def crc32c(data: bytes) -> int:
    """By the definition, a bit at a time."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def record(payload: bytes) -> bytes:
    def masked(data: bytes) -> bytes:
        crc = crc32c(data)
        return (((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32).to_bytes(4, "little")

    length = len(payload).to_bytes(8, "little")
    return length + masked(length) + payload + masked(payload)


def write_keras(
    folder: Path, layers: list[dict[str, Any]], input_shape: list[int], weights: list[dict[str, np.ndarray]]
) -> None:
    """A network as PGDL keeps it; ``weights`` has a mapping for each layer, empty where it has none."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_config": layers, "input_shape": input_shape}))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        names = [f"wrapped_layer_{i}" for i in range(len(layers))]
        file.attrs["layer_names"] = [name.encode() for name in names]
        file.attrs["backend"], file.attrs["keras_version"] = b"tensorflow", b"2.4.0"
        for name, arrays in zip(names, weights, strict=True):
            group = file.create_group(name)
            group.attrs["weight_names"] = np.array([f"{name}/{key}:0".encode() for key in arrays], dtype="S64")
            for key, array in arrays.items():
                group.create_dataset(f"{name}/{key}:0", data=array)


def write_data(folder: Path, inputs: np.ndarray, labels: list[int], shards: int = 2) -> None:
    """Shards of examples, the first ones in the first shard."""
    folder.mkdir(parents=True)
    for i, rows in enumerate(np.array_split(np.arange(len(labels)), shards)):
        payloads = [
            example({
                "inputs": ("bytes_list", [tensor(inputs[row])]),
                "output": ("bytes_list", [tensor(np.array(labels[row], dtype="i4"))]),
            })
            for row in rows
        ]  # fmt: skip
        (folder / f"shard_{i}.tfrecord").write_bytes(b"".join(map(record, payloads)))


# -- Keras in NumPy -------------------------------------------------------------------------------------------


def places(n: int, k: int, s: int, d: int, padding: str) -> list[list[int]]:
    """For every output along a side, which inputs each part of its window sees; outside is below 0 or from n.

    The padding is that of TensorFlow's notes on padding: with "same", k − s in all where s divides n, else
    k − n mod s, at least 0, half of it, rounded down, in front.
    """
    reach = (k - 1) * d + 1
    if padding == "valid":
        return [[i * s + a * d for a in range(k)] for i in range((n - reach) // s + 1)]
    total = max(reach - s, 0) if n % s == 0 else max(reach - n % s, 0)
    return [[i * s + a * d - total // 2 for a in range(k)] for i in range(-(-n // s))]


def slide(x: np.ndarray, k: list[int], s: list[int], padding: str, see: Any, d: tuple[int, int] = (1, 1)) -> np.ndarray:
    """Apply ``see`` to the part of the pictures in each window, NaN outside of them: N×H×W×C to N×H'×W'×C'."""
    rows, columns = (places(x.shape[1 + i], k[i], s[i], d[i], padding) for i in (0, 1))
    out = []
    for seen_rows in rows:
        line = []
        for seen_columns in columns:
            part = np.full((len(x), *k, x.shape[3]), np.nan)
            for a, row in enumerate(seen_rows):
                for b, column in enumerate(seen_columns):
                    if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                        part[:, a, b] = x[:, row, column]
            line.append(see(part))
        out.append(np.stack(line, 1))
    return np.stack(out, 1)


def conv(x: np.ndarray, w: np.ndarray, s: list[int], padding: str, d: tuple[int, int] = (1, 1)) -> np.ndarray:
    def see(part: np.ndarray) -> np.ndarray:
        groups = x.shape[3] // w.shape[2]
        wide = w.shape[3] // groups
        parts = np.split(np.nan_to_num(part), groups, axis=3)
        sums = [np.einsum("nabc,abco->no", p, w[..., g * wide : (g + 1) * wide]) for g, p in enumerate(parts)]
        return np.concatenate(sums, axis=1)

    return slide(x, list(w.shape[:2]), s, padding, see, d)


def max_pool(x: np.ndarray, k: list[int], s: list[int], padding: str) -> np.ndarray:
    return slide(x, k, s, padding, lambda part: np.nanmax(part, (1, 2)))


def average_pool(x: np.ndarray, k: list[int], s: list[int], padding: str) -> np.ndarray:
    return slide(x, k, s, padding, lambda part: np.nanmean(part, (1, 2)))


def batch_norm(x: np.ndarray, w: dict[str, np.ndarray], epsilon: float = 1e-3) -> np.ndarray:
    scaled = (x - w["moving_mean"]) / np.sqrt(w["moving_variance"] + epsilon)
    return scaled * w.get("gamma", 1.0) + w.get("beta", 0.0)
