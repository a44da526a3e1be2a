from __future__ import annotations

import contextlib
import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import zoo
from assay import AssayError, Subject


def subject(kind: str, **settings) -> Subject:
    return Subject(zoo.build(kind), kind, example=zoo.SHAPE, **settings)


def test_layers_are_module_names_in_order_of_execution():
    class OutOfOrder(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.act, self.first = nn.Linear(4, 2), nn.ReLU(), nn.Linear(3, 4)

        def forward(self, x):
            return self.last(self.act(self.act(self.first(x))))

    assert Subject(OutOfOrder(), example=(3,)).layers == ["first", "act", "act#2", "last"]


def test_a_result_no_module_returns_is_the_layer_output():
    class Tail(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x):
            return self.fc(x).softmax(1)

    net = Tail()
    s = Subject(net, example=(3,))
    assert s.layers == ["fc", "output"]
    x = torch.rand(4, 3)
    assert torch.equal(s.record(x, "output")["output"], net(x))


def test_output_can_always_be_asked_for():
    s = subject("resnet")
    x = zoo.images()
    assert torch.equal(s.record(x, "output")["output"], s.record(x, "fc")["fc"])
    assert "output" not in s.layers


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": 3}, "name=3 is no name of a network: give text that is not empty"),
        ({"name": ""}, "name='' is no name of a network"),
        ({"recipe": 3}, "recipe=3 is no name of a recipe: give text"),
        ({"recipe": None}, "recipe=None is no name of a recipe"),
        ({"device": "foo"}, "device='foo' cannot be used"),
        ({"device": "cuda:99"}, "device='cuda:99' cannot be used"),
        ({"device": 1.5}, "device=1.5 is no device: give its name"),
        ({"dtype": "float32"}, "dtype='float32' is no precision of torch: give one"),
        ({"preprocess": "imagenet"}, "preprocess='imagenet' is no function of a batch"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_a_sentence(settings, message):
    with pytest.raises(AssayError, match=message) as raised:
        Subject(nn.Linear(2, 2), **settings)
    assert "\n" not in str(raised.value)


def test_layers_before_any_input_say_what_to_give():
    with pytest.raises(AssayError, match="give Subject\\(example="):
        _ = Subject(nn.Linear(2, 2)).layers


@pytest.mark.parametrize("kind", zoo.BUILDERS)
def test_recorded_values_are_those_of_plain_hooks(kind):
    """The reference: clone everything in ordinary forward hooks."""
    net = zoo.build(kind)
    x = zoo.images()
    recorded = Subject(net).record(x)
    plain: dict[str, torch.Tensor] = {}
    calls: dict[str, int] = {}

    def hook(name):
        def keep(module, args, output):
            calls[name] = calls.get(name, 0) + 1
            key = name if calls[name] == 1 else f"{name}#{calls[name]}"
            plain[key] = (output[0] if isinstance(output, tuple) else output).clone()

        return keep

    for name, module in net.named_modules():
        if name:
            module.register_forward_hook(hook(name))
    net.eval()
    with torch.no_grad():
        net(x)
    assert list(recorded) == list(plain)
    for name, value in plain.items():
        assert torch.equal(recorded[name], value), name


def test_inplace_relu_records_different_values_before_and_after():
    recorded = subject("resnet").record(zoo.images(), ["layer1.0.bn1", "layer1.0.relu", "layer1.0.bn2"])
    before, after = recorded["layer1.0.bn1"], recorded["layer1.0.relu"]
    assert (before < 0).any() and not (after < 0).any()
    assert torch.equal(before.relu(), after)


def test_an_overwrite_the_dry_run_did_not_see_is_found_and_repaired():
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.act = nn.Linear(3, 3), nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.fc(x)
            return self.act(y) if x.sum() > 0 else y.relu()

    net = Sometimes()
    s = Subject(net)
    s.record(-torch.ones(2, 3), "fc")
    x = torch.ones(2, 3)
    assert torch.equal(s.record(x, ["fc", "output"])["fc"], net.fc(x))


def test_the_input_is_not_overwritten_by_an_inplace_first_layer():
    s = Subject(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)))
    x = -torch.ones(2, 3)
    s.record(x)
    s(x)
    assert torch.equal(x, -torch.ones(2, 3))


