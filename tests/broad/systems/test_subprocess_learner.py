from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from assay import AssayError
from assay.broad.data.features import packed, unpacked
from assay.broad.data.violation import Violation
from assay.broad.systems.adapter import serve
from assay.broad.systems.learners.guinea_pig import RandomProjections
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.broad.systems.subprocess_learner import SubprocessLearner
from assay.broad.systems.team import Module
from assay.core.fingerprint import state_fingerprint
from processes import alive, wait_until
from team_script import ALONE

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).random((9, 5))
SERVED = """
from assay.broad.systems.adapter import serve
from assay.broad.systems.learners.guinea_pig import RandomProjections
serve(RandomProjections)
"""


def script(folder: Path, text: str, **options) -> SubprocessLearner:
    (folder / "team.py").write_text(text)
    return SubprocessLearner([sys.executable, str(folder / "team.py")], **options)


def altered(folder: Path, line: str, **options) -> SubprocessLearner:
    return script(folder, ALONE.replace("#HERE", line), **options)


def test_another_process_gives_what_this_one_gives(tmp_path):
    counts = sparse.csr_matrix(X > 0.5, dtype=float)
    here = RandomProjections((6, 5, 4), seed=3).fit(counts)
    there = script(tmp_path, SERVED, parameters={"units": [6, 5, 4], "seed": 3}).fit(counts)
    assert there.layers == here.layers and set(there.algorithm) == {RandomProjections.algorithm}
    assert np.array_equal(there.transform(counts), here.transform(counts))


@pytest.mark.parametrize("features", [X, sparse.csr_matrix(X > 0.5, dtype=float), [X[:, None], X[:4, None] + 1]])
def test_serving_answers_for_matrices_sparse_matrices_and_lists(tmp_path, features):
    (tmp_path / "X.npz").write_bytes(packed(features))
    (tmp_path / "p.json").write_text('{"units": [4, 3]}')
    model, given = tmp_path / "model", ["--data", str(tmp_path / "X.npz"), "--parameters", str(tmp_path / "p.json")]
    serve(RandomProjections, ["fit", "--model", str(model), *given])
    serve(RandomProjections, ["transform", "--model", str(model), "--layer", "0", "--out", str(tmp_path / "Y"), *given])
    expected = RandomProjections((4, 3)).fit(features).transform(features, layer=0)
    assert np.array_equal(unpacked((tmp_path / "Y").read_bytes()), expected)


def test_every_layer_and_the_shallow_one(tmp_path):
    deep = altered(tmp_path, "").fit(X)
    for layer in (-3, 1, -1):
        assert np.array_equal(deep.transform(X, layer=layer), (X - X.mean(0)) * (1 + layer % 3))
    with pytest.raises(AssayError, match="layer=3: there are 3 layers"):
        deep.transform(X, layer=3)
    alone = deep.shallow()
    assert (alone.layers, alone.model_) == (["a"], {})
    with pytest.raises(AssayError, match="has not learned yet: fit first"):
        alone.transform(X)
    assert np.array_equal(alone.fit(X).transform(X), X - X.mean(0))


def test_only_features_and_parameters_are_written(tmp_path):
    """A8, D9: what the command finds beside its data."""
    spy = f"open({str(tmp_path / 'spied')!r}, 'w').write(str(sorted(p.name for p in model.parent.iterdir())))"
    altered(tmp_path, spy).fit(X).transform(X)
    assert (tmp_path / "spied").read_text() == "['X.npz', 'model', 'parameters.json', 'stderr', 'stdout']"


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    altered(tmp_path, "").fit(X).transform(X)
    assert list(scratch.iterdir()) == []


def test_what_it_learned_travels_with_it(tmp_path):
    learner = altered(tmp_path, "").fit(X)
    assert list(learner.model_) == ["sub/mean.npy"]
    again = pickle.loads(pickle.dumps(learner))
    assert state_fingerprint(again) == state_fingerprint(learner)
    assert np.array_equal(again.transform(X), learner.transform(X))
    save_learner(learner, tmp_path / "file")
    read = load_learner(tmp_path / "file", altered(tmp_path, ""))
    assert np.array_equal(read.transform(X), learner.transform(X))


def test_d8_learning_at_test_time_shows_and_honest_transforms_do_not(tmp_path):
    honest = altered(tmp_path, "").fit(X)
    known = state_fingerprint(honest)
    honest.transform(X)
    assert state_fingerprint(honest) == known
    sly = altered(tmp_path, "np.save(model / 'sub' / 'mean.npy', Y.mean(0))").fit(X)
    known = state_fingerprint(sly)
    sly.transform(X)
    assert state_fingerprint(sly) != known


def test_environment_and_folder_are_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/not/theirs")
    monkeypatch.setenv("KEPT", "1")
    names = ("PYTHONPATH", "KEPT", "MINE")
    line = f"sys.stderr.write(str([os.environ.get(k) for k in {names}] + [os.getcwd()])); sys.exit(4)"
    learner = altered(tmp_path, line, environment={"MINE": "2"}, workdir=str(tmp_path)).fit(X)
    with pytest.raises(AssayError) as caught:
        learner.transform(X)
    assert f"exit code 4: [None, '1', '2', {str(tmp_path)!r}]" in str(caught.value)


