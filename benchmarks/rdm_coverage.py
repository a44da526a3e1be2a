"""Claim: the intervals of `bootstrap_rdms` hold the true score about as often as they say.

Stimuli are points in a space that subjects and two models see through linear maps, of which the subjects' differ, with
noise in every response. Again and again stimuli, subjects or both are drawn anew. The true score is that of many
stimuli and subjects; counted is how often 95 % intervals hold it: value ± t·(standard error), which `table` gives, and
percentiles of the draws; and how often the interval of the difference of the two models holds the true difference.
"""

from __future__ import annotations

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from assay import bootstrap_rdms, compare_rdms, rdm
from assay.stats.bootstrap import percentile_interval

LATENT, FEATURES = 8, 30
SETS, SET_STIMULI, SET_SUBJECTS = 40, 150, 20  # behind the true score


class World:
    """Stimuli, subjects and two models that are equally far from the subjects."""

    def __init__(self, noise: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.noise = noise
        self.common, *own = self.rng.normal(size=(3, LATENT, FEATURES))
        self.models = [self.common + part for part in own]

    def stimuli(self, count: int) -> np.ndarray:
        return self.rng.normal(size=(count, LATENT))

    def subjects(self, count: int) -> np.ndarray:
        return self.common + self.rng.normal(size=(count, LATENT, FEATURES))

    def rdms(self, stimuli: np.ndarray, subjects: np.ndarray) -> np.ndarray:
        shape = (len(stimuli), FEATURES)
        return np.stack([rdm(stimuli @ seen + self.noise * self.rng.normal(size=shape)) for seen in subjects])

    def of_models(self, stimuli: np.ndarray) -> np.ndarray:
        return np.stack([rdm(stimuli @ seen) for seen in self.models])

    def true_scores(self, stimuli: np.ndarray | None, subjects: np.ndarray | None) -> np.ndarray:
        """The mean scores of the models over many sets of stimuli, subjects or both, whichever are not given."""
        found = []
        for _ in range(SETS):
            shown = self.stimuli(SET_STIMULI) if stimuli is None else stimuli
            people = self.subjects(SET_SUBJECTS) if subjects is None else subjects
            found.append(compare_rdms(self.of_models(shown), self.rdms(shown, people)).mean(axis=1))
        return np.mean(found, axis=0)


def coverage(resample: str, stimuli: int, subjects: int, repetitions: int, draws: int) -> tuple[float, ...]:
    world = World(noise=4.0, seed=1)
    shown, people = world.stimuli(stimuli), world.subjects(subjects)
    true = world.true_scores(shown if resample == "subjects" else None, people if resample == "stimuli" else None)
    held = []
    for repetition in range(repetitions):
        if resample != "subjects":
            shown = world.stimuli(stimuli)
        if resample != "stimuli":
            people = world.subjects(subjects)
        models, data = world.of_models(shown), world.rdms(shown, people)
        found = bootstrap_rdms(models, data, resample=resample, draws=draws, seed=repetition, ceiling=False)  # type: ignore[arg-type]
        row, pair = found.table().iloc[0], found.pairs().iloc[0]
        low, high = percentile_interval(found.draws[:, 0])
        apart = true[0] - true[1]
        held.append((row.low <= true[0] <= row.high, low <= true[0] <= high, pair.low <= apart <= pair.high))
    return (float(true[0]), *(float(share) for share in np.mean(held, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    error = np.sqrt(0.05 * 0.95 / options.repetitions)
    print(f"{options.repetitions} repetitions of {options.draws} resamples; a share of 0.95 is known to ± {error:.3f}")
    titles = f"{'resampled':10s} {'stimuli':>7s} {'subjects':>8s}"
    print(f"{titles} {'true':>6s} {'± t·se':>7s} {'percentiles':>12s} {'pair':>6s}")
    with threadpool_limits(1):
        for stimuli, subjects in ((20, 5), (40, 8), (92, 8)):
            for resample in ("stimuli", "subjects", "both"):
                shares = coverage(resample, stimuli, subjects, options.repetitions, options.draws)
                numbers = "{:6.3f} {:7.3f} {:12.3f} {:6.3f}".format(*shares)
                print(f"{resample:10s} {stimuli:7d} {subjects:8d} {numbers}", flush=True)


if __name__ == "__main__":
    main()
