"""A lock on a folder: others are told who holds it, and no way of ending leaves it held."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from assay import AssayError
from assay.core.lock import locked

HOLD = """
import sys, time
from assay.core.lock import locked
with locked(sys.argv[1], "runs the evaluation"):
    print("held", flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def holder(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_another_process_is_named_and_ending_it_frees_the_folder(tmp_path, holder):
    with (
        pytest.raises(AssayError, match=rf"is in use: process {holder.pid} on .* runs the evaluation there since 20"),
        locked(tmp_path, "analyses"),
    ):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with locked(tmp_path, "analyses"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_blocks_may_be_inside_each_other_and_the_last_one_lets_go(tmp_path):
    with locked(tmp_path / "new", "runs"):
        with locked(tmp_path / "new", "analyses"):
            pass
        assert (tmp_path / "new" / ".lock").exists()
    assert list((tmp_path / "new").iterdir()) == []


def test_an_error_inside_lets_go_too(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path, "runs"):
        raise KeyError
    with locked(tmp_path, "runs"):
        pass


def test_a_place_that_is_no_folder_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(AssayError, match=r"cannot write .*: choose another folder"), locked(tmp_path / "file", "runs"):
        pass
