"""A classifier in a process of its own, in any language; connected by files only."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from assay.broad.data.dataset import Array, Features
from assay.broad.data.features import packed
from assay.broad.systems.classifiers.classifier import HIGHEST, LOWEST, Classifier, Grid, squash
from assay.broad.systems.command import Command
from assay.broad.systems.team import require_tuning
from assay.core.errors import AssayError


class SubprocessClassifier(Command, Classifier):
    """A classifier that is a command, called in two ways, always with ``--parameters P.json``.

    - ``command fit --data X.npz --targets y.npz --model DIR`` leaves what it learned in DIR, at least one file; the
      targets are ``matrix``, one value for each instance: whether it shows the action (video), or its rating (text);
    - ``command predict --model DIR --data X.npz --out Y.npz`` writes ``matrix``, one number for each instance: larger
      where it is more certain that the instance shows the action, or its rating.

    The settings that are tried while tuning are among the parameters. `assay.broad.systems.adapter.serve` is the other
    side, for Python; the other arguments are those of `assay.broad.systems.command.Command`.

    Args:
        grid: Settings to tune, each with the values to try; none for no tuning.
    """

    def __init__(
        self,
        command: Sequence[str],
        parameters: Mapping[str, Any] | None = None,
        grid: Grid | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        workdir: str | None = None,
        sources: Sequence[str] = (),
    ) -> None:
        super().__init__(command, parameters, environment, timeout_s, workdir, sources)
        require_tuning(grid or {}, "grid")
        self.grid = {name: list(values) for name, values in (grid or {}).items()}

    def with_settings(self, **chosen: Any) -> Self:
        """Make a fresh copy that has learned nothing, with some parameters changed."""
        fresh = copy.copy(self)
        fresh.parameters = {**self.parameters, **chosen}
        fresh.model_ = {}
        return fresh

    def fit(self, X: Features, y: Array) -> Self:
        """Run the command to learn from instances, unless all have the same target."""
        self.video_ = y.dtype == bool
        self.constant_ = len(np.unique(y)) == 1
        self.target_ = float(y[0])
        if not self.constant_:
            files = {"X.npz": packed(X), "y.npz": packed(np.asarray(y))}
            self._learn(files, "--data", "X.npz", "--targets", "y.npz")
        return self

    def margins(self, X: Features) -> Array:
        """Run the command to compute one number for each instance, before it is squashed or clipped."""
        count = len(X) if isinstance(X, list) else int(X.shape[0])
        if getattr(self, "constant_", False):
            return np.full(count, 0.0 if self.video_ else self.target_)
        answer = np.asarray(self._answer("predict", {"X.npz": packed(X)}, "--data", "X.npz"), dtype=np.float64)
        if answer.size != count:
            raise AssayError(f"{self._name} predict wrote {answer.shape}, not one number for each of {count} instances")
        return answer.reshape(count)

    def predict(self, X: Features) -> Array:
        """Predict confidences in [0, 1] (video), in the order of the margins, or ratings in [1, 5] (text)."""
        margins = self.margins(X)
        if not self.video_:
            return np.clip(margins, LOWEST, HIGHEST)
        return np.full_like(margins, self.target_) if self.constant_ else squash(margins)
