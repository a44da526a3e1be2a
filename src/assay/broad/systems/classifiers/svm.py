"""Support vector machine with a choice of kernels, by LIBSVM.

The plan's state-of-the-art classifier for video (§5.3.1): "we will use a grid search to optimize its parameters,
including selecting which kernel to use". With `windows.Windowed` and a linear kernel it is also
one team's simple classifier (§5.3.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.svm import SVC

from assay.broad.data.dataset import Array
from assay.broad.systems.classifiers import kernels
from assay.broad.systems.classifiers.classifier import (
    COSTS,
    STEPS,
    BinaryClassifier,
    Grid,
    balanced,
    checked_cost,
    may_stop_early,
)
from assay.broad.systems.classifiers.remembered import Remembering
from assay.core.errors import AssayError, nearest

Kernel = Literal["linear", "chi2", "intersection"]
# For χ², distances are computed and remembered; the kernel follows from them and their mean.
_COMPARE: dict[str, Callable[[Any, Any], Array]] = {
    "linear": kernels.linear,
    "chi2": kernels.chi2_distances,
    "intersection": kernels.intersection,
}
SVM_GRID: Grid = {"kernel": tuple(_COMPARE), "C": COSTS}


@dataclass(eq=False)
class KernelSVM(Remembering, BinaryClassifier):
    """LIBSVM's support vector machine with a linear, χ² or intersection kernel.

    min ½‖w‖² + C Σ s(yᵢ)·max(0, 1 − yᵢ(⟨w, φ(xᵢ)⟩ + b)), s = n/(2n₊) or n/(2n₋).

    Copies made by ``with_settings`` share the kernels they computed: a search over C, or over classes, on the same
    arrays compares instances once.

    Args:
        kernel: Name of the kernel, ``"linear"``, ``"chi2"`` or ``"intersection"``; the latter two need features without
            negative values.
        C: Cost of margins below 1.
        steps: Number of steps after which LIBSVM gives up (``converged_`` is then False); its own limit is 10,000,000.
        grid: Settings to tune, each with the values to try.

    Example:
        >>> X = np.array([[1.0, 0.0], [0.6, 0.4], [0.4, 0.6], [0.0, 1.0]])
        >>> machine = KernelSVM("intersection", C=100).fit(X, np.array([1, 1, 0, 0]))
        >>> machine.predict(X).round(2)
        array([0.75, 0.75, 0.25, 0.25])

    Plan §5.3.1; weights as in Le et al. 2011.
    """

    kernel: Kernel = "linear"
    C: float = 1.0
    steps: int = STEPS
    grid: Grid = field(default_factory=lambda: SVM_GRID, repr=False)

    def __post_init__(self) -> None:
        if self.kernel not in _COMPARE:
            raise AssayError(f"kernel={self.kernel!r} is unknown{nearest(self.kernel, _COMPARE)}")
        checked_cost(self.C)

    def _learn(self, X: Any, y: Array) -> None:
        compared = self._compare(X, X)
        self.instances_ = X
        self.scale_ = kernels.mean_distance(compared) if self.kernel == "chi2" else 1.0
        machine = SVC(C=self.C, kernel="precomputed", class_weight=balanced(y), max_iter=self.steps)
        with may_stop_early():
            machine.fit(self._kernel(compared), y)
        self.converged_ = machine.fit_status_ == 0
        self.support_ = machine.support_
        self.dual_ = machine.dual_coef_[0]
        self.offset_ = machine.intercept_[0]

    def _values(self, X: Any) -> Array:
        kernel = self._kernel(self._compare(X, self.instances_)[:, self.support_])
        return np.asarray(kernel @ self.dual_ + self.offset_)

    def _compare(self, a: Any, b: Any) -> Array:
        return np.asarray(self._remembered(self.kernel, (a, b), lambda: _COMPARE[self.kernel](a, b)))

    def _kernel(self, compared: Array) -> Array:
        return kernels.chi2(compared, self.scale_) if self.kernel == "chi2" else compared
