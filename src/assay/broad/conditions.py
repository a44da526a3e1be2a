"""The six conditions, their eleven runs and the questions they answer, as data (the plan, §5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.core.errors import AssayError

Source = Literal["FE", "PRE"]
Unsupervised = Literal["SUL", "DUL"]
Supervised = Literal["SOTA", "SLC"]


@dataclass(frozen=True)
class Condition:
    """One condition: the features, the unsupervised learner and the classifier that make a prediction.

    Args:
        number: The plan's number of the condition, 1 to 6.
        features: Source of the features: ``"FE"``, the evaluators' extractor; ``"PRE"``, the team's preprocessor.
        unsupervised: The team's learner: ``"SUL"``, its first layer only; ``"DUL"``, all its layers; None, no learner.
        classifier: ``"SOTA"``, the evaluators' shallow classifier; ``"SLC"``, the team's simple linear classifier.
    """

    number: int
    features: Source
    unsupervised: Unsupervised | None
    classifier: Supervised

    def __post_init__(self) -> None:
        if self.unsupervised is not None and (self.features, self.classifier) != ("PRE", "SLC"):
            raise AssayError(
                f"condition {self.number}: an unsupervised learner stands between a team's own preprocessor (PRE) and "
                f"its own simple classifier (SLC), not between {self.features} and {self.classifier}"
            )

    @property
    def name(self) -> str:
        """The name of the condition as the plan writes it, such as ``PRE/DUL/SLC``."""
        return "/".join(part for part in (self.features, self.unsupervised, self.classifier) if part)

    @property
    def per_team(self) -> bool:
        """Whether any part of the condition belongs to a team, so that each team has a run of its own."""
        return (self.features, self.classifier) != ("FE", "SOTA")


CONDITIONS = (
    Condition(1, "FE", None, "SOTA"),
    Condition(2, "FE", None, "SLC"),
    Condition(3, "PRE", None, "SOTA"),
    Condition(4, "PRE", None, "SLC"),
    Condition(5, "PRE", "SUL", "SLC"),
    Condition(6, "PRE", "DUL", "SLC"),
)


@dataclass(frozen=True)
class RunSpec:
    """One run of a task: a condition, and the team whose parts it uses."""

    condition: Condition
    team: str | None = None

    @property
    def key(self) -> str:
        """The key of the run: condition and team's letter, as in the plan's Fig. 4 (``1``, ``2n``, …, ``6s``)."""
        return f"{self.condition.number}{self.team or ''}"


def run_specs(teams: tuple[str, ...]) -> list[RunSpec]:
    """The runs of one task, in the order of the plan's Fig. 4.

    Args:
        teams: A letter for each team, in the order of the figure (``("n", "s")`` gives the plan's eleven runs).

    Example:
        >>> [run.key for run in run_specs(("n", "s"))]
        ['1', '2n', '2s', '3n', '3s', '4n', '4s', '5n', '5s', '6n', '6s']
    """
    if len(set(teams)) != len(teams):
        raise AssayError(f"teams {', '.join(teams)}: every team has a letter of its own")
    specs = []
    for condition in CONDITIONS:
        specs += [RunSpec(condition, team) for team in teams] if condition.per_team else [RunSpec(condition)]
    return specs


@dataclass(frozen=True)
class Contrast:
    """Two conditions that are compared, and the question that their comparison answers."""

    focal: int
    other: int
    question: str

    @property
    def name(self) -> str:
        """The name of the contrast, such as ``6 v 3``."""
        return f"{self.focal} v {self.other}"


CONTRASTS = (
    Contrast(6, 3, "Does deep learning outperform a state-of-the-art shallow classifier on preprocessed data?"),
    Contrast(6, 1, "Is deep learning comparable in quality with hand-engineered features?"),
    Contrast(6, 4, "Does the deep learner learn a representation that helps?"),
    Contrast(6, 5, "Does depth help?"),
    Contrast(1, 3, "What does the feature extractor give over the preprocessor?"),
    Contrast(1, 2, "What does the classifier give on extracted features?"),
    Contrast(3, 4, "What does the classifier give on preprocessed data?"),
)
