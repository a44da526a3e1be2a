"""How well any model could do: the noise ceiling of several subjects' RDMs, and how alike the subjects are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from assay.core.errors import AssayError, nearest
from assay.core.ties import sums_with_ties
from assay.measures.similarity.compare import method_named, require_comparable, similarity
from assay.stats.ranks import ranks
from assay.stimuli.rdms import as_vectors

Array = np.ndarray[Any, Any]
Pooling = Literal["standardised", "raw"]
POOLINGS = ("standardised", "raw")
RANK_METHODS = ("spearman", "rho-a", "tau-a", "tau-b")


class NoiseCeiling(NamedTuple):
    """The range in which the score of the true model lies, given how much subjects differ.

    Attributes:
        lower: Mean similarity of each subject to the pool of the others.
        upper: Mean similarity of each subject to the pool of all, that subject included.
    """

    lower: float
    upper: float


class SubjectSimilarity(NamedTuple):
    """How alike the RDMs of several subjects are, over all pairs of them.

    Attributes:
        mean: Mean similarity of two RDMs.
        sd: Standard deviation over pairs, with the number of pairs less one in it.
        pairs: The number of pairs.
    """

    mean: float
    sd: float
    pairs: int


def noise_ceiling(
    rdms: Any, method: str = "spearman", *, pooling: Pooling = "standardised", subjects: Sequence[Any] | None = None
) -> NoiseCeiling:
    """The noise ceiling of subjects' RDMs: how similar the best model would be to single subjects, on average.

    The upper bound is the mean similarity of each RDM to the pool of all of them; the lower bound that to the pool of
    the others (leave one subject out). How RDMs are pooled changes the third digit, so it is part of the number:

    - ``"standardised"`` (rsatoolbox's rule): the mean of what the method sees of each RDM, which is its ranks for
      ``spearman``, ``rho-a``, ``tau-a`` and ``tau-b`` (for τ not quite the best pool), its z-scores for ``pearson`` and
      ``whitened-correlation``, and its values over their root mean square for the cosines;
    - ``"raw"``: the mean of the RDMs as they are.

    To set a network against a ceiling, average its similarity over single subjects too: the similarity to the *mean*
    RDM is on another scale.

    Args:
        rdms: One RDM per subject, or several, in any form that `compare_rdms` takes as a stack.
        method: The method of comparison, as in `compare_rdms`.
        pooling: How RDMs are pooled.
        subjects: The subject of each RDM where one has several (sessions): they are left out together. Each subject
            counts the same in the bounds, which are means over subjects; in a pool every RDM counts the same, so that a
            subject with more of them weighs more (rsatoolbox's rule). Give one mean RDM per subject where that is not
            meant.

    Example:
        >>> ceiling = noise_ceiling([[1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 6, 5], [1, 3, 2, 5, 4, 6]])
        >>> round(ceiling.lower, 4), round(ceiling.upper, 4)
        (0.863, 0.9238)

    Nili et al. 2014.
    """
    method = method_named(method)
    vectors = subject_rdms(rdms, method, subjects)
    group = subject_numbers(len(vectors), subjects)
    views = standardised(vectors, method) if require_pooling(pooling) == "standardised" else vectors
    upper, lower = [], []
    for number in np.unique(group):
        own = group == number
        pools = sums_with_ties(np.stack([~own, np.ones_like(own)]).astype(np.float64), views)
        others, everyone = similarity(pools, vectors[own], method).mean(axis=1)
        lower.append(others)
        upper.append(everyone)
    return NoiseCeiling(float(np.mean(lower)), float(np.mean(upper)))


def similarity_between_subjects(rdms: Any, method: str = "spearman") -> SubjectSimilarity:
    """How alike subjects' RDMs are: mean and standard deviation of the similarity over all pairs of them.

    Args:
        rdms: One RDM per subject (or session), in any form that `compare_rdms` takes as a stack.
        method: The method of comparison, as in `compare_rdms`.

    Example:
        >>> found = similarity_between_subjects([[1, 2, 3], [2, 1, 3], [3, 2, 1]])      # ½, −1 and −½
        >>> round(found.mean, 6), round(found.sd, 6), found.pairs
        (-0.333333, 0.763763, 3)
    """
    method = method_named(method)
    vectors = subject_rdms(rdms, method, None)
    pairs = similarity(vectors, vectors, method)[np.triu_indices(len(vectors), 1)]
    spread = float(pairs.std(ddof=1)) if len(pairs) > 1 else float("nan")
    return SubjectSimilarity(float(pairs.mean()), spread, len(pairs))


def standardised(vectors: Array, method: str) -> Array:
    """What a method sees of each RDM: its ranks, its z-scores, or its values over their root mean square."""
    if method in RANK_METHODS:
        return ranks(vectors)
    if method in ("pearson", "whitened-correlation"):
        centred = vectors - vectors.mean(axis=1, keepdims=True)
        return np.asarray(centred / centred.std(axis=1, keepdims=True))
    return np.asarray(vectors / np.sqrt((vectors**2).mean(axis=1, keepdims=True)))


def subject_rdms(rdms: Any, method: str, subjects: Sequence[Any] | None) -> Array:
    """Checked RDMs of two subjects or more, as upper triangles."""
    vectors = as_vectors(rdms, "rdms")
    require_comparable(vectors, method, "rdms")
    count = len(np.unique(subject_numbers(len(vectors), subjects)))
    if count < 2:
        raise AssayError(f"rdms has {count} subject: what subjects have in common takes two or more")
    return vectors


def subject_numbers(count: int, subjects: Sequence[Any] | None) -> Array:
    """The subject of each RDM as a number from 0; every RDM is a subject of its own where none are named."""
    if subjects is None:
        return np.arange(count)
    if len(subjects) != count:
        raise AssayError(f"subjects has {len(subjects)} entries for {count} RDMs: name the subject of each")
    return np.asarray(np.unique(np.asarray([str(name) for name in subjects]), return_inverse=True)[1])


def require_pooling(pooling: str) -> str:
    """Return the name of a rule of pooling; an error suggests the nearest."""
    if pooling not in POOLINGS:
        raise AssayError(f"pooling={pooling!r} is unknown{nearest(str(pooling), POOLINGS)}")
    return pooling
