"""One cell = one Ray task, on a real Ray cluster started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay import Resources, Straightness, evaluate
from measure_kit import Broken, KillsItsWorker, Slow, sequences, subjects

# Ray's own threads leave sockets and subprocesses to the garbage collector.
pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def files(folder: Path) -> dict[str, bytes]:
    return {
        f"{p.parent.name}/{p.name}": p.read_bytes() for k in ("tables", "summaries") for p in (folder / k).iterdir()
    }


def test_same_results_as_here_bit_for_bit(tmp_path, cluster):
    measures = [Straightness(sequences()), Slow(), Broken()]
    evaluate(subjects(3), measures, tmp_path / "here")
    there = evaluate(subjects(3), measures, tmp_path / "there", ray=True, resources=Resources(cpus=0.5))
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert len(there.failures) == 3 and there.failures[0].error == "RuntimeError: <b>it broke</b> & how"


def test_a_worker_killed_in_the_middle_is_replaced(tmp_path, cluster):
    measure = KillsItsWorker(tmp_path / "marker")
    run = evaluate(subjects(2), measure, tmp_path / "run", ray=True)
    assert (tmp_path / "marker").exists() and run.manifest["status"] == "complete"
    undisturbed = evaluate(subjects(2), measure, tmp_path / "undisturbed")
    assert files(tmp_path / "run") == files(tmp_path / "undisturbed")
    assert undisturbed.manifest["status"] == "complete"


def test_a_worker_that_dies_every_time_is_a_failed_cell(tmp_path, cluster):
    measure = KillsItsWorker(tmp_path / "no such folder" / "marker")
    run = evaluate(subjects(1), [measure, Slow()], tmp_path / "run", ray=True, resources=Resources(retries=1))
    assert [c.status for c in run.cells] == ["failed", "done"]
