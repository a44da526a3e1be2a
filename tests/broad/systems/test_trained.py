from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.decomposition import PCA

from assay import AssayError
from assay.broad.run.processes import Order
from assay.broad.systems.learners.guinea_pig import RandomProjections
from assay.broad.systems.learners.text_learner import sparse_autoencoder_text
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.broad.systems.subprocess_learner import SubprocessLearner
from assay.core.fingerprint import state_fingerprint
from assay.networks import StackedAutoencoder
from assay.runs.in_processes import WorkerProcess

X = np.random.default_rng(0).random((30, 6))


class TeamLearner:
    """Of a package that the harness does not know; made of what learners are made of."""

    def __init__(self, rate=0.1):
        self.rate = rate

    def fit(self, X):
        self.pca_ = PCA(2).fit(X)
        self.counts_ = sparse.csr_matrix(np.eye(3))
        self.helper_ = Helper()
        self.mixed_ = {"a": np.float32(1), "b": torch.ones(2), "c": {1, 2}, "d": Path("x"), "e": slice(1, 2)}
        return self

    def transform(self, X, layer=-1):
        return self.pca_.transform(X)


class Helper:
    pass


class Runs:
    """Pickled, it is a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


LEARNERS = {
    "projections": lambda: RandomProjections((5, 4, 3)),
    "matrix": lambda: sparse_autoencoder_text(6, (5, 4, 3), epochs=1),
    "team": TeamLearner,
}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_read_is_what_was_written(tmp_path, name):
    learner = LEARNERS[name]().fit(X)
    save_learner(learner, tmp_path / "new" / "learner")
    again = load_learner(tmp_path / "new" / "learner", LEARNERS[name]())
    assert state_fingerprint(again) == state_fingerprint(learner)
    assert np.array_equal(again.transform(X), learner.transform(X))
    assert os.listdir(tmp_path / "new") == ["learner"]  # noqa: PTH208  nothing temporary is left


def test_a_stack_is_read_with_its_start(tmp_path):
    stack = StackedAutoencoder(6, (5, 4, 3), seed=1)
    save_learner(stack, tmp_path / "stack")
    again = load_learner(tmp_path / "stack", StackedAutoencoder)
    again.fit(torch.ones(4, 6))
    assert state_fingerprint(again) != state_fingerprint(stack) and state_fingerprint(
        again.shallow()
    ) == state_fingerprint(stack.shallow())


def test_another_kind_is_refused(tmp_path):
    save_learner(RandomProjections().fit(X), tmp_path / "learner")
    with pytest.raises(AssayError, match="learner is a RandomProjections, not a MatrixLearner"):
        load_learner(tmp_path / "learner", sparse_autoencoder_text(6, (3, 3, 3)))


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: b"", lambda data: b"PK\3\4 not a pickle"])
def test_damaged_files_are_refused_with_a_sentence(tmp_path, damage):
    save_learner(RandomProjections().fit(X), tmp_path / "learner")
    (tmp_path / "learner").write_bytes(damage((tmp_path / "learner").read_bytes()))
    with pytest.raises(AssayError, match="learner is damaged"):
        load_learner(tmp_path / "learner", RandomProjections)


def test_missing_files_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(AssayError, match="nothing cannot be read \\(No such file"):
        load_learner(tmp_path / "nothing", RandomProjections)


def test_what_cannot_be_written_is_said(tmp_path):
    learner = RandomProjections()
    learner.f_ = lambda x: x
    with pytest.raises(AssayError, match=r"RandomProjections cannot be written to a file .*keep only data in it"):
        save_learner(learner, tmp_path / "learner")
    assert not list(tmp_path.iterdir())


def hostile(tmp_path: Path) -> dict[str, bytes]:
    """Files that would make ``tmp_path/harm`` if they were simply unpickled."""
    harm, handler = str(tmp_path / "harm"), torch_handler()
    second = tmp_path / "second"
    second.write_bytes(pickle.dumps(Runs(os.system, f"touch {harm}")))
    learner = RandomProjections()
    learner.units = Runs(os.system, f"touch {harm}")
    order = Order("t", str(second), None, str(tmp_path), str(tmp_path), ())  # type: ignore[arg-type]
    return {
        "a call": pickle.dumps(Runs(os.system, f"touch {harm}")),
        "a call inside a learner": pickle.dumps(learner),
        "a class": pickle.dumps(Runs(subprocess.Popen, ["touch", harm])),
        # A class that a module of ours merely imports: the name is assay's, the class is not.
        "a class under our name": _global("assay.runs.manifest", "subprocess.Popen", ["touch", harm]),
        "a class of ours that starts a process": pickle.dumps(Runs(WorkerProcess, order)),
        "a class of torch that starts a process": pickle.dumps(
            Runs(handler, "touch", (harm,), {}, harm + ".out", harm + ".err", 0)
        ),
        "a class of numpy that writes a file": pickle.dumps(Runs(np.memmap, harm, "uint8", "w+", 0, (4,))),
        "eval": pickle.dumps(Runs(eval, f"open({harm!r}, 'w')")),
        "getattr": pickle.dumps(Runs(getattr, "", "join")),
        "a command": pickle.dumps(Runs(SubprocessLearner, ["touch", harm])),
    }


def torch_handler() -> type:
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    return SubprocessHandler


def _global(module: str, name: str, argument: list[str]) -> bytes:
    """``module.name(argument)`` in protocol 4, whose names may have dots."""
    text = b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, name))
    return b"\x80\x04" + text + b"\x93" + pickle.dumps((argument,), 4)[2:-1] + b"R."


@pytest.mark.parametrize("trick", [
    "a call", "a call inside a learner", "a class", "a class under our name", "a class of ours that starts a process",
    "a class of torch that starts a process", "a class of numpy that writes a file", "eval", "getattr", "a command",
])  # fmt: skip
def test_hostile_files_are_refused_with_a_sentence_and_do_not_run(tmp_path, trick):
    (tmp_path / "learner").write_bytes(hostile(tmp_path)[trick])
    with pytest.raises(AssayError, match=r"is refused: the file wants to use .*, and a learner is not made of that"):
        load_learner(tmp_path / "learner", RandomProjections)
    assert not (tmp_path / "harm").exists()


def test_the_tricks_would_work_without_care(tmp_path):
    """Or the test above proves nothing."""
    assert pickle.loads(hostile(tmp_path)["a class under our name"]).wait() == 0
    assert (tmp_path / "harm").exists()


def test_a_command_is_never_taken_from_a_file(tmp_path):
    written = SubprocessLearner(["touch", str(tmp_path / "harm")])
    written.model_ = {"a": b""}
    save_learner(written, tmp_path / "learner")
    mine = SubprocessLearner(["true"], environment={"A": "1"}, workdir=str(tmp_path))
    read = load_learner(tmp_path / "learner", mine)
    assert (read.command, read.environment, read.workdir, read.model_) == (
        ("true",), {"A": "1"}, str(tmp_path), {"a": b""},
    )  # fmt: skip
    with pytest.raises(AssayError, match="has no command of its own: load it with like=a fresh learner"):
        load_learner(tmp_path / "learner", SubprocessLearner)
