"""Callbacks of training: what any loop calls after every epoch, to measure the network live and to stop in time."""

from __future__ import annotations

import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, shown
from assay.stats.convergence import below_population, converged


@dataclass(frozen=True)
class Moment:
    """Where a training stands after an epoch.

    Args:
        epoch: Number of epochs done.
        step: Number of optimiser steps done.
        loss: Mean training loss of the epoch's steps.
        seconds: Seconds that this process has spent training, without what callbacks took.
        module: The network as it is now, in training mode.
    """

    epoch: int
    step: int
    loss: float
    seconds: float
    module: nn.Module


Callback = Callable[[Moment], bool | None]
"""A function called after every epoch; returning True stops the training.

One that remembers something of earlier epochs may have methods ``state_dict`` and ``load_state_dict``, as those here: a
training with a checkpoint keeps its state there, and an interrupted one goes on as if it had never been.
"""


@runtime_checkable
class Remembering(Protocol):
    """A callback whose state is kept in the checkpoint of its training."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as JSON can hold it: numbers, texts, lists and dictionaries."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remember what another of its kind did."""


def asks_to_stop(answer: Any) -> bool:
    """Whether what a callback returned stops the training: True does, also as NumPy or torch have it.

    Example:
        >>> [asks_to_stop(answer) for answer in (True, np.bool_(True), torch.tensor(True), False, None)]
        [True, True, True, False, False]
    """
    single = answer.detach().cpu().numpy() if isinstance(answer, Tensor) else answer
    if isinstance(single, np.ndarray) and single.size == 1:
        single = single.reshape(())[()]
    if single is None or isinstance(single, bool | np.bool_):
        return bool(single)
    raise AssayError(f"a callback returned {shown(answer)}: return True to stop the training, False or None to go on")


_COLUMNS = ["epoch", "step", "seconds", "loss", "quantity", "value", "measure_s"]


