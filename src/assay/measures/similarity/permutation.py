"""Whether a model is more like brains than chance: a permutation test of the stimulus labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.measures.similarity.compare import embedded, method_named, similarity
from assay.measures.similarity.inference import models_and_data
from assay.stats.bootstrap import generator, require_draws
from assay.stats.multiplicity import correction_named
from assay.stats.permutation import permutation_p
from assay.stimuli.rdms import as_matrices, stimuli_of

Array = np.ndarray[Any, Any]
_NUMBERS_AT_ONCE = 4_000_000


def permutation_test(
    models: Any,
    rdms: Any,
    method: str = "spearman",
    *,
    permutations: int = 1000,
    seed: int = 0,
    correction: str = "holm",
    names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Test whether models are more similar to subjects' RDMs than after shuffling which stimulus is which.

    The statistic is the similarity to single RDMs, averaged over them. Rows and columns of the RDMs are permuted
    together; all models are tested with the same permutations. Ranks do not change when entries change places, so that
    nothing is sorted again.

    Args:
        models: The RDMs of models, in any form that `compare_rdms` takes.
        rdms: One RDM, or one per subject, of the same stimuli in the same order.
        method: The method of comparison, as in `compare_rdms`.
        permutations: Number of random permutations.
        seed: Seed of the permutations.
        correction: How p values are adjusted for the number of models: ``holm``, ``benjamini-hochberg``, ``none``.
        names: The names of the models; by default those of a `stimuli.RdmSet`, or their numbers.

    Returns:
        One row per model: ``model``, ``value``, ``chance`` (the mean over permutations), ``p`` (one-sided, at least
        1/(1 + permutations)), ``p_adjusted`` and ``n``, the number of permutations.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.random(45)      # of ten stimuli
        >>> table = permutation_test([truth, rng.random(45)], truth + 0.3 * rng.random((4, 45)), permutations=99)
        >>> table["p"].tolist()
        [0.01, 0.12]

    Kriegeskorte, Mur & Bandettini 2008.
    """
    method = method_named(method)
    require_draws(permutations, "permutations")
    if permutations < 1:
        raise AssayError(f"permutations={permutations} is not a number of permutations: use 1000 or more")
    adjust = correction_named(correction)
    scored, data, labels = models_and_data(models, rdms, method, names)
    rng = generator(seed)
    m = stimuli_of(data.shape[1])
    orders = np.stack([rng.permutation(m) for _ in range(permutations)])
    test = _by_kendall if method in ("tau-a", "tau-b") else _by_products
    values, permuted = test(scored, data, method, orders)
    p = permutation_p(values, permuted)
    columns = {"model": labels, "value": values, "chance": permuted.mean(axis=0), "p": p, "p_adjusted": adjust(p)}
    return pd.DataFrame(columns | {"n": permutations})


def _by_products(scored: Array, data: Array, method: str, orders: Array) -> tuple[Array, Array]:
    """Values and permuted values, models × … as inner products of matrices, of which one is permuted."""
    m = orders.shape[1]
    models = _matrices(embedded(scored, method), m).reshape(len(scored), -1)
    mean = _matrices(embedded(data, method).mean(axis=0, keepdims=True), m)[0]
    step = max(1, _NUMBERS_AT_ONCE // m**2)
    permuted = [
        mean[part[:, :, None], part[:, None, :]].reshape(len(part), -1) @ models.T
        for part in np.split(orders, range(step, len(orders), step))
    ]
    return models @ mean.ravel(), np.concatenate(permuted)


def _matrices(rows: Array, m: int) -> Array:
    """Embedded RDMs as matrices whose inner products are the similarities: every pair is in them twice."""
    return rows.reshape(-1, m, m) if rows.shape[1] == m * m else as_matrices(rows) / np.sqrt(2)


def _by_kendall(scored: Array, data: Array, method: str, orders: Array) -> tuple[Array, Array]:
    matrices = as_matrices(data)
    above = np.triu(np.ones(matrices.shape[1:], dtype=bool), 1)
    permuted = [similarity(scored, matrices[:, order][:, :, order][:, above], method).mean(axis=1) for order in orders]
    return similarity(scored, data, method).mean(axis=1), np.stack(permuted)
