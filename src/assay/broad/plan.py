"""Plans of a broad evaluation: a YAML file says who is compared, on what, and how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.broad.analysis.analysis import Analysis
from assay.broad.data.dataset import Dataset, Inputs, Modality
from assay.broad.data.hollywood2 import load_hollywood2
from assay.broad.data.opentable import load_opentable
from assay.broad.data.partition import commitment, generator, verify_commitment
from assay.broad.data.reviews import load_reviews, load_skytrax, load_we8there
from assay.broad.data.twin_clips import generated_clips
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.data.videos import load_labelled_videos
from assay.broad.protocol import run_protocol
from assay.broad.qualitative import measure_systems
from assay.broad.run.results import Results
from assay.broad.settings import Protocol
from assay.broad.systems.team import Evaluators, Module, Parts, Team, require_one_each
from assay.broad.tasks import Task, make_tasks, neutral_ids
from assay.core.errors import AssayError
from assay.core.user_code import code_in
from assay.measures.base import Measure
from assay.plans.places import path_in
from assay.plans.plan import read_measures
from assay.plans.problems import Collector
from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert, read_yaml

VIDEO = {"generated": generated_clips, "hollywood2": load_hollywood2, "folder": load_labelled_videos}
TEXT = {
    "generated": generated_reviews, "opentable": load_opentable, "csv": load_reviews, "we8there": load_we8there,
    "skytrax": load_skytrax,
}  # fmt: skip

VOCABULARY = 5000  # number of reviews that preprocessors learn from while they are checked


@dataclass(frozen=True)
class BroadPlan:
    """A plan of a broad evaluation, as a file describes it; data are loaded when they are needed.

    Args:
        folder: Folder of the evaluation.
        secret: Seed of the partitions.
        protocol: Settings of the evaluation.
        teams: The teams whose systems are compared.
        evaluators: The evaluators' own modules, by modality.
        video: The plan's entry for video data; None where there is no video task.
        text: The plan's entry for text data; None where there are no text tasks.
        measures: Measures to apply to the systems' layers, by name.
        written: The plan as written, without the secret.
        private: Files that no system sees: the plan, and the file of the secret.
        beside: Folder of the plan's file, where modules may lie.
    """

    folder: str
    secret: str
    protocol: Protocol
    teams: tuple[Team, ...]
    evaluators: Mapping[Modality, Evaluators]
    video: Node | None
    text: Node | None
    measures: Mapping[str, Measure]
    written: dict[str, Any]
    private: tuple[str, ...] = ()
    beside: Path = Path()

    def load_video(self) -> tuple[Dataset, Dataset] | None:
        """Load the training and the test set of the video task; None where the plan has no video."""
        return None if self.video is None else _data(self.video, VIDEO)

    def load_text(self) -> Dataset | None:
        """Load all reviews; None where the plan has no text."""
        return None if self.text is None else _data(self.text, TEXT)

    @property
    def label_files(self) -> list[str]:
        """Files and folders of the data, whose content or names say what instances show: no system may open them."""
        files = []
        for node in (self.video, self.text):
            if node is not None and "generated" not in node.value:
                kind, settings = next(iter(node.items()))
                key = "folder" if kind in ("hollywood2", "folder") else "path"
                entries = [settings if isinstance(settings.value, str) else settings[key]]
                if isinstance(settings.value, dict) and isinstance(settings.value.get("test"), str):
                    entries.append(settings["test"])
                files += [str(_path(entry)) for entry in entries]
        return files

    def tasks(self) -> list[Task]:
        """Load the data and make the tasks with their partitions."""
        p = self.protocol
        return make_tasks(self.load_video(), self.load_text(), self.secret, p.k, p.p, p.n, p.ratings, p.validation_cap)

    def sample(self, modality: Modality, count: int = 32) -> Inputs:
        """Take a few training instances, to check systems with, as systems see them: under neutral ids."""
        data = self.load_video()[0] if modality == "video" else self.load_text()  # type: ignore[index]
        assert isinstance(data, Dataset)
        some = generator(self.secret, "sample").permutation(len(data))[:count]
        return Inputs(data.take(some).inputs.items, neutral_ids(len(some)))

    def learned_from(self, modality: Modality) -> Inputs | None:
        """Reviews to check preprocessors of text with, enough for a whole vocabulary; None for clips.

        A learner may be made for as many columns as the preprocessor gives for all reviews.
        """
        return self.sample("text", VOCABULARY) if modality == "text" else None

    def documents(self, team: Team) -> dict[str, str]:
        """Where the artifacts of a team are: addresses as they are, files relative to the plan."""
        return {k: v if "://" in v else str(self.beside / v) for k, v in team.documents.items() if v.strip()}

    def execute(self, processes: int = 1, only: tuple[str, ...] = (), ray: bool | str = False) -> Analysis:
        """Do the runs that are missing, analyse the results, apply the plan's measures to the systems' layers."""
        with code_in(self.beside):
            analysis = run_protocol(
                self.load_video(), self.load_text(), self.teams, self.evaluators, self.folder, self.secret,
                self.protocol, processes, only, ray, self.written, self.label_files, self.private,
            )  # fmt: skip
            if self.measures and self.protocol.phase == "end":
                measure_systems(Results(self.folder), self.teams, self.measures)
        return analysis


KEYS = ("folder", "secret", "commitment", "video", "text", "protocol", "evaluators", "teams", "measures", "changes")


def load_broad_plan(path: str | Path, with_data: bool = False) -> BroadPlan:
    """Read and check a plan; paths in it are relative to its file.

    Args:
        path: The plan's file.
        with_data: Whether to load the data too, so that what is wrong with them is named with all other problems.
    """
    with code_in(Path(path).parent):  # a module may lie beside the plan
        return _load(Path(path), with_data)


def _load(path: Path, with_data: bool) -> BroadPlan:
    root = read_yaml(path)
    reading = Reading(root, KEYS, ("secret", "evaluators", "teams"))
    problems, entries = reading.problems, reading.entries
    secret = reading.take("secret", _secret, "")
    if secret:
        reading.take("commitment", lambda node: verify_commitment(secret, convert(node, str, {})), None)
    none: dict[Modality, Evaluators] = {}
    evaluators = reading.take("evaluators", lambda node: _evaluators(node, problems), none)
    teams = tuple(reading.each("teams", _team))
    with problems.watching():
        require_one_each(teams)
    reading.take("changes", _changes, None)
    video, text = entries.get("video"), entries.get("text")
    if entries and video is None and text is None:
        with problems.watching():
            root.fail("lacks both 'video' and 'text': there is nothing to evaluate on")
    for key, data, known in (("video", video, VIDEO), ("text", text, TEXT)):
        if data is not None:
            with problems.watching():
                _kind(data, known)
            with problems.watching():
                if "evaluators" in entries and key not in dict(entries["evaluators"].items()):
                    data.fail(f"the evaluators have no modules for {key}")
    plan = BroadPlan(
        folder=reading.folder("folder", f"runs/{path.stem}"),
        secret=secret,
        protocol=reading.take("protocol", lambda node: build(Protocol, node), Protocol()),
        teams=teams,
        evaluators=evaluators,
        video=video,
        text=text,
        measures={label: measure for label, (measure, _) in read_measures(reading, may_be_empty=True).items()},
        written={} if not entries else {k: v for k, v in root.value.items() if k != "secret"},
        private=(str(path), *_secret_file(entries.get("secret"))),
        beside=path.parent.absolute(),
    )
    if with_data:
        for load in (plan.load_video, plan.load_text):
            with problems.watching():
                load()
    problems.raise_any()
    return plan


def _evaluators(node: Node, problems: Collector) -> dict[Modality, Evaluators]:
    """The evaluators' own modules, by modality."""
    evaluators: dict[Modality, Evaluators] = {}

    def modules(key: str, entry: Node) -> None:
        modality = _modality(key, entry)
        evaluators[modality] = build(Evaluators, entry, {Module: _module})

    Reading(node, problems=problems).every(modules)
    return evaluators


