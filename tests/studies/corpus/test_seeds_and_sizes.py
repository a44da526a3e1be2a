"""Seeds and training-set sizes as axes of a grid; training to a cross-entropy; what is kept of every training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import assay
from assay import AssayError
from assay.core.progress import listening
from assay.studies import Scoring, accuracy, load_corpus, load_corpus_plan, study, train_corpus
from assay.studies.ranking import EXPECTED
from conftest import write_digits

PLAN = """
network: conv
data: {path: digits.npz, train: 200, test: 100}
corpus: kept
grid: {depth: [1, 2], train_size: [40, 80], seed: [0, 1]}
training: {width: 4, optimizer: adam, learning_rate: 0.01, batch_size: 20, epochs: 3}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("seeds")
    write_digits(place / "digits.npz")
    return place


def planned(folder, old="", new=""):
    (folder / "plan.yaml").write_text(PLAN.replace(old, new))
    return load_corpus_plan(folder / "plan.yaml")


@pytest.fixture(scope="module")
def corpus(folder):
    return train_corpus(planned(folder))


def test_every_combination_has_a_network_of_every_seed_and_seed_is_no_hyperparameter(corpus):
    assert len(corpus) == 8 and corpus.hyperparameters == ["depth", "train_size"]
    assert corpus.table["seed"].tolist() == [0, 1] * 4
    one, other = (corpus.initial_weights(f"network_00{i}") for i in (0, 1))
    assert one.keys() == other.keys() and not any(torch.equal(one[k], other[k]) for k in one if one[k].dim() > 1)


def test_smaller_training_sets_are_parts_of_larger_ones_with_as_many_of_each_class(corpus):
    small, large = corpus.trained_on("network_000"), corpus.trained_on("network_002")
    assert (len(small), len(large)) == (40, 80) and np.array_equal(large.inputs[:40], small.inputs)
    for data in (small, large):
        counts = np.bincount(data.labels)
        assert counts.max() - counts.min() <= 1
    assert np.array_equal(corpus.train.inputs, small.inputs)  # measures show what every network was trained on


def test_a_study_scores_what_the_initial_weights_and_the_history_predict(corpus, folder):
    measures = {
        "distance": assay.InitialDistance(),
        "margin-bounds": assay.MarginBounds(corpus.train, bootstrap=0),
        "pac-bayes": assay.PacBayes(corpus.train, draws=2, steps=6, bootstrap=0),
        "training-speed": assay.TrainingSpeed(losses=(2.0, 1.0)),
    }
    _, found = study(corpus, measures, str(folder / "study"), Scoring(sizes=(1,), draws=10, permutations=0))
    table = found.networks.set_index("network")
    start, end = corpus.initial_weights("network_002"), corpus.subject("network_002").module.named_parameters()
    moved = [(weight.detach() - start[name]).double().square().sum() for name, weight in end]
    assert table["parameter distance"]["network_002"] == pytest.approx(float(sum(moved)) ** 0.5, rel=1e-9)
    assert table["sum of losses"]["network_002"] == pytest.approx(corpus.history("network_002")["running_loss"].sum())
    ranked = found.ranking.set_index("measure")
    rises = ["pac-bayes init", "pac-bayes magnitude init", "log initial spectral complexity over margin"]
    assert set(ranked["expected"][rises]) == {EXPECTED[1]} and ranked["expected"]["epochs to 2"] == EXPECTED[-1]
    assert ranked["budget"][["pac-bayes init", "parameter distance"]].tolist() == ["40 inputs × 2 draws", ""]


def test_training_accuracy_is_that_on_what_the_network_was_trained_on(corpus):
    for row in corpus.table.to_dict("records"):
        subject = corpus.subject(row["network"])
        assert accuracy(subject, corpus.trained_on(row["network"])) == row["train_accuracy"]
        assert accuracy(subject, corpus.test) == row["test_accuracy"]


def test_initial_weights_and_the_loss_of_every_epoch_are_kept(corpus, folder):
    found = load_corpus(folder / "kept")
    history = found.history("network_003")
    assert history.columns.tolist() == ["epoch", "steps", "learning_rate", "running_loss", "loss", "accuracy"]
    assert history["epoch"].tolist() == [1, 2, 3] and history["loss"].iloc[-1] == pytest.approx(
        found.table["trained_loss"][3], rel=1e-12
    )
    assert history["steps"].tolist() == [4, 8, 12] and found.history("network_000")["steps"].tolist() == [2, 4, 6]
    pd.testing.assert_frame_equal(found.subject("network_003").history, history)
    initial, trained = found.initial_weights("network_003"), found.subject("network_003").module.state_dict()
    assert initial.keys() == trained.keys()
    assert not any(torch.equal(initial[key], trained[key]) for key in initial if initial[key].dim() > 1)


