"""Whether a system keeps to the rules: tried on a few instances, one sentence for each requirement.

The plan, §3.2 (validation); as scikit-learn checks its estimators.
"""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from assay.broad.adapter import algorithms, stack_of
from assay.broad.condition import adapted
from assay.broad.data import Array, Features, Inputs, Modality
from assay.broad.features import count, finite, rows
from assay.broad.modules.classifier import HIGHEST, LOWEST, NotApplicable
from assay.broad.state import state_hash
from assay.broad.systems import FORBIDDEN, Module, Parts
from assay.broad.trained import load_learner
from assay.broad.watch import Seen, watching
from assay.errors import AssayError, first_line
from assay.stimuli.sequences import Clip

Status = Literal["pass", "fail", "non-conforming", "not checked"]
LEAST = 24  # instances
ALONE = 4  # instances that are transformed by themselves
HARMLESS = ("lscpu",)  # scikit-learn counts the cores
DOCUMENTS = {
    "architecture": "a figure of the architecture, with prose",
    "pseudocode": "pseudocode, with prose",
    "example": "a detailed example",
    "source": "commented source code",
}


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


def check_system(
    parts: Parts, inputs: Inputs, documents: Mapping[str, str] | None = None, modality: Modality | None = None
) -> list[Check]:
    """Try a team's preprocessor, learner and classifier on a few instances.

    The parts learn from two thirds of the instances; the rest stand for test instances. No label is needed: the
    classifier learns made-up ones. Whatever a part does wrong, an exception too, becomes a sentence.

    Args:
        parts: What the team brings.
        inputs: At least 24 instances; tens are enough.
        documents: Where the team's artifacts are, by the names in `DOCUMENTS`.
        modality: ``"video"`` or ``"text"``, if the instances do not tell.
    """
    if len(inputs) < LEAST:
        raise AssayError(f"inputs: {len(inputs)} instances are too few to check a system with, give at least {LEAST}")
    if modality is None:
        modality = "video" if isinstance(inputs.items[0], Clip) else "text"
    bench = _Bench(parts, inputs, documents or {}, modality)
    return [bench.check(requirement, test) for requirement, test in _TESTS]


def format_checks(checks: Sequence[Check]) -> str:
    """A line for each check.

    >>> print(format_checks([Check("J1", "pass", "3 layers"), Check("J4", "non-conforming", "no example")]))
    J1  pass            3 layers
    J4  non-conforming  no example
    """
    return "\n".join(f"{c.requirement:3} {c.status:15} {c.sentence}" for c in checks)


class _Stopped(Exception):
    """What a check needs is not there, for a reason another check has given."""


class _Found(Exception):
    """A check did not pass."""

    def __init__(self, sentence: str, status: Status = "fail") -> None:
        super().__init__(sentence)
        self.status = status


