"""What a worker does: it makes a module of a team's code and does with it what the keeper asks.

Only here is a team's code imported, built, unpickled and called. The checks made here help an honest team (files that
must not be opened, state that changes); what protects the evaluation is that workers hold nothing worth taking, and
that the keeper compares the answers of workers that cannot speak to each other (`assay.broad.run.remote`).
"""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from assay.broad.data.dataset import Array, Features, Inputs
from assay.broad.data.features import joined, rows
from assay.broad.data.violation import NotApplicable, Violation
from assay.broad.run.messages import features_as_arrays, send
from assay.broad.run.tuning import adapted
from assay.broad.run.watch import Seen, watching
from assay.broad.systems.saved_learner import learner_from_bytes
from assay.broad.systems.team import Module
from assay.core.errors import AssayError, first_line
from assay.core.fingerprint import state_fingerprint

Answer = tuple[dict[str, Any], list[Array]]
Chosen = tuple[tuple[str, Array | None], ...]  # parts, and which of their rows (None for all)


def serve(connection: Connection) -> None:
    """Answer a keeper's questions until it has none left."""
    server = Server()
    with watching() as seen:
        while True:
            name, arguments = pickle.loads(connection.recv_bytes())
            try:
                said, arrays = getattr(server, name)(**arguments)
                if violation := server.peeking(seen):
                    raise violation
                send(connection, said, arrays)
            except (EOFError, ConnectionError):
                raise
            except BaseException as error:  # also sys.exit: it ends this run alone
                send(connection, {"error": described(server.peeking(seen) or error)})


def described(error: BaseException) -> dict[str, str]:
    """An error as plain text."""
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, Violation):
        return {"kind": "violation", "status": error.status, "message": str(error)}
    if isinstance(error, NotApplicable):
        return {"kind": "not applicable", "message": str(error)}
    if isinstance(error, AssayError):
        return {"kind": "assay", "message": str(error)}
    if isinstance(error, MemoryError):
        return {"kind": "memory", "message": first_line(error) or "MemoryError"}
    return {"kind": "other", "message": f"{type(error).__name__}: {first_line(error)}", "trace": trace}


