"""The pruner of a search: a quantity measured during training ends trials that have converged or that fall behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert
from assay.stats.convergence import below_population
from assay.stimuli.labelled import Labelled
from assay.studies.search.quantity import KEYS, Quantity, read_quantity
from assay.subject.subject import Subject
from assay.training.callbacks import Callback, LiveLoss, LiveMeasure, Moment, Recorder, StopWhenConverged

Population = Mapping[int, Sequence[float]]
"""What the live quantity was in other trials, by epoch."""


@dataclass(frozen=True)
class Convergence:
    """End a training whose live quantity is stable; the trial counts, with the network as it is then.

    Args:
        window: Number of epochs during which the quantity must be stable.
        sd: The largest standard deviation that counts as stable.
    """

    window: int = 25
    sd: float = 0.01

    def __post_init__(self) -> None:
        StopWhenConverged(LiveLoss(), self.window, self.sd)


@dataclass(frozen=True)
class Threshold:
    """Discard a trial whose live quantity is below mean plus standard deviation of other trials at the same epoch.

    Args:
        after: The first epoch at which a trial may be discarded.
        least: Number of other trials that must have come as far.
    """

    after: int = 25
    least: int = 5


@dataclass(frozen=True)
class Pruner:
    """Measure a quantity every few epochs of a training, and end the training by rules.

    Args:
        quantity: What is measured; the number ``loss`` is the training loss.
        every: Number of epochs between two measurements.
        convergence: When a training has converged; None for never.
        population: When a trial falls behind the others; None for never.

    Human-model similarity (2018), §4.3.
    """

    quantity: Quantity
    every: int = 5
    convergence: Convergence | None = None
    population: Threshold | None = None


class Watch:
    """The callback of one trial: records the live quantity, counts epochs, and ends the training by the pruner's rules.

    Args:
        pruner: What is measured, and the rules; None for a callback that only counts.
        wrap: Makes a subject of a network in training.
        population: What the quantity was in other trials, by epoch.
    """

    def __init__(self, pruner: Pruner | None, wrap: Callable[[nn.Module], Subject], population: Population) -> None:
        self.pruner = pruner
        self.population = population
        self.last: Moment | None = None
        self.converged_at: int | None = None
        self.pruned_at: int | None = None
        self.live: Recorder | None = None
        self._converged: Callback | None = None
        if pruner is None:
            return
        quantity = pruner.quantity
        if quantity.number:
            self.live = LiveLoss(pruner.every)
        else:
            self.live = LiveMeasure(lambda module: quantity.of(wrap(module), {}), quantity.name, pruner.every)
        if pruner.convergence is not None:
            self._converged = StopWhenConverged(self.live, pruner.convergence.window, pruner.convergence.sd)

    def __call__(self, moment: Moment) -> bool:
        """Whether the training should end."""
        self.last = Moment(moment.epoch, moment.step, moment.loss, moment.seconds, nn.Identity())
        if self.pruner is None or self.live is None:
            return False
        self.live(moment)
        if self._behind(moment.epoch):
            self.pruned_at = self.pruned_at or moment.epoch
        elif self._converged is not None and self._converged(moment):
            self.converged_at = self.converged_at or moment.epoch
        return self.pruned_at is not None or self.converged_at is not None

    def state_dict(self) -> dict[str, Any]:
        """What was recorded and decided, for a training that keeps it in its checkpoint."""
        last = None if self.last is None else [self.last.epoch, self.last.step, self.last.loss, self.last.seconds]
        live = None if self.live is None else self.live.state_dict()
        return {"last": last, "live": live, "converged_at": self.converged_at, "pruned_at": self.pruned_at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of another."""
        if self.live is not None:
            self.live.load_state_dict(state["live"])
        if state["last"] is not None:
            epoch, step, loss, seconds = state["last"]
            self.last = Moment(epoch, step, loss, seconds, nn.Identity())
        self.converged_at, self.pruned_at = state["converged_at"], state["pruned_at"]

    def _behind(self, epoch: int) -> bool:
        assert self.pruner is not None and self.live is not None
        rule = self.pruner.population
        if rule is None or epoch < rule.after or not self.live.epochs or self.live.epochs[-1] != epoch:
            return False
        others, sign = self.population.get(epoch, ()), self.pruner.quantity.sign
        if len(others) < rule.least:
            return False
        return below_population(sign * self.live.values[-1], [sign * value for value in others])


def read_pruner(node: Node, data: Labelled | None) -> Pruner:
    """A pruner as a plan writes it; all that is wrong with it is raised at once."""
    own = ("every", "convergence", "population")
    reading = Reading(node, (*KEYS, *own))
    every = reading.take("every", lambda entry: convert(entry, int, {}), 5)
    convergence = reading.take("convergence", lambda entry: build(Convergence, _filled(entry)), None)
    population = reading.take("population", lambda entry: build(Threshold, _filled(entry)), None)
    with reading.problems.watching():
        if every < 1:
            reading.entries["every"].fail(f"is {every}, expected at least 1 epoch")
    if reading.entries and not {"convergence", "population"} & reading.entries.keys():
        with reading.problems.watching():
            node.fail("has no rule: give convergence, population or both")
    quantity = None
    if reading.entries:
        with reading.problems.watching():
            rest = {key: value for key, value in node.value.items() if key not in own}
            quantity = read_quantity(Node(rest, node.file, node.path, node.lines), data, (*KEYS, *own))
            if quantity.number not in ("", "loss"):
                node["number"].fail(f"is {quantity.number!r}: during training the only number told is 'loss'")
    reading.problems.raise_any()
    assert quantity is not None  # else there was a problem
    return Pruner(quantity, every, convergence, population)


def _filled(node: Node) -> Node:
    """A rule by its name alone, ``population: true`` or ``population:``, is one with its defaults."""
    return Node({}, node.file, node.path, node.lines) if node.value is None or node.value is True else node
