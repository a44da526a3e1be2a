from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from assay import AssayError
from assay.broad.data.reviews import load_reviews, load_skytrax, load_we8there, rescaled


def write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_reviews_load_with_ids_that_are_lines(tmp_path):
    path = write(
        tmp_path / "a.csv",
        ["id", "text", "stars", "place"],
        [7, "two\nlines, and a comma", 5, "b"],
        [8, "naïve", "", "a"],
        [9, "last", 1, "b"],
    )
    found = load_reviews(path, ratings=["stars"], group="place")
    assert list(found.inputs.items) == ["two\nlines, and a comma", "naïve", "last"]
    assert found.inputs.ids == ("line 2", "line 4", "line 5") and found.groups.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(found.targets[:, 0], [5, np.nan, 1])
    assert (found.name, found.labels, found.modality) == ("a.csv", ("stars",), "text")
    assert list(found.only("stars").inputs.items) == ["two\nlines, and a comma", "last"]


def test_pandas_reads_the_same_reviews(tmp_path):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list('ab ,"\né'), 12)) + "." for _ in range(200)]
    table = pd.DataFrame({"text": texts, "overall": rng.choice([1.0, 2.5, 5.0, np.nan], 200)})
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    found = load_reviews(path)
    assert list(found.inputs.items) == pd.read_csv(path)["text"].tolist()
    np.testing.assert_array_equal(found.targets[:, 0], table["overall"])
    before = np.cumsum([0] + [1 + text.count("\n") for text in texts[:-1]])
    assert found.inputs.ids == tuple(f"line {2 + n}" for n in before)


def test_other_scales_become_one_to_five_and_that_is_recorded(tmp_path):
    path = write(tmp_path / "a.csv", ["text", "overall", "food"], ["x", 1, 1], ["y", 4, 4], ["z", 10, 5])
    found = load_reviews(path, ratings=["overall", "food"], scale={"overall": (1, 10)})
    np.testing.assert_allclose(found.targets, [[1, 1], [7 / 3, 4], [5, 5]], atol=1e-12)
    assert found.name == "a.csv; overall 1–10 to 1–5"
    rounded = load_reviews(path, ratings=["overall"], scale=(1, 10), rounded=True)
    assert rounded.targets.tolist() == [[1], [2], [5]] and rounded.name == "a.csv; overall 1–10 to 1–5, rounded"


@given(st.floats(-100, 100), st.floats(0.5, 100), st.floats(0, 1))
def test_rescaling_keeps_the_place_between_the_ends(low, width, share):
    ends = (low, low + width)
    assert rescaled(np.array(ends), ends).tolist() == [1, 5]
    # Rounding of low + share·width costs at most 200 · 2⁻⁵², times 4 / 0.5.
    assert rescaled(np.array(low + share * width), ends) == pytest.approx(1 + 4 * share, abs=1e-12)


def test_halves_round_up():
    assert rescaled(np.array([1.5, 2.5, 4.5, np.nan]), (1, 5), rounded=True)[:3].tolist() == [2, 3, 5]
    assert rescaled(np.arange(0, 11), (0, 10), rounded=True).tolist() == [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("text,overall\n", {}, "holds no reviews, only a header"),
        ("", {}, "line 1: there is no column 'text'; none are known"),
        ("text,overal\nx,1\n", {}, "line 1: there is no column 'overall'; did you mean 'overal'"),
        ("text,overall\nx,1\n\n ,2\n", {}, "line 4: the review is empty; remove it"),
        ("text,overall\nx,1\ny,9\n", {}, "line 3: overall='9' is no rating between 1 and 5"),
        ("text,overall\nx,inf\n", {}, "line 2: overall='inf' is no rating"),
        ('text,overall\nx,1\n"y,2\n', {}, "cannot be read past line 3"),
        ("text,overall\nx,1,2\n", {}, "line 2: 3 cells under 2 column names"),
        ("text,overall\nx,1\n", {"scale": (5, 1)}, r"scale=\(5, 1\) of 'overall' is not \(lowest, highest\)"),
        ("text,overall\nx,1\n", {"scale": {"food": (1, 3)}}, "scale names 'food', which is no rating"),
        ("text,overall\nx,1\n", {"group": "place"}, "no column 'place'"),
    ],
)
def test_bad_files_are_one_clear_sentence(tmp_path, text, settings, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(AssayError, match=message):
        load_reviews(path, **settings)


def test_files_that_are_damaged_or_absent_are_one_clear_sentence(tmp_path):
    with pytest.raises(AssayError, match=r"none\.csv is not a file"):
        load_reviews(tmp_path / "none.csv")
    whole = gzip.compress(b"text,overall\n" + b"".join(b"%d,3\n" % i for i in range(9999)))
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AssayError, match=r"cut\.csv\.gz cannot be read past line \d\d+"):
        load_reviews(tmp_path / "cut.csv.gz")
    (tmp_path / "latin.csv").write_bytes(b"text,overall\ncaf\xe9,3\n")
    with pytest.raises(AssayError, match=r"latin\.csv cannot be read past line 1 .*utf-8"):
        load_reviews(tmp_path / "latin.csv")


