"""Check a system in a worker: its code is not loaded here, and what it says of itself is held against its answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np

from assay.broad.data.dataset import Features, Inputs, Modality
from assay.broad.data.features import count, rows
from assay.broad.data.staging import staged
from assay.broad.data.violation import NotApplicable
from assay.broad.rules.bench import Check, Status, same
from assay.broad.rules.conformance import check_system
from assay.broad.rules.rules import RULES
from assay.broad.run.messages import receive, send
from assay.broad.run.remote import Remote, Surroundings, SystemFailed, plain_text
from assay.broad.run.sandbox import Worker
from assay.broad.run.serving import described
from assay.broad.run.warden import Walls
from assay.broad.systems.saved_learner import learner_file
from assay.broad.systems.team import Module, Parts
from assay.core.errors import AssayError, first_line

SECONDS = 600.0  # that checking one system may take


def check_apart(
    parts: Parts,
    inputs: Inputs,
    documents: Mapping[str, str],
    modality: Modality,
    around: Surroundings,
    learned_from: Inputs | None = None,
) -> list[Check]:
    """Check a team's system as `check_system` does, in workers.

    The checks of a single worker are what the system's own process says; whether it learns from the instances it is
    shown (D8) is found here, by comparing two workers.

    Args:
        parts: The team's preprocessor, learner and classifier.
        inputs: A few instances under neutral ids.
        documents: Places of the team's artifacts.
        modality: ``"video"`` or ``"text"``.
        around: What is hidden from workers.
        learned_from: Reviews that the preprocessor learns from; None for two thirds of the instances.
    """
    around = replace(around, limit_s=around.limit_s or SECONDS)
    with TemporaryDirectory(prefix="assay-check-") as place:
        given = staged(inputs, Path(place))
        seeing = replace(around, shown=(*around.shown, place))
        checks = _told(parts, given, documents, modality, seeing, learned_from)
        failed = {c.requirement for c in checks if c.status == "fail"}
        if not {"F8", "F6", "D8"} & failed:
            alone = _answers_alone(parts, given, seeing, learned_from)
            checks = [c for c in checks if alone is None or c.requirement != "D8"] + ([alone] if alone else [])
    return checks


def _told(
    parts: Parts,
    inputs: Inputs,
    documents: Mapping[str, str],
    modality: Modality,
    around: Surroundings,
    learned_from: Inputs | None,
) -> list[Check]:
    """What the system's own process finds."""
    shown = (*around.shown, *parts.preprocessor.places, *parts.learner.places, *parts.classifier.places)
    walls = Walls("assay.broad.rules.apart:serve", around.hidden, shown, kind=around.kind)
    if parts.trained_from is not None:
        try:
            trained = learner_file(parts.trained_from, around.hidden)
        except AssayError as error:
            return [Check("F6", "fail", first_line(error))]
        walls = replace(walls, shown=(*shown, str(trained)))
    with Worker(walls) as worker:
        try:
            worker.connection.send_bytes(pickle.dumps((parts, inputs, dict(documents), modality, learned_from)))
            if not worker.connection.poll(around.limit_s):
                return [Check("F8", "fail", f"checking took longer than {around.limit_s:g} s")]
            said, _ = receive(worker.connection, 0)
        except (EOFError, ConnectionError):
            code = int(worker.wait()["exit"])
            died = f"signal {-code}" if code < 0 else f"exit code {code}"
            return [Check("F8", "fail", f"the process died while the system was checked ({died})")]
        except AssayError as error:
            return [Check("F8", "fail", first_line(error))]
    if "error" in said:
        message = said["error"].get("message") if isinstance(said["error"], dict) else ""
        return [Check("F8", "fail", plain_text(message, 500))]
    return _checks(said.get("checks"))


def _checks(answer: Any) -> list[Check]:
    """The checks a worker answered with, each as it must be: one of every rule, and no other."""
    entries = answer if isinstance(answer, list) else []
    checks = []
    for (requirement, _), entry in zip(RULES, [*entries, *[None] * len(RULES)], strict=False):
        entry = entry if isinstance(entry, dict) else {}
        status: Status = entry["status"] if entry.get("status") in get_args(Status) else "fail"
        wrong = entry.get("requirement") != requirement
        sentence = "the system's process did not say" if wrong else plain_text(entry.get("sentence"), 500)
        checks.append(Check(requirement, "fail" if wrong else status, sentence))
    return checks


def serve(connection: Connection) -> None:
    """Check the system that the keeper sends, in a worker."""
    given = pickle.loads(connection.recv_bytes())
    try:
        send(connection, {"checks": [asdict(check) for check in check_system(*given)]})
    except BaseException as error:
        send(connection, {"error": described(error)})


def _answers_alone(parts: Parts, inputs: Inputs, around: Surroundings, learned_from: Inputs | None) -> Check | None:
    """Whether preprocessor and learner answer for a few instances as among all others; None if that is not known."""
    training = np.arange(len(inputs) * 2 // 3)
    few = np.random.default_rng(0).permutation(len(inputs))[: len(inputs) // 4]
    try:
        first = inputs.take(training) if learned_from is None else learned_from
        features = _both(parts.preprocessor, first, inputs, inputs.take(few), few, around, "preprocessor")
        if parts.trained_from is None:
            _both(parts.learner, rows(features, training), features, rows(features, few), few, around, "learner")
    except _Differs as difference:
        return Check("D8", "fail", str(difference))
    except (SystemFailed, NotApplicable, MemoryError):
        return None  # another check says why
    except AssayError as error:
        return Check("D8", "fail", first_line(error))
    return None


class _Differs(Exception):
    """Raised where two workers answer differently for the same instances."""


def _both(
    module: Module, learn: Any, everything: Any, some: Any, few: Any, around: Surroundings, what: str
) -> Features:
    with Remote(module, around) as worker:
        worker.fit(learn)
        state = worker.state()
    answer: Callable[[Any], Features] = lambda X: _fresh(module, state, X, around, what)  # noqa: E731
    together, alone = answer(everything), answer(some)
    if count(together) <= few.max() or not same(rows(together, few), alone):
        raise _Differs(f"the {what} answers otherwise for instances by themselves than among all others")
    return together


def _fresh(module: Module, state: bytes, X: Any, around: Surroundings, what: str) -> Features:
    with Remote(module, around) as worker:
        return worker.load(state).transform(X, what)
