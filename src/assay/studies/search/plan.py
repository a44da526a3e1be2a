"""Search plans: a YAML file that says what to train, over which hyper-parameters, and which networks are best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.limits import require_count
from assay.core.user_code import code_in
from assay.plans.plan import STAND_IN
from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert, read_yaml
from assay.plans.stimuli import STIMULI
from assay.runs.executor import Resources
from assay.stimuli.labelled import Labelled
from assay.stimuli.transforms import transform_named
from assay.studies.corpus.plan import corpus_plan
from assay.studies.search.pruner import Pruner, read_pruner
from assay.studies.search.quantity import Quantity, function_of, read_quantity, text_of
from assay.studies.search.space import Choice, Range, Value, grid, read_space
from assay.studies.search.training import GIVEN, ClassifierTraining, FunctionTraining, Training

SAMPLERS = ("random", "tpe", "grid")
KEYS = {
    "train": "What trains a network, `module:function`, called with hyper-parameters, `seed` and `callback`.",
    "network": "A classifier of assay's instead: `vgg`, `nin`, `conv` or `resnet`; needs `data`.",
    "data": "Labelled data for measures; with `network`, what is trained on: `path`, `train`, `test`.",
    "preprocess": "What is done to inputs before a bare module that `train` returns.",
    "space": "The hyper-parameters to search, by name: a list, `{float: [low, high]}` or `{int: [low, high]}`.",
    "fixed": "Hyper-parameters that have one value in all trials.",
    "sampler": "How hyper-parameters are chosen: `random`, `tpe` or `grid`; random by default.",
    "trials": "Number of trials; for a grid all its combinations by default.",
    "seed": "Seed from which that of every trial is made; 0 by default.",
    "objectives": "What is optimised, a list: one of `measure`, `function`, `number`, and its `direction`.",
    "pruning": "A quantity measured during training, and the rules by which it ends trials.",
    "storage": "URL of a PostgreSQL database; by default SQLite in the folder of the run.",
    "name": "The name of the search in its database; by default that of the plan.",
    "run": "Folder of the run; by default `runs/` and the name of the plan.",
    "device": "With `network`, the device to train on.",
    "resources": "What one trial needs on a Ray cluster.",
    "keep": "Whether the weights of finished trials are kept; true by default.",
}
"""The keys of a search plan, each with its meaning."""
COLUMNS = ("trial", "status", "seed", "epochs_done", "train_s", "seconds", "ended_by", "error")
"""The columns of the table of trials besides hyper-parameters and objectives."""
_MAY_CHANGE = ("trials", "storage", "name", "run", "device", "resources", "keep")


@dataclass(frozen=True)
class SearchPlan:
    """What a search trains, over which hyper-parameters, and by what it judges the networks.

    Args:
        training: What trains a network.
        space: The hyper-parameters, by name.
        fixed: Hyper-parameters that have one value in all trials.
        sampler: ``random``, ``tpe`` or ``grid``.
        trials: Number of trials.
        objectives: What is optimised.
        pruner: What ends trials early; None for nothing.
        run: Folder of the run.
        name: Name of the search in its database.
        storage: URL of a PostgreSQL database; empty for SQLite in the run's folder.
        seed: Seed from which that of every trial is made.
        resources: What one trial needs on a Ray cluster.
        keep: Whether the weights of finished trials are kept.
        folder: Folder of the plan's file, where modules that it names are found first.
        text: The plan as written.
    """

    training: Training
    space: Mapping[str, Range | Choice]
    fixed: Mapping[str, Any]
    sampler: str
    trials: int
    objectives: tuple[Quantity, ...]
    pruner: Pruner | None
    run: str
    name: str
    storage: str = ""
    seed: int = 0
    resources: Resources = field(default_factory=Resources)
    keep: bool = True
    folder: Path = field(default_factory=Path)
    text: Mapping[str, Any] = field(default_factory=dict)

    @property
    def made_of(self) -> str:
        """Hash of all that decides about the trials, but for their number: equal for plans that can be continued."""
        return fingerprint({key: value for key, value in self.text.items() if key not in _MAY_CHANGE})

    def seed_of(self, place: int) -> int:
        """The seed of the trial at a place among all trials: always the same, whoever runs it and how often."""
        return int(fingerprint(f"trial {place} of seed {self.seed}")[:8], 16) % 2**31

    @cached_property
    def combinations(self) -> list[dict[str, Value]]:
        """The hyper-parameters that a grid has at each place."""
        return grid(self.space)


def load_search_plan(path: str | Path) -> SearchPlan:
    """Read and check a search plan; all problems are raised at once. Paths in it are relative to its file."""
    path = Path(path)
    root = read_yaml(path)
    with code_in(path.parent, changed_anew=True):
        return _read(root)


def _read(root: Node) -> SearchPlan:
    reading = Reading(root, KEYS, ("space", "objectives"))
    problems = reading.problems
    space: dict[str, Range | Choice] = reading.take("space", read_space, {})
    fixed: dict[str, Any] = reading.take("fixed", lambda node: {key: entry.value for key, entry in node.items()}, {})
    sampler = reading.take("sampler", _sampler, "random")
    training, data = _training(reading, space, fixed)
    objectives = tuple(reading.each("objectives", lambda node: read_quantity(node, data)))
    pruner = reading.take("pruning", lambda node: read_pruner(node, data), None)
    storage = reading.take("storage", _storage, "")
    seed = reading.take("seed", _seed, 0)
    name = reading.take("name", text_of, root.file.stem)
    keep = reading.take("keep", lambda node: bool(convert(node, bool, {})), True)
    resources = reading.take("resources", lambda node: build(Resources, node), Resources())
    run = reading.folder("run", f"runs/{root.file.stem}")
    with problems.watching():
        _distinct(root, objectives, [*space], [*fixed])
    if run and "://" in run and not storage:
        with problems.watching():
            root.fail(f"names the run {run}, where no SQLite database can lie: name a local folder, or a storage")
    trials = 0
    with problems.watching():
        trials = _trials(reading, sampler, space)
    problems.raise_any()
    assert training is not None  # else there was a problem
    return SearchPlan(
        training, space, fixed, sampler, trials, objectives, pruner, run, name, storage, seed, resources, keep,
        root.file.parent, root.value,
    )  # fmt: skip


def _training(
    reading: Reading, space: Mapping[str, Range | Choice], fixed: Mapping[str, Any]
) -> tuple[Training | None, Labelled | None]:
    """What is trained, and the data that measures get which name none of their own."""
    root, entries, problems = reading.node, reading.entries, reading.problems
    if entries and len({"train", "network"} & entries.keys()) != 1:
        with problems.watching():
            root.fail("must have one of the keys 'train' and 'network'")
        return None, STAND_IN
    if "network" in entries:
        with problems.watching():
            classifier = _classifier(root, entries, space, fixed)
            return classifier, classifier.data[0]
        return None, STAND_IN
    data = reading.take("data", lambda node: convert(node, Labelled, STIMULI), STAND_IN)
    preprocess = reading.take("preprocess", _preprocess, None)
    training = None
    if "train" in entries:
        with problems.watching():
            example = data.shape if "data" in entries else None
            training = FunctionTraining(function_of(entries["train"]), entries["train"].value, preprocess, example)
            for sentence in training.check([*space, *fixed], "pruning" in entries):
                with problems.watching(entries["train"].where):
                    raise AssayError(sentence)
    return training, data if "data" in entries else None


def _classifier(
    root: Node, entries: Mapping[str, Node], space: Mapping[str, Range | Choice], fixed: Mapping[str, Any]
) -> ClassifierTraining:
    """One of assay's classifiers: a corpus plan checks the names and the fixed settings."""
    ends = {name: list(_ends(hyperparameter)) for name, hyperparameter in space.items()}
    text = {key: entries[key].value for key in ("network", "data", "device") if key in entries}
    lines = {path: line for path, line in root.lines.items() if path[:1] not in (("space",), ("fixed",))}
    lines |= {("grid", *path[1:]): line for path, line in root.lines.items() if path[:1] in (("space",), ("fixed",))}
    node = Node({**text, "grid": {**ends, **fixed}}, root.file, (), lines)
    return ClassifierTraining(corpus_plan(node))


