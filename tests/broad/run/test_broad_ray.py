"""One run = one Ray task, on a real Ray cluster started here."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from assay import AssayError
from assay.broad.conditions import run_specs
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.protocol import Protocol, run_protocol
from assay.broad.run.job import make_job
from assay.broad.run.processes import Order, work
from assay.broad.run.results import Results
from assay.broad.systems.team import Evaluators, Module, Parts, Team
from assay.runs.process_tree import descendants
from processes import alive, wait_until

# Ray's own threads leave sockets and subprocesses to the garbage collector.
pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
KIT = str(Path(__file__).parents[2] / "kits")
SMALL = Protocol(k=2, p=0.6, n=60, ratings=("Overall",), bootstrap=50)
EVALUATORS = {"text": Evaluators(Module("bag_of_words", {"terms": 100}), Module("topics", {"grid": {"topics": [3]}}))}


@pytest.fixture(autouse=True)
def kit(monkeypatch):
    monkeypatch.syspath_prepend(KIT)


def team(letter: str, learner: Module) -> Team:
    words = Module("bag_of_words", {"terms": 100, "weights": "binary"})
    return Team(letter, f"Team {letter}", {"text": Parts(words, learner, Module("linear_svr", {"grid": {"C": [0.1]}}))})


def evaluate(folder, *teams, ray=False):
    reviews = generated_reviews(count=200, restaurants=20, seed=3)
    return run_protocol(
        None, reviews, teams, EVALUATORS, str(folder), "an open secret, for tests", SMALL, os.cpu_count(), ray=ray
    )


def results_of(folder) -> dict[str, object]:
    """Everything that must be the same wherever a run is done: all but times."""
    found = {p.name: p.read_bytes() for p in (Path(folder) / "analysis").iterdir()}
    for file in (Path(folder) / "runs").rglob("*.npz"):
        arrays, info = Results(str(folder)).read_fold("text:Overall", file.parent.name, int(file.stem[4:]))
        found[f"{file.parent.name}/{file.name}"] = [arrays["predictions"].tobytes(), replace(info, seconds=0.0)]
    return found


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(KIT)
        evaluate(folder, team("s", Module("broad_kit:Small")))
    return results_of(folder)


def test_same_results_as_here_bit_for_bit(tmp_path, monkeypatch, cluster, here):
    monkeypatch.chdir(tmp_path)  # a folder named relative to where it was started is the same for all workers
    evaluate("there", team("s", Module("broad_kit:Small")), ray=True)
    assert results_of(tmp_path / "there") == here
    assert {p.name for p in tmp_path.iterdir()} == {"there"}


class Killer(threading.Thread):
    """Kills workers of the cluster that are at work on a run, each once, up to so many; from outside: no system can."""

    def __init__(self, number: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.killed: dict[int, list[int]] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while len(self.killed) < self.number and not self.over.wait(0.05):
            for pid in descendants(os.getpid()):
                file = Path(f"/proc/{pid}/cmdline")
                with suppress(OSError):
                    below = descendants(pid)
                    if file.read_bytes().startswith(b"ray::with_code") and len(below) > 3 and pid not in self.killed:
                        os.kill(pid, signal.SIGKILL)
                        self.killed[pid] = below
                        break

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


@needs_proc
def test_a_run_whose_worker_is_killed_in_the_middle_is_done_again(tmp_path, cluster, here):
    with Killer(1) as killer:
        evaluate(tmp_path / "run", team("s", Module("broad_kit:Small")), ray=True)
    (left,) = killer.killed.values()
    assert wait_until(lambda: not any(map(alive, left))), "nobody needs what it had started"
    assert results_of(tmp_path / "run") == here


@needs_proc
def test_a_worker_lost_once_too_often_is_a_failed_run_and_the_others_finish(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr("assay.broad.run.processes.RETRIES", 0)
    with Killer(2) as killer:
        analysis = evaluate(tmp_path, team("k", Module("broad_kit:Small")), ray=True)
    assert len(killer.killed) == 2
    status = analysis.tables["status"].set_index("run")
    failed = status[status["status"] == "failed"]
    assert len(failed) == 2 and (status["status"] == "done").sum() == 4
    assert failed["reason"].str.startswith("Ray: The worker died").all()
    record = Results(str(tmp_path)).read_run("text:Overall", failed.index[0])
    assert record.modules["module"]["module"] == "bag_of_words"


def order(folder, **learner) -> Order:
    job = make_job(
        run_specs(("s",))[-1], "text", {"s": team("s", Module("broad_kit:Small", learner))}, EVALUATORS["text"]
    )
    return Order("text:Overall", str(folder / "no.view"), job, str(folder), str(folder / "work"), ())


def test_a_folder_that_a_node_does_not_see_is_a_sentence(tmp_path, cluster):
    (record,) = work([order(tmp_path)], ray=True)
    assert record.status == "failed" and f"does not see {tmp_path}: use a folder that all nodes share" in record.reason
    assert Results(str(tmp_path)).read_run("text:Overall", "6s") == record


def test_a_module_that_wants_a_gpu_does_not_wait_for_one_that_never_comes(tmp_path, cluster):
    with pytest.raises(AssayError, match="asks for device=cuda, and no node of the Ray cluster has a GPU"):
        list(work([order(tmp_path, device="cuda")], ray=True))
