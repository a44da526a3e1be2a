"""A system under test: its stages on a few instances, each made once, and the side effects of its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.broad.data.dataset import Array, Features, Inputs, Modality
from assay.broad.data.features import count, dense, finite, rows
from assay.broad.data.violation import NotApplicable, Violation
from assay.broad.run.messages import features_as_arrays, features_of_arrays
from assay.broad.run.tuning import adapted
from assay.broad.run.watch import Seen, watching
from assay.broad.systems.saved_learner import load_learner
from assay.broad.systems.team import Module, Parts
from assay.core.errors import AssayError, first_line

Status = Literal["pass", "fail", "non-conforming", "not checked"]


@dataclass(frozen=True)
class Check:
    """The result of checking one requirement.

    Args:
        requirement: Name of the requirement, such as ``J1``.
        status: ``"fail"`` where the protocol is broken; ``"non-conforming"`` where the system is not what the plan asks
            for, but can be evaluated.
        sentence: What the check showed.
    """

    requirement: str
    status: Status
    sentence: str


class Stopped(Exception):
    """Raised where a check needs a stage that failed; another check gives the reason."""


class Found(Exception):
    """Raised where a requirement is not met; the message says in what way."""

    def __init__(self, sentence: str, status: Status = "fail") -> None:
        super().__init__(sentence)
        self.status = status


@dataclass
class Bench:
    """The stages of a system, each made when it is first needed; one that fails stops all checks that need it.

    Args:
        parts: The team's preprocessor, learner and classifier.
        inputs: Instances to try the system on; it learns from the first two thirds.
        documents: Places of the team's artifacts.
        modality: ``"video"`` or ``"text"``.
        learned_from: Instances that the preprocessor learns from; None for the same two thirds. A vocabulary of few
            reviews is smaller than that of all, and a learner may be made for its size.
        made: Stages that were made, by name.
        seen: Side effects of the code while each stage was made, by name.
    """

    parts: Parts
    inputs: Inputs
    documents: Mapping[str, str]
    modality: Modality
    learned_from: Inputs | None = None
    made: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)

    def check(self, requirement: str, test: Callable[[Bench], str]) -> Check:
        """Check one requirement; an exception becomes a sentence too."""
        try:
            return Check(requirement, "pass", test(self))
        except Found as failure:
            return Check(requirement, failure.status, str(failure))
        except (Stopped, NotApplicable) as reason:
            return Check(requirement, "not checked", str(reason))
        except AssayError as error:
            return Check(requirement, "fail", first_line(error))
        except (Exception, SystemExit) as error:
            return Check(requirement, "fail", f"{type(error).__name__}: {first_line(error)}")

    def stage(self, name: str, make: Callable[[], Any]) -> Any:
        """Give the stage of a name, made by ``make()`` when it is first asked for."""
        if name not in self.made:
            self.made[name] = Stopped(f"the {name} failed")  # unless it comes to a good end
            with watching() as self.seen[name]:
                self.made[name] = make()
        if isinstance(self.made[name], Stopped):
            raise self.made[name]
        return self.made[name]

    @property
    def training(self) -> Array:
        """Numbers of the instances to learn from."""
        return np.arange(len(self.inputs) * 2 // 3)

    @property
    def modules(self) -> dict[str, Module]:
        """The modules of the system, by name."""
        return {n: getattr(self.parts, n) for n in ("preprocessor", "learner", "classifier")}

    @property
    def preprocessor(self) -> Any:
        """The preprocessor, fitted on the instances that it learns from."""
        return self.stage("preprocessor", self.new_preprocessor)

    def new_preprocessor(self) -> Any:
        """Make a preprocessor and have it learn."""
        given = self.inputs.take(self.training) if self.learned_from is None else self.learned_from
        return _itself(self.parts.preprocessor.build().fit(given), "preprocessor")

    @property
    def features(self) -> Features:
        """The features of all instances, one finite row for each."""
        preprocessor = self.preprocessor
        features: Features = self.stage(
            "preprocessing", lambda: self.checked(preprocessor.transform(self.inputs), "the preprocessor")
        )
        return features

    @property
    def learner(self) -> Any:
        """The learner, fitted here, or loaded if it was trained elsewhere."""

        def learn() -> Any:
            fresh = self.parts.learner.build()
            if self.parts.trained_from is not None:
                return load_learner(self.parts.trained_from, fresh)
            return _itself(fresh.fit(features), "learner")

        features = rows(self.features, self.training)
        return self.stage("learner", learn)

    @property
    def represented(self) -> Features:
        """The representation of all instances by the last layer, one finite row for each."""
        learner = self.learner
        features = self.features
        representation: Features = self.stage(
            "representation", lambda: self.checked(learner.transform(features), "the learner")
        )
        return representation

    def checked(self, given: Any, whose: str) -> Features:
        """Features as a run takes them from another process; what is not one finite row for each instance is found."""
        try:
            features = features_of_arrays(*features_as_arrays(given), whose)
            if not isinstance(features, list) and features.ndim < 2:
                raise Found(f"{whose} gives an array of shape {features.shape}, not instances × columns")
            if count(features) != len(self.inputs):
                raise Found(f"{whose} gives {count(features)} rows for {len(self.inputs)} instances")
            if not finite(features):
                raise Found(f"{whose} gives NaN or infinite values")
        except Violation as error:
            raise Found(str(error)) from error
        except TypeError as error:
            raise Found(f"{whose} gives what is no matrix of numbers ({first_line(error)})") from error
        return features

    @property
    def classifier(self) -> Any:
        """The classifier, fitted on made-up labels."""

        def learn() -> Any:
            fresh = self.parts.classifier.build()
            chosen = fresh.with_settings(**{name: values[0] for name, values in fresh.grid.items()})
            n = np.arange(len(self.inputs))
            y = n % 2 == 0 if self.modality == "video" else 1.0 + n % 5
            return chosen.fit(rows(adapted(represented, fresh), self.training), y[self.training])

        represented = self.represented
        return self.stage("classifier", learn)


def _itself(given: Any, what: str) -> Any:
    if given is None:
        raise Found(f"fit of the {what} gives None: it must give the {what} itself")
    return given


def same(a: Features, b: Features) -> bool:
    """Whether features are equal up to the rounding of float32 sums: 1e-7 of the largest value times √terms."""
    if count(a) != count(b):
        return False
    pairs = zip(dense(a), dense(b), strict=True)
    return all(
        x.shape == y.shape and np.allclose(x, y, rtol=0, atol=1e-4 * _largest(x), equal_nan=True) for x, y in pairs
    )


def _largest(x: Array) -> float:
    return float(np.nanmax(np.abs(x), initial=0.0))