def test_stops_right_after_the_last_layer_asked_for():
    ran = []

    class Spy(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.label = name

        def forward(self, x):
            ran.append(self.label)
            return x + 1

    s = Subject(nn.Sequential(*(Spy(i) for i in range(5))), example=(2,))
    _ = s.layers
    ran.clear()
    s.record(torch.zeros(1, 2), ["1", "2"])
    assert ran == [0, 1, 2]


@pytest.mark.hf
def test_tuple_dict_and_hugging_face_outputs_are_recorded():
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(0)
    s = Subject(BertModel(config), "bert")
    batch = {"input_ids": torch.arange(12).reshape(2, 6), "attention_mask": torch.ones(2, 6, dtype=torch.long)}
    recorded = s.record(batch)
    assert recorded["embeddings"].shape == (2, 6, 16)
    assert "encoder" in recorded and "pooler" in recorded
    whole = s(batch)
    assert torch.equal(recorded["encoder"], whole.last_hidden_state)

    class Pair(nn.Module):
        def forward(self, x):
            return {"sum": x.sum(1), "x": (x, None)}

    net = nn.Sequential(nn.LSTM(3, 4, batch_first=True))
    assert Subject(net).record(torch.rand(2, 5, 3))["0"].shape == (2, 5, 4)
    assert Subject(nn.Sequential(Pair())).record(torch.ones(2, 3))["0"].tolist() == [3, 3]


def test_everything_is_as_found_even_after_an_exception():
    net = zoo.build("resnet")
    net.train()
    net.layer1.eval()
    flags = {n: m.training for n, m in net.named_modules()}
    state = copy.deepcopy(net.state_dict())
    s = Subject(net)
    rng = torch.get_rng_state()

    def boom(layer, output):
        raise KeyError("from the visitor")

    for act in (lambda: s.record(zoo.images()), lambda: s.visit(zoo.images(), boom), lambda: s(torch.ones(1, 2, 3))):
        with contextlib.suppress(KeyError, AssayError):
            act()
        assert {n: m.training for n, m in net.named_modules()} == flags
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
        assert torch.is_grad_enabled() and torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())


@pytest.mark.slow
@settings(max_examples=15)
@given(order=st.permutations(range(6)), cut=st.integers(1, 5), kind=st.sampled_from(["resnet", "transformer"]))
def test_results_do_not_depend_on_batch_size_or_order(order, cut, kind):
    x = zoo.images(6)
    s = subject(kind)
    whole = s.record(x)
    shuffled = x[list(order)]
    parts = [s.record(shuffled[:cut]), s.record(shuffled[cut:])]
    for layer, value in whole.items():
        joined = torch.cat([p[layer] for p in parts])
        # Blocking of matrix products depends on their size: last-bit differences in float32.
        torch.testing.assert_close(joined, value[list(order)], rtol=1e-5, atol=1e-5)


def test_preprocess_device_precision_and_memory_format():
    net = zoo.build("resnet")
    x = zoo.images()
    plain = Subject(net).record(x, "fc")["fc"]
    assert torch.equal(Subject(net, preprocess=lambda b: b / 2).record(x * 2, "fc")["fc"], plain)
    half = Subject(net, dtype=torch.bfloat16)
    assert half.record(x, "fc")["fc"].dtype == torch.bfloat16
    assert next(net.parameters()).dtype == torch.float32, "the module itself is unchanged"
    # bfloat16 has 8 bits: a few per cent after ten layers.
    torch.testing.assert_close(half.record(x, "fc")["fc"].float(), plain, rtol=0.1, atol=0.05)
    last = Subject(net, channels_last=True).record(x, ["stem", "fc"])
    assert last["stem"].is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(last["fc"], plain, rtol=1e-4, atol=1e-5)
    assert Subject(net, device="cpu").module is net


