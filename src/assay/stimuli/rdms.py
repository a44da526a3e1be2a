"""Sets of representational dissimilarity matrices (RDMs): checked, named, and exchanged with rsatoolbox.

An RDM of m stimuli is kept as its upper triangle, row after row: m(m−1)/2 numbers, as SciPy's ``squareform`` and
rsatoolbox have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from assay.core.errors import AssayError, nearest, optional, shown
from assay.core.fingerprint import fingerprint
from assay.core.ties import mean_with_ties
from assay.stimuli.pictures import Array, as_array
from assay.stimuli.rdm_descriptors import rdm_names, stimulus_names

# Entries (i, j) and (j, i) of a matrix computed in float32 differ by rounding; more than this is another matrix.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class RdmSet:
    """RDMs of the same stimuli, with the names of the RDMs and of the stimuli where they are known.

    Args:
        vectors: The upper triangles, RDMs × m(m−1)/2; one triangle, matrices and lists of either are converted.
        names: The name of each RDM, such as its subject and session.
        stimuli: The name of each stimulus, in the order of rows and columns. Two sets are compared only where these
            agree.

    Example:
        >>> rdms = RdmSet([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]], names=("first", "second"), stimuli=("a", "b", "c"))
        >>> rdms
        RdmSet(2 RDMs of 3 stimuli)
        >>> rdms["second"].tolist(), rdms.matrices[0].tolist()
        ([0.3, 0.1, 0.2], [[0.0, 0.1, 0.2], [0.1, 0.0, 0.3], [0.2, 0.3, 0.0]])
        >>> rdms.reordered(("c", "a", "b"))["first"].tolist()      # c–a, c–b, a–b
        [0.2, 0.3, 0.1]
    """

    vectors: Any
    names: tuple[str, ...] = ()
    stimuli: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        vectors = as_vectors(self.vectors, "vectors").copy()
        vectors.setflags(write=False)
        object.__setattr__(self, "vectors", vectors)
        for field, count, what in (("names", len(vectors), "RDMs"), ("stimuli", self.n_stimuli, "stimuli")):
            given = tuple(str(name) for name in getattr(self, field))
            object.__setattr__(self, field, given)
            if given and len(given) != count:
                raise AssayError(f"{field} has {len(given)} entries for {count} {what}: name each")
            if len(set(given)) < len(given):
                twice = next(name for name in given if given.count(name) > 1)
                raise AssayError(f"{field} names {twice!r} twice: names must differ")

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise AssayError(f"there is no RDM {name!r}{nearest(str(name), self.names)}")
        row: Array = self.vectors[self.names.index(name)]
        return row

    def __repr__(self) -> str:
        return f"RdmSet({len(self)} RDMs of {self.n_stimuli} stimuli)"

    @property
    def n_stimuli(self) -> int:
        """The number of stimuli, m."""
        return stimuli_of(self.vectors.shape[1])

    @property
    def matrices(self) -> Array:
        """The RDMs as symmetric matrices with zeros on the diagonal, RDMs × m × m."""
        return as_matrices(self.vectors)

    @property
    def mean(self) -> Array:
        """The mean of the RDMs, entry by entry, as an upper triangle in which equal means are equal, up to rounding."""
        return mean_with_ties(self.vectors)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the dissimilarities and of all names."""
        return fingerprint(self.vectors, self.names, self.stimuli)

    def chosen(self, names: Sequence[str]) -> RdmSet:
        """Return the RDMs of these names, in this order; a name that is missing is an error."""
        return RdmSet([self[name] for name in names], tuple(names), self.stimuli)

    def reordered(self, stimuli: Sequence[str]) -> RdmSet:
        """Return the RDMs with these stimuli, in this order, which may be fewer than all."""
        missing = [name for name in stimuli if name not in self.stimuli]
        if missing:
            raise AssayError(f"stimuli names {missing[0]!r}, which these RDMs lack{nearest(missing[0], self.stimuli)}")
        places = [self.stimuli.index(name) for name in stimuli]
        return RdmSet(self.matrices[:, places][:, :, places], self.names, tuple(stimuli))


def as_vectors(rdms: Any, name: str) -> Array:
    """Convert RDMs to a checked array of upper triangles in float64, RDMs × m(m−1)/2.

    Args:
        rdms: One upper triangle; a stack of them (2-D); a symmetric matrix (2-D, zero diagonal) or a stack of matrices
            (3-D, RDMs × m × m, or MATLAB's m × m × RDMs, which their symmetry tells); a list of either; an `RdmSet`, or
            rsatoolbox's ``RDMs``. NumPy arrays or tensors.
        name: The argument that errors name.

    Example:
        >>> as_vectors([[0, 1, 2], [1, 0, 3], [2, 3, 0]], "rdms").tolist()
        [[1.0, 2.0, 3.0]]
    """
    return read_rdms(rdms, name)[0]


