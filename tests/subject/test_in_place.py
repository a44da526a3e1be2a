"""Activations that write over their input where nobody else can read it: less memory, and the same numbers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.overrides import TorchFunctionMode

from assay import Subject
from assay.subject.in_place import writing_over

ACTIVATIONS = [nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.1), nn.Hardtanh(-0.2, 0.3)]
BEFORE = [nn.Linear(6, 4), nn.Conv1d(2, 3, 3), nn.ConvTranspose1d(2, 3, 3), nn.BatchNorm1d(2), nn.LayerNorm(6)]


def inputs() -> Tensor:
    return torch.randn(5, 2, 6, generator=torch.Generator().manual_seed(0))


def visited(network: nn.Module, batch: Tensor) -> tuple[dict[str, Tensor], dict[str, int]]:
    """Copies of what layers return as they are visited, and where in memory each was."""
    values: dict[str, Tensor] = {}
    places: dict[str, int] = {}

    def keep(layer: str, output: Tensor) -> None:
        values[layer], places[layer] = output.clone(), output.data_ptr()

    Subject(network).visit(batch, keep)
    return values, places


def require_as_recorded(network: nn.Module, batch: Tensor) -> dict[str, int]:
    """Where layers put their outputs; what they return is as it is in new memory, and the network as it was."""
    before = copy.deepcopy(network)
    attributes = [set(vars(module)) for module in network.modules()]
    values, places = visited(network, batch)
    recorded = Subject(network).record(batch)
    assert list(values) == list(recorded)
    for layer, output in recorded.items():
        assert torch.equal(values[layer], output), layer
    with torch.no_grad():
        for a, b in zip(as_list(Subject(network)(batch)), as_list(before.eval()(batch)), strict=True):
            assert torch.equal(a, b)
    assert [set(vars(module)) for module in network.modules()] == attributes
    assert not any(getattr(module, "inplace", False) for module in network.modules())
    return places


def as_list(output: object) -> list[Tensor]:
    return output if isinstance(output, list) else [output]


@pytest.mark.parametrize("before", BEFORE, ids=lambda module: type(module).__name__)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda module: type(module).__name__)
def test_an_activation_after_new_memory_writes_over_it(before, activation):
    torch.manual_seed(0)
    network = nn.Sequential(copy.deepcopy(before), copy.deepcopy(activation), nn.Tanh())
    places = require_as_recorded(network, inputs())
    assert places["0"] == places["1"] != places["2"]


def test_the_units_of_a_whole_network_are_in_half_of_the_memory():
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.BatchNorm1d(2), nn.ReLU()) for _ in range(3)]
    places = require_as_recorded(nn.Sequential(*blocks, nn.Flatten(), nn.Linear(12, 8), nn.ReLU()), inputs())
    for block in "012":
        assert places[f"{block}.0"] != places[f"{block}.1"] == places[f"{block}.2"]
    assert places["4"] == places["5"]


class KeepsAll(nn.Module):
    """Calls the children of a sequence itself, and returns what each returned, as perceptual losses do."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.ReLU(), nn.Conv1d(2, 2, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> list[Tensor]:
        kept = []
        for layer in self.stack:
            x = layer(x)
            kept.append(x)
        return kept


class SharesItsActivation(nn.Module):
    """One ReLU, in a sequence and in a residual connection that reads what the ReLU was given."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.stack = nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), self.relu)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stack(x) - 1
        return x + self.relu(x)


class Remembering(nn.Conv1d):
    """A convolution that keeps its output, and adds it to the next."""

    kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        output = super().forward(x)
        self.kept = output if self.kept is None else self.kept + output
        return self.kept


class Residual(nn.Sequential):
    """A sequence whose forward adds its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class ListensToItself(nn.Module):
    """Takes features from a sequence by a hook that it sets for the pass, as content losses do."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        handle = self.stack[0].register_forward_hook(lambda module, args, output: kept.append(output))
        x = self.stack(x)
        handle.remove()
        return x - kept[0]


class TrainsACopy(nn.Module):
    """Runs a copy of a sequence with other weights, as training at test time does."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        other = copy.deepcopy(self.stack)
        other[0].weight.mul_(2)
        return other(x)


def remembering() -> nn.Module:
    return nn.Sequential(Remembering(2, 2, 3, padding=1), nn.ReLU(), Remembering(2, 2, 3, padding=1), nn.ReLU())


def residual() -> nn.Module:
    return Residual(nn.ReLU(), nn.Conv1d(2, 2, 3, padding=1))


