"""Who is trained on, tuned on and tested on: stratified samples and folds, drawn from a secret seed.

The plan's folds are used the other way round from ordinary cross-validation: a classifier is trained on one fold and
tuned on all others; the K classifiers share one test set (§5.5, Fig. 5).
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]


def sample_stratified(labels: Array, n: int, rng: np.random.Generator) -> Array:
    """Numbers of n instances, in ascending order, whose labels are distributed as those of all (plan, Fig. 6).

    Without replacement. Of class c there are ⌊n·p_c⌋ or one more, p_c its share: what rounding down leaves over goes to
    the largest remainders, ties to the larger class, then to the lower label.

    Example:
        >>> labels = np.array([1] * 50 + [2] * 30 + [3] * 20)
        >>> chosen = sample_stratified(labels, 7, np.random.default_rng(0))
        >>> np.unique(labels[chosen], return_counts=True)[1].tolist()
        [4, 2, 1]
    """
    labels = np.asarray(labels)
    if not 0 <= n <= len(labels):
        raise AssayError(f"n={n}: a sample without replacement has between 0 and all {len(labels)} instances")
    classes, sizes = np.unique(labels, return_counts=True)
    counts = apportioned(n, sizes)
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:count] for label, count in zip(classes, counts, strict=True)
    ]
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen]))


def apportioned(total: int, weights: Array) -> Array:
    """Whole numbers that add up to ``total``, in the proportions of whole numbers: ⌊total·w/Σw⌋ or one more.

    What rounding down leaves over goes to the largest remainders, ties to the larger weight, then to the first.

    Example:
        >>> apportioned(10, np.array([750, 68, 5])).tolist()
        [9, 1, 0]
    """
    counts, remainders = np.divmod(total * weights, weights.sum())
    order = np.lexsort((-weights, -remainders))
    counts[order[: total - counts.sum()]] += 1
    return np.asarray(counts)


def create_stratified_folds(concepts: Array, k: int, rng: np.random.Generator | None = None) -> list[Array]:
    """Numbers of the instances of each of k folds (plan, Fig. 7): ordered by concept frequency, dealt like cards.

    Fold sizes differ by at most one, and so do the folds' shares of every concept.

    Args:
        concepts: One for each instance; of several labels the first (`first_labels`).
        k: How many folds.
        rng: Shuffles instances within a concept; None keeps the order of the file.

    Example:
        >>> [len(fold) for fold in create_stratified_folds(np.arange(823) % 12, 10)]
        [83, 83, 83, 82, 82, 82, 82, 82, 82, 82]
    """
    concepts = np.asarray(concepts)
    if not 2 <= k <= len(concepts):
        raise AssayError(f"k={k} folds of {len(concepts)} instances: there must be between 2 and as many as instances")
    _, member, sizes = np.unique(concepts, return_inverse=True, return_counts=True)
    within = np.arange(len(concepts)) if rng is None else rng.permutation(len(concepts))
    order = np.lexsort((within, member, sizes[member]))
    return [order[i::k] for i in range(k)]


def first_labels(targets: Array) -> Array:
    """The first label of each clip, in the order of the classes; −1 where it has none."""
    return np.where(targets.any(axis=1), targets.argmax(axis=1), -1)


def round_half_up(share: float, n: int) -> int:
    """How many are a share of n: 0.7 of 433,697 are 303,588.

    Example:
        >>> round_half_up(0.7, 433_697)
        303588
    """
    return int(Fraction(str(share)) * n + Fraction(1, 2))


@dataclass(frozen=True, eq=False)
class Partition:
    """Who is trained on, tuned on and tested on, by number in the data set.

    Args:
        folds: Each trains one classifier, tuned on the others and on ``validation``.
        validation: More to tune on, and to learn from without labels; empty for video.
        test: Where all classifiers are scored.
    """

    folds: tuple[Array, ...]
    validation: Array
    test: Array

    @property
    def training(self) -> Array:
        """All folds together, by number: folds are ordered by label, and systems must not see that."""
        return np.sort(np.concatenate(self.folds))

    def get_fold(self, i: int) -> Array:
        """Fold i = 1 … K."""
        self._require(i)
        return self.folds[i - 1]

    def complement(self, i: int) -> Array:
        """All other folds."""
        self._require(i)
        return np.concatenate([fold for j, fold in enumerate(self.folds, 1) if j != i])

    @property
    def hash(self) -> str:
        """SHA-256 of all of it: equal for all runs of a task."""
        digest = hashlib.sha256()
        for part in (*self.folds, self.validation, self.test):
            digest.update(len(part).to_bytes(8, "little") + np.asarray(part, dtype="<i8").tobytes())
        return digest.hexdigest()

    def _require(self, i: int) -> None:
        if not 1 <= i <= len(self.folds):
            raise AssayError(f"fold {i}: folds are numbered 1 to {len(self.folds)}")


def partition_given(training: Array, test: Array, concepts: Array, k: int, seed: str) -> Partition:
    """Folds of a training set that was given (video)."""
    rng = generator(seed, "video folds")
    folds = create_stratified_folds(concepts[training], k, rng)
    return Partition(tuple(training[fold] for fold in folds), np.zeros(0, dtype=np.int64), test)


def partition_stratified(
    scores: Array, k: int, share: float, n: int, seed: str, validation_cap: int | None = None
) -> Partition:
    """Training and test set, then n of the training set for the folds (text; plan, Fig. 3, 2.2 and 2.3).

    Args:
        scores: The one rating to predict.
        k: Folds.
        share: P, the share that is trained on.
        n: N, how many of these the folds have.
        seed: The secret.
        validation_cap: At most so many to tune on, stratified (the plan's footnote 5).
    """
    if not 0 < share < 1:
        hint = f"; did you mean {share / 100:g}?" if 1 < share < 100 else ""
        raise AssayError(f"P={share} is a fraction between 0 and 1{hint}")
    size = round_half_up(share, len(scores))
    if n > size:
        raise AssayError(f"N={n} instances to train classifiers on, but the training set has {size}")
    training = sample_stratified(scores, size, generator(seed, "training"))
    chosen = sample_stratified(scores[training], n, generator(seed, "folds of"))
    inside, rest = training[chosen], np.delete(training, chosen)
    folds = create_stratified_folds(scores[inside], k, generator(seed, "folds"))
    if validation_cap is not None and validation_cap < len(rest):
        rest = rest[sample_stratified(scores[rest], validation_cap, generator(seed, "cap"))]
    test = np.delete(np.arange(len(scores)), training)
    return Partition(tuple(inside[fold] for fold in folds), rest, test)


def generator(seed: str, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose, from the secret."""
    digest = hashlib.sha256(f"{seed}\n{purpose}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def new_secret() -> str:
    """A seed nobody can guess."""
    return secrets.token_hex(32)


def commitment(secret: str) -> str:
    """What is published before the evaluation, so that all can verify afterwards which seed it was.

    SHA-256 of the seed; a short seed could be guessed from it, so it is at least 16 characters long.

    Example:
        >>> commitment("a seed nobody can guess")[:16]
        '0b382f5fff267b15'
    """
    if len(secret) < 16:
        raise AssayError(f"the secret seed has {len(secret)} characters: a commitment hides only 16 or more")
    return hashlib.sha256(secret.encode()).hexdigest()


def verify_commitment(secret: str, published: str) -> None:
    """That the seed is the one promised."""
    if commitment(secret) != published:
        raise AssayError(f"the seed is not the one committed to: its SHA-256 is {commitment(secret)}, not {published}")
