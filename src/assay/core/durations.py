"""Times in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time in the unit in which people say it.

    Example:
        >>> duration(48), duration(200), duration(9000)
        ('48 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
