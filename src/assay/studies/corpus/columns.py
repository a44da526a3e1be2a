"""Columns of a table that somebody wrote: what their cells are, and what their names say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from assay.core.errors import AssayError

_MISSING = ("", "nan", "na", "n/a", "null", "none", "-", "–")
_TRUTH = {"true": True, "false": False}
_IN_ANY_NOTATION = re.compile(r"(?![-+]?0\d)[-+]?[\d.,'’_\s]*\d[\d.,'’_\s]*([eE][-+]?\d+)?\s?%?")


def normal(column: str) -> str:
    """The name of a column in lower case with ``_`` between its words.

    >>> normal("Train Acc"), normal("gen-gap")
    ('train_acc', 'gen_gap')
    """
    return re.sub(r"[^0-9a-z]+", "_", column.lower()).strip("_")


def typed(texts: pd.Series, decimal_comma: bool = False) -> pd.Series:
    """The cells of a column as what they are: whole numbers, numbers, truth values or words.

    A cell that is empty or says that nothing is known is NaN among numbers. Numbers with a percent sign are shares.
    Whole numbers with leading zeros are words: they are names.

    Args:
        texts: The cells.
        decimal_comma: Whether a comma may stand where a decimal point stands: in all numbers of the column, or none.

    Example:
        >>> typed(pd.Series(["1", "2"])).tolist(), typed(pd.Series(["0.5", "", "nan"])).tolist()
        ([1, 2], [0.5, nan, nan])
        >>> typed(pd.Series(["none", "full"])).tolist(), typed(pd.Series(["007", "8"])).tolist()
        (['none', 'full'], ['007', '8'])
        >>> typed(pd.Series(["50%", "7.5 %"])).tolist(), typed(pd.Series(["0,5", "1"]), decimal_comma=True).tolist()
        ([0.5, 0.075], [0.5, 1.0])
    """
    cells = [str(text) for text in texts]
    if all(re.fullmatch(r"[-+]?(0|[1-9]\d{0,17})", cell) for cell in cells):
        return pd.Series([int(cell) for cell in cells], dtype=np.int64)
    if all(cell.lower() in _TRUTH for cell in cells):
        return pd.Series([_TRUTH[cell.lower()] for cell in cells], dtype=bool)
    known = [cell for cell in cells if _is_known(cell)]
    for comma in (False, True) if decimal_comma else (False,):
        if known and all(_is_number(cell, comma) for cell in known):
            numbers = [_number(cell) if _is_known(cell) else np.nan for cell in cells]
            return pd.Series(numbers, dtype=np.float64)
    return pd.Series(cells, dtype=object)


def is_number(held: pd.Series) -> bool:
    """Whether a column, as `typed` gives it, holds numbers."""
    return pd.api.types.is_numeric_dtype(held) and held.dtype != bool


def meant_as_numbers(held: pd.Series) -> bool:
    """Whether more than half of the cells that are not empty are numbers, in whatever notation.

    >>> meant_as_numbers(pd.Series(["0.3", "0.2 ?", "1.234,5"])), meant_as_numbers(pd.Series(["none", "full", "8"]))
    (True, False)
    """
    if is_number(held):
        return True
    known = [str(cell) for cell in held if _is_known(str(cell))]
    return 2 * sum(bool(_IN_ANY_NOTATION.fullmatch(cell)) for cell in known) > len(known)


def without_number(held: pd.Series, names: Sequence[str]) -> str:
    """What a column of words or truth values holds that is no number, for which network, as part of a sentence.

    A cell that is a number in no notation is named before one with a decimal comma.
    """
    cells = [(name, str(cell)) for name, cell in zip(names, held, strict=True) if _is_known(str(cell))]
    words = [(name, cell) for name, cell in cells if not _is_number(cell)] or [(names[0], str(held.iloc[0]))]
    name, cell = next(((name, cell) for name, cell in words if not _is_number(cell, comma=True)), words[0])
    return f"holds {cell!r} for {name}, which is not written as a number such as 1234.5"


def absent(held: pd.Series, names: Sequence[str]) -> list[str]:
    """The networks for which a column, as `typed` gives it, says nothing."""
    return [name for name, value in zip(names, held, strict=True) if pd.isna(value) or value == ""]


def _is_known(cell: str) -> bool:
    return cell.lower() not in _MISSING


def _is_number(cell: str, comma: bool = False) -> bool:
    digits = r"(\d+,?\d*|,\d+)" if comma else r"(\d+\.?\d*|\.\d+)"
    written = re.fullmatch(rf"[-+]?({digits}([eE][-+]?\d+)?( ?%)?|inf(inity)?)", cell, re.IGNORECASE)
    return bool(written) and not re.match(r"[-+]?0\d", cell)


def _number(cell: str) -> float:
    value = float(cell.rstrip("% ").replace(",", "."))
    return value / 100 if cell.endswith("%") else value


def as_shares(
    path: Path, columns: Mapping[str, pd.Series], names: Sequence[str], notes: list[str]
) -> dict[str, pd.Series]:
    """Accuracies between 0 and 1: percentages are divided by 100, where all of them are, and a sentence says so.

    A column with numbers above 1 beside others, 0 aside, could be either, and so could one beside a column of the
    other kind; both are errors that name a network of each kind.

    Args:
        path: The table, for errors.
        columns: The columns of accuracies by their names; NaN where an accuracy is not known.
        names: The networks.
        notes: Where the sentences go.
    """
    above: list[tuple[str, str, float]] = []
    below: list[tuple[str, str, float]] = []
    for column, numbers in columns.items():
        for name, number in zip(names, numbers.astype(float), strict=True):
            if not np.isnan(number) and not 0 <= number <= 100:
                raise AssayError(
                    f"{path}: {column!r} holds {number:g} for {name}, which is no accuracy: give shares from 0 to 1"
                )
            if number > 0:
                (above if number > 1 else below).append((column, name, number))
    if above and below:
        few, many = sorted((above, below), key=len)
        column, name, number = few[0]
        beside, other, another = next((one for one in many if one[0] == column), many[0])
        raise AssayError(
            f"{path}: {column!r} holds {number:g} for {name}, and {beside!r} {another:g} for {other}: shares cannot be "
            "told from percentages; give all accuracies as shares from 0 to 1, or write the percent sign (such as 99%)"
        )
    for column in dict.fromkeys(column for column, *_ in above):
        notes.append(f"{column!r} goes up to {columns[column].max():g}: it is taken for percentages")
    return {column: numbers.astype(float) / (100 if above else 1) for column, numbers in columns.items()}
