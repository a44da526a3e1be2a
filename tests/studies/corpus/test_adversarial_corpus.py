"""Corpora of adversarially trained networks: ε and norm are hyper-parameters like any other."""

from __future__ import annotations

import pytest

from assay import AssayError, robust_accuracy
from assay.studies import load_corpus, load_corpus_plan, train_corpus
from conftest import write_digits

PLAN = """
network: conv
data: {path: digits.npz, train: 200, test: 100}
corpus: attacked
grid:
  epsilon: [0.0, 0.2]
  norm: [linf, l2]
  depth: 1
training: {width: 4, optimizer: adam, learning_rate: 0.01, batch_size: 50, epochs: 3, attack_steps: 2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    write_digits(place / "digits.npz")
    (place / "plan.yaml").write_text(PLAN)
    return place


@pytest.fixture(scope="module")
def corpus(folder):
    return train_corpus(load_corpus_plan(folder / "plan.yaml"))


def test_epsilon_and_norm_are_hyper_parameters_of_a_grid(corpus, folder):
    assert corpus.hyperparameters == ["epsilon", "norm"] and len(corpus) == 4
    assert corpus.table[["epsilon", "norm"]].values.tolist() == [[0.0, "linf"], [0.0, "l2"], [0.2, "linf"], [0.2, "l2"]]
    assert load_corpus(folder / "attacked").table.equals(corpus.table)
    recipe = corpus.plan.recipe(corpus.plan.combinations()["network_003"], 3, corpus.mean, corpus.std)
    attack = recipe.adversary
    assert attack is not None and (attack.epsilon, attack.norm, attack.steps, attack.mean) == (
        0.2,
        "l2",
        2,
        corpus.mean,
    )


def test_a_network_of_epsilon_0_is_its_twin_of_a_plan_without_attacks(corpus, folder):
    plain = PLAN.replace("  epsilon: [0.0, 0.2]\n  norm: [linf, l2]\n  depth: 1", "  depth: [1]")
    (folder / "plain.yaml").write_text(plain.replace(", attack_steps: 2", "").replace("attacked", "plain"))
    train_corpus(load_corpus_plan(folder / "plain.yaml"))
    weights = [(folder / name / "networks" / "network_000.safetensors").read_bytes() for name in ("attacked", "plain")]
    assert weights[0] == weights[1]
    attacked = (folder / "attacked" / "networks" / "network_002.safetensors").read_bytes()
    assert attacked != weights[0]


def test_networks_of_a_corpus_have_a_robust_accuracy_in_pixels(corpus):
    subject = corpus.subject("network_002")
    plain, robust = robust_accuracy(subject, corpus.test, "linf", [0.0, 0.1], steps=3)["accuracy"]
    assert plain == corpus.table["test_accuracy"][2] and robust < plain


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epsilon: [0.0, 0.2]", "epsilon: [0.0, -0.2]", "epsilon=-0.2 is a distance"),
        ("norm: [linf, l2]", "norm: [linf, l3]", "l3"),
        ("epsilon: [0.0, 0.2]", "dropout: [0.0, 0.2]", "norm is given without epsilon"),
        ("attack_steps: 2", "attack_steps: 0", "steps=0"),
        ("attack_steps: 2", "attack_stepps: 2", "attack_steps"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_before_anything_is_trained(tmp_path, old, new, words):
    write_digits(tmp_path / "digits.npz")
    (tmp_path / "plan.yaml").write_text(PLAN.replace(old, new))
    with pytest.raises(AssayError, match=words):
        load_corpus_plan(tmp_path / "plan.yaml")
