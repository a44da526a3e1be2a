"""The plan's requirements of a system, each tried on a bench: a sentence if it is met, a raised `Found` if not."""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Features
from assay.broad.data.features import count, rows
from assay.broad.rules.bench import Bench, Found, Status, same
from assay.broad.rules.structure import parameters_that_choose
from assay.broad.rules.weight_change import layers_not_learned, weight_changes
from assay.broad.run.tuning import adapted
from assay.broad.run.watch import watching
from assay.broad.systems.adapter import algorithms
from assay.broad.systems.classifiers.classifier import HIGHEST, LOWEST
from assay.broad.systems.team import require_tuning
from assay.core.errors import first_line
from assay.core.fingerprint import state_fingerprint
from assay.core.names import counted
from assay.stimuli.clips import Clip

ALONE = 4  # number of instances that are also transformed by themselves
HARMLESS = ("lscpu",)  # scikit-learn starts it to count the cores
DOCUMENTS = {
    "architecture": "a figure of the architecture, with prose",
    "pseudocode": "pseudocode, with prose",
    "example": "a detailed example",
    "source": "commented source code",
}

# -- does it run ------------------------------------------------------------------------------------------


def _preprocesses(bench: Bench) -> str:
    _ = bench.features
    return "the preprocessor gives finite features, one row for each instance"


def _learns(bench: Bench) -> str:
    _ = bench.represented
    return "the learner learns from features and gives finite representations, one row for each instance"


# -- the learner ------------------------------------------------------------------------------------------


def _layers(bench: Bench) -> str:
    learner = bench.learner
    names = list(learner.layers)
    before = list(bench.parts.learner.build().layers)
    if names != before:
        raise Found(f"the layers are {before} before learning and {names} after it")
    if len(set(names)) != len(names):
        raise Found(f"two layers of {names} have one name")
    if len(names) < 3:
        raise Found(f"{counted(len(names), 'layer')}, at least 3 are asked for", "non-conforming")
    algorithm_names = algorithms(learner)
    if algorithm_names is None:
        raise Found(f"{len(names)} layers, but no attribute 'algorithm' says by what they learn", "not checked")
    if len(algorithm_names) != len(names) or len(set(algorithm_names)) != 1:
        raise Found(f"{len(names)} layers of more than one algorithm: {', '.join(algorithm_names)}", "non-conforming")
    return f"{len(names)} layers of one algorithm ({algorithm_names[0]})"


def _representations(bench: Bench) -> str:
    learner = bench.learner
    features = bench.features
    names = list(learner.layers)
    for i, name in enumerate(names):
        represented = bench.checked(learner.transform(features, layer=i), f"layer {name}")
    if not same(represented, bench.represented):
        raise Found("transform without a layer does not give the last one")
    return f"each of {len(names)} layers can be output"


def _learning_everywhere(bench: Bench) -> str:
    changes = weight_changes(bench)
    if changes is None:
        raise Found(
            "it shows no weights by layer: a stack, or fitted lists with an entry for each layer and untrained(X)",
            "not checked",
        )
    fixed, by_chance = layers_not_learned(bench)
    if fixed:
        raise Found(f"no weight changes while it learns in {', '.join(fixed)}", "non-conforming")
    if by_chance:
        raise Found(
            f"weights of {', '.join(by_chance)} differ as much after nearly the same data as after other data: they "
            "are drawn at random, or the learner has no seed",
            "not checked",
        )
    shares = ", ".join(f"{c:.2g}" for c in changes)
    return f"all layers learn: weights change by {shares} of their size, from the first layer on"


def _shallow(bench: Bench) -> str:
    shallow = bench.learner.shallow()
    fresh = bench.parts.learner.build().shallow()
    names = list(shallow.layers)
    if len(names) != 1:
        raise Found(f"shallow() has {len(names)} layers, not exactly one")
    if state_fingerprint(shallow) != state_fingerprint(fresh):
        raise Found("shallow() keeps what the deep learner has learned: it must not be fitted")
    bench.checked(shallow.fit(rows(bench.features, bench.training)).transform(bench.features), "the shallow learner")
    return f"shallow() has one layer ({names[0]}) and is not fitted"


# -- parameters and documents -----------------------------------------------------------------------------


def _parameters(bench: Bench) -> str:
    number = 0
    for what, module in bench.modules.items():
        known = inspect.signature(module.factory()).parameters
        require_tuning({n: module.parameters.get(n, p.default) for n, p in known.items()}, f"the {what}")
        for name, parameter in known.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise Found(f"the {what} takes any parameters (*{name}): name those that may be tuned")
            number += 1
        try:
            json.dumps(dict(module.parameters))
        except (TypeError, ValueError) as error:
            raise Found(f"parameters of the {what} cannot stand in a file ({first_line(error)})") from error
    for name, parts in parameters_that_choose(bench).items():
        raise Found(f"the learner's parameter {name!r} chooses an architecture: by default it has {parts}")
    return f"{number} parameters can be tuned from a file; none chooses an architecture"


def _artifacts(bench: Bench) -> str:
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
        raise Found(f"not submitted: {'; '.join(missing)}", "non-conforming")
    return "architecture, pseudocode, example and commented source are there"


