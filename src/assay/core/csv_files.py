"""Tables as CSV files, in which no cell is run as a formula by a spreadsheet."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from assay.core.folder import Folder
from assay.core.names import writable
from assay.core.reading import reading

# What a spreadsheet takes for the beginning of a formula; after apostrophes, so that reading gives back what was there.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")


def to_csv(table: pd.DataFrame, **how: Any) -> bytes:
    """Write a table as CSV: words that a spreadsheet would take for a formula begin with an apostrophe.

    Numbers stay as they are. `read_csv` takes the apostrophe away again.

    Args:
        table: The table; its index is not written.
        how: More arguments of `pandas.DataFrame.to_csv`.

    Example:
        >>> to_csv(pd.DataFrame({"network": ["=1+1", "VGG"], "change": [-1.5, 2.0]})).decode().splitlines()
        ['network,change', "'=1+1,-1.5", 'VGG,2.0']
    """
    kept = table.rename(columns=_quoted)
    _change(kept, _quoted)
    text: str = kept.to_csv(index=False, lineterminator="\n", **how)
    return text.encode()


def read_csv(data: bytes, **how: Any) -> pd.DataFrame:
    """Read a table that `to_csv` wrote, with the words that were given to it.

    Args:
        data: Content of the file.
        how: More arguments of `pandas.read_csv`.

    Example:
        >>> read_csv(to_csv(pd.DataFrame({"network": ["=1+1", "'quoted'"]})))["network"].tolist()
        ['=1+1', "'quoted'"]
    """
    table: pd.DataFrame = pd.read_csv(io.BytesIO(data), **how)
    table = table.rename(columns=_unquoted)
    _change(table, _unquoted)
    return table


def read_table(folder: Folder, name: str, columns: Iterable[str], remedy: str, **how: Any) -> pd.DataFrame:
    """Read a table that `to_csv` wrote into a folder; a damaged one is an error that says what to do.

    Args:
        folder: The folder.
        name: The file.
        columns: The columns that it must have.
        remedy: What to do where it is damaged.
        how: More arguments of `pandas.read_csv`.
    """
    data = folder.read(name)
    with reading(folder.path(name), remedy=remedy):
        table = read_csv(data, **how)
        missing = [column for column in columns if column not in table]
        if missing:
            raise ValueError(f"it has no column {missing[0]!r}")
        return table


def _change(table: pd.DataFrame, change: Callable[[Any], Any]) -> None:
    """Change the words of a table; columns without such words stay as they are."""
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            before = table.iloc[:, place]
            kept: Any = before.dtype
            after = [change(value) for value in before]
            if any(new is not old for new, old in zip(after, before, strict=True)):
                table.isetitem(place, pd.array(after, dtype=kept))


def _quoted(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return writable(f"'{value}" if _FORMULA.match(value) else value)


def _unquoted(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and _QUOTED.match(value) else value
