"""Qualitative metrics: measures applied to the layers that the teams' deep learners have learned."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.broad.run.messages import receive, send
from assay.broad.run.remote import plain_text
from assay.broad.run.results import DONE, Results
from assay.broad.run.sandbox import Worker
from assay.broad.run.serving import described
from assay.broad.run.warden import Walls
from assay.broad.systems.adapter import stack_of
from assay.broad.systems.saved_learner import learner_from_bytes
from assay.broad.systems.team import Module, Team
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.measures.base import Measure
from assay.runs.evaluate import evaluate
from assay.runs.manifest import Manifest
from assay.runs.run import Run
from assay.subject.subject import Subject

log = logging.getLogger(__name__)
_MOST_BYTES = 2**30  # of the tables of one learner


class Still(nn.Module):
    """Shows pictures to a network that learned from moving blocks: each stands still for as many frames as it takes.

    Args:
        stack: The network.
        frames: Number of frames of the blocks that it takes.
    """

    def __init__(self, stack: nn.Module, frames: int) -> None:
        super().__init__()
        self.stack = stack
        self.frames = frames

    def forward(self, x: Tensor) -> Tensor:
        """Repeat N×1×H×W pictures as N×T×H×W and give what the stack answers."""
        output: Tensor = self.stack(x.expand(-1, self.frames, -1, -1) if x.dim() == 4 else x)
        return output


def measure_systems(results: Results, teams: tuple[Team, ...], measures: Mapping[str, Measure]) -> Run | None:
    """Apply all measures to all deep learners of the video task; they are a run of their own, in ``measures/``.

    A team's network is loaded and measured in a worker; only the tables come back.
    """
    merged: Manifest | None = None
    target = Folder(results.folder.path("measures"))
    for team in teams:
        record = results.read_run("video", f"6{team.letter}")
        parts = team.parts.get("video")
        if parts is None or record.status not in DONE or not record.learner:
            continue
        file = Path(results.folder.path(record.learner))
        if not file.exists():
            continue
        try:
            files = _measured(parts.learner, file.read_bytes(), team.name, measures, results.folder.path())
            manifest = _accepted(files, team.name, measures)
        except (AssayError, MemoryError) as error:
            log.warning("no measure is asked of %s: %s", team.name, error)
            continue
        if manifest is None:
            continue
        for key in manifest.cells:
            for name in (key.done, key.failed):
                if name in files:
                    target.write(name, files[name])
        if merged is None:
            merged = manifest
        else:
            merged.subjects |= manifest.subjects
            merged.cells += manifest.cells
    if merged is None:
        log.warning("%s has no deep learner of video that the measures could be asked of", results.folder.url)
        return None
    merged.write(target)
    return Run(target)


def _measured(
    module: Module, state: bytes, name: str, measures: Mapping[str, Measure], hidden: str
) -> dict[str, bytes]:
    """The files of the run of one learner, from the worker that measured it; none where it has no network."""
    with Worker(Walls("assay.broad.qualitative:serve", (hidden,), module.places)) as worker:
        worker.connection.send_bytes(pickle.dumps((module, state, name, dict(measures))))
        try:
            said, arrays = receive(worker.connection, _MOST_BYTES)
        except (EOFError, ConnectionError) as error:
            raise AssayError(f"its process died while it was measured (exit {worker.wait()['exit']})") from error
    if "error" in said:
        message = said["error"].get("message") if isinstance(said["error"], dict) else ""
        raise AssayError(plain_text(message, 500))
    names = said.get("names")
    if not isinstance(names, list) or len(names) != len(arrays):
        raise AssayError("its process gave an answer that is none")
    return {str(name): array.tobytes() for name, array in zip(names, arrays, strict=True)}


def _accepted(files: Mapping[str, bytes], name: str, measures: Mapping[str, Measure]) -> Manifest | None:
    """What the worker says it measured, if that is about this system and these measures; None where it has nothing."""
    if "manifest.json" not in files:
        return None
    with TemporaryDirectory(prefix="assay-measures-") as place:
        Path(place, "manifest.json").write_bytes(files["manifest.json"])
        manifest = Manifest.read(Folder(place))
    cells = [
        key for key in manifest.cells
        if key.subject == name and key.measure in measures and key.fingerprint.isalnum()  # part of a file's name
    ]  # fmt: skip
    if set(manifest.subjects) != {name} or len(cells) != len(manifest.cells):
        raise AssayError("it says that it measured another system, or by another measure")
    return manifest


def serve(connection: Connection) -> None:
    """Measure the learner that the keeper sends, in a worker, and give the files of the run."""
    module, state, name, measures = pickle.loads(connection.recv_bytes())
    try:
        subject = learned_subject(learner_from_bytes(state, module.build()), name)
        files: dict[str, bytes] = {}
        if subject is not None:
            with TemporaryDirectory() as place:
                evaluate([subject], measures, place)
                files = {p.relative_to(place).as_posix(): p.read_bytes() for p in Path(place).rglob("*") if p.is_file()}
        send(connection, {"names": list(files)}, [np.frombuffer(data, dtype=np.uint8) for data in files.values()])
    except BaseException as error:
        send(connection, {"error": described(error)})


def learned_subject(learner: Any, name: str) -> Subject | None:
    """A trained deep learner as a subject that sees pictures; None where it has no stack of layers."""
    stack = stack_of(learner)
    if stack is None:
        return None
    sizes = getattr(learner, "sizes", ((1, 1, 1),))
    module: nn.Module = stack if sizes[-1][0] == 1 else Still(stack, int(sizes[-1][0]))
    return Subject(module.cpu(), name, device=torch.device("cpu"))
