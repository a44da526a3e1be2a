"""A system under test: its stages on a few instances, each made once, and what its code did on the side meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.broad.data.dataset import Array, Features, Inputs, Modality
from assay.broad.data.features import count, dense, rows
from assay.broad.data.violation import NotApplicable
from assay.broad.run.tuning import adapted
from assay.broad.run.watch import Seen, watching
from assay.broad.systems.saved_learner import load_learner
from assay.broad.systems.team import Module, Parts
from assay.core.errors import AssayError, first_line

Status = Literal["pass", "fail", "non-conforming", "not checked"]


@dataclass(frozen=True)
class Check:
    """What came of one requirement.

    Args:
        requirement: Its name, such as ``J1``.
        status: ``"fail"`` where the protocol is broken; ``"non-conforming"`` where the system is not what the plan asks
            for, but can be evaluated.
        sentence: What was found.
    """

    requirement: str
    status: Status
    sentence: str


class Stopped(Exception):
    """What a check needs is not there, for a reason another check has given."""


class Found(Exception):
    """A check did not pass."""

    def __init__(self, sentence: str, status: Status = "fail") -> None:
        super().__init__(sentence)
        self.status = status


@dataclass
class Bench:
    """Stages of a system, each made when it is first needed; one that failed stops all checks that need it.

    Args:
        parts: What the team brings.
        inputs: Instances; the first two thirds are learned from.
        documents: Where the team's artifacts are.
        modality: ``"video"`` or ``"text"``.
        made: Stages, by name.
        seen: What was done on the side while they were made.
    """

    parts: Parts
    inputs: Inputs
    documents: Mapping[str, str]
    modality: Modality
    made: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)

    def check(self, requirement: str, test: Callable[[Bench], str]) -> Check:
        """What came of one requirement; an exception is a sentence too."""
        try:
            return Check(requirement, "pass", test(self))
        except Found as found:
            return Check(requirement, found.status, str(found))
        except (Stopped, NotApplicable) as why:
            return Check(requirement, "not checked", str(why))
        except AssayError as error:
            return Check(requirement, "fail", first_line(error))
        except (Exception, SystemExit) as error:
            return Check(requirement, "fail", f"{type(error).__name__}: {first_line(error)}")

    def stage(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make()`` gives, the first time it is asked for."""
        if name not in self.made:
            self.made[name] = Stopped(f"the {name} failed")  # unless it comes to a good end
            with watching() as self.seen[name]:
                self.made[name] = make()
        if isinstance(self.made[name], Stopped):
            raise self.made[name]
        return self.made[name]

    @property
    def training(self) -> Array:
        """Instances to learn from."""
        return np.arange(len(self.inputs) * 2 // 3)

    @property
    def modules(self) -> dict[str, Module]:
        """All parts, by name."""
        return {n: getattr(self.parts, n) for n in ("preprocessor", "learner", "classifier")}

    @property
    def preprocessor(self) -> Any:
        """Fitted."""
        return self.stage("preprocessor", lambda: self.parts.preprocessor.build().fit(self.inputs.take(self.training)))

    @property
    def features(self) -> Features:
        """Of all instances."""
        preprocessor = self.preprocessor
        features: Features = self.stage("preprocessing", lambda: preprocessor.transform(self.inputs))
        return features

    @property
    def learner(self) -> Any:
        """Fitted here, or elsewhere where it comes pre-trained."""

        def learn() -> Any:
            fresh = self.parts.learner.build()
            if self.parts.trained_from is not None:
                return load_learner(self.parts.trained_from, fresh)
            return fresh.fit(features)

        features = rows(self.features, self.training)
        return self.stage("learner", learn)

    @property
    def represented(self) -> Features:
        """All instances, by the last layer."""
        learner, features = self.learner, self.features
        found: Features = self.stage("representation", lambda: learner.transform(features))
        return found

    @property
    def classifier(self) -> Any:
        """Fitted on made-up labels."""

        def learn() -> Any:
            fresh = self.parts.classifier.build()
            chosen = fresh.with_settings(**{name: values[0] for name, values in fresh.grid.items()})
            n = np.arange(len(self.inputs))
            y = n % 2 == 0 if self.modality == "video" else 1.0 + n % 5
            return chosen.fit(rows(adapted(represented, fresh), self.training), y[self.training])

        represented = self.represented
        return self.stage("classifier", learn)


def same(a: Features, b: Features) -> bool:
    """Equal but for float32 sums in another order, which are off by 1e-7 of the largest value times √terms."""
    if count(a) != count(b):
        return False
    pairs = zip(dense(a), dense(b), strict=True)
    return all(
        x.shape == y.shape and np.allclose(x, y, rtol=0, atol=1e-4 * _largest(x), equal_nan=True) for x, y in pairs
    )


def _largest(x: Array) -> float:
    return float(np.nanmax(np.abs(x), initial=0.0))
