"""Odd networks, asked everything: each works or is refused in a sentence, and stays as it was."""

from __future__ import annotations

import torch
from torch import nn

from assay import Subject
from fuzz import harness, networks


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
