"""Values as the cells of a table show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def said(value: Any) -> str:
    """Write a value as the words of a cell: yes and no for truth values, a dash for what is missing.

    >>> said(True), said(np.bool_(False)), said(float("nan")), said("with 6n")
    ('yes', 'no', '–', 'with 6n')
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return "–" if value is None or pd.isna(value) else str(value)


def signed(number: float) -> str:
    """Write a number with its sign and three digits; the sign is a minus, after which no line ends, as after a hyphen.

    >>> signed(0.0312), signed(-0.25), signed(-0.0001)
    ('+0.031', '−0.250', '0.000')
    """
    text = f"{number:+.3f}"
    return "0.000" if float(text) == 0 else text.replace("-", "−")


def p_value(p: float) -> str:
    """Write a p value with three digits, but never as 0.

    >>> p_value(0.0312), p_value(1e-9)
    ('0.031', '<\xa00.001')
    """
    return "<\u00a00.001" if p < 0.001 else f"{p:.3f}"


def settings_text(settings: dict[str, Any]) -> str:
    """Write settings by name, numbers without trailing zeros; a dash where there are none.

    >>> settings_text({"C": 32.0, "kernel": "linear"}), settings_text({})
    ('C = 32, kernel = linear', '–')
    """
    return ", ".join(f"{k} = {f'{v:g}' if isinstance(v, float) else v}" for k, v in settings.items()) or "–"
