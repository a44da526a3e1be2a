"""Trials of object matching: a probe, and a gallery with exactly one other picture of the same object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from assay.core.errors import AssayError
from assay.core.limits import require_array
from assay.stimuli.objects import ObjectPictures
from assay.stimuli.pictures import Array

ANY: Final = "any"
ALIKE: Final = "alike"
DISTRACTORS = (ANY, ALIKE)
MIX = "mix"
UNKNOWN = "any"
"""What the factor is called where nothing is known of the conditions."""


@dataclass(frozen=True, eq=False)
class Galleries:
    """Trials of object matching, as numbers of pictures.

    Args:
        probes: The probe of each trial.
        pictures: The gallery of each trial, trials × pictures; the first is the match.
        factor: In what the match differs from the probe: a factor, ``mix``, or ``any``.
        factors: The factors in their order.
    """

    probes: Array
    pictures: Array
    factor: Array
    factors: tuple[str, ...]


def draw_galleries(objects: ObjectPictures, size: int, trials: int, distractors: str = ANY, seed: int = 0) -> Galleries:
    """Draw trials: for each factor and object, probes and matches that differ in that factor, and their galleries.

    Args:
        objects: The pictures.
        size: Number of pictures in a gallery: the match, and one each of ``size`` − 1 other objects.
        trials: Number of trials for each factor and object; all pairs of pictures where they are fewer.
        distractors: ``"any"`` picture of other objects, or those ``"alike"``: under the conditions of the match.
        seed: Seed of the random draws.

    Example:
        >>> angles = np.array([0, 90, 0, 90])
        >>> pictures = ObjectPictures(np.zeros((4, 1, 2, 2)), np.array([0, 0, 1, 1]), factors={"rotation": angles})
        >>> drawn = draw_galleries(pictures, size=2, trials=2, distractors="alike")
        >>> sorted(zip(drawn.probes.tolist(), drawn.pictures.tolist()))
        [(0, [1, 3]), (1, [0, 2]), (2, [3, 1]), (3, [2, 0])]
    """
    rng = np.random.default_rng(seed)
    levels = objects.levels()
    pairs = _pairs(objects, levels)
    names = [*objects.factors, *([MIX] if len(objects.factors) > 1 else [])] or [UNKNOWN]
    probes: list[Array] = []
    matches: list[Array] = []
    factor: list[str] = []
    for kind, name in enumerate(names):
        for of_object in pairs:
            first, second = (numbers[of_object.kind == kind] for numbers in (of_object.probes, of_object.matches))
            drawn = rng.permutation(len(first))[:trials]
            probes.append(first[drawn])
            matches.append(second[drawn])
            factor += [name] * len(drawn)
    if not factor:
        raise AssayError(
            f"objects ({objects.source}): no object has two pictures that differ in {' or '.join(names)}; object "
            "matching needs at least two pictures of an object"
        )
    probe, match = np.concatenate(probes), np.concatenate(matches)
    others = _distractors(objects, levels, match, size - 1, distractors, rng)
    drawn_factors = np.array(factor)
    present = tuple(name for name in names if name in factor)
    return Galleries(probe, np.concatenate([match[:, None], others], axis=1), drawn_factors, present)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs of different pictures of one object, and the number of the factor in which they differ.

    The number of pairs that differ in several factors is that of the factors.
    """

    probes: Array
    matches: Array
    kind: Array


def _pairs(objects: ObjectPictures, levels: Array) -> list[_Pairs]:
    pairs = []
    for label in np.unique(objects.labels):
        numbers = np.flatnonzero(objects.labels == label)
        require_array(f"all pairs of {len(numbers)} pictures of an object", (8 + levels.shape[1], len(numbers) ** 2), 8)
        first, second = (axis.ravel() for axis in np.meshgrid(numbers, numbers, indexing="ij"))
        differs = levels[first] != levels[second]
        count = differs.sum(axis=1)
        if not levels.shape[1]:
            different = first != second
            kind = np.zeros(len(first), dtype=int)
        else:
            different = count > 0  # so never the same picture
            kind = np.where(count > 1, levels.shape[1], differs.argmax(axis=1))
        pairs.append(_Pairs(first[different], second[different], kind[different]))
    return pairs


def _distractors(
    objects: ObjectPictures, levels: Array, matches: Array, count: int, how: str, rng: np.random.Generator
) -> Array:
    """Pictures of other objects for each match, trials × count, of a different object each."""
    labels, of_picture = np.unique(objects.labels, return_inverse=True)
    own = of_picture[matches]
    order = np.argsort(rng.random((len(matches), len(labels) - 1)), axis=1)[:, :count]
    others = order + (order >= own[:, None])  # all objects but the own
    if how == ALIKE:
        return _under_the_same_conditions(objects, levels, matches, others, of_picture)
    by_object = np.argsort(of_picture, kind="stable")
    sizes = np.bincount(of_picture)
    first = np.cumsum(sizes) - sizes
    drawn: Array = by_object[first[others] + rng.integers(sizes[others])]
    return drawn


def _under_the_same_conditions(
    objects: ObjectPictures, levels: Array, matches: Array, others: Array, of_picture: Array
) -> Array:
    if not levels.shape[1]:
        raise AssayError(f"distractors='alike' needs known conditions, and {objects.source} has no factors: use 'any'")
    condition = np.unique(levels, axis=0, return_inverse=True)[1].reshape(-1)
    table = np.full((of_picture.max() + 1, condition.max() + 1), -1)
    table[of_picture, condition] = np.arange(len(objects))
    shown = table[others, condition[matches][:, None]]
    if (shown < 0).any():
        trial, place = np.argwhere(shown < 0)[0]
        raise AssayError(
            f"distractors='alike': object {others[trial, place]} of {objects.source} has no picture under the "
            f"conditions of picture {matches[trial]}; use distractors='any'"
        )
    return shown