def read_rdms(rdms: Any, name: str) -> tuple[Array, bool]:
    """Convert RDMs as `as_vectors` does, and say whether they were given as a stack, not as one RDM."""
    if isinstance(rdms, RdmSet):
        return rdms.vectors, True
    if hasattr(rdms, "dissimilarities"):
        rdms = rdms.dissimilarities
    if isinstance(rdms, (list, tuple)) and len(rdms) and np.ndim(rdms[0]):
        parts = [as_array(rdm, name) for rdm in rdms]
        if len({part.shape for part in parts}) > 1:
            shapes = " and ".join(sorted({"×".join(map(str, part.shape)) for part in parts}))
            raise AssayError(f"{name} has RDMs of different sizes ({shapes}): give RDMs of the same stimuli")
        array = np.stack(parts)
    else:
        array = as_array(rdms, name)
    if array.dtype.kind not in "fiub":
        raise AssayError(f"{name}={shown(rdms)} is no RDM: give dissimilarities as numbers")
    array = rdms_first(array.astype(np.float64))
    square = array.ndim == 2 and array.shape[0] == array.shape[1] > 2
    one_matrix = square and _has_zero_diagonal(array)
    if square and not one_matrix and _is_symmetric(array):
        shape = "×".join(map(str, array.shape))
        raise AssayError(
            f"{name} of shape {shape} is symmetric and not zero on the diagonal, as similarities are: give "
            "dissimilarities, such as 1 − r; where its rows are upper triangles, give them as matrices"
        )
    if array.ndim == 3 or one_matrix:
        vectors = _upper_triangles(array.reshape(-1, *array.shape[-2:]), name)
    elif array.ndim in (1, 2):
        vectors = np.atleast_2d(array)
    else:
        raise AssayError(f"{name} has {array.ndim} axes: give upper triangles (1 or 2 axes) or matrices (2 or 3)")
    if not len(vectors):
        raise AssayError(f"{name} holds no RDM: give one or more")
    if stimuli_of(vectors.shape[1]) < 3:
        shape = "×".join(map(str, array.shape))
        raise AssayError(
            f"{name} of shape {shape} is no RDM: give m(m−1)/2 dissimilarities of m ≥ 3 stimuli, or a symmetric matrix "
            "with zeros on the diagonal"
        )
    bad = ~np.isfinite(vectors)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        i, j = np.argwhere(np.triu(np.ones((stimuli_of(vectors.shape[1]),) * 2), 1))[bad[row].argmax()]
        raise AssayError(
            f"RDM {row} of {name} has {int(bad[row].sum())} entries that are NaN or infinite, first that of stimuli "
            f"{i} and {j}: leave out the RDM or those stimuli"
        )
    return vectors, array.ndim > 1 and not one_matrix


def rdms_first(array: Array) -> Array:
    """Return matrices m × m × RDMs, as MATLAB stacks them, as RDMs × m × m, and any other array as it is.

    They are such where they are symmetric and zero on the diagonal along the first two axes, and not along the last
    two. (What is both is equal along all three axes.)
    """
    if array.ndim != 3 or not are_matrices(np.moveaxis(array, -1, 0)) or are_matrices(array):
        return array
    return np.moveaxis(array, -1, 0)


def are_matrices(array: Array) -> bool:
    """Whether an array RDMs × m × m holds matrices that are symmetric and zero on the diagonal."""
    if array.shape[-1] != array.shape[-2] or not array.size:
        return False
    return all(_is_symmetric(matrix) and _has_zero_diagonal(matrix) for matrix in array.astype(np.float64))


def stimuli_of(entries: int) -> int:
    """Return the number m of stimuli of an upper triangle of m(m−1)/2 entries; 0 where there is no such m."""
    m = (1 + isqrt(1 + 8 * entries)) // 2
    return m if entries and m * (m - 1) // 2 == entries else 0


def as_matrices(vectors: Array) -> Array:
    """Convert upper triangles, RDMs × m(m−1)/2, to symmetric matrices with zeros on the diagonal."""
    m = stimuli_of(vectors.shape[-1])
    matrices = np.zeros((*vectors.shape[:-1], m, m), dtype=vectors.dtype)
    above = np.triu(np.ones((m, m), dtype=bool), 1)
    matrices[..., above] = vectors
    return matrices + np.swapaxes(matrices, -1, -2)


