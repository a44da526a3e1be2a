"""Plans: a YAML file that says which subjects are asked which questions, and where the answers go."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.checkpoints import require_checkpoint
from assay.core.device import device_named
from assay.core.errors import AssayError
from assay.core.labels import numbered
from assay.core.user_code import code_in, import_named
from assay.measures.base import Measure
from assay.plans.places import path_in
from assay.plans.problems import Collector
from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert, read_yaml
from assay.plans.stimuli import STIMULI
from assay.runs.evaluate import evaluate
from assay.runs.examples import Examples
from assay.runs.executor import Resources
from assay.runs.run import Run
from assay.stimuli import Labelled, transform_named
from assay.subject.source import SubjectSource, dtype_named, read_history
from assay.subject.subject import Subject


@dataclass(frozen=True)
class Plan:
    """The contents of a plan: which networks are measured, how, and where the results go.

    Args:
        subjects: Sources of the networks.
        measures: Measures of each network, by label.
        run: Folder or URL of the run.
        seed: Seed of the random numbers at the start of every cell.
        resources: Processors, GPUs and retries of a cell on a Ray cluster.
        text: The plan as it was written.
        places: File, line and key of each subject, for errors.
        measure_places: File, line and key of each measure, by label.
        folder: Folder of the plan's file, where modules that the plan names are found first.
        data: The labelled data for every measure that names none of its own, if there are any.
    """

    subjects: tuple[SubjectSource, ...]
    measures: dict[str, Measure]
    run: str
    seed: int = 0
    resources: Resources = field(default_factory=Resources)
    text: dict[str, Any] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    measure_places: dict[str, str] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)
    data: Labelled | None = None

    @property
    def examples(self) -> Examples:
        """An input for the networks that have none, where a measure needs one: of the data or of other stimuli."""
        return Examples(self.measures.values(), self.data)

    def load_subjects(self, problems: Collector | None = None) -> list[Subject]:
        """Make the networks of the plan and load their weights.

        Args:
            problems: Collects what is wrong with the networks that cannot be made; without it, all of that is raised.
        """
        collected = problems or Collector()
        subjects = []
        with code_in(self.folder):
            for i, source in enumerate(self.subjects):
                with collected.watching(self.places[i] if i < len(self.places) else f"subjects[{i}]"):
                    subjects.append(source.load())
        if problems is None:
            collected.raise_any()
        return subjects

    def execute(self, ray: bool | str = False, processes: int = 0, subjects: list[Subject] | None = None) -> Run:
        """Measure the cells of the plan that are not yet done, and return the run.

        Args:
            ray: True for a Ray cluster found or started here, or the address of one.
            processes: Cells at a time, each in a process of this machine; 0 for this process itself.
            subjects: The networks of the plan, where they are loaded already.
        """
        with code_in(self.folder):
            return evaluate(
                self.load_subjects() if subjects is None else subjects,
                self.measures,
                self.run,
                seed=self.seed,
                ray=ray,
                processes=processes,
                resources=self.resources,
                plan=self.text,
                example=self.data,
            )


KEYS = {
    "subjects": "The networks, a list: a source, or a mapping with the keys below.",
    "measures": "What is measured of each network, a list: a name, or a mapping of `measure` and its settings.",
    "data": "Labelled data for every measure that takes data and names none of its own.",
    "run": "Folder or URL of the run; by default `runs/` and the name of the plan.",
    "seed": "Seed of the random numbers at the start of every cell; 0 by default.",
    "resources": "What one cell needs on a Ray cluster.",
}
"""The keys of a plan, each with its meaning."""


def load_plan(path: str | Path) -> Plan:
    """Read and check a plan; paths in it are relative to its file, and modules beside it are found."""
    problems = Collector()
    plan = read_plan(path, problems)
    problems.raise_any()
    return plan


def read_plan(path: str | Path, problems: Collector, root: Node | None = None) -> Plan:
    """Read a plan as far as it can be understood; all that is wrong with it goes to ``problems``.

    Args:
        path: The plan's file.
        problems: Collects what is wrong.
        root: What the file holds, where it has been read.
    """
    path = Path(path)
    root = root or read_yaml(path)
    reading = Reading(root, KEYS, ("subjects", "measures"), problems)
    sources: list[tuple[SubjectSource, str]] = []
    names: set[str] = set()

    def subject(node: Node) -> None:
        faults = Collector()
        source, sound = _subject(node, faults)
        if sound:
            sources.append((source, node.where))  # whatever it is called: it may have a problem of its own
        else:
            with faults.watching(node.where):
                source.load()  # for what else is wrong with it; how measures fit it is not known
        if source.label in names:
            with faults.watching():
                node.fail(f"a second subject is called {source.label!r}: give it a name of its own")
        names.add(source.label)
        faults.raise_any()

    with code_in(path.parent, changed_anew=True):
        reading.each("subjects", subject)
        data = reading.take("data", lambda node: convert(node, Labelled, STIMULI), STAND_IN)
        measures = read_measures(reading, data if "data" in reading.entries else None)
    return Plan(
        subjects=tuple(source for source, _ in sources),
        measures={label: measure for label, (measure, _) in measures.items()},
        run=reading.folder("run", f"runs/{path.stem}"),
        seed=reading.take("seed", _seed, 0),
        resources=reading.take("resources", lambda node: build(Resources, node), Resources()),
        text=root.value,
        places=tuple(where for _, where in sources),
        measure_places={label: where for label, (_, where) in measures.items()},
        folder=path.parent,
        data=data if "data" in reading.entries and data is not STAND_IN else None,
    )


STAND_IN = Labelled(np.zeros((2, 3, 32, 32), np.float32), np.arange(2), "data that could not be loaded")
"""Data in the place of those that cannot be loaded, so that the measures' own settings are read."""


