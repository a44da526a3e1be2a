"""Compiled networks: the same layers and outputs up to rounding, whatever is written in place; else as they were."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from assay import PerturbationResponse, Subject
from assay.networks import resnet20
from assay.stimuli import Labelled
from assay.subject import compiled

# Folding batch norm and fusing operations change the order of float32 operations: some 1e-6 of the largest value.
CLOSE = 2e-5
NORM = torch.ops.aten.batch_norm.default


@pytest.fixture
def without_inductor(monkeypatch):
    """All but the last step, which takes inductor many seconds: graphs are made functional and run as they are."""
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")


class Block(nn.Module):
    """A residual block that adds and rectifies in place."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.norm(self.conv(x))
        out += x
        return self.relu(out)


class Overwriting(nn.Module):
    """Writes to its own input."""

    def forward(self, x):
        return x.mul_(2) + 1


def with_statistics(net):
    """Batch norms as after training, none of which does nothing."""
    generator = torch.Generator().manual_seed(1)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
            for tensor in (module.running_mean, module.bias.data):
                tensor.copy_(torch.randn(tensor.shape, generator=generator))
            for tensor in (module.running_var, module.weight.data):
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
    return net.eval()


def small():
    torch.manual_seed(0)
    stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    head = nn.Sequential(nn.Linear(144, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5))
    return with_statistics(nn.Sequential(stem, Block(), Block(), nn.Flatten(), head))


def require_equal_subjects(net, x, caplog):
    plain, faster = Subject(net, "plain"), Subject(net, "faster", compile=True)
    with caplog.at_level(logging.WARNING):
        for some in (x, x[:3]):
            expected, recorded = plain.record(some), faster.record(some)
            assert list(recorded) == list(expected)
            for layer in expected:
                torch.testing.assert_close(recorded[layer], expected[layer], rtol=CLOSE, atol=CLOSE)
            torch.testing.assert_close(faster(some), plain(some), rtol=CLOSE, atol=CLOSE)
    assert not caplog.records
    return plain, faster


def test_layers_and_output_are_the_same_though_much_is_written_in_place(caplog, without_inductor):
    x = torch.rand(6, 3, 8, 8)
    plain, faster = require_equal_subjects(small(), x, caplog)
    seen: dict[str, list[str]] = {"plain": [], "faster": []}
    for subject in (plain, faster):
        subject.visit(x, lambda layer, _, of=subject.name: seen[of].append(layer), repeats=False)
    assert seen["plain"] == seen["faster"] and "1" not in seen["plain"]


def test_a_network_that_writes_to_its_input_leaves_the_batch_alone(caplog, without_inductor):
    x = torch.rand(4, 3, 8, 8)
    before = x.clone()
    require_equal_subjects(nn.Sequential(Overwriting(), small()), x, caplog)
    assert torch.equal(x, before)


@pytest.mark.parametrize("layer", ["0.0", "1.norm", "4.0"])
def test_the_rest_of_a_split_is_the_same(layer, without_inductor):
    net, x = small(), torch.rand(6, 3, 8, 8)
    splits = [Subject(net, compile=compile).split(layer) for compile in (False, True)]
    for some in (x, x[:5]):
        (a, carried_a), (b, carried_b) = (split.prefix(some) for split in splits)
        changed = a.flip(0) * 0.5
        kept = changed.clone()
        torch.testing.assert_close(
            splits[1].rest(changed, carried_b), splits[0].rest(changed, carried_a), rtol=CLOSE, atol=CLOSE
        )
        assert torch.equal(changed, kept) and torch.equal(a, b)
    assert splits[1].captured


