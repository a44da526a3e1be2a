"""Kills of ``assay broad run`` at random moments leave nothing behind and change no result; three here, 200 by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kill, pytest.mark.skipif(sys.platform != "linux", reason="finds orphans as Linux does")]
SCRIPT = Path(__file__).parents[3] / "benchmarks" / "kills.py"


def test_after_three_kills_results_are_those_of_an_undisturbed_run_and_nothing_is_left():
    # Sockets of processes are files in its temporary folder, whose names may not be as long as those of pytest's.
    # By this seed all three signals come, if no run ends before it is killed.
    command = [sys.executable, str(SCRIPT), "--command", "broad", "--kills", "3", "--seed", "606"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills: " in done.stdout
    assert "results that differ: none" in done.stdout
    assert "processes left: none" in done.stdout and "temporary files left: none" in done.stdout
