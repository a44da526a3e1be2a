"""Activations that are functions: seen, recorded and cut like layers, and never in the way of modules."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from assay import AssayError, PerturbationResponse, Subject
from assay.stimuli import Labelled
from assay.subject.anatomy import nonlinearity_after

ACTIVATIONS = {
    "relu()": [F.relu, torch.relu, lambda x: x.relu(), lambda x: x.relu_(), lambda x: F.relu(x, inplace=True)],
    "clamp()": [lambda x: torch.clamp(x, min=0), lambda x: x.clamp(0), lambda x: x.clamp_min_(0)],
    "tanh()": [torch.tanh, lambda x: x.tanh()],
    "gelu()": [F.gelu],
}
CASES = [(name, function) for name, functions in ACTIVATIONS.items() for function in functions]


class Net(nn.Module):
    """Two layers with a function between, or with a module."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last = nn.Linear(6, 5), nn.Linear(5, 3)
        self.between = between if isinstance(between, nn.Module) else None
        self.function = between

    def forward(self, x):
        return self.last(self.function(self.first(x)))


def made(between):
    torch.manual_seed(0)
    return Net(between)


def data():
    rng = np.random.default_rng(0)
    return Labelled(rng.normal(size=(24, 6)).astype(np.float32), np.arange(24) % 3)


@pytest.mark.parametrize(("name", "function"), CASES)
def test_a_function_is_found_recorded_and_cut_as_a_module_would_be(name, function):
    net = made(function)
    subject = Subject(net, example=(6,))
    x = torch.randn(7, 6, generator=torch.Generator().manual_seed(1))
    assert nonlinearity_after(subject, "first") == name
    expected = function(net.first(x).detach().clone())
    assert torch.equal(subject.record(x, [name])[name], expected)
    split = subject.split(name)
    output, carried = split.prefix(x)
    assert torch.equal(output, expected) and torch.allclose(split.rest(output, carried), net(x))
    changed = output.flip(0) * 0.5
    assert torch.allclose(split.rest(changed, carried), net.last(changed), atol=1e-6)


def test_modules_are_still_the_only_layers_and_their_own_calls_are_no_layers():
    subject = Subject(made(nn.ReLU()), example=(6,))
    assert subject.calls == subject.layers == ["first", "between", "last"]
    functional = Subject(made(F.relu), example=(6,))
    assert functional.layers == ["first", "last"] and functional.calls == ["first", "relu()", "last"]
    assert functional.choose() == ["first", "last"] and functional.choose("relu()") == ["relu()"]
    with pytest.raises(AssayError, match=r"sigmoid\(\)"):
        functional.choose("sigmoid()")


def test_a_perturbation_after_a_functional_relu_is_that_after_a_module_to_the_bit():
    ask = {"magnitudes": 5, "bootstrap": 10}
    tables = {
        kind: PerturbationResponse(data(), ["intra", "inter"], [0, 1], **ask)(Subject(made(between), example=(6,)))
        for kind, between in {"module": nn.ReLU(), "function": F.relu, "method": lambda x: x.relu()}.items()
    }
    assert set(tables["function"]["at"]) == {"input", "relu()"}
    for kind in ("function", "method"):
        assert tables[kind].drop(columns="at").equals(tables["module"].drop(columns="at"))
    before = PerturbationResponse(data(), "intra", 1, "before", **ask)(Subject(made(F.relu), example=(6,)))
    assert set(before["at"]) == {"first"}


def test_several_perturbations_and_layers_in_lists_are_the_rows_of_each_alone():
    subject = Subject(made(F.relu), example=(6,))
    ask = {"magnitudes": (0.0, 0.5), "bootstrap": 0}
    together = PerturbationResponse(data(), ["intra", "inter"], [0, 1], **ask)(subject)
    assert together.equals(PerturbationResponse(data(), ("intra", "inter"), (0, 1), **ask)(subject))
    assert together[["perturbation", "layer"]].drop_duplicates().values.tolist() == [
        ["intra", "0"],
        ["inter", "0"],
        ["intra", "1"],
        ["inter", "1"],
    ]
    with pytest.raises(AssayError, match="give at least one"):
        PerturbationResponse(data(), [], [0, 1])
    with pytest.raises(AssayError, match="none twice"):
        PerturbationResponse(data(), "intra", [1, 1])


def test_a_clamp_elsewhere_is_no_activation_and_calls_are_counted():
    class Twice(Net):
        def forward(self, x):
            return self.last(F.relu(torch.clamp(F.relu(self.first(x)), -1, 1)))

    torch.manual_seed(0)
    subject = Subject(Twice(F.relu), example=(6,))
    assert subject.calls == ["first", "relu()", "relu()#2", "last"]


def test_activations_inside_residual_blocks_are_found():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
            self.conv2, self.fc = nn.Conv2d(2, 2, 3, padding=1), nn.Linear(32, 3)

        def forward(self, x):
            y = self.conv2(F.relu(self.norm(self.conv1(x))))
            return self.fc(F.relu(x + y, inplace=True).flatten(1))

    torch.manual_seed(0)
    net = Block().eval()
    subject = Subject(net, example=(2, 4, 4))
    assert nonlinearity_after(subject, "conv1") == "relu()" and nonlinearity_after(subject, "conv2") == "relu()#2"
    assert nonlinearity_after(subject, "fc") is None
    x = torch.randn(3, 2, 4, 4)
    split = subject.split("relu()")
    output, carried = split.prefix(x)
    assert split.captured and torch.allclose(split.rest(output, carried), net(x), atol=1e-6)
    before = copy.deepcopy(net.state_dict())
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
