"""What a test set is worth: its instances, how many of them are distinct, and what is drawn when it is drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.broad.data.dataset import Array
from assay.stats.degrees_of_freedom import effective_groups

FEW = 20  # groups; with fewer, a variance over groups is too uncertain to go without a warning


@dataclass(frozen=True)
class Extent:
    """How many test instances there are, and how many of them are independent.

    Args:
        instances: Number of test instances; a review that is tested on for three ratings counts three times.
        distinct: Number of distinct instances; such a review counts once.
        groups: Number of groups (films, restaurants) that they belong to; None where there are none.
        units: Number of the units that are drawn as a whole.
        effective: Number of equal units that are worth as much (`effective_groups`).
    """

    instances: int
    distinct: int
    groups: int | None
    units: int
    effective: float

    @property
    def few(self) -> bool:
        """Whether the groups are so few, or so unequal, that a reader must be warned."""
        return self.groups is not None and self.effective < FEW

    @property
    def inflation(self) -> float:
        """Factor that makes the variance over draws of G units unbiased: G/(G − 1); 1 where there is only one."""
        return self.units / (self.units - 1) if self.units > 1 else 1.0


def drawn_units(groups: Sequence[Array | None], ids: Sequence[tuple[str, ...] | None]) -> list[Array | None]:
    """The unit that each instance is drawn with, for the tasks of one family, which share their draws.

    Groups where there are groups. Otherwise a review that is in the test sets of several ratings is one unit, told by
    its id, so that what the ratings have in common counts. None where every instance is a unit of its own.

    Args:
        groups: Groups of the instances of each task; None where a task has none.
        ids: Ids of the instances of each task; None where they are not known.
    """
    named = [np.array(task_ids) for task_ids in ids if task_ids is not None]
    if len(groups) < 2 or len(named) < len(ids) or any(g is not None for g in groups):
        return list(groups)
    numbers = np.unique(np.concatenate(named), return_inverse=True)[1]
    return list(np.split(numbers, np.cumsum([len(task_ids) for task_ids in named])[:-1]))


def extent(sizes: Sequence[int], groups: Sequence[Array | None], ids: Sequence[tuple[str, ...] | None]) -> Extent:
    """Count the instances of one task, or of several tasks of a family together.

    Args:
        sizes: Number of test instances of each task.
        groups: Groups of the instances of each task; None where a task has none.
        ids: Ids of the instances of each task; None where they are not known.
    """
    instances = sum(sizes)
    known = [i for task_ids in ids if task_ids is not None for i in task_ids]
    distinct = len(set(known)) if len(known) == instances else instances
    declared = [g for g in groups if g is not None]
    if len(declared) == len(groups):
        members = np.concatenate(declared)
        count = len(np.unique(members))
        return Extent(instances, distinct, count, count, effective_groups(members))
    return Extent(instances, distinct, None, distinct, float(distinct))
