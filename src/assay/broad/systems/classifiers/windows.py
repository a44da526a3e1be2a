"""Windows of a clip, and a classifier that looks at each and keeps its highest answer.

Plan §5.3.2: "for every set of 30 frames, it should produce a response … The final classification will be computed
using a max pooling over those multiple SLC outputs".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.broad.systems.classifiers.classifier import COSTS, Classifier, Grid
from assay.broad.systems.classifiers.remembered import Remembering
from assay.broad.systems.classifiers.svm import KernelSVM
from assay.core.errors import AssayError


def windows(frames: int, size: int = 30, hop: int | None = None) -> list[tuple[int, int]]:
    """The windows of a clip, each as its first frame and the frame after its last.

    Frames that are left over at the end join the last window; a clip shorter than a window is one window.

    Args:
        frames: Length of the clip in frames.
        size: Length of a window in frames.
        hop: Frames from the start of one window to the start of the next; ``size`` if not given.

    Example:
        >>> windows(100)
        [(0, 30), (30, 60), (60, 100)]
        >>> windows(12)
        [(0, 12)]
    """
    step = size if hop is None else hop
    if frames < 1 or size < 1 or step < 1:
        raise AssayError(f"frames={frames}, size={size} and hop={step} must be at least 1")
    starts = range(0, max(frames - size, 0) + 1, step)
    return [(start, start + size) for start in starts[:-1]] + [(starts[-1], frames)]


@dataclass(eq=False)
class Windowed(Remembering):
    """Turns a classifier of windows into one of clips: a clip scores as its best window, max_i f(w_i).

    In training each window has the label of its clip. Features are bags (a list with windows × columns for each
    clip), or a matrix where each clip is one window.

    Args:
        classifier: Classifier of single windows.
        window: Frames of a window, where clips are still to be cut into windows.

    Example:
        >>> from assay.broad.systems.classifiers.linear import LinearSVM
        >>> bags = [np.array([[1.0], [3.0]]), np.array([[-1.0]]), np.array([[-2.0], [2.0]])]
        >>> Windowed(LinearSVM()).fit(bags[:2], np.array([1, 0])).margins(bags).round(1)
        array([ 2.4, -0.9,  1.6])

    Plan §5.3.2.
    """

    classifier: Classifier
    window: int = 30
    grid: Grid = field(init=False, repr=False)

    takes_bags: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.grid = self.classifier.grid

    def with_settings(self, **chosen: Any) -> Self:
        """Make a fresh copy whose classifier has other settings."""
        return super().with_settings(classifier=self.classifier.with_settings(**chosen))

    @property
    def constant_(self) -> bool:
        """Whether there was only one class to learn from."""
        return bool(getattr(self.classifier_, "constant_", False))

    def fit(self, X: Features, y: Array) -> Self:
        """Learn from windows that inherit the label of their clip."""
        matrix, starts = self._stacked(X)
        if np.shape(y) != starts.shape:
            raise AssayError(f"y has shape {np.shape(y)}, there are {len(starts)} clips: give one entry for each")
        count = np.diff(starts, append=matrix.shape[0])
        self.classifier_ = self.classifier.with_settings().fit(matrix, np.repeat(np.asarray(y), count))
        return self

    def margins(self, X: Features) -> Array:
        """Compute the highest margin among the windows of each clip."""
        matrix, starts = self._stacked(X)
        return np.asarray(np.maximum.reduceat(self._fitted().margins(matrix), starts))

    def predict(self, X: Features) -> Array:
        """Compute the highest confidence among the windows of each clip."""
        matrix, starts = self._stacked(X)
        return np.asarray(np.maximum.reduceat(self._fitted().predict(matrix), starts))

    def _fitted(self) -> Classifier:
        if not hasattr(self, "classifier_"):
            raise AssayError("Windowed has not learned anything yet: call fit first")
        return self.classifier_

    def _stacked(self, X: Features) -> tuple[Any, Array]:
        """Stack all windows in one matrix; give it, and the row at which each clip begins."""
        if not isinstance(X, list):
            return X, np.arange(X.shape[0])
        stacked: tuple[Any, Array] = self._remembered("stacked", (X,), lambda: _stack(X))
        return stacked


def windowed_svm(grid: Grid | None = None, window: int = 30) -> Windowed:
    """Make LIBSVM with a linear kernel on windows, of which the highest score counts (Net-Scale's, plan §5.3.2)."""
    return Windowed(KernelSVM(grid=grid or {"kernel": ("linear",), "C": COSTS}), window)


def _stack(bags: list[Array]) -> tuple[Any, Array]:
    if not bags:
        raise AssayError("there are no clips")
    for i, bag in enumerate(bags):
        if np.ndim(bag) != 2 or bag.shape[0] == 0 or bag.shape[1] != bags[0].shape[1]:
            raise AssayError(
                f"the features of clip {i} have shape {np.shape(bag)}: each clip has at least one window, "
                f"and windows × columns with as many columns as the others"
            )
    starts = np.cumsum([0, *(bag.shape[0] for bag in bags[:-1])])
    return (sparse.vstack(bags).tocsr() if sparse.issparse(bags[0]) else np.concatenate(bags)), starts
