"""HDF5 files of others: read only after another process has read them to their end.

On damaged files the HDF5 library may crash or never return, and nothing in the same process can stop it. So all that a
file holds is read first by a process that can be ended.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.core.errors import optional
from assay.core.limits import BYTES, limit
from assay.core.reading import reading

LONGEST_S = 30.0
"""Seconds that reading the names of a file may take; its arrays have a second more for each 10 MB."""
_READ_ALL = """
import sys, h5py
def visit(name, item):
    for attribute in item.attrs:
        item.attrs[attribute]
    if isinstance(item, h5py.Dataset) and item.nbytes <= int(sys.argv[2]):
        item[()]
with h5py.File(sys.argv[1], "r") as file:
    visit("", file)
    file.visititems(visit)
"""


@contextmanager
def open_hdf5(path: str | Path, kind: str, needed: str) -> Iterator[Any]:
    """Open an HDF5 file for reading (needs h5py); one that the library cannot read is an error in a sentence.

    Args:
        path: The file.
        kind: What it is read as, for the error.
        needed: What needs h5py, for the error where it is not installed.
    """
    h5py = optional("h5py", "keras", needed)
    with reading(path, kind):
        known = Path(path).stat()
        _require_an_end(str(Path(path).absolute()), known.st_size, known.st_mtime_ns)
        with h5py.File(path, "r") as file:
            yield file


@lru_cache(maxsize=1024)  # of whole files: what is raised is not kept
def _require_an_end(path: str, size: int, changed: int) -> None:
    """Have another process read the whole file, but for arrays above the limit, and say what it says."""
    seconds = LONGEST_S + size / 1e7
    command = [sys.executable, "-I", "-c", _READ_ALL, path, str(limit(BYTES))]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ValueError(f"HDF5 does not come to an end in {seconds:.0f} s") from None
    if done.returncode < 0:
        raise ValueError(f"HDF5 is ended by signal {-done.returncode}")
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(said[-1] if said else f"HDF5 ends with {done.returncode}")
