"""Jobs: one run of one task each, with its condition and the modules it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.broad.conditions import RunSpec
from assay.broad.systems.saved_learner import learner_file
from assay.broad.systems.team import Evaluators, Module, Team
from assay.core.errors import AssayError
from assay.core.fingerprint import file_fingerprint


@dataclass(frozen=True)
class Job:
    """One run of one task, with the modules it is made of.

    Args:
        spec: Condition and team of the run.
        module: Feature extractor or preprocessor.
        classifier: Classifier of the evaluators or of the team.
        learner: The team's unsupervised learner; None below condition 5.
        trained_from: File of a learner that was trained elsewhere; None to train it here.
        declaration: The team's declaration that such a learner was trained by the protocol.
        layer: Number of the layer whose output represents the instances; the last by default, another for the
            contribution of each layer.
        share: Share of the unlabelled data to learn from, for learning curves; 0 is random weights (what a system needs
            besides them, such as scales and vocabularies, it learns from all data).
    """

    spec: RunSpec
    module: Module
    classifier: Module
    learner: Module | None = None
    trained_from: str | None = None
    declaration: str = ""
    layer: int = -1
    share: float = 1.0

    @property
    def key(self) -> str:
        """Key of the run, such as ``6s``; ``6s.layer1`` and ``6s.share0.25`` for runs beyond the plan's eleven."""
        layer = "" if self.layer == -1 else f".layer{self.layer + 1}"
        share = "" if self.share == 1 else f".share{self.share:g}"
        return f"{self.spec.key}{layer}{share}"

    @property
    def on_gpu(self) -> bool:
        """Whether one of the modules asks for a GPU, by its parameter ``device``."""
        modules = (self.module, self.classifier, self.learner)
        return any(str(m.parameters.get("device")).startswith("cuda") for m in modules if m is not None)

    @property
    def modules(self) -> dict[str, Any]:
        """Description of the modules, for manifests."""
        described = {"module": self.module.described, "classifier": self.classifier.described}
        if self.learner is not None:
            described["learner"] = self.learner.described
        if self.trained_from is not None:
            described["trained_from"] = {
                "file": Path(self.trained_from).name,
                "content": _content(Path(self.trained_from)),
                "declaration": self.declaration,
            }
        return described


def _content(file: Path) -> str:
    """Fingerprint of a learner's file; of what `learner_file` refuses, nothing: the run that would load it says why."""
    try:
        return file_fingerprint(learner_file(file))
    except (AssayError, OSError):
        return ""


def make_job(spec: RunSpec, view_modality: Any, teams: Mapping[str, Team], evaluators: Evaluators) -> Job:
    """Choose the modules of a run by its condition.

    Args:
        spec: Condition and team of the run.
        view_modality: ``"video"`` or ``"text"``.
        teams: Teams by letter.
        evaluators: The evaluators' own modules for this modality.
    """
    condition = spec.condition
    parts = teams[spec.team].parts.get(view_modality) if spec.team is not None else None
    if spec.team is not None and parts is None:
        raise AssayError(f"team {teams[spec.team].name} has no system for {view_modality}")
    module = evaluators.extractor if condition.features == "FE" else parts.preprocessor  # type: ignore[union-attr]
    classifier = evaluators.classifier if condition.classifier == "SOTA" else parts.classifier  # type: ignore[union-attr]
    job = Job(spec, module, classifier)
    if condition.unsupervised is not None:
        assert parts is not None
        job = replace(job, learner=parts.learner)
        if condition.unsupervised == "DUL" and parts.trained_from is not None:
            job = replace(job, trained_from=str(parts.trained_from.absolute()), declaration=parts.declaration)
    return job