def _secret(node: Node) -> str:
    """The secret seed: given as ``env:NAME`` or ``file:path``, so that the plan need not hold it, or as it is."""
    value: str = convert(node, str, {})
    kind, _, rest = value.partition(":")
    if kind == "env":
        if rest not in os.environ:
            node.fail(f"the environment has no variable {rest!r}")
        value = os.environ[rest]
    elif kind == "file":
        file = path_in(node.file, rest)
        if not file.exists():
            node.fail(f"no such file {file}: write a long random line into it, and publish its commitment")
        value = file.read_text().strip()
    try:
        commitment(value)
    except AssayError as error:
        node.fail(str(error))
    return value


def _changes(node: Node) -> list[str] | None:
    """What changed since the last edition of the report: a sentence, or a list of them; the manifest keeps them."""
    one = isinstance(node.value, str)
    changes: list[str] = [convert(node, str, {})] if one else convert(node, list[str], {})
    return changes


def _secret_file(node: Node | None) -> list[str]:
    """The file that holds the secret, if one does."""
    value = None if node is None else node.value
    if node is None or not isinstance(value, str) or not value.startswith("file:"):
        return []
    return [str(path_in(node.file, value.partition(":")[2]))]


def _modality(key: str, node: Node) -> Modality:
    if key == "video":
        return "video"
    if key == "text":
        return "text"
    node.fail(f"{key!r} is not 'video' or 'text'")