def test_networks_of_several_sizes_are_the_same_when_each_is_trained_alone(corpus, folder):
    again = train_corpus(planned(folder), str(folder / "alone"), processes=1)
    assert again.table.equals(corpus.table)
    for file in Path(corpus.folder.path("networks")).iterdir():
        assert (folder / "alone" / "networks" / file.name).read_bytes() == file.read_bytes()


def test_more_seeds_change_none_of_the_networks_before(corpus, folder):
    plan, more = corpus.plan, planned(folder, "seed: [0, 1]", "seed: [0, 1, 2]")
    seeds = {tuple(h.values()): plan.seed_of(i, h) for i, h in enumerate(plan.combinations().values())}
    assert len(set(seeds.values())) == 8
    longer = {tuple(h.values()): more.seed_of(i, h) for i, h in enumerate(more.combinations().values())}
    assert seeds.items() <= longer.items()


@pytest.mark.parametrize("kind", ["initial.safetensors", "history.csv"])
def test_what_is_kept_of_training_is_made_anew_where_it_is_damaged(corpus, folder, kind, caplog):
    file = Path(corpus.folder.path(f"networks/network_001.{kind}"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-3] + b"999")
    read = load_corpus(folder / "kept")
    with pytest.raises(AssayError, match=rf"network_001\.{kind} is damaged"):
        _ = read.history("network_001") if kind == "history.csv" else read.initial_weights("network_001")
    train_corpus(planned(folder))
    assert file.read_bytes() == whole and "network_001 is trained anew" in caplog.text


def test_a_corpus_that_kept_neither_says_so_by_none(corpus, folder):
    record = Path(corpus.folder.path("networks/network_005.json"))
    row = json.loads(record.read_text())
    record.write_text(json.dumps({k: v for k, v in row.items() if k not in ("initial_sha256", "history_sha256")}))
    old = load_corpus(folder / "kept")
    assert old.initial_weights("network_005") is None and old.history("network_005") is None
    assert old.subject("network_005")
    record.write_text(json.dumps(row))


def test_training_stops_at_a_cross_entropy(folder):
    settings = "batch_size: 20, epochs: 60, stop_loss: 0.3, check_every: 2"
    plan = planned(folder, "train_size: [40, 80], seed: [0, 1]", "train_size: [40]")
    (folder / "plan.yaml").write_text((folder / "plan.yaml").read_text().replace("batch_size: 20, epochs: 3", settings))
    plan = load_corpus_plan(folder / "plan.yaml")
    done = train_corpus(plan, str(folder / "to_a_loss"))
    assert len(done) and (done.table["status"] == "stopped").all()
    for network in done.networks:
        loss = done.history(network)["loss"].dropna()
        assert loss.iloc[-1] <= 0.3 and (loss.iloc[:-1] > 0.3).all()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed: [0, 1]", "seed: [0, -1]", "seed=-1 must be at least 0"),
        ("seed: [0, 1]", "seed: [0, 0]", "has 0 twice"),
        ("seed: [0, 1]", "seed: [one]", "expected a whole number"),
        ("[40, 80]", "[40, 0]", "train_size=0 must be at least 1"),
        ("[40, 80]", "[40, 201]", "train_size=201: .* has 200 inputs in 10 classes"),
        ("[40, 80]", "[9, 80]", "train_size=9: .* give at least 10 and at most"),
        ("[40, 80]", "[40, 10]", "batch_size=20 of network_002 is larger than the data: 10 inputs"),
    ],
)
def test_seeds_and_sizes_that_cannot_be_are_refused_before_training(folder, old, new, words):
    with pytest.raises(AssayError, match=words):
        train_corpus(planned(folder, old, new), str(folder / "none"))
    assert not (folder / "none").exists()


def test_progress_counts_the_whole_corpus_though_networks_of_each_size_are_trained_apart(folder):
    plan = planned(folder, "corpus: kept", "corpus: watched")
    heard: list[tuple[str, int, int | None]] = []
    with listening(lambda *one: heard.append(one)):
        corpus = train_corpus(plan)
    epochs = [(done, total) for what, done, total in heard if what == "training, in epochs"]
    assert {total for _, total in epochs} == {8 * 3} and epochs[-1] == (24, 24)
    steps = [done for done, _ in epochs]
    assert steps == sorted(steps) and set(steps) == set(range(1, 25))

    corpus.folder.remove("networks/network_003.json")  # of the larger size, trained last
    heard.clear()
    with listening(lambda *one: heard.append(one)):
        again = train_corpus(plan)
    epochs = [(done, total) for what, done, total in heard if what == "training, in epochs"]
    assert sorted(set(epochs)) == [(22, 24), (23, 24), (24, 24)]  # those that are trained already count as done

    heard.clear()
    with listening(lambda *one: heard.append(one)):
        study(
            again, {"norms": assay.Norms()}, str(folder / "watched-study"), Scoring(sizes=(1,), draws=2, permutations=0)
        )
    assert {total for what, _, total in heard if what == "cells"} == {8}
