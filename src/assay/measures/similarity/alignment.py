"""How alike two representations are as wholes: linear CKA, and the distance after the best rotation (Procrustes).

Both depend on responses only through inner products between stimuli, K = Σ_features (x − x̄)(x − x̄)ᵀ, so that responses
can be added up block by block (`assay.measures.similarity.gram.RunningGram("features")`) and the memory is O(m²).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.measures.similarity.gram import RunningGram

Array = np.ndarray[Any, Any]


def linear_cka(x: Any, y: Any, *, unbiased: bool = True) -> float:
    """Linear centred kernel alignment of two sets of responses to the same stimuli.

    CKA = HSIC(K, L) / √(HSIC(K, K)·HSIC(L, L)) with K and L the inner products between stimuli. Unbiased, with K̃ and L̃
    the matrices with zeros on the diagonal and m stimuli,

    HSIC₁ = [tr(K̃L̃) + 1ᵀK̃1·1ᵀL̃1/((m−1)(m−2)) − 2/(m−2)·1ᵀK̃L̃1] / (m(m−3)),

    which is 0 on average for unrelated responses, whatever the number of features; it may be negative. The biased one,
    tr(KCLC)/(m−1)² with C = I − 11ᵀ/m, grows towards 1 with the number of features.

    Args:
        x: Responses, stimuli × features; further axes count as features. An array, or a tensor on any device; or the
            inner products that a `RunningGram("features")` has added up.
        y: Other responses to the same stimuli in the same order; the number of features may differ.
        unbiased: Whether HSIC₁ is used.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 6))
        >>> round(linear_cka(x, 3 * x[:, ::-1] + 1), 6)      # rotated, scaled and moved
        1.0
        >>> noise = np.random.default_rng(1).normal(size=(50, 400))
        >>> round(linear_cka(x, noise), 2), round(linear_cka(x, noise, unbiased=False), 2)
        (0.01, 0.31)

    Kornblith et al. 2019; Song et al. 2012 (HSIC₁).
    """
    of_x, of_y = _inner_products(x, y)
    m = len(of_x)
    if unbiased and m < 4:
        raise AssayError(f"x has {m} stimuli: unbiased CKA takes four or more")
    centre = _without_diagonal_centred if unbiased else _centred
    a, b = centre(of_x), centre(of_y)
    sizes = [float(torch.linalg.matrix_norm(matrix)) for matrix in (a, b)]
    for name, size, matrix in (("x", sizes[0], of_x), ("y", sizes[1], of_y)):
        if size <= 1e-12 * float(torch.linalg.matrix_norm(matrix)):
            raise AssayError(f"{name} has the same response to every stimulus: its alignment is undefined")
    return float((a * b).sum()) / (sizes[0] * sizes[1])


def procrustes_distance(x: Any, y: Any) -> float:
    """Squared distance of two sets of responses after centring, scaling to size 1 and the best rotation or reflection.

    d = ‖A‖² + ‖B‖² − 2‖AᵀB‖_* = 2 − 2·Σ σ_i(AᵀB), with A and B the responses less their means, divided by their
    Frobenius norms, and σ_i singular values: 0 for representations that differ by a rotation and a scale, at most 2.

    Args:
        x: Responses, stimuli × features; further axes count as features. An array, or a tensor on any device; or the
            inner products that a `RunningGram("features")` has added up.
        y: Other responses to the same stimuli in the same order; the number of features may differ.

    Example:
        >>> x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
        >>> abs(round(procrustes_distance(x, 5 * x @ np.array([[0.0, 1.0], [-1.0, 0.0]])), 6))
        0.0
        >>> round(procrustes_distance(x, np.array([[0.0], [1.0], [0.0]])), 4)      # 2 − 2·√(2/5)
        0.7351

    Ding, Denain & Steinhardt 2021.
    """
    of_x, of_y = _inner_products(x, y)
    coordinates = []
    for name, matrix in (("x", of_x), ("y", of_y)):
        size = float(matrix.trace())
        if not size > 0:
            raise AssayError(f"{name} has the same response to every stimulus: its distance is undefined")
        values, vectors = torch.linalg.eigh(matrix / size)
        # Rounding leaves about 1e-16 where there is no dimension, whose root would be 1e-8.
        present = values > len(values) * torch.finfo(values.dtype).eps * values.max()
        coordinates.append(vectors[:, present] * values[present].sqrt())
    overlap = float(torch.linalg.svdvals(coordinates[0].T @ coordinates[1]).sum())
    return max(0.0, 2 - 2 * overlap)


def _inner_products(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Inner products between stimuli, each feature less its mean, of two sets of responses to the same stimuli."""
    products = []
    for name, responses in (("x", x), ("y", y)):
        gram = responses if isinstance(responses, RunningGram) else RunningGram("features")
        if gram.shift != "features":
            raise AssayError(f"{name} sums {gram.shift}: add up responses in RunningGram('features')")
        if gram is not responses:
            gram.add(responses)
        products.append(gram.products().cpu())
    if len(products[0]) != len(products[1]):
        raise AssayError(f"x has {len(products[0])} stimuli and y {len(products[1])}: give responses to the same ones")
    return products[0], products[1]


def _centred(matrix: Tensor) -> Tensor:
    return matrix - matrix.mean(0) - matrix.mean(1, keepdim=True) + matrix.mean()


def _without_diagonal_centred(matrix: Tensor) -> Tensor:
    """U-centring: inner products of matrices so centred are m(m−3)·HSIC₁ (Székely & Rizzo 2014)."""
    m = len(matrix)
    matrix = matrix - torch.diag(matrix.diagonal())
    sums = matrix.sum(0)
    centred = matrix - (sums + sums[:, None]) / (m - 2) + sums.sum() / ((m - 1) * (m - 2))
    return centred - torch.diag(centred.diagonal())
