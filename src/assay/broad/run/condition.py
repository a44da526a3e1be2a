"""One run: a task under one condition (the plan, Fig. 5)."""

from __future__ import annotations

import logging
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.broad.data.dataset import Array, Features, Inputs
from assay.broad.data.features import PARTS, FeatureStore, count, features_hash, finite, joined, rows
from assay.broad.data.staging import staged
from assay.broad.data.violation import Violation
from assay.broad.run.guard import require_features, require_predictions, require_same, require_same_ranks
from assay.broad.run.job import Job
from assay.broad.run.remote import Remote, RemoteClassifier, Rows, Surroundings
from assay.broad.run.results import FoldInfo, Results, RunRecord
from assay.broad.run.tuning import Tuned, train_and_optimize_classifier
from assay.broad.systems.saved_learner import learner_file
from assay.broad.systems.team import Module
from assay.broad.tasks import View
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.core.names import counted
from assay.stimuli.clips import Clip

log = logging.getLogger(__name__)
_AGAIN = 32  # number of test instances that are predicted a second time, in another order
FEW, WHICH = "few", "which"  # their features, made by themselves, and their numbers among all test instances
Notify = Callable[[str], None]


@dataclass
class RunCondition:
    """Runs one job fold by fold and writes each; folds that are written already are left as they are.

    Args:
        view: The task, without test labels.
        job: The run to do, with its modules.
        results: Folder that results are written to.
        store: Store that keeps features for the next run.
        around: What is hidden from the workers that run the systems' code.
        notify: Called with the name of each fit before it begins.
        anew: Whether folds that are done are done again.
        seconds: Time that each stage took.
        stages: Hash of the output of each stage.
        layers: Names of the learner's layers.
        learner: File of the trained learner.
        nonconforming: Why the system does not conform; empty if it does.
        stage: Name of the stage that the run is in.
    """

    view: View
    job: Job
    results: Results
    store: FeatureStore
    around: Surroundings = field(default_factory=Surroundings)
    notify: Notify = lambda _: None
    anew: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    learner: str = ""
    nonconforming: str = ""
    stage: str = ""

    def __post_init__(self) -> None:
        self.around = replace(self.around, stage=lambda: self.stage)

    def __call__(self) -> RunRecord:
        """Do the folds that are missing, and give the record of the run."""
        view = self.view
        job = self.job
        folds = range(1, len(view.partition.folds) + 1)
        content = fingerprint(view.hash, job.key, job.modules)
        done = {i: kept for i in folds if (kept := self.results.read_fold(view.name, job.key, i))}
        missing = [i for i in folds if self.anew or i not in done or done[i][1].hash != content]
        before = self.results.read_run(view.name, job.key)
        if not missing and before.status in ("done", "non-conforming", "pre-trained"):
            return before
        if before.status != "missing":  # until all folds are of one kind, there is no result
            self.results.write_run(self.record("missing", "begun anew, and not finished"))
        features = self.represent()
        for i in missing:
            self.fold(i, features, content)
        status = "pre-trained" if job.trained_from else "non-conforming" if self.nonconforming else "done"
        reason = "; ".join(part for part in (job.declaration if job.trained_from else "", self.nonconforming) if part)
        return self.record(status, reason)

    def record(self, status: str, reason: str = "", traceback: str = "") -> RunRecord:
        """Make the record of the run with a status."""
        return RunRecord(
            self.view.name, self.job.key, status, reason, self.view.partition_hash, self.stages, self.job.modules,
            {k: round(v, 3) for k, v in self.seconds.items()}, self.layers, self.learner, traceback,
        )  # fmt: skip

    # -- step 1 and 2 -----------------------------------------------------------------------------------

    def represent(self) -> dict[str, Features]:
        """Compute the features of the three parts: extracted or preprocessed, then represented by the learner.

        There are two parts more, `FEW` test instances that nobody can know beforehand and `WHICH` they are. They are
        taken through all stages by themselves, so that what a module makes of the test set as a whole, however small
        it is in one stage, shows in the end.
        """
        view = self.view
        job = self.job
        partition = self.view.partition
        instances = {"training": partition.training, "validation": partition.validation, "test": partition.test}
        key = fingerprint(view.hash, "in neutral order", job.module.described)
        features = self.store.read(key)
        if features is None or FEW not in features:
            unlabelled = np.sort(np.concatenate([partition.training, partition.validation]))
            with self._staged(view.inputs.take(unlabelled)) as (given, place):
                with self._timed("preprocess: fit"):
                    worker = Remote(job.module, self.around, shown=place)
                    worker.fit(given)
                with worker, self._timed("preprocess"):
                    state = worker.state()
                    at = {part: np.searchsorted(unlabelled, instances[part]) for part in ("training", "validation")}
                    features = {
                        part: worker.transform(given.take(at[part]), "preprocessor") if len(at[part]) else []
                        for part in at
                    }
            with self._timed("preprocess"):
                test = view.inputs.take(partition.test)
                which = _few(len(test))
                features |= self._shown(job.module, state, test, test.take(which), which, "preprocessor")
            require_features(features, instances, "the preprocessor")
            self.store.write(key, features)
        self.stages["features"] = features_hash(self._in_known_order(features))
        if job.learner is not None:
            features = self.learn(features, fingerprint(key, job.learner.described))
            self.stages["representation"] = features_hash(self._in_known_order(features))
        return features

    def learn(self, features: dict[str, Features], key: str) -> dict[str, Features]:
        """Represent features by the learner, shallow or deep; it never sees a label or learns from a test instance."""
        job = self.job
        assert job.learner is not None
        shallow = job.spec.condition.unsupervised == "SUL"
        key = fingerprint(key, shallow, job.modules.get("trained_from"), job.share)
        self.learner = job.trained_from or f"work/features/{key}.learner"
        with self._worker(job.learner, "learner: start", shallow) as worker:
            self.layers = worker.layers
            self.check_layers(shallow)
            kept = self.store.read(f"{key}{job.layer}")
            if kept is not None and FEW in kept:
                return kept
            state = self._learned(worker, features, f"features/{key}.learner")
            with self._timed("learner: represent"):
                represented = {
                    part: worker.transform(features[part], "learner", job.layer) if count(features[part]) else []
                    for part in ("training", "validation")
                }
        with self._timed("learner: represent"):
            which = np.asarray(features[WHICH])
            represented |= self._shown(
                job.learner, state, features["test"], features[FEW], which, "learner", job.layer, shallow
            )
        instances = {part: np.empty(count(features[part])) for part in PARTS}
        require_features(represented, instances, "the learner")
        self.store.write(f"{key}{job.layer}", represented)
        return represented

    def _learned(self, worker: Remote, features: dict[str, Features], kept: str) -> bytes:
        """Have the learner learn, or load what it has learned already, and give its state."""
        job = self.job
        if job.trained_from is not None:
            worker.load(learner_file(job.trained_from, self.around.hidden).read_bytes(), careful=True)
            return worker.state()
        if self.store.folder.exists(kept):
            state = self.store.folder.read(kept)
            try:
                worker.load(state)
            except AssayError as error:
                log.warning("%s: trained again", error)
            else:
                return state
        both = joined(features["training"], features["validation"])
        if 0 < job.share < 1:
            order = np.random.default_rng(0).permutation(count(both))
            both = rows(both, np.sort(order[: max(int(job.share * len(order)), 1)]))
        with self._timed("learner: fit"):
            if job.share > 0:
                worker.fit(both)
            else:
                worker.untrained(both)
            state = worker.state()
        self.store.folder.write(kept, state)
        return state

    def _shown(
        self, module: Module, state: bytes, test: Any, few: Any, which: Array, whose: str, layer: int | None = None,
        shallow: bool = False,
    ) -> dict[str, Features]:  # fmt: skip
        """Show test instances to two copies of a module that never live at the same time, and compare their answers.

        One copy sees all test instances; the other sees a few of them, drawn at random, in another order. A module that
        makes anything of the instances together, openly or in secret, answers the two differently.
        """
        answers = []
        for X in (test, few):
            with self._staged(X) as (given, place), Remote(module, self.around, shallow, place) as worker:
                answers.append(worker.load(state).transform(given, whose, layer))
        together, alone = answers
        n = len(test) if isinstance(test, Inputs) else count(test)
        if count(together) == n and finite(together):  # otherwise `require_features` refuses it
            require_same(rows(together, which), alone, whose)
        return {"test": together, FEW: alone, WHICH: which}

    def check_layers(self, shallow: bool) -> None:
        """Note it if the learner has fewer than three layers, or not exactly one if shallow (J1, F5).

        `assay.broad.check_system` also requires that all layers learn by one algorithm.
        """
        n = len(self.layers)
        if shallow and n != 1:
            self.nonconforming = f"the shallow learner has {n} layers, not 1"
        elif not shallow and n < 3:
            self.nonconforming = f"the deep learner has {counted(n, 'layer')}, at least 3 are asked for"

    # -- step 3 -----------------------------------------------------------------------------------------

    def fold(self, i: int, features: dict[str, Features], content: str) -> None:
        """Train and tune a classifier for each label on fold i, predict the test set and write the predictions.

        The classifiers of a fold are trained in a worker of their own, which sees no test instance and no label of
        another fold.
        """
        view = self.view
        partition = self.view.partition
        begin = time.perf_counter()
        in_fold = partition.get_fold(i)
        in_other_folds = partition.complement(i)
        tuned_on = np.concatenate([in_other_folds, partition.validation])
        X = Rows((("training", np.searchsorted(partition.training, in_fold)),))
        others = ("training", np.searchsorted(partition.training, in_other_folds))
        validation = Rows((others, ("validation", None)) if len(partition.validation) else (others,))
        tuned: list[Tuned] = []
        with self._worker(self.job.classifier, f"fold {i}: start") as worker:
            for part in ("training", "validation"):
                if count(features[part]):
                    worker.ask("keep", part=part, X=features[part])
            classifier: Any = RemoteClassifier(worker)
            for label, name in enumerate(view.labels):
                self._begin(f"fold {i}: {name}")
                y, y_validation = view.y(in_fold, label), view.y(tuned_on, label)
                tuned.append(train_and_optimize_classifier(classifier, X, y, validation, y_validation, view.metric))
            self._begin(f"fold {i}: predictions")
            trained: list[Any] = [one.classifier for one in tuned]
            _, (state,) = worker.ask("trained", order=[one.number for one in trained])
        predictions, margins = self._predicted(state.tobytes(), features, i)
        warnings: list[str] = []
        for name, one, predicted, raw in zip(view.labels, tuned, predictions, margins, strict=True):
            warnings += [f"{name}: {warning}" for warning in one.warnings]
            if view.modality == "text" and (clipped := int((raw != predicted).sum())):
                warnings.append(f"{name}: {counted(clipped, 'prediction')} clipped to [1, 5]")
        kind = np.float64 if view.modality == "video" else np.float32
        arrays = {
            "predictions": np.stack(predictions, 1)[view.test_order].astype(kind),
            "margins": np.stack(margins, 1)[view.test_order].astype(kind),
        }
        if view.modality == "text":
            del arrays["margins"]
        took = time.perf_counter() - begin
        self.seconds[f"fold {i}"] = took
        chosen = [one.chosen for one in tuned]
        info = FoldInfo(content, chosen, [one.score for one in tuned], warnings, round(took, 3))
        self.results.write_fold(view.name, self.job.key, i, arrays, info)

    def _predicted(self, state: bytes, features: dict[str, Features], i: int) -> tuple[list[Array], list[Array]]:
        """Predictions and margins for each label, by two workers that are shown all test instances and a few.

        They live for one fold: what a classifier brings along of its fold's labels must not meet that of another.
        """
        view = self.view
        n = len(view.partition.test)
        which = np.asarray(features[WHICH])
        said, answers = self._tested(state, features["test"])
        _, again = self._tested(state, features[FEW])
        if len(answers) != 2 * len(view.labels) or len(again) != len(answers):
            raise Violation("invalid", f"fold {i}: the classifier's process gave {len(answers)} answers")
        for label, name in enumerate(view.labels):
            predicted, margins = answers[2 * label :][:2]
            require_predictions(predicted, n, view.metric, f"fold {i}, {name}")
            if margins.shape != (n,):
                raise Violation("invalid", f"fold {i}, {name}: margins of shape {margins.shape}")
            require_same(predicted[which], again[2 * label], "classifier")
            if view.metric.name == "MAP":  # for which only the order counts, however close the predictions are
                require_same_ranks(predicted, which, again[2 * label], "classifier")
        if said.get("changed") is not False:
            raise Violation("learned at test time", "the classifier changed while it was shown test instances")
        return answers[::2], answers[1::2]

    def _tested(self, state: bytes, X: Features) -> tuple[dict[str, Any], list[Array]]:
        """What the classifiers of a fold answer in a worker that has nothing else."""
        with Remote(self.job.classifier, self.around) as tester:
            tester.ask("keep", part="test", X=X)
            return tester.ask("predict_each", state=state, part="test")

    # -- meanwhile --------------------------------------------------------------------------------------

    def _worker(self, module: Module, stage: str, shallow: bool = False) -> Remote:
        """Begin a stage in which a team's module is made, so that the limit of time names it, and not another."""
        self._begin(stage)
        return Remote(module, self.around, shallow)

    @contextmanager
    def _staged(self, X: Inputs | Features) -> Iterator[tuple[Any, tuple[str, ...]]]:
        """Instances as a worker gets them, and the folders they are in; those are gone after the block."""
        if not isinstance(X, Inputs) or not isinstance(next(iter(X.items), None), Clip):
            yield X, ()
            return
        parent = Path(self.store.folder.path("shown"))
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as place:
            yield staged(X, Path(place)), (place,)

    def _in_known_order(self, features: dict[str, Features]) -> dict[str, Features]:
        """Features of the test instances in the evaluators' order, so that two sites can compare them."""
        return {**features, "test": rows(features["test"], self.view.test_order)}

    def _timed(self, stage: str) -> _Timed:
        self._begin(stage)
        return _Timed(stage, self.seconds)

    def _begin(self, stage: str) -> None:
        self.stage = stage
        self.notify(stage)


def run_condition(view: View, job: Job, results: Results) -> RunRecord:
    """Do one run from this process, fold by fold; folds that are written already stay as they are (the plan, Fig. 5).

    A system that does what the protocol forbids raises `Violation`; `assay.broad.run.processes` turns it into a
    status.
    """
    return RunCondition(view, job, results, FeatureStore(results.folder))()


def _few(n: int) -> Array:
    """Numbers of a few test instances in any order; nobody can know which."""
    return np.random.default_rng(secrets.randbits(128)).permutation(n)[:_AGAIN]


class _Timed:
    """A block whose duration is added to the seconds of a stage."""

    def __init__(self, stage: str, seconds: dict[str, float]) -> None:
        self.stage = stage
        self.seconds = seconds

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + time.perf_counter() - self.start
