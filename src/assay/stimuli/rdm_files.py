"""RDMs from files and folders: ``.npy``, ``.npz``, ``.mat`` (also version 7.3) and ``.h5``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.array_files import load_arrays
from assay.core.errors import AssayError
from assay.core.reading import is_there, reading, visible
from assay.stimuli.matlab_files import read_matlab
from assay.stimuli.pictures import Array
from assay.stimuli.rdm_hdf5 import hdf5_arrays, saved_by_rsatoolbox
from assay.stimuli.rdms import RdmSet, are_matrices, as_vectors, require_same_stimuli, stimuli_of

_HDF5 = (".h5", ".hdf5")
SUFFIXES = (".npy", ".npz", ".mat", *_HDF5)


def load_rdms(path: str | Path, names: Sequence[str] | None = None, stimuli: Sequence[str] | None = None) -> RdmSet:
    """Load RDMs from a file, or from all files of a folder in the order of their names.

    A file holds upper triangles or symmetric matrices, one or several (RDMs × m × m, or MATLAB's m × m × RDMs); in
    ``.mat`` files also as the field ``RDM`` of structures, whose field ``name`` then names them; in ``.h5`` files also
    as rsatoolbox saves them, with the names of RDMs and stimuli that its descriptors give (see `from_rsatoolbox`).
    Other RDMs are named by their file, the array in it and their number. No code in a file is run.

    Args:
        path: The file or folder.
        names: Load these RDMs, in this order, such as one of each subject; one that is missing is an error.
        stimuli: The names of the stimuli, in the order of rows and columns; by default those that the files give, and
            none if it is empty.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.save(folder / "anna.npy", np.array([0.1, 0.4, 0.2]))
        >>> np.save(folder / "ben.npy", np.array([0.2, 0.3, 0.2]))
        >>> load_rdms(folder).names
        ('anna', 'ben')
        >>> load_rdms(folder, names=["anna", "carl"])
        Traceback (most recent call last):
            ...
        assay.core.errors.AssayError: there is no RDM 'carl'; known: 'anna', 'ben'
    """
    path = Path(path)
    if not is_there(path):
        raise AssayError(f"path={str(path)!r} does not exist")
    files = [path]
    if path.is_dir():
        with reading(path):
            files = [file for file in visible(path.iterdir(), path) if file.suffix.lower() in SUFFIXES]
        if not files:
            raise AssayError(f"path={str(path)!r} holds no RDMs ({', '.join(SUFFIXES)})")
    contents = {file: _read(file) for file in files}
    loaded = [(name, vector, file) for file, content in contents.items() for name, vector in content.rdms]
    sizes = {len(vector): (name, file) for name, vector, file in loaded}
    if len(sizes) > 1:
        described = " and ".join(f"{file.name}: {name} is of {stimuli_of(n)}" for n, (name, file) in sizes.items())
        raise AssayError(f"path={str(path)!r} has RDMs of different numbers of stimuli ({described}): keep one kind")
    labels = [name for name, _, _ in loaded]
    if len(set(labels)) < len(labels):  # such as one variable of one name in every file
        labels = [f"{file.stem}: {name}" if file.stem != name else name for name, _, file in loaded]
    shared = _shared_stimuli(contents) if stimuli is None or len(stimuli) else ()
    rdms = RdmSet([vector for _, vector, _ in loaded], tuple(labels), tuple(stimuli) if stimuli else shared)
    if stimuli and set(rdms.stimuli) == set(shared) and rdms.stimuli != shared:
        raise AssayError(
            f"stimuli names the stimuli of {str(path)!r} in another order than the file: give "
            "load_rdms(path).reordered(stimuli)"
        )
    return rdms if names is None else rdms.chosen(names)


@dataclass(frozen=True)
class _Content:
    """The RDMs of a file, each with its name, and the names of their stimuli where the file gives some."""

    rdms: list[tuple[str, Array]]
    stimuli: tuple[str, ...] = ()


def _shared_stimuli(contents: Mapping[Path, _Content]) -> tuple[str, ...]:
    """The names of the stimuli in files, which must agree; none where no file gives names."""
    named = {file: content for file, content in contents.items() if content.stimuli}
    if not named:
        return ()
    first = next(iter(named))
    for file, content in named.items():
        require_same_stimuli(
            named[first],
            content,
            first.name,
            file.name,
            if_reordered="load each by itself, and bring it in order by reordered",
            if_different="load each by itself, or give stimuli=() to leave names out",
        )
    return named[first].stimuli


def _read(path: Path) -> _Content:
    saved = saved_by_rsatoolbox(path) if path.suffix.lower() in _HDF5 else None
    if saved is None:
        return _Content(list(_named(path)))
    numbered = [f"{path.stem} {number}" for number in range(len(saved))] if len(saved) > 1 else [path.stem]
    return _Content(list(zip(saved.names or numbered, saved.vectors, strict=True)), saved.stimuli)


def _named(path: Path) -> Iterator[tuple[str, Array]]:
    """The RDMs of a file, each with its name."""
    arrays = _arrays(path)
    count = 0
    for key, value in arrays.items():
        if isinstance(value, np.ndarray) and value.dtype.names and "RDM" in value.dtype.names:
            for number, entry in enumerate(value.ravel()):
                given = np.ravel(entry["name"] if "name" in value.dtype.names else [])
                name = str(given[0]) if given.size else f"{key} {number}"
                yield name, as_vectors(_triangle_or_matrix(entry["RDM"]), f"{path.name}: {name}")[0]
                count += 1
        elif _may_be_rdms(value):
            vectors = as_vectors(_triangle_or_matrix(value), f"{path.name}: {key}")
            for number, vector in enumerate(vectors):
                yield key if len(vectors) == 1 else f"{key} {number}", vector
                count += 1
    if not count:
        raise AssayError(
            f"{path} holds no RDM, but {_shapes(arrays)}: give m(m−1)/2 dissimilarities of each, or symmetric matrices "
            "with zeros on the diagonal, m × m, RDMs × m × m or m × m × RDMs"
        )


def _arrays(path: Path) -> dict[str, Any]:
    """The arrays of a file by name; a file of one array names it by itself."""
    suffix = path.suffix.lower()
    if suffix == ".mat":
        arrays = read_matlab(path)
    elif suffix in _HDF5:
        arrays = hdf5_arrays(path)
    elif suffix in (".npy", ".npz"):
        with reading(path, "arrays"), path.open("rb") as handle:
            loaded = load_arrays(handle, path)
            arrays = {path.stem: loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    else:
        raise AssayError(f"{path} is no file of RDMs: use {', '.join(SUFFIXES)}")
    return {path.stem: next(iter(arrays.values()))} if len(arrays) == 1 else arrays


def _shapes(arrays: Mapping[str, Any]) -> str:
    """The arrays of a file with their shapes, in words."""
    shapes = [f"{key} of shape {'×'.join(map(str, np.shape(value))) or '1'}" for key, value in arrays.items()]
    return ", ".join(shapes) or "no arrays"


def _may_be_rdms(value: Any) -> bool:
    """Whether an array has the shape of RDMs: labels, colours and counts that lie beside them do not."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub" or value.ndim not in (1, 2, 3):
        return False
    if value.ndim > 1 and value.shape[-1] == value.shape[-2]:
        return bool(value.shape[-1] >= 3)
    if value.ndim == 3:  # as MATLAB stacks matrices, and as pictures of colour are not
        return bool(value.shape[0] >= 3) and are_matrices(np.moveaxis(value, -1, 0))
    return stimuli_of(value.shape[-1]) >= 3


def _triangle_or_matrix(value: Array) -> Array:
    """A single row or column, as MATLAB keeps vectors, as a vector."""
    return np.ravel(value) if value.ndim == 2 and 1 in value.shape else value
