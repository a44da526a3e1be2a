"""Data of an evaluation: what a system sees (no labels), and what the evaluators know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from assay.core.errors import AssayError
from assay.stimuli.clips import Clip

Array = np.ndarray[Any, Any]
Modality = Literal["video", "text"]
# Features of n instances: a matrix of n rows, or a list of n arrays where instances differ in size (clips T×H×W, or
# bags of vectors m×d, one vector for each window of a clip).
Features: TypeAlias = Array | sparse.csr_matrix | list[Array]
Items: TypeAlias = Sequence[str] | Sequence[Clip] | sparse.csr_matrix


@dataclass(frozen=True, eq=False)
class Inputs:
    """Instances as a system sees them: there is no place for labels.

    Args:
        items: Reviews as strings, or as a sparse matrix of term counts where the text itself is not available;
            or clips.
        ids: One name for each instance.
    """

    items: Items
    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        items: Any = self.items
        count = items.shape[0] if sparse.issparse(items) else len(items)
        if count != len(self.ids):
            raise AssayError(f"{count} instances have {len(self.ids)} ids")

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, indices: Array) -> Inputs:
        """Take the instances with the given numbers, in that order."""
        items: Any = self.items
        chosen = items[indices] if sparse.issparse(items) else [items[i] for i in indices]
        return Inputs(chosen, tuple(self.ids[i] for i in indices))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Instances, and what is to be predicted of each.

    Args:
        name: Name of the data set.
        modality: ``"video"`` or ``"text"``.
        inputs: The instances as systems see them.
        targets: What is to be predicted. For video, instances × classes, True where a clip shows the action; for text,
            instances × ratings, NaN where a rating is missing.
        labels: Names of the classes or ratings.
        groups: Number of the group that each instance belongs to (the film of a clip, the restaurant of a review).
    """

    name: str
    modality: Modality
    inputs: Inputs
    targets: Array
    labels: tuple[str, ...]
    groups: Array | None = None

    def __post_init__(self) -> None:
        if self.targets.shape != (len(self.inputs), len(self.labels)):
            raise AssayError(
                f"{self.name}: targets are {self.targets.shape}, "
                f"there are {len(self.inputs)} instances and {len(self.labels)} labels"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, indices: Array) -> Dataset:
        """Take the instances with the given numbers, in that order."""
        groups = None if self.groups is None else self.groups[indices]
        return replace(self, inputs=self.inputs.take(indices), targets=self.targets[indices], groups=groups)

    def only(self, label: str) -> Dataset:
        """Keep one label only, and only the instances that have it."""
        column = self.targets[:, self.labels.index(label)]
        known = np.flatnonzero(np.isfinite(column)) if column.dtype.kind == "f" else np.arange(len(self))
        return replace(self.take(known), targets=column[known, None], labels=(label,))
