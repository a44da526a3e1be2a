"""The space of a search: hyper-parameters, each a range of numbers or a choice, and how a plan writes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.core.errors import AssayError, optional
from assay.core.limits import require_count
from assay.plans.reading import Reading
from assay.plans.settings import Node, convert

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Range:
    """A hyper-parameter that is a number between two others, both included.

    Args:
        low: The smallest value.
        high: The largest value.
        whole: Whether only whole numbers count.
        log: Whether equal factors are equally likely, instead of equal differences.
        step: Distance between two values of whole numbers.
    """

    low: float
    high: float
    whole: bool = False
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise AssayError(f"goes from {self.low:g} to {self.high:g}: give the smaller number first")
        if self.log and self.low <= 0:
            raise AssayError(f"begins at {self.low:g} and is logarithmic: begin above 0, or leave out log")
        if self.step < 1 or (self.step > 1 and (self.log or not self.whole)):
            raise AssayError(f"has step={self.step}: only whole numbers that are not logarithmic have one, at least 1")

    @property
    def values(self) -> tuple[Value, ...]:
        """All values, in order; an error where they cannot be counted."""
        if not self.whole:
            raise AssayError("is a range of floating-point numbers, which a grid cannot go through: give a list")
        values = range(int(self.low), int(self.high) + 1, self.step)
        require_count(f"has {len(values)} values, which", len(values))
        return tuple(values)

    def distribution(self) -> Any:
        """The same in Optuna's words."""
        distributions = optional("optuna", "search", "a search").distributions
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.log, step=self.step)
        return distributions.FloatDistribution(self.low, self.high, log=self.log)

    def suggest(self, trial: Any, name: str) -> Value:
        """The value that one of Optuna's trials has, or gets."""
        value: Value
        if self.whole:
            value = trial.suggest_int(name, int(self.low), int(self.high), step=self.step, log=self.log)
        else:
            value = trial.suggest_float(name, self.low, self.high, log=self.log)
        return value


@dataclass(frozen=True)
class Choice:
    """A hyper-parameter that is one of several values.

    Args:
        values: The values: numbers, words, true, false or none.
    """

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        wrong = [value for value in self.values if not isinstance(value, bool | int | float | str | None)]
        if wrong:
            raise AssayError(f"has {wrong[0]!r}, which is no number, word, true, false or null")
        if not self.values:
            raise AssayError("is an empty list")
        for first, second in itertools.combinations(self.values, 2):
            if first == second:  # as true is 1, and 1 is 1.0: the database could not tell which was chosen
                raise AssayError(f"has {first!r} and {second!r}, which are equal: give every value once")

    def distribution(self) -> Any:
        """The same in Optuna's words."""
        return optional("optuna", "search", "a search").distributions.CategoricalDistribution(self.values)

    def suggest(self, trial: Any, name: str) -> Value:
        """The value that one of Optuna's trials has, or gets."""
        value: Value = trial.suggest_categorical(name, self.values)
        return value


Space = Mapping[str, Range | Choice]


def grid(space: Space) -> list[dict[str, Value]]:
    """Every combination of the values of a space; the last hyper-parameter changes fastest.

    Example:
        >>> grid({"depth": Range(1, 2, whole=True), "norm": Choice(("batch", None))})[1]
        {'depth': 1, 'norm': None}
    """
    combinations = itertools.product(*(hyperparameter.values for hyperparameter in space.values()))
    return [dict(zip(space, values, strict=True)) for values in combinations]


def read_space(node: Node) -> dict[str, Range | Choice]:
    """A space as a plan writes it; all hyper-parameters that something is wrong with are named at once.

    Each is ``{float: [low, high], log: true}``, ``{int: [low, high], step: 2}``, or a list to choose from.
    """
    reading = Reading(node)
    space: dict[str, Range | Choice] = {}

    def hyperparameter(name: str, entry: Node) -> None:
        space[name] = _read(entry)

    reading.every(hyperparameter)
    if not space and not reading.problems.sentences:
        node.fail("is empty: name the hyper-parameters to search")
    reading.problems.raise_any()
    return space


_FORMS = "a list to choose from, {float: [low, high]} or {int: [low, high]}, with log: true where factors count"


def _read(node: Node) -> Range | Choice:
    if isinstance(node.value, list):
        return _made(node, Choice, values=tuple(node.value))
    kinds = [kind for kind in ("float", "int", "choice") if isinstance(node.value, dict) and kind in node.value]
    if len(kinds) != 1:
        node.fail(f"is {node.value!r}, expected {_FORMS}")
    kind = kinds[0]
    known = {"float": ("float", "log"), "int": ("int", "log", "step"), "choice": ("choice",)}[kind]
    reading = Reading(node, known)
    reading.problems.raise_any()
    if kind == "choice":
        return _made(node, Choice, values=tuple(entry.value for entry in node["choice"].elements()))
    low, high = convert(node[kind], tuple[float, float] if kind == "float" else tuple[int, int], {})
    log = reading.take("log", lambda entry: convert(entry, bool, {}), False)
    step = reading.take("step", lambda entry: convert(entry, int, {}), 1)
    reading.problems.raise_any()
    return _made(node, Range, low=low, high=high, whole=kind == "int", log=log, step=step)


def _made(node: Node, kind: type[Range] | type[Choice], **settings: Any) -> Range | Choice:
    try:
        return kind(**settings)
    except AssayError as error:
        node.fail(str(error))