def test_numpy_batches_work_and_uint8_ones_are_refused():
    s = subject("mlp")
    assert s.record(zoo.images().numpy(), "5")["5"].shape == (5, 10)
    with pytest.raises(AssayError, match="uint8"):
        s.record((zoo.images() * 255).to(torch.uint8))


def test_fingerprint_follows_content_not_name():
    assert Subject(zoo.build("vgg"), "a").fingerprint == Subject(zoo.build("vgg"), "b").fingerprint
    assert Subject(zoo.build("vgg")).fingerprint != Subject(zoo.build("vgg", seed=1)).fingerprint
    relu, tanh = (nn.Sequential(nn.Linear(2, 2), act()) for act in (nn.ReLU, nn.Tanh))
    tanh.load_state_dict(relu.state_dict())
    assert Subject(relu).fingerprint != Subject(tanh).fingerprint
    assert Subject(relu).fingerprint != Subject(relu, dtype=torch.bfloat16).fingerprint


def test_a_subject_survives_pickling():
    s = subject("resnet")
    s.split("layer1").prefix(zoo.images())
    again = pickle.loads(pickle.dumps(s))
    assert torch.equal(again.record(zoo.images(), "fc")["fc"], s.record(zoo.images(), "fc")["fc"])
    assert again.fingerprint == s.fingerprint


def test_only_modules_are_subjects():
    with pytest.raises(AssayError, match=r"not a torch\.nn\.Module"):
        Subject(lambda x: x)  # type: ignore[arg-type]


class RereadsWhatItOverwrote(nn.Module):
    """fc(relu(x)) + x, where the in-place ReLU has already changed x."""

    def __init__(self):
        super().__init__()
        self.stem, self.relu, self.fc = nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3)

    def forward(self, x):
        x = self.stem(x)
        return self.fc(self.relu(x)) + x


class DropsWhatReluReturns(RereadsWhatItOverwrote):
    def forward(self, x):
        x = self.stem(x)
        self.relu(x)
        return self.fc(x)


@pytest.mark.parametrize("kind", [RereadsWhatItOverwrote, DropsWhatReluReturns])
def test_networks_that_rely_on_writing_in_place_are_recorded_as_they_run(kind):
    torch.manual_seed(0)
    net = kind()
    x = torch.randn(4, 3)
    subject = Subject(net)
    recorded = subject.record(x, ["stem", "relu", "fc", "output"])
    assert torch.equal(recorded["output"], net(x))
    assert torch.equal(recorded["stem"], net.stem(x)) and (recorded["stem"] < 0).any()
    split = subject.split("relu")
    torch.testing.assert_close(split.rest(*split.prefix(x)), net(x), rtol=0, atol=1e-5)


def test_what_is_recorded_does_not_share_memory_with_the_batch():
    x = torch.ones(2, 3)
    recorded = Subject(nn.Sequential(nn.Identity(), nn.Linear(3, 1))).record(x)
    x.zero_()
    assert torch.equal(recorded["0"], torch.ones(2, 3))


def test_modules_may_be_called_output_or_have_a_hash_in_their_name():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.output = nn.Linear(3, 3)
            self.add_module("a#b", nn.ReLU())

        def forward(self, x):
            return self.get_submodule("a#b")(self.output(x)) * 2

    net = Odd()
    x = torch.randn(4, 3)
    subject = Subject(net)
    assert list(subject.record(x)) == ["output", "a#b"]
    assert torch.equal(subject.record(x, "output")["output"], net.output(x))
    split = subject.split("a#b")
    torch.testing.assert_close(split.rest(*split.prefix(x)), net(x), rtol=0, atol=1e-5)


