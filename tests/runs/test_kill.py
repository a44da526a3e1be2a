"""kill -9 at any moment: running again completes the run, and no file is ever half-written.

A moment is a function call of the process that is killed, counted from the opening of one of its temporary files. So
the kills fall where they should on any machine, however busy: before a file's bytes, between them and its name, after.
"""

from __future__ import annotations

import io
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from assay.runs.run import Run

pytestmark = pytest.mark.kill
KITS = Path(__file__).parents[1] / "kits"
KILLS = 20
CELLS = 30
SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from measure_kit import Slow, subjects
from assay import evaluate
from assay.core.source_code import source_fingerprint

source_fingerprint(Slow.__module__)  # kept while no file changes: else each process would read all that it depends on


def die_after(files, calls):
    def opened(event, what):
        nonlocal files
        if event == "open" and ".tmp-" in str(what[0]):
            files -= 1
            if files == 0:
                sys.setprofile(called)

    def called(frame, event, what):
        nonlocal calls
        if event in ("call", "c_call"):
            calls -= 1
            if calls < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(opened)


# Each line asks for one process: a folder, and after how many files and calls it is killed. It is forked from this
# one, which has imported everything, read the measure's source and run nothing.
for line in sys.stdin:
    folder, files, calls = line.split()
    child = os.fork()
    if not child:
        if int(files):
            die_after(int(files), int(calls))
        evaluate(subjects(6), {f"slow{i}": Slow(scale=i + 1.0, seconds=0.0) for i in range(5)}, folder)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def start():
    """Run the evaluation in a process of its own, and return how that ended."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(KITS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def run(folder: Path, files: int = 0, calls: int = 0) -> int:
            print(folder, files, calls, file=process.stdin, flush=True)
            return int(process.stdout.readline())

        yield run
        process.stdin.close()


def assert_whole(folder: Path) -> int:
    """Every file under its final name is complete."""
    cells = [p for p in (folder / "cells").glob("*") if not p.name.startswith(".tmp-")]
    for path in cells:
        assert pq.read_table(io.BytesIO(path.read_bytes())).num_rows == 10
    if (folder / "manifest.json").exists():
        json.loads((folder / "manifest.json").read_text())
    return len(cells)


def test_twenty_kills_and_the_tables_of_an_undisturbed_run(tmp_path, start):
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    assert start(undisturbed) == 0
    chance = random.Random(0)
    counts, left = [], []
    for _ in range(KILLS):
        calls = chance.choice([chance.randrange(10), chance.randrange(2000)])  # while it is written, or long after
        assert start(disturbed, chance.randrange(1, 5), calls) == -signal.SIGKILL
        counts.append(assert_whole(disturbed))
        left += disturbed.glob("cells/.tmp-*")
    assert counts == sorted(counts) and counts[0] < CELLS, counts
    assert len(set(counts)) > 5, f"the kills did not fall in the middle of the run: {counts}"
    assert left, "no kill fell between a file's bytes and its name"
    assert start(disturbed) == 0
    finished, expected = Run(str(disturbed)), Run(str(undisturbed))
    assert finished.manifest.status == "complete"
    assert not list(disturbed.glob("cells/.tmp-*")), "what the killed processes left is swept"
    for measure in expected.measures:
        pd.testing.assert_frame_equal(finished.table(measure), expected.table(measure), check_exact=True)
        pd.testing.assert_frame_equal(finished.summary(measure), expected.summary(measure), check_exact=True)
