"""RDMs from files and folders: ``.npy``, ``.npz``, ``.mat`` (also version 7.3) and ``.h5``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import AssayError, first_line, nearest, optional
from assay.stimuli.pictures import Array
from assay.stimuli.rdms import RdmSet, as_vectors, stimuli_of

_HDF5 = (".h5", ".hdf5")
SUFFIXES = (".npy", ".npz", ".mat", *_HDF5)


def load_rdms(path: str | Path, names: Sequence[str] | None = None, stimuli: Sequence[str] = ()) -> RdmSet:
    """Load RDMs from a file, or from all files of a folder in the order of their names.

    A file holds upper triangles or symmetric matrices, one or several; in ``.mat`` files also as the field ``RDM`` of
    structures, whose field ``name`` then names them; in ``.h5`` files also as rsatoolbox saves them. Other RDMs are
    named by their file, the array in it and their number. No code in a file is run.

    Args:
        path: The file or folder.
        names: Load these RDMs, in this order, such as one of each subject; one that is missing is an error.
        stimuli: The names of the stimuli, in the order of rows and columns.

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
    if not path.exists():
        raise AssayError(f"path={str(path)!r} does not exist")
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
        if not files:
            raise AssayError(f"path={str(path)!r} holds no RDMs ({', '.join(SUFFIXES)})")
    loaded = [(name, vector, file) for file in files for name, vector in _named(file)]
    sizes = {len(vector): (name, file) for name, vector, file in loaded}
    if len(sizes) > 1:
        described = " and ".join(f"{file.name}: {name} is of {stimuli_of(n)}" for n, (name, file) in sizes.items())
        raise AssayError(f"path={str(path)!r} has RDMs of different numbers of stimuli ({described}): keep one kind")
    labels = [name for name, _, _ in loaded]
    if len(set(labels)) < len(labels):  # such as one variable of one name in every file
        labels = [f"{file.stem}: {name}" if file.stem != name else name for name, _, file in loaded]
    found = RdmSet([vector for _, vector, _ in loaded], tuple(labels), tuple(stimuli))
    return found if names is None else found.chosen(names)


def read_matlab(path: Path) -> dict[str, Any]:
    """Read the variables of a ``.mat`` file by name, of version 7.3 too."""
    from scipy import io  # half a second, which only those who read such files need

    try:
        with path.open("rb") as handle:
            head = handle.read(128)
        if head.startswith(b"\x89HDF") or b"MATLAB 7.3" in head:
            return dict(_hdf5_arrays(path))
        return {name: value for name, value in io.loadmat(path).items() if not name.startswith("__")}
    except AssayError:
        raise
    except Exception as error:  # SciPy raises many kinds for a damaged file
        raise AssayError(f"{path} cannot be read as a .mat file ({first_line(error)})") from error


def _named(path: Path) -> Iterator[tuple[str, Array]]:
    """The RDMs of a file, each with its name."""
    arrays = _arrays(path)
    found = 0
    for key, value in arrays.items():
        if isinstance(value, np.ndarray) and value.dtype.names and "RDM" in value.dtype.names:
            for number, entry in enumerate(value.ravel()):
                name = str(np.ravel(entry["name"])[0]) if "name" in value.dtype.names else f"{key} {number}"
                yield name, as_vectors(_triangle_or_matrix(entry["RDM"]), f"{path.name}: {name}")[0]
                found += 1
        elif _may_be_rdms(value):
            vectors = as_vectors(_triangle_or_matrix(value), f"{path.name}: {key}")
            for number, vector in enumerate(vectors):
                yield key if len(vectors) == 1 else f"{key} {number}", vector
                found += 1
    if not found:
        raise AssayError(
            f"{path} holds no RDM: give m(m−1)/2 dissimilarities or symmetric matrices{nearest('RDM', arrays)}"
        )


def _arrays(path: Path) -> dict[str, Any]:
    """The arrays of a file by name; a file of one array names it by itself."""
    suffix = path.suffix.lower()
    if suffix == ".mat":
        arrays = read_matlab(path)
    elif suffix in _HDF5:
        arrays = dict(_hdf5_arrays(path))
        arrays = {"dissimilarities": arrays["dissimilarities"]} if "dissimilarities" in arrays else arrays
    elif suffix in (".npy", ".npz"):
        try:
            with path.open("rb") as handle:
                loaded = np.load(handle, allow_pickle=False)
                arrays = {path.stem: loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
        except Exception as error:  # of a damaged archive, many kinds
            raise AssayError(f"{path} cannot be read as arrays ({first_line(error)})") from error
    else:
        raise AssayError(f"{path} is no file of RDMs: use {', '.join(SUFFIXES)}")
    return {path.stem: next(iter(arrays.values()))} if len(arrays) == 1 else arrays


def _hdf5_arrays(path: Path) -> Iterator[tuple[str, Array]]:
    h5py = optional("h5py", "keras", f"{path.name}, a file of HDF5,")
    found: dict[str, Array] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape and item.dtype.kind in "fiu" and not name.startswith("#"):
            found[name] = np.asarray(item)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except OSError as error:
        raise AssayError(f"{path} cannot be read as HDF5 ({first_line(error)})") from error
    yield from found.items()


def _may_be_rdms(value: Any) -> bool:
    """Whether an array has the shape of RDMs: labels, colours and counts that lie beside them do not."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub" or value.ndim not in (1, 2, 3):
        return False
    if value.ndim > 1 and value.shape[-1] == value.shape[-2]:
        return bool(value.shape[-1] >= 3)
    return value.ndim < 3 and stimuli_of(value.shape[-1]) >= 3


def _triangle_or_matrix(value: Array) -> Array:
    """A single row or column, as MATLAB keeps vectors, as a vector."""
    return np.ravel(value) if value.ndim == 2 and 1 in value.shape else value
