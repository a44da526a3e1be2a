"""Loaders of local data: labelled videos, rated reviews as text, rated reviews as term counts."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Dataset, Inputs
from assay.core.errors import AssayError, first_line, nearest
from assay.stimuli.clips import Clip
from assay.stimuli.sequences import load_sequences

Scale = tuple[float, float]
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
SKYTRAX = ("comfort", "cleanliness", "bar_beverages", "catering", "washrooms", "wifi_connectivity", "staff_service")
SKYTRAX_TENTHS = "2015-06-09"  # the first day of overall ratings above 5; the last day before it is 2015-06-05


# -- reviews as text ------------------------------------------------------------------------------------


def load_reviews(
    path: str | Path,
    text: str = "text",
    ratings: Sequence[str] = ("overall",),
    group: str | None = None,
    scale: Scale | Mapping[str, Scale] = (1, 5),
    rounded: bool = False,
) -> Dataset:
    """Rated reviews from a CSV file (or ``.csv.gz``), with ratings brought to the scale 1–5.

    A rating x on the scale (low, high) becomes 1 + 4·(x − low)/(high − low); a blank one is NaN. The name of the
    data set says what was rescaled or rounded; ids are the lines of the file.

    Args:
        path: The file; its first line names the columns.
        text: Column of the review.
        ratings: Columns of the ratings.
        group: Column of what is reviewed, if any.
        scale: Lowest and highest rating, or that of each rating (those not named are 1–5).
        rounded: Whether rescaled ratings are rounded to whole ones (half up), as stratified sampling needs.
    """
    path = Path(path)
    lines, cells = read_columns(path, [text, *ratings, *([group] if group else [])])
    check_texts(path, lines, cells[text])
    scales = scale if isinstance(scale, Mapping) else dict.fromkeys(ratings, scale)
    for column in scales:
        if column not in ratings:
            raise AssayError(f"scale names {column!r}, which is no rating{nearest(column, ratings)}")
    targets, said = [], [path.name]
    for column in ratings:
        low, high = scales.get(column, (1, 5))
        targets.append(rescaled(read_ratings(path, lines, column, cells[column], (low, high)), (low, high), rounded))
        if rounded or (low, high) != (1, 5):
            said.append(f"{column} {low:g}–{high:g} to 1–5{', rounded' if rounded else ''}")
    return as_reviews(
        "; ".join(said), lines, cells[text], np.stack(targets, 1), ratings, cells[group] if group else None
    )


def load_skytrax(path: str | Path) -> Dataset:
    """The Skytrax lounge reviews: raw text, the overall rating and the four sub-ratings given most often.

    Overall ratings are on 1–5 until June 2015 and on 1–10 from 2015-06-09 on: the later ones are rescaled and
    rounded. A sub-rating of 0 is a missing one. Groups are airlines. (Skytrax user reviews data set, CC0.)
    """
    path = Path(path)
    columns = ["overall_rating", *(f"{name}_rating" for name in SKYTRAX)]
    lines, cells = read_columns(path, ["content", "airline_name", "date", *columns])
    check_texts(path, lines, cells["content"])
    late = np.array([date >= SKYTRAX_TENTHS for date in cells["date"]])
    overall = read_ratings(path, lines, columns[0], cells[columns[0]], (1, 10))
    early = np.flatnonzero(~late & (overall > 5))
    if len(early):
        raise AssayError(f"{path}, {_at(lines, early)}: overall_rating is above 5 before {SKYTRAX_TENTHS}")
    overall[late] = rescaled(overall[late], (1, 10), rounded=True)
    given = {}
    for name, column in zip(SKYTRAX, columns[1:], strict=True):
        values = read_ratings(path, lines, column, cells[column], (0, 5))
        given[name] = np.where(values == 0, np.nan, values)
    best = sorted(given, key=lambda name: int(np.isnan(given[name]).sum()))[:4]
    labels = ["overall", *best]
    targets = np.stack([overall, *(given[name] for name in best)], 1)
    name = f"Skytrax lounges; overall from {SKYTRAX_TENTHS} on 1–10 to 1–5, rounded"
    return as_reviews(name, lines, cells["content"], targets, labels, cells["airline_name"])


def read_columns(path: Path, columns: Sequence[str]) -> tuple[list[int], dict[str, list[str]]]:
    """Columns of a CSV file as they stand in it, and the line on which each record begins."""
    if not path.is_file():
        raise AssayError(f"reviews: {path} is not a file")
    lines: list[int] = []
    cells: dict[str, list[str]] = {column: [] for column in columns}
    line = 1
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
            reader = csv.reader(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""), strict=True)
            header = next(reader, [])
            for column in columns:
                if column not in header:
                    raise AssayError(f"{path}, line 1: there is no column {column!r}{nearest(column, header)}")
            places = [(cells[column].append, header.index(column)) for column in cells]
            line = reader.line_num + 1
            for record in reader:
                if record:
                    if len(record) != len(header):
                        raise AssayError(f"{path}, line {line}: {len(record)} cells under {len(header)} column names")
                    lines.append(line)
                    for append, place in places:
                        append(record[place])
                line = reader.line_num + 1
    except (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise AssayError(f"{path} cannot be read past line {line} ({first_line(error)})") from error
    if not lines:
        raise AssayError(f"{path} holds no reviews, only {'a header' if header else 'nothing'}")
    return lines, cells


def check_texts(path: Path, lines: Sequence[int], texts: Sequence[str]) -> None:
    """An error that names the reviews without text."""
    empty = [i for i, text in enumerate(texts) if not text or text.isspace()]
    if empty:
        raise AssayError(f"{path}, {_at(lines, empty)}: the review is empty; remove it")


def read_ratings(path: Path, lines: Sequence[int], column: str, cells: Sequence[str], scale: Scale) -> Array:
    """The ratings in a column, NaN where blank; an error that names those that are no number on the scale."""
    low, high = scale
    if not low < high:
        raise AssayError(f"scale={scale!r} of {column!r} is not (lowest, highest)")
    values = {cell: _number(cell) for cell in set(cells)}
    wrong = {cell for cell, value in values.items() if value is None or not (np.isnan(value) or low <= value <= high)}
    if wrong:
        where = [i for i, cell in enumerate(cells) if cell in wrong]
        shown = f"{column}={cells[where[0]]!r}"
        raise AssayError(f"{path}, {_at(lines, where)}: {shown} is no rating between {low:g} and {high:g}")
    return np.array([values[cell] for cell in cells], dtype=np.float64)


def rescaled(values: Array, scale: Scale, rounded: bool = False) -> Array:
    """Ratings on another scale, brought to 1–5 linearly; rounded half up on request.

    >>> rescaled(np.array([1, 4, 10]), (1, 10)).round(3).tolist()
    [1.0, 2.333, 5.0]
    >>> rescaled(np.arange(1, 11), (1, 10), rounded=True).tolist()
    [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]
    """
    low, high = scale
    moved: Array = 1 + 4 * (values - low) / (high - low)
    return np.floor(moved + 0.5) if rounded else moved


def as_reviews(
    name: str,
    lines: Sequence[int],
    texts: Sequence[str],
    targets: Array,
    labels: Sequence[str],
    groups: Sequence[str] | None,
) -> Dataset:
    """A text data set whose ids are lines of a file, its groups numbered as they first appear."""
    ids = tuple(f"line {line}" for line in lines)
    return Dataset(name, "text", Inputs(texts, ids), targets, tuple(labels), None if groups is None else number(groups))


def number(names: Sequence[str]) -> Array:
    """Names as numbers, counted in the order in which they first appear.

    >>> number(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _number(cell: str) -> float | None:
    if cell.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None


def _at(lines: Sequence[int], where: Sequence[int] | Array) -> str:
    named = ", ".join(str(lines[i]) for i in where[:5])
    return f"line{'s' if len(where) > 1 else ''} {named}{f' and {len(where) - 5} more' if len(where) > 5 else ''}"


# -- reviews as counts ----------------------------------------------------------------------------------


def load_we8there(path: str | Path) -> Dataset:
    """The we8there restaurant reviews: counts of 2,640 pairs of words, five ratings 1–5, NaN where missing.

    The npz file holds the counts as a sparse matrix by rows (``data``, ``indices``, ``indptr``, ``shape``),
    ``ratings`` (0 is missing), ``rating_names`` and ``doc_ids``. (R package textir; Snyder and Barzilay 2007.)
    """
    try:
        with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            parts = {key: file[key] for key in file.files}
    except (TypeError, OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise AssayError(f"reviews: {path} cannot be read as npz ({first_line(error)})") from error
    for key in ("data", "indices", "indptr", "shape", "ratings", "rating_names", "doc_ids"):
        if key not in parts:
            raise AssayError(f"{path} holds no array {key!r}{nearest(key, parts)}")
    try:
        compressed = (parts["data"].astype(np.int32), parts["indices"], parts["indptr"])
        counts = sparse.csr_matrix(compressed, shape=tuple(parts["shape"].tolist()))
        counts.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise AssayError(f"{path}: its counts are no sparse matrix ({first_line(error)})") from error
    ratings = parts["ratings"].astype(np.float64)
    wrong = np.argwhere(~np.isin(ratings, np.arange(6)))
    if len(wrong):
        row, column = wrong[0]
        raise AssayError(f"{path}: rating {ratings[row, column]:g} of review {row} is not 1 to 5, or 0 for missing")
    ids, labels = (tuple(map(str, parts[key])) for key in ("doc_ids", "rating_names"))
    return Dataset("we8there", "text", Inputs(counts, ids), np.where(ratings == 0, np.nan, ratings), labels)


# -- videos ---------------------------------------------------------------------------------------------


def load_labelled_videos(
    folder: str | Path, test: float | str | Path | None = None, seed: int = 0
) -> tuple[Dataset, Dataset]:
    """Training and test clips from a folder of videos; each clip is decoded when it is asked for.

    Either ``folder`` holds a table ``labels.csv`` with the columns ``file``, ``label`` (several with ``;`` between
    them), ``split`` (train or test) and, if clips belong together, ``group``. Or it holds one sub-folder for each
    class, and ``test`` says which clips are kept for testing. A clip is a video file or a folder of pictures.

    Args:
        folder: Where the videos are.
        test: Another folder with the same classes, or the share of each class to draw. Only without ``labels.csv``.
        seed: For drawing.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise AssayError(f"videos: {folder} is not a folder")
    if (folder / "labels.csv").is_file():
        if test is not None:
            raise AssayError(
                f"test={test!r}: {folder / 'labels.csv'} has a column 'split' that says so; leave test out"
            )
        return _listed_videos(folder)
    if test is None:
        raise AssayError(f"{folder} has no labels.csv: give test, a share of the clips or another folder")
    clips = _class_folders(folder)
    if isinstance(test, (str, Path)):
        others = _class_folders(Path(test))
        if set(others) != set(clips):
            odd = sorted(set(others) ^ set(clips))
            raise AssayError(f"test={str(test)!r} and {folder} have different classes: {', '.join(odd)} only in one")
        return _by_class(f"{folder.name} training", clips), _by_class(f"{folder.name} test", others)
    if not 0 < test < 1:
        raise AssayError(f"test={test!r} is not a share between 0 and 1")
    rng = np.random.default_rng(seed)
    kept: dict[str, dict[str, Clip]] = {}
    held: dict[str, dict[str, Clip]] = {}
    for label, known in clips.items():
        if len(known) < 2:
            raise AssayError(f"class {label!r} has one clip: training and test need one each")
        count = min(max(int(test * len(known) + 0.5), 1), len(known) - 1)
        drawn = {list(known)[i] for i in rng.permutation(len(known))[:count]}
        kept[label] = {name: clip for name, clip in known.items() if name not in drawn}
        held[label] = {name: clip for name, clip in known.items() if name in drawn}
    return _by_class(f"{folder.name} training", kept), _by_class(f"{folder.name} test", held)


def _class_folders(folder: Path) -> dict[str, dict[str, Clip]]:
    """Class → name → clip."""
    places = sorted(place for place in folder.iterdir() if place.is_dir()) if folder.is_dir() else []
    if not places:
        raise AssayError(f"videos: {folder} holds no sub-folders, one for each class")
    return {place.name: {clip.name: clip for clip in load_sequences(place)} for place in places}


def _by_class(name: str, clips: Mapping[str, Mapping[str, Clip]]) -> Dataset:
    labels = tuple(clips)
    shown = [(f"{label}/{key}", clip, label) for label in labels for key, clip in clips[label].items()]
    targets = np.array([[label == other for other in labels] for _, _, label in shown])
    return Dataset(name, "video", Inputs([c for _, c, _ in shown], tuple(i for i, _, _ in shown)), targets, labels)


def _listed_videos(folder: Path) -> tuple[Dataset, Dataset]:
    path = folder / "labels.csv"
    with path.open(encoding="utf-8-sig") as file:
        grouped = "group" in next(csv.reader(file), [])
    lines, cells = read_columns(path, ["file", "label", "split", *(["group"] if grouped else [])])
    clips: dict[str, Clip] = {}
    labelled = []
    for line, file_name, label, split in zip(lines, cells["file"], cells["label"], cells["split"], strict=True):
        named = [part.strip() for part in label.split(";") if part.strip()]
        if file_name in clips:
            raise AssayError(f"{path}, line {line}: {file_name!r} is listed twice; give its labels with ';' between")
        if not named:
            raise AssayError(f"{path}, line {line}: {file_name!r} has no label")
        if split not in ("train", "test"):
            raise AssayError(f"{path}, line {line}: split={split!r} is not 'train' or 'test'")
        try:
            (clips[file_name],) = load_sequences(folder / file_name)
        except ValueError as error:
            raise AssayError(f"{path}, line {line}: {file_name!r} is not one clip ({first_line(error)})") from error
        labelled.append(named)
    labels = tuple(sorted({label for named in labelled for label in named}))
    targets = np.array([[label in named for label in labels] for named in labelled])
    groups = number(cells["group"]) if grouped else None
    inputs = Inputs(list(clips.values()), tuple(clips))
    parts = []
    for split, name in (("train", "training"), ("test", "test")):
        where = np.flatnonzero(np.array(cells["split"]) == split)
        if not len(where):
            raise AssayError(f"{path}: no clip has split={split!r}")
        parts.append(Dataset(f"{folder.name} {name}", "video", inputs, targets, labels, groups).take(where))
    return parts[0], parts[1]
