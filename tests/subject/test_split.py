from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

import zoo
from assay import AssayError, Subject

# Two batch sizes: one graph must serve both. 1e-5 is the promise; captured graphs run the same kernels.
TOLERANCE = {"rtol": 0, "atol": 1e-5}


def replaced(net: nn.Module, x: torch.Tensor, layer: str, change) -> torch.Tensor:
    """The plain computation: a full pass with one call's output changed by an ordinary hook."""
    path, _, call = layer.partition("#")
    calls = 0

    def hook(module, args, output):
        nonlocal calls
        calls += 1
        if calls != int(call or 1):
            return None
        return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

    handle = net.get_submodule(path).register_forward_hook(hook)
    try:
        net.eval()
        with torch.no_grad():
            return net(x)
    finally:
        handle.remove()


@pytest.mark.slow
@pytest.mark.parametrize("kind", zoo.BUILDERS)
def test_rest_equals_the_full_network_at_every_layer(kind):
    net = zoo.build(kind)
    subject = Subject(net, kind, example=zoo.SHAPE)
    for x in (zoo.images(5), zoo.images(3, seed=1)):
        net.eval()
        with torch.no_grad():
            whole = net(x)
        for layer in subject.choose():
            split = subject.split(layer)
            output, carried = split.prefix(x)
            assert split.captured == (kind != "data-dependent")
            for _ in range(3):  # again and again: nothing it is given may wear out
                torch.testing.assert_close(split.rest(output, carried), whole, **TOLERANCE)
            changed = split.rest(output * 0.5 + 0.1, carried)
            expected = replaced(net, x, layer, lambda o: o * 0.5 + 0.1)
            torch.testing.assert_close(changed, expected, **TOLERANCE)


def test_the_rest_does_not_redo_the_prefix():
    runs = []

    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    split = Subject(net).split("1")
    x = torch.rand(3, 4)
    output, carried = split.prefix(x)
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            runs.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with Log():
        split.rest(output, carried)
    assert runs.count("addmm") == 1, runs


def test_a_skip_that_crosses_the_cut_is_carried_and_computed_once():
    subject = Subject(zoo.build("resnet"))
    _, carried = subject.split("layer1.0.conv1").prefix(zoo.images())
    shapes = [tuple(v.shape) for v in carried.values if isinstance(v, torch.Tensor)]
    assert shapes == [(5, 8, 16, 16)], "the block's input, and nothing else"
    _, carried = subject.split("layer1.0").prefix(zoo.images())
    assert not [v for v in carried.values if isinstance(v, torch.Tensor)], "nothing crosses between blocks"


def test_an_uncapturable_network_says_so_once(caplog):
    subject = Subject(zoo.build("data-dependent"), "stubborn")
    with caplog.at_level(logging.WARNING, "assay"):
        for layer in ("first", "second", "head"):
            subject.split(layer).prefix(zoo.images())
    assert len(caplog.records) == 1
    assert "stubborn could not be captured" in caplog.text


def test_a_capture_that_computes_something_else_is_not_trusted(caplog):
    """State changed behind the graph's back: the check against the plain network catches it."""

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            h = self.a(x)
            view = h.view(-1)
            view.mul_(2)  # writes to h through an alias the graph does not follow
            return self.b(h) + h

    torch.manual_seed(0)
    net = Hidden()
    subject = Subject(net)
    x = torch.rand(4, 3)
    split = subject.split("a")
    output, carried = split.prefix(x)
    torch.testing.assert_close(split.rest(output, carried), replaced(net, x, "a", lambda o: o), **TOLERANCE)
    expected = replaced(net, x, "a", lambda o: o * 0.5)
    torch.testing.assert_close(split.rest(output * 0.5, carried), expected, **TOLERANCE)


def test_what_the_rest_is_given_is_not_changed():
    subject = Subject(zoo.build("resnet"))
    split = subject.split("layer1.0.bn1")  # an in-place ReLU follows
    output, carried = split.prefix(zoo.images())
    before = output.clone()
    for _ in range(3):
        split.rest(output, carried)
    assert torch.equal(output, before)


def test_weights_that_change_are_captured_anew():
    net = zoo.build("mlp")
    subject = Subject(net)
    split = subject.split("2")
    x = zoo.images()
    split.prefix(x)
    with torch.no_grad():
        net[5].bias.add_(1)
    torch.testing.assert_close(split.rest(*split.prefix(x)), subject(x), **TOLERANCE)


