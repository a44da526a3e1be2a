"""kill -9 at any moment: running again completes the run, and no file is ever half-written."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from assay.runs.run import Run

HERE = Path(__file__).parents[1] / "kits"
KILLS = 20
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from measure_kit import Slow, subjects
from assay import evaluate
evaluate(subjects(6), {f"slow{i}": Slow(scale=i + 1.0, seconds=0.02) for i in range(5)}, sys.argv[2])
"""


def start(folder: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(HERE), str(folder)])


def assert_whole(folder: Path) -> int:
    """Every file under its final name is complete."""
    cells = [p for p in (folder / "cells").glob("*") if not p.name.startswith(".tmp-")]
    for path in [*cells, *folder.glob("tables/*.parquet"), *folder.glob("summaries/*.parquet")]:
        assert pq.read_table(io.BytesIO(path.read_bytes())).num_rows == 10 or path.parent.name != "cells"
    if (folder / "manifest.json").exists():
        json.loads((folder / "manifest.json").read_text())
    return len(cells)


@pytest.mark.timeout(900)
def test_twenty_kills_and_the_tables_of_an_undisturbed_run(tmp_path):
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    assert start(undisturbed).wait() == 0
    chance = random.Random(0)
    counts = []
    for _ in range(KILLS):
        process = start(disturbed)
        before = len(list(disturbed.glob("cells/*.parquet")))
        # Wait until it works (the import of torch alone takes seconds), then a random moment more.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if before == 30 or len(list(disturbed.glob("cells/*.parquet"))) > before:
                break
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(assert_whole(disturbed))
    assert counts == sorted(counts) and counts[0] < 30, counts
    assert len(set(counts)) > 5, f"the kills did not fall in the middle of the run: {counts}"
    assert start(disturbed).wait() == 0
    assert Run(str(disturbed)).manifest["status"] == "complete"
    assert not list(disturbed.glob("cells/.tmp-*")), "what the killed processes left is swept"
    for kind in ("tables", "summaries"):
        for path in sorted((undisturbed / kind).iterdir()):
            assert path.read_bytes() == (disturbed / kind / path.name).read_bytes(), path.name
