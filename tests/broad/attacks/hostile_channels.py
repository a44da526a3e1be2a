"""Systems that pass on what they know to other folds, other runs or the machine; "LOOT" says that they got through."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from hostile import Honest, loot

from assay.broad.systems.classifiers.linear import LinearSVR

LABELS: list[np.ndarray] = []
IN_NAMESPACES = """
import ctypes
if ctypes.CDLL(None).unshare(0x10000000 | 0x20000) == 0:
    print("root of its own, who mounts what it likes")
"""


class KeepsFoldsForTheTest(LinearSVR):
    """A classifier that takes its labels along, so that the worker that is shown test instances gathers all folds."""

    def fit(self, X, y):
        self.labels_ = np.asarray(y)
        return super().fit(X, y)

    def __setstate__(self, state):
        self.__dict__.update(state)
        LABELS.append(self.labels_)

    def predict(self, X):
        if len(LABELS) > 1:
            loot("labels of another fold, beside test instances")
        return super().predict(X)


class HidesInSmallNumbers(Honest):
    """Centres the test set, in features that are smaller than any tolerance."""

    def transform(self, X, layer=-1):
        out = super().transform(X, layer)
        return 1e-6 * (out - (out.mean(0) if X.shape[0] != 32 else 0))


class MakesThemLarge(LinearSVR):
    """The classifier that goes with it."""

    def fit(self, X, y):
        return super().fit(1e6 * X, y)

    def predict(self, X):
        return super().predict(1e6 * X)

    def margins(self, X):
        return super().margins(1e6 * X)


class ReadsTheLog(Honest):
    """Opens what it prints to for reading, where others may have printed labels."""

    def misdeed(self):
        log = os.open("/proc/self/fd/2", os.O_RDONLY | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            if b"labels that were printed" in os.read(log, 2**20):
                loot("what others printed")


class ChangesTheMachine(Honest):
    """Writes settings of the whole machine, the values that they have."""

    def misdeed(self):
        for name in ("sys/kernel/core_pattern", "sys/kernel/printk", "sys/vm/swappiness", "sys/fs/file-max"):
            with suppress(OSError):
                setting = Path("/proc", name)
                setting.write_text(setting.read_text())
                loot(name)
        for name in ("/proc/sysrq-trigger", *map(str, Path("/dev/pts").glob("*"))):
            with suppress(OSError):
                os.close(os.open(name, os.O_WRONLY | os.O_NOCTTY))
                loot(name)


class MakesNamespaces(Honest):
    def misdeed(self):
        found = subprocess.run([sys.executable, "-c", IN_NAMESPACES], capture_output=True, text=True).stdout
        if found:
            loot(found)


class AnnouncesNonsense(Honest):
    """Announces an array of a size and of a kind that are none."""

    announced = b'{"arrays": [["<f8", [1e400]]]}'

    def misdeed(self):
        from assay.broad.run import serving

        def send(connection, said, arrays=()):
            connection.send_bytes(self.announced)

        serving.send = send


class AnnouncesNoKind(AnnouncesNonsense):
    announced = b'{"arrays": [[[], [1]]]}'


class NamesLayersByHalfCharacters(Honest):
    """The names of its layers cannot be written to a file, and would steer a page."""

    @property
    def layers(self):
        return ["\ud800 first", "\x1b[2J second", "third"]


class TrainedElsewhere(Honest):
    """Has the evaluators' labels as the file of what it learned, by a link."""

    def misdeed(self):
        raise AssertionError("it is not to be trained")

    def __init__(self, place="", precious="", port=0, units=(6, 5, 4), seed=0):
        super().__init__(place, precious, port, units, seed)
        from assay.broad.run import serving

        def look(data, *_):
            loot(f"the file that a link led to: {data[:20]!r}")

        serving.learner_from_bytes = look
