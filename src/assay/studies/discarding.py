"""Discarding networks early, after the fact: those whose signal is below mean + SD of the population.

Blanchard et al. 2019, §4.3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.stats.bootstrap import bootstrap_draws, percentile_interval
from assay.stats.convergence import below_population, population_threshold
from assay.studies.stopping import Better, Outcome, outcome_at, sign_of
from assay.studies.trajectories import EPOCH, each_network, require_trajectories

Array = np.ndarray[Any, Any]
NAN = float("nan")


def discard_below_population(
    trajectories: pd.DataFrame, signal: str, outcome: Outcome, epoch: float, better: Better = "higher"
) -> pd.DataFrame:
    """Discard at one epoch the networks whose signal is below mean + SD of all networks, and train the others on.

    Args:
        trajectories: As for `stop_when_converged`.
        signal: Column of the signal.
        outcome: What is lost, and what training costs.
        epoch: The epoch at which networks are compared. Those that have no value then are trained on.
        better: Which direction of the signal is better; where lower is, networks above mean − SD are discarded.

    Returns:
        One row per network, as `stop_when_converged` has them, with ``kept``, ``value`` of the signal at that epoch,
        and ``threshold``.

    Blanchard et al. 2019, §4.3.
    """
    sign = sign_of(better)
    require_trajectories(trajectories, [signal, outcome.performance, outcome.cost])
    population = sign * trajectories[trajectories[EPOCH] == epoch][signal].to_numpy(dtype=float)
    if (~np.isnan(population)).sum() < 2:
        raise AssayError(
            f"epoch={epoch}: fewer than two networks have {signal!r} then; choose an epoch that was measured"
        )
    threshold = sign * population_threshold(population)
    rows = []
    for network, of_network in each_network(trajectories):
        end = of_network.iloc[-1]
        there = of_network[of_network[EPOCH] == epoch]
        value = float(there[signal].iloc[0]) if len(there) else NAN
        kept = math.isnan(value) or not below_population(sign * value, population)
        stop = end if kept else there.iloc[0]
        about = {"network": network, "signal": signal, "kept": kept, "value": value, "threshold": threshold}
        rows.append({**about, **outcome_at(stop, end, outcome)})
    return pd.DataFrame(rows)


def discard_summary(discarded: pd.DataFrame, outcome: Outcome, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What discarding saved, and how much worse the best network that was kept is than the best of all.

    Beside the loss stands that of keeping as many networks at random, whose mean is
    Σ_r loss_r·C(N − r, k − 1)/C(N, k) over networks in the order of their performance, r = 1 the best.

    Args:
        discarded: The table of `discard_below_population`.
        outcome: What was lost.
        draws: Number of resamples of the networks.
        seed: Seed of the resamples.

    Returns:
        One row per quantity (``time saved``, ``share kept``, ``best lost``, ``best lost at random``): ``quantity``,
        ``value``, ``low`` and ``high`` (percentile bootstrap over networks), and ``n``.
    """
    known = discarded[discarded["full_performance"].notna()]
    if not len(known):
        raise AssayError(f"no network has {outcome.performance!r} at the end, by which the best could be told")
    values = known[["cost", "full_cost", "kept", "full_performance"]].to_numpy(dtype=float)
    values[:, 3] *= outcome.sign
    shares = _saved_kept_regret(values)
    drawn = bootstrap_draws(values, _saved_kept_regret, draws, seed)
    rows = []
    for i, quantity in enumerate(("time saved", "share kept", "best lost", "best lost at random")):
        low, high = percentile_interval(drawn[:, i][np.isfinite(drawn[:, i])])
        ends = {"low": float(low), "high": float(high)}
        rows.append({"quantity": quantity, "value": float(shares[i]), **ends, "n": len(values)})
    return pd.DataFrame(rows)


def _saved_kept_regret(values: Array) -> Array:
    cost, full_cost, kept, performance = values.T
    n, k = len(kept), int(kept.sum())
    saved = 1 - cost.sum() / full_cost.sum()
    if not k:
        return np.array([saved, 0.0, NAN, NAN])
    loss = performance.max() - np.sort(performance)[::-1]  # of the best, the second, …
    # The chance that the network at place r is the best of k drawn of n: C(n − r, k − 1)/C(n, k).
    chance = np.zeros(n)
    still = 1.0
    for r in range(n - k + 1):
        chance[r] = still * k / (n - r)
        still *= 1 - k / (n - r)
    at_random = float((chance * loss).sum())
    return np.array([saved, k / n, performance.max() - performance[kept > 0].max(), at_random])
