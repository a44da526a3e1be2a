"""Files of arrays, ``.npy`` and ``.npz``: opened without running code, and refused where they are too large."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection
from typing import Any, BinaryIO

import numpy as np

from assay.core.limits import require_bytes


def load_arrays(file: BinaryIO, path: object, names: Collection[str] | None = None) -> Any:
    """The array of an ``.npy`` file, or the open archive of an ``.npz`` file, as `numpy.load` gives them.

    An archive can be a thousand times smaller than the arrays that are packed in it: their sizes are looked at before
    anything is unpacked.

    Args:
        file: The open file.
        path: What the error calls it.
        names: Names of the arrays that are to be read from an archive; all by default.
    """
    if zipfile.is_zipfile(file):
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            packed = archive.infolist()
        wanted = [one for one in packed if names is None or one.filename.removesuffix(".npy") in names]
        require_bytes(f"{path}: what is packed in it", sum(one.file_size for one in wanted))
    else:
        require_bytes(f"{path}: its array", os.fstat(file.fileno()).st_size)
    file.seek(0)
    return np.load(file, allow_pickle=False)
