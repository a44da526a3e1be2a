"""How much each layer of a learner changes while it learns (requirement J5 of the plan)."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.broad.data.dataset import Array, Features
from assay.broad.data.features import rows
from assay.broad.rules.bench import Bench
from assay.broad.systems.adapter import stack_of

SHAPED = 3.0  # of two draws from one law, the distance to a third is rarely so much larger than to each other


def weight_changes(bench: Bench) -> list[float] | None:
    """The relative change ‖w − w₀‖/‖w₀‖ of each layer's weights; None if the learner does not show them by layer."""
    learner = bench.learner
    layers = len(bench.learner.layers)
    after = _weights(learner, layers)
    before = _weights_before(bench, learner, layers)
    if after is None or before is None:
        return None
    return [_change(a, b) for a, b in zip(before, after, strict=True)]


def layers_not_learned(bench: Bench) -> tuple[list[str], list[str]]:
    """The layers whose weights do not depend on the data, and those whose weights depend on nothing but chance.

    Scales and biases are no weights: a fixed projection has them too. A layer that learns has other weights after other
    data, and nearly the same after data that differ by a millionth; weights drawn at random, with a seed made of the
    data or none, differ as much. So do those of a learner that is unstable (an ISA on a few clips, whose third layer
    turns with the rounding of the first), but for their spectrum, which learning gives them and chance does not.
    """
    learner = bench.learner
    layers = list(learner.layers)
    after, before = _weights(learner, len(layers)), _weights_before(bench, learner, len(layers))
    if after is None or before is None:
        return [], []
    fixed = [n for n, a, b in zip(layers, before, after, strict=True) if not _change(_matrices(a), _matrices(b)) > 0]
    if bench.parts.trained_from is not None:
        return fixed, []
    size = len(bench.training)
    other = _weights(_fitted(bench, rows(bench.features, np.arange(len(bench.inputs))[-size:])), len(layers))
    nearly = _weights(_fitted(bench, _nearly(rows(bench.features, bench.training))), len(layers))
    by_chance = []
    for i, name in enumerate(layers):
        if other is None or nearly is None or name in fixed:
            continue
        far, near = (_change(_matrices(after[i]), _matrices(one[i])) for one in (other, nearly))
        if not far > 0:
            fixed.append(name)
        elif near > 0.5 * far and not _shaped(before[i], after[i], nearly[i]):
            by_chance.append(name)
    return fixed, by_chance


def _shaped(before: list[Array], after: list[Array], nearly: list[Array]) -> bool:
    """Whether learning from nearly the same data gives two spectra that are alike, and unlike that of the start."""
    learned, alike = _spectral_distance(before, after), _spectral_distance(after, nearly)
    return learned > SHAPED * alike


def _spectral_distance(one: list[Array], other: list[Array]) -> float:
    """The largest distance between the singular values of two layers' matrices, each as a share of its matrix's size.

    It does not change where a layer's units or its inputs are turned or change places.
    """
    distances = [0.0]
    for a, b in zip(_matrices(one), _matrices(other), strict=True):
        if a.ndim >= 2 and a.shape == b.shape and a.any() and b.any():
            s, t = (np.linalg.svd(m.reshape(len(m), -1), compute_uv=False) for m in (a, b))
            distances.append(float(np.linalg.norm(s / np.linalg.norm(s) - t / np.linalg.norm(t))))
    return max(distances)


def _fitted(bench: Bench, X: Features) -> Any:
    return bench.parts.learner.build().fit(X)


def _nearly(X: Features) -> Features:
    """The same features up to a millionth, where they are no whole numbers."""
    if isinstance(X, list):
        return [f * np.float32(1 + 1e-6) if f.dtype.kind == "f" else f for f in X]
    given: Any = X
    return given * (1 + 1e-6) if given.dtype.kind in "fiu" else X


def _matrices(arrays: list[Array]) -> list[Array]:
    """The weights proper: arrays of two axes or more, where there are any."""
    return [a for a in arrays if a.ndim >= 2] or arrays


def _weights(learner: Any, layers: int) -> list[list[Array]] | None:
    """The learned weights of each layer; None if the learner does not show them by layer."""
    stack = stack_of(learner)
    if stack is not None:
        return [[v.detach().cpu().double().numpy() for v in part.state_dict().values()] for part in stack.stack]
    lists_by_layer = [
        value
        for name, value in sorted(getattr(learner, "__dict__", {}).items())
        if name.endswith("_") and isinstance(value, (list, tuple)) and len(value) == layers
    ]
    return [[np.asarray(value[i]) for value in lists_by_layer] for i in range(layers)] if lists_by_layer else None


def _weights_before(bench: Bench, learner: Any, layers: int) -> list[list[Array]] | None:
    stack = stack_of(learner)
    if stack is not None:
        keys = [[f"{i}.{name}" for name in part.state_dict()] for i, part in enumerate(stack.stack)]
        return [[stack.start[key].detach().cpu().double().numpy() for key in part] for part in keys]
    fresh = bench.parts.learner.build()
    if not hasattr(fresh, "untrained"):
        return None
    fresh.untrained(rows(bench.features, bench.training))
    return _weights(fresh, layers)


def _change(before: list[Array], after: list[Array]) -> float:
    """The relative change ‖w − w₀‖/‖w₀‖ of a layer's weights; 1 where their shapes have changed."""
    if [a.shape for a in before] != [a.shape for a in after]:
        return 1.0
    distance = np.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(after, before, strict=True)))
    size = np.sqrt(sum(float((b**2).sum()) for b in before))
    return float(distance / size) if size > 0 else float(distance)
