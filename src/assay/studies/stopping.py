"""Early stopping after the fact: training time saved, and performance lost, by stopping when a signal has converged.

Any column of the trajectories may be the signal, so that a measure is compared with what everybody has for nothing, the
training loss.

Blanchard et al. 2019, §4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.stats.bootstrap import bootstrap_draws, percentile_interval
from assay.stats.convergence import converged, window_sds
from assay.stats.paired import t_interval
from assay.studies.trajectories import EPOCH, each_network, measurements, require_trajectories

Array = np.ndarray[Any, Any]
Better = Literal["higher", "lower"]
NAN = float("nan")


@dataclass(frozen=True)
class Outcome:
    """What is lost by stopping: which column is the performance, which direction is better, and what training costs.

    Args:
        performance: Column of the performance, such as the error on held-out data.
        better: Which direction of it is better.
        cost: Column of what training has cost up to an epoch, such as seconds; by default the epochs themselves.
    """

    performance: str
    better: Better = "higher"
    cost: str = EPOCH

    def __post_init__(self) -> None:
        sign_of(self.better)

    @property
    def sign(self) -> int:
        """1 where higher is better, −1 where lower is."""
        return sign_of(self.better)


def sign_of(better: Better) -> int:
    """1 where higher is better, −1 where lower is; an error for anything else."""
    if better not in ("higher", "lower"):
        raise AssayError(f"better={better!r} is not 'higher' or 'lower'")
    return 1 if better == "higher" else -1


def stop_when_converged(
    trajectories: pd.DataFrame, signal: str, outcome: Outcome, window: float = 25, sd: float = 0.01
) -> pd.DataFrame:
    """Stop each network when its signal has converged, and compare with training to the end.

    Args:
        trajectories: A table with one row per network and epoch: ``network``, ``epoch``, the signal, the performance
            and the cost.
        signal: Column of the signal; networks stop when its SD over ``window`` epochs is at most ``sd``. Where it
            has no value it was not measured, unless it was due: then measuring failed, and no window with that row is
            stable, as in a live training.
        outcome: What is lost, and what training costs.
        window: Number of epochs during which the signal must be stable.
        sd: The largest standard deviation that counts as stable, in units of the signal.

    Returns:
        One row per network: ``network``, ``signal``, ``sd``, ``stop_epoch`` and ``last_epoch``, ``stopped`` (whether it
        was stopped before the end), ``cost`` and ``full_cost``, ``saved`` (1 − cost/full_cost), ``performance`` at the
        stop and ``full_performance`` at the end, and ``lost``: how much worse it is at the stop, in units of the
        performance; negative where it is better.

    Example:
        >>> table = pd.DataFrame({"network": "a", "epoch": range(5, 55, 5), "hms": [0.0, 0.1, *[0.2] * 8]})
        >>> table["accuracy"] = table["epoch"] / 100
        >>> stopped = stop_when_converged(table, "hms", Outcome("accuracy"))
        >>> stopped[["stop_epoch", "saved", "lost"]].round(3).to_numpy().tolist()
        [[40.0, 0.2, 0.1]]
    """
    require_trajectories(trajectories, [signal, outcome.performance, outcome.cost])
    rows = []
    for network, of_network in each_network(trajectories):
        measured = measurements(of_network, signal)
        epoch = converged(measured[signal].tolist(), measured[EPOCH].tolist(), window, sd)
        end = of_network.iloc[-1]
        stop = end if epoch is None else of_network[of_network[EPOCH] == epoch].iloc[0]
        rows.append({"network": network, "signal": signal, "sd": sd, **outcome_at(stop, end, outcome)})
    return pd.DataFrame(rows)


def stopping_summary(stopped: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What stopping saved and lost over all networks, with intervals over networks.

    Args:
        stopped: The table of `stop_when_converged`, of one signal or of several.
        draws: Number of resamples of the networks.
        seed: Seed of the resamples.

    Returns:
        One row per signal and quantity (``time saved``: 1 − Σ cost/Σ full cost, ``performance lost``: the mean of
        ``lost``, ``networks stopped``: the share of them): ``signal``, ``sd``, ``quantity``, ``value``, ``low`` and
        ``high`` (percentile bootstrap), and ``n``.
    """
    rows = []
    for (signal, sd), of_signal in stopped.groupby(["signal", "sd"], sort=False):
        known = of_signal[of_signal["lost"].notna()]
        values = known[["cost", "full_cost", "lost", "stopped"]].to_numpy(dtype=float)
        if not len(values):
            raise AssayError(f"no network has a performance both where {signal!r} stops it and at the end")
        shares = _saved_lost_stopped(values)
        drawn = bootstrap_draws(values, _saved_lost_stopped, draws, seed)
        low, high = percentile_interval(drawn) if len(drawn) else (np.full(3, NAN),) * 2
        for i, quantity in enumerate(("time saved", "performance lost", "networks stopped")):
            number = {"value": float(shares[i]), "low": float(low[i]), "high": float(high[i]), "n": len(values)}
            rows.append({"signal": signal, "sd": sd, "quantity": quantity, **number})
    return pd.DataFrame(rows)


