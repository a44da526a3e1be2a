"""One run: a task under one condition (the plan, Fig. 5)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assay.broad.data.dataset import Array, Features
from assay.broad.data.features import PARTS, FeatureStore, count, features_hash, joined, rows
from assay.broad.data.violation import NotApplicable
from assay.broad.run.guard import Guard, require_features, require_predictions, require_same, require_unchanged
from assay.broad.run.job import Job
from assay.broad.run.results import FoldInfo, Results, RunRecord
from assay.broad.run.tuning import adapted, train_and_optimize_classifier
from assay.broad.systems.classifiers.classifier import Classifier
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.broad.tasks import View
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint, state_fingerprint

log = logging.getLogger(__name__)
_AGAIN = 32  # number of test instances that are predicted a second time, in another order
Notify = Callable[[str], None]


@dataclass
class RunCondition:
    """Runs one job fold by fold and writes each; folds that are written already are left as they are.

    Args:
        view: The task, without test labels.
        job: The run to do, with its modules.
        results: Folder that results are written to.
        store: Store that keeps features for the next run.
        forbidden: Files and folders that hold labels.
        notify: Called with the name of each fit before it begins.
        anew: Whether folds that are done are done again.
        seconds: Time that each stage took.
        stages: Hash of the output of each stage.
        layers: Names of the learner's layers.
        learner: File of the trained learner.
        nonconforming: Why the system does not conform; empty if it does.
    """

    view: View
    job: Job
    results: Results
    store: FeatureStore
    forbidden: tuple[str, ...] = ()
    notify: Notify = lambda _: None
    anew: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    learner: str = ""
    nonconforming: str = ""

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
            self.view.name, self.job.key, status, reason, self.view.partition.hash, self.stages, self.job.modules,
            {k: round(v, 3) for k, v in self.seconds.items()}, self.layers, self.learner, traceback,
        )  # fmt: skip

    # -- step 1 and 2 -----------------------------------------------------------------------------------

    def represent(self) -> dict[str, Features]:
        """Compute the features of the three parts: extracted or preprocessed, then represented by the learner."""
        view = self.view
        job = self.job
        partition = self.view.partition
        instances = {"training": partition.training, "validation": partition.validation, "test": partition.test}
        key = fingerprint(view.hash, job.module.described)
        features = self.store.read(key)
        if features is None:
            module = job.module.build()
            unlabelled = np.concatenate([partition.training, partition.validation])
            with self._timed("preprocess: fit"), self._guarded():
                module.fit(view.inputs.take(unlabelled))
            known = state_fingerprint(module)
            with self._timed("preprocess"), self._guarded():
                features = {
                    part: module.transform(view.inputs.take(instances[part])) if len(instances[part]) else []
                    for part in PARTS
                }
            require_unchanged(module, known, "preprocessor")
            require_features(features, instances, "the preprocessor")
            self.store.write(key, features)
        self.stages["features"] = features_hash(features)
        if job.learner is not None:
            features = self.learn(features, fingerprint(key, job.learner.described))
            self.stages["representation"] = features_hash(features)
        return features

    def learn(self, features: dict[str, Features], key: str) -> dict[str, Features]:
        """Represent features by the learner, shallow or deep; it never sees a label or learns from a test instance."""
        job = self.job
        assert job.learner is not None
        shallow = job.spec.condition.unsupervised == "SUL"
        with self._guarded():
            learner = job.learner.build()
            if shallow:
                learner = learner.shallow()
            self.layers = list(learner.layers)
        self.check_layers(shallow)
        key = fingerprint(key, shallow, job.modules.get("trained_from"), job.share)
        self.learner = job.trained_from or f"work/features/{key}.learner"
        kept = self.store.read(f"{key}{job.layer}")
        if kept is not None:
            return kept
        fitted = self.store.folder.path(f"features/{key}.learner")
        kept_learner = _load_kept(fitted, learner)
        if job.trained_from is not None:
            learner = load_learner(job.trained_from, learner)
        elif kept_learner is not None:
            learner = kept_learner
        else:
            both = joined(features["training"], features["validation"])
            if 0 < job.share < 1:
                order = np.random.default_rng(0).permutation(count(both))
                both = rows(both, np.sort(order[: max(int(job.share * len(order)), 1)]))
            with self._timed("learner: fit"), self._guarded():
                if job.share > 0:
                    learner.fit(both)
                else:
                    untrained(learner, both)
            _keep_learner(learner, fitted)
        known = state_fingerprint(learner)
        with self._timed("learner: represent"), self._guarded():
            represented = {
                part: learner.transform(features[part], layer=job.layer) if count(features[part]) else []
                for part in PARTS
            }
        instances = {part: np.empty(count(features[part])) for part in PARTS}
        require_features(represented, instances, "the learner")
        with self._guarded():
            again = learner.transform(rows(features["test"], self._probe_rows()[::-1]), layer=job.layer)
        require_unchanged(learner, known, "learner")
        require_same(rows(represented["test"], self._probe_rows()), again, "learner")
        self.store.write(f"{key}{job.layer}", represented)
        return represented

    def check_layers(self, shallow: bool) -> None:
        """Note it if the learner has fewer than three layers, or not exactly one if shallow (J1, F5).

        `assay.broad.check_system` also requires that all layers learn by one algorithm.
        """
        n = len(self.layers)
        if shallow and n != 1:
            self.nonconforming = f"the shallow learner has {n} layers, not 1"
        elif not shallow and n < 3:
            self.nonconforming = f"the deep learner has {n} layer{'s' * (n != 1)}, at least 3 are asked for"

    # -- step 3 -----------------------------------------------------------------------------------------

    def fold(self, i: int, features: dict[str, Features], content: str) -> None:
        """Train and tune a classifier for each label on fold i, predict the test set and write the predictions."""
        view = self.view
        partition = self.view.partition
        begin = time.perf_counter()
        position = {int(n): at for at, n in enumerate(partition.training)}
        in_fold = partition.get_fold(i)
        in_other_folds = partition.complement(i)
        classifier: Classifier = self.job.classifier.build()
        training = adapted(features["training"], classifier)
        X = rows(training, np.array([position[n] for n in in_fold.tolist()]))
        rest = rows(training, np.array([position[n] for n in in_other_folds.tolist()]))
        validation = joined(rest, adapted(features["validation"], classifier))
        tuned_on = np.concatenate([in_other_folds, partition.validation])
        test = adapted(features["test"], classifier)
        predictions: list[Array] = []
        margins: list[Array] = []
        chosen: list[dict[str, Any]] = []
        scores: list[float | None] = []
        warnings: list[str] = []
        for label, name in enumerate(view.labels):
            self.notify(f"fold {i}: {name}")
            with self._guarded():
                tuned = train_and_optimize_classifier(
                    classifier, X, view.y(in_fold, label), validation, view.y(tuned_on, label), view.metric
                )
                known = state_fingerprint(tuned.classifier)
                predicted = np.asarray(tuned.classifier.predict(test), dtype=np.float64)
                again = np.asarray(tuned.classifier.predict(rows(test, self._probe_rows()[::-1])), dtype=np.float64)
                raw = np.asarray(tuned.classifier.margins(test), dtype=np.float64)
            require_predictions(predicted, len(partition.test), view.metric, f"fold {i}, {name}")
            require_unchanged(tuned.classifier, known, "classifier")
            require_same(predicted[self._probe_rows()], again, "classifier")
            predictions.append(predicted)
            margins.append(raw)
            chosen.append(tuned.chosen)
            scores.append(tuned.score)
            warnings += [f"{name}: {warning}" for warning in tuned.warnings]
            if view.modality == "text" and (clipped := int((raw != predicted).sum())):
                warnings.append(f"{name}: {clipped} predictions clipped to [1, 5]")
        kind = np.float64 if view.modality == "video" else np.float32
        arrays = {"predictions": np.stack(predictions, 1).astype(kind), "margins": np.stack(margins, 1).astype(kind)}
        if view.modality == "text":
            del arrays["margins"]
        took = time.perf_counter() - begin
        self.seconds[f"fold {i}"] = took
        self.results.write_fold(
            view.name, self.job.key, i, arrays, FoldInfo(content, chosen, scores, warnings, round(took, 3))
        )

    # -- meanwhile --------------------------------------------------------------------------------------

    def _timed(self, stage: str) -> _Timed:
        self.notify(stage)
        return _Timed(stage, self.seconds)

    def _guarded(self) -> Guard:
        return Guard(self.forbidden)

    def _probe_rows(self) -> Array:
        """Rows of a few test instances, spread over the set."""
        n = len(self.view.partition.test)
        return np.unique(np.linspace(0, n - 1, min(_AGAIN, n)).astype(np.int64))


def run_condition(view: View, job: Job, results: Results) -> RunRecord:
    """Do one run in this process, fold by fold; folds that are written already stay as they are (the plan, Fig. 5).

    A system that does what the protocol forbids raises `Violation`; `assay.broad.run.processes` turns it into a
    status.
    """
    return RunCondition(view, job, results, FeatureStore(results.folder))()


def untrained(learner: Any, X: Features) -> None:
    """Give a learner random weights; what else it needs (vocabularies, scales) it takes from the data."""
    if not hasattr(learner, "untrained"):
        raise NotApplicable(f"{type(learner).__name__} has no untrained(X), which the first point of the curve needs")
    learner.untrained(X)


def _load_kept(file: str, like: Any) -> Any:
    """Load a learner trained before; None if there is none, or if its file is damaged (then it is trained again)."""
    if not Path(file).exists():
        return None
    try:
        return load_learner(file, like)
    except AssayError as error:
        log.warning("%s: trained again", error)
        return None


def _keep_learner(learner: Any, file: str) -> None:
    """Save a learner for the next run, if that is possible."""
    try:
        save_learner(learner, file)
    except AssayError as error:
        log.warning("%s: it is trained again when it is needed again", error)


class _Timed:
    """A block whose duration is added to the seconds of a stage."""

    def __init__(self, stage: str, seconds: dict[str, float]) -> None:
        self.stage = stage
        self.seconds = seconds

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + time.perf_counter() - self.start