def _ends(hyperparameter: Range | Choice) -> tuple[Value, ...]:
    if isinstance(hyperparameter, Choice):
        return hyperparameter.values
    ends = {int(end) if hyperparameter.whole else end for end in (hyperparameter.low, hyperparameter.high)}
    return tuple(sorted(ends))


def _trials(reading: Reading, sampler: str, space: Mapping[str, Range | Choice]) -> int:
    whole = None
    if sampler == "grid":
        for name, hyperparameter in space.items():
            try:
                count = len(hyperparameter.values)
            except AssayError as error:
                reading.entries["space"][name].fail(str(error))
            whole = (whole or 1) * count
        require_count(f"{reading.node.where}: the grid has {whole} combinations, which", whole or 0)
    if "trials" not in reading.entries:
        if whole is None:
            reading.node.fail("lacks the key 'trials'")
        return whole
    trials: int = convert(reading.entries["trials"], int, {})
    if trials < 1:
        reading.entries["trials"].fail(f"is {trials}, expected at least 1")
    require_count(f"{reading.entries['trials'].where}: {trials}", trials)
    return min(trials, whole or trials)


def _distinct(root: Node, objectives: tuple[Quantity, ...], varied: list[str], fixed: list[str]) -> None:
    """Refuse two columns of one name in the table of trials, and two values of one argument."""
    labels = [objective.name for objective in objectives]
    for label in labels:
        if labels.count(label) > 1 or label in (*varied, *COLUMNS):
            root["objectives"].fail(f"has {label!r}, as another column of the table is called: give it another name")
    for name in [*varied, *fixed]:
        where = root["space"][name] if name in varied else root["fixed"][name]
        if name in GIVEN or name in (COLUMNS if name in varied else ()):
            where.fail("is a name that the search uses itself: call the hyper-parameter otherwise")
        if name in varied and name in fixed:
            where.fail("is in space and in fixed: give it once")


def _sampler(node: Node) -> str:
    sampler = text_of(node)
    if sampler not in SAMPLERS:
        node.fail(f"is {sampler!r}, expected one of {', '.join(SAMPLERS)}")
    return sampler


def _storage(node: Node) -> str:
    url = text_of(node)
    if not url.startswith(("postgresql://", "postgresql+psycopg://")):
        node.fail("is no URL of a PostgreSQL database, such as postgresql://user@host:5432/searches")
    return url


def _seed(node: Node) -> int:
    seed: int = convert(node, int, {})
    if seed < 0:
        node.fail(f"is {seed}, expected a whole number from 0")
    return seed


def _preprocess(node: Node) -> Any:
    try:
        return transform_named(node.value)
    except AssayError as error:
        node.fail(str(error))