def _team(node: Node) -> Team:
    parts: dict[Modality, Parts] = {}
    reading = Reading(node)
    for key in ("video", "text"):
        if made := reading.take(key, lambda entry: build(Parts, entry, {Module: _module}), None):
            parts[_modality(key, node)] = made
    if reading.entries and not {"video", "text"} & reading.entries.keys():
        with reading.problems.watching():
            node.fail("lacks both 'video' and 'text': a team has a system for at least one of them")
    rest = {key: entry.value for key, entry in reading.entries.items() if key not in ("video", "text")}
    team = None
    if reading.entries:
        with reading.problems.watching():
            team = build(Team, replace(node, value=rest), parts=parts)
    reading.problems.raise_any()
    assert team is not None  # else there was a problem
    return team


def _module(node: Node) -> Module:
    """Read a module: a registered name, or a mapping of ``module``, ``parameters`` (or their file) and ``frozen``."""
    if isinstance(node.value, str):
        module = Module(node.value)
    else:
        reading = Reading(node, ("module", "parameters", "frozen"), ("module",))
        name = reading.take("module", lambda entry: convert(entry, str, {}), "")
        none: dict[str, Any] = {}
        parameters = reading.take("parameters", _parameters, none)
        frozen = reading.take("frozen", lambda entry: convert(entry, str, {}), None)
        reading.problems.raise_any()
        module = build(Module, replace(node, value={}), name=name, parameters=parameters, frozen=frozen)
    try:
        module.require_found()
    except AssayError as error:
        node.fail(str(error))
    return module


def _parameters(node: Node) -> dict[str, Any]:
    """The parameters of a module: a mapping, or the path of a YAML file that holds one."""
    given = read_yaml(_path(node)) if isinstance(node.value, str) else node
    return {key: entry.value for key, entry in given.items()}


def _path(node: Node) -> Path:
    path: Path = convert(node, Path, {})
    return path


def _kind(node: Node, known: Mapping[str, Any]) -> tuple[str, Node]:
    """The kind of data that a plan names, one of those known, and its settings."""
    entries = dict(node.items())
    if len(entries) != 1 or next(iter(entries)) not in known:
        node.fail(f"is one of {', '.join(known)} with its settings")
    return next(iter(entries.items()))


def _data(node: Node, known: Mapping[str, Any]) -> Any:
    """Load data as a plan describes them: one of the known kinds, with its settings."""
    kind, settings = _kind(node, known)
    if kind != "generated" and isinstance(settings.value, str):
        try:
            return known[kind](_path(settings))
        except AssayError as error:
            raise AssayError(f"{settings.where}: {error}") from error
    return build(known[kind], settings)
