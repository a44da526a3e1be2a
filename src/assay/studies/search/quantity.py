"""Quantities: one number of a trained network, by which a search judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.core.errors import AssayError, nearest, shown
from assay.core.user_code import import_named
from assay.measures.base import Measure
from assay.plans.plan import STAND_IN, load_measure
from assay.plans.reading import Reading
from assay.plans.settings import Node, convert
from assay.stimuli.labelled import Labelled
from assay.subject.subject import Subject

SOURCES = ("measure", "function", "number")
KEYS = (*SOURCES, "take", "layer", "name", "direction")


class WrongPlan(AssayError):
    """A mistake of the plan that shows only once a network is trained; every other trial would meet it too."""


@dataclass(frozen=True)
class Quantity:
    """One number of a trained network: of a measure, of a function of the user's, or told by the training.

    Args:
        name: What tables call it.
        direction: ``maximize`` or ``minimize``: which networks are better.
        measure: The measure whose number it is.
        take: Which of the measure's numbers it is, where there are several (see `Measure.predictors`).
        layer: The layer whose rows of the measure's table are averaged, instead of one of its numbers.
        function: A function from a subject to the number.
        number: The name under which the training told it.
    """

    name: str
    direction: str
    measure: Measure | None = None
    take: str = ""
    layer: str = ""
    function: Callable[[Subject], float] | None = None
    number: str = ""

    def of(self, subject: Subject, numbers: Mapping[str, float]) -> float:
        """The number of one network.

        Args:
            subject: The network.
            numbers: What the training told, by name.
        """
        if self.measure is not None:
            return self._measured(self.measure, subject)
        if self.function is not None:
            return _as_number(self.function(subject), f"{self.name}: the function returned")
        if self.number not in numbers:
            raise WrongPlan(f"{self.name}: the training tells no number {self.number!r}{nearest(self.number, numbers)}")
        return _as_number(numbers[self.number], f"{self.name}: the training told")

    @property
    def sign(self) -> int:
        """1 where more is better, −1 where less is."""
        return 1 if self.direction == "maximize" else -1

    def _measured(self, measure: Measure, subject: Subject) -> float:
        table = measure(subject)
        if self.layer:
            if "layer" not in table or measure.value not in table:
                raise WrongPlan(
                    f"{self.name}: the table of the measure {measure.name!r} has no layers: leave out layer"
                )
            rows = table[table["layer"] == self.layer]
            if rows.empty:
                known = nearest(self.layer, dict.fromkeys(map(str, table["layer"])))
                raise WrongPlan(f"{self.name}: the measure {measure.name!r} has no layer {self.layer!r}{known}")
            return float(rows[measure.value].mean())
        numbers = {str(key): value for key, value in measure.predictors(table).items()}
        if not self.take and len(numbers) == 1:
            return float(next(iter(numbers.values())))
        if self.take not in numbers:
            asked = f"no number {self.take!r}" if self.take else f"{len(numbers)} numbers: say which with take"
            raise WrongPlan(f"{self.name}: the measure {measure.name!r} gives {asked}{nearest(self.take, numbers)}")
        return float(numbers[self.take])


def _as_number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise WrongPlan(f"{what} {shown(value)}, which is no number") from None


def read_quantity(node: Node, data: Labelled | None, known: tuple[str, ...] = KEYS) -> Quantity:
    """A quantity as a plan writes it: exactly one of ``measure``, ``function`` and ``number``, and its direction.

    Args:
        node: The mapping.
        data: Data for a measure that takes data and names none of its own.
        known: The keys that the mapping may have.
    """
    reading = Reading(node, None, ("direction",))
    for key, entry in reading.entries.items():
        with reading.problems.watching():
            if key not in known:
                entry.fail(f"unknown key{nearest(key, known)}{_hint(key, reading.entries)}")
    sources = [key for key in SOURCES if key in reading.entries]
    if reading.entries and len(sources) != 1:
        with reading.problems.watching():
            said = f"has {' and '.join(sources)}" if sources else "has none"
            node.fail(f"{said} of {', '.join(SOURCES)}: give exactly one")
    texts = {key: reading.take(key, text_of, "") for key in ("take", "layer", "name", "number")}
    direction = reading.take("direction", _direction, "maximize")
    nothing: tuple[str, Measure | None] = ("", None)
    label, measure = reading.take("measure", lambda entry: (*load_measure(entry, data),), nothing)
    function = reading.take("function", function_of, None)
    if (texts["take"] or texts["layer"]) and "measure" not in reading.entries:
        with reading.problems.watching():
            node.fail("has take or layer, which choose from a measure, but no measure")
    reading.problems.raise_any()
    if measure is not None and getattr(measure, "data", None) is STAND_IN:
        measure = None  # what is wrong with the data is said where they are named
    given = str(reading.entries["function"].value).rpartition(":")[2] if "function" in reading.entries else ""
    name = texts["name"] or texts["number"] or texts["take"] or label or given
    return Quantity(name, direction, measure, texts["take"], texts["layer"], function, texts["number"])


def _hint(key: str, entries: Mapping[str, Node]) -> str:
    """Where a key belongs that may be a setting of the measure."""
    name = entries["measure"].value if "measure" in entries else None
    inside = f"; a setting of the measure stands in it, measure: {{measure: {name}, {key}: …}}"
    return inside if isinstance(name, str) else ""


def text_of(node: Node) -> str:
    """An entry that must be text."""
    text: str = convert(node, str, {})
    return text


def _direction(node: Node) -> str:
    direction = text_of(node)
    if direction not in ("maximize", "minimize"):
        node.fail(f"is {direction!r}, expected 'maximize' or 'minimize'")
    return direction


def function_of(node: Node) -> Callable[..., Any]:
    """An entry that names a function, ``module:function``."""
    name = text_of(node)
    try:
        function = import_named(name, f"{node.path[-1]} {name!r}")
    except AssayError as error:
        raise AssayError(f"{node.where}: {error}") from error
    if not callable(function):
        node.fail(f"{name!r} is no function")
    called: Callable[..., Any] = function
    return called
