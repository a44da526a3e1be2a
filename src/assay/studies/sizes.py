"""On how many hyper-parameters at once a corpus allows to condition."""

from __future__ import annotations

import pandas as pd

from assay.core.errors import AssayError
from assay.studies.statistics.cmi import ConditionalMutualInformation
from assay.studies.statistics.grid import checked


def defined_sizes(gap: pd.Series, hyperparameters: pd.DataFrame) -> tuple[int, ...]:
    """The size of the sets of hyper-parameters that PGDL conditions on, 2, or the largest below it that is possible.

    Of networks that differ in two hyper-parameters, one network for each combination, none is left to compare where
    both are given: conditional mutual information then takes one at a time.

    Example:
        >>> grid = pd.DataFrame({"width": [1, 1, 2, 2, 3, 3], "depth": [1, 2, 1, 2, 1, 2]})
        >>> defined_sizes(pd.Series([0.1, 0.2, 0.3, 0.5, 0.4, 0.6]), grid)
        (1,)
    """
    _, values, grid = checked({"measure": gap}, gap, hyperparameters)
    for size in (2, 1):
        try:
            ConditionalMutualInformation(sizes=(size,)).check(values, grid)
        except AssayError:
            continue
        return (size,)
    return (0,)


def notes_on_sizes(sizes: tuple[int, ...], grid: pd.DataFrame) -> list[str]:
    """What a reader must know where fewer than two hyper-parameters are given at a time; nothing otherwise."""
    if sizes[0] == 2:
        return []
    notes = [f"the hyper-parameters given at a time are {sizes[0]}: these networks do not allow 2"]
    own = [str(name) for name in grid if grid[name].nunique() == len(grid)]
    if own:
        notes.append(
            f"every network has a value of its own of {', '.join(own)}, which therefore cannot be held constant: if it "
            "only names the networks, leave it out of the hyper-parameters"
        )
    return notes
