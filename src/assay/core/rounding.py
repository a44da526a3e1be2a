"""Whole numbers of products and quotients of floating-point numbers."""

from __future__ import annotations

import math

_TRACE = 1e-9  # more than what floating point adds to a product of counts and shares, less than one part of any count


def ceiling(x: float) -> int:
    """⌈x⌉, in which what floating point has added does not count: 7 for 0.01·700, which is 7.000000000000001.

    Example:
        >>> ceiling(0.01 * 700), ceiling(0.01 * 701)
        (7, 8)
    """
    return math.ceil(x - _TRACE)
