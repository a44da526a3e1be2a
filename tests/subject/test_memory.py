"""Showing a network something leaves it as it was, whatever it keeps of what it sees."""

from __future__ import annotations

import collections

import pytest
import torch
from torch import nn

from assay import Straightness, Subject, evaluate
from measure_kit import Slow, sequences


class Remembers(nn.Module):
    """Keeps what it is shown in one of many ways; ``kept`` is what it kept, in the end."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
        self.last = None
        self.calls = 0
        self.listed: list[object] = []
        self.named: dict[str, object] = {"inside": {}}
        self.queue = collections.deque(maxlen=2)
        self.plain = torch.zeros(10)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(10))

    def forward(self, x):
        out = self.body(x)
        match self.how:
            case "attribute":
                self.last = out
            case "new attribute":
                self.never_seen_before = out
            case "counter":
                self.calls += 1
            case "list":
                self.listed.append(out)
            case "dictionary":
                self.named[str(len(self.named))] = out
            case "dictionary inside another":
                self.named["inside"][len(self.named["inside"])] = out
            case "deque":
                self.queue.append(out)
            case "tensor in place":
                self.plain += out.mean(0)
            case "buffer in place":
                self.count += 1
            case "buffer anew":
                self.mean = self.mean + out.mean(0)
            case "of a layer":
                self.body[1].last = out
            case "buffer of a layer":
                self.body[1].seen = out
        return out


WAYS = [
    "attribute",
    "new attribute",
    "counter",
    "list",
    "dictionary",
    "dictionary inside another",
    "deque",
    "tensor in place",
    "buffer in place",
    "buffer anew",
    "of a layer",
    "buffer of a layer",
]


def remembering(how: str) -> Subject:
    torch.manual_seed(0)
    network = Remembers(how)
    network.body[1].register_buffer("seen", torch.zeros(10))
    return Subject(network, "net")


def images(seed: int = 0) -> torch.Tensor:
    return torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("how", WAYS)
def test_the_fingerprint_is_the_same_before_and_after_a_showing(how):
    subject = remembering(how)
    before = subject.fingerprint
    for seed in range(3):
        subject(images(seed))
        assert subject.fingerprint == before
        subject.record(images(seed))
        assert subject.fingerprint == before
    Straightness(sequences())(subject)
    subject.probe()
    assert subject.fingerprint == before


@pytest.mark.parametrize("how", ["attribute", "list", "buffer in place"])
def test_cells_of_a_network_that_remembers_are_found_again(tmp_path, how):
    subject = remembering(how)
    measures = [Slow(seconds=0.0), Straightness(sequences())]
    assert evaluate(subject, measures, tmp_path).outcome.measured == 2
    assert evaluate(subject, measures, tmp_path).outcome.kept == 2
    assert evaluate(remembering(how), measures, tmp_path).outcome.kept == 2


def test_what_the_user_sets_is_seen_all_the_same():
    subject = remembering("attribute")
    before = subject.fingerprint
    subject(images())
    subject.module.calls = 5
    assert subject.fingerprint != before
    subject(images())
    assert subject.module.calls == 5


def test_a_network_goes_on_remembering_within_one_showing():
    subject = remembering("counter")
    subject(images())
    with subject.showing():
        subject(images())
        subject(images())
        assert subject.module.calls == 2
    assert subject.module.calls == 0


def test_a_network_raises_and_is_as_it_was():
    class Raises(Remembers):
        def forward(self, x):
            super().forward(x)
            raise ZeroDivisionError("after it was shown")

    subject = Subject(Raises("attribute"))
    with pytest.raises(ValueError, match="after it was shown"):
        subject(images())
    assert subject.module.last is None
