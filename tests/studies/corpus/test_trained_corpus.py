"""A corpus of six networks trained on the CPU, end to end: plan, training, resuming, study, report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from assay import AssayError
from assay.plans.problems import Problems
from assay.studies import accuracy, load_corpus, load_corpus_plan, load_study_plan, study, train_corpus
from assay.training.augmentation import Augment
from conftest import write_digits

pytestmark = pytest.mark.slow

PLAN = """
network: vgg
data: {path: digits.npz, train: 300}
corpus: six
grid:
  depth: [1, 2]
  learning_rate: [0.03, 0.01, 0.003]
  width: 4
training: {optimizer: adam, batch_size: 50, epochs: 12, stop_accuracy: 0.9}
measures:
  - {measure: perturbation, perturbation: [intra, inter], layer: [0, 1], magnitudes: 5, bootstrap: 20}
  - {measure: norms}
run: study
scoring: {draws: 50}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plan and its data: scikit-learn's digits at 16×16."""
    place = tmp_path_factory.mktemp("corpus")
    write_digits(place / "digits.npz", 2)
    (place / "plan.yaml").write_text(PLAN)
    return place


@pytest.fixture(scope="module")
def corpus(folder):
    return train_corpus(load_corpus_plan(folder / "plan.yaml"))


def test_six_networks_are_trained_until_they_know_their_data(corpus):
    everybody = [*corpus.table["network"], *corpus.left_out["network"]]
    assert sorted(everybody) == [f"network_00{i}" for i in range(6)]
    assert len(corpus) >= 5 and (corpus.table["trained_accuracy"] >= 0.9).all()
    assert (corpus.left_out["status"] == "ended").all() and (corpus.left_out["epochs"] == 12).all()
    assert corpus.hyperparameters == ["depth", "learning_rate"]
    assert np.allclose(corpus.table["gap"], corpus.table["train_accuracy"] - corpus.table["test_accuracy"])


def test_accuracies_are_those_of_the_networks_on_disk(corpus):
    for row in corpus.table.to_dict("records"):
        subject = corpus.subject(row["network"])
        assert accuracy(subject, corpus.train) == row["train_accuracy"]
        assert accuracy(subject, corpus.test) == row["test_accuracy"]


def test_training_again_changes_nothing_and_a_lost_network_comes_back_the_same(corpus, folder):
    before = {p.name: p.read_bytes() for p in (folder / "six" / "networks").iterdir()}
    (folder / "six" / "networks" / "network_004.json").unlink()
    (folder / "six" / "networks" / "network_004.safetensors").unlink()
    again = train_corpus(load_corpus_plan(folder / "plan.yaml"))
    assert {p.name: p.read_bytes() for p in (folder / "six" / "networks").iterdir()} == before
    assert again.table.equals(corpus.table)


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_a_damaged_network_is_named_and_trained_anew_to_the_same_bytes(corpus, folder, suffix, caplog):
    file = Path(corpus.folder.path(f"networks/network_001.{suffix}"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-3] + b"\x00" + whole[-2:])
    with pytest.raises(
        AssayError, match=rf"network_001\.{suffix} is damaged .*: train again, which makes network_001 anew"
    ):
        load_corpus(folder / "six").subject("network_001")
    train_corpus(load_corpus_plan(folder / "plan.yaml"))
    assert file.read_bytes() == whole and "network_001 is trained anew" in caplog.text


