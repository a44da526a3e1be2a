"""A disk that fails is one sentence: what is done is kept, and running again gives what an undisturbed run gives."""

from __future__ import annotations

import errno
import socket
import sys

import numpy as np
import pytest

from assay.cli import main as command_line
from assay.core.folder import Folder
from assay.runs.run import Run
from command_kit import assay
from disk_kit import can_mount

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts and limits as Linux has them")
PLANS = {
    "run": 'run: done\nsubjects: ["nets:tiny"]\nmeasures: [{measure: norms, shape: [3, 12, 12]}]\n',
    "corpus train": "network: conv\ndata: {path: data.npz, train: 40, test: 20}\ncorpus: done\n"
    "grid: {learning_rate: [0.01], width: 2, depth: 1}\ntraining: {optimizer: adam, batch_size: 20, epochs: 1}\n",
    "broad run": """
folder: done
secret: an open secret, for disks
text: {generated: {count: 240, restaurants: 20, seed: 3}}
protocol: {k: 2, p: 0.6, n: 60, ratings: [Overall], bootstrap: 100}
evaluators:
  text:
    extractor: {module: bag_of_words, parameters: {terms: 100}}
    classifier: {module: topics, parameters: {grid: {topics: [3]}}}
teams:
  - letter: s
    name: Small
    text:
      preprocessor: {module: bag_of_words, parameters: {terms: 100, weights: binary}}
      learner: "broad_kit:Small"
      classifier: {module: linear_svr, parameters: {grid: {C: [0.1]}}}
""",
}
NETWORKS = """
from torch import nn

def tiny():
    return nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 3))
"""
FAILING = {
    "short files": ("small_files", 150, "File too large"),
    "full": ("full_disk", 4096, "No space left on device"),
    "read-only": ("read_only", None, "Read-only file system"),
    "closed": ("closed", 0, "Permission denied"),
    "not readable": ("closed", 0o333, "Permission denied"),
}


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    images = {f"{part}_images": random.integers(0, 256, (40, 12, 12, 3), np.uint8) for part in ("train", "test")}
    np.savez(tmp_path / "data.npz", **images, train_labels=np.arange(40) % 3, test_labels=np.arange(40) % 3)
    (tmp_path / "nets.py").write_text(NETWORKS)
    for command, plan in PLANS.items():
        (tmp_path / f"{command.split()[0]}.yaml").write_text(plan)
    return tmp_path


def ask(command, folder, disk=()):
    """Run a command on its plan, and return its exit code and the lines that it says."""
    done = assay(*command.split(), folder / f"{command.split()[0]}.yaml", "--quiet", "--json", disk=disk)
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("command", "kind"),
    # Nothing in an evaluation's folder is listed, so that one which cannot be is no obstacle.
    [(command, kind) for command in PLANS for kind in FAILING if (command, kind) != ("broad run", "not readable")],
)
def test_a_disk_that_fails_is_one_sentence(folder, command, kind):
    name, *settings, why = FAILING[kind]
    if name != "small_files" and not can_mount():
        pytest.skip("may not mount, or is not root")
    place = folder / "done"
    code, said = ask(command, folder, [name, str(place), *(s for s in settings if s is not None)])
    assert code in (1, 2) and len(said) == 1 and why in said[0] and said[0].startswith("assay: "), said
    place.chmod(0o755)
    assert not [*place.rglob(".tmp-*"), *place.rglob(".lock")]


@pytest.mark.parametrize("command", PLANS)
def test_a_file_where_the_folder_should_be_is_one_sentence(folder, command):
    (folder / "done").write_text("mine")
    code, said = ask(command, folder)
    assert code == 2 and len(said) == 1 and str(folder / "done") in said[0], said
    assert (folder / "done").read_text() == "mine"


def test_a_run_goes_on_when_there_is_room_and_its_tables_are_those_of_an_undisturbed_one(folder):
    plan = folder / "run.yaml"
    plan.write_text(PLANS["run"].replace("}]", "}, {measure: margins, data: {path: data.npz}}]"))
    code, said = ask("run", folder, ["small_files", str(folder), 50_000])  # enough for a cell, not for the report
    assert code == 2 and len(said) == 1 and "report.html (File too large): make room" in said[0], said
    again = assay("run", plan, "--quiet")
    assert again.returncode == 0 and "2 cells kept, 0 measured" in again.stdout
    undisturbed = assay("run", plan, "--run", folder / "undisturbed", "--quiet")
    assert undisturbed.returncode == 0 and "0 cells kept, 2 measured" in undisturbed.stdout
    done, expected = Run(folder / "done"), Run(folder / "undisturbed")
    for measure in expected.measures:
        assert done.table(measure).to_csv() == expected.table(measure).to_csv()


def test_where_nothing_can_be_said_the_exit_code_says_it(folder):
    assert ask("run", folder, ["small_files", str(folder), 0]) == (2, [])  # its standard error is a file


def test_a_disk_that_fails_elsewhere_is_a_sentence_too(monkeypatch, capsys):
    def fail(**_):
        raise OSError(errno.ENOSPC, "No space left on device", "/full/file")

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("assay: the disk fails: /full/file (No space left on device)") and said.count("\n") == 1


def test_what_killed_processes_left_is_swept_and_what_others_write_is_not(tmp_path):
    living, killed = (tmp_path / f".tmp-{socket.gethostname()}@{pid}@0" for pid in (1, 2**22 + 1))
    for file in (living, killed, tmp_path / "whole"):
        file.touch()
    Folder(str(tmp_path)).sweep("")
    assert sorted(tmp_path.iterdir()) == [living, tmp_path / "whole"]
