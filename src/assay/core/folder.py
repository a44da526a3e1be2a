"""Folders for results at any location that fsspec knows; every write is atomic."""

from __future__ import annotations

import errno
import json
import os
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from assay.core.errors import AssayError, first_line
from assay.core.reading import FileMissing, reading, require_room

__all__ = ["FileMissing", "Folder", "NotWritten", "alive"]
_TEMPORARY = ".tmp-"


class NotWritten(AssayError):
    """A file cannot be written into a folder."""


@dataclass(frozen=True)
class Folder:
    """A folder on any file system fsspec knows: a local path, ``s3://…``, ``memory://…``."""

    url: str

    @cached_property
    def _place(self) -> tuple[Any, str]:
        try:
            fs, root = fsspec.core.url_to_fs(self.url)
        except Exception as error:  # a file system of another package: it may connect at once, and raises what it likes
            raise AssayError(f"run={self.url!r} is not a place assay can write to ({first_line(error)})") from error
        return fs, str(root)

    @property
    def local(self) -> bool:
        """Whether the folder is on this machine's own file system."""
        return isinstance(self._place[0], LocalFileSystem)

    def path(self, name: str = "") -> str:
        """The full path of a file in the folder, as the file system names it."""
        return str(PurePosixPath(self._place[1]) / name)

    def exists(self, name: str = "") -> bool:
        """Whether a file is in the folder; one that is there is whole."""
        with reading(self.path(name)):
            return bool(self._place[0].exists(self.path(name)))

    def read(self, name: str) -> bytes:
        """Read all bytes of a file; an error of one sentence where it is missing or cannot be read."""
        with reading(self.path(name)):
            require_room(self.path(name))
            with self._place[0].open(self.path(name), "rb") as file:
                data: bytes = file.read()
        return data

    def read_json(self, name: str, remedy: str = "") -> Any:
        """Read a JSON file; an error of one sentence where it is missing, cannot be read, or is no JSON."""
        data = self.read(name)
        with reading(self.path(name), remedy=remedy):
            return json.loads(data)

    def open(self, name: str) -> Any:
        """Open a file for reading; an error of one sentence where it is missing or cannot be read."""
        with reading(self.path(name)):
            return self._place[0].open(self.path(name), "rb")

    def names(self, folder: str, suffix: str) -> list[str]:
        """Names of the files in a sub-folder that end in ``suffix``, sorted."""
        fs = self._place[0]
        if not fs.exists(self.path(folder)):
            return []
        if not fs.isdir(self.path(folder)):
            raise AssayError(
                f"{self.path(folder)} is a file where a folder is wanted: move it, or choose another place"
            )
        with reading(self.path(folder)):
            names = [PurePosixPath(p).name for p in fs.ls(self.path(folder), detail=False, refresh=True)]
        return sorted(f"{folder}/{n}" for n in names if n.endswith(suffix) and not n.startswith(_TEMPORARY))

    def write(self, name: str, data: bytes | memoryview, durable: bool = True) -> None:
        """Write a file so that it is either all there or not there at all, whatever happens meanwhile.

        Written under a temporary name and renamed. ``durable`` flushes it to a local disk first, so that it also
        outlasts a power failure.
        """
        fs, target = self._place[0], PurePosixPath(self.path(name))
        temporary = str(target.parent / f"{_TEMPORARY}{socket.gethostname()}@{os.getpid()}@{uuid.uuid4().hex}")
        try:
            try:
                if self.local:
                    _write_local(temporary, data, durable)
                    os.replace(temporary, str(target))  # noqa: PTH105
                else:
                    fs.makedirs(str(target.parent), exist_ok=True)
                    fs.pipe_file(temporary, bytes(data))
                    fs.mv(temporary, str(target))
            except BaseException:
                if fs.exists(temporary):
                    fs.rm_file(temporary)
                raise
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            remedy = "make room and run it again: what is done is kept" if full else "choose another folder"
            raise NotWritten(f"cannot write {target} ({error.strerror or error}): {remedy}") from error
        except Exception as error:
            if self.local:
                raise
            raise NotWritten(f"cannot write {self.url} ({first_line(error)}): choose another folder") from error

    def remove(self, name: str) -> None:
        """Remove a file from the folder, if it is there."""
        with suppress(FileNotFoundError):
            self._place[0].rm_file(self.path(name))

    def sweep(self, folder: str) -> None:
        """Remove temporary files that processes of this machine left behind when they were killed."""
        fs = self._place[0]
        if not fs.exists(self.path(folder)):
            return
        prefix = f"{_TEMPORARY}{socket.gethostname()}@"
        with reading(self.path(folder)):
            paths = fs.ls(self.path(folder), detail=False, refresh=True)
        for path in paths:
            name = PurePosixPath(path).name
            pid = name.removeprefix(prefix).split("@")[0]
            if name.startswith(prefix) and pid.isdigit() and not alive(int(pid)):
                fs.rm_file(path)


def _write_local(path: str, data: bytes | memoryview, durable: bool) -> None:
    """Write a file on this machine, and make its folder where that is missing."""
    try:
        file = open(path, "wb")  # noqa: PTH123, SIM115
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "wb")  # noqa: PTH123, SIM115
    with file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def alive(pid: int) -> bool:
    """Whether a process of this machine is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