def saving_tradeoff(
    trajectories: pd.DataFrame, signal: str, outcome: Outcome, window: float = 25, count: int = 10
) -> pd.DataFrame:
    """What stopping by a signal loses for what it saves, from the strictest threshold to the loosest.

    Args:
        trajectories: As for `stop_when_converged`.
        signal: Column of the signal.
        outcome: What is lost, and what training costs.
        window: Number of epochs during which the signal must be stable.
        count: Number of thresholds: that many quantiles of the SDs that the signal has in windows.

    Returns:
        One row per threshold: ``signal``, ``sd``, ``saved`` (1 − Σ cost/Σ full cost), ``lost``, the mean over networks,
        with ``low`` and ``high``, its 95 % interval (Student's t over networks), and ``n``.
    """
    require_trajectories(trajectories, [signal, outcome.performance, outcome.cost])
    if count < 2:
        raise AssayError(f"count={count} must be at least 2 thresholds")
    spreads = _spreads(_windows(trajectories, signal, outcome, window))
    rows = []
    for sd in np.unique(np.quantile(spreads, np.linspace(0, 1, count), method="nearest")):
        stopped = stop_when_converged(trajectories, signal, outcome, window, float(sd))
        lost = stopped["lost"].dropna().to_numpy(dtype=float)
        mean = float(lost.mean()) if len(lost) else NAN
        low, high = t_interval(lost)
        about = {"saved": _time_saved(stopped), "lost": mean, "low": low, "high": high, "n": len(lost)}
        rows.append({"signal": signal, "sd": float(sd), **about})
    return pd.DataFrame(rows)


def matching_threshold(
    trajectories: pd.DataFrame, signal: str, outcome: Outcome, saved: float, window: float = 25
) -> float:
    """The threshold on the SD of a signal at which stopping saves nearest to a given share of the training time.

    Signals have units of their own: 0.01 of a correlation and 0.01 of a loss are not as strict. So two signals are
    compared at thresholds that save the same. The threshold is chosen with the networks at hand.

    Args:
        trajectories: As for `stop_when_converged`.
        signal: Column of the signal.
        outcome: What training costs.
        saved: The share of the training time to save.
        window: Number of epochs during which the signal must be stable.
    """
    require_trajectories(trajectories, [signal, outcome.performance, outcome.cost])
    networks = _windows(trajectories, signal, outcome, window)
    spreads = _spreads(networks)
    full_cost = sum(network.full_cost for network in networks)
    savings = [1 - sum(network.cost(sd) for network in networks) / full_cost for sd in spreads]
    return float(spreads[int(np.argmin(np.abs(np.array(savings) - saved)))])