class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def test_batches_of_one_showing_draw_on_and_leave_the_random_state_as_found():
    subject = Subject(nn.Sequential(Noisy()))
    x = torch.zeros(1, 5)
    assert torch.equal(subject.record(x)["0"], subject.record(x)["0"])
    state = torch.get_rng_state()
    with subject.showing():
        assert not torch.equal(subject.record(x)["0"], subject.record(x)["0"])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("text", "the batch is a str: show networks a tensor or an array"),
        (3, "the batch is one number, 3"),
        (torch.zeros((3, 8, 8)), r"N×C×H×W: give batch\[None\] for one picture"),
        (torch.zeros((2, 8, 8, 3)), r"N×C×H×W: give batch.transpose\(0, 3, 1, 2\)"),
        (torch.zeros((2, 1, 8, 8)), "cannot take inputs of shape .1, 8, 8.: .*3 channels, but got 1 channels"),
    ],
)
def test_a_batch_that_does_not_fit_ends_in_one_sentence_with_the_remedy(batch, said):
    subject = Subject(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(72, 3)))
    with pytest.raises(AssayError, match=said) as caught:
        subject.record(batch)
    assert "\n" not in str(caught.value)


class Expanding(nn.Module):
    """Returns a view that takes a few bytes, and 12 TB as a copy."""

    def forward(self, x):
        return x.mean((1, 2, 3))[:, None].expand(len(x), 3 * 2**40)


def test_a_network_that_takes_no_single_input_is_refused_for_that_reason_in_whole_sentences():
    class Several(nn.Module):
        def forward(self, x):
            if len(x) == 1:
                raise ValueError("batch norm needs more\nthan one")
            return x

    with pytest.raises(AssayError) as error:
        Subject(Several(), "pair", example=(3,)).choose()
    why = "it takes two at a time but no single one, as measures show it (ValueError: batch norm needs more than one)"
    assert str(error.value) == f"'pair' cannot take inputs of shape (3,): {why}"


def test_an_output_that_no_memory_could_hold_is_one_sentence():
    subject = Subject(nn.Sequential(nn.Identity(), Expanding()), "wide")
    with pytest.raises(AssayError, match=r"a layer's output of shape .* would take 12\.0 TiB of memory"):
        subject.record(torch.ones(1, 3, 8, 8))


class PreActivation(nn.Module):
    """A block that adds its input to what it makes of it, after an activation in place has written over that input."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.last = nn.ReLU(inplace=True), nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.relu(x)) + x


@pytest.mark.parametrize("compiled", [False, True])
def test_what_an_activation_in_place_does_is_seen_though_the_first_input_is_black(compiled):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4, bias=False), PreActivation()).eval()
    x = torch.randn(5, 4)
    x[0] = 0
    with torch.no_grad():
        expected = net(x.clone())
    subject = Subject(net, compile=compiled)
    assert torch.equal(subject.record(x, ["1"])["1"], expected)
    seen = {}
    subject.visit(x, lambda layer, output: seen.setdefault(layer, output.clone()), ["1"])
    assert torch.equal(seen["1"], expected)


@pytest.mark.parametrize("kind", ["tensor", "array", "by name"])
def test_preprocessing_that_writes_to_its_input_changes_nobodys_data(kind):
    def centre(x):
        for tensor in x.values() if isinstance(x, dict) else (x,):
            tensor.sub_(0.5).div_(0.2)
        return x

    plain = torch.rand(6, 4)
    given = {"tensor": plain.clone(), "array": plain.numpy().copy(), "by name": {"input": plain.clone()}}[kind]
    subject = Subject(nn.Linear(4, 2), preprocess=centre)
    first, second = subject(given), subject(given)
    assert torch.equal(first, second)
    left = given["input"] if isinstance(given, dict) else torch.as_tensor(given)
    assert torch.equal(left, plain)
