"""One cell = one Ray task, on a real Ray cluster started here."""

from __future__ import annotations

import pandas as pd
import pytest

from assay import Resources, Run, Straightness, evaluate
from measure_kit import Broken, KillsItsWorker, Slow, sequences, subjects

# Ray's own threads leave sockets and subprocesses to the garbage collector.
pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def assert_same_tables(a: Run, b: Run) -> None:
    for measure in a.measures:
        pd.testing.assert_frame_equal(a.table(measure), b.table(measure), check_exact=True)
        pd.testing.assert_frame_equal(a.summary(measure), b.summary(measure), check_exact=True)


def test_same_results_as_here_bit_for_bit(tmp_path, cluster):
    measures = [Straightness(sequences()), Slow(), Broken()]
    here = evaluate(subjects(3), measures, tmp_path / "here")
    there = evaluate(subjects(3), measures, tmp_path / "there", ray=True, resources=Resources(cpus=0.5))
    assert_same_tables(here, there)
    assert len(there.failures) == 3 and there.failures[0].error == "RuntimeError: <b>it broke</b> & how"


def test_a_worker_killed_in_the_middle_is_replaced(tmp_path, cluster):
    measure = KillsItsWorker(tmp_path / "marker")
    run = evaluate(subjects(2), measure, tmp_path / "run", ray=True)
    assert (tmp_path / "marker").exists() and run.manifest.status == "complete"
    undisturbed = evaluate(subjects(2), measure, tmp_path / "undisturbed")
    assert_same_tables(run, undisturbed)
    assert undisturbed.manifest.status == "complete"


def test_a_worker_that_dies_every_time_is_a_failed_cell(tmp_path, cluster):
    measure = KillsItsWorker(tmp_path / "no such folder" / "marker")
    run = evaluate(subjects(1), [measure, Slow()], tmp_path / "run", ray=True, resources=Resources(retries=1))
    assert [c.status for c in run.cells] == ["failed", "done"]
