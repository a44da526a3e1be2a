"""Qualitative metrics: measures applied to the layers that the teams' deep learners have learned."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from assay.broad.run.results import DONE, Results
from assay.broad.systems.adapter import stack_of
from assay.broad.systems.saved_learner import load_learner
from assay.broad.systems.team import Team
from assay.core.errors import AssayError
from assay.measures.base import Measure
from assay.runs.evaluate import evaluate
from assay.runs.run import Run
from assay.subject.subject import Subject

log = logging.getLogger(__name__)


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


def learned_subjects(results: Results, teams: tuple[Team, ...], task: str = "video") -> list[Subject]:
    """The trained deep learners of condition 6 of a task, as subjects that see pictures."""
    subjects = []
    for team in teams:
        record = results.read_run(task, f"6{team.letter}")
        parts = team.parts.get("video")
        if parts is None or record.status not in DONE or not record.learner:
            continue
        file = Path(results.folder.path(record.learner))
        if not file.exists():
            continue
        try:
            learner: Any = load_learner(file, parts.learner.build())
        except AssayError as error:
            log.warning("no measure is asked of %s: %s", team.name, error)
            continue
        stack = stack_of(learner)
        if stack is None:
            continue
        sizes = getattr(learner, "sizes", ((1, 1, 1),))
        module: nn.Module = stack if sizes[-1][0] == 1 else Still(stack, int(sizes[-1][0]))
        subjects.append(Subject(module.cpu(), team.name, device=torch.device("cpu")))
    return subjects


def measure_systems(results: Results, teams: tuple[Team, ...], measures: Mapping[str, Measure]) -> Run | None:
    """Apply all measures to all deep learners of the video task; they are a run of their own, in ``measures/``."""
    subjects = learned_subjects(results, teams)
    if not subjects:
        log.warning("%s has no deep learner of video that the measures could be asked of", results.folder.url)
        return None
    return evaluate(subjects, measures, results.folder.path("measures"))
