"""Times in words, and words for times."""

from __future__ import annotations

import math
import re
from typing import Any

from assay.core.errors import AssayError, shown

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def duration(seconds: float) -> str:
    """A time in the unit in which people say it.

    Example:
        >>> duration(48), duration(200), duration(9000)
        ('48 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def seconds_of(time: Any, argument: str = "seconds") -> float:
    """Read a time in seconds: a number of them, or text such as 90s, 10m or 2h.

    Args:
        time: The time as it was given.
        argument: What an error calls it.

    Example:
        >>> seconds_of("10m"), seconds_of("1.5h"), seconds_of("45"), seconds_of(30)
        (600.0, 5400.0, 45.0, 30.0)
    """
    seconds = math.nan
    if isinstance(time, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|)", time.strip())
        seconds = math.nan if match is None else float(match[1]) * _UNITS[match[2]]
    elif not isinstance(time, bool):
        try:
            seconds = float(time)
        except (TypeError, ValueError):
            seconds = math.nan
    if not 0 < seconds < math.inf:
        raise AssayError(
            f"{argument}={shown(time)} is not a time above 0: give seconds, or text such as 90s, 10m or 2h"
        )
    return seconds
