"""Rated reviews: as text from a CSV file, or as counts of terms where the text itself is not available."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from assay.broad.data.columns import number, read_columns
from assay.broad.data.dataset import Array, Dataset, Inputs
from assay.core.array_files import load_arrays
from assay.core.errors import AssayError, first_line, nearest
from assay.core.reading import reading

Scale = tuple[float, float]
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
SKYTRAX = ("comfort", "cleanliness", "bar_beverages", "catering", "washrooms", "wifi_connectivity", "staff_service")
SKYTRAX_TENTHS = "2015-06-09"  # the first day of overall ratings above 5; the last day before it is 2015-06-05


def load_reviews(
    path: str | Path,
    text: str = "text",
    ratings: Sequence[str] = ("overall",),
    group: str | None = None,
    scale: Scale | Mapping[str, Scale] = (1, 5),
    rounded: bool = False,
) -> Dataset:
    """Load rated reviews from a CSV file (or ``.csv.gz``), with ratings brought to the scale 1–5.

    A rating x on the scale (low, high) becomes 1 + 4·(x − low)/(high − low); a blank one is NaN. The name of the
    data set says what was rescaled or rounded; ids are the lines of the file.

    Args:
        path: The file; its first line names the columns.
        text: Name of the column that holds the review.
        ratings: Names of the columns that hold ratings.
        group: Name of the column that says what is reviewed; None if there is none.
        scale: Lowest and highest rating, for all columns or by column (those not named are 1–5).
        rounded: Whether rescaled ratings are rounded to whole ones (half up), as stratified sampling needs.
    """
    path = Path(path)
    lines, cells = read_columns(path, [text, *ratings, *([group] if group else [])])
    check_texts(path, lines, cells[text])
    scales = scale if isinstance(scale, Mapping) else dict.fromkeys(ratings, scale)
    for column in scales:
        if column not in ratings:
            raise AssayError(f"scale names {column!r}, which is no rating{nearest(column, ratings)}")
    targets = []
    name_parts = [path.name]
    for column in ratings:
        low, high = scales.get(column, (1, 5))
        targets.append(rescaled(read_ratings(path, lines, column, cells[column], (low, high)), (low, high), rounded))
        if rounded or (low, high) != (1, 5):
            name_parts.append(f"{column} {low:g}–{high:g} to 1–5{', rounded' if rounded else ''}")
    return as_reviews(
        "; ".join(name_parts), lines, cells[text], np.stack(targets, 1), ratings, cells[group] if group else None
    )


def load_skytrax(path: str | Path) -> Dataset:
    """Load the Skytrax lounge reviews: raw text, the overall rating and the four sub-ratings given most often.

    Overall ratings are on 1–5 until June 2015 and on 1–10 from 2015-06-09 on: the later ones are rescaled and
    rounded. A sub-rating of 0 is a missing one. Groups are airlines. (Skytrax user reviews data set, CC0.)
    """
    path = Path(path)
    columns = ["overall_rating", *(f"{name}_rating" for name in SKYTRAX)]
    lines, cells = read_columns(path, ["content", "airline_name", "date", *columns])
    check_texts(path, lines, cells["content"])
    late = np.array([date >= SKYTRAX_TENTHS for date in cells["date"]])
    overall = read_ratings(path, lines, columns[0], cells[columns[0]], (1, 10))
    too_early = np.flatnonzero(~late & (overall > 5))
    if len(too_early):
        raise AssayError(f"{path}, {_at(lines, too_early)}: overall_rating is above 5 before {SKYTRAX_TENTHS}")
    overall[late] = rescaled(overall[late], (1, 10), rounded=True)
    sub_ratings = {}
    for name, column in zip(SKYTRAX, columns[1:], strict=True):
        values = read_ratings(path, lines, column, cells[column], (0, 5))
        sub_ratings[name] = np.where(values == 0, np.nan, values)
    most_given = sorted(sub_ratings, key=lambda name: int(np.isnan(sub_ratings[name]).sum()))[:4]
    labels = ["overall", *most_given]
    targets = np.stack([overall, *(sub_ratings[name] for name in most_given)], 1)
    name = f"Skytrax lounges; overall from {SKYTRAX_TENTHS} on 1–10 to 1–5, rounded"
    return as_reviews(name, lines, cells["content"], targets, labels, cells["airline_name"])


def load_we8there(path: str | Path) -> Dataset:
    """Load the we8there restaurant reviews: counts of 2,640 pairs of words, five ratings 1–5, NaN where missing.

    The npz file holds the counts as a sparse matrix by rows (``data``, ``indices``, ``indptr``, ``shape``),
    ``ratings`` (0 is missing), ``rating_names`` and ``doc_ids``. (R package textir; Snyder and Barzilay 2007.)
    """
    with reading(path, "npz"), Path(path).open("rb") as raw, load_arrays(raw, path) as file:
        parts = {key: np.asarray(file[key]) for key in file.files}
    for key in ("data", "indices", "indptr", "shape", "ratings", "rating_names", "doc_ids"):
        if key not in parts:
            raise AssayError(f"{path} holds no array {key!r}{nearest(key, parts)}")
    try:
        compressed = (parts["data"].astype(np.int32), parts["indices"], parts["indptr"])
        counts = sparse.csr_matrix(compressed, shape=tuple(parts["shape"].tolist()))
        counts.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise AssayError(f"{path}: its counts are no sparse matrix ({first_line(error)})") from error
    try:
        ratings = parts["ratings"].astype(np.float64)
    except (ValueError, TypeError) as error:
        raise AssayError(f"{path}: its ratings are no numbers ({first_line(error)})") from error
    wrong = np.argwhere(~np.isin(ratings, np.arange(6)))
    if len(wrong):
        row, column = wrong[0]
        raise AssayError(f"{path}: rating {ratings[row, column]:g} of review {row} is not 1 to 5, or 0 for missing")
    ids, labels = (tuple(map(str, np.ravel(parts[key]))) for key in ("doc_ids", "rating_names"))
    return Dataset("we8there", "text", Inputs(counts, ids), np.where(ratings == 0, np.nan, ratings), labels)


def check_texts(path: Path, lines: Sequence[int], texts: Sequence[str]) -> None:
    """Raise an error that names the reviews without text, if there are any."""
    empty = [i for i, text in enumerate(texts) if not text or text.isspace()]
    if empty:
        raise AssayError(f"{path}, {_at(lines, empty)}: the review is empty; remove it")


def read_ratings(path: Path, lines: Sequence[int], column: str, cells: Sequence[str], scale: Scale) -> Array:
    """Read the ratings in a column, NaN where blank; an error names those that are no number on the scale."""
    low, high = scale
    if not low < high:
        raise AssayError(f"scale={scale!r} of {column!r} is not (lowest, highest)")
    values = {cell: _number(cell) for cell in set(cells)}
    wrong = {cell for cell, value in values.items() if value is None or not (np.isnan(value) or low <= value <= high)}
    if wrong:
        where = [i for i, cell in enumerate(cells) if cell in wrong]
        example = f"{column}={cells[where[0]]!r}"
        raise AssayError(f"{path}, {_at(lines, where)}: {example} is no rating between {low:g} and {high:g}")
    return np.array([values[cell] for cell in cells], dtype=np.float64)


def rescaled(values: Array, scale: Scale, rounded: bool = False) -> Array:
    """Bring ratings from another scale to 1–5 linearly; round halves up on request.

    >>> rescaled(np.array([1, 4, 10]), (1, 10)).round(3).tolist()
    [1.0, 2.333, 5.0]
    >>> rescaled(np.arange(1, 11), (1, 10), rounded=True).tolist()
    [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]
    """
    low, high = scale
    on_five: Array = 1 + 4 * (values - low) / (high - low)
    return np.floor(on_five + 0.5) if rounded else on_five


def as_reviews(
    name: str,
    lines: Sequence[int],
    texts: Sequence[str],
    targets: Array,
    labels: Sequence[str],
    groups: Sequence[str] | None,
) -> Dataset:
    """Make a text data set whose ids are lines of a file, its groups numbered as they first appear."""
    ids = tuple(f"line {line}" for line in lines)
    return Dataset(name, "text", Inputs(texts, ids), targets, tuple(labels), None if groups is None else number(groups))


def _number(cell: str) -> float | None:
    if cell.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None


def _at(lines: Sequence[int], where: Sequence[int] | Array) -> str:
    numbers = ", ".join(str(lines[i]) for i in where[:5])
    return f"line{'s' if len(where) > 1 else ''} {numbers}{f' and {len(where) - 5} more' if len(where) > 5 else ''}"