class Server:
    """One module, and what it was given."""

    def __init__(self) -> None:
        self.forbidden: tuple[str, ...] = ()
        self.peeked: list[str] = []
        self.harmless: set[str] = set()
        self.module: Module | None = None
        self.thing: Any = None
        self.parts: dict[str, Features] = {}
        self.chosen: dict[Any, Features] = {}
        self.fitted: dict[int, Any] = {}
        self.made = 0

    def peeking(self, seen: Seen) -> Violation | None:
        """The violation, if a file that holds labels was opened."""
        opened = Seen(files=[file for file in dict.fromkeys(seen.files) if file not in self.harmless])
        self.peeked += opened.under(self.forbidden) if self.forbidden else []
        self.harmless.update(opened.files)  # looked at once: there are many, and a question is asked often
        seen.files.clear()
        return Violation("peeked", f"the system opened {self.peeked[0]}, where labels are") if self.peeked else None

    # -- any module ---------------------------------------------------------------------------------------

    def start(self, module: Module, forbidden: tuple[str, ...], threads: int, shallow: bool = False) -> Answer:
        """Import and build the module; say what its layers and its grid are."""
        torch.set_num_threads(threads)
        self.forbidden = forbidden
        self.module = module
        self.thing = module.build()
        if shallow:
            self.thing = self.thing.shallow()
        said: dict[str, Any] = {"type": type(self.thing).__name__}
        if hasattr(self.thing, "layers"):
            said["layers"] = [str(name) for name in self.thing.layers]
        if hasattr(self.thing, "grid"):
            said["grid"] = {str(name): [plain(v) for v in values] for name, values in self.thing.grid.items()}
        return said, []

    def load(self, state: bytes, careful: bool) -> Answer:
        """Take the state of a module that learned in another process, or elsewhere."""
        self.thing = learner_from_bytes(state, self.thing) if careful else pickle.loads(state)
        return {}, []

    def state(self) -> Answer:
        """The module as it is now, for another worker."""
        return {}, [_pickled(self.thing)]

    def fit(self, X: Inputs | Features) -> Answer:
        """Learn from instances or features."""
        given = self.thing.fit(X)
        if given is None:
            raise AssayError(f"fit of {type(self.thing).__name__} gives None: it must give the module itself")
        self.thing = given
        return {}, []

    def untrained(self, X: Features) -> Answer:
        """Take random weights in place of learned ones."""
        if not hasattr(self.thing, "untrained"):
            name = type(self.thing).__name__
            raise NotApplicable(f"{name} has no untrained(X), which the first point of the curve needs")
        self.thing.untrained(X)
        return {}, []

    def transform(self, X: Inputs | Features, layer: int | None = None) -> Answer:
        """Transform instances or features, and say whether that changed the module."""
        known = state_fingerprint(self.thing)
        out = self.thing.transform(X) if layer is None else self.thing.transform(X, layer=layer)
        form, arrays = features_as_arrays(out)
        return {"form": form, "changed": state_fingerprint(self.thing) != known}, arrays

    # -- classifiers --------------------------------------------------------------------------------------

    def keep(self, part: str, X: Features) -> Answer:
        """Keep the features of a part, in the form that the classifier takes."""
        self.parts[part] = adapted(X, self.thing)
        return {}, []

    def train(self, settings: dict[str, Any], chosen: Chosen, y: Array, dropped: list[int]) -> Answer:
        """Train a copy of the classifier with some settings, and give its number."""
        self.drop(dropped)
        exact = {name: next(v for v in self.thing.grid[name] if plain(v) == value) for name, value in settings.items()}
        fitted = self.thing.with_settings(**exact).fit(self.take(chosen), y)
        self.made += 1
        self.fitted[self.made] = fitted
        return {"number": self.made, "constant": bool(getattr(fitted, "constant_", False))}, []

    def predict(self, number: int, chosen: Chosen) -> Answer:
        """Predict with one of the classifiers trained here."""
        return {}, [numbers(self.fitted[number].predict(self.take(chosen)))]

    def trained(self, order: list[int]) -> Answer:
        """The classifiers of the given numbers, together, for another worker."""
        return {}, [_pickled([self.fitted[number] for number in order])]

    def predict_each(self, state: bytes, part: str) -> Answer:
        """Predictions and margins of classifiers that were trained in another worker."""
        answers = []
        changed = False
        for classifier in pickle.loads(state):
            known = state_fingerprint(classifier)
            answers += [numbers(classifier.predict(self.parts[part])), numbers(classifier.margins(self.parts[part]))]
            changed |= state_fingerprint(classifier) != known
        return {"changed": changed}, answers

    def take(self, chosen: Chosen) -> Features:
        """The chosen rows of the chosen parts: the same object each time, so that classifiers can remember it."""
        key = tuple((part, None if wanted is None else wanted.tobytes()) for part, wanted in chosen)
        if key not in self.chosen:
            pieces = [self.parts[part] if w is None else rows(self.parts[part], w) for part, w in chosen]
            self.chosen[key] = pieces[0] if len(pieces) == 1 else joined(pieces[0], pieces[1])
        return self.chosen[key]

    def drop(self, numbers_: list[int]) -> None:
        """Forget classifiers that are not wanted any more."""
        for number in numbers_:
            self.fitted.pop(number, None)


def numbers(given: Any) -> Array:
    """Turn what a classifier answers into float64; what cannot be turned is a violation."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise Violation("invalid", f"the classifier gave no numbers ({first_line(error)})") from error


def plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    convert: Callable[[Any], Any] = lambda v: v.item() if isinstance(v, np.generic) else str(v)  # noqa: E731
    return json.loads(json.dumps(value, default=convert))


def _pickled(thing: Any) -> Array:
    try:
        return np.frombuffer(pickle.dumps(thing), dtype=np.uint8)
    except Exception as error:
        raise AssayError(
            f"{type(thing).__name__} cannot be written to a file ({first_line(error)}): keep only data in it, so that "
            "another process can show it test instances"
        ) from error