# -- the preprocessor -------------------------------------------------------------------------------------


def _row_independent(bench: Bench) -> str:
    preprocessor = bench.preprocessor
    together = bench.features
    chosen = np.linspace(0, len(bench.inputs) - 1, ALONE).astype(np.int64)
    for i in chosen:
        if not same(rows(together, np.array([i])), preprocessor.transform(bench.inputs.take(np.array([i])))):
            raise Found(f"the preprocessor gives otherwise for {bench.inputs.ids[i]} alone than among the others")
    return "the preprocessor transforms each instance by itself"


def _deterministic(bench: Bench) -> str:
    if not same(bench.features, bench.preprocessor.transform(bench.inputs)):
        raise Found("the preprocessor transforms the same instances otherwise the second time")
    if not same(bench.features, bench.new_preprocessor().transform(bench.inputs)):
        raise Found("the preprocessor, fitted again on the same instances, transforms otherwise")
    return "the preprocessor gives the same when it is fitted again, and when it transforms again"


def _fixed(bench: Bench) -> str:
    preprocessor = bench.preprocessor
    known = state_fingerprint(preprocessor)
    preprocessor.transform(bench.inputs)
    if state_fingerprint(preprocessor) != known:
        raise Found("the preprocessor changes when it transforms: it may learn from training instances only")
    return "the preprocessor learns nothing when it transforms"


def _nothing_on_the_side(bench: Bench) -> str:
    _ = bench.features
    for stage in ("preprocessor", "preprocessing"):
        _require_alone(bench, stage, "the preprocessor")
    return "the preprocessor uses no other file, no network and no program"


def _require_alone(bench: Bench, stage: str, what: str) -> None:
    seen = bench.seen[stage]
    if seen.network:
        raise Found(f"{what} goes to the network ({seen.network[0]})")
    programs = [program for program in seen.programs if program not in HARMLESS]
    if programs:
        declared = bench.parts.preprocessor.name.startswith("subprocess")  # so that is how it works
        status: Status = "not checked" if stage == "learner" or declared else "fail"
        raise Found(f"{what} runs {programs[0]}, and nobody sees what that does", status)
    files = set(seen.outside) - set(seen.under([tempfile.gettempdir()]))
    if files:
        with watching() as reading:  # clips are files themselves
            for item in bench.inputs.items if not sparse.issparse(bench.inputs.items) else ():
                for _ in item.frames() if isinstance(item, Clip) else ():
                    pass
        files -= set(reading.files)
    if files:
        raise Found(f"{what} opens {min(files)}, which it was not given")


# -- no learning at test time, no labels -------------------------------------------------------------------


def _no_learning_when_shown(bench: Bench) -> str:
    learner = bench.learner
    _require_fixed("learner", learner, learner.transform, bench.features)
    return "the learner gives the same for instances in another order or number, and learns nothing from them"


def _no_learning_when_predicting(bench: Bench) -> str:
    classifier = bench.classifier
    _require_fixed("classifier", classifier, classifier.predict, adapted(bench.represented, classifier))
    return "the classifier gives the same for instances in another order or number, and learns nothing from them"


def _require_fixed(what: str, thing: Any, answer: Callable[[Features], Features], X: Features) -> None:
    known = state_fingerprint(thing)
    n = count(X)
    order = np.random.default_rng(0).permutation(n)
    half = np.arange(n // 2)
    expected = answer(X)
    shuffled = answer(rows(X, order))
    fewer = answer(rows(X, half))
    if state_fingerprint(thing) != known:
        raise Found(f"the {what} changes when it is shown instances: it learns at test time")
    if not same(rows(expected, order), shuffled):
        raise Found(f"the {what} answers otherwise when instances come in another order")
    if not same(rows(expected, half), fewer):
        raise Found(f"the {what} answers otherwise when instances come in another number")


def _no_labels(bench: Bench) -> str:
    if [f.name for f in fields(bench.inputs)] != ["items", "ids"]:
        raise Found("inputs hold more than items and ids")
    for what, thing in (("preprocessor", bench.preprocessor), ("learner", bench.learner)):
        given = list(inspect.signature(thing.fit).parameters.values())[1:]
        needed = [p.name for p in given if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        if needed:
            raise Found(f"fit of the {what} wants {needed[0]}; it is called with instances only")
    _require_alone(bench, "learner", "the learner")
    return "preprocessor and learner are fitted on instances only: no labels, no other file, no network"


def _confidences(bench: Bench) -> str:
    classifier = bench.classifier
    predictions = np.asarray(classifier.predict(adapted(bench.represented, classifier)), dtype=np.float64)
    low, high = (0, 1) if bench.modality == "video" else (LOWEST, HIGHEST)
    if predictions.shape != (len(bench.inputs),):
        raise Found(f"the classifier gives predictions of shape {predictions.shape} for {len(bench.inputs)} instances")
    if not ((predictions >= low) & (predictions <= high)).all():  # not NaN either
        raise Found(f"the classifier gives predictions outside of [{low}, {high}], or NaN")
    return f"predictions lie in [{low}, {high}]"


RULES: tuple[tuple[str, Callable[[Bench], str]], ...] = (
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