def read_measures(
    reading: Reading, data: Labelled | None = None, *, may_be_empty: bool = False
) -> dict[str, tuple[Measure, str]]:
    """The measures of a plan by label, each with its place; what is wrong with one is kept.

    Args:
        reading: The plan, whose key ``measures`` is a list.
        data: Data for those that take data and name none of their own; a measure that gets `STAND_IN` is left out.
        may_be_empty: Whether a plan may ask nothing.
    """
    labels: set[str] = set()
    measures: dict[str, tuple[Measure, str]] = {}

    def measure(node: Node) -> None:
        label, made = load_measure(node, data)
        if getattr(made, "data", None) is not STAND_IN:  # a second one of a name may have a problem of its own
            measures[numbered(label, measures)] = made, node.where
        if label in labels:
            node.fail(f"a second measure is called {label!r}: give it a name of its own")
        labels.add(label)

    reading.each("measures", measure, may_be_empty=may_be_empty)
    return measures


def _seed(node: Node) -> int:
    seed: int = convert(node, int, {})
    if not 0 <= seed < 2**63:
        node.fail(f"is {seed}, expected a whole number from 0 to 2⁶³ − 1")
    return seed


def _subject(node: Node, faults: Collector) -> tuple[SubjectSource, bool]:
    """A network as a plan writes it, without those of its settings that cannot be used; and whether there are none.

    Args:
        node: The network in the plan.
        faults: Collects what is wrong with its settings.
    """
    source = SubjectSource(node.value) if isinstance(node.value, str) else build(SubjectSource, node)
    if source.source.endswith(".onnx"):
        source = replace(source, source=str(path_in(node.file, source.source)), name=source.name)
    before = len(faults.sentences)
    for key, check in _USABLE.items():
        value = getattr(source, key)
        known = len(faults.sentences)
        if value is not None:
            with faults.watching(node[key].where):
                check(value)
        if len(faults.sentences) > known:
            left_out: dict[str, Any] = {key: None}
            source = replace(source, **left_out)
    return source, len(faults.sentences) == before


_USABLE: dict[str, Callable[[Any], object]] = {
    "preprocess": transform_named,
    "weights": require_checkpoint,
    "device": device_named,
    "dtype": dtype_named,
    "initial_weights": require_checkpoint,
    "history": read_history,
}
"""Settings of a network that can be looked at before it is made, each with what refuses one that cannot be used."""


def load_measure(node: Node, data: Labelled | None = None) -> tuple[str, Measure]:
    """A measure as a plan writes it, with its label; it takes ``data`` where the plan gives no data of its own."""
    if isinstance(node.value, str):
        node = replace(node, value={"measure": node.value})
    entries = dict(node.items())
    if "measure" not in entries:
        node.fail("lacks the key 'measure'")
    name = convert(entries["measure"], str, {})
    with code_in(node.file.parent):
        try:
            kind = import_named(name, f"measure {name!r}") if ":" in name else Measure.named(name)
        except AssayError as error:
            raise AssayError(f"{entries['measure'].where}: {error}") from error
        if not (isinstance(kind, type) and issubclass(kind, Measure)):
            entries["measure"].fail(f"{name!r} is not a measure, that is a subclass of assay.Measure")
        label = convert(entries["name"], str, {}) if "name" in entries else kind.name or kind.__name__
        settings = {k: v for k, v in node.value.items() if k not in ("measure", "name")}
        takes_data = "data" in inspect.signature(kind).parameters and "data" not in settings
        given = {"data": data} if data is not None and takes_data else {}
        measure = build(kind, replace(node, value=settings), STIMULI, **given)
    return label, measure
