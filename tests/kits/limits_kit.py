"""Systems that take too much time or memory, or leave something behind; named in tests as ``limits_kit:Name``."""

from __future__ import annotations

import subprocess
import time

import numpy as np

from broad_kit import Small


class HangsWhenMade(Small):
    def __init__(self, units: tuple[int, ...] = (12, 10, 8), seed: int = 0) -> None:
        time.sleep(3600)
        super().__init__(units, seed)


class TakesAllAtOnce(Small):
    def fit(self, X):
        self.held = np.ones(2**40, np.uint8)
        return super().fit(X)


class TakesMoreAndMore(Small):
    def fit(self, X):
        held = []
        while True:
            held.append(np.ones(2**26, np.uint8))
            time.sleep(0.01)


class StartsOneThatTakesMore(Small):
    def fit(self, X):
        subprocess.run(["python3", "-S", "-c", "held = bytearray(b'1') * (3 * 2**30); import time; time.sleep(3600)"])
        return super().fit(X)


class LeavesAChild(Small):
    """Starts a process of a session of its own, whose parent has ended, and goes on."""

    def __init__(self, units: tuple[int, ...] = (12, 10, 8), seed: int = 0, seconds: str = "4321") -> None:
        super().__init__(units, seed)
        self.seconds = seconds

    def shallow(self):
        return type(self)(self.units[:1], self.seed, self.seconds)

    def fit(self, X):
        subprocess.run(["sh", "-c", f"setsid sleep {self.seconds} & exit 0"], check=True)
        return super().fit(X)
