"""The settings by which an evaluation is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from assay.broad.metrics import METRICS
from assay.core.errors import AssayError

Phase = Literal["mid", "end"]
LEAST_DRAWS = 50  # of the test set: with 10 draws 8 % of equal systems are called different, with 2 every fourth pair


@dataclass(frozen=True)
class Protocol:
    """The settings by which an evaluation is run.

    Args:
        k: Number of folds.
        p: Share of the text that is the training set.
        n: Number of reviews that make the folds.
        ratings: Which ratings of the text are predicted; all by default.
        validation_cap: The largest number of left-over reviews to tune on (the plan's footnote 5); None for all.
        phase: ``"mid"`` for the quantitative metrics; ``"end"`` for learning curves and the contribution of each layer
            as well.
        curve: Shares of the unlabelled data for the learning curve of condition 6; 0 is random weights.
        limit_s: Seconds that one stage of a run may take, such as learning or one label of a fold; what takes longer
            has the status ``timeout``. A day by default; None for no limit.
        memory_gib: Memory in GiB that one run may take with everything it starts; what takes more has the status ``out
            of memory``. None for a share of nine tenths of the machine's memory, the same for all runs at a time.
        cores: Number of cores that one run uses. None for its share of the machine's, or of the cluster's.
        margin: Margin δ of non-inferiority for each metric, declared before the run.
        bootstrap: Number of resamples of the test set.
        iteration: Number of the report's edition; the plan expects drafts, comments and a final one.
        draft: Whether the report is a draft.
    """

    k: int = 10
    p: float = 0.7
    n: int = 10_000
    ratings: tuple[str, ...] | None = None
    validation_cap: int | None = None
    phase: Phase = "mid"
    curve: tuple[float, ...] = (0.0, 0.1, 0.3, 1.0)
    limit_s: float | None = 86_400.0
    memory_gib: float | None = None
    cores: int | None = None
    margin: Mapping[str, float] = field(default_factory=lambda: {"MAP": 0.02, "RMSE": 0.02})
    bootstrap: int = 1000
    iteration: int = 1
    draft: bool = True

    def __post_init__(self) -> None:
        if self.phase not in ("mid", "end"):
            raise AssayError(f"phase={self.phase!r} is not 'mid' or 'end'")
        if any(not 0 <= share <= 1 for share in self.curve):
            raise AssayError(f"curve={list(self.curve)}: shares lie between 0 and 1")
        if self.limit_s is not None and self.limit_s <= 0:
            raise AssayError(f"limit_s={self.limit_s} seconds must be positive")
        if self.memory_gib is not None and self.memory_gib <= 0:
            raise AssayError(f"memory_gib={self.memory_gib} must be positive")
        if self.cores is not None and self.cores < 1:
            raise AssayError(f"cores={self.cores} must be at least 1")
        if self.bootstrap < LEAST_DRAWS:
            raise AssayError(f"bootstrap={self.bootstrap} draws are too few to tell a variance: use 1000")
        for metric, margin in self.margin.items():
            if metric not in METRICS or not 0 < margin < float("inf"):
                raise AssayError(f"margin={dict(self.margin)}: give a number above 0 for each of {', '.join(METRICS)}")