class Capped(nn.Module):
    """A network that caps what a layer returned, in one of the ways that such a statement can be written."""

    WAYS = (
        "h = h.clamp(max=1)",
        "h.clamp_(max=1)",
        "h[:, :].clamp_(max=1)",
        "h.view(-1, 2, 4).clamp_(max=1)",
        "h[:, 0] = h[:, 0].clamp(max=1)",
        "torch.clamp(h, max=1, out=h)",
        "part = h[:, :4]; part.clamp_(max=1); h = torch.cat([part, h[:, 4:]], 1)",
        "self.drop(h).clamp_(max=1)",
        "torch.nn.functional.dropout(h, training=False).clamp_(max=1)",
        "torch._foreach_clamp_max_([h], 1)",
        "part = h[:, :4]; again = h[:, :2]; part.clamp_(max=1); h = torch.cat([h, again], 1)[:, 2:]",
    )

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(3, 8), nn.Sigmoid(), nn.Linear(8, 2)
        self.drop = nn.Dropout()
        self.way = way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        names = {"h": self.act(self.first(x)), "torch": torch, "self": self}
        exec(self.way, names)
        return self.last(names["h"])


@pytest.mark.parametrize("way", Capped.WAYS)
def test_what_is_written_in_place_is_written_where_it_does_nothing_on_the_inputs_compared(way):
    """A sigmoid is never above 1: only a changed output of the layer shows whether the cap is there."""
    torch.manual_seed(0)
    net, x = Capped(way).eval(), torch.randn(5, 3)
    split = Subject(net).split("act")
    for _ in range(2):
        output, carried = split.prefix(x)
        torch.testing.assert_close(split.rest(output, carried), replaced(net, x, "act", lambda o: o), **TOLERANCE)
        expected = replaced(net, x, "act", lambda o: 3 * o)
        torch.testing.assert_close(split.rest(3 * output, carried), expected, **TOLERANCE)
    if way in Capped.WAYS[:2]:
        assert split.captured


def test_the_batch_is_not_overwritten_by_an_inplace_first_layer():
    subject = Subject(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)))
    x = -torch.ones(2, 3)
    subject.split("1").prefix(x)
    assert torch.equal(x, -torch.ones(2, 3))


def test_preprocessing_is_applied_once_at_every_cut():
    net = zoo.build("resnet")
    subject = Subject(net, preprocess=lambda b: b * 2, example=zoo.SHAPE)
    x = zoo.images()
    whole = subject(x)
    for layer in ("stem", "fc", "output"):
        split = subject.split(layer)
        torch.testing.assert_close(split.rest(*split.prefix(x)), whole, **TOLERANCE)


def test_a_split_unpacks_into_prefix_and_rest():
    prefix, rest = Subject(zoo.build("vgg")).split(0.5)
    x = zoo.images()
    assert rest(*prefix(x)).shape == (5, 10)


def test_several_layers_cannot_be_one_cut():
    with pytest.raises(AssayError, match="cuts at one layer"):
        Subject(zoo.build("vgg")).split("0.*").prefix(zoo.images())
    with pytest.raises(AssayError, match="unknown layer 'fcc'; did you mean"):
        Subject(zoo.build("resnet")).split("fcc").prefix(zoo.images())


@pytest.mark.hf
def test_hugging_face_networks_split():
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(0)
    subject = Subject(BertModel(config), "bert")
    batch = {"input_ids": torch.arange(12).reshape(2, 6)}
    split = subject.split("encoder.layer.0")
    whole = subject(batch)
    got = split.rest(*split.prefix(batch))
    torch.testing.assert_close(got["last_hidden_state"], whole["last_hidden_state"], **TOLERANCE)


def test_a_network_that_branches_on_the_batch_size_is_right_at_every_size():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            h = self.a(x)
            return self.b(h * 2 if len(x) >= 8 else h)

    net = Branches()
    split = Subject(net).split("a")
    for n in (2, 20, 5, 9):
        x = torch.rand(n, 3)
        torch.testing.assert_close(split.rest(*split.prefix(x)), net(x), **TOLERANCE)


def test_weights_that_are_replaced_are_captured_anew():
    net = zoo.build("mlp")
    split = Subject(net).split("2")
    x = zoo.images()
    split.prefix(x)
    net.load_state_dict(zoo.build("mlp", seed=3).state_dict(), assign=True)
    torch.testing.assert_close(split.rest(*split.prefix(x)), net.eval()(x), **TOLERANCE)
