"""OpenTable, the text corpus of the plan: reviews of restaurants with five ratings.

The corpus is not public: `load_opentable` reads a local copy and `check_opentable` says where it differs from the
one that the plan describes (§4.2). `assay.broad.data.twin_reviews.generated_reviews` makes one of the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from assay.broad.data.columns import read_columns
from assay.broad.data.dataset import Dataset
from assay.broad.data.reviews import as_reviews, check_texts, read_ratings
from assay.core.errors import AssayError, nearest

RATINGS = ("Overall", "Food", "Ambiance", "Service", "Noise")
COLUMNS = {"text": "review", "restaurant": "restaurant", **{rating: rating.lower() for rating in RATINGS}}
SHORTEST, LONGEST = 30, 750  # characters
REVIEWS, RESTAURANTS = 433_697, 10_066
CHARACTERS, WORDS = 248, 44  # means over reviews


def load_opentable(path: str | Path, columns: Mapping[str, str] | None = None, strict: bool = True) -> Dataset:
    """Load the OpenTable reviews from a CSV file (or ``.csv.gz``), without those of less than 30 characters.

    Groups are restaurants, numbered as they first appear; ids are the lines of the file.

    Args:
        path: The file; its first line names the columns.
        columns: Names in the file of ``text``, ``restaurant`` and the five ratings, where they differ from
            review, restaurant, overall, food, ambiance, service, noise.
        strict: Whether a corpus that is not the plan's (see `check_opentable`) is an error.

    Plan §4.2.
    """
    path = Path(path)
    for key in columns or {}:
        if key not in COLUMNS:
            raise AssayError(f"columns names {key!r}{nearest(key, COLUMNS)}")
    names = {**COLUMNS, **(columns or {})}
    lines, cells = read_columns(path, list(names.values()))
    texts = cells[names["text"]]
    check_texts(path, lines, texts)
    ratings = []
    for rating in RATINGS:
        values = read_ratings(path, lines, names[rating], cells[names[rating]], (1, 5))
        fractional = np.flatnonzero(values % 1 > 0)
        if len(fractional):
            i = fractional[0]
            raise AssayError(f"{path}, line {lines[i]}: {names[rating]}={values[i]:g} is not 1, 2, 3, 4 or 5")
        ratings.append(values)
    kept = np.array([i for i, text in enumerate(texts) if len(text) >= SHORTEST], dtype=np.int64)
    if not len(kept):
        raise AssayError(f"{path}: all {len(texts)} reviews have less than {SHORTEST} characters")
    dataset = as_reviews(
        "OpenTable",
        [lines[i] for i in kept],
        [texts[i] for i in kept],
        np.stack(ratings, 1)[kept],
        RATINGS,
        [cells[names["restaurant"]][i] for i in kept],
    )
    if strict and (deviations := check_opentable(dataset)):
        raise AssayError(f"{path} is not the plan's corpus: {'; '.join(deviations)} (strict=False loads it as it is)")
    return dataset


def check_opentable(dataset: Dataset) -> list[str]:
    """List where a data set differs from the corpus of the plan; an empty list if nowhere.

    433,697 reviews of 10,066 restaurants, 30 to 750 characters long, on average 248 characters and 44 words (each
    to within 1: the plan prints whole numbers); every review with all five ratings, none twice. Plan §4.2.
    """
    texts: list[str] = list(cast(Sequence[str], dataset.inputs.items))
    lengths = np.array([len(text) for text in texts])
    words = float(np.mean([len(text.split()) for text in texts]))
    restaurants = 0 if dataset.groups is None else len(np.unique(dataset.groups))
    deviations = []
    if dataset.labels != RATINGS:
        deviations.append(f"ratings are {', '.join(dataset.labels)}, not {', '.join(RATINGS)}")
    for what, value, expected in (("reviews", len(texts), REVIEWS), ("restaurants", restaurants, RESTAURANTS)):
        if value != expected:
            deviations.append(f"{value:,} {what}, not {expected:,}")
    if (lengths.min(), lengths.max()) != (SHORTEST, LONGEST):
        deviations.append(f"lengths of {lengths.min()} to {lengths.max()} characters, not {SHORTEST} to {LONGEST}")
    for what, mean, expected in (("characters", float(lengths.mean()), CHARACTERS), ("words", words, WORDS)):
        if abs(mean - expected) > 1:
            deviations.append(f"{mean:.1f} {what} per review, not {expected}")
    missing = int(np.isnan(dataset.targets).sum())
    if missing:
        deviations.append(f"{missing:,} ratings are missing")
    repeats = _repeats(dataset, texts)
    if repeats:
        deviations.append(
            f"{len(repeats):,} reviews are repeated, the first on {repeats[0][1]} (as on {repeats[0][0]})"
        )
    return deviations


def _repeats(dataset: Dataset, texts: list[str]) -> list[tuple[str, str]]:
    """Ids of reviews that are repeated with the same text, restaurant and ratings, as (first, again)."""
    groups = np.zeros(len(texts), dtype=np.int64) if dataset.groups is None else dataset.groups
    ratings = np.ascontiguousarray(dataset.targets)
    seen: dict[int, list[int]] = {}  # hash → rows: the hashes stay small where keys would not
    repeats = []
    for i, text in enumerate(texts):
        rows = seen.setdefault(hash((text, int(groups[i]))), [])
        for j in rows:
            same = texts[j] == text and groups[j] == groups[i]
            if same and np.array_equal(ratings[j], ratings[i], equal_nan=True):
                repeats.append((dataset.inputs.ids[j], dataset.inputs.ids[i]))
                break
        else:
            rows.append(i)
    return repeats
