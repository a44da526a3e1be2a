"""Families of networks: means and differences over sequences and networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from assay.core.errors import AssayError
from assay.measures.straightness.measure import Straightness
from assay.stimuli import camera_sequences
from assay.studies import compare_families, family_means
from assay.subject.subject import Subject

CLIPS = [f"clip{v}" for v in range(11)]


def table_of(values: dict[str, np.ndarray]) -> pd.DataFrame:
    rows = []
    for name, of_clips in values.items():
        for layer, shift in (("conv", 5.0), ("fc", 0.0)):
            rows += [
                {"subject": name, "layer": layer, "sequence": clip, "curvature_deg": value + shift}
                for clip, value in zip(CLIPS, of_clips, strict=False)
            ]
    return pd.DataFrame(rows)


def test_one_network_against_another_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(80, 10, 11), rng.normal(70, 10, 11)
    row = compare_families(table_of({"a": a, "b": b}), {"a": "A", "b": "B"}).iloc[0]
    expected = stats.ttest_rel(a, b)
    low, high = expected.confidence_interval()
    assert (row["difference"], row["low"], row["high"], row["p"]) == pytest.approx(
        ((a - b).mean(), low, high, expected.pvalue), rel=1e-12
    )
    assert row["over"] == "sequences" and row["p_holm"] == row["p"]


def test_networks_that_see_all_sequences_alike_are_welchs_t_test():
    # Where every network has one value for all sequences, sequences add no error, and the rest is Welch's test.
    a, b = np.array([80.0, 84.0, 85.0]), np.array([60.0, 63.0, 70.0, 71.0])
    values = {f"a{i}": np.full(11, x) for i, x in enumerate(a)} | {f"b{i}": np.full(11, x) for i, x in enumerate(b)}
    row = compare_families(table_of(values), {name: name[0] for name in values}).iloc[0]
    expected = stats.ttest_ind(a, b, equal_var=False)
    low, high = expected.confidence_interval()
    assert (row["low"], row["high"], row["p"]) == pytest.approx((low, high, expected.pvalue), rel=1e-9)
    assert row["networks"] == "3 v 4" and row["over"] == "sequences and networks"


def test_means_of_families_are_at_the_layer_that_is_asked_for():
    values = {"a": np.full(11, 80.0) + np.arange(11), "b": np.full(11, 70.0) + np.arange(11)}
    families = {"a": "A", "b": "B"}
    assert family_means(table_of(values), families)["mean"].tolist() == [85.0, 75.0]
    assert family_means(table_of(values), families, "conv")["mean"].tolist() == [90.0, 80.0]
    assert family_means(table_of(values), families, {"a": "conv"})["mean"].tolist() == [90.0, 75.0]
    low, high = stats.t.interval(0.95, 10, 85.0, stats.sem(values["a"]))
    row = family_means(table_of(values), families).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_intervals_hold_the_true_difference_nineteen_times_in_twenty():
    # Sequences move all networks alike, each network has its own level, and each sequence its own answer to a family.
    rng = np.random.default_rng(1)
    held = []
    for _ in range(100):
        clips, answers = rng.normal(0, 15, 11), rng.normal(0, 4, (2, 11))
        values = {
            f"{family}{i}": 70.0 + clips + answers[f] + rng.normal(0, 3) + rng.normal(0, 2, 11)
            for f, family in enumerate("ab")
            for i in range(3)
        }
        row = compare_families(table_of(values), {name: name[0] for name in values}).iloc[0]
        held.append(row["low"] <= 0 <= row["high"])
    assert np.mean(held) >= 0.9  # 95 % − 2.3 standard errors of 100 runs; of 500, in four settings, 95 to 97 % hold it


def test_sequences_of_one_scene_count_as_one():
    # Ten copies of a clip say no more than the clip: the interval is that of three clips.
    rng = np.random.default_rng(3)
    a, b = rng.normal(80, 10, 3), rng.normal(70, 10, 3)
    rows = [
        {"subject": name, "layer": "fc", "sequence": f"{clip}-{copy}", "scene": f"{clip}", "curvature_deg": value}
        for name, values in {"a": a, "b": b}.items()
        for clip, value in enumerate(values)
        for copy in range(10)
    ]
    row = compare_families(pd.DataFrame(rows), {"a": "A", "b": "B"}).iloc[0]
    low, high = stats.ttest_rel(a, b).confidence_interval()
    assert (row["low"], row["high"], row["sequences"]) == pytest.approx((low, high, 3))


def test_the_table_of_straightness_names_the_scene_of_each_clip():
    clips = camera_sequences(size=8, length=3, color="grey", pictures=2)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4))
    table = Straightness(clips)(Subject(network, "net")).assign(subject="net")
    assert table["scene"].unique().tolist() == ["china", "flower"]
    assert family_means(table, {"net": "net"})["sequences"].tolist() == [2]


def test_a_table_of_one_network_is_told_how_it_gets_a_subject():
    table = table_of({"a": np.arange(11.0)}).drop(columns="subject")
    with pytest.raises(AssayError, match=r"table\.assign\(subject=name\)"):
        compare_families(table, {"a": "A"})


def test_bad_families_are_named():
    table = table_of({"a": np.arange(11.0), "b": np.arange(11.0)})
    with pytest.raises(AssayError, match="families has 'c', the table has a, b"):
        compare_families(table, {"c": "C"})
    with pytest.raises(AssayError, match="'a' has no value of curvature_deg at layer 'pool'"):
        compare_families(table, {"a": "A", "b": "B"}, "pool")
    with pytest.raises(AssayError, match="no column 'subject'"):
        family_means(table.drop(columns="subject"), {"a": "A"})
    with pytest.raises(AssayError, match="several rows of a sequence"):
        family_means(pd.concat([table, table]), {"a": "A"})
    with pytest.raises(AssayError, match="1 sequences of 1 scenes in common"):
        family_means(table[table["sequence"] == "clip0"], {"a": "A"})


def test_one_network_against_several_is_the_t_test_of_equal_variances():
    # Without error over sequences: the one is as far from others like it as the several are from each other.
    one, several = np.array([80.0]), np.array([60.0, 63.0, 70.0, 71.0])
    values = {"a": np.full(11, 80.0)} | {f"b{i}": np.full(11, x) for i, x in enumerate(several)}
    row = compare_families(table_of(values), {name: name[0] for name in values}).iloc[0]
    expected = stats.ttest_ind(one, several)
    low, high = expected.confidence_interval()
    assert (row["low"], row["high"], row["p"]) == pytest.approx((low, high, expected.pvalue), rel=1e-9)
    assert row["networks"] == "1 v 4" and row["over"] == "sequences and networks"


def test_one_network_against_several_of_its_kind_is_rarely_found_to_differ():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(100):
        clips = rng.normal(0, 25, 11)
        values = {name: rng.normal(0, 10) + clips + rng.normal(0, 5, 11) for name in ("a", "b0", "b1", "b2", "b3")}
        row = compare_families(table_of(values), {name: name[0] for name in values}, "fc").iloc[0]
        found += row["low"] > 0 or row["high"] < 0
    assert found <= 10  # of 100, at 5 %; 26 where the spread of the one is taken to be none
