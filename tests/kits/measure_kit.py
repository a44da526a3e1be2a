"""Small measures and subjects for tests of runs."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import nn

import zoo
from assay import Measure, Straightness, Subject
from assay.stimuli import Sequences


def sequences(seed: int = 0, length: int = 5) -> Sequences:
    rng = np.random.default_rng(seed)
    return Sequences.of(**{f"clip{i}": rng.random((length, *zoo.SHAPE)).astype(np.float32) for i in range(2)})


def subjects(n: int = 2) -> list[Subject]:
    return [Subject(zoo.build("mlp", seed=i), f"mlp{i}") for i in range(n)]


@dataclass(frozen=True)
class Slow(Measure):
    """Takes a moment and uses random numbers, so that a cell can be caught in the middle."""

    scale: float = 1.0
    seconds: float = 0.05
    name: ClassVar[str] = "slow"
    value: ClassVar[str] = "value"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        time.sleep(self.seconds)
        responses = subject(torch.rand(3, *zoo.SHAPE))
        return pd.DataFrame({"unit": range(10), "value": self.scale * responses.mean(0).double().numpy()})


@dataclass(frozen=True)
class Waits(Measure):
    """Leaves a mark and waits to be ended."""

    mark: str = "mark"
    name: ClassVar[str] = "waits"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        Path(self.mark).touch()
        time.sleep(3600)
        raise AssertionError("nobody ended it")


@dataclass(frozen=True)
class Holds(Measure):
    """Leaves the number of its process, and goes on when the file ``hold`` is taken away."""

    folder: Path
    name: ClassVar[str] = "holds"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        (self.folder / f"{os.getpid()}.process").touch()
        while (self.folder / "hold").exists():
            time.sleep(0.02)
        return Slow(seconds=0.0)(subject)


@dataclass(frozen=True)
class KillsTheNode(Measure):
    """Kills the process that its worker was started by the first time, which on Ray is the node."""

    marker: Path
    name: ClassVar[str] = "kills_the_node"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return Slow(seconds=0.0)(subject)


@dataclass(frozen=True)
class Broken(Measure):
    """Always fails."""

    name: ClassVar[str] = "broken"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        raise RuntimeError("<b>it broke</b> & how")


@dataclass(frozen=True)
class KillsItsWorker(Measure):
    """Kills the process it runs in the first time, and works the second."""

    marker: Path
    name: ClassVar[str] = "kills-its-worker"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Slow()(subject)


def linear() -> nn.Module:
    return nn.Linear(2, 2)


STRAIGHTNESS = Straightness(sequences())
