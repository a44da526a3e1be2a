"""A run on Ray survives what Ray does not: no cluster, a node that is killed, a driver that is killed or stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from assay import AssayError, Run, evaluate
from assay.runs import on_ray
from assay.runs.process_tree import descendants
from assay.runs.ray_jobs import patiently
from measure_kit import KillsTheNode, Slow, subjects
from processes import alive, hear_interrupts, wait_until

KITS = Path(__file__).parents[1] / "kits"
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from assay import Resources, evaluate
from assay.cli.ending import interruptible
from measure_kit import Holds, Slow, subjects
folder = Path(sys.argv[2])
with interruptible():
    evaluate(subjects(1), [Slow(seconds=0.0), Holds(folder)], folder / "run", ray=True, resources=Resources(0.5))
"""


def started_since(before: list[int]) -> set[int]:
    """Processes below this one that other tests have not started before."""
    return set(descendants(os.getpid())) - set(before)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:1", "ray://127.0.0.1:1", "no.such.host.invalid:6379"])
def test_an_address_without_a_cluster_is_a_sentence_at_once(tmp_path, address):
    with pytest.raises(AssayError, match=f"ray={address}: there is no Ray cluster"):
        evaluate(subjects(1), Slow(), tmp_path, ray=address)


def test_where_all_is_done_no_cluster_is_needed(tmp_path):
    evaluate(subjects(1), Slow(), tmp_path)
    assert evaluate(subjects(1), Slow(), tmp_path, ray="127.0.0.1:1").manifest.status == "complete"


def test_a_node_that_was_too_late_is_started_again():
    late = Exception("The current node timed out during startup. This could happen because …")
    undone: list[str] = []

    def start(failures: list[Exception]) -> str:
        if failures:
            raise failures.pop()
        return "there"

    def began(*failures: Exception) -> str:
        left = list(failures)
        return patiently(lambda: start(left), lambda: undone.append("undone"))

    assert began() == "there" and not undone
    assert began(late, late) == "there" and len(undone) == 2
    with pytest.raises(Exception, match="timed out during startup"):
        began(late, late, late)
    with pytest.raises(ValueError, match="no such option"):
        began(ValueError("no such option"))
    assert len(undone) == 4, "what is no lateness is not tried again"


@pytest.mark.ray
def test_what_listens_there_and_is_no_ray_is_given_up(tmp_path, monkeypatch):
    before = descendants(os.getpid())
    monkeypatch.setattr(on_ray, "_WAIT_S", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as other:  # which takes calls and never answers
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(AssayError, match=f"ray={address}: there is no Ray cluster \\(nothing of Ray has answered"):
            evaluate(subjects(1), Slow(), tmp_path, ray=address)
    assert not started_since(before)


@pytest.mark.ray
def test_a_node_that_is_killed_is_failed_cells_and_running_again_finishes(tmp_path):
    before = descendants(os.getpid())
    measures = [Slow(), KillsTheNode(tmp_path / "marker")]
    run = evaluate(subjects(2), measures, tmp_path / "run", ray=True)
    assert run.failures and all(c.error.startswith("Ray: ") for c in run.failures)
    assert run.manifest.status != "complete"
    assert not started_since(before), "what was started for Ray has ended"
    assert evaluate(subjects(2), measures, tmp_path / "run").manifest.status == "complete"


@pytest.mark.ray
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_nothing_of_ray_stays_when_the_driver_ends(tmp_path, sent):
    (tmp_path / "hold").touch()
    before = list(Path("/tmp").glob("assay-ray-*"))  # of others
    command = [sys.executable, "-c", SCRIPT, str(KITS), str(tmp_path)]
    heard = {"preexec_fn": hear_interrupts, "start_new_session": True}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **heard) as driver:
        held = wait_until(lambda: list(tmp_path.glob("*.process")) or driver.poll() is not None)
        started = descendants(driver.pid)
        assert held and len(started) > 3, driver.stderr.read()
        os.kill(driver.pid, sent)
        assert driver.wait() == {signal.SIGTERM: 143, signal.SIGKILL: -9}[sent]
        assert wait_until(lambda: not any(map(alive, started)))
        said = driver.stderr.read().splitlines()
    assert [line.startswith("assay: ") for line in said] == [True] * (sent == signal.SIGTERM), said
    assert wait_until(lambda: not [p for p in Path("/tmp").glob("assay-ray-*") if p not in before])
    assert Run(tmp_path / "run").done <= 1
