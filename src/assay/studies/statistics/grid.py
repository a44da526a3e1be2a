"""The networks of a corpus as numbers: their scores, checked, and the levels of their hyper-parameters, numbered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]
Numbers = Sequence[float] | Array | pd.Series
Hyperparameters = Mapping[str, Sequence[Hashable] | Array | pd.Series] | pd.DataFrame


def checked(
    measures: Mapping[str, Numbers], gap: Numbers, hyperparameters: Hyperparameters | None = None
) -> tuple[Array, Array, Grid]:
    """Check the values of measures, gaps and hyper-parameters: all finite, of one length and in one order.

    Returns:
        The measures (measures × networks), the gap of each network, and the grid.
    """
    *rows, g = numbers({**measures, "gap": gap})
    if isinstance(hyperparameters, pd.DataFrame):
        for values in (*measures.values(), gap):
            _require_one_order({"the scores": values, "hyperparameters": hyperparameters})
    return np.stack(rows), g, Grid.of(hyperparameters, len(g))


def numbers(named: Mapping[str, Numbers]) -> list[Array]:
    """Check that rows are finite numbers of one length, one number per network; errors name the row.

    Example:
        >>> numbers({"measure": [1, 2], "gap": [0.1, 0.2]})
        [array([1., 2.]), array([0.1, 0.2])]
    """
    _require_one_order(named)
    arrays = {name: _finite(name, values) for name, values in named.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise AssayError(f"there must be one value per network, received numbers of values: {counts}")
    if min(lengths.values()) < 2:
        raise AssayError(f"{next(iter(lengths))} has {min(lengths.values())} networks: comparing needs two or more")
    return list(arrays.values())


@dataclass(frozen=True)
class Grid:
    """The hyper-parameters of a corpus, their levels numbered.

    Args:
        names: Names of the hyper-parameters.
        codes: Networks × hyper-parameters, each level as its number, from 0 in order of appearance.
        levels: The levels themselves, for each hyper-parameter.
    """

    names: tuple[str, ...]
    codes: Array
    levels: tuple[tuple[Hashable, ...], ...]

    @classmethod
    def of(cls, hyperparameters: Hyperparameters | None, networks: int) -> Grid:
        """Number the levels: two values are one level if they are equal, so 1 and 1.0 are, 1 and "1" are not.

        Args:
            hyperparameters: The value of each hyper-parameter in every network, in the order of the scores; None for
                no grid.
            networks: Number of networks.

        Example:
            >>> Grid.of({"depth": [1, 2, 1], "norm": ["batch", "batch", None]}, 3).codes.tolist()
            [[0, 0], [1, 0], [0, 1]]
        """
        columns = {} if hyperparameters is None else dict(hyperparameters.items())
        names = [str(name) for name in columns]
        if hyperparameters is not None and len(set(names)) < len(hyperparameters.keys()):
            raise AssayError(f"hyperparameters has two of one name: {list(hyperparameters.keys())}")
        lists = [v.tolist() if hasattr(v, "tolist") else list(v) for v in columns.values()]
        numbered = [_levels(name, values, networks) for name, values in zip(names, lists, strict=True)]
        codes = np.array([codes for codes, _ in numbered], dtype=np.int64).reshape(len(names), networks).T
        return cls(tuple(names), codes, tuple(levels for _, levels in numbered))

    def settings(self, chosen: Iterable[int]) -> Array:
        """For every network the number of its combination of the chosen hyper-parameters, from 0 without gaps."""
        settings = np.zeros(len(self.codes), dtype=np.int64)
        for h in chosen:
            settings = np.unique(settings * len(self.levels[h]) + self.codes[:, h], return_inverse=True)[1]
        return settings

    @property
    def cells(self) -> Array:
        """For every network the number of its combination of all hyper-parameters; its own where there are none.

        Networks of one cell differ in chance alone, such as their seed: they are no more independent of each other than
        their cell is of the others.
        """
        return self.settings(range(len(self.names))) if self.names else np.arange(len(self.codes))

    def one_apart(self, k: int) -> tuple[Array, Array]:
        """All pairs i < j of networks that differ in hyper-parameter k and in no other."""
        others = self.settings(h for h in range(len(self.names)) if h != k)
        level = self.codes[:, k]
        differ = (others[:, None] == others) & (level[:, None] != level)
        i, j = np.nonzero(np.triu(differ))
        return i, j


def _finite(name: str, values: Numbers) -> Array:
    on_device = getattr(values, "detach", None)
    try:
        array = np.asarray(values if on_device is None else on_device().cpu(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AssayError(f"{name} must be numbers, one per network: {error}") from error
    if array.ndim != 1:
        raise AssayError(f"{name} has shape {array.shape}: give one number per network")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        listed = ", ".join(map(str, bad[:10])) + (", …" if len(bad) > 10 else "")
        raise AssayError(f"{name} is NaN or infinite for network {listed} (from 0): leave out such networks")
    return array


def _levels(name: str, values: list[Hashable], networks: int) -> tuple[list[int], tuple[Hashable, ...]]:
    if len(values) != networks:
        raise AssayError(f"hyper-parameter {name!r} has {len(values)} values for {networks} networks")
    for i, value in enumerate(values):
        if value is pd.NA or value is pd.NaT or (isinstance(value, float | np.floating) and np.isnan(value)):
            raise AssayError(
                f"hyper-parameter {name!r} is missing for network {i} (from 0): name the level, such as 'none'"
            )
    numbers: dict[Hashable, int] = {}
    try:
        # Python takes True and 1 for equal: a flag and a count are not.
        keys = [(isinstance(v, bool | np.bool_), v) for v in values]
        codes = [numbers.setdefault(key, len(numbers)) for key in keys]
    except TypeError as error:
        raise AssayError(f"hyper-parameter {name!r} has a level that cannot be compared: {error}") from error
    if len(numbers) == 1:
        raise AssayError(
            f"hyper-parameter {name!r} is {values[0]!r} in all {networks} networks: leave it out, it is fixed anyway"
        )
    return codes, tuple(values[codes.index(c)] for c in range(len(numbers)))


def _require_one_order(named: Mapping[str, Any]) -> None:
    """Raise unless all pandas objects share one index: otherwise networks would be paired by chance."""
    indexed = {name: values.index for name, values in named.items() if isinstance(values, pd.Series | pd.DataFrame)}
    for name, index in indexed.items():
        first = next(iter(indexed))
        if not indexed[first].equals(index):
            raise AssayError(f"{first} and {name} do not have the same index: put networks in one order")
