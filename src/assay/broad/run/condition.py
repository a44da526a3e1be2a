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
_AGAIN = 32  # test instances predicted a second time, in another order
Notify = Callable[[str], None]


@dataclass
class RunCondition:
    """Runs one job fold by fold, writing each; what is written already is left as it is.

    Args:
        view: The task, without test labels.
        job: What to run.
        results: Where it goes.
        store: Where features are kept for the next run.
        forbidden: Files and folders in which labels are.
        notify: Called with the name of each fit before it begins.
        anew: Whether folds that are done are done again.
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
        """Do what is missing."""
        view, job = self.view, self.job
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
        """How it went."""
        return RunRecord(
            self.view.name, self.job.key, status, reason, self.view.partition.hash, self.stages, self.job.modules,
            {k: round(v, 3) for k, v in self.seconds.items()}, self.layers, self.learner, traceback,
        )  # fmt: skip

    # -- step 1 and 2 -----------------------------------------------------------------------------------

    def represent(self) -> dict[str, Features]:
        """Features of the three parts: extracted or preprocessed, and then represented by the learner."""
        view, job, partition = self.view, self.job, self.view.partition
        number = {"training": partition.training, "validation": partition.validation, "test": partition.test}
        key = fingerprint(view.hash, job.module.described)
        features = self.store.read(key)
        if features is None:
            module = job.module.build()
            learn = np.concatenate([partition.training, partition.validation])
            with self._timed("preprocess: fit"), self._undisturbed():
                module.fit(view.inputs.take(learn))
            known = state_fingerprint(module)
            with self._timed("preprocess"), self._undisturbed():
                features = {
                    part: module.transform(view.inputs.take(number[part])) if len(number[part]) else []
                    for part in PARTS
                }
            require_unchanged(module, known, "preprocessor")
            require_features(features, number, "the preprocessor")
            self.store.write(key, features)
        self.stages["features"] = features_hash(features)
        if job.learner is not None:
            features = self.learn(features, fingerprint(key, job.learner.described))
            self.stages["representation"] = features_hash(features)
        return features

    def learn(self, features: dict[str, Features], key: str) -> dict[str, Features]:
        """What the learner, shallow or deep, makes of the features; it never sees a label or a test instance."""
        job = self.job
        assert job.learner is not None
        shallow = job.spec.condition.unsupervised == "SUL"
        with self._undisturbed():
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
        kept_learner = _kept(fitted, learner)
        if job.trained_from is not None:
            learner = load_learner(job.trained_from, learner)
        elif kept_learner is not None:
            learner = kept_learner
        else:
            both = joined(features["training"], features["validation"])
            if 0 < job.share < 1:
                every = np.random.default_rng(0).permutation(count(both))
                both = rows(both, np.sort(every[: max(int(job.share * len(every)), 1)]))
            with self._timed("learner: fit"), self._undisturbed():
                if job.share > 0:
                    learner.fit(both)
                else:
                    untrained(learner, both)
            _keep(learner, fitted)
        known = state_fingerprint(learner)
        with self._timed("learner: represent"), self._undisturbed():
            found = {
                part: learner.transform(features[part], layer=job.layer) if count(features[part]) else []
                for part in PARTS
            }
        number = {part: np.empty(count(features[part])) for part in PARTS}
        require_features(found, number, "the learner")
        with self._undisturbed():
            again = learner.transform(rows(features["test"], self._some()[::-1]), layer=job.layer)
        require_unchanged(learner, known, "learner")
        require_same(rows(found["test"], self._some()), again, "learner")
        self.store.write(f"{key}{job.layer}", found)
        return found

    def check_layers(self, shallow: bool) -> None:
        """At least three layers, or one if shallow (J1, F5); `assay.broad.check_system` asks for one algorithm too."""
        n = len(self.layers)
        if shallow and n != 1:
            self.nonconforming = f"the shallow learner has {n} layers, not 1"
        elif not shallow and n < 3:
            self.nonconforming = f"the deep learner has {n} layer{'s' * (n != 1)}, at least 3 are asked for"

    # -- step 3 -----------------------------------------------------------------------------------------

    def fold(self, i: int, features: dict[str, Features], content: str) -> None:
        """Train and tune a classifier for each label on fold i, predict the test set, write."""
        view, partition = self.view, self.view.partition
        begin = time.perf_counter()
        position = {int(n): at for at, n in enumerate(partition.training)}
        mine, others = partition.get_fold(i), partition.complement(i)
        classifier: Classifier = self.job.classifier.build()
        training = adapted(features["training"], classifier)
        X = rows(training, np.array([position[n] for n in mine.tolist()]))
        rest = rows(training, np.array([position[n] for n in others.tolist()]))
        validation = joined(rest, adapted(features["validation"], classifier))
        tuned_on = np.concatenate([others, partition.validation])
        test = adapted(features["test"], classifier)
        predictions, margins, chosen, scores, warnings = [], [], [], [], []
        for label, name in enumerate(view.labels):
            self.notify(f"fold {i}: {name}")
            with self._undisturbed():
                model = train_and_optimize_classifier(
                    classifier, X, view.y(mine, label), validation, view.y(tuned_on, label), view.metric
                )
                known = state_fingerprint(model.classifier)
                predicted = np.asarray(model.classifier.predict(test), dtype=np.float64)
                again = np.asarray(model.classifier.predict(rows(test, self._some()[::-1])), dtype=np.float64)
                raw = np.asarray(model.classifier.margins(test), dtype=np.float64)
            require_predictions(predicted, len(partition.test), view.metric, f"fold {i}, {name}")
            require_unchanged(model.classifier, known, "classifier")
            require_same(predicted[self._some()], again, "classifier")
            predictions.append(predicted)
            margins.append(raw)
            chosen.append(model.chosen)
            scores.append(model.score)
            warnings += [f"{name}: {warning}" for warning in model.warnings]
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

    def _timed(self, what: str) -> _Timed:
        self.notify(what)
        return _Timed(what, self.seconds)

    def _undisturbed(self) -> Guard:
        return Guard(self.forbidden)

    def _some(self) -> Array:
        """A few test instances, spread over the set."""
        n = len(self.view.partition.test)
        return np.unique(np.linspace(0, n - 1, min(_AGAIN, n)).astype(np.int64))


def run_condition(view: View, job: Job, results: Results) -> RunRecord:
    """One run in this process, fold by fold; what is written already is left as it is (the plan, Fig. 5).

    A system that does what the protocol forbids raises `Violation`; `assay.broad.run.processes` turns it into a
    status.
    """
    return RunCondition(view, job, results, FeatureStore(results.folder))()


def untrained(learner: Any, X: Features) -> None:
    """A learner with random weights; what it needs besides (vocabularies, scales) it takes from the data."""
    if not hasattr(learner, "untrained"):
        raise NotApplicable(f"{type(learner).__name__} has no untrained(X), which the first point of the curve needs")
    learner.untrained(X)


def _kept(place: str, like: Any) -> Any:
    """A learner trained before; None if there is none, or if its file is damaged (then it is trained again)."""
    if not Path(place).exists():
        return None
    try:
        return load_learner(place, like)
    except AssayError as error:
        log.warning("%s: trained again", error)
        return None


def _keep(learner: Any, place: str) -> None:
    """For the next run, if that is possible."""
    try:
        save_learner(learner, place)
    except AssayError as error:
        log.warning("%s: it is trained again when it is needed again", error)


class _Timed:
    def __init__(self, what: str, kept: dict[str, float]) -> None:
        self.what, self.kept = what, kept

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.kept[self.what] = self.kept.get(self.what, 0.0) + time.perf_counter() - self.start
