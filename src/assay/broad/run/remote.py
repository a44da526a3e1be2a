"""A team's module from the keeper's side: asked questions, its answers checked, never touched."""

from __future__ import annotations

import json
import logging
import pickle
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch

from assay.broad.data.dataset import Array, Features, Inputs
from assay.broad.data.violation import NotApplicable, Violation
from assay.broad.run.messages import features_of_arrays, receive
from assay.broad.run.sandbox import Worker
from assay.broad.run.warden import Kind, Walls
from assay.broad.systems.team import Module
from assay.core.errors import AssayError
from assay.runs.process_tree import machine_bytes

log = logging.getLogger(__name__)
# Statuses that a worker may give its own run; others are for the keeper to give.
_OWN_STATUSES = ("timeout", "peeked", "learned at test time", "invalid", "out of memory")
_LONGEST, _LONGEST_TRACE = 2_000, 20_000  # characters of what a worker says went wrong


class SystemFailed(AssayError):
    """Raised where a team's code raised an exception, or its process died; ``trace`` is its traceback."""

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason)
        self.trace = trace


@dataclass(frozen=True)
class Surroundings:
    """What is true of all workers of a run.

    Args:
        hidden: Files and folders that no worker may see.
        forbidden: Files and folders that hold labels; opening one of them is a violation.
        shown: Folders that stay visible though something around them is hidden.
        kind: How workers are kept apart; None for what the platform has.
        stage: Gives the name of the stage that the run is in.
        limit_s: Seconds that a worker may take to answer, where nobody else watches the time; None for no limit.
    """

    hidden: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    kind: Kind | None = None
    stage: Callable[[], str] = lambda: ""
    limit_s: float | None = None


