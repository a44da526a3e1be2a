"""Ways in which a file comes to harm: cut short, bits flipped, a folder in its place, another file's content, …."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

NOBODY = 65534
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), float("inf"), "", "é\ud800", "../..", "a\x00b", "$\\bad$", [], {},
    [None], {"": None}, [[[]]], "x" * 5000,
)  # fmt: skip


def cut_short(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data) or 1)]


def bits_flipped(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 3, 20)) if data else 0):
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def block_overwritten(data: bytes, draw: Random) -> bytes:
    start = draw.randrange(len(data) or 1)
    length = draw.randrange(1, 200)
    return data[:start] + draw.choice((bytes(length), draw.randbytes(length))) + data[start + length :]


def emptied(data: bytes, draw: Random) -> bytes:
    return b""


def more_appended(data: bytes, draw: Random) -> bytes:
    return data + draw.choice((b"\n", b"{}", bytes(100), data, draw.randbytes(50)))


def not_utf8(data: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.choice((b"\xff\xfe", b"\xe9", b"\xc3\x28", b"\xed\xa0\x80")) + data[place:]


def other_encoding(data: bytes, draw: Random) -> bytes:
    return data.decode("utf-8", "replace").encode(draw.choice(("utf-16", "utf-32", "utf-8-sig")))


def rewritten(data: bytes, draw: Random) -> bytes:
    """A whole file of its kind whose content is not what it should be: for JSON, tables and arrays."""
    if data[:1] in b"{[":
        try:
            return _json_changed(json.loads(data), draw)
        except ValueError:
            return cut_short(data, draw)
    if data[:4] == b"PK\x03\x04":
        return _arrays_changed(data, draw)
    if data[:4] == b"PAR1":
        return _table_changed(data, draw)
    if b"," in data[:200]:
        return _cells_changed(data, draw)
    return block_overwritten(data, draw)


def _json_changed(value: Any, draw: Random) -> bytes:
    """One place in it, at any depth, holds another value, or is gone."""
    whole = [value]
    place: Any = whole
    key: Any = 0
    while isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.85:
        place = place[key]
        key = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
    what = draw.randrange(4)
    if what == 0 and place is not whole:
        del place[key]
    elif what == 1:
        return json.dumps(whole[0]).encode().replace(b'"', b"[" * draw.choice((1, 100_000)), 1)
    else:
        place[key] = draw.choice(ODD)
    return json.dumps(whole[0]).encode()


def _arrays_changed(data: bytes, draw: Random) -> bytes:
    """An archive whose arrays have other names, types or shapes, or claim a size that is not there."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if isinstance(archive[name], np.ndarray)}
        name = draw.choice(list(arrays))
    except (ValueError, KeyError, IndexError, zipfile.BadZipFile):  # a checkpoint of torch
        return bits_flipped(data, draw)
    array = arrays[name]
    changes: list[Callable[[], Any]] = [
        lambda: array.astype(object),
        lambda: array.astype(complex) if array.dtype.kind in "biuf" else array[:0],
        lambda: array[:0],
        lambda: array.astype("U8"),
        lambda: np.array(3),
        lambda: array[None],
        lambda: np.full(array.shape, np.nan),
        lambda: np.zeros((2, 3), dtype=[("a", "f4"), ("b", "i8")]),
        lambda: array.astype(np.float16 if array.dtype.kind in "biuf" else "S4"),
        lambda: array[::-1].T,
    ]
    which = draw.randrange(len(changes) + 2)
    if which < len(changes):
        arrays[name] = changes[which]()
    elif which == len(changes):
        arrays[f"{name}x"] = arrays.pop(name)
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    if which <= len(changes):
        return sink.getvalue()
    claim = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10 ** draw.choice((6, 9, 12, 18)),)}
    np.lib.format.write_array_header_1_0(claim, header)
    with zipfile.ZipFile(sink, "w") as archive:
        for key, value in arrays.items():
            entry = io.BytesIO()
            np.save(entry, value)
            archive.writestr(f"{key}.npy", claim.getvalue() if key == name else entry.getvalue())
    return sink.getvalue()


