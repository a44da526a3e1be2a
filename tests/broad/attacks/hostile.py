"""Systems that cheat, snoop and break things; each raises "LOOT" if it gets hold of what it must not have.

They are learners unless they say otherwise, and behave well apart from their one misdeed. ``place`` is the folder of
the evaluation, ``precious`` one of the evaluators' own.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from assay.broad.systems.classifiers.linear import LinearSVR
from assay.broad.systems.learners.guinea_pig import RandomProjections

SECRET = "an open secret, for attacks"
DAEMON = "assay-hostile-daemon"


class Honest(RandomProjections):
    """Behaves; the others differ in one respect."""

    def __init__(self, place="", precious="", port=0, units=(6, 5, 4), seed=0):
        super().__init__(units, seed)
        self.place, self.precious, self.port = place, precious, port

    def shallow(self):
        return type(self)(self.place, self.precious, self.port, self.units[:1], self.seed)

    def fit(self, X):
        self.misdeed()
        return super().fit(X)

    def misdeed(self):
        pass


def loot(what) -> None:
    raise RuntimeError(f"LOOT: {what}")


def read_any(*paths) -> None:
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError:
            continue
        if data:
            loot(path)


# -- reading what is not theirs ---------------------------------------------------------------------------------


class OpensTruth(Honest):
    def misdeed(self):
        read_any(Path(self.place) / "truth" / "text-Overall.npz")


class OpensTruthWhenMade(Honest):
    def __init__(self, place="", precious="", port=0, units=(6, 5, 4), seed=0):
        super().__init__(place, precious, port, units, seed)
        read_any(Path(place) / "truth" / "text-Overall.npz")


class OpensTruthInAThread(Honest):
    def misdeed(self):
        def forever():
            while True:
                read_any(Path(self.place) / "truth" / "text-Overall.npz")
                time.sleep(0.001)

        threading.Thread(target=forever, daemon=True).start()


class CopiesTruthByAProgram(Honest):
    def misdeed(self):
        target = Path(os.environ["TMPDIR"]) / "copy"
        subprocess.run(["cp", "-r", f"{self.place}/truth", str(target)], stderr=subprocess.DEVNULL)
        subprocess.run(["sh", "-c", f"cat {self.place}/truth/* {self.place}/*.json > {target}.all 2>/dev/null"])
        if list(target.rglob("*.npz")) or Path(f"{target}.all").stat().st_size:
            loot("truth by a program")


class LinksTruth(Honest):
    def misdeed(self):
        for link in (os.link, os.symlink):
            target = Path(os.environ["TMPDIR"]) / f"linked by {link.__name__}"
            try:
                link(f"{self.place}/truth/text-Overall.npz", target)
            except OSError:
                continue
            if target.exists():
                loot("truth by a link")


class ReadsEvaluatorsFiles(Honest):
    def misdeed(self):
        found = subprocess.run(["cat", f"{self.precious}/labels.csv"], capture_output=True).stdout
        if found:
            loot("the evaluators' labels")


class WalksTheCollector(Honest):
    def misdeed(self):
        from assay.broad.data.dataset import Dataset
        from assay.broad.tasks import Task, View

        for thing in gc.get_objects():
            if isinstance(thing, (Dataset, Task, View)):
                loot(type(thing))
            if type(thing) is dict and any(isinstance(thing.get(k), np.ndarray) for k in ("targets", "known")):
                loot("labels in a dictionary")


class ReadsOtherProcesses(Honest):
    def misdeed(self):
        own = {os.getpid(), *(int(t.name) for t in Path("/proc/self/task").iterdir())}
        for name in [p.name for p in Path("/proc").iterdir() if p.name.isdigit()]:
            for what in ("mem", "environ"):
                try:
                    with Path(f"/proc/{name}/{what}").open("rb") as file:
                        file.read(1)
                except OSError:
                    continue
                if int(name) not in own and what == "environ":
                    loot(f"{what} of process {name}")


class AttachesToProcesses(Honest):
    def misdeed(self):
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in (1, os.getppid(), *range(3, 200)):
            if pid != os.getpid() and libc.ptrace(16, pid, 0, 0) == 0:
                loot(f"attached to {pid}")


class ReadsTheEnvironment(Honest):
    def misdeed(self):
        if any(SECRET in value for value in os.environ.values()):
            loot("the seed in os.environ")
        if SECRET.encode() in Path("/proc/self/environ").read_bytes():
            loot("the seed in /proc/self/environ")


class ReadsInheritedFiles(Honest):
    def misdeed(self):
        for descriptor in list(Path("/proc/self/fd").iterdir()):
            try:
                target = str(descriptor.readlink())
            except OSError:
                continue
            if self.place and target.startswith(self.place):
                loot(target)


class TakesTheWallsDown(Honest):
    def misdeed(self):
        libc = ctypes.CDLL(None, use_errno=True)
        for inside in (False, True):
            if inside:
                if libc.unshare(0x10000000 | 0x20000) != 0:
                    return
                for file, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
                    with suppress(OSError):
                        Path(f"/proc/self/{file}").write_text(text)
            for place in (self.place, self.precious, "/tmp", "/proc"):
                libc.umount2(place.encode(), 2)
            if any(Path(self.place).glob("*.json")) or Path(self.precious, "labels.csv").exists():
                loot("what the walls cover")


# -- at import ---------------------------------------------------------------------------------------------------


class ThrowsWhenMade(Honest):
    def __init__(self, *_, **__):
        raise RuntimeError("no layers for you")


class Exits(Honest):
    def misdeed(self):
        sys.exit(0)


class ExitsAtOnce(Honest):
    def misdeed(self):
        os._exit(0)


# -- writing where they should not ----------------------------------------------------------------------------------


class WritesResultsOfOthers(Honest):
    def misdeed(self):
        for run in ("1", "6a", "6s"):
            try:
                target = Path(self.place) / "runs" / "text-Overall" / run / "fold01.npz"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(b"forged")
            except OSError:
                continue


class WritesByAProgram(Honest):
    def misdeed(self):
        for target in (f"{self.place}/runs/forged", f"{self.place}/manifest.json", f"{self.precious}/forged"):
            subprocess.run(["sh", "-c", f"echo forged > {target}"], stderr=subprocess.DEVNULL)


class PlantsCode(Honest):
    def misdeed(self):
        places = {Path(__file__).parent, Path(np.__file__).parents[1], *(Path(p) for p in sys.path if p)}
        for place in places:
            for name in ("assay_planted.pth", "sitecustomize.py", "assay_planted.py"):
                try:
                    (place / name).write_text("import assay_planted")
                except OSError:
                    continue
                if str(place) != os.environ["TMPDIR"]:
                    loot(place / name)


# -- living on, and ending others --------------------------------------------------------------------------------


class LeavesADaemon(Honest):
    def misdeed(self):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", DAEMON])
            os._exit(0)


class KillsAll(Honest):
    def misdeed(self):
        if os.getpid() > 50:  # not behind walls: it would really do it
            return
        for pid in (-1, os.getppid(), 1):
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.kill(pid, number)
                except OSError:
                    continue


class GoesToTheNetwork(Honest):
    def misdeed(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"labels")
        except OSError:
            return
        loot("the network")


# -- lying to the keeper ---------------------------------------------------------------------------------------------


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}/exploded",)


class SendsAPickle(Honest):
    """Its state does something when it is unpickled."""

    def __reduce__(self):
        return os.system, (f"touch {self.precious}/exploded",)


class AnswersWithAPickle(Honest):
    def misdeed(self):
        from assay.broad.run import serving

        def send(connection, said, arrays=()):
            connection.send_bytes(pickle.dumps(Bomb(self.precious)))

        serving.send = send


class AnnouncesTooMuch(Honest):
    def misdeed(self):
        from assay.broad.run import serving

        def send(connection, said, arrays=()):
            connection.send_bytes(b'{"arrays": [["<f8", [1000000000000]]]}')

        serving.send = send


class SendsTooMuch(Honest):
    def misdeed(self):
        from assay.broad.run import serving

        def send(connection, said, arrays=()):
            connection.send_bytes(b'{"arrays": ["' + b"x" * 2**23 + b'"]}')

        serving.send = send


class GivesObjects(Honest):
    def transform(self, X, layer=-1):
        return np.array([Bomb(self.precious)] * X.shape[0], dtype=object)[:, None]


class GivesWords(Honest):
    def transform(self, X, layer=-1):
        return np.array([["five"]] * X.shape[0])


class GivesABrokenMatrix(Honest):
    """Its indices lead outside of the matrix."""

    def transform(self, X, layer=-1):
        from scipy import sparse

        matrix = sparse.csr_matrix(super().transform(X, layer))
        matrix.indices[:] = 2**30
        return matrix


class FakesTheFingerprint(Honest):
    """Learns from test instances, and says that it did not, wherever it is."""

    def misdeed(self):
        self.__setstate__({})

    def __setstate__(self, state):
        from assay.broad.run import serving

        self.__dict__.update(state)
        serving.state_fingerprint = lambda thing: "always the same"

    def transform(self, X, layer=-1):
        self.shift_ = getattr(self, "shift_", 0) + X.shape[0]
        return super().transform(X, layer) + 0.01 * self.shift_


MEMO: dict[str, np.ndarray] = {}


class RemembersTheTestSet(Honest):
    """Subtracts the mean of the first instances it is shown, and keeps it where nobody looks."""

    def transform(self, X, layer=-1):
        out = super().transform(X, layer)
        return out - MEMO.setdefault(f"{self.seed} {out.shape[1]} {layer}", out.mean(0))


class RemembersInAFile(Honest):
    def transform(self, X, layer=-1):
        out = super().transform(X, layer)
        file = Path(os.environ["TMPDIR"]) / "memo.npy"
        if not file.exists():
            np.save(file, out.mean(0))
        return out - np.load(file)


class PatchesNumpy(Honest):
    """Replaces functions that the keeper uses, in its own process."""

    def misdeed(self):
        def give_loot(*_, **__):
            loot("called from the keeper")

        np.load = np.save = give_loot


class GathersLabelsOverFolds(LinearSVR):
    """A classifier that keeps the labels of one fold for the next."""

    def fit(self, X, y):
        MEMO[f"labels {len(MEMO)}"] = np.asarray(y)
        if len(MEMO) > 1:
            loot("labels of another fold")
        return super().fit(X, y)


class RemembersWhenPredicting(LinearSVR):
    """A classifier that moves its predictions by the mean of all test instances, which it keeps where nobody looks."""

    def predict(self, X):
        found = super().predict(X)
        return np.clip(found + 2 * (3 - MEMO.setdefault("mean of predictions", found.mean())) + found[:1] - 3, 1, 5)