class Remote:
    """A worker with one module.

    Args:
        module: The module, by name and parameters.
        around: What is true of all workers of the run.
        shallow: Whether the module is made shallow.
        shown: Further folders that this worker may see.
    """

    def __init__(self, module: Module, around: Surroundings, shallow: bool = False, shown: Sequence[str] = ()) -> None:
        self.name = module.name
        self.around = around
        walls = Walls(
            "assay.broad.run.serving:serve", around.hidden, (*around.shown, *shown, *module.places), kind=around.kind
        )
        self.worker = Worker(walls)
        try:
            self.described, _ = self.ask(
                "start",
                module=module, forbidden=around.forbidden, threads=torch.get_num_threads(), shallow=shallow,
            )  # fmt: skip
        except BaseException:
            self.close()
            raise

    @property
    def layers(self) -> list[str]:
        """Names of the learner's layers."""
        layers = self.described.get("layers")
        if not isinstance(layers, list) or not all(isinstance(name, str) for name in layers) or len(layers) > 1000:
            raise SystemFailed(f"{self.name} has no attribute 'layers' that names its layers")
        return [plain_text(name, 200) for name in layers]

    def load(self, state: bytes, careful: bool = False) -> Self:
        """Give the module the state that another one had."""
        self.ask("load", state=state, careful=careful)
        return self

    def state(self) -> bytes:
        """The module's state as bytes that only a worker may open."""
        _, arrays = self.ask("state")
        return _one(arrays).tobytes()

    def fit(self, X: Inputs | Features) -> None:
        """Have the module learn from instances or features."""
        self.ask("fit", X=X)

    def untrained(self, X: Features) -> None:
        """Have the module take random weights."""
        self.ask("untrained", X=X)

    def transform(self, X: Inputs | Features, whose: str, layer: int | None = None) -> Features:
        """Have the module transform instances or features; one that changes meanwhile is a violation."""
        said, arrays = self.ask("transform", X=X, layer=layer)
        if said.get("changed") is not False:
            raise Violation("learned at test time", f"the {whose} changed while it was shown test instances")
        return features_of_arrays(said.get("form"), arrays, f"the {whose}")

    def ask(self, question: str, **arguments: Any) -> tuple[dict[str, Any], list[Array]]:
        """Ask the worker, and give what it says; what it says went wrong is raised."""
        try:
            self.worker.connection.send_bytes(pickle.dumps((question, arguments)))
            if self.around.limit_s is not None and not self.worker.connection.poll(self.around.limit_s):
                raise Violation("timeout", f"{self.name}: {question!r} took longer than {self.around.limit_s:g} s")
            said, arrays = receive(self.worker.connection, machine_bytes() // 2)
        except (EOFError, ConnectionError) as error:
            raise SystemFailed(_death(self.worker.wait(), self.around.stage())) from error
        if "error" in said:
            raise _raised(said["error"])
        return said, arrays

    def close(self) -> None:
        """End the worker, and everything it has started."""
        self.worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_layers: dict[tuple[str, str, str], list[str]] = {}


def layers_of(module: Module, limit_s: float = 60) -> list[str]:
    """The names of a learner's layers, asked of a worker; none where it cannot be made (a log says why)."""
    key = (module.place, json.dumps(dict(module.parameters), default=str), module.source_hash)
    if key not in _layers:
        try:
            with Remote(module, Surroundings(limit_s=limit_s)) as worker:
                _layers[key] = worker.layers
        except (AssayError, MemoryError) as error:
            log.warning("%s has no layers that could be asked for: %s", module.name, error)
            _layers[key] = []
    return _layers[key]


def _one(arrays: list[Array]) -> Array:
    if len(arrays) != 1:
        raise Violation("invalid", "the system's process gave an answer that is none")
    return arrays[0]


def _death(ended: Mapping[str, Any], stage: str) -> str:
    code = int(ended["exit"])
    died = f"signal {-code}" if code < 0 else f"exit code {code}"
    if code == -signal.SIGXCPU:
        died = "too much time"
    return f"the process died{f' at {stage!r}' if stage else ''} ({died})"


def _raised(error: Any) -> Exception:
    """What went wrong in a worker, as an exception of the keeper's."""
    said = error if isinstance(error, dict) else {}
    message = plain_text(said.get("message"), _LONGEST) or "the system failed and did not say why"
    kind = said.get("kind")
    if kind == "violation" and said.get("status") in _OWN_STATUSES:
        return Violation(str(said["status"]), message)
    if kind == "not applicable":
        return NotApplicable(message)
    if kind == "memory":
        return MemoryError(message)
    return SystemFailed(message, plain_text(said.get("trace"), _LONGEST_TRACE))


def plain_text(text: Any, longest: int) -> str:
    """Text without what could move a terminal's cursor, and not too long."""
    kept = "".join(c for c in str(text or "") if c.isprintable() or c in "\n\t")
    return kept if len(kept) <= longest else f"{kept[:longest]} …"


# -- classifiers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Features that a worker keeps, named instead of sent: parts, and which of their rows (None for all)."""

    chosen: tuple[tuple[str, Array | None], ...]


@dataclass(eq=False)
class RemoteClassifier:
    """A classifier that learns and predicts in a worker; it is tuned as if it were here.

    Args:
        remote: The worker.
        settings: Settings that differ from those of the module.
        number: The worker's number of the trained classifier; None before it is trained.
        constant_: Whether it answers the same for all instances.
        dropped: Numbers of classifiers that are not wanted any more; all copies share the list.
    """

    remote: Remote
    settings: dict[str, Any] = field(default_factory=dict)
    number: int | None = None
    constant_: bool = False
    dropped: list[int] = field(default_factory=list)

    @property
    def grid(self) -> dict[str, list[Any]]:
        """The settings to try, by name."""
        grid = self.remote.described.get("grid")
        if not isinstance(grid, dict) or not all(isinstance(v, list) and v for v in grid.values()):
            raise SystemFailed(f"{self.remote.name} has no grid: a mapping of settings to the values to try")
        return grid

    def with_settings(self, **chosen: Any) -> RemoteClassifier:
        """Make a copy with other settings, not trained."""
        return RemoteClassifier(self.remote, chosen, dropped=self.dropped)

    def fit(self, X: Rows, y: Array) -> Self:
        """Train it on rows that the worker keeps."""
        dropped = [self.dropped.pop() for _ in range(len(self.dropped))]
        said, _ = self.remote.ask("train", settings=self.settings, chosen=X.chosen, y=y, dropped=dropped)
        if not isinstance(said.get("number"), int):
            raise Violation("invalid", "the system's process gave an answer that is none")
        self.number = said["number"]
        self.constant_ = said.get("constant") is True
        return self

    def predict(self, X: Rows) -> Array:
        """Predict rows that the worker keeps."""
        _, arrays = self.remote.ask("predict", number=self.number, chosen=X.chosen)
        return np.asarray(_one(arrays), dtype=np.float64)

    def __del__(self) -> None:
        if self.number is not None:
            self.dropped.append(self.number)
