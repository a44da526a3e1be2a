"""SIGINT and SIGTERM end a command by one line and exit code 130 or 143, and nothing that it started goes on.

The signal comes from the network itself, in the middle of its work: where it is built or measured, in the command's own
process or in one that the command has started.
"""

from __future__ import annotations

import signal

import numpy as np
import pytest

from command_kit import assay
from processes import alive, wait_until

pytestmark = pytest.mark.kill
NETWORKS = """
import multiprocessing, os, time
from pathlib import Path
from torch import nn

def send():
    driver = multiprocessing.parent_process()
    if driver is None and os.environ["PROCESSES"] != "0":
        return
    Path(os.environ["PLACE"], "process").write_text(str(os.getpid()))
    os.kill(os.getpid() if driver is None else driver.pid, int(os.environ["SENT"]))
    time.sleep(600)

class Tiny(nn.Sequential):
    def forward(self, x):
        send()
        return super().forward(x)

def tiny():
    return Tiny(nn.Flatten(), nn.Linear(3 * 12 * 12, 3))
"""
PLANS = {
    "run": 'run: done\nsubjects: ["sending:tiny"]\ndata: {path: data.npz}\nmeasures: [norms, margins]\n',
    "corpus train": 'network: "sending:tiny"\ndata: {path: data.npz}\ncorpus: done\ngrid: {learning_rate: [0.01]}\n'
    "training: {batch_size: 20, epochs: 1}\n",
}


@pytest.mark.parametrize(
    ("command", "processes", "sent"),
    [
        ("run", 0, signal.SIGINT),
        ("run", 2, signal.SIGTERM),
        ("corpus train", 0, signal.SIGTERM),
        ("corpus train", 2, signal.SIGINT),
    ],
)
def test_a_signal_is_one_line_and_nothing_goes_on(tmp_path, command, processes, sent):
    images = np.random.default_rng(0).integers(0, 256, (40, 12, 12, 3), np.uint8)
    labels = np.arange(40) % 3
    np.savez(tmp_path / "data.npz", train_images=images, test_images=images, train_labels=labels, test_labels=labels)
    (tmp_path / "sending.py").write_text(NETWORKS)
    (tmp_path / "plan.yaml").write_text(PLANS[command])
    done = assay(
        *command.split(), tmp_path / "plan.yaml", "--quiet", "--processes", processes,
        PLACE=str(tmp_path), SENT=str(int(sent)), PROCESSES=str(processes),
    )  # fmt: skip
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[sent]
    assert done.stderr == f"assay: {word}; what is done is kept, run it again to go on\n"
    assert done.returncode == 128 + sent
    worker = (tmp_path / "process").read_text()
    assert wait_until(lambda: not alive(worker), most_s=60)
    assert not list(tmp_path.rglob(".tmp-*"))
