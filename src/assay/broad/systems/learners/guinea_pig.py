"""The evaluators' own deep system, a stack of rectified random projections to test the harness with.

Nothing in it learns but the scale of each layer; it is there to be run end to end before anybody else's system is.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Features
from assay.broad.systems.features.clips import as_vectors
from assay.core.errors import AssayError


class RandomProjections:
    """A stack of rectified random projections, of which only the scale of each layer is learned.

    h₀ = x, hᵢ = max(0, Wᵢhᵢ₋₁)/sᵢ with normal Wᵢ; sᵢ, the root mean square of the layer, is learned.

    Args:
        units: Number of units of each layer.
        seed: Seed of the random projections.

    Example:
        >>> learner = RandomProjections(units=(8, 8, 8)).fit(np.eye(5))
        >>> learner.transform(np.eye(5)).shape, learner.layers
        ((5, 8), ['projection.0', 'projection.1', 'projection.2'])
    """

    algorithm = "rectified random projection"

    def __init__(self, units: tuple[int, ...] = (200, 200, 200), seed: int = 0) -> None:
        if not units or min(units) < 1:
            raise AssayError(f"units={units}: every layer has at least one")
        self.units = tuple(units)
        self.seed = seed
        self.weights_: list[Array] = []
        self.scales_: list[float] = []

    @property
    def layers(self) -> list[str]:
        """Names of the layers, one for each projection."""
        return [f"projection.{i}" for i in range(len(self.units))]

    def shallow(self) -> Self:
        """Make the same learner with its first layer only, not fitted."""
        return type(self)(self.units[:1], self.seed)

    def fit(self, X: Features) -> Self:
        """Draw the projections and learn the scales."""
        rng = np.random.default_rng(self.seed)
        matrix: Any = as_vectors(X)
        self.weights_ = []
        self.scales_ = []
        below = matrix.shape[1]
        for units in self.units:
            self.weights_.append(rng.standard_normal((below, units)) / np.sqrt(below))
            below = units
        for i in range(len(self.units)):
            self.scales_.append(1.0)
            self.scales_[i] = float(np.sqrt(np.mean(self._forward(matrix, i) ** 2))) or 1.0
        return self

    def untrained(self, X: Features) -> Self:
        """Draw the projections but learn no scales: the first point of a learning curve."""
        self.fit(X)
        self.scales_ = [1.0] * len(self.units)
        return self

    def transform(self, X: Features, layer: int = -1) -> Array:
        """Compute the representation of a layer."""
        if not self.weights_:
            raise AssayError("this learner has not learned yet: fit first")
        return self._forward(as_vectors(X), layer % len(self.units))

    def _forward(self, x: Array | sparse.csr_matrix, layer: int) -> Array:
        for weights, scale in zip(self.weights_[: layer + 1], self.scales_[: layer + 1], strict=True):
            x = np.maximum(np.asarray(x @ weights), 0) / scale
        return np.asarray(x)
