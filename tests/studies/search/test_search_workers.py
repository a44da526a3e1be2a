"""Searches in several processes and on a Ray cluster: the trials of one process, whoever runs them."""

from __future__ import annotations

import pandas as pd
import pytest

from assay.studies import load_search_plan, run_search
from search_kit import PLAN, write_plan

SMALL = PLAN.replace("trials: 12", "trials: 4") + "keep: true\n"
RAY = [
    # Ray's own threads leave sockets and subprocesses to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def assert_same(a, b) -> None:
    pd.testing.assert_frame_equal(a.trials.drop(columns="seconds"), b.trials.drop(columns="seconds"), check_exact=True)


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path, SMALL)


@pytest.mark.slow
def test_processes_give_the_trials_of_one_and_one_that_dies_is_tried_again(tmp_path, plan):
    here = run_search(plan, run=str(tmp_path / "here"))
    (tmp_path / f"kill-{load_search_plan(plan).seed_of(1)}").touch()
    there = run_search(plan, processes=2, run=str(tmp_path / "there"))
    assert there.trials["status"].tolist() == ["complete", "failed", "complete", "complete"]
    assert there.trials["error"][1] == "the process died (signal 9)"
    assert_same(here, run_search(plan, processes=2, run=str(tmp_path / "there")))
    weights = [(tmp_path / run / "networks" / "trial_003.safetensors").read_bytes() for run in ("here", "there")]
    assert weights[0] == weights[1]


@pytest.mark.usefixtures("cluster")
class TestOnRay:
    pytestmark = RAY

    def test_a_cluster_gives_the_trials_of_one_process(self, tmp_path, plan):
        here = run_search(plan, run=str(tmp_path / "here"))
        assert_same(here, run_search(plan, ray=True, run=str(tmp_path / "there")))
        assert len(list((tmp_path / "there" / "networks").iterdir())) == 4
