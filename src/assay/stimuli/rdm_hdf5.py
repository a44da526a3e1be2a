"""HDF5 files of RDMs: arrays by name, and what rsatoolbox saves with its descriptors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assay.core.hdf5 import open_hdf5
from assay.core.limits import require_array
from assay.stimuli.pictures import Array
from assay.stimuli.rdm_descriptors import rdm_names, stimulus_names
from assay.stimuli.rdms import RdmSet, as_vectors

T = TypeVar("T")


def hdf5_arrays(path: Path) -> dict[str, Array]:
    """Read the numeric arrays of an HDF5 file by their full name."""
    arrays: dict[str, Array] = {}

    def visit(name: str, item: Any) -> None:
        if _is_array(item) and item.dtype.kind in "fiu" and not name.startswith("#"):
            require_array(f"{path}: {name}", item.shape, item.dtype.itemsize)
            arrays[name] = np.asarray(item)

    _in_file(path, lambda file: file.visititems(visit))
    return arrays


def saved_by_rsatoolbox(path: Path) -> RdmSet | None:
    """Read RDMs that rsatoolbox saved, named by their descriptors; None where the file is another kind of HDF5."""

    def read(file: Any) -> tuple[Any, dict[str, list[Any]], dict[str, list[Any]]] | None:
        if "dissimilarities" not in file or not _is_array(file["dissimilarities"]):
            return None
        require_array(f"{path}: dissimilarities", file["dissimilarities"].shape, 8)
        of_rdms, of_stimuli = (_descriptors(file.get(f"{of}_descriptors", {})) for of in ("rdm", "pattern"))
        return np.asarray(file["dissimilarities"]), of_rdms, of_stimuli

    saved = _in_file(path, read)
    if saved is None:
        return None
    vectors, of_rdms, of_stimuli = saved
    return RdmSet(as_vectors(vectors, f"{path.name}: dissimilarities"), rdm_names(of_rdms), stimulus_names(of_stimuli))


def _descriptors(group: Any) -> dict[str, list[Any]]:
    """The lists of a group of descriptors; texts are stored as bytes."""
    descriptors = {}
    for key, item in group.items():
        if _is_array(item) and len(item.shape) == 1:
            descriptors[key] = [
                v.decode(errors="replace") if isinstance(v, bytes) else v for v in np.asarray(item).tolist()
            ]
    return descriptors


def _is_array(item: Any) -> bool:
    return bool(getattr(item, "shape", None))  # a group has no shape, a single number or an empty entry an empty one


def _in_file(path: Path, read: Callable[[Any], T]) -> T:
    with open_hdf5(path, "HDF5", f"{path.name}, a file of HDF5,") as file:
        return read(file)
