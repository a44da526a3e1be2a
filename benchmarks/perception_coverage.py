"""Claim: the intervals of `perceptual_curvature` hold the curvature of simulated observers as often as they say.

Observers see sequences as random trajectories of known curvature and answer an AXB task on all pairs of frames. Counted
is how often 95 % intervals hold the true curvature, for the variational fit alone and for the Markov chains that refine
it; with the mean error (estimate − truth), the standard deviation of the estimates, and the intervals' mean width.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from assay import perceptual_curvatures, random_trajectory, simulate_observer


def row(true_deg: float, observers: int, frames: int, trials: int, lapse: float, draws: int) -> str:
    seen = [
        simulate_observer(random_trajectory(true_deg, frames, spread_deg=15, seed=i), trials, lapse, seed=i)
        for i in range(observers)
    ]
    start = time.process_time()
    fits = perceptual_curvatures(seen, draws=draws)
    seconds = (time.process_time() - start) / observers
    estimates = np.array([fit.curvature_deg for fit in fits])
    held = np.mean([fit.low <= true_deg <= fit.high for fit in fits])
    width = np.mean([fit.high - fit.low for fit in fits])
    settled = np.mean([fit.settled for fit in fits])
    kind = "chains" if draws else "variational"
    error = estimates.mean() - true_deg
    return (
        f"{kind:12s} {true_deg:6.0f} {frames:7d} {trials:7d} {lapse:6.2f} {held:9.2f} {error:+7.1f} "
        f"{estimates.std(ddof=1):6.1f} {width:7.1f} {settled:8.2f} {seconds:6.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observers", type=int, default=100, help="simulated observers for each row")
    parser.add_argument("--frames", type=int, default=11)
    parser.add_argument("--trials", type=int, nargs="+", default=[50, 200], help="for each pair of frames")
    parser.add_argument("--curvature", type=float, nargs="+", default=[15.0, 45.0, 90.0, 120.0])
    parser.add_argument("--lapse", type=float, default=0.02, help="of the observers; the fits infer it")
    parser.add_argument("--draws", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    error = np.sqrt(0.05 * 0.95 / options.observers)
    print(f"{options.observers} observers a row; a share of 0.95 is known to ± {error:.3f}")
    shown = f"{'intervals':12s} {'true °':>6s} {'frames':>7s} {'trials':>7s} {'lapse':>6s}"
    found = f"{'coverage':>9s} {'error °':>7s} {'sd °':>6s} {'width °':>7s} {'settled':>8s} {'CPU s':>6s}"
    print(shown, found)
    for trials in options.trials:
        for true_deg in options.curvature:
            for draws in (0, options.draws):
                print(row(true_deg, options.observers, options.frames, trials, options.lapse, draws), flush=True)


if __name__ == "__main__":
    main()
