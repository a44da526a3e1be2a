"""A small search: the code that a plan names, plans of it, and processes that run it, to be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

CODE = '''
import os, signal, time
from pathlib import Path
import torch
from torch import nn
from assay import Subject
from assay.training import Moment

HERE = Path(__file__).parent


class Small(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden, self.readout = nn.Linear(4, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.readout(torch.relu(self.hidden(x)))


def train(width, rate, act="relu", epochs=4, *, seed, callback):
    generator = torch.Generator().manual_seed(seed)
    network = Small(width)
    x = torch.randn(32, 4, generator=generator)
    y = x.sum(1, keepdim=True)
    for epoch in range(1, epochs + 1):
        loss = (network(x) - y).square().mean()
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        with torch.no_grad():
            for p, g in zip(network.parameters(), gradients):
                p -= rate * g
        visit(seed)
        if callback(Moment(epoch, epoch, loss.item(), 0.5 * epoch, network)):
            break
    return network, {"loss": loss.item(), "width": width}


def visit(seed):
    """Kill this process, or wait for another one, where a file asks for it."""
    fatal = HERE / f"kill-{seed}"
    if fatal.exists():
        fatal.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    crowd = HERE / "crowd"
    if crowd.is_dir():
        (crowd / str(os.getpid())).touch()
        end = time.monotonic() + 900
        while len(list(crowd.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.02)


def breaks(width, rate, *, seed, callback):
    if width % 2:
        raise RuntimeError("odd widths do not work\\nhere")
    return Subject(Small(width)), {"loss": float(width)}


def returns_nothing(width, rate, *, seed, callback):
    pass


def weight_norm(subject):
    return subject.module.hidden.weight.norm().item()


def two_norms(subject):
    return [1, 2]
'''

PLAN = """
train: networks_of_mine:train
space:
  width: {int: [2, 16], log: true}
  rate: {float: [1e-3, 0.1], log: true}
trials: 12
objectives: [{number: loss, direction: minimize}]
run: run
"""

# Each line asks for one process or for several at once: the words of `assay`. They are forked from this one, which has
# imported everything and run nothing.
SERVER = """
import json, os, sys
import torch, assay.studies, assay.report.search, optuna, psycopg, alembic.command, matplotlib.backends.backend_agg
from assay.cli.main import main

for line in sys.stdin:
    children = []
    for words in json.loads(line):
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            sys.argv = ["assay", *words]
            code = 1
            try:
                main()
                code = 0
            except SystemExit as error:
                code = error.code or 0
            finally:
                os._exit(code)
        children.append(child)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)
"""


def write_plan(folder: Path, text: str = PLAN, name: str = "plan.yaml") -> Path:
    """A plan beside the code that it names."""
    (folder / "networks_of_mine.py").write_text(CODE)
    (folder / name).write_text(text)
    return folder / name


def trials_of(folder: Path) -> pd.DataFrame:
    """The table of trials without what depends on the machine."""
    table = pd.read_csv(folder / "search" / "trials.csv", keep_default_na=False)
    return table.drop(columns=["seconds"])


class Server:
    """A process from which searches are forked, so that torch is imported once."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, *searches: list[str]) -> list[int]:
        """How these commands ended that ran at the same time."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(searches), file=self.process.stdin, flush=True)
        codes: list[int] = json.loads(self.process.stdout.readline())
        return codes

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
