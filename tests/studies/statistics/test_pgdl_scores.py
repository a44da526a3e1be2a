"""Values computed by PGDL's own scoring program for 54 networks of its second task."""

from __future__ import annotations

import pandas as pd
import pytest

from assay.studies import STATISTICS, conditional_mutual_information, kendall_tau, pearson, score_measures

HYPERPARAMETERS = ["h0", "h1", "h2", "h3"]
CMI = {
    "WCV": 0.374413798762,
    "smooth_2": 0.357450402359,
    "max_rbf_neighbor": 0.334867609863,
    "RBF": 0.268853004337,
    "VR": 0.195814607566,
    "VPM_80": 0.168424760148,
    "smoothness_gap": 0.094660580042,
    "VPM_1": 0.064400298278,
    "smoothness_rate_old": 0.041462572835,
    "manifold_mixup": 0.034292865863,
    "training_accuracy": 0.030840776700,
    "vc_dim": 0,
}
ABSOLUTE_PEARSON = {"WCV": 0.819096577896, "VR": 0.924293194624, "VPM_80": 0.931118263068, "VPM_1": 0.870882950085}


@pytest.fixture(scope="module")
def task2(shared_data):
    return pd.read_csv(shared_data / "pgdl" / "task2_v1.csv")


@pytest.mark.parametrize("measure", CMI)
def test_conditional_mutual_information(task2, measure):
    found = conditional_mutual_information(task2[measure], task2["gen_gap"], task2[HYPERPARAMETERS])
    # Values have 12 decimals, and the program adds 1e-12 within its logarithms.
    assert found == pytest.approx(CMI[measure], rel=1e-10, abs=0)


def test_other_sizes_and_no_self_pairs(task2):
    arguments = task2["WCV"], task2["gen_gap"], task2[HYPERPARAMETERS]
    # Known to six decimals.
    assert conditional_mutual_information(*arguments, sizes=(0, 1, 2)) == pytest.approx(0.337450, abs=5e-7)
    assert conditional_mutual_information(*arguments, self_pairs=False) == pytest.approx(0.366999, abs=5e-7)


def test_mirror_images_score_differently_by_pairs_of_a_network_with_itself_alone(task2):
    """The finding of docs/cmi-self-pairs.md: two published measures are each other's mirror image."""
    gap, grid = task2["gen_gap"], task2[HYPERPARAMETERS]
    mirrors = [task2["WCV"], task2["max_rbf_neighbor"]]
    assert sum(mirrors).to_numpy() == pytest.approx(0.25, abs=6e-8)  # single precision
    assert kendall_tau(mirrors[0], gap) == -kendall_tau(mirrors[1], gap)
    with_self, distinct = (
        [conditional_mutual_information(m, gap, grid, self_pairs=self_pairs) for m in mirrors]
        for self_pairs in (True, False)
    )
    assert with_self == pytest.approx([0.3744, 0.3349], abs=5e-5)
    assert distinct[0] == pytest.approx(distinct[1], abs=1e-14) == pytest.approx(0.3670, abs=5e-5)


@pytest.mark.parametrize("measure", ABSOLUTE_PEARSON)
def test_absolute_pearson(task2, measure):
    # Values have 12 decimals.
    assert abs(pearson(task2[measure], task2["gen_gap"])) == pytest.approx(ABSOLUTE_PEARSON[measure], abs=1e-12)


def test_the_table_of_all_measures_repeats_the_single_values(task2):
    measures, gap, grid = task2[list(CMI)], task2["gen_gap"], task2[HYPERPARAMETERS]
    table = score_measures(measures, gap, grid, "cmi", draws=50).set_index("measure")
    assert table["value"].to_dict() == pytest.approx(CMI, rel=1e-10, abs=0)
    assert table["status"].drop("vc_dim").eq("ok").all() and table["status"]["vc_dim"] == "no interval"
    assert (table["low"] <= table["value"]).drop("vc_dim").all() and (table["low"].drop("vc_dim") >= 0).all()
    taus = score_measures(measures, gap, grid, "kendall_tau", draws=50).set_index("measure")["value"]
    assert taus["VR"] == kendall_tau(measures["VR"], gap)
    assert set(STATISTICS) == {
        "cmi", "cmi_distinct", "kendall_tau", "granulated_kendall", "worst_sign_error", "mean_sign_error", "pearson",
    }  # fmt: skip