def test_skytrax_lounges_load(shared_data):
    path = shared_data / "reviews" / "skytrax_lounge.csv"
    found, table = load_skytrax(path), pd.read_csv(path)
    assert found.labels == ("overall", "comfort", "cleanliness", "bar_beverages", "catering")
    assert list(found.inputs.items) == table["content"].tolist() and len(set(found.groups)) == 97
    assert np.isnan(found.targets).sum(axis=0).tolist() == [5, 8, 8, 24, 32]
    assert set(found.targets[np.isfinite(found.targets)]) == {1, 2, 3, 4, 5}
    late = (table["date"] >= "2015-06-09").to_numpy()
    np.testing.assert_array_equal(found.targets[~late, 0], table["overall_rating"][~late])
    halved = np.ceil(table["overall_rating"][late] / 2)  # what rounding 1–10 to 1–5 comes to
    np.testing.assert_array_equal(found.targets[late, 0], halved)


def test_later_skytrax_ratings_are_on_another_scale(shared_data):
    """Of the reviews with an overall 4 or 5, the sub-ratings are far lower from June 2015 on; rescaling mends that."""
    path = shared_data / "reviews" / "skytrax_lounge.csv"
    table, found = pd.read_csv(path), load_skytrax(path)
    late = (table["date"] >= "2015-06-09").to_numpy()
    details = pd.DataFrame(found.targets[:, 1:]).mean(axis=1).to_numpy()
    gap = {}
    for name, overall in (("as stored", table["overall_rating"].to_numpy()), ("rescaled", found.targets[:, 0])):
        high = (overall >= 4) & (overall <= 5)
        gap[name] = np.nanmean(details[high & ~late]) - np.nanmean(details[high & late])
    assert gap["as stored"] > 0.8 and abs(gap["rescaled"]) < 0.3


def test_an_early_skytrax_rating_above_five_is_an_error(tmp_path):
    subs = ["comfort", "cleanliness", "bar_beverages", "catering", "washrooms", "wifi_connectivity", "staff_service"]
    header = ["content", "airline_name", "date", "overall_rating", *(f"{name}_rating" for name in subs)]
    path = write(tmp_path / "a.csv", header, ["fine", "x", "2012-01-01", 8, *[3] * 7])
    with pytest.raises(AssayError, match="line 2: overall_rating is above 5 before 2015-06-09"):
        load_skytrax(path)
    path = write(tmp_path / "b.csv", header, ["fine", "x", "2015-07-01", 8, 0, 0, 0, 3, 4, 5, 1])
    found = load_skytrax(path)
    assert found.labels == ("overall", "catering", "washrooms", "wifi_connectivity", "staff_service")
    assert found.targets.tolist() == [[4, 3, 4, 5, 1]]


def test_we8there_loads_as_counts_with_missing_ratings(shared_data):
    found = load_we8there(shared_data / "reviews" / "we8there.npz")
    assert found.labels == ("Food", "Service", "Value", "Atmosphere", "Overall") and found.modality == "text"
    assert sparse.issparse(found.inputs.items) and found.inputs.items.shape == (6166, 2640)
    assert found.inputs.items.sum() == 69592 and found.inputs.items.min() >= 0
    assert np.isnan(found.targets).sum(axis=0).tolist() == [0, 11, 15, 32, 0]
    assert set(found.targets[np.isfinite(found.targets)]) == {1, 2, 3, 4, 5}
    assert len(found.only("Atmosphere")) == 6166 - 32


def counts_file(path, **changed):
    matrix = sparse.csr_matrix(np.array([[0, 2], [1, 0]], dtype=np.uint8))
    parts = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array([2, 2]),
        "ratings": np.array([[5, 0], [1, 2]], dtype=np.int8),
        "rating_names": np.array(["Food", "Overall"]),
        "doc_ids": np.array(["1", "7"]),
    }
    np.savez(path, **{key: value for key, value in (parts | changed).items() if value is not None})
    return path


def test_counts_are_read_as_they_were_written(tmp_path):
    found = load_we8there(counts_file(tmp_path / "a.npz"))
    assert found.inputs.items.toarray().tolist() == [[0, 2], [1, 0]] and found.inputs.ids == ("1", "7")
    np.testing.assert_array_equal(found.targets, [[5, np.nan], [1, 2]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ratings": None}, "holds no array 'ratings'; did you mean 'rating_names'"),
        ({"indices": np.array([9, 0], dtype=np.int32)}, "its counts are no sparse matrix"),
        ({"ratings": np.array([[5, 0], [1, 7]])}, "rating 7 of review 1 is not 1 to 5, or 0 for missing"),
        ({"ratings": np.array([[5, 0]])}, r"targets are \(1, 2\), there are 2 instances"),
        ({"doc_ids": np.array(["1"])}, "2 instances have 1 ids"),
    ],
)
def test_broken_counts_are_one_clear_sentence(tmp_path, changed, message):
    with pytest.raises(AssayError, match=message):
        load_we8there(counts_file(tmp_path / "a.npz", **changed))


def test_what_is_no_npz_is_one_clear_sentence(tmp_path):
    whole = counts_file(tmp_path / "a.npz").read_bytes()
    np.save(tmp_path / "one.npy", np.ones(3))
    one = (tmp_path / "one.npy").read_bytes()
    for name, data in (("text", b"not an archive"), ("cut", whole[: len(whole) // 2]), ("one", one)):
        (tmp_path / f"{name}.npz").write_bytes(data)
        with pytest.raises(AssayError, match=rf"{name}\.npz cannot be read as npz"):
            load_we8there(tmp_path / f"{name}.npz")
    with pytest.raises(AssayError, match=r"none\.npz cannot be read \(no such file"):
        load_we8there(tmp_path / "none.npz")