def test_a_killed_training_goes_on_to_the_same_networks(corpus, folder, tmp_path):
    for name in ("digits.npz", "plan.yaml"):
        shutil.copy(folder / name, tmp_path / name)
    code = (
        "import os, assay.studies.corpus.trained as t\n"
        "from assay.studies import load_corpus_plan\n"
        "keep = t._keep\n"
        "def dying(corpus, name, *rest):\n"
        "    keep(corpus, name, *rest)\n"
        "    os.kill(os.getpid(), 9)\n"
        "t._keep = dying\n"
        f"t.train_corpus(load_corpus_plan({str(tmp_path / 'plan.yaml')!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == -9
    assert len(list((tmp_path / "six" / "networks").glob("*.json"))) == 1
    again = train_corpus(load_corpus_plan(tmp_path / "plan.yaml"))
    assert again.table.equals(corpus.table)
    assert not list((tmp_path / "six" / "networks").glob("*.training"))


def test_processes_train_the_same_networks(corpus, folder, tmp_path):
    plan = load_corpus_plan(folder / "plan.yaml")
    shutil.copytree(folder / "six", tmp_path / "six")
    for name in ("network_001", "network_004"):
        for file in (tmp_path / "six" / "networks").glob(f"{name}.*"):
            file.unlink()
    again = train_corpus(plan, str(tmp_path / "six"), processes=2)
    assert again.table.equals(corpus.table) and again.left_out.equals(corpus.left_out)
    for name in ("network_001", "network_004"):
        file = f"six/networks/{name}.safetensors"
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes()


def test_a_corpus_is_found_by_its_folder_alone(corpus, folder, tmp_path):
    found = load_corpus(folder / "six")
    assert found.table.equals(corpus.table) and found.networks == corpus.networks
    shutil.copytree(folder / "six", tmp_path / "moved")
    shutil.copy(folder / "digits.npz", tmp_path)
    moved = load_corpus(tmp_path / "moved", data=tmp_path / "digits.npz")
    assert accuracy(moved.subject("network_000"), moved.test) == corpus.table["test_accuracy"][0]
    with pytest.raises(AssayError, match="is not a corpus"):
        load_corpus(tmp_path)
    (tmp_path / "moved" / "corpus.json").write_text("{")
    with pytest.raises(AssayError, match="is damaged"):
        load_corpus(tmp_path / "moved")


def test_another_plan_may_not_use_the_folder(corpus, folder):
    (folder / "other.yaml").write_text(PLAN.replace("epochs: 12", "epochs: 13"))
    with pytest.raises(AssayError, match="made by another plan"):
        train_corpus(load_corpus_plan(folder / "other.yaml"))


def test_a_study_of_them_ranks_measures_and_writes_its_report(corpus, folder):
    plan = load_study_plan(folder / "plan.yaml")
    run, found = study(plan.corpus, plan.measures, plan.run, plan.scoring)
    assert not run.failures
    assert {"gi intra ℓ=0", "mixup", "manifold mixup", "PCA of gi intra ℓ=0 and mixup"} <= set(found.predictors)
    assert found.networks["gap"].equals(corpus.table["gap"])
    direct = run.table("perturbation").query("quantity == 'gi' and perturbation == 'intra' and layer == '0'")
    assert found.networks.set_index("network")["gi intra ℓ=0"].to_dict() == dict(
        zip(direct["subject"], direct["value"], strict=True)
    )
    assert (folder / "study" / "study" / "ranking.csv").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("network: vgg", "network: vgn", "vgg"),
        ("depth: [1, 2]", "deepth: [1, 2]", "depth"),
        ("depth: [1, 2]", "depth: [1, 1]", "twice"),
        ("depth: [1, 2]", "depth: []", "empty list"),
        ("depth: [1, 2]", "depth: [one]", "expected a whole number"),
        ("depth: [1, 2]", "augmentation: [none, rotaton full]", "rotation full"),
        ("stop_accuracy: 0.9", "stop_accuracy: 90", "in \\(0, 1\\]"),
        ("width: 4", "batch_size: 4", "give it once"),
        ("width: 4", "width: 0", "width=0 must be at least 1"),
        ("training:", "trainng:", "training"),
        ("train: 300", "train: 3000", "which has 1200"),
        ("path: digits.npz", "path: nothing.npz", "does not exist"),
    ],
)
def test_plans_that_cannot_be(folder, tmp_path, old, new, words):
    shutil.copy(folder / "digits.npz", tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN.replace(old, new))
    with pytest.raises(AssayError, match=words):
        train_corpus(load_corpus_plan(tmp_path / "plan.yaml"))


def test_all_problems_of_a_plan_are_named_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    changes = {
        "depth: [1, 2]": "deepth: [1, 2]",
        "[0.03, 0.01, 0.003]": "[0.03, fast]",
        "corpus: six": "corpus: ~/six\nseed: one",
        "optimizer: adam": "optimiser: adam",
        "{measure: norms}": "{measure: norm}",
        "draws: 50": "draw: 50",
    }
    text = PLAN
    for old, new in changes.items():
        text = text.replace(old, new)
    (tmp_path / "plan.yaml").write_text(text)
    expected = [
        "seed: is 'one'",
        "grid.deepth: unknown hyper-parameter",
        "grid.learning_rate[1]: is 'fast'",
        "training.optimiser: unknown setting",
    ]
    with pytest.raises(Problems) as error:
        load_corpus_plan(tmp_path / "plan.yaml")
    assert [any(words in said for said in error.value.sentences) for words in expected] == [True] * 4
    with pytest.raises(Problems) as error:
        load_study_plan(tmp_path / "plan.yaml")
    expected += [
        "data: ",
        "measures[1].measure: unknown measure 'norm'",
        "scoring.draw: unknown key; did you mean 'draws'?",
    ]
    for words in expected:
        assert any(words in said for said in error.value.sentences), (words, error.value.sentences)
    assert len(error.value.sentences) == len(expected)
    (tmp_path / "plan.yaml").write_text(PLAN.replace("corpus: six", "corpus: ~/six"))
    assert load_corpus_plan(tmp_path / "plan.yaml").folder == str(tmp_path / "home" / "six")


def test_a_network_that_diverges_is_left_out(folder, tmp_path):
    shutil.copy(folder / "digits.npz", tmp_path)
    text = PLAN.replace("[0.03, 0.01, 0.003]", "[1.0e+30]").replace("optimizer: adam", "optimizer: sgd")
    (tmp_path / "plan.yaml").write_text(text)
    corpus = train_corpus(load_corpus_plan(tmp_path / "plan.yaml"))
    assert not len(corpus) and set(corpus.left_out["status"]) == {"diverged"}
    with pytest.raises(AssayError, match="no network"):
        load_study_plan(tmp_path / "plan.yaml")


def test_augmentation_draws_over_its_share_of_the_range():
    x = torch.rand(2000, 1, 9, 9)
    mean, std = (0.5,), (0.25,)
    augment = Augment.named("translation_x partial", mean, std)
    assert augment is not None
    moved = augment((x - 0.5) / 0.25, torch.Generator().manual_seed(0)) * 0.25 + 0.5
    # up to a quarter of the width to either side: 2.25 of 9 columns, filled with 0
    empty_left = (moved[:, 0, :, 0] < 1e-6).all(1).float().mean()
    assert 0.25 < empty_left < 0.5 and (moved[:, 0, :, 3] > 1e-6).any(1).all()
    again = augment((x - 0.5) / 0.25, torch.Generator().manual_seed(0)) * 0.25 + 0.5
    assert torch.equal(moved, again)
    assert Augment.named("none", mean, std) is None


def test_the_manifest_says_how_it_was_made(corpus, folder):
    manifest = json.loads((folder / "six" / "corpus.json").read_text())
    assert manifest["plan"]["grid"]["depth"] == [1, 2] and "300 inputs" in manifest["data"]
