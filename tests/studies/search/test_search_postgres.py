"""Several processes at one search, by a real PostgreSQL server that is started here."""

from __future__ import annotations

import signal

import psycopg
import pytest

from assay import AssayError
from assay.studies import load_search_plan, run_search
from assay.studies.search import database
from assay.studies.search.database import Database
from conftest import need
from postgres_kit import postgres, programs
from processes import wait_until
from search_kit import PLAN, Server, trials_of, write_plan

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def url():
    folder = programs()
    need(folder is not None, "PostgreSQL")
    with postgres(folder) as address:
        yield address


@pytest.fixture(scope="module")
def server():
    started = Server()
    yield started
    started.close()


def plan_in(folder, url, name, trials=12):
    text = PLAN.replace("trials: 12", f"trials: {trials}\nname: {name}\nstorage: {url}")
    return write_plan(folder, text)


def states(url, name):
    query = """select t.state, count(*) from trials t join studies s using (study_id)
               where s.study_name = %s group by t.state"""
    with psycopg.connect(url) as connection:
        return dict(connection.execute(query, (name,)).fetchall())


def test_two_workers_share_the_trials_of_one_search(tmp_path, url, server):
    plan = plan_in(tmp_path, url, "shared")
    (tmp_path / "crowd").mkdir()  # no trial ends before both workers have begun one
    words = ["search", str(plan), "--quiet", "--run"]
    assert server.run([*words, str(tmp_path / "a")], [*words, str(tmp_path / "b")]) == [0, 0]
    assert len(list((tmp_path / "crowd").iterdir())) == 2
    assert states(url, "shared")["COMPLETE"] == 12
    alone = run_search(write_plan(tmp_path, PLAN, "alone.yaml"), run=str(tmp_path / "alone"))
    # Who comes last sees all trials; their hyper-parameters, seeds and results are those of one process.
    assert run_search(plan, run=str(tmp_path / "a")).finished == alone.finished == 12
    assert trials_of(tmp_path / "a").equals(trials_of(tmp_path / "alone"))
    weights = [{path.name for path in (tmp_path / run / "networks").glob("*.safetensors")} for run in "ab"]
    assert len(weights[0] | weights[1]) == 12 and not weights[0] & weights[1] and all(weights)


def test_a_killed_worker_is_noticed_on_its_own_machine_at_once(tmp_path, url, server):
    plan = plan_in(tmp_path, url, "killed", trials=4)
    (tmp_path / f"kill-{load_search_plan(plan).seed_of(2)}").touch()
    words = ["search", str(plan), "--quiet"]
    assert server.run(words) == [-signal.SIGKILL] and server.run(words) == [0]
    assert states(url, "killed") == {"COMPLETE": 4, "FAIL": 1}


def test_a_worker_that_died_on_another_machine_is_noticed_by_its_silence(tmp_path, url, monkeypatch):
    plan = load_search_plan(plan_in(tmp_path, url, "silent", trials=2))
    monkeypatch.setattr(database, "GRACE_S", 1)
    gone = Database(plan, tmp_path)
    gone.prepare()
    taken = gone.claim()
    gone.in_flight[taken.place].set_user_attr("owner", "another-machine 1")
    gone.close()  # no more signs of life
    here = Database(plan, tmp_path)

    def taken_over():
        here.prepare()
        return len([t for t in here.trials().values() if t.state.name == "WAITING"]) == 2

    assert wait_until(taken_over)
    assert here.claim().hyperparameters == taken.hyperparameters
    here.close()


def test_a_place_that_was_laid_out_twice_has_not_failed_while_another_process_runs_it(tmp_path, url):
    plan = load_search_plan(plan_in(tmp_path, url, "twice", trials=1))
    other, here = Database(plan, tmp_path / "a"), Database(plan, tmp_path / "b")
    other.prepare()
    here.study.enqueue_trial({}, user_attrs={"place": 0})
    assert other.claim() is not None and here.claim() is None
    assert [trial.state.name for trial in here.study.get_trials()] == ["RUNNING", "FAIL"]
    assert here.trials()[0].state.name == "RUNNING"
    other.close()
    here.close()


def test_a_database_that_cannot_be_reached_is_one_sentence_without_the_password(tmp_path, url):
    wrong = url.replace("assay@", "nobody:secret@")
    with pytest.raises(AssayError, match=r"storage=postgresql://nobody:…@127.*cannot be used \(.*nobody.*run it again"):
        run_search(plan_in(tmp_path, wrong, "x"))
    with pytest.raises(AssayError, match=r"the database of the search cannot be used \(.*"):
        run_search(plan_in(tmp_path, "postgresql://assay@127.0.0.1:1/postgres", "x"))


def test_the_password_of_a_database_is_in_no_file_of_the_run(tmp_path, url):
    run_search(plan_in(tmp_path, url.replace("assay@", "assay:hunter2@"), "password", trials=1))
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"hunter2" in path.read_bytes()]
