from __future__ import annotations

import pytest

from assay import AssayError
from assay.broad.conditions import CONDITIONS, CONTRASTS, Condition, run_specs


@pytest.mark.requirement("D4", "E2")
def test_eleven_runs_in_the_order_of_the_plans_figure():
    keys = [run.key for run in run_specs(("n", "s"))]
    assert keys == ["1", "2n", "2s", "3n", "3s", "4n", "4s", "5n", "5s", "6n", "6s"]
    assert [sum(k.startswith(str(c.number)) for k in keys) for c in CONDITIONS] == [1, 2, 2, 2, 2, 2]


@pytest.mark.requirement("E1")
def test_conditions_have_the_plans_names():
    names = ["FE/SOTA", "FE/SLC", "PRE/SOTA", "PRE/SLC", "PRE/SUL/SLC", "PRE/DUL/SLC"]
    assert [c.name for c in CONDITIONS] == names


@pytest.mark.requirement("E3")
def test_conditions_that_make_no_sense_cannot_be_built():
    with pytest.raises(AssayError, match="between a team's own preprocessor"):
        Condition(7, "FE", "DUL", "SLC")


@pytest.mark.requirement("E4")
def test_all_contrasts_of_the_plan_are_there():
    assert {(c.focal, c.other) for c in CONTRASTS} == {(6, 1), (6, 3), (6, 4), (6, 5), (1, 3), (1, 2), (3, 4)}


def test_counts_of_the_plan():
    """Values a run 120 and 50; fits without tuning 1,320 and 550; learners 4 + 20 = 24; predictions kept."""
    runs, k, video, text = len(run_specs(("n", "s"))), 10, 12, 5
    assert (k * video, k * text) == (120, 50)
    assert (runs * k * video, runs * k * text) == (1320, 550)
    learners = sum(run.condition.unsupervised is not None for run in run_specs(("n", "s")))
    assert learners + learners * text == 24
    assert (runs * k * video * 884, runs * k * text * 130_109) == (1_166_880, 71_559_950)