@dataclass
class _Bench:
    """A system under test: each stage is made once, when it is first needed."""

    parts: Parts
    inputs: Inputs
    documents: Mapping[str, str]
    modality: Modality
    made: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)

    def check(self, requirement: str, test: Callable[[_Bench], str]) -> Check:
        try:
            return Check(requirement, "pass", test(self))
        except _Found as found:
            return Check(requirement, found.status, str(found))
        except (_Stopped, NotApplicable) as why:
            return Check(requirement, "not checked", str(why))
        except AssayError as error:
            return Check(requirement, "fail", first_line(error))
        except (Exception, SystemExit) as error:
            return Check(requirement, "fail", f"{type(error).__name__}: {first_line(error)}")

    def stage(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.made:
            self.made[name] = _Stopped(f"the {name} failed")  # unless it comes to a good end
            with watching() as self.seen[name]:
                self.made[name] = make()
        if isinstance(self.made[name], _Stopped):
            raise self.made[name]
        return self.made[name]

    @property
    def training(self) -> Array:
        return np.arange(len(self.inputs) * 2 // 3)

    @property
    def modules(self) -> dict[str, Module]:
        return {n: getattr(self.parts, n) for n in ("preprocessor", "learner", "classifier")}

    @property
    def preprocessor(self) -> Any:
        return self.stage("preprocessor", lambda: self.parts.preprocessor.build().fit(self.inputs.take(self.training)))

    @property
    def features(self) -> Features:
        preprocessor = self.preprocessor
        features: Features = self.stage("preprocessing", lambda: preprocessor.transform(self.inputs))
        return features

    @property
    def learner(self) -> Any:
        def learn() -> Any:
            fresh = self.parts.learner.build()
            if self.parts.trained_from is not None:
                return load_learner(self.parts.trained_from, fresh)
            return fresh.fit(features)

        features = rows(self.features, self.training)
        return self.stage("learner", learn)

    @property
    def represented(self) -> Features:
        learner, features = self.learner, self.features
        found: Features = self.stage("representation", lambda: learner.transform(features))
        return found

    @property
    def classifier(self) -> Any:
        def learn() -> Any:
            fresh = self.parts.classifier.build()
            chosen = fresh.with_settings(**{name: values[0] for name, values in fresh.grid.items()})
            n = np.arange(len(self.inputs))
            y = n % 2 == 0 if self.modality == "video" else 1.0 + n % 5
            return chosen.fit(rows(adapted(represented, fresh), self.training), y[self.training])

        represented = self.represented
        return self.stage("classifier", learn)


# -- does it run ------------------------------------------------------------------------------------------


def _preprocesses(bench: _Bench) -> str:
    _require_rows(bench, bench.features, "the preprocessor")
    return "the preprocessor gives finite features, one row for each instance"


def _learns(bench: _Bench) -> str:
    learner = bench.learner
    if learner is None:
        raise _Found("fit of the learner gives None: it must give the learner itself")
    _require_rows(bench, bench.represented, "the learner")
    return "the learner learns from features and gives finite representations, one row for each instance"


def _require_rows(bench: _Bench, features: Features, whose: str) -> None:
    if count(features) != len(bench.inputs):
        raise _Found(f"{whose} gives {count(features)} rows for {len(bench.inputs)} instances")
    if not finite(features):
        raise _Found(f"{whose} gives NaN or infinite values")


# -- the learner ------------------------------------------------------------------------------------------


def _layers(bench: _Bench) -> str:
    learner = bench.learner
    names, before = list(learner.layers), list(bench.parts.learner.build().layers)
    if names != before:
        raise _Found(f"the layers are {before} before learning and {names} after it")
    if len(set(names)) != len(names):
        raise _Found(f"two layers of {names} have one name")
    if len(names) < 3:
        raise _Found(f"{len(names)} layer{'s' * (len(names) != 1)}, at least 3 are asked for", "non-conforming")
    found = algorithms(learner)
    if found is None:
        raise _Found(f"{len(names)} layers, but no attribute 'algorithm' says by what they learn", "not checked")
    if len(found) != len(names) or len(set(found)) != 1:
        raise _Found(f"{len(names)} layers of more than one algorithm: {', '.join(found)}", "non-conforming")
    return f"{len(names)} layers of one algorithm ({found[0]})"


def _representations(bench: _Bench) -> str:
    learner, features = bench.learner, bench.features
    names = list(learner.layers)
    for i, name in enumerate(names):
        found = learner.transform(features, layer=i)
        _require_rows(bench, found, f"layer {name}")
    if not _same(found, bench.represented):
        raise _Found("transform without a layer does not give the last one")
    return f"each of {len(names)} layers can be output"


def _learning_everywhere(bench: _Bench) -> str:
    learner, n = bench.learner, len(bench.learner.layers)
    after, before = _weights(learner, n), _weights_before(bench, learner, n)
    if after is None or before is None:
        raise _Found(
            "it shows no weights by layer: a stack, or fitted lists with an entry for each layer and untrained(X)",
            "not checked",
        )
    changes = [_change(a, b) for a, b in zip(before, after, strict=True)]
    asleep = [name for name, change in zip(learner.layers, changes, strict=True) if not change > 0]
    if asleep:
        raise _Found(f"no weight changes while it learns in {', '.join(asleep)}", "non-conforming")
    told = ", ".join(f"{c:.2g}" for c in changes)
    return f"all layers learn: weights change by {told} of their size, from the first layer on"


def _weights(learner: Any, layers: int) -> list[list[Array]] | None:
    """What each layer has learned."""
    stack = stack_of(learner)
    if stack is not None:
        return [[v.detach().cpu().double().numpy() for v in part.state_dict().values()] for part in stack.stack]
    found = [
        value
        for name, value in sorted(getattr(learner, "__dict__", {}).items())
        if name.endswith("_") and isinstance(value, (list, tuple)) and len(value) == layers
    ]
    return [[np.asarray(value[i]) for value in found] for i in range(layers)] if found else None


def _weights_before(bench: _Bench, learner: Any, layers: int) -> list[list[Array]] | None:
    stack = stack_of(learner)
    if stack is not None:
        keys = [[f"{i}.{name}" for name in part.state_dict()] for i, part in enumerate(stack.stack)]
        return [[stack.start[key].detach().cpu().double().numpy() for key in part] for part in keys]
    fresh = bench.parts.learner.build()
    if not hasattr(fresh, "untrained"):
        return None
    fresh.untrained(rows(bench.features, bench.training))
    return _weights(fresh, layers)


def _change(before: list[Array], after: list[Array]) -> float:
    """‖w − w₀‖/‖w₀‖ of all weights of a layer; 1 where their number has changed."""
    if [a.shape for a in before] != [a.shape for a in after]:
        return 1.0
    moved = np.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(after, before, strict=True)))
    size = np.sqrt(sum(float((b**2).sum()) for b in before))
    return float(moved / size) if size > 0 else float(moved)


