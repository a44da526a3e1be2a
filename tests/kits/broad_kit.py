"""Systems that do what they must not, and one that behaves; named in tests as ``broad_kit:Name``."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from assay.broad.systems.learners.guinea_pig import RandomProjections


class Small(RandomProjections):
    """Behaves."""

    def __init__(self, units: tuple[int, ...] = (12, 10, 8), seed: int = 0) -> None:
        super().__init__(units, seed)


class Throws(Small):
    def fit(self, X):
        raise RuntimeError("out of cheese\nredo from start")


class Hangs(Small):
    def fit(self, X):
        time.sleep(600)


class Dies(Small):
    def fit(self, X):
        os.kill(os.getpid(), signal.SIGKILL)


class GivesNaN(Small):
    def transform(self, X, layer=-1):
        found = super().transform(X, layer)
        found[-1, 0] = np.nan
        return found


class Peeks(Small):
    def __init__(self, place: str = "", units: tuple[int, ...] = (12, 10, 8), seed: int = 0) -> None:
        super().__init__(units, seed)
        self.place = place

    def transform(self, X, layer=-1):
        with suppress(OSError):  # it is not there while systems run
            Path(self.place, "text-Overall.npz").read_bytes()
        return super().transform(X, layer)


class LearnsWhenShown(Small):
    def transform(self, X, layer=-1):
        self.scales_[0] *= 1.5
        return super().transform(X, layer)


class LearnsInSecret(Small):
    """Keeps what it learns where a hash of its public state does not see it."""

    def transform(self, X, layer=-1):
        found = super().transform(X, layer)
        self._seen = getattr(self, "_seen", 0) + len(found)
        return found * (1 + self._seen)


class LosesRows(Small):
    def transform(self, X, layer=-1):
        return super().transform(X, layer)[:-1]
