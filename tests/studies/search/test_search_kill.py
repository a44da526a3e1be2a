"""kill -9 in the middle of trials: run again, a search ends with the same trials as one that was never disturbed."""

from __future__ import annotations

import signal
import sqlite3

import pytest

from assay.studies import load_search_plan
from search_kit import PLAN, Server, trials_of, write_plan

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def server():
    started = Server()
    yield started
    started.close()


@pytest.mark.parametrize("sampler", ["random", "grid", "tpe"])
def test_killed_twice_and_resumed_it_has_the_trials_of_an_unbroken_search(tmp_path, server, sampler):
    text = PLAN.replace("trials: 12", f"trials: 12\nsampler: {sampler}")
    if sampler == "grid":
        text = text.replace("width: {int: [2, 16], log: true}", "width: [2, 4, 8, 16]")
        text = text.replace("rate: {float: [1e-3, 0.1], log: true}", "rate: [0.1, 0.03, 0.01]")
    plan = write_plan(tmp_path, text)
    loaded = load_search_plan(plan)
    for place in (4, 9):
        (tmp_path / f"kill-{loaded.seed_of(place)}").touch()
    words = ["search", str(plan), "--quiet"]
    assert [server.run(words) for _ in range(3)] == [[-signal.SIGKILL], [-signal.SIGKILL], [0]]
    assert server.run([*words, "--run", str(tmp_path / "unbroken")]) == [0]
    broken, unbroken = trials_of(tmp_path / "run"), trials_of(tmp_path / "unbroken")
    assert broken.equals(unbroken)
    assert broken["trial"].tolist() == list(range(12)) and broken["status"].eq("complete").all()
    assert not broken[["width", "rate"]].duplicated().any()
    with sqlite3.connect(tmp_path / "run" / "search.db") as database:
        states = dict(database.execute("select state, count(*) from trials group by state").fetchall())
    database.close()
    assert states == {"COMPLETE": 12, "FAIL": 2}  # the two that were killed, each tried again
    assert len(list((tmp_path / "run" / "networks").glob("trial_*.safetensors"))) == 12


def test_a_finished_search_does_nothing_more_and_more_trials_can_be_added(tmp_path, server):
    plan = write_plan(tmp_path, PLAN.replace("trials: 12", "trials: 3"))
    assert server.run(["search", str(plan), "--quiet"]) == [0]
    first = trials_of(tmp_path / "run")
    database = (tmp_path / "run" / "search.db").read_bytes()
    assert server.run(["search", str(plan), "--quiet"]) == [0]
    assert trials_of(tmp_path / "run").equals(first) and (tmp_path / "run" / "search.db").read_bytes() == database
    write_plan(tmp_path, PLAN.replace("trials: 12", "trials: 5"))
    assert server.run(["search", str(plan), "--quiet"]) == [0]
    assert trials_of(tmp_path / "run")[:3].equals(first) and len(trials_of(tmp_path / "run")) == 5