def compare_signals(
    trajectories: pd.DataFrame,
    first: str,
    second: str,
    outcome: Outcome,
    window: float = 25,
    sd: float = 0.01,
    second_sd: float | None = None,
) -> pd.DataFrame:
    """Is one signal better to stop by than another? Differences in pairs, network by network.

    Args:
        trajectories: As for `stop_when_converged`.
        first: Column of one signal, such as human-model similarity.
        second: Column of the other, such as the training loss.
        outcome: What is lost, and what training costs.
        window: Number of epochs during which a signal must be stable.
        sd: The largest SD of the first signal that counts as stable.
        second_sd: That of the second; by default the one at which both save the same time (`matching_threshold`).

    Returns:
        One row per quantity (``saved``, ``lost``): ``first`` and ``second``, the means over networks, ``difference``
        first − second with ``low`` and ``high``, its 95 % interval (Student's t of the differences), ``n`` networks,
        and the thresholds ``first_sd`` and ``second_sd``.
    """
    one = stop_when_converged(trajectories, first, outcome, window, sd)
    matched = second_sd
    if matched is None:
        matched = matching_threshold(trajectories, second, outcome, _time_saved(one), window)
    other = stop_when_converged(trajectories, second, outcome, window, matched)
    rows = []
    for quantity in ("saved", "lost"):
        pairs = np.stack([one[quantity].to_numpy(float), other[quantity].to_numpy(float)])
        pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
        apart = pairs[0] - pairs[1]
        n = len(apart)
        means = pairs.mean(axis=1) if n else (NAN, NAN)
        low, high = t_interval(apart)
        rows.append(
            {
                "quantity": quantity,
                "first": float(means[0]),
                "second": float(means[1]),
                "difference": float(apart.mean()) if n else NAN,
                "low": low,
                "high": high,
                "n": n,
                "first_sd": sd,
                "second_sd": matched,
            }
        )
    return pd.DataFrame(rows)


def outcome_at(stop: pd.Series, end: pd.Series, outcome: Outcome) -> dict[str, Any]:
    """What is known of a network that stops at one row and would end at another."""
    performance, full = float(stop[outcome.performance]), float(end[outcome.performance])
    cost, full_cost = float(stop[outcome.cost]), float(end[outcome.cost])
    return {
        "stop_epoch": float(stop[EPOCH]),
        "last_epoch": float(end[EPOCH]),
        "stopped": bool(stop[EPOCH] < end[EPOCH]),
        "cost": cost,
        "full_cost": full_cost,
        "saved": 1 - cost / full_cost if full_cost > 0 else NAN,
        "performance": performance,
        "full_performance": full,
        "lost": outcome.sign * (full - performance),
    }


def _saved_lost_stopped(values: Array) -> Array:
    cost, full_cost, lost, stopped = values.T
    return np.array([1 - cost.sum() / full_cost.sum(), lost.mean(), stopped.mean()])


def _time_saved(stopped: pd.DataFrame) -> float:
    """The share of the training time of all networks together that stopping saves."""
    return float(1 - stopped["cost"].sum() / stopped["full_cost"].sum())


@dataclass(frozen=True, eq=False)
class _Windows:
    """The SD of a network's signal in the window that ends at each epoch, NaN if it is not whole, and the costs."""

    sds: Array
    costs: Array
    full_cost: float

    def cost(self, sd: float) -> float:
        """What training costs until a window has at most this SD, or to the end."""
        settled = np.flatnonzero(self.sds <= sd)
        return float(self.costs[settled[0]]) if len(settled) else self.full_cost


def _windows(trajectories: pd.DataFrame, signal: str, outcome: Outcome, window: float) -> list[_Windows]:
    """The windows of every network; an error if none of them is whole."""
    networks = []
    for _, rows in each_network(trajectories):
        measured = measurements(rows, signal)
        sds = window_sds(measured[signal].tolist(), measured[EPOCH].tolist(), window)
        costs = measured[outcome.cost].to_numpy(dtype=float)
        networks.append(_Windows(sds, costs, float(rows[outcome.cost].iloc[-1])))
    if not any(np.isfinite(network.sds).any() for network in networks):
        raise AssayError(f"signal={signal!r} was measured for no window of {window} epochs: give a shorter window")
    return networks


def _spreads(networks: list[_Windows]) -> Array:
    """The SDs that the signal has in windows of any network, in ascending order."""
    spreads = np.unique(np.concatenate([network.sds for network in networks]))
    finite: Array = spreads[np.isfinite(spreads)]
    return finite
