"""Multidimensional scaling: things as points whose distances follow their dissimilarities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]


def mds(dissimilarities: Any, dimensions: int = 2) -> Array:
    """Points whose distances are as near as possible to given dissimilarities (metric MDS).

    It minimises the stress Σ (‖x_i − x_j‖ − d_ij)², by scikit-learn's SMACOF from the start that classical scaling
    gives, so that equal dissimilarities give equal points. The axes have no meaning, only distances do.

    Args:
        dissimilarities: The upper triangle of m(m−1)/2 numbers, as `assay.rdm` gives it, or a symmetric matrix.
        dimensions: Number of dimensions.

    Returns:
        The points, m × dimensions, centred on 0.

    Example:
        >>> line = mds([1.0, 3.0, 2.0])      # three stimuli at 0, 1 and 3
        >>> np.linalg.norm(line[0] - line[2]).round(4).item()
        3.0

    Torgerson 1952 (classical scaling); de Leeuw 1977 (SMACOF).
    """
    distances = _distances(dissimilarities)
    if not 1 <= dimensions < len(distances):
        raise AssayError(f"dimensions={dimensions} must be at least 1 and below the number of stimuli")
    start = _classical(distances, dimensions)
    from sklearn.manifold import smacof  # here, because it takes long to load and few pages need it

    points = smacof(distances, n_components=dimensions, init=start, n_init=1, max_iter=300, normalized_stress=False)[0]
    return np.asarray(points - points.mean(axis=0))


def stress(dissimilarities: Any, points: Array) -> float:
    """How much the distances of points miss of the dissimilarities: √(Σ (‖x_i − x_j‖ − d_ij)² / Σ d_ij²).

    It is 0 where all distances are as they should be; 0.2 is commonly called poor.

    Args:
        dissimilarities: The upper triangle of m(m−1)/2 numbers, or a symmetric matrix.
        points: The points, m × dimensions.

    Example:
        >>> stress([1.0, 3.0, 2.0], np.array([[0.0], [1.0], [3.0]]))
        0.0

    Kruskal 1964.
    """
    wanted = scipy.spatial.distance.squareform(_distances(dissimilarities))
    return float(np.sqrt(((scipy.spatial.distance.pdist(points) - wanted) ** 2).sum() / (wanted**2).sum()))


def _distances(dissimilarities: Any) -> Array:
    """Dissimilarities as a symmetric matrix."""
    given = np.asarray(dissimilarities, dtype=np.float64)
    if given.ndim not in (1, 2) or not np.isfinite(given).all():
        raise AssayError(
            f"dissimilarities has shape {given.shape}: give the finite ones of one RDM, such as their mean"
        )
    squareform = scipy.spatial.distance.squareform
    try:
        return np.asarray(squareform(given) if given.ndim == 1 else squareform(squareform(given, checks=True)))
    except ValueError as error:
        raise AssayError(f"dissimilarities of shape {given.shape} are no RDM: {error}") from error


def _classical(distances: Array, dimensions: int) -> Array:
    """Classical scaling: the leading eigenvectors of the doubly centred squares, −½CD²C."""
    squares = distances**2
    centred = -(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()) / 2
    values, vectors = np.linalg.eigh(centred)
    values, vectors = values[::-1][:dimensions], vectors[:, ::-1][:, :dimensions]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dimensions)])  # eigh's sign is chance
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