def require_same_stimuli(
    a: Any,
    b: Any,
    a_name: str = "a",
    b_name: str = "b",
    *,
    if_reordered: str | None = None,
    if_different: str = "choose common ones by reordered",
) -> None:
    """Raise where two sets name their stimuli and the names or their order differ.

    Args:
        a: RDMs in any form; an `RdmSet` and rsatoolbox's ``RDMs`` may have names.
        b: The RDMs that are compared with them.
        a_name: What the error calls the first.
        b_name: What the error calls the second.
        if_reordered: The remedy for equal names in another order.
        if_different: The remedy for names that one set lacks.
    """
    first, second = _stimuli_named(a), _stimuli_named(b)
    if not first or not second or first == second:
        return
    if set(first) == set(second):
        place = next(i for i, (x, y) in enumerate(zip(first, second, strict=True)) if x != y)
        raise AssayError(
            f"{a_name} and {b_name} have the same stimuli in another order: stimulus {place} is {first[place]!r} and "
            f"{second[place]!r}; {if_reordered or f'give {b_name}.reordered({a_name}.stimuli)'}"
        )
    alone = next(iter(sorted(set(first) ^ set(second))))
    raise AssayError(f"{a_name} and {b_name} have different stimuli ({alone!r} is in one only): {if_different}")


def _stimuli_named(rdms: Any) -> tuple[str, ...]:
    """The names of the stimuli of RDMs, where they have some."""
    if hasattr(rdms, "pattern_descriptors"):
        return stimulus_names(rdms.pattern_descriptors)
    return tuple(getattr(rdms, "stimuli", ()))


def to_rsatoolbox(rdms: Any, measure: str | None = None) -> Any:
    """Convert RDMs to rsatoolbox's ``RDMs``, with the names of RDMs and stimuli as its descriptors.

    Args:
        rdms: RDMs in any form that `as_vectors` takes.
        measure: What rsatoolbox calls the dissimilarity measure, such as ``"correlation"``.

    Returns:
        An ``rsatoolbox.rdm.RDMs``; names are in ``rdm_descriptors["name"]`` and ``pattern_descriptors["stimulus"]``.
    """
    package = optional("rsatoolbox.rdm", "rsa", "to_rsatoolbox")
    names, stimuli = getattr(rdms, "names", ()), getattr(rdms, "stimuli", ())
    return package.RDMs(
        as_vectors(rdms, "rdms").copy(),
        dissimilarity_measure=measure,
        rdm_descriptors={"name": list(names)} if names else None,
        pattern_descriptors={"stimulus": list(stimuli)} if stimuli else None,
    )


def from_rsatoolbox(rdms: Any, names: str | None = None, stimuli: str | None = None) -> RdmSet:
    """Convert rsatoolbox's ``RDMs`` to a checked set of RDMs.

    Args:
        rdms: An ``rsatoolbox.rdm.RDMs``.
        names: The key of ``rdm_descriptors`` that names RDMs; by default ``name``, ``subject`` and ``session``, as many
            of them as tell every RDM from the others, or any other text or whole number that does. Where none does,
            they have no names.
        stimuli: The key of ``pattern_descriptors`` that names stimuli; by default ``stimulus``, ``stimuli``, ``image``,
            ``condition``, ``conds`` and ``name``, likewise.
    """
    if not hasattr(rdms, "dissimilarities") or not hasattr(rdms, "pattern_descriptors"):
        raise AssayError(f"rdms={shown(rdms)} is no rsatoolbox.rdm.RDMs")
    return RdmSet(
        rdms.dissimilarities,
        rdm_names(rdms.rdm_descriptors, names),
        stimulus_names(rdms.pattern_descriptors, stimuli),
    )


def _has_zero_diagonal(matrix: Array) -> bool:
    diagonal = np.abs(np.diagonal(matrix))
    return bool(np.nanmax(diagonal, initial=0.0) <= _ROUNDING * np.nanmax(np.abs(matrix), initial=0.0))


def _is_symmetric(matrix: Array) -> bool:
    with np.errstate(invalid="ignore"):  # of two infinite entries, which are refused elsewhere
        apart = np.nanmax(np.abs(matrix - matrix.T), initial=0.0)
    return bool(apart <= _ROUNDING * np.nanmax(np.abs(matrix), initial=0.0))


def _upper_triangles(matrices: Array, name: str) -> Array:
    """The upper triangles of matrices; an error names one that is not square, symmetric and zero on the diagonal."""
    m = matrices.shape[-1]
    if matrices.shape[-2] != m:
        shape = "×".join(map(str, matrices.shape))
        raise AssayError(
            f"{name} of shape {shape} is no stack of RDMs, an RDM is square: give RDMs × m × m or m × m × RDMs, each "
            "symmetric with zeros on the diagonal"
        )
    for row, matrix in enumerate(matrices):
        if not _is_symmetric(matrix):
            apart = np.abs(matrix - matrix.T)
            i, j = np.unravel_index(np.nanargmax(apart), apart.shape)
            raise AssayError(
                f"RDM {row} of {name} is not symmetric: entry ({i}, {j}) is {matrix[i, j]:.6g} and ({j}, {i}) is "
                f"{matrix[j, i]:.6g}; give (D + D.T) / 2 if that is meant"
            )
        if not _has_zero_diagonal(matrix):
            raise AssayError(f"RDM {row} of {name} is not zero on the diagonal: give dissimilarities, not similarities")
    triangles: Array = matrices[:, np.triu(np.ones((m, m), dtype=bool), 1)]
    return triangles