class Recorder(ABC):
    """A callback that records a number of the training every few epochs, in a tidy table.

    Args:
        name: What the table calls the number.
        every: Number of epochs between two records.
    """

    def __init__(self, name: str, every: int) -> None:
        if every < 1:
            raise AssayError(f"every={every} must be at least 1 epoch")
        self.name = name
        self.every = every
        self.rows: list[dict[str, Any]] = []

    @abstractmethod
    def number(self, moment: Moment) -> float:
        """The number to record."""

    def __call__(self, moment: Moment) -> None:
        """Record the number if it is time, once for every epoch.

        An epoch that was passed before belongs to a new training, or to one that continues from a checkpoint: what was
        recorded from it on is forgotten.
        """
        if self.rows and _same_moment(self.rows[-1], moment):
            return
        self.rows = [row for row in self.rows if row["epoch"] < moment.epoch]
        if moment.epoch % self.every:
            return
        began = time.perf_counter()
        value = self.number(moment)
        took = time.perf_counter() - began
        where = {"epoch": moment.epoch, "step": moment.step, "seconds": moment.seconds, "loss": moment.loss}
        self.rows.append({**where, "quantity": self.name, "value": value, "measure_s": took})

    def state_dict(self) -> dict[str, Any]:
        """The rows recorded so far, as a checkpoint keeps them."""
        return {"rows": list(self.rows)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the rows that another recorder kept."""
        rows = [dict(row) for row in state["rows"]]
        for row in rows:
            if list(row) != _COLUMNS or row["quantity"] != self.name:
                raise AssayError(f"these are no records of {self.name!r}: {shown(row)}")
        self.rows = rows

    @property
    def table(self) -> pd.DataFrame:
        """One row for each record: epoch, step, seconds, loss, quantity, value, measure_s."""
        return pd.DataFrame(self.rows, columns=_COLUMNS)

    @property
    def epochs(self) -> list[int]:
        """The epochs at which the number was recorded."""
        return [row["epoch"] for row in self.rows]

    @property
    def values(self) -> list[float]:
        """The number at each of these epochs."""
        return [row["value"] for row in self.rows]


class LiveMeasure(Recorder):
    """Measure the network during training, every few epochs, and record a tidy table.

    While it is measured the network is in eval mode, and afterwards the training flags, gradients, buffers and random
    numbers are as they were: a training gives the same weights to the bit with and without it.

    Args:
        measure: A function from the network to a number.
        name: What the table calls the number.
        every: Number of epochs between two measurements.

    Example:
        >>> live = LiveMeasure(lambda module: module.weight.norm().item(), "norm", every=2)
        >>> network = nn.Linear(2, 2, bias=False)
        >>> _ = nn.init.eye_(network.weight)
        >>> for epoch in range(1, 6):
        ...     live(Moment(epoch, 10 * epoch, loss=1 / epoch, seconds=float(epoch), module=network))
        >>> live.table[["epoch", "step", "quantity", "value"]].round(3).values.tolist()
        [[2, 20, 'norm', 1.414], [4, 40, 'norm', 1.414]]
    """

    def __init__(self, measure: Callable[[nn.Module], float], name: str = "value", every: int = 5) -> None:
        super().__init__(name, every)
        if not callable(measure):
            raise AssayError(f"measure={shown(measure)} is no function: give one from a module to a number")
        self.measure = measure

    def number(self, moment: Moment) -> float:
        """Measure the network."""
        with left_as_found(moment.module):
            return float(self.measure(moment.module))


class LiveLoss(Recorder):
    """Record the training loss every few epochs.

    Args:
        every: Number of epochs between two records.
    """

    def __init__(self, every: int = 5) -> None:
        super().__init__("loss", every)

    def number(self, moment: Moment) -> float:
        """The mean training loss of the epoch."""
        return moment.loss


class _Stop:
    """What callbacks have in common that stop a training by a live measure."""

    def __init__(self, live: Recorder) -> None:
        self.live = live
        self.stopped_at: int | None = None

    def state_dict(self) -> dict[str, Any]:
        """What the live measure recorded, and where this stopped."""
        return {"live": self.live.state_dict(), "stopped_at": self.stopped_at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of another."""
        self.live.load_state_dict(state["live"])
        self.stopped_at = state["stopped_at"]


class StopWhenConverged(_Stop):
    """Stop a training once a live measure has been stable for a window of epochs (`assay.stats.convergence`).

    Args:
        live: The live measure, which this callback calls; it need not be given to the training besides.
        window: Number of epochs during which the measure must be stable.
        sd: The largest standard deviation that counts as stable.

    Example:
        >>> stop = StopWhenConverged(LiveLoss(every=1), window=3)
        >>> losses = [0.9, 0.4, 0.301, 0.300, 0.300, 0.299]
        >>> [stop(Moment(i + 1, i + 1, loss, float(i), nn.Identity())) for i, loss in enumerate(losses)]
        [False, False, False, False, False, True]
        >>> stop.stopped_at
        6

    Human-model similarity (2018), §4.3.
    """

    def __init__(self, live: Recorder, window: int = 25, sd: float = 0.01) -> None:
        converged([], [], window, sd)  # refuses what cannot be a window
        super().__init__(live)
        self.window = window
        self.sd = sd

    def __call__(self, moment: Moment) -> bool:
        """Whether the training should stop."""
        self.live(moment)
        self.stopped_at = converged(self.live.values, self.live.epochs, self.window, self.sd)
        return self.stopped_at is not None


class StopBelowPopulation(_Stop):
    """Stop a training whose live measure is below the mean plus the standard deviation of other networks' values.

    Args:
        live: The live measure, which this callback calls; it need not be given to the training besides.
        population: The values of other networks, or a function that is called for them at every measurement, with the
            epoch.
        after: The first epoch at which the training may be stopped: measures are of no use before they settle.

    Human-model similarity (2018), §4.3.
    """

    def __init__(
        self, live: Recorder, population: Iterable[float] | Callable[[int], Iterable[float]], after: int = 25
    ) -> None:
        super().__init__(live)
        self.population = population if callable(population) else list(population)
        self.after = after

    def __call__(self, moment: Moment) -> bool:
        """Whether the training should stop."""
        self.live(moment)
        if self.stopped_at is not None and moment.epoch <= self.stopped_at:
            self.stopped_at = None  # it is a new training
        if not self.live.epochs or self.live.epochs[-1] != moment.epoch or moment.epoch < self.after:
            return False
        population = self.population(moment.epoch) if callable(self.population) else self.population
        if not below_population(self.live.values[-1], population):
            return False
        self.stopped_at = moment.epoch
        return True


class Together:
    """Several callbacks as one: all are called, and the training stops if any of them says so.

    Example:
        >>> loss = LiveLoss(every=1)
        >>> both = Together(loss, lambda moment: moment.epoch >= 2)
        >>> [both(Moment(epoch, epoch, 0.5, 0.0, nn.Identity())) for epoch in (1, 2)], loss.epochs
        ([False, True], [1, 2])
    """

    def __init__(self, *callbacks: Callback | None) -> None:
        self.callbacks = [callback for callback in callbacks if callback is not None]

    def __call__(self, moment: Moment) -> bool:
        """Call all, and return whether any asks to stop."""
        return any([asks_to_stop(callback(moment)) for callback in self.callbacks])  # a list: all are called

    def state_dict(self) -> dict[str, Any]:
        """The state of each that has one."""
        return {"callbacks": [c.state_dict() if isinstance(c, Remembering) else None for c in self.callbacks]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the states of as many others."""
        for callback, remembered in zip(self.callbacks, state["callbacks"], strict=True):
            if isinstance(callback, Remembering) and remembered is not None:
                callback.load_state_dict(remembered)


def _same_moment(row: Mapping[str, Any], moment: Moment) -> bool:
    """Whether a row was recorded at this moment, perhaps called by a callback that shares the recorder."""
    same_loss = row["loss"] == moment.loss or (math.isnan(row["loss"]) and math.isnan(moment.loss))
    return bool(row["epoch"] == moment.epoch and row["step"] == moment.step and same_loss)


class Clock:
    """Seconds of wall-clock time since it was made, without those during which any clock of this process was stopped.

    Networks that are trained side by side each have a clock: none counts what the callbacks of another take.
    """

    _stopped_s: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self.began = time.perf_counter() - Clock._stopped_s

    @property
    def seconds(self) -> float:
        """Seconds that count."""
        return time.perf_counter() - Clock._stopped_s - self.began

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop all clocks inside the block."""
        stopped = time.perf_counter()
        try:
            yield
        finally:
            Clock._stopped_s += time.perf_counter() - stopped

    def call(self, callback: Callback | None, epoch: int, step: int, loss: float, module: nn.Module) -> bool:
        """Call a callback after an epoch while all clocks are stopped, and return whether it stops the training."""
        if callback is None:
            return False
        moment = Moment(epoch, step, loss, self.seconds, module)
        with self.stopped():
            return asks_to_stop(callback(moment))


@contextmanager
def left_as_found(module: nn.Module) -> Iterator[None]:
    """Put a module in eval mode inside the block; afterwards it and all random numbers are as they were before.

    Training flags, which parameters need gradients, the gradients themselves, buffers, the grad mode, and the random
    numbers of Python, NumPy and torch, on the CPU and on the module's GPUs, are put back.
    """
    training = [(part, part.training) for part in module.modules()]
    parameters = [(p, p.requires_grad, p.grad) for p in module.parameters()]
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    devices = {tensor.device for tensor in [*module.parameters(), *module.buffers()] if tensor.is_cuda}
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # measures of others may draw from them
    with torch.random.fork_rng(devices=sorted(devices, key=str)), torch.set_grad_enabled(torch.is_grad_enabled()):
        try:
            for parameter, _, _ in parameters:
                parameter.grad = None  # what is found is kept from being added to
            module.eval()
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            for part, was_training in training:
                part.training = was_training
            for parameter, required, gradient in parameters:
                parameter.requires_grad_(required)
                parameter.grad = gradient
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)  # always: batch norm changes its own without counting a new version
            for device in devices:
                torch.cuda.current_stream(device).synchronize()  # training may go on in another stream