def _table_changed(data: bytes, draw: Random) -> bytes:
    """A Parquet file with a column less, or of another type, or whose metadata are gone or those of another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(io.BytesIO(data)).read()
    metadata = dict(table.schema.metadata or {})
    what = draw.randrange(5)
    if what == 0:
        table = table.drop_columns(draw.choice(table.column_names))
    elif what == 1:
        column = draw.randrange(table.num_columns)
        table = table.set_column(column, table.column_names[column], pa.array([None] * table.num_rows, pa.string()))
    elif what == 2:
        table = table.slice(0, 0)
    else:
        key = draw.choice(list(metadata) or [b""])
        metadata[key] = draw.choice(
            (
                b"",
                b"{}",
                b"[]",
                b"null",
                metadata.get(key, b"")[:-3],
                b"\xff",
                rewritten(metadata.get(key, b"{}"), draw),
            )
        )
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue()


def _cells_changed(data: bytes, draw: Random) -> bytes:
    lines = [line.split(",") for line in data.decode("utf-8", "replace").split("\n")]
    line = lines[0] if draw.random() < 0.3 else draw.choice(lines)
    what = draw.randrange(4)
    if what == 0:
        line[draw.randrange(len(line))] = draw.choice(("", "nan", "x", "1e999", '"', "-1", "=1+1", "[", "9" * 40))
    elif what == 1:
        line.pop(draw.randrange(len(line)))
    elif what == 2:
        line.insert(draw.randrange(len(line) + 1), "more")
    else:
        lines = lines[:1]
    return "\n".join(map(",".join, lines)).encode()


class Hidden:
    """What a pickle runs when it is opened: it writes the canary."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.canary),)


CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    cut_short, cut_short, bits_flipped, bits_flipped, bits_flipped, block_overwritten, emptied, more_appended, not_utf8,
    other_encoding, rewritten, rewritten, rewritten, rewritten,
)  # fmt: skip


def damage(file: Path, root: Path, others: list[Path], canary: Path, draw: Random) -> str:
    """Do one thing to a file; say in words which."""
    name = file.relative_to(root).as_posix()
    what = draw.randrange(20)
    if what == 0:
        file.unlink()
        file.mkdir()
        if draw.random() < 0.5:
            (file / "inside").write_text("a file")
        return f"{name}: a folder in its place"
    if what == 1:
        other = draw.choice(others)
        file.write_bytes(other.read_bytes())
        return f"{name}: the content of {other.name}"
    if what == 2:
        file.unlink()
        return f"{name}: gone"
    if what == 3:
        file.write_bytes(pickle.dumps(Hidden(canary), protocol=draw.choice((2, 4))))
        return f"{name}: a pickle that runs code"
    if what == 4:
        file.unlink()
        if draw.random() < 0.2:
            os.mkfifo(file)
            return f"{name}: a pipe in its place"
        file.symlink_to(draw.choice((file.name, "nowhere", "/dev/null", "/dev/zero", "..")))
        return f"{name}: a link to {os.readlink(file)}"  # noqa: PTH115
    if what == 5 and os.geteuid() == 0:
        forbid(file, root, draw)
        return f"{name}: without permission, as another user"
    if what == 6:
        file.write_bytes(draw.randbytes(draw.choice((1, 10, 1000))))
        return f"{name}: random bytes"
    change = draw.choice(CHANGES)
    file.write_bytes(change(file.read_bytes(), draw))
    return f"{name}: {change.__name__.replace('_', ' ')}"


def forbid(file: Path, root: Path, draw: Random) -> None:
    """Become a user whom the file, or its folder, is closed to: root may read everything."""
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    closed = draw.choice((file, file, file.parent))
    closed.chmod(draw.choice((0o000, 0o000, 0o444 if closed.is_file() else 0o555)))
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target
