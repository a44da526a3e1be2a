"""Limits of time and memory hold for whatever a system does, and nothing of a run goes on after it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assay import AssayError
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.protocol import Protocol, run_protocol
from assay.broad.run.results import Results
from assay.broad.systems.team import Evaluators, Module, Parts, Team

pytestmark = pytest.mark.slow
KITS = Path(__file__).parents[2] / "kits"
SMALL = Protocol(k=2, p=0.6, n=60, ratings=("Overall",), bootstrap=50)
EVALUATORS = {"text": Evaluators(Module("bag_of_words", {"terms": 100}), Module("topics", {"grid": {"topics": [3]}}))}


@pytest.fixture(autouse=True)
def kit(monkeypatch):
    monkeypatch.syspath_prepend(str(KITS))


def evaluate(folder, learner: Module, protocol=SMALL, only=("text:Overall/6s",)):
    words = Module("bag_of_words", {"terms": 100, "weights": "binary"})
    parts = Parts(words, learner, Module("linear_svr", {"grid": {"C": [0.1]}}))
    reviews = generated_reviews(count=200, restaurants=20, seed=3)
    team = Team("s", "Team s", {"text": parts})
    run_protocol(None, reviews, [team], EVALUATORS, str(folder), "an open secret, for tests", protocol, only=only)
    return Results(str(folder)).read_run("text:Overall", "6s")


def test_there_is_a_limit_of_time_by_default_and_limits_make_sense():
    assert Protocol().limit_s == 24 * 3600
    for wrong in ({"limit_s": 0}, {"memory_gib": -1.0}, {"cores": 0}):
        with pytest.raises(AssayError, match=rf"{next(iter(wrong))}="):
            Protocol(**wrong)


def test_time_counts_from_the_making_of_a_system(tmp_path):
    record = evaluate(tmp_path, Module("limits_kit:HangsWhenMade"), replace(SMALL, limit_s=5.0))
    assert record.status == "timeout" and "longer than 5 s" in record.reason


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory processes have")
@pytest.mark.parametrize("how", ["TakesAllAtOnce", "TakesMoreAndMore", "StartsOneThatTakesMore"])
def test_too_much_memory_is_a_status(tmp_path, how):
    record = evaluate(tmp_path, Module(f"limits_kit:{how}"), replace(SMALL, memory_gib=1.5))
    assert record.status == "out of memory", record


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for a process in /proc")
def test_a_child_that_leaves_its_session_and_its_parent_ends_with_the_run(tmp_path):
    seconds = f"{os.getpid()}.5"  # by which the process is known
    assert evaluate(tmp_path, Module("limits_kit:LeavesAChild", {"seconds": seconds})).status == "done"
    lines = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if p.exists()]
    assert not [line for line in lines if f"sleep\0{seconds}".encode() in line]


def test_what_killed_drivers_left_is_removed_and_two_drivers_do_not_meet(tmp_path):
    left = [tmp_path / "work" / "abc.view", tmp_path / "runs" / "text-Overall" / "6s" / ".tmp-host@1@x"]
    for file in left:
        file.parent.mkdir(parents=True)
        file.write_text("labels of training instances")
    holds = "import sys, time; from assay.core.lock import locked\n"
    holds += "with locked(sys.argv[1], 'runs'): print(); time.sleep(99)"
    command = [sys.executable, "-u", "-c", holds, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(AssayError, match=rf"is in use: process {other.pid} on .* runs there since"):
            evaluate(tmp_path, Module("broad_kit:Small"))
        other.kill()
    assert all(file.exists() for file in left)
    assert evaluate(tmp_path, Module("broad_kit:Small")).status == "done"
    assert not any(file.exists() for file in left) and not (tmp_path / ".lock").exists()


SCRIPT = """
import resource, sys
sys.path[:0] = sys.argv[1:3]
sys.dont_write_bytecode = True  # Python keeps compiled code that was cut at the limit, and cannot read it again
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
from test_limits import evaluate
from assay.broad.systems.team import Module
from assay import AssayError
try:
    print(evaluate(sys.argv[3], Module("broad_kit:Small")).status)
except AssayError as error:
    print(error)
"""


def test_a_file_that_may_not_be_whole_is_not_there_and_the_next_run_ends_well(tmp_path):
    """A limit of the size of files, as a full disk, stops the run with a sentence; no half of a file is believed."""
    calm = evaluate(tmp_path / "calm", Module("broad_kit:Small"))
    said = []
    for size in (300, 8_000):  # too little for the manifest, for features
        command = [
            sys.executable,
            "-c",
            SCRIPT,
            str(Path(__file__).parent),
            str(KITS),
            str(tmp_path / "run"),
            str(size),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        said.append(done.stdout)
    assert all("cannot write" in one or "failed" in one for one in said), said
    assert not list((tmp_path / "run").rglob(".tmp-*"))
    again = evaluate(tmp_path / "run", Module("broad_kit:Small"))
    assert (again.status, again.stages) == ("done", calm.stages)
    a, b = (Results(str(tmp_path / n)).predictions("text:Overall", "6s", 2) for n in ("calm", "run"))
    assert (a == b).all()