def _shallow(bench: _Bench) -> str:
    alone, fresh = bench.learner.shallow(), bench.parts.learner.build().shallow()
    names = list(alone.layers)
    if len(names) != 1:
        raise _Found(f"shallow() has {len(names)} layers, not exactly one")
    if state_hash(alone) != state_hash(fresh):
        raise _Found("shallow() keeps what the deep learner has learned: it must not be fitted")
    found = alone.fit(rows(bench.features, bench.training)).transform(bench.features)
    _require_rows(bench, found, "the shallow learner")
    return f"shallow() has one layer ({names[0]}) and is not fitted"


# -- parameters and documents -----------------------------------------------------------------------------


def _parameters(bench: _Bench) -> str:
    number = 0
    for what, module in bench.modules.items():
        for name, parameter in inspect.signature(module.factory()).parameters.items():
            if name.lower() in FORBIDDEN:
                raise _Found(f"the {what} has a parameter {name!r}, which would choose an architecture")
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise _Found(f"the {what} takes any parameters (*{name}): name those that may be tuned")
            number += 1
        try:
            json.dumps(dict(module.parameters))
        except (TypeError, ValueError) as error:
            raise _Found(f"parameters of the {what} cannot stand in a file ({first_line(error)})") from error
    return f"{number} parameters can be tuned from a file; none chooses an architecture"


def _artifacts(bench: _Bench) -> str:
    missing = []
    for name, what in DOCUMENTS.items():
        place = bench.documents.get(name, "").strip()
        if not place and name == "source" and all(inspect.getdoc(m.factory()) for m in bench.modules.values()):
            continue
        if not place:
            missing.append(what)
        elif "://" not in place and not Path(place).exists():
            missing.append(f"{what} (there is no {place})")
    if missing:
        raise _Found(f"not submitted: {'; '.join(missing)}", "non-conforming")
    return "architecture, pseudocode, example and commented source are there"


# -- the preprocessor -------------------------------------------------------------------------------------


def _row_independent(bench: _Bench) -> str:
    preprocessor, together = bench.preprocessor, bench.features
    some = np.linspace(0, len(bench.inputs) - 1, ALONE).astype(np.int64)
    for i in some:
        if not _same(rows(together, np.array([i])), preprocessor.transform(bench.inputs.take(np.array([i])))):
            raise _Found(f"the preprocessor gives otherwise for {bench.inputs.ids[i]} alone than among the others")
    return "the preprocessor transforms each instance by itself"


def _deterministic(bench: _Bench) -> str:
    if not _same(bench.features, bench.preprocessor.transform(bench.inputs)):
        raise _Found("the preprocessor transforms the same instances otherwise the second time")
    again = bench.parts.preprocessor.build().fit(bench.inputs.take(bench.training))
    if not _same(bench.features, again.transform(bench.inputs)):
        raise _Found("the preprocessor, fitted again on the same instances, transforms otherwise")
    return "the preprocessor gives the same when it is fitted again, and when it transforms again"


def _fixed(bench: _Bench) -> str:
    preprocessor = bench.preprocessor
    known = state_hash(preprocessor)
    preprocessor.transform(bench.inputs)
    if state_hash(preprocessor) != known:
        raise _Found("the preprocessor changes when it transforms: it may learn from training instances only")
    return "the preprocessor learns nothing when it transforms"


def _nothing_on_the_side(bench: _Bench) -> str:
    _ = bench.features
    for stage in ("preprocessor", "preprocessing"):
        _require_alone(bench, stage, "the preprocessor")
    return "the preprocessor uses no other file, no network and no program"


