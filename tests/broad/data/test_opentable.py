from __future__ import annotations

import csv
import gzip
from dataclasses import replace

import numpy as np
import pytest

from assay import AssayError
from assay.broad.data.opentable import COLUMNS, RATINGS, check_opentable, load_opentable
from assay.broad.data.twin_reviews import generated_reviews

HEADER = list(COLUMNS.values())
LONG = "The soup was warm and so was the welcome."  # 41 characters


def write(path, rows, header=HEADER):
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(dataset):
    parts = zip(dataset.inputs.items, dataset.groups, dataset.targets.astype(int), strict=True)
    return [[text, f"r{group}", *ratings] for text, group, ratings in parts]


def without_names(groups):
    """Groups renumbered in the order in which they appear."""
    order = {}
    return [order.setdefault(g, len(order)) for g in groups.tolist()]


@pytest.mark.parametrize("name", ["twin.csv", "twin.csv.gz"])
@pytest.mark.requirement("B5")
def test_a_written_corpus_reads_back(tmp_path, name):
    twin = generated_reviews(count=300, restaurants=20)
    found = load_opentable(write(tmp_path / name, rows_of(twin)), strict=False)
    assert list(found.inputs.items) == list(twin.inputs.items) and found.labels == RATINGS
    np.testing.assert_array_equal(found.targets, twin.targets)
    assert found.groups.tolist() == without_names(twin.groups)
    assert found.inputs.ids[:2] == ("line 2", "line 3")


@pytest.mark.requirement("B6")
def test_reviews_of_29_characters_go_and_of_30_stay(tmp_path):
    path = write(tmp_path / "a.csv", [["x" * n, "r", 1, 2, 3, 4, 5] for n in (29, 30, 31)])
    found = load_opentable(path, strict=False)
    assert [len(text) for text in found.inputs.items] == [30, 31]
    assert found.inputs.ids == ("line 3", "line 4") and found.targets.tolist() == [[1, 2, 3, 4, 5]] * 2


def test_columns_may_have_other_names_and_any_order(tmp_path):
    header = ["noise", "service", "ambiance", "food", "overall", "rid", "words", "date"]
    path = write(tmp_path / "a.csv", [[5, 4, 3, 2, 1, "r", LONG, "2010"]], header)
    found = load_opentable(path, {"text": "words", "restaurant": "rid"}, strict=False)
    assert found.targets.tolist() == [[1, 2, 3, 4, 5]] and list(found.inputs.items) == [LONG]


def test_the_plans_corpus_is_what_strict_loading_wants(tmp_path):
    path = write(tmp_path / "a.csv", [[LONG, "r", 1, 2, 3, 4, 5]])
    with pytest.raises(AssayError, match=r"not the plan's corpus: 1 reviews, not 433,697; .*strict=False loads it"):
        load_opentable(path)


@pytest.mark.requirement("B7")
def test_every_deviation_is_named():
    twin = generated_reviews(count=2000, restaurants=100)
    texts = list(twin.inputs.items)
    texts[:3] = ["short", "x" * 800, texts[3]]
    targets = twin.targets.copy()
    targets[5, 2] = np.nan
    targets[2], groups = targets[3], twin.groups.copy()
    groups[2] = groups[3]
    found = check_opentable(
        replace(twin, inputs=replace(twin.inputs, items=texts), targets=targets, groups=groups, labels=RATINGS[::-1])
    )
    assert found[0].startswith("ratings are Noise, Service")
    assert found[1:4] == [
        "2,000 reviews, not 433,697",
        f"{len(set(groups.tolist()))} restaurants, not 10,066",
        "lengths of 5 to 800 characters, not 30 to 750",
    ]
    assert found[-2:] == [
        "1 ratings are missing",
        "1 reviews are repeated, the first on review 3 (as on review 2)",
    ]


def test_mean_length_in_characters_and_words_is_checked():
    twin = generated_reviews(count=50, restaurants=10)
    texts = [" ".join("x" * 100)] * 50
    found = check_opentable(replace(twin, inputs=replace(twin.inputs, items=texts)))
    lines = [line for line in found if "per review" in line]
    assert lines == ["199.0 characters per review, not 248", "100.0 words per review, not 44"]


def test_the_same_words_about_another_restaurant_or_with_other_ratings_are_no_repeat(tmp_path):
    rows = [[LONG, "a", 1, 2, 3, 4, 5], [LONG, "b", 1, 2, 3, 4, 5], [LONG, "a", 2, 2, 3, 4, 5]]
    found = check_opentable(load_opentable(write(tmp_path / "a.csv", rows), strict=False))
    assert not any("repeated" in line for line in found)
    found = check_opentable(load_opentable(write(tmp_path / "b.csv", [*rows, rows[1]]), strict=False))
    assert found[-1] == "1 reviews are repeated, the first on line 5 (as on line 3)"


def test_a_blank_rating_is_missing_not_zero(tmp_path):
    found = load_opentable(write(tmp_path / "a.csv", [[LONG, "r", 1, "", 3, 4, 5]]), strict=False)
    assert np.isnan(found.targets[0, 1]) and found.only("Food").targets.shape == (0, 1)
    assert "1 ratings are missing" in check_opentable(found)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[LONG, "r", 1, 2, 3, 4, 6]], r"line 2: noise='6' is no rating between 1 and 5"),
        ([[LONG, "r", 0, 2, 3, 4, 5]], r"line 2: overall='0' is no rating"),
        ([[LONG, "r", 1, "good", 3, 4, 5]], r"line 2: food='good' is no rating"),
        ([[LONG, "r", 1, 2, 3.5, 4, 5]], r"line 2: ambiance=3\.5 is not 1, 2, 3, 4 or 5"),
        ([[f"{LONG}\n{LONG}", "r", 1, 2, 3, 4, 5], ["  ", "r", 1, 2, 3, 4, 5]], r"line 4: the review is empty"),
        ([["", "r", 1, 2, 3, 4, 5]] * 7, r"lines 2, 3, 4, 5, 6 and 2 more: the review is empty"),
        ([[LONG, "r", 1, 2, 3, 4]], r"line 2: 6 cells under 7 column names"),
        ([["x", "r", 1, 2, 3, 4, 5]], r"all 1 reviews have less than 30 characters"),
        ([], r"holds no reviews, only a header"),
    ],
)
def test_bad_rows_are_named_by_their_line(tmp_path, rows, message):
    with pytest.raises(AssayError, match=message):
        load_opentable(write(tmp_path / "a.csv", rows), strict=False)


def test_a_missing_column_and_a_misspelt_key_are_named(tmp_path):
    path = write(tmp_path / "a.csv", [[LONG, "r", 1, 2, 3, 4]], HEADER[:-1])
    with pytest.raises(AssayError, match="line 1: there is no column 'noise'; known: 'review'"):
        load_opentable(path)
    with pytest.raises(AssayError, match="columns names 'Sevice'; did you mean 'Service'"):
        load_opentable(path, {"Sevice": "service"})
