"""Corpora of networks of the user's: `network: module:factory`, whose arguments are hyper-parameters of the grid."""

from __future__ import annotations

import pytest

from assay import AssayError
from assay.studies import load_corpus, load_corpus_plan, train_corpus
from conftest import write_digits

CODE = """
from torch import nn

class Small(nn.Sequential):
    def __init__(self, channels, classes, width: int = 4, gate="relu"):
        super().__init__(nn.Conv2d(channels, width, 3), getattr(nn, {"relu": "ReLU", "tanh": "Tanh"}[gate])(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))

def nothing():
    return 3

def ten(width: int = 4):
    return Small(1, 10, width)
"""
PLAN = """
network: "own_corpus_network:Small"
data: {path: digits.npz, train: 100, test: 50}
corpus: own
grid: {width: [2, 3], epsilon: [0.0, 0.1]}
training: {gate: tanh, norm: linf, optimizer: adam, learning_rate: 0.01, batch_size: 50, epochs: 1, attack_steps: 1}
"""


@pytest.fixture
def folder(tmp_path):
    write_digits(tmp_path / "digits.npz")
    (tmp_path / "own_corpus_network.py").write_text(CODE)
    return tmp_path


def planned(folder, old="", new=""):
    (folder / "plan.yaml").write_text(PLAN.replace(old, new))
    return load_corpus_plan(folder / "plan.yaml")


def test_a_network_of_the_users_is_trained_over_a_grid_of_its_arguments_and_epsilon(folder):
    corpus = train_corpus(planned(folder))
    assert corpus.table[["width", "epsilon"]].values.tolist() == [[2, 0.0], [2, 0.1], [3, 0.0], [3, 0.1]]
    module = load_corpus(folder / "own").subject("network_002").module
    assert module[0].out_channels == 3 and type(module[1]).__name__ == "Tanh"


def test_a_factory_that_takes_no_classes_or_channels_is_given_none(folder):
    (folder / "plan.yaml").write_text(PLAN.replace("Small", "ten").replace("gate: tanh, ", ""))
    plan = load_corpus_plan(folder / "plan.yaml")
    train, _ = plan.data.load(0)
    assert plan.build({"width": 3}, train)[0].out_channels == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("own_corpus_network:Small", "own_corpus_network:Smal", "did you mean 'Small'"),
        ("own_corpus_network:Small", "no_such_module:Small", "cannot import 'no_such_module'"),
        ("own_corpus_network:Small", "vgh", "unknown network 'vgh'; did you mean 'vgg'.*module:factory"),
        ("width: [2", "widht: [2", "did you mean 'width'"),
        ("width: [2, 3]", "width: [two, 3]", "expected a whole number"),
    ],
)
def test_a_network_that_cannot_be_found_is_refused_with_its_line(folder, old, new, words):
    with pytest.raises(AssayError, match=rf"plan.yaml:\d+: .*{words}"):
        planned(folder, old, new)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("gate: tanh", "gate: sigmoid", r"network 'own_corpus_network:Small' with .* failed \(KeyError"),
        ("Small", "nothing", "made a int, not a torch.nn.Module"),
    ],
)
def test_a_network_that_cannot_be_made_is_an_error_before_anything_is_trained(folder, old, new, words):
    text = PLAN.replace(old, new)
    if new == "nothing":
        text = text.replace("width: [2, 3], ", "").replace("gate: tanh, ", "")
    (folder / "plan.yaml").write_text(text)
    with pytest.raises(AssayError, match=words):
        train_corpus(load_corpus_plan(folder / "plan.yaml"))
    assert not (folder / "own").exists()
