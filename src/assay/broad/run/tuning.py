"""A classifier trained on one fold, its settings tuned by the metric on the validation instances (the plan, Fig. 5)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.broad.data.dataset import Array, Features
from assay.broad.data.features import count
from assay.broad.data.violation import NotApplicable
from assay.broad.metrics import Metric
from assay.broad.systems.classifiers.classifier import Classifier
from assay.broad.systems.classifiers.windows import windows
from assay.broad.systems.features.clips import as_vectors


@dataclass(frozen=True)
class Tuned:
    """A classifier with the settings that did best on the validation instances.

    Args:
        classifier: The classifier, fitted on one fold.
        chosen: The settings that were chosen.
        score: The metric on the validation instances; None where nothing was tuned.
        warnings: What a reader should know.
    """

    classifier: Classifier
    chosen: dict[str, Any]
    score: float | None
    warnings: list[str]


def train_and_optimize_classifier(
    classifier: Classifier, X: Features, y: Array, validation: Features, y_validation: Array, metric: Metric
) -> Tuned:
    """Train a classifier on one fold with every setting of its grid, and keep the best on the validation instances.

    There is no training on fold and validation together afterwards: the classifier stays one of a single fold. Among
    equals the first setting is kept; a single setting needs no validation. Where the metric is undefined (no validation
    instance of the class), the first setting is kept, with a warning.
    """
    names = list(classifier.grid)
    settings = [dict(zip(names, values, strict=True)) for values in itertools.product(*classifier.grid.values())]
    if video_without_positives(y_validation):
        only = classifier.with_settings(**settings[0]).fit(X, y)
        return Tuned(only, settings[0], None, ["no validation instance of this class: not tuned", *_warnings(only)])
    if len(settings) == 1:
        only = classifier.with_settings(**settings[0]).fit(X, y)
        return Tuned(only, settings[0], None, _warnings(only))
    best: Tuned | None = None
    refused: NotApplicable | None = None
    for chosen in settings:
        try:
            candidate = classifier.with_settings(**chosen).fit(X, y)
        except NotApplicable as error:  # a kernel that cannot take negative features, say
            refused = error
            continue
        score = float(metric.function(y_validation, candidate.predict(validation)))
        if best is None or best.score is None or metric.sign * (score - best.score) > 0:
            best = Tuned(candidate, chosen, score, _warnings(candidate))
    if best is None:
        assert refused is not None
        raise refused
    return best


def video_without_positives(y: Array) -> bool:
    """Whether average precision is undefined, because no instance is of the class."""
    return y.dtype == bool and not y.any()


def adapted(X: Features, classifier: Any) -> Features:
    """Bring features into the form a classifier takes: vectors, or bags of vectors where it pools over windows.

    Preprocessed clips are averaged on a fixed grid, the whole clip or every window of it.
    """
    if count(X) == 0:
        return X
    if not getattr(classifier, "takes_bags", False):
        return as_vectors(X)
    if isinstance(X, list) and X and X[0].ndim == 3:
        return [np.asarray(as_vectors([clip[a:b] for a, b in windows(len(clip), classifier.window)])) for clip in X]
    return X


def _warnings(model: Any) -> list[str]:
    warnings = []
    if getattr(model, "constant_", False):
        warnings.append("one class only in the fold: constant scores")
    return warnings
