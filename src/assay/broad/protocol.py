"""The protocol: every run of every task, each kept as soon as it is done (the plan, Figs 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from assay.broad.analysis.analysis import Analysis, analyze_results
from assay.broad.analysis.scores import RunResult, TaskTruth
from assay.broad.analysis.sites import Site, compare_sites
from assay.broad.conditions import CONTRASTS, RunSpec, run_specs
from assay.broad.data.dataset import Dataset, Modality
from assay.broad.data.features import FeatureStore
from assay.broad.data.partition import commitment
from assay.broad.metrics import METRICS
from assay.broad.registration import FILE as REGISTRATION
from assay.broad.registration import register, registered, teams_of
from assay.broad.run.job import Job, make_job
from assay.broad.run.processes import Order, work
from assay.broad.run.remote import layers_of
from assay.broad.run.results import DAMAGED, DONE, Results, RunRecord
from assay.broad.run.sandbox import keeping_to_itself, kind_of_walls
from assay.broad.run.scratch import make_scratch
from assay.broad.settings import Protocol
from assay.broad.systems.team import Evaluators, Team, require_one_each
from assay.broad.tasks import METRIC_OF, Task, make_tasks
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.lock import locked
from assay.core.reading import reading
from assay.runs.manifest import environment, now


def run_protocol(
    video: tuple[Dataset, Dataset] | None,
    text: Dataset | None,
    teams: Sequence[Team],
    evaluators: Mapping[Modality, Evaluators],
    folder: str,
    secret: str,
    protocol: Protocol | None = None,
    processes: int = 1,
    only: Sequence[str] = (),
    ray: bool | str = False,
    plan: Mapping[str, Any] | None = None,
    forbidden: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> Analysis:
    """Run a whole evaluation: partition the data, run all tasks, analyse the results (the plan, Fig. 3).

    Runs that are done stay as they are; those that are missing or have failed are run.

    Args:
        video: Training and test set of the video task; None for no such task.
        text: All reviews of the text tasks; None for no such task.
        teams: The teams whose systems are compared.
        evaluators: The evaluators' own modules, by modality.
        folder: Folder of the evaluation; a local one, or one that all nodes of a cluster see.
        secret: Seed of the partitions; its commitment goes into the manifest.
        protocol: Settings of the evaluation; those of the plan by default.
        processes: Number of runs at a time.
        only: Keys of the only runs to do, such as ``video/6s`` or ``text:Food/1``; these are done anew.
        ray: True for a Ray cluster found or started here, or the address of one.
        plan: The plan as written, for the manifest.
        forbidden: Files and folders that hold labels: no system sees them, and one that opens them has peeked.
        hidden: Further files and folders that no system sees, such as the plan.
    """
    protocol = protocol or Protocol()
    require_one_each(tuple(teams))
    tasks = make_tasks(
        video, text, secret, protocol.k, protocol.p, protocol.n, protocol.ratings, protocol.validation_cap
    )
    if not tasks:
        raise AssayError("there is neither video nor text to evaluate on")
    for task in tasks:
        if task.metric.name not in protocol.margin:
            raise AssayError(
                f"margin={dict(protocol.margin)} has none for {task.metric.name}, by which {task.name} is judged"
            )
    results = Results(folder)
    if not results.folder.local:
        raise AssayError(f"folder={results.folder.url}: runs need a folder of a file system that all processes see")
    with locked(results.folder.path(), "runs the evaluation"), keeping_to_itself(secret):
        results.sweep()
        make_scratch(results)
        _write_manifest(results, tasks, teams, evaluators, secret, protocol, plan)
        known = {f"{task.name}/{key}" for task in tasks for key in _keys(task, teams, evaluators, protocol)}
        for wanted in only:
            if wanted not in known:
                raise AssayError(f"only={wanted}: there is no such run; there are {', '.join(sorted(known)[:12])} …")
        with _withheld(results, tasks), _unchanged(results):
            # On a cluster the tasks are done side by side; here one by one, whose features then take less room.
            for together in [tasks] if ray else [[task] for task in tasks]:
                run_tasks(together, teams, evaluators, results, protocol, processes, only, ray, forbidden, hidden)
        return analyze(folder)


@contextmanager
def _unchanged(results: Results) -> Iterator[None]:
    """Put manifest and registration back if they are others after the block, and say so: without walls they can be."""
    before = {name: results.folder.read(name) for name in ("manifest.json", REGISTRATION)}
    yield
    changed = [n for n, data in before.items() if not results.folder.exists(n) or results.folder.read(n) != data]
    for name in changed:
        results.folder.write(name, before[name])
    if changed:
        raise AssayError(
            f"{' and '.join(changed)} of {results.folder.url} changed while systems ran ({kind_of_walls()}): a system "
            "wrote where it must not, so no result here can be trusted; run the evaluation where there are walls"
        )


@contextmanager
def _withheld(results: Results, tasks: Sequence[Task]) -> Iterator[None]:
    """Keep the truth about test instances in memory alone while systems run; the analysis finds it after the block."""
    results.remove_truth()
    try:
        yield
    finally:
        for task in tasks:
            targets, groups = task.truth()
            ids = tuple(task.dataset.inputs.ids[i] for i in task.partition.test)
            results.write_truth(task.name, targets, groups, ids)


def run_conditions(
    task: Task, teams: Sequence[Team], evaluators: Mapping[Modality, Evaluators], results: Results, protocol: Protocol,
    processes: int = 1, only: Sequence[str] = (), ray: bool | str = False, forbidden: Sequence[str] = (),
) -> list[RunRecord]:  # fmt: skip
    """Do all runs of one task, with the same folds for all of them (the plan, Fig. 4)."""
    with locked(results.folder.path(), "does runs"):
        return run_tasks([task], teams, evaluators, results, protocol, processes, only, ray, forbidden)


def run_tasks(
    tasks: Sequence[Task],
    teams: Sequence[Team],
    evaluators: Mapping[Modality, Evaluators],
    results: Results,
    protocol: Protocol,
    processes: int = 1,
    only: Sequence[str] = (),
    ray: bool | str = False,
    forbidden: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> list[RunRecord]:
    """Do all runs of some tasks, for one who holds the lock of the folder."""
    # Absolute paths: nodes of a cluster work in folders of their own.
    own = [results.folder.path(name) for name in ("truth", "runs", "analysis")]
    labels = (*own, *_absolute(forbidden))
    # Other evaluations beside this one may be of the same data.
    beside = [str(truth.parent) for truth in Path(results.folder.path()).parent.glob("*/truth")]
    unseen = (*_absolute(hidden), *beside)
    memory = None if protocol.memory_gib is None else int(protocol.memory_gib * 2**30)
    orders = []
    for task in tasks:
        view = task.for_systems()
        for job in _jobs(task, teams, evaluators, protocol):
            if not only or f"{task.name}/{job.key}" in only:
                orders.append(
                    Order(
                        task.name, view, job, results.folder.path(), results.folder.path("work"), labels, unseen,
                        protocol.limit_s, memory, protocol.cores, bool(only),
                    )
                )  # fmt: skip
    # The other layers of a learner come last: they find it trained.
    first = [order for order in orders if order.job.layer == -1]
    last = [order for order in orders if order.job.layer != -1]
    records = [*work(first, processes, ray), *work(last, processes, ray)]
    if all(record.status in (*DONE, "not applicable") for record in records) and not only:
        FeatureStore(Folder(results.folder.path("work"))).forget()
    return records


def _absolute(places: Sequence[str]) -> list[str]:
    return [str(Path(place).absolute()) for place in places]


def _jobs(
    task: Task, teams: Sequence[Team], evaluators: Mapping[Modality, Evaluators], protocol: Protocol
) -> list[Job]:
    if task.modality not in evaluators:
        raise AssayError(f"the evaluators have no modules for {task.modality}")
    teams_of_modality = {team.letter: team for team in teams if task.modality in team.parts}
    jobs = [
        make_job(spec, task.modality, teams_of_modality, evaluators[task.modality])
        for spec in run_specs(tuple(teams_of_modality))
    ]
    if protocol.phase == "end":
        for job in [j for j in jobs if j.spec.condition.number == 6]:
            assert job.learner is not None
            depth = len(layers_of(job.learner))
            jobs += [replace(job, layer=i) for i in range(depth - 1)]
            if job.trained_from is None:
                jobs += [replace(job, share=share) for share in protocol.curve if share < 1]
    return jobs


def _keys(
    task: Task, teams: Sequence[Team], evaluators: Mapping[Modality, Evaluators], protocol: Protocol
) -> list[str]:
    return [job.key for job in _jobs(task, teams, evaluators, protocol)]


def dry_run(
    tasks: Sequence[Task], teams: Sequence[Team], evaluators: Mapping[Modality, Evaluators], protocol: Protocol
) -> list[dict[str, str]]:
    """List the runs that an evaluation would do, without doing them."""
    rows = []
    for task in tasks:
        for job in _jobs(task, teams, evaluators, protocol):
            rows.append(
                {
                    "task": task.name,
                    "run": job.key,
                    "condition": job.spec.condition.name,
                    "features": job.module.name,
                    "learner": job.learner.name if job.learner else "",
                    "classifier": job.classifier.name,
                }
            )
    return rows


def analyze(folder: str) -> Analysis:
    """Analyse the results in a folder without training anything; the same results give the same bytes."""
    results = Results(folder)
    manifest = results.read_manifest()
    lock = locked(results.folder.path(), "analyses the results") if results.folder.local else nullcontext()
    with lock, reading(folder, "an evaluation", DAMAGED):
        return _analyze(results, manifest)


def _analyze(results: Results, manifest: Mapping[str, Any]) -> Analysis:
    protocol = registered(results)
    runs, truths = _read_runs(results), _read_truths(results)
    analysis = analyze_results(
        [run for run in runs if "." not in run.run],
        truths,
        CONTRASTS,
        margins=protocol["margin"],
        bootstrap=protocol["bootstrap"],
        extra=[run for run in runs if "." in run.run],
        teams={team["letter"]: team["name"] for team in manifest["teams"]},
    )
    analysis.write(results.folder)
    return analysis


def compare_folders(a: str, b: str, tolerance: float = 1e-4) -> pd.DataFrame:
    """Compare the results of two sites, run by run (`compare_sites`), by the truth that the first site holds."""
    sites = []
    for folder in (a, b):
        with reading(folder, "an evaluation", DAMAGED):
            sites.append(_read_site(Results(folder)))
    with reading(a, "an evaluation", DAMAGED):
        truths = _read_truths(Results(a))
    return compare_sites(sites[0], sites[1], truths, tolerance)


def _read_site(results: Results) -> Site:
    runs = _read_runs(results)
    partitions = {task["name"]: task["partition"] for task in results.read_manifest()["tasks"]}
    stages = {(run.task, run.run): results.read_run(run.task, run.run).stages for run in runs}
    verdicts = {}
    if results.folder.exists("analysis/claims.csv"):
        claims = Analysis.read(results.folder).tables["claims"]
        for run in runs:
            own_claims = claims[(claims["task"] == run.task) & (claims["team"] == (run.team or ""))]
            if len(own_claims):
                verdicts[run.task, run.run] = own_claims["verdict"].tolist()
    return Site(runs, partitions, stages, verdicts)


def _read_truths(results: Results) -> list[TaskTruth]:
    """Read the truth about the test instances of all tasks."""
    truths = []
    for task in results.read_manifest()["tasks"]:
        targets, groups, ids = results.read_truth(task["name"])
        metric = METRICS[METRIC_OF[task["modality"]]]
        truths.append(TaskTruth(task["name"], metric, tuple(task["labels"]), targets, groups, ids))
    return truths


def _read_runs(results: Results) -> list[RunResult]:
    """Read the result of every run."""
    manifest = results.read_manifest()
    runs: list[RunResult] = []
    for task in manifest["tasks"]:
        for key in task["runs"]:
            record = results.read_run(task["name"], key)
            predictions = None
            if record.status in DONE:
                predictions = results.predictions(task["name"], key, manifest["protocol"]["k"])
                if predictions is None:
                    record = replace(record, status="missing", reason="not all folds are there")
            spec = spec_of(key)
            runs.append(
                RunResult(
                    task["name"], key, spec.condition.number, spec.team, record.status, predictions, record.reason
                )
            )
    return runs


def spec_of(key: str) -> RunSpec:
    """The condition and team of a run's key; ``1n`` is the plan's other name of ``1``."""
    short = key.partition(".")[0]
    letter = short[1:] or None
    team = None if short[0] == "1" else letter
    for spec in run_specs((team,) if team else ()):
        if spec.key == f"{short[0]}{team or ''}":
            return spec
    raise AssayError(f"run {key!r}: a run is a condition 1 to 6 and a team's letter, such as 6s")


def _write_manifest(
    results: Results,
    tasks: Sequence[Task],
    teams: Sequence[Team],
    evaluators: Mapping[Modality, Evaluators],
    secret: str,
    protocol: Protocol,
    plan: Mapping[str, Any] | None,
) -> None:
    task_entries = []
    for task in tasks:
        task_entries.append(
            {
                "name": task.name, "modality": task.modality, "labels": list(task.dataset.labels),
                "data": task.dataset.name, "instances": len(task.dataset),
                "training": len(task.partition.training), "validation": len(task.partition.validation),
                "test": len(task.partition.test), "partition": task.partition.hash,
                "runs": _keys(task, teams, evaluators, protocol),
            }
        )  # fmt: skip
    if results.folder.exists("manifest.json"):
        before = {t["name"]: t["partition"] for t in results.read_manifest()["tasks"]}
        for entry in task_entries:
            if before.get(str(entry["name"]), entry["partition"]) != entry["partition"]:
                raise AssayError(
                    f"{results.folder.url} holds an evaluation with another partition of {entry['name']}: "
                    "use another folder, or the same seed, data and sizes"
                )
    settings = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(protocol).items()}
    described = [
        {
            "letter": team.letter,
            "name": team.name,
            "documents": dict(team.documents),
            "parts": {modality: parts.described for modality, parts in team.parts.items()},
        }
        for team in teams
    ]
    baselines = {
        modality: {"extractor": e.extractor.described, "classifier": e.classifier.described}
        for modality, e in evaluators.items()
    }
    rules = settings | {"teams": teams_of(described), "evaluators": baselines}
    manifest = {
        "written": now(),
        "registration": register(results, rules),
        "commitment": commitment(secret),
        "protocol": settings | {"margin": dict(protocol.margin)},
        "tasks": task_entries,
        "teams": described,
        "evaluators": baselines,
        "plan": dict(plan) if plan else None,
        "environment": environment(),
        "isolation": kind_of_walls(),
    }
    results.write_manifest(manifest)
