"""A run that is interrupted leaves no process behind and keeps what is done; running it again finishes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.runs.run import Run
from processes import alive, hear_interrupts, wait_until

pytestmark = pytest.mark.kill
KITS = Path(__file__).parents[1] / "kits"
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from assay import evaluate
from measure_kit import Holds, Slow, subjects
folder = Path(sys.argv[2])
run = evaluate(subjects(2), [Slow(seconds=0.0), Holds(folder)], folder / "run", processes=2)
print(run.outcome)
"""


@pytest.mark.parametrize(
    ("send", "sent"),
    [(os.killpg, signal.SIGINT), (os.kill, signal.SIGKILL)],  # the command line's own are in test_signals.py
    ids=["Ctrl-C in a terminal", "kill"],
)
def test_no_process_stays_what_is_done_is_kept_and_running_again_finishes(tmp_path, send, sent):
    (tmp_path / "hold").touch()
    command = [sys.executable, "-c", SCRIPT, str(KITS), str(tmp_path)]
    heard = {"preexec_fn": hear_interrupts, "start_new_session": True}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **heard) as interrupted:
        assert wait_until(lambda: len(list(tmp_path.glob("*.process"))) == 2 or interrupted.poll() is not None)
        workers = [int(path.stem) for path in tmp_path.glob("*.process")]
        assert len(workers) == 2 and all(map(alive, workers)), interrupted.stderr.read()
        send(interrupted.pid, sent)
        assert interrupted.wait() == -sent
        assert wait_until(lambda: not any(map(alive, workers))), "the processes that measured end too"
        said = interrupted.stderr.read()
    # One traceback, of the process that was asked to stop, and none of those that it had started.
    assert said.count("Traceback") == (sent == signal.SIGINT), said
    assert Run(tmp_path / "run").done == 2
    (tmp_path / "hold").unlink()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.strip() == "2 cells kept, 2 measured, 0 failed"
    assert Run(tmp_path / "run").manifest.status == "complete"
