"""Odd networks, asked everything: each works or is refused in a sentence, and stays as it was."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from assay import Sharpness, Subject
from assay.stimuli import Labelled
from fuzz import harness, networks, odd_modules


def test_odd_networks_work_or_are_refused_and_stay_as_they_were():
    wrong = harness.check("networks", networks, seed=2026, cases=150)
    assert not wrong, wrong


def test_what_a_network_does_to_the_modes_of_torch_and_its_own_is_taken_back():
    class Rude(nn.Module):
        def forward(self, x):
            torch.set_default_dtype(torch.float64)
            torch.set_grad_enabled(True)
            self.train()
            return x

    network = Rude().eval()
    before = networks.modes()
    Subject(network).record(torch.zeros(2, 3))
    assert networks.modes() == before
    assert not network.training


def test_the_fuzzer_sees_a_network_that_was_changed():
    network = nn.Linear(2, 2)
    before = networks.state(network)
    with torch.no_grad():
        network.weight[0, 0] += 1
    network.train(False)
    assert networks.differences(before, networks.state(network)) == ".weight, mode of ''"


def test_a_module_under_two_names_keeps_its_weights():
    """Torch's own tying of weights would leave it with those that were moved."""
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), odd_modules.Twice(), odd_modules.ENDS["scores"]()).eval()
    before = networks.state(network)
    data = Labelled(np.random.default_rng(0).random((12, 1, 8, 8), dtype=np.float32), np.arange(12) % 3)
    Sharpness(data, draws=1, ascent=1, steps=2, bootstrap=2)(Subject(network))
    assert not networks.differences(before, networks.state(network))


def test_a_network_that_asks_for_gradients_itself_is_measured():
    network = nn.Sequential(nn.Conv2d(1, 4, 3), odd_modules.MODULES["gradients"](), odd_modules.ENDS["scores"]()).eval()
    batch = torch.rand(2, 1, 8, 8)
    seen: list[bool] = []
    Subject(network).visit(batch, lambda layer, output: seen.append(output.requires_grad))
    assert not any(seen) and not Subject(network)(batch).requires_grad
