"""A network that is changed after it was captured as a graph is shown as it is now, whatever was changed and how."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from assay import PerturbationResponse, Subject
from assay.stimuli import Labelled
from assay.subject import compiled, passes, split
from assay.subject.stamp import Stamp, attributes_stamp, structure_stamp

# Folded batch norm changes the order of float32 operations: some 1e-6 of values near 1.
CLOSE = {"rtol": 0, "atol": 2e-5}
BY_A_GLOBAL = {"factor": 1.0}


class Scaled(nn.Module):
    """Multiplies by a number, by a tensor that is no buffer, and by what it finds outside."""

    def __init__(self):
        super().__init__()
        self.scale, self.tensor, self.of = 1.0, torch.ones(1), {"power": [1]}

    def forward(self, x):
        return (x * self.scale * self.tensor) ** self.of["power"][0] * BY_A_GLOBAL["factor"]


@pytest.fixture(autouse=True)
def without_inductor(monkeypatch):
    monkeypatch.setattr(compiled, "BACKEND", "eager")
    monkeypatch.setitem(BY_A_GLOBAL, "factor", 1.0)


@pytest.fixture
def captures(monkeypatch):
    """The number of graphs that were captured so far, one entry each."""
    done = []

    def counted(*arguments):
        done.append(1)
        return capture(*arguments)

    capture = split.capture
    monkeypatch.setattr(split, "capture", counted)
    monkeypatch.setattr(passes, "capture", counted)
    return done


def small():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8), nn.BatchNorm1d(8), Scaled(), nn.Linear(8, 3)
    )
    for norm in (net[1], net[4]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 1.5)
    return net.eval()


def zeroed(module, inputs, output):
    return output * 0


def data_replaced(net):
    net[3].weight.data = net[3].weight.data * 3


CHANGES = {
    "hook": lambda net: net[3].register_forward_hook(zeroed),
    "pre-hook": lambda net: net[3].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 0,)),
    "activation replaced": lambda net: net.__setitem__(2, nn.Tanh()),
    "forward replaced": lambda net: setattr(net[2], "forward", torch.tanh),
    "eps": lambda net: setattr(net[4], "eps", 5.0),
    "number": lambda net: setattr(net[5], "scale", 5.0),
    "number in a list in a dictionary": lambda net: net[5].of["power"].__setitem__(0, 3),
    "tensor replaced": lambda net: setattr(net[5], "tensor", torch.full((1,), 5.0)),
    "tensor written to": lambda net: net[5].tensor.mul_(5),
    "weight.data written to": lambda net: net[3].weight.data.mul_(3),
    "weight.data replaced": data_replaced,
    "statistics written to": lambda net: net[4].running_var.data.mul_(9),
}


def whole(subject, x):
    return subject(x)


def recorded(subject, x):
    return subject.record(x, ["6"])["6"]


def cut(subject, x):
    parts = subject.split("0")
    return parts.rest(*parts.prefix(x))


@pytest.mark.parametrize(
    ("change", "how"),
    [
        *((change, whole) for change in ("hook", "eps", "number", "statistics written to")),
        *(("weight.data written to", how) for how in (whole, recorded, cut)),
    ],
)
def test_a_change_is_seen_by_the_next_compiled_pass(change, how, caplog):
    net, x = small(), torch.randn(6, 4)
    subject = Subject(net, compile=True)
    before = how(subject, x)
    with torch.no_grad():
        torch.testing.assert_close(before, net(x), **CLOSE)
        CHANGES[change](net)
        expected = net(x)
    assert not torch.allclose(before, expected, atol=0.01), "the change must be one"
    with caplog.at_level(logging.WARNING):
        torch.testing.assert_close(how(subject, x), expected, **CLOSE)
    assert not [record for record in caplog.records if record.name.startswith("assay")], "it is compiled again"


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_by_the_next_cut(change):
    net, x = small(), torch.randn(6, 4)
    parts = Subject(net).split("0")
    parts.prefix(x)
    with torch.no_grad():
        CHANGES[change](net)
        torch.testing.assert_close(parts.rest(*parts.prefix(x)), net(x), **CLOSE)
    assert parts.captured


def test_a_hook_on_all_modules_is_seen_until_it_is_removed():
    net, x = small(), torch.randn(6, 4)
    subject = Subject(net)
    before = cut(subject, x)
    hook = nn.modules.module.register_module_forward_hook(lambda module, i, out: zeroed(module, i, out))
    try:
        assert not cut(subject, x).any()
    finally:
        hook.remove()
    assert torch.equal(cut(subject, x), before)


def test_a_measure_asked_again_after_a_layer_was_ablated_answers_for_the_ablated_network():
    net = small()
    x = torch.randn(40, 4) * 20  # so much that not all are put into one class
    labels = net(x).argmax(1)
    assert len(labels.unique()) > 1
    measure = PerturbationResponse(Labelled(x.numpy(), labels.numpy()), "intra", 1, magnitudes=3, bootstrap=0)
    subject = Subject(net, "net")
    before = measure(subject)
    net[3].register_forward_hook(zeroed)
    after = measure(subject)
    assert after.equals(measure(Subject(net, "net"))) and not after.equals(before)


@pytest.mark.parametrize("compile", [False, True])
def test_what_a_network_reads_elsewhere_is_seen_in_the_next_showing(compile, captures):
    """Nothing of the network itself changes: the first batch of a showing is checked against the network."""
    net, x = small(), torch.randn(6, 4)
    subject = Subject(net, compile=compile)
    for n, factor in ((6, 1.0), (6, 5.0), (4, 7.0)):  # one size after the other, known or not
        BY_A_GLOBAL["factor"] = factor
        some = x[:n]
        for how in (cut, whole) if compile else (cut,):
            with subject.showing(), torch.no_grad():
                for _ in range(2):
                    torch.testing.assert_close(how(subject, some), net(some), **CLOSE)
    assert len(captures) == 3, "once for each factor"


@pytest.mark.parametrize("how", [whole, cut])
def test_nothing_is_captured_again_where_nothing_changed(how, captures):
    subject, x = Subject(small(), compile=True), torch.randn(6, 4)
    for n in (6, 5, 6):
        how(subject, x[:n])
        with subject.showing():
            how(subject, x[:n])
            how(subject, x[:n])
        subject.module.train(not subject.module.training)  # it is shown everything in eval mode
    assert len(captures) == 1


def test_one_plain_pass_in_a_showing_checks_the_cuts_of_all_layers():
    net, x = small(), torch.randn(6, 4)
    subject = Subject(net)
    layers = ["0", "2", "3", "5"]
    for layer in layers:
        subject.split(layer).prefix(x)
    passes: list[int] = []
    run = subject.network.forward
    subject.network.forward = lambda *given: passes.append(1) or run(*given)
    with subject.showing():
        for _ in range(2):
            for layer in layers:
                subject.split(layer).prefix(x)
    assert len(passes) == 1


def test_a_network_that_remembers_what_it_was_shown_is_captured_once(captures):
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.last = nn.Linear(4, 3), None

        def forward(self, x):
            self.last = self.linear(x)
            return self.last * 2

    net, x = Remembers().eval(), torch.randn(6, 4)
    subject = Subject(net)
    for _ in range(2):
        with subject.showing():
            for _ in range(3):
                parts = subject.split("linear")
                torch.testing.assert_close(parts.rest(*parts.prefix(x)), net(x), **CLOSE)
    assert parts.captured and len(captures) <= 2  # the first pass outside finds it with its last output


def test_a_stamp_compares_things_by_identity_and_numbers_by_value_and_kind():
    thing = object()
    assert Stamp([thing, 1, "a", [thing]]) == Stamp([thing, 1, "a", [thing]])
    assert Stamp([thing]) != Stamp([object()])
    for one, other in ((1, 1.0), (1, True), ("a", "b"), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ([], ())):
        assert Stamp([one]) != Stamp([other])
    itself: list[object] = []
    itself.append(itself)
    assert Stamp([itself]) == Stamp([itself])
    assert Stamp([[1, 2, 3]], most=2) != Stamp([[1, 2, 3]], most=2), "too long to be looked into"


def test_stamps_of_a_network_see_what_torch_holds_and_what_is_its_own():
    net = small()
    modules = list(net.modules())
    structure, attributes = structure_stamp(modules), attributes_stamp(modules)
    net.train()
    assert structure == structure_stamp(modules) and attributes == attributes_stamp(modules)
    net[5].scale = 2.0
    assert structure == structure_stamp(modules) and attributes != attributes_stamp(modules)
    handle = net[0].register_forward_hook(zeroed)
    assert structure != structure_stamp(modules)
    handle.remove()
    assert structure == structure_stamp(modules)
    with torch.no_grad():
        net[0].weight.mul_(1)
    assert structure != structure_stamp(modules)
