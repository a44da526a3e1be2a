"""Plans: a YAML file that says which subjects are asked which questions, and where the answers go."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError, nearest
from assay.measures.base import Measure
from assay.plans.settings import Node, build, convert, read_yaml
from assay.plans.stimuli import STIMULI
from assay.runs.evaluate import evaluate
from assay.runs.executor import Resources
from assay.runs.run import Run
from assay.stimuli import Labelled
from assay.subject.source import SubjectSource, import_named
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
    """

    subjects: tuple[SubjectSource, ...]
    measures: dict[str, Measure]
    run: str
    seed: int = 0
    resources: Resources = field(default_factory=Resources)
    text: dict[str, Any] = field(default_factory=dict)
    places: tuple[str, ...] = ()

    def load_subjects(self) -> list[Subject]:
        """Make the networks of the plan and load their weights."""
        subjects = []
        for i, source in enumerate(self.subjects):
            try:
                subjects.append(source.load())
            except AssayError as error:
                where = self.places[i] if i < len(self.places) else f"subjects[{i}]"
                raise AssayError(f"{where}: {error}") from error
        return subjects

    def execute(self, ray: bool | str = False, processes: int = 0) -> Run:
        """Measure the cells of the plan that are not yet done, and return the run."""
        return evaluate(
            self.load_subjects(),
            self.measures,
            self.run,
            seed=self.seed,
            ray=ray,
            processes=processes,
            resources=self.resources,
            plan=self.text,
        )


def load_plan(path: str | Path) -> Plan:
    """Read and check a plan; paths in it are relative to its file."""
    root = read_yaml(Path(path))
    known = ("subjects", "measures", "run", "seed", "resources")
    for key, node in root.items():
        if key not in known:
            node.fail(f"unknown key{nearest(key, known)}")
    for key in ("subjects", "measures"):
        if key not in root.value:
            root.fail(f"lacks the key {key!r}")
        if not root[key].elements():
            root[key].fail("is an empty list")
    subjects = tuple(_subject(node) for node in root["subjects"].elements())
    labels = [s.label for s in subjects]
    for i, label in enumerate(labels):
        if label in labels[:i]:
            root["subjects"][i].fail(f"a second subject is called {label!r}: give it a name of its own")
    measures: dict[str, Measure] = {}
    for node in root["measures"].elements():
        label, measure = load_measure(node)
        if label in measures:
            node.fail(f"a second measure is called {label!r}: give it a name of its own")
        measures[label] = measure
    run = convert(root["run"], str, {}) if "run" in root.value else f"runs/{Path(path).stem}"
    if "://" not in run and not Path(run).is_absolute():
        run = str(Path(path).parent / run)
    seed = convert(root["seed"], int, {}) if "seed" in root.value else 0
    if not 0 <= seed < 2**63:
        root["seed"].fail(f"is {seed}, expected a whole number from 0 to 2⁶³ − 1")
    resources = build(Resources, root["resources"]) if "resources" in root.value else Resources()
    places = tuple(node.where for node in root["subjects"].elements())
    return Plan(subjects, measures, run, seed, resources, root.value, places)


def _subject(node: Node) -> SubjectSource:
    source = SubjectSource(node.value) if isinstance(node.value, str) else build(SubjectSource, node)
    if source.source.endswith(".onnx") and not Path(source.source).is_absolute():
        source = replace(source, source=str(node.file.parent / source.source), name=source.name)
    return source


def load_measure(node: Node, data: Labelled | None = None) -> tuple[str, Measure]:
    """A measure as a plan writes it, with its label; it takes ``data`` where the plan gives no data of its own."""
    entries = dict(node.items())
    if "measure" not in entries:
        node.fail("lacks the key 'measure'")
    name = convert(entries["measure"], str, {})
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
