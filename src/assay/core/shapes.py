"""Shapes of inputs as people write them."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

from assay.core.errors import AssayError, shown
from assay.core.limits import require_array

_BYTES = 64  # of a value of the input: those of a float32, 16 times, as the first layer takes at least


def shape_of(shape: Any, argument: str = "shape") -> tuple[int, ...]:
    """Read the shape of one input: whole numbers above 0, in a list or as text such as 3x32x32.

    Args:
        shape: The shape as it was given.
        argument: What an error calls it.

    Example:
        >>> shape_of("3x32x32"), shape_of([10])
        ((3, 32, 32), (10,))
    """
    sides: tuple[int, ...] = ()
    with suppress(TypeError, ValueError):
        if isinstance(shape, str):
            sides = tuple(map(int, shape.replace("×", "x").split("x")))
        else:
            sides = tuple(-1 if isinstance(side, bool) else operator.index(side) for side in shape)
    if not sides or min(sides) < 1:
        given = repr(shape) if isinstance(shape, (tuple, list)) else shown(shape)
        raise AssayError(
            f"{argument}={given} is not the shape of one input: give whole numbers above 0, as (3, 32, 32), or "
            "text such as 3x32x32"
        )
    require_array(f"{argument}={'×'.join(map(str, sides))}", sides, _BYTES)
    return sides