def _require_alone(bench: _Bench, stage: str, what: str) -> None:
    seen = bench.seen[stage]
    if seen.network:
        raise _Found(f"{what} goes to the network ({seen.network[0]})")
    programs = [program for program in seen.programs if program not in HARMLESS]
    if programs:
        unseen: Status = "not checked" if stage == "learner" else "fail"
        raise _Found(f"{what} runs {programs[0]}, and nobody sees what that does", unseen)
    files = set(seen.outside) - set(seen.under([tempfile.gettempdir()]))
    if files:
        with watching() as reading:  # clips are files themselves
            for item in bench.inputs.items if not sparse.issparse(bench.inputs.items) else ():
                for _ in item.frames() if isinstance(item, Clip) else ():
                    pass
        files -= set(reading.files)
    if files:
        raise _Found(f"{what} opens {min(files)}, which it was not given")


# -- no learning at test time, no labels -------------------------------------------------------------------


def _no_learning_when_shown(bench: _Bench) -> str:
    learner = bench.learner
    _require_fixed("learner", learner, learner.transform, bench.features)
    return "the learner gives the same for instances in another order or number, and learns nothing from them"


def _no_learning_when_predicting(bench: _Bench) -> str:
    classifier = bench.classifier
    _require_fixed("classifier", classifier, classifier.predict, adapted(bench.represented, classifier))
    return "the classifier gives the same for instances in another order or number, and learns nothing from them"


def _require_fixed(what: str, thing: Any, answer: Callable[[Features], Features], X: Features) -> None:
    known, n = state_hash(thing), count(X)
    order, half = np.random.default_rng(0).permutation(n), np.arange(n // 2)
    found, shuffled, fewer = answer(X), answer(rows(X, order)), answer(rows(X, half))
    if state_hash(thing) != known:
        raise _Found(f"the {what} changes when it is shown instances: it learns at test time")
    if not _same(rows(found, order), shuffled):
        raise _Found(f"the {what} answers otherwise when instances come in another order")
    if not _same(rows(found, half), fewer):
        raise _Found(f"the {what} answers otherwise when instances come in another number")


def _no_labels(bench: _Bench) -> str:
    if [f.name for f in fields(bench.inputs)] != ["items", "ids"]:
        raise _Found("inputs hold more than items and ids")
    for what, thing in (("preprocessor", bench.preprocessor), ("learner", bench.learner)):
        given = list(inspect.signature(thing.fit).parameters.values())[1:]
        needed = [p.name for p in given if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        if needed:
            raise _Found(f"fit of the {what} wants {needed[0]}; it is called with instances only")
    _require_alone(bench, "learner", "the learner")
    return "preprocessor and learner are fitted on instances only: no labels, no other file, no network"


def _confidences(bench: _Bench) -> str:
    classifier = bench.classifier
    found = np.asarray(classifier.predict(adapted(bench.represented, classifier)), dtype=np.float64)
    low, high = (0, 1) if bench.modality == "video" else (LOWEST, HIGHEST)
    if found.shape != (len(bench.inputs),):
        raise _Found(f"the classifier gives predictions of shape {found.shape} for {len(bench.inputs)} instances")
    if not ((found >= low) & (found <= high)).all():  # not NaN either
        raise _Found(f"the classifier gives predictions outside of [{low}, {high}], or NaN")
    return f"predictions lie in [{low}, {high}]"


def _same(a: Features, b: Features) -> bool:
    """Equal but for float32 sums in another order, which are off by 1e-7 of the largest value times √terms."""
    if count(a) != count(b):
        return False
    pairs = zip(_arrays(a), _arrays(b), strict=True)
    return all(
        x.shape == y.shape and np.allclose(x, y, rtol=0, atol=1e-4 * _largest(x), equal_nan=True) for x, y in pairs
    )


def _arrays(features: Features) -> list[Array]:
    if isinstance(features, list):
        return features
    dense: Any = features
    return [np.asarray(dense.todense() if sparse.issparse(dense) else dense)]


def _largest(x: Array) -> float:
    return float(np.nanmax(np.abs(x), initial=0.0))


_TESTS: tuple[tuple[str, Callable[[_Bench], str]], ...] = (
    ("F8", _preprocesses),
    ("F6", _learns),
    ("J1", _layers),
    ("J2", _representations),
    ("J3", _parameters),
    ("J4", _artifacts),
    ("J5", _learning_everywhere),
    ("J6", _row_independent),
    ("J6", _deterministic),
    ("J6", _fixed),
    ("J6", _nothing_on_the_side),
    ("G1", _confidences),
    ("D8", _no_learning_when_shown),
    ("D8", _no_learning_when_predicting),
    ("D9", _no_labels),
    ("F5", _shallow),
)
