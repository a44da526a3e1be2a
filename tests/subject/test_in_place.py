"""Activations that write over their input where nobody else can read it: less memory, and the same numbers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from assay import Subject
from assay.subject.in_place import activations_in_place

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
    values, places = visited(network, batch)
    recorded = Subject(network).record(batch)
    assert list(values) == list(recorded)
    for layer, output in recorded.items():
        assert torch.equal(values[layer], output), layer
    whole = Subject(network)(batch)
    for a, b in zip(whole if isinstance(whole, list) else [whole], as_list(before.eval()(batch)), strict=True):
        assert torch.equal(a, b)
    assert all("forward" not in vars(module) for module in network.modules())
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


class Backwards(nn.Sequential):
    """Runs its children in another order."""

    def __iter__(self):
        return iter(list(super().__iter__())[::-1])


class Residual(nn.Sequential):
    """A sequence whose forward adds its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class Same(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class AddsBeforeAndAfter(nn.Module):
    """The sequence begins with an activation, whose input the network reads again."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, padding=1)
        self.stack = nn.Sequential(nn.ReLU(), nn.Conv1d(2, 2, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return x + self.stack(x)


class KeepsOneOfThree(nn.Module):
    """An identity between a kept output and an activation: what the identity returns is not new."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, padding=1)
        self.stack = nn.Sequential(Same(), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return x - self.stack(x)


def remembering() -> nn.Module:
    return nn.Sequential(Remembering(2, 2, 3, padding=1), nn.ReLU(), Remembering(2, 2, 3, padding=1), nn.ReLU())


def backwards() -> nn.Module:
    return Backwards(nn.ReLU(), nn.Conv1d(2, 2, 3, padding=1), nn.ReLU())


def residual() -> nn.Module:
    return Residual(nn.ReLU(), nn.Conv1d(2, 2, 3, padding=1))


ODD = [KeepsAll, SharesItsActivation, remembering, backwards, residual, AddsBeforeAndAfter, KeepsOneOfThree]


@pytest.mark.parametrize("kind", ODD, ids=lambda kind: kind.__name__)
def test_what_somebody_reads_again_is_not_written_over(kind):
    torch.manual_seed(0)
    require_as_recorded(kind(), inputs())


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


def test_after_an_error_the_network_is_as_it_was():
    network = nn.Sequential(nn.Conv1d(2, 2, 3), nn.ReLU(), nn.Linear(4, 3))

    def fail(layer: str, output: Tensor) -> None:
        assert network[1].inplace == (layer == "1")
        if layer == "1":
            raise KeyError(layer)

    with pytest.raises(KeyError):
        Subject(network).visit(inputs(), fail)
    assert "forward" not in vars(network) and network[1].inplace is False


def test_a_sequence_inside_the_block_runs_in_place_and_after_it_no_longer():
    network = nn.Sequential(nn.Linear(6, 4), nn.ReLU())
    with torch.no_grad(), activations_in_place(network.modules()):
        with activations_in_place(network.modules()):  # a pass inside a pass leaves it to the outer one
            assert "forward" in vars(network)
        assert "forward" in vars(network)
        network(inputs())
    assert "forward" not in vars(network)
