"""Columns of a table that somebody wrote: what their cells are, and what their names say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from assay.core.errors import AssayError

_MISSING = ("", "nan", "na", "n/a", "null", "none", "-", "–")
_TRUTH = {"true": True, "false": False}


def normal(column: str) -> str:
    """The name of a column in lower case with ``_`` between its words.

    >>> normal("Train Acc"), normal("gen-gap")
    ('train_acc', 'gen_gap')
    """
    return re.sub(r"[^0-9a-z]+", "_", column.lower()).strip("_")


def typed(texts: pd.Series) -> pd.Series:
    """The cells of a column as what they are: whole numbers, numbers, truth values or words.

    A cell that is empty or says that nothing is known is NaN among numbers. Whole numbers with leading zeros are words:
    they are names.

    >>> typed(pd.Series(["1", "2"])).tolist(), typed(pd.Series(["0.5", "", "nan"])).tolist()
    ([1, 2], [0.5, nan, nan])
    >>> typed(pd.Series(["none", "full"])).tolist(), typed(pd.Series(["007", "8"])).tolist()
    (['none', 'full'], ['007', '8'])
    """
    cells = [str(text) for text in texts]
    if all(re.fullmatch(r"[-+]?(0|[1-9]\d{0,17})", cell) for cell in cells):
        return pd.Series([int(cell) for cell in cells], dtype=np.int64)
    if all(cell.lower() in _TRUTH for cell in cells):
        return pd.Series([_TRUTH[cell.lower()] for cell in cells], dtype=bool)
    known = [cell for cell in cells if cell.lower() not in _MISSING]
    if known and all(_is_number(cell) for cell in known):
        return pd.Series([np.nan if cell.lower() in _MISSING else float(cell) for cell in cells], dtype=np.float64)
    return pd.Series(cells, dtype=object)


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|inf(inity)?)", cell, re.IGNORECASE)) and not (
        re.match(r"[-+]?0\d", cell)
    )


def as_shares(path: Path, column: str, numbers: pd.Series, notes: list[str]) -> pd.Series:
    """Accuracies between 0 and 1; percentages are divided by 100, and a sentence says so."""
    shares = numbers.astype(float)
    if (shares > 1).any() and ((shares >= 0) & (shares <= 100)).where(shares.notna(), True).all():
        notes.append(f"{column!r} goes up to {shares.max():g}: it is taken for percentages")
        shares = shares / 100
    outside = shares[shares.notna() & ~((shares >= 0) & (shares <= 1))]
    if len(outside):
        raise AssayError(f"{path}: {column!r} holds {outside.iloc[0]:g}, which is no accuracy: give shares from 0 to 1")
    return shares
