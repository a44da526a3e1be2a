"""Memory for slow work on arrays, done once for all settings of a classifier that are tried on the same arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from assay.broad.systems.classifiers.classifier import Classifier


class Remembered:
    """Keeps results of slow work on arrays, by the arrays they were computed from.

    Arrays are distinguished by identity, which is quick, and safe because they are kept as long as the result: no other
    array can have their place in memory. They must not be changed. The least recently used results go when what is
    kept exceeds ``limit`` bytes. Copies and pickles begin empty.
    """

    def __init__(self, limit: int = 2**29) -> None:
        self.limit = limit
        self._kept: OrderedDict[tuple[Any, ...], tuple[tuple[Any, ...], Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type[Remembered], tuple[int]]:
        return Remembered, (self.limit,)

    def __call__(self, what: str, arrays: tuple[Any, ...], work: Callable[[], Any]) -> Any:
        """Give the result of ``work()``, or the one kept from an earlier call."""
        key = (what, *map(id, arrays))
        if key not in self._kept:
            result = work()
            self._kept[key] = (arrays, result, _size(result) + sum(map(_size, arrays)))
            while len(self._kept) > 1 and sum(size for *_, size in self._kept.values()) > self.limit:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key][1]


class Remembering(Classifier):
    """A classifier whose copies with other settings share what it remembers."""

    @cached_property
    def _remembered(self) -> Remembered:
        return Remembered()

    def with_settings(self, **chosen: Any) -> Self:
        """Make a fresh copy that has learned nothing, with some settings changed, and shares what is remembered."""
        copy = super().with_settings(**chosen)
        copy._remembered = self._remembered
        return copy


def _size(value: Any) -> int:
    if sparse.issparse(value):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else int(np.asarray(value).nbytes)
