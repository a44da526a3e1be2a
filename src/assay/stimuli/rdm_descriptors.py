"""Names of RDMs and stimuli from rsatoolbox's descriptors: lists by key, of which one may name each without doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.core.errors import AssayError, nearest

_NUMBERS = "index"  # rsatoolbox numbers RDMs and patterns under this key, which names nothing
_OF_RDMS = ("name", "subject", "session")
_OF_STIMULI = ("stimulus", "stimuli", "image", "condition", "conds", "name")


def rdm_names(descriptors: Mapping[str, Any], key: str | None = None) -> tuple[str, ...]:
    """The names of RDMs from their descriptors; none where no descriptor tells every RDM from the others.

    Args:
        descriptors: rsatoolbox's ``rdm_descriptors``.
        key: The descriptor to take. By default ``name``, ``subject`` and ``session``, as many of them, in this order,
            as it takes for every RDM to have a name of its own; else any other text or whole number that does.

    Example:
        >>> rdm_names({"index": [0, 1], "subject": ["anna", "ben"]})
        ('anna', 'ben')
        >>> rdm_names({"subject": ["anna", "anna", "ben", "ben"], "session": [1, 2, 1, 2]})
        ('anna 1', 'anna 2', 'ben 1', 'ben 2')
        >>> rdm_names({"index": [0, 1], "region": ["IT", "IT"]})
        ()
    """
    return _chosen(descriptors, key, _OF_RDMS, "rdm_descriptors")


def stimulus_names(descriptors: Mapping[str, Any], key: str | None = None) -> tuple[str, ...]:
    """The names of stimuli from their descriptors; none where no descriptor tells every stimulus from the others.

    Args:
        descriptors: rsatoolbox's ``pattern_descriptors``.
        key: The descriptor to take. By default ``stimulus``, ``stimuli``, ``image``, ``condition``, ``conds`` and
            ``name``, as many of them, in this order, as it takes for every stimulus to have a name of its own; else any
            other text or whole number that does.
    """
    return _chosen(descriptors, key, _OF_STIMULI, "pattern_descriptors")


def _chosen(descriptors: Mapping[str, Any], key: str | None, usual: tuple[str, ...], where: str) -> tuple[str, ...]:
    if key is not None:
        if key not in descriptors:
            raise AssayError(f"{where} has no {key!r}{nearest(key, list(descriptors))}")
        return tuple(map(str, descriptors[key]))
    known = [[str(value) for value in descriptors[word]] for word in usual if word in descriptors]
    joined = [[" ".join(parts) for parts in zip(*known[:some], strict=True)] for some in range(1, len(known) + 1)]
    others = [
        [str(value) for value in values]
        for word, values in descriptors.items()
        if word not in (*usual, _NUMBERS) and np.asarray(values).dtype.kind in "USiu"
    ]
    return next((tuple(names) for names in [*joined, *others] if len(set(names)) == len(names)), ())
