"""Numbers of networks in sentences: each with its interval, or, of many networks, how they are spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assay.report.many import MANY, spread_in_words
from assay.stats.differences import interval
from assay.stats.evidence import Evidence


def number_sentences(evidence: Mapping[str, Sequence[Evidence]]) -> list[str]:
    """A sentence for each key number: its value for every network, with the interval where there is one."""
    by_quantity: dict[str, dict[str, Evidence]] = {}
    for subject, numbers in evidence.items():
        for number in numbers:
            by_quantity.setdefault(number.quantity, {})[subject] = number
    return [f"{quantity[:1].upper()}{quantity[1:]}: {_said(of)}." for quantity, of in by_quantity.items()]


def _said(of: Mapping[str, Evidence]) -> str:
    values = {name: number.value for name, number in of.items() if np.isfinite(number.value)}
    if len(values) > MANY:
        return spread_in_words(values, next(iter(of.values())).unit)
    return ", ".join(_of_one(name, number) for name, number in of.items())


def _of_one(name: str, number: Evidence) -> str:
    if not np.isfinite(number.value):
        return f"none for {name} ({number.status})"
    bounds = interval(number)
    spread = "" if bounds is None else f" ({digits(bounds[0])} to {digits(bounds[1])})"
    return f"{name} {digits(number.value)}{number.unit}{spread}"


def digits(value: float, form: str = ".3g") -> str:
    """A number for readers, with a minus sign that is no hyphen.

    Example:
        >>> digits(-0.12345), digits(2.0, "+.1f")
        ('−0.123', '+2.0')
    """
    return f"{value:{form}}".replace("-", "−")