def replaced() -> nn.Module:
    """A convolution whose method somebody has replaced, to keep what it computes."""
    network = nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.ReLU(), nn.Conv1d(2, 2, 3, padding=1))
    before: list[Tensor] = []

    def first_of_all(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        before.append(nn.functional.conv1d(x, weight, bias, padding=1))
        return before[-1] + before[0].mean()

    network[0]._conv_forward = first_of_all
    return network


ODD = [KeepsAll, SharesItsActivation, ListensToItself, TrainsACopy, remembering, residual]


@pytest.mark.parametrize("kind", ODD, ids=lambda kind: kind.__name__)
def test_where_other_code_runs_nothing_is_written_over(kind):
    torch.manual_seed(0)
    network = kind()
    assert writing_over(network) is network
    require_as_recorded(network, inputs())


def test_code_that_somebody_put_in_place_of_torchs_own_is_not_trusted():
    network = replaced()
    assert writing_over(network) is network
    Subject(network)(inputs())
    network = nn.Sequential(nn.Linear(6, 2), nn.ReLU())
    network[1].forward = lambda x: x.relu()
    assert writing_over(network) is network
    with pytest.warns(DeprecationWarning):
        network = nn.Sequential(nn.Linear(6, 2), nn.ReLU(), torch.jit.script(nn.Linear(2, 2)))
    assert writing_over(network) is network
    require_as_recorded(network, inputs())


@pytest.mark.parametrize("channels_last", [True, False])
def test_where_an_axis_has_length_1_the_order_in_memory_stays_that_of_new_memory(channels_last):
    """A ReLU gives new memory the usual order there; in place it would keep another, and later layers round by it."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 1, 3), nn.LeakyReLU(0.1), nn.Conv2d(1, 4, 1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 8, 1)
    ).eval()
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    subject = Subject(network, channels_last=channels_last)
    strides = {}
    subject.visit(x, lambda layer, output: strides.__setitem__(layer, output.stride()))
    ready = x.to(memory_format=torch.channels_last) if channels_last else x
    with torch.no_grad():
        assert torch.equal(subject(x), subject.module(ready))
        for place, module in enumerate(subject.module.children()):
            ready = module(ready)
            assert strides[str(place)] == ready.stride()


def test_a_visitor_may_run_the_networks_own_modules_and_copies_of_it():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv1d(2, 2, 3), nn.ReLU(), nn.Linear(4, 3)).eval()
    other = nn.Sequential(nn.Conv1d(2, 2, 3), network[1]).eval()
    batch, compared = inputs(), []
    with torch.no_grad():
        whole = network(batch)

    def visit(layer: str, output: Tensor) -> None:
        before = other[0](batch)
        again = before + other[1](before)
        compared.append(torch.equal(again, other[0](batch) + before.relu()))
        copied = copy.deepcopy(network)
        for handles in (module._forward_hooks for module in copied.modules()):
            handles.clear()
        nn.init.zeros_(copied[2].weight)
        compared.append(torch.equal(copied(batch), copied[2].bias.expand(5, 2, 3)))
        compared.append(network[1].inplace is False)

    Subject(network).visit(batch, visit)
    assert len(compared) == 9 and all(compared)
    assert torch.equal(Subject(network)(batch), whole)


def test_what_a_hook_keeps_is_not_written_over():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv1d(2, 2, 3), nn.ReLU(), nn.Conv1d(2, 2, 3), nn.ReLU()).eval()
    batch, kept = inputs(), []
    with torch.no_grad():
        first = network[0](batch)
        second = network[2](first.relu())
    handles = [
        network[0].register_forward_hook(lambda module, args, output: kept.append(output)),
        network[3].register_forward_pre_hook(lambda module, args: kept.append(args[0])),
    ]
    Subject(network)(batch)
    assert all(torch.equal(a, b) for a, b in zip(kept[-2:], (first, second), strict=True))
    for handle in handles:
        handle.remove()
    everywhere = register_module_forward_hook(lambda module, args, output: kept.append(output))
    try:
        Subject(network)(batch)
    finally:
        everywhere.remove()
    assert torch.equal(kept[-5], first) and torch.equal(kept[-3], second)


class Keeping(TorchFunctionMode):
    """Keeps what every convolution returns."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        if func is torch.conv1d:
            self.kept.append(output)
        return output


def test_what_a_mode_of_torch_keeps_is_not_written_over():
    network = nn.Sequential(nn.Conv1d(2, 2, 3), nn.ReLU(), nn.Flatten()).eval()
    batch = inputs()
    subject = Subject(network)
    subject(batch)
    with Keeping() as mode:
        subject(batch)
    with torch.no_grad():
        assert torch.equal(mode.kept[-1], network[0](batch))


def test_after_an_error_the_network_is_as_it_was():
    network = nn.Sequential(nn.Conv1d(2, 2, 3), nn.ReLU(), nn.Linear(4, 3))
    subject = Subject(network)
    before = subject.fingerprint

    def fail(layer: str, output: Tensor) -> None:
        if layer == "1":
            raise KeyError(layer)

    with pytest.raises(KeyError):
        subject.visit(inputs(), fail)
    assert subject.fingerprint == before and not any(module._forward_hooks for module in network.modules())