def test_batch_norm_is_folded_where_nothing_else_reads_the_layer_before_it(without_inductor):
    class Forked(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.last = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1)
            self.after = nn.BatchNorm2d(2, affine=False)

        def forward(self, x):
            y = self.conv(x)
            return self.after(self.last(self.norm(y) + y))

    net = with_statistics(small())
    graph = torch.export.export(net, (torch.rand(2, 3, 8, 8),), strict=False).module()
    left = [node for node in compiled.folded(graph).graph.nodes if node.target is NORM]
    assert not left
    torch.manual_seed(0)
    forked = Forked().eval()
    graph = torch.export.export(forked, (torch.rand(2, 3, 8, 8),), strict=False).module()
    folded = compiled.folded(graph)
    left = [node for node in folded.graph.nodes if node.target is NORM]
    assert len(left) == 1
    x = torch.rand(3, 3, 8, 8)
    torch.testing.assert_close(folded(x[:2])[0], forked(x[:2]), rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize(
    ("show", "left"),
    [
        (lambda subject, x: subject(x), 0),
        (lambda subject, x: subject.record(x, ["0", "4"]), 0),
        (lambda subject, x: subject.visit(x, lambda layer, output: None, "*.norm"), 0),
        (lambda subject, x: subject.record(x, ["1.conv", "4"]), 1),
        (lambda subject, x: subject.split("0.0").prefix(x), 1),
    ],
    ids=["call", "record", "visit", "record before a batch norm", "split before a batch norm"],
)
def test_batch_norm_is_folded_unless_what_precedes_it_is_asked_for(show, left, monkeypatch):
    remaining = []

    def counting(graph, example):
        found = [node for node in graph.graph.nodes if node.target in (NORM, nn.functional.batch_norm)]
        remaining.append(len(found))
        return graph

    monkeypatch.setattr(compiled, "BACKEND", counting)
    show(Subject(small(), compile=True), torch.rand(6, 3, 8, 8))
    assert remaining and set(remaining) == {left}


def test_new_weights_are_seen(without_inductor):
    net, x = small(), torch.rand(4, 3, 8, 8)
    faster = Subject(net, compile=True)
    before = faster(x)
    with torch.no_grad():
        net[0][1].weight.mul_(3)
    assert not torch.allclose(before, faster(x))
    torch.testing.assert_close(faster(x), Subject(net)(x), rtol=CLOSE, atol=CLOSE)


class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Asking(nn.Module):
    def forward(self, x):
        return x * 2 if float(x.sum()) > 0 else x


@pytest.mark.parametrize("odd", [Drawing(), Asking()], ids=["random", "asks for values"])
def test_what_cannot_be_compiled_runs_as_it_is_and_one_line_says_so(odd, caplog, without_inductor):
    net, x = nn.Sequential(nn.Conv2d(3, 4, 3), odd).eval(), torch.rand(4, 3, 8, 8)
    faster, plain = Subject(net, "odd", compile=True), Subject(net, "plain")
    with caplog.at_level(logging.WARNING, "assay"):
        for _ in range(2):
            expected = plain.record(x)
            assert all(torch.equal(faster.record(x)[layer], expected[layer]) for layer in expected)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1 and said[0].startswith("odd is not compiled (") and "\n" not in said[0]


def test_a_compiled_network_that_does_something_else_is_not_trusted(caplog, monkeypatch):
    def wrong(graph, example):
        return lambda *inputs: [value + 1 if torch.is_tensor(value) else value for value in graph(*inputs)]

    monkeypatch.setattr(compiled, "BACKEND", wrong)
    net, x = small(), torch.rand(4, 3, 8, 8)
    with caplog.at_level(logging.WARNING, "assay"):
        assert torch.equal(Subject(net, "wrong", compile=True)(x), Subject(net)(x))
    assert "wrong is not compiled (AssertionError" in caplog.text


def test_curves_are_the_same_and_the_fingerprint_is_not(without_inductor):
    net = small()
    data = Labelled(torch.rand(40, 3, 8, 8).numpy(), torch.arange(40).numpy() % 5)
    plain, faster = Subject(net, "net"), Subject(net, "net", compile=True)
    measure = PerturbationResponse(data, ("intra", "inter"), (0, 1), magnitudes=5, bootstrap=20, batch_size=16)
    assert measure(plain).equals(measure(faster))
    assert plain.fingerprint != faster.fingerprint


@pytest.mark.slow
def test_inductor_does_what_the_network_does(caplog):
    net, x = with_statistics(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True))), torch.rand(4, 6)
    with caplog.at_level(logging.WARNING):
        recorded, expected = Subject(net, compile=True).record(x), Subject(net).record(x)
    assert not caplog.records
    for layer in expected:
        torch.testing.assert_close(recorded[layer], expected[layer], rtol=CLOSE, atol=CLOSE)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_inductor_on_a_gpu(caplog):
    net = with_statistics(resnet20())
    plain = Subject(net, device="cuda", channels_last=True)
    faster = Subject(net, device="cuda", channels_last=True, compile=True)
    x = torch.rand(16, 3, 32, 32)
    with caplog.at_level(logging.WARNING):
        recorded, expected = faster.record(x), plain.record(x)
    assert not caplog.records
    for layer in expected:  # TF32 has 10 bits
        scale = expected[layer].abs().max()
        assert (recorded[layer] - expected[layer]).abs().max() < 2e-2 * scale, layer
