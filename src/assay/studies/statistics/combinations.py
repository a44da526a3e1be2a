"""Combinations of several measures: each takes their scores of the networks of one task and returns one per network.

Perturbation response curves 2021, §4.1.2: "PCA Gi&Mi.", "Pal ℓ=0∗ℓ=1", "Pal inter+intra".
"""

from __future__ import annotations

import numpy as np

from assay.core.errors import AssayError
from assay.studies.statistics.grid import Array, Numbers, numbers


def first_component(*scores: Numbers) -> Array:
    """First principal component of the standardised scores, its sign that of the first score.

    With z-scores Z (networks × scores) and the eigenvector v of ZᵀZ with the largest eigenvalue: Z·v. Of two scores it
    is (z_a ± z_b)/√2, the sign that of their correlation. It depends on all networks given.

    Example:
        >>> first_component([0.0, 2.0], [3.0, 1.0]).round(6)      # (−1 − 1)/√2 and (1 + 1)/√2
        array([-1.414214,  1.414214])

    Perturbation response curves 2021, §4.1.2 (which does not say whether scores are standardised; without it the
    component follows whichever score has the larger units).
    """
    columns = _scores(scores)
    constant = (columns == columns[:, :1]).all(axis=1)
    if constant.any():
        raise AssayError(f"scores[{int(constant.argmax())}] is the same for all networks: leave it out")
    z = ((columns - columns.mean(axis=1, keepdims=True)) / columns.std(axis=1, keepdims=True)).T
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    if len(values) > 1 and values[-1] - values[-2] < 1e-9:
        raise AssayError("scores have no first component: no direction varies more than another; use `mean`")
    direction = vectors[:, -1]
    leading = direction[np.argmax(np.abs(direction) > 1e-9)]
    component: Array = z @ direction * np.sign(leading)
    return component


def product(*scores: Numbers) -> Array:
    """Product of the scores of each network.

    Example:
        >>> product([1, 2, 3], [0.5, 0.5, 2])
        array([0.5, 1. , 6. ])
    """
    return np.asarray(_scores(scores).prod(axis=0))


def mean(*scores: Numbers) -> Array:
    """Mean of the scores of each network.

    Example:
        >>> mean([1, 2], [3, 6])
        array([2., 4.])
    """
    return np.asarray(_scores(scores).mean(axis=0))


def _scores(scores: tuple[Numbers, ...]) -> Array:
    if len(scores) < 2:
        raise AssayError(f"a combination takes two or more scores, received {len(scores)}")
    return np.stack(numbers({f"scores[{i}]": s for i, s in enumerate(scores)}))
