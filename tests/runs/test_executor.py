"""The executor gives the same results wherever jobs are done, and says what became of those that were lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from assay import Straightness, evaluate
from assay.runs.executor import Job, Limits, Lost, Workers, execute
from executor_kit import dies, grows, hangs, leaves, leaves_a_child, raises, together
from measure_kit import Broken, Slow, sequences, subjects
from processes import alive, wait_until

JOBS = [Job(i, streamed=f"subject {i // 3}", kept=f"measure {i % 3}") for i in range(9)]


@pytest.mark.parametrize("workers", [Workers(), Workers(processes=2), Workers(processes=2, fresh=True)])
def test_every_job_gets_its_own_and_what_it_shares(workers):
    done = {d.job.own: d.result for d in execute(together, JOBS, workers)}
    assert {i: result[:3] for i, result in done.items()} == {j.own: (j.streamed, j.kept, j.own) for j in JOBS}
    processes = {result[3] for result in done.values()}
    assert len(processes) == (9 if workers.fresh else workers.processes or 1)
    assert (os.getpid() in processes) == (workers.processes == 0)


def test_jobs_are_taken_as_workers_become_free():
    taken = []

    def jobs():
        for i in range(6):
            taken.append(i)
            yield Job(i)

    first = next(iter(execute(together, jobs(), Workers(processes=2))))
    assert first.result[2] in (0, 1) and len(taken) <= 3


def test_a_process_that_dies_takes_one_job_with_it():
    done = {d.job.own: d.result for d in execute(dies, [Job(i) for i in range(4)], Workers(processes=2))}
    assert {i for i, result in done.items() if result == i} == {0, 2, 3}
    assert done[1] == Lost("the process died (signal 9)")


def test_a_job_that_calls_exit_ends_alone():
    done = {d.job.own: d.result for d in execute(leaves, [Job(i) for i in range(4)], Workers(processes=1))}
    assert done == {0: 0, 1: Lost("SystemExit: 3"), 2: 2, 3: 3}


def test_a_process_that_never_began_is_said_so(tmp_path):
    script = """
from assay.runs.executor import Job, Workers, execute
from executor_kit import together
print([done.result.reason for done in execute(together, [Job(0)], Workers(processes=1))])
"""
    (tmp_path / "unguarded.py").write_text(script)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "kits")}
    command = [sys.executable, "unguarded.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert "the process died before it began (exit code 1); a script that starts processes must" in done.stdout


@pytest.mark.slow
def test_a_stage_that_takes_too_long_is_stopped():
    jobs = [Job(i, limits=Limits(2.0 if i == 1 else None)) for i in range(3)]
    done = {d.job.own: d.result for d in execute(hangs, jobs, Workers(processes=2))}
    assert done[0] == 0 and done[2] == 2
    assert isinstance(done[1], Lost) and done[1].timeout and "'fitting' took longer than 2 s" in done[1].reason


def test_what_a_task_raises_is_a_lost_job_in_a_process_and_raised_here():
    (lost,) = execute(raises, [Job(0)], Workers(processes=1))
    assert lost.result == Lost("RuntimeError: no good")
    with pytest.raises(RuntimeError, match="no good"):
        list(execute(raises, [Job(0)], Workers()))


def test_what_cannot_be_sent_is_a_lost_job_and_the_others_are_done():
    lost, done = execute(together, [Job(threading.Lock()), Job(1)], Workers(processes=1))
    assert isinstance(lost.result, Lost) and "cannot be sent to another process" in lost.result.reason
    assert done.result[2] == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory processes have")
@pytest.mark.parametrize("how", ["one array", "many", "children"])
def test_a_job_that_takes_too_much_memory_is_stopped_and_the_others_go_on(how):
    jobs = [Job(own, limits=Limits(memory_bytes=2**30)) for own in ("small", how, "little")]
    workers = Workers(processes=1, fresh=True)
    done = {d.job.own: d.result for d in execute(grows, jobs, workers)}
    assert (done["small"], done["little"]) == ("small", "little")
    assert isinstance(done[how], Lost) and done[how].out_of_memory and not done[how].timeout, done[how]
    assert "GiB" in done[how].reason


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for a process in /proc")
@pytest.mark.parametrize("how", ["returns", "hangs", "is closed"])
def test_what_a_job_starts_ends_with_it_though_it_leaves_its_session_and_its_parent(tmp_path, how):
    mark = tmp_path / f"{how}.pid"
    jobs = [Job(str(tmp_path / how), limits=Limits(stage_s=1.0 if how == "hangs" else None))]
    if how == "is closed":
        ending = execute(leaves_a_child, [*jobs, Job(str(tmp_path / "other"))], Workers(processes=2, fresh=True))
        next(ending)
        assert wait_until(lambda: mark.exists() and mark.read_text() != "")
        ending.close()
    else:
        (done,) = execute(leaves_a_child, jobs, Workers(processes=1, fresh=True))
        assert isinstance(done.result, Lost) == (how == "hangs")
    assert not alive(mark.read_text())


@pytest.mark.slow
def test_cells_in_processes_are_those_of_this_process(tmp_path: Path):
    measures = [Straightness(sequences()), Slow(), Broken()]
    here = evaluate(iter(subjects(3)), measures, tmp_path / "here")
    there = evaluate(iter(subjects(3)), measures, tmp_path / "there", processes=2)
    for measure in here.measures:
        pd.testing.assert_frame_equal(here.table(measure), there.table(measure), check_exact=True)
    assert len(there.failures) == 3 and there.keys == here.keys
