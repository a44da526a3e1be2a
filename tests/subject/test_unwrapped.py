"""Networks as people have them: compiled, parallel, scripted, exported, lazy, on several inputs."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import torch
from torch import nn

import zoo
from assay import AssayError, Subject
from assay.core.arrays import first_tensor, with_first_tensor

LAYERS = ["0", "1", "2.0", "2", "3"]


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 2))


X = torch.rand(5, 3, generator=torch.Generator().manual_seed(0))


def never(*args, **kwargs):
    raise AssertionError("compiled, though only layers are to be seen")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda net: torch.compile(net, backend=never),
        nn.DataParallel,
        torch.optim.swa_utils.AveragedModel,
        lambda net: nn.DataParallel(torch.compile(net, backend=never)),
    ],
)
def test_what_is_wrapped_around_a_network_is_taken_off(wrap):
    net = small()
    subject = Subject(wrap(net))
    assert subject.record(X).keys() == Subject(net).record(X).keys()
    assert subject.layers == LAYERS and subject.name == "Sequential"
    assert subject.fingerprint == Subject(net).fingerprint
    torch.testing.assert_close(subject(X), Subject(net)(X))


@pytest.mark.parametrize("in_place", [True, False])
def test_a_network_with_compiled_parts_runs_as_it_is_written(in_place):
    net, plain = small(), small()
    if in_place:
        net[2].compile(backend=never)
    else:
        net[2] = torch.compile(net[2], backend=never)
    subject = Subject(net)
    torch.testing.assert_close(subject.record(X, "3")["3"], plain(X))
    assert ("2.0" if in_place else "2._orig_mod.0") in subject.layers


def test_an_exported_program_has_the_layers_of_the_modules_it_was_made_of():
    net = small()
    program = torch.export.export(net, (X,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    subject = Subject(program, "exported")
    recorded = subject.record(X[:2])
    assert list(recorded) == LAYERS
    torch.testing.assert_close(recorded["1"], net[1](net[0](X[:2])))
    split = subject.split("1")
    torch.testing.assert_close(split.rest(*split.prefix(X)), net(X))
    assert split.captured
    assert Subject(program, dtype=torch.float64)(X).dtype == torch.float64


def test_a_program_exported_for_one_batch_size_says_so():
    program = torch.export.export(small(), (X,))
    with pytest.raises(AssayError, match=r"was exported for batches of 5 only: export it with dynamic_shapes="):
        Subject(program)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("make", [torch.jit.script, lambda net: torch.jit.trace(net, X)])
def test_torchscript_is_seen_at_its_output_only(make):
    net = small().eval()
    subject = Subject(make(net))
    assert list(subject.record(X)) == ["output"] == subject.layers
    torch.testing.assert_close(subject(X), net(X))
    assert subject.fingerprint == Subject(make(net)).fingerprint
    mixed = nn.Sequential(nn.Sequential(nn.Linear(3, 3)), make(nn.Sequential(nn.Linear(3, 2))))
    assert Subject(mixed, example=(3,)).layers == ["0.0", "0", "output"]


def test_a_lazy_network_is_asked_to_be_shown_a_batch_first():
    net = nn.Sequential(nn.LazyLinear(4))
    with pytest.raises(AssayError, match=r"'0.weight' of module has no shape yet: show it a batch"):
        Subject(net)
    net(X)
    assert Subject(net)(X).shape == (5, 4)


def test_weights_without_values_are_refused():
    with pytest.raises(AssayError, match=r"'weight' of module is on the meta device and has no values"):
        Subject(nn.Linear(3, 2, device="meta"))


def test_a_network_that_cannot_be_copied_is_a_subject_as_it_is():
    net = small()
    net.lock = threading.Lock()
    assert Subject(net)(X).shape == (5, 2)
    with pytest.raises(AssayError, match=r"cannot be copied \(TypeError: .*give it as it should run"):
        Subject(net, dtype=torch.float64)


def test_something_else_than_a_module_is_refused():
    with pytest.raises(AssayError, match="module is a function, not a torch"):
        Subject(never)


def test_inputs_are_shown_in_the_precision_of_the_network():
    assert Subject(small().double())(X).dtype == torch.float64
    assert Subject(small().bfloat16())(X.numpy()).dtype == torch.bfloat16
    net = small()
    net[3].double()  # mixed: torch refuses to multiply
    with pytest.raises(AssayError, match=r"'Sequential' cannot take inputs of shape \(3,\): "):
        Subject(net)(X)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(2, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, left, right):
        return self.head(torch.relu(self.left(left) + self.right(right)))


class OneMapping(TwoInputs):
    def forward(self, batch):
        return super().forward(batch["left"], batch["right"])


@pytest.mark.parametrize("kind", [TwoInputs, OneMapping])
def test_several_inputs_are_given_by_name(kind):
    net = kind()
    subject = Subject(net, "two")
    batch = {"right": torch.rand(5, 2), "left": X}  # not in the order of the arguments
    expected = TwoInputs.forward(net, X, batch["right"])
    assert torch.equal(subject(batch), expected)
    assert list(subject.record(batch)) == ["left", "right", "head"]
    split = subject.split("left")
    output, carried = split.prefix(batch)
    torch.testing.assert_close(split.rest(output, carried), expected)
    torch.testing.assert_close(split.rest(output * 0, carried), net.head(torch.relu(net.right(batch["right"]))))
    assert split.captured
    assert subject.probe() is not None
    shapes = Subject(kind(), example={"left": (3,), "right": (2,)})
    assert shapes.layers == ["left", "right", "head"]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (X, "missing 1 required positional argument: 'right'; give its inputs as a mapping"),
        ((X, X), "the batch is a tuple: show networks a tensor or an array, or a mapping of them"),
        ({"left": X, "right": X[:2]}, "must have a row for each of the same inputs: 'left' has 5, 'right' has 2"),
        (
            {"left": X, "write": X[:, :2]},
            r"'two' cannot take left of shape \(3,\) and write of shape \(2,\)",
        ),
        ({"left": X, "right": "words"}, "the batch is a str: show networks a tensor"),
        ({}, "there are none"),
    ],
)
def test_wrong_inputs_are_named(batch, message):
    with pytest.raises(AssayError, match=message):
        Subject(TwoInputs(), "two")(batch)


def test_whatever_a_network_raises_is_a_sentence():
    class Odd(nn.Module):
        def forward(self, x):
            raise KeyError("nothing here")

    with pytest.raises(AssayError, match=r"'Odd' cannot take inputs of shape \(3,\): KeyError: 'nothing here'"):
        Subject(Odd())(X)
    with pytest.raises(AssayError, match=r"preprocess cannot take inputs of shape \(3,\): ZeroDivisionError"):
        Subject(small(), preprocess=lambda x: 1 / 0)(X)


@dataclasses.dataclass
class Answer:
    name: str
    scores: torch.Tensor
    also: tuple


@pytest.mark.parametrize(
    "returned",
    [{"aux": {"deep": X}, "more": X}, [(), (X, X)], Answer("a", X, (X,)), Answer("a", {"x": X}, ())],  # type: ignore[arg-type]
)
def test_the_first_tensor_is_found_and_replaced_in_whatever_a_layer_returns(returned):
    assert first_tensor(returned) is X
    changed = with_first_tensor(returned, X + 1)
    assert torch.equal(first_tensor(changed), X + 1) and first_tensor(returned) is X


def test_the_networks_of_the_zoo_are_left_as_they_are():
    net = zoo.build("resnet")
    assert Subject(net).module is net
