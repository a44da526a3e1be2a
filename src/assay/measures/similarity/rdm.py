"""Representational dissimilarity matrices (RDMs) of responses, in one pass over blocks of features.

With v_i the response to stimulus i of m, p features, and G = Σ BBᵀ, s = Σ B1 over blocks B of features:

- ``correlation``: 1 − Pearson(v_i, v_j), each response centred by its own mean: from C = G − ssᵀ/p;
- ``cosine``: 1 − v_i·v_j / (‖v_i‖‖v_j‖);
- ``euclidean``: ‖v_i − v_j‖²/p, squared and divided by the number of features, as rsatoolbox has it;
- ``mahalanobis``: (v_i − v_j)ᵀP(v_i − v_j)/p with P a precision matrix (the inverse covariance of the noise);
- ``crossnobis``: the mean over folds f of (v̄_i − v̄_j)ᵀP(u_i − u_j)/p, with u the responses of fold f and v̄ their mean
  over the other folds: unbiased, so that it may be negative.

Kriegeskorte, Mur & Bandettini 2008; Walther et al. 2016 (crossnobis).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.core.ties import restore_ties
from assay.measures.similarity.gram import RunningGram, Shift, as_responses

Array = np.ndarray[Any, Any]
Metric = Literal["correlation", "euclidean", "cosine", "mahalanobis", "crossnobis"]
METRICS: tuple[str, ...] = get_args(Metric)
_SHIFTS: dict[str, Shift] = {"correlation": "stimuli", "euclidean": "features", "cosine": "none"}


def rdm(responses: Any, metric: str = "correlation", *, precision: Any = None) -> Any:
    """The dissimilarity of the responses to every two stimuli, as an upper triangle of m(m−1)/2 numbers.

    Responses are read once, in blocks of features; beside them, memory holds O(m²) numbers. Products are taken in the
    precision of the responses, in float64 where that would round away the differences, and added up in float64. Entries
    that differ by no more than rounding are equal, so that ranks see ties: a one-hot code has two dissimilarities.
    Values and conventions are those of rsatoolbox.

    Args:
        responses: Responses, m × features; further axes count as features. For ``crossnobis``, folds × m × features. An
            array, or a tensor on any device.
        metric: ``correlation``, ``euclidean``, ``cosine``, ``mahalanobis`` or ``crossnobis``; the formulas are at the
            head of this module.
        precision: Inverse covariance of the noise, features × features, or one number per feature where the noise is
            independent. ``mahalanobis`` needs it; for ``crossnobis`` the default is the identity.

    Returns:
        The upper triangle, row after row, in float64: an array, or a tensor on the device of the responses.

    Example:
        >>> responses = np.array([[1, 2, 3, 5], [2, 1, 4, 4], [0, 3, 1, 2]])
        >>> rdm(responses).round(6).tolist()      # stimuli 0 and 1, 0 and 2, 1 and 2
        [0.25181, 0.622036, 1.258199]
        >>> rdm(responses, "euclidean").tolist()
        [1.0, 3.75, 5.25]

    Kriegeskorte, Mur & Bandettini 2008.
    """
    if metric not in METRICS:
        raise AssayError(f"metric={metric!r} is unknown{nearest(str(metric), METRICS)}")
    if metric not in ("mahalanobis", "crossnobis"):
        if precision is not None:
            raise AssayError(f"precision was given, which metric={metric!r} does not use: leave it out")
        running = RunningRdm(metric)
        running.add(responses)
        return running.rdm()
    if metric == "mahalanobis":
        if precision is None:
            raise AssayError("metric='mahalanobis' needs precision; without noise, use metric='euclidean'")
        running = RunningRdm("euclidean")
        running.add(_given_as(responses, whitened(as_responses(responses, "responses"), precision)))
        return running.rdm()
    return _crossnobis(responses, precision)


class RunningRdm:
    """An RDM of responses that come in blocks of features, such as one layer or one time step after the other.

    Args:
        metric: ``correlation``, ``euclidean`` or ``cosine``; for ``mahalanobis``, ``euclidean`` of `whitened` blocks.

    Example:
        >>> responses = np.array([[1.0, 2, 3, 5], [2, 1, 4, 4], [0, 3, 1, 2]])
        >>> running = RunningRdm("correlation")
        >>> running.add(responses[:, :3])
        >>> running.add(responses[:, 3:])
        >>> running.rdm().round(6).tolist()
        [0.25181, 0.622036, 1.258199]
    """

    def __init__(self, metric: str = "correlation") -> None:
        if metric not in _SHIFTS:
            raise AssayError(f"metric={metric!r} has no running sum{nearest(str(metric), _SHIFTS)}")
        self.metric = metric
        self.gram = RunningGram(_SHIFTS[metric])

    def add(self, block: Any) -> None:
        """Add features: responses to all m stimuli, m × features; further axes count as features."""
        self.gram.add(block)

    def merge(self, other: RunningRdm) -> None:
        """Add all features that another has added up, such as those of another layer."""
        self.gram.merge(other.gram)

    def rdm(self) -> Any:
        """Return the upper triangle of all features so far, an array or a tensor, as the first block was."""
        return _as_given(entries_with_ties(self.entries(), self.errors()), self.gram)

    def entries(self) -> Tensor:
        """The upper triangle as computed, in which rounding breaks ties."""
        return upper_triangle(self._dissimilarities())

    def errors(self) -> Tensor:
        """How far rounding may have moved the dissimilarities: those of stimuli i and j by e_i + e_j."""
        errors = self.gram.errors()
        if self.metric == "euclidean":
            return 2 * errors / self.gram.features
        products = self.gram.uncentred_products() if self.metric == "cosine" else self.gram.covariance()
        return errors / products.diagonal()

    def undefined_stimuli(self) -> Array:
        """The stimuli whose dissimilarities are undefined: constant over features, or for the cosine zero in all."""
        if self.metric == "correlation":
            undefined = self.gram.constant_stimuli()
        elif self.metric == "cosine":
            undefined = torch.nonzero(self.gram.products().diagonal() == 0).flatten()
        else:
            undefined = torch.empty(0, dtype=torch.int64)
        return np.asarray(undefined.cpu())

    def _dissimilarities(self) -> Tensor:
        if self.metric == "euclidean":
            return self.gram.squared_distances().clamp_(min=0) / self.gram.features
        products = self.gram.products() if self.metric == "cosine" else self.gram.covariance()
        undefined = self.undefined_stimuli()
        if len(undefined) and self.metric == "cosine":
            raise AssayError(f"the response to stimulus {int(undefined[0])} is zero in all features: leave it out")
        if len(undefined):
            raise AssayError(
                f"the responses to {len(undefined)} stimuli, first stimulus {int(undefined[0])}, are constant over "
                "features up to rounding, so that their correlation is undefined: leave them out, or use "
                "metric='euclidean'"
            )
        scale = products.diagonal().rsqrt()
        return (1 - products.mul_(scale).mul_(scale[:, None])).clamp_(0, 2)


def category_rdm(labels: Any) -> Array:
    """The RDM of categories: 0 for two stimuli of the same category, 1 for others, as an upper triangle.

    Example:
        >>> category_rdm(["face", "face", "house"]).tolist()
        [0.0, 1.0, 1.0]
    """
    names = np.asarray(labels)
    if names.ndim != 1 or len(names) < 2:
        raise AssayError(f"labels has shape {names.shape}: give the category of each stimulus, in a row")
    apart: Array = (names[:, None] != names).astype(np.float64)
    return np.asarray(apart[np.triu(np.ones(apart.shape, dtype=bool), 1)])


def whitened(responses: Tensor, precision: Any) -> Tensor:
    """Responses times L, with P = LLᵀ: their squared distances are those of Mahalanobis with precision P.

    Args:
        responses: Responses, stimuli × features.
        precision: The matrix P, features × features, or its diagonal where it has no other entries.
    """
    matrix = torch.as_tensor(precision).detach().to(device=responses.device, dtype=torch.float64)
    p = responses.shape[-1]
    if tuple(matrix.shape) not in ((p,), (p, p)):
        shape = "×".join(map(str, matrix.shape))
        raise AssayError(f"precision is {shape} for {p} features: give {p}×{p}, or one number per feature")
    if matrix.dim() == 1:
        if not bool((matrix > 0).all()):
            raise AssayError("precision has entries that are not positive: give the inverse variance of each feature")
        return responses.to(torch.float64) * matrix.sqrt()
    if not torch.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-8 * float(matrix.abs().max())):
        raise AssayError("precision is not symmetric: give the inverse of a covariance matrix")
    factor, failed = torch.linalg.cholesky_ex((matrix + matrix.T) / 2)
    if int(failed):
        raise AssayError("precision is not positive definite: give the inverse of a covariance matrix")
    product: Tensor = responses.to(torch.float64) @ factor
    return product


def entries_with_ties(entries: Tensor, errors: Tensor) -> Tensor:
    """The entries of an upper triangle, those that differ by no more than rounding made equal.

    Args:
        entries: The upper triangle, row after row.
        errors: The error e of each stimulus: rounding moves the entry of stimuli i and j by at most e_i + e_j.
    """
    if float(errors.max()) <= 2 * float(errors.min()):  # about the same for all, as a rule: faster
        return restore_ties(entries, 2 * float(errors.max()))
    return restore_ties(entries, upper_triangle(errors[:, None] + errors))


def upper_triangle(matrix: Tensor) -> Tensor:
    """The entries above the diagonal of a square matrix, row after row."""
    return matrix[torch.ones_like(matrix, dtype=torch.bool).triu_(1)]


def _crossnobis(responses: Any, precision: Any) -> Any:
    """Crossnobis distances from two sums: over pairs of folds f ≠ g, Σ u_f·u_g = (Σ u_f)·(Σ u_g) − Σ u_f·u_f."""
    folds = responses if isinstance(responses, Tensor) else np.asarray(responses)
    if folds.ndim != 3 or len(folds) < 2:
        raise AssayError(
            f"responses has shape {tuple(folds.shape)}: metric='crossnobis' takes folds × stimuli × features, of two "
            "folds or more"
        )
    count, _, p = folds.shape
    of_folds, of_sum = RunningGram("features"), RunningGram("features")
    total: Any = None
    for fold in folds:
        values = as_responses(fold, "responses")
        if precision is not None:
            values = whitened(values, precision)
        of_folds.add(_given_as(responses, values))
        total = values.to(torch.float64) if total is None else total + values
    of_sum.add(_given_as(responses, total))
    scale = count * (count - 1) * p
    apart = (of_sum.squared_distances() - of_folds.squared_distances()) / scale
    errors = 2 * (of_sum.errors() + of_folds.errors()) / scale
    return _as_given(entries_with_ties(upper_triangle(apart), errors), of_sum)


def _given_as(responses: Any, values: Tensor) -> Any:
    """Values as an array where the responses were one, so that the result is one too."""
    return values if isinstance(responses, Tensor) else values.numpy()


def _as_given(values: Tensor, gram: RunningGram) -> Any:
    return values.numpy() if gram.numpy else values