FAULTS = {
    "raise ValueError('first line\\nout of cheese')": "team.py transform ended with exit code 1: out of cheese",
    "sys.exit(7)": "transform ended with exit code 7: it said nothing",
    "os.kill(os.getpid(), 11)": "transform ended with exit code 139",
    "sys.exit(0)": "transform ended well, but did not write the file given as --out",
    "open(given['--out'], 'w').write('no zip'); sys.exit(0)": "wrote a file that holds no features",
    "np.savez(given['--out'], wrong=Y); sys.exit(0)": "wrote a file that holds no features",
    "np.savez(given['--out'], matrix=np.array([{}])); sys.exit(0)": "wrote a file that holds no features",
}


@pytest.mark.parametrize("line", FAULTS)
def test_faults_are_sentences(tmp_path, line):
    learner = altered(tmp_path, line).fit(X)
    with pytest.raises(AssayError) as caught:
        learner.transform(X)
    assert FAULTS[line] in str(caught.value) and "\n" not in str(caught.value)


def test_faults_of_fit_and_layers_are_sentences(tmp_path):
    with pytest.raises(AssayError, match="fit ended well, but left nothing in the folder given as --model"):
        SubprocessLearner(["true"]).fit(X)
    for said in ("three", '["a"]', '{"a": 1}', "7"):
        with pytest.raises(AssayError, match=r"layers printed .*, not a JSON list of"):
            _ = SubprocessLearner([sys.executable, "-c", f"print({said!r})"]).layers
    with pytest.raises(AssayError, match="No such file or directory: 'no-such-program'"):
        SubprocessLearner(["no-such-program"]).fit(X)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"command": "python team.py"}, "is a list of words"),
        ({"command": []}, "is a list of words"),
        ({"command": ["a"], "timeout_s": 0}, "timeout_s=0 must be positive"),
        ({"command": ["a"], "depth": "deeper"}, "depth='deeper' is not 'deep' or 'shallow'"),
        ({"command": ["a"], "parameters": {"backbone": "vgg"}}, "'backbone' would choose an architecture"),
    ],
)
def test_bad_settings_are_refused(options, sentence):
    with pytest.raises(AssayError, match=sentence):
        SubprocessLearner(**options)


HANGS = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
note = pathlib.Path(__file__).with_name("noting")
note.write_text(f"{os.getpid()} {child.pid}")
note.rename(note.with_name("pids"))
time.sleep(3600)
"""


def test_what_hangs_is_ended_with_all_its_children(tmp_path):
    limits = iter((1, 5, 25, 125, 625))  # a busy machine may not even have started it in a second
    while not (tmp_path / "pids").exists():
        limit = next(limits)
        with pytest.raises(Violation, match=rf"team\.py fit took longer than {limit} s") as caught:
            script(tmp_path, HANGS, timeout_s=limit).fit(X)
        assert caught.value.status == "timeout"
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2 and wait_until(lambda: not any(map(alive, pids)))


def test_it_ends_when_the_harness_is_killed(tmp_path):
    script(tmp_path, HANGS)
    harness = (
        "import sys; from assay.broad.systems.subprocess_learner import SubprocessLearner as S; S(sys.argv[1:]).layers"
    )
    with subprocess.Popen([sys.executable, "-c", harness, sys.executable, str(tmp_path / "team.py")]) as process:
        assert wait_until(lambda: (tmp_path / "pids").exists())
        process.kill()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert wait_until(lambda: not any(map(alive, pids)))


def test_a9_the_script_and_its_sources_are_frozen(tmp_path):
    (tmp_path / "team.py").write_text(ALONE)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("")
    given = {"command": [sys.executable, "team.py"], "workdir": str(tmp_path), "sources": ["lib"]}
    hashes = [Module("subprocess", given).source_hash]
    (tmp_path / "team.py").write_text(ALONE + "#")
    hashes.append(Module("subprocess", given).source_hash)
    (tmp_path / "lib" / "a.py").write_text("#")
    hashes.append(Module("subprocess", given).source_hash)
    assert len(set(hashes)) == 3
    assert SubprocessLearner.frozen_files(**given) == [tmp_path / "team.py", tmp_path / "lib" / "a.py"]
    assert SubprocessLearner.frozen_files(command=["true"])[0].name == "true"
    with pytest.raises(AssayError, match=r"sources: there is no .*nothing"):
        SubprocessLearner.frozen_files(command=["true"], sources=["nothing"], workdir=str(tmp_path))


def test_a_model_cannot_be_laid_out_elsewhere(tmp_path):
    learner = altered(tmp_path, "").fit(X)
    learner.model_ = {"../../escaped": b""}
    with pytest.raises(AssayError, match=r"'\.\./\.\./escaped' that would lie outside"):
        learner.transform(X)


def test_serving_is_strict_about_its_arguments(capsys):
    with pytest.raises(SystemExit):
        serve(RandomProjections, ["fit"])
    assert "--data" in capsys.readouterr().err
    serve(RandomProjections, ["layers", "--depth", "shallow"])
    assert "projection.0" in capsys.readouterr().out
