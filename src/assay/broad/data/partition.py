"""Which instances are trained on, tuned on and tested on: stratified samples and folds, from a secret seed.

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
    """Draw the numbers of n instances, ascending, whose labels are distributed as those of all (plan, Fig. 6).

    Instances are drawn without replacement. A class c with the share p_c gets ⌊n·p_c⌋ instances or one more: what
    rounding down leaves over goes to the largest remainders; ties go to the larger class, then to the lower label.

    Args:
        labels: Label of each instance.
        n: Number of instances to draw.
        rng: Generator of the random draws.

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
    """Share out ``total`` as whole numbers in the proportions of whole weights w: ⌊total·w/Σw⌋ each, or one more.

    What rounding down leaves over goes to the largest remainders; ties go to the larger weight, then to the first.

    Example:
        >>> apportioned(10, np.array([750, 68, 5])).tolist()
        [9, 1, 0]
    """
    counts, remainders = np.divmod(total * weights, weights.sum())
    order = np.lexsort((-weights, -remainders))
    counts[order[: total - counts.sum()]] += 1
    return np.asarray(counts)


def create_stratified_folds(concepts: Array, k: int, rng: np.random.Generator | None = None) -> list[Array]:
    """Deal instances, ordered by concept frequency, into k folds like cards; give their numbers (plan, Fig. 7).

    Fold sizes differ by at most one, and so do the folds' shares of every concept.

    Args:
        concepts: The concept of each instance; where it has several labels, the first (`first_labels`).
        k: Number of folds.
        rng: Generator that shuffles instances within a concept; None keeps the order of the file.

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
    """Round a share of n to a whole number, halves up: 0.7 of 433,697 is 303,588.

    Example:
        >>> round_half_up(0.7, 433_697)
        303588
    """
    return int(Fraction(str(share)) * n + Fraction(1, 2))


@dataclass(frozen=True, eq=False)
class Partition:
    """Which instances are trained on, tuned on and tested on, by number in the data set.

    Args:
        folds: Instances of each fold; a fold trains one classifier, tuned on the other folds and on ``validation``.
        validation: Further instances to tune on, and to learn from without labels; empty for video.
        test: Instances on which all classifiers are scored.
    """

    folds: tuple[Array, ...]
    validation: Array
    test: Array

    @property
    def training(self) -> Array:
        """All folds together, sorted by number: folds are ordered by label, and systems must not see that order."""
        return np.sort(np.concatenate(self.folds))

    def get_fold(self, i: int) -> Array:
        """The instances of fold i, from 1 to K."""
        self._require(i)
        return self.folds[i - 1]

    def complement(self, i: int) -> Array:
        """The instances of all folds but fold i; none where it is the only one."""
        self._require(i)
        others = [fold for j, fold in enumerate(self.folds, 1) if j != i]
        return np.concatenate(others) if others else np.zeros(0, dtype=np.int64)

    @property
    def hash(self) -> str:
        """SHA-256 of the partition, equal for all runs of a task."""
        digest = hashlib.sha256()
        for part in (*self.folds, self.validation, self.test):
            digest.update(len(part).to_bytes(8, "little") + np.asarray(part, dtype="<i8").tobytes())
        return digest.hexdigest()

    def _require(self, i: int) -> None:
        if not 1 <= i <= len(self.folds):
            raise AssayError(f"fold {i}: folds are numbered 1 to {len(self.folds)}")


def partition_given(training: Array, test: Array, concepts: Array, k: int, seed: str) -> Partition:
    """Divide a given training set into folds (video).

    Args:
        training: Numbers of the training instances.
        test: Numbers of the test instances.
        concepts: The concept of each instance of the data set.
        k: Number of folds.
        seed: The secret seed.
    """
    rng = generator(seed, "video folds")
    folds = create_stratified_folds(concepts[training], k, rng)
    return Partition(tuple(training[fold] for fold in folds), np.zeros(0, dtype=np.int64), test)


def partition_stratified(
    scores: Array, k: int, share: float, n: int, seed: str, validation_cap: int | None = None
) -> Partition:
    """Draw training and test set, then n training instances for the folds (text; plan, Fig. 3, 2.2 and 2.3).

    Args:
        scores: The one rating to predict.
        k: Number of folds.
        share: P, the share of instances in the training set.
        n: N, the number of training instances that make the folds.
        seed: The secret seed.
        validation_cap: The largest number of further instances to tune on, stratified (the plan's footnote 5).
    """
    if not 0 < share < 1:
        hint = f"; did you mean {share / 100:g}?" if 1 < share < 100 else ""
        raise AssayError(f"P={share} is a fraction between 0 and 1{hint}")
    size = round_half_up(share, len(scores))
    if n > size:
        raise AssayError(f"N={n} instances to train classifiers on, but the training set has {size}")
    training = sample_stratified(scores, size, generator(seed, "training"))
    chosen = sample_stratified(scores[training], n, generator(seed, "folds of"))
    in_folds = training[chosen]
    rest = np.delete(training, chosen)
    folds = create_stratified_folds(scores[in_folds], k, generator(seed, "folds"))
    if validation_cap is not None and validation_cap < len(rest):
        rest = rest[sample_stratified(scores[rest], validation_cap, generator(seed, "cap"))]
    test = np.delete(np.arange(len(scores)), training)
    return Partition(tuple(in_folds[fold] for fold in folds), rest, test)


def generator(seed: str, purpose: str) -> np.random.Generator:
    """Make a generator of random numbers for one purpose, from the secret seed."""
    digest = hashlib.sha256(f"{seed}\n{purpose}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def new_secret() -> str:
    """Make a seed that nobody can guess."""
    return secrets.token_hex(32)


def commitment(secret: str) -> str:
    """The commitment to a seed: published before the evaluation, it lets everyone verify the seed afterwards.

    It is the SHA-256 of the seed; a short seed could be guessed from it, so a seed has at least 16 characters.

    Example:
        >>> commitment("a seed nobody can guess")[:16]
        '0b382f5fff267b15'
    """
    if len(secret) < 16:
        raise AssayError(f"the secret seed has {len(secret)} characters: a commitment hides only 16 or more")
    return hashlib.sha256(secret.encode()).hexdigest()


def verify_commitment(secret: str, published: str) -> None:
    """Raise an error unless the seed is the one committed to."""
    if commitment(secret) != published:
        raise AssayError(f"the seed is not the one committed to: its SHA-256 is {commitment(secret)}, not {published}")
