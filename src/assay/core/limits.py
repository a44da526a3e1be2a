"""Limits: sizes and counts that are refused before memory is asked for, each with its name and how to raise it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from assay.core.errors import AssayError

BYTES = "ASSAY_MOST_BYTES"
"""Environment variable: the most bytes that one array, one clip, one network or one batch may take."""
COUNT = "ASSAY_MOST_COUNT"
"""Environment variable: the most of what is only counted, such as stimuli, frames, resamples or epochs."""
OBJECTS = "ASSAY_MOST_OBJECTS"
"""Environment variable: the most of what is made one by one and kept, such as clips, rendered objects or networks."""
_DEFAULTS = {BYTES: 2**32, COUNT: 1_000_000, OBJECTS: 20_000}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def limit(name: str) -> int:
    """The limit of this name: its environment variable, or its default: 4 GiB, a million, and 20,000 objects.

    Example:
        >>> limit(BYTES) == 2**32
        True
    """
    text = os.environ.get(name, "")
    if not text:
        return _DEFAULTS[name]
    try:
        most = int(float(text))
    except (ValueError, OverflowError):
        raise AssayError(f"{name}={text} in the environment is no number: give one such as {name}=4e9") from None
    return most


def require_bytes(what: str, amount: float) -> None:
    """Refuse what would take more memory than `BYTES` allows, before it is asked for.

    Args:
        what: What takes the memory, as the error begins.
        amount: How many bytes it would take.

    Example:
        >>> require_bytes("size=100000", 3 * 4 * 100000**2)
        Traceback (most recent call last):
        assay.core.errors.AssayError: size=100000 would take 111.8 GiB of memory, and the limit is 4.0 GiB: ask for \
less, or set ASSAY_MOST_BYTES
    """
    most = limit(BYTES)
    if amount > most:
        raise AssayError(
            f"{what} would take {_size(amount)} of memory, and the limit is {_size(most)}: ask for less, or set {BYTES}"
        )


def require_array(what: str, shape: Iterable[float], itemsize: int = 4) -> None:
    """Refuse an array of this shape where it would take more memory than `BYTES` allows.

    Args:
        what: What makes the array, as the error begins.
        shape: Length of each axis.
        itemsize: Bytes of each element; 4 by default, those of a float32.
    """
    require_bytes(what, math.prod(shape) * itemsize)


def require_count(what: str, count: float, name: str = COUNT) -> None:
    """Refuse more of something than the limit allows.

    Args:
        what: What there would be so many of, as the error begins, such as ``bootstrap=1000000000``.
        count: How many there would be.
        name: Name of the limit: `COUNT`, or `OBJECTS` for what is made one by one and kept.

    Example:
        >>> require_count("trials=100000000", 100_000_000)
        Traceback (most recent call last):
        assay.core.errors.AssayError: trials=100000000 is more than the limit of 1,000,000: ask for less, or set \
ASSAY_MOST_COUNT
    """
    most = limit(name)
    if count > most:
        raise AssayError(f"{what} is more than the limit of {most:,}: ask for less, or set {name}")


def _size(amount: float) -> str:
    """An amount of memory in the unit that suits it."""
    unit = 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} bytes" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
