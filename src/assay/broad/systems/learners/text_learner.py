"""Stacks that learn from text, given as matrices of terms, sparse or dense; only one mini-batch is dense at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from assay.broad.data.dataset import Array, Features
from assay.broad.systems.learners.stack_learner import StackLearner, on_device
from assay.core.errors import AssayError
from assay.networks import StackedAutoencoder, StackedDenoisingAutoencoder
from assay.training import Greedy

Span = Literal["unit", "centred"]
ROWS = 2048  # number of rows that are dense at a time


@dataclass(eq=False)
class MatrixLearner(StackLearner):
    """A stack that learns from a matrix of features, n rows, dense or sparse.

    Each column is scaled by its least and greatest value in training and cut off there; a column that is constant in
    training becomes 0. The matrix is never dense as a whole on the CPU: learning takes ``samples`` rows, chosen by
    chance, of which one mini-batch at a time is dense (a GPU has all of them); representing takes 2,048 rows at a time.

    Args:
        stack: The stack of layers; its first layer has an ``encoder``.
        span: How columns are scaled: ``"unit"`` for (x − low)/(high − low) in [0, 1]; ``"centred"`` for (x − mean)/s in
            [−1, 1], s the greatest distance from the mean. (Rare words are nearly always absent: uncentred, in
            [−1, 1], they would add up to a large constant that saturates tanh units.)
        samples: The largest number of rows to learn from; a GPU holds rows × columns × 4 bytes of them.
        epochs: Number of passes over these rows for each layer.
        batch_size: Number of rows per step.
        learning_rate: Learning rate of Adam at the start.
        seed: Seed of the choice of rows, of their order, and of what layers sample.
        device: ``"cpu"`` or ``"cuda"``.

    Example:
        >>> learner = MatrixLearner(StackedAutoencoder(4, (3, 2, 2)), epochs=1).fit(sparse.eye_array(4, format="csr"))
        >>> learner.layers, learner.transform(np.eye(4), layer=0).shape
        (['stack.0', 'stack.1', 'stack.2'], (4, 3))
    """

    span: Span = "unit"
    samples: int = 20_000
    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 1e-3
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.span not in ("unit", "centred"):
            raise AssayError(f"span={self.span!r} is not 'unit' or 'centred'")
        if self.samples < 1:
            raise AssayError(f"samples={self.samples} must be positive")
        self.settings = Greedy(self.epochs, self.batch_size, self.learning_rate, self.seed)
        self.low_: Array | None = None
        self.high_: Array | None = None
        self.mean_: Array | None = None

    def fit(self, X: Features) -> Self:
        """Learn the scales from all rows, the layers from some of them."""
        self._learn_around(X)
        matrix = self._checked(X)
        chosen = np.random.default_rng(self.seed).permutation(matrix.shape[0])[: self.samples]
        chosen.sort()
        with on_device(self.stack, self.device):
            self.stack.fit(self._samples(matrix, chosen), settings=self.settings)
        return self

    def _samples(self, matrix: Any, chosen: Array) -> Any:
        """The chosen rows, dense: all of them on a GPU, elsewhere `Rows` of which one batch at a time is."""
        rows = _DenseWhenAsked(matrix, chosen, self._dense)
        if torch.device(self.device).type == "cpu":
            return rows
        samples = torch.empty(len(chosen), matrix.shape[1], device=self.device)
        for first in range(0, len(chosen), ROWS):
            some = torch.arange(first, min(first + ROWS, len(chosen)))
            samples[first : first + ROWS] = rows[some].to(self.device)
        return samples

    def transform(self, X: Features, layer: int = -1) -> Array:
        """Compute the representation of a layer, rows × units."""
        matrix = self._checked(X)
        if self.low_ is None:
            raise AssayError("this learner has not learned yet: fit first")
        self.stack.require_layer(layer)
        represented: Array | None = None
        with on_device(self.stack, self.device):
            for first in range(0, max(matrix.shape[0], 1), ROWS):
                some = self.stack.transform(self._dense(matrix[first : first + ROWS]), layer)
                if represented is None:  # made once: pieces put together at the end would be there twice
                    represented = np.empty((matrix.shape[0], some.shape[1]), some.dtype)
                represented[first : first + ROWS] = some
        assert represented is not None
        return represented

    def _learn_around(self, X: Features) -> None:
        matrix = self._checked(X)
        if matrix.shape[0] == 0:
            raise AssayError("there are no rows to learn from")
        low = matrix.min(axis=0)
        high = matrix.max(axis=0)
        if sparse.issparse(matrix):
            low = low.toarray()
            high = high.toarray()
        self.low_ = np.asarray(low, np.float32).ravel()
        self.high_ = np.asarray(high, np.float32).ravel()
        self.mean_ = np.asarray(matrix.mean(axis=0), np.float32).ravel()

    def _checked(self, X: Features) -> Any:
        """Check that features are a matrix with as many columns as the stack has inputs, and give that matrix."""
        inputs = self.stack.stack[0].get_parameter("encoder.weight").shape[1]
        if isinstance(X, list):
            raise AssayError(f"features are a list of {len(X)} arrays, not a matrix of rows × {inputs}")
        matrix = sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)
        if matrix.ndim != 2 or matrix.shape[1] != inputs:
            raise AssayError(f"features are {matrix.shape}, not rows × {inputs}: set inputs to the number of columns")
        if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
            raise AssayError("the features have NaN or infinite values")
        return matrix

    def _dense(self, rows: Any) -> Tensor:
        """Make rows dense and scale them, as the stack takes them."""
        assert self.low_ is not None and self.high_ is not None and self.mean_ is not None
        x = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float32)
        origin = self.low_ if self.span == "unit" else self.mean_
        spread = np.maximum(self.high_ - origin, origin - self.low_)
        varies = self.high_ > self.low_
        scaled = (np.clip(x, self.low_, self.high_) - origin) / np.where(varies, spread, 1)
        return torch.from_numpy(np.where(varies, scaled, 0).astype(np.float32))


@dataclass(frozen=True)
class _DenseWhenAsked:
    """Rows of a matrix that become dense when they are asked for."""

    matrix: Any
    chosen: Array
    dense: Callable[[Any], Tensor]

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, some: Tensor) -> Tensor:
        return self.dense(self.matrix[self.chosen[some.numpy()]])


def sparse_autoencoder_text(
    inputs: int = 5000,
    hidden: Sequence[int] = (1000, 1000, 1000),
    weight_decay: float = 1e-5,
    sparsity: float = 0.1,
    target: float = -0.5,
    samples: int = 20_000,
    epochs: int = 30,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int = 0,
    device: str = "cpu",
) -> MatrixLearner:
    """Make tanh autoencoders with sparse activations for text; see `assay.networks.StackedAutoencoder`.

    Args:
        inputs: Number of columns of the features.
        hidden: Number of units of each layer.
        weight_decay: Weight λ of the penalty on large weights.
        sparsity: Weight β of the penalty on activations away from the target.
        target: Mean activation ρ aimed at; units are silent at −1.
        samples, epochs, batch_size, learning_rate, device: Settings of the `MatrixLearner`.
        seed: Seed of the initial weights and of learning.
    """
    stack = StackedAutoencoder(inputs, hidden, weight_decay, sparsity, target, seed)
    return MatrixLearner(stack, "centred", samples, epochs, batch_size, learning_rate, seed, device)


def denoising_text(
    inputs: int = 5000,
    hidden: Sequence[int] = (1000, 1000, 1000),
    masking: float = 0.8,
    gaussian: float = 0.1,
    sparsity: float = 1e-3,
    samples: int = 20_000,
    epochs: int = 30,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: int = 0,
    device: str = "cpu",
) -> MatrixLearner:
    """Make denoising autoencoders of rectifiers for text; see `assay.networks.StackedDenoisingAutoencoder`.

    Args:
        inputs: Number of columns of the features.
        hidden: Number of units of each layer (5,000 in the paper).
        masking: Share of the input set to 0 while the first layer learns.
        gaussian: Standard deviation of the noise while the others learn.
        sparsity: Weight λ of the penalty Σ|h| on activations.
        samples, epochs, batch_size, learning_rate, device: Settings of the `MatrixLearner`.
        seed: Seed of the initial weights and of learning.

    Glorot, Bordes, Bengio 2011.
    """
    stack = StackedDenoisingAutoencoder(inputs, hidden, masking, gaussian, sparsity, seed)
    return MatrixLearner(stack, "unit", samples, epochs, batch_size, learning_rate, seed, device)
