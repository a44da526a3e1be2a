"""Claim: PGDL's score of a measure over 96 networks takes milliseconds, at least 20 × less than in the manner of its
scoring program, pair by pair with string keys; intervals of 20 measures from 1,000 resamples take seconds."""

from __future__ import annotations

import math
import statistics

import numpy as np
from timing import arguments, race, ratio, where

from assay.studies import conditional_mutual_information, score_measures

GRID = {"width": 4, "depth": 4, "batch": 3, "decay": 2}
TARGET = 20


def corpus(seed: int = 0) -> tuple[dict[str, list[int]], np.ndarray, dict[str, np.ndarray]]:
    """A full grid of 96 networks; gaps of main effects and noise; 20 measures that see them more or less."""
    rng = np.random.default_rng(seed)
    columns = np.indices(tuple(GRID.values())).reshape(len(GRID), -1)
    gap = sum(rng.normal(size=n)[c] for n, c in zip(GRID.values(), columns, strict=True)) + rng.normal(size=96)
    measures = {f"measure {i}": gap + (0.2 + i / 5) * rng.normal(size=96) for i in range(20)}
    return {name: column.tolist() for name, column in zip(GRID, columns, strict=True)}, gap, measures


def models(hyperparameters: dict[str, list[int]], gap: np.ndarray) -> dict[str, dict[str, dict[str, float]]]:
    """The corpus as a dictionary of models, the form the scoring program reads."""
    rows = [dict(zip(hyperparameters, values, strict=True)) for values in zip(*hyperparameters.values(), strict=True)]
    return {f"model_{i}": {"hparams": row, "metrics": {"gen_gap": float(gap[i])}} for i, row in enumerate(rows)}


def loops(scores: dict[str, float], specs: dict[str, dict[str, dict[str, float]]]) -> float:
    """Every ordered pair of hyper-parameters, every ordered pair of models, one dictionary entry at a time."""
    lowest = math.inf
    for h in GRID:
        for k in GRID:
            if h == k:
                continue
            tables: dict[str, np.ndarray] = {}
            for first, a in specs.items():
                for second, b in specs.items():
                    key = "".join(str(m["hparams"][name]) for name in (h, k) for m in (a, b))
                    wider = a["metrics"]["gen_gap"] > b["metrics"]["gen_gap"]
                    higher = scores[first] > scores[second]
                    tables.setdefault(key, np.zeros((2, 2)))[int(wider), int(higher)] += 1
            information = [cell(table) for table in tables.values()]
            lowest = min(lowest, sum(i for i, _ in information) / sum(e for _, e in information))
    return lowest


def cell(table: np.ndarray) -> tuple[float, float]:
    """Mutual information and entropy of the gap's order in one cell, in bits."""
    joint = table / table.sum()
    gap, measure = joint.sum(axis=1), joint.sum(axis=0)
    information = 0.0
    for i in range(2):
        for j in range(2):
            if joint[i, j] > 0:
                information += joint[i, j] * np.log2(joint[i, j] / (gap[i] * measure[j]))
    return information, -sum(p * np.log2(p) for p in gap if p > 0)


def main() -> None:
    options = arguments(__doc__)
    hyperparameters, gap, measures = corpus()
    measure = measures["measure 5"]
    specs, scores = models(hyperparameters, gap), {f"model_{i}": float(v) for i, v in enumerate(measure)}

    def ours() -> float:
        return conditional_mutual_information(measure, gap, hyperparameters)

    def peer() -> float:
        return loops(scores, specs)

    assert abs(ours() - peer()) < 1e-12
    times = race({"assay": ours, "loops": peer}, "cpu", options.rounds)
    milliseconds = {name: 1000 * statistics.median(t) for name, t in times.items()}
    print(f"CMI of 96 networks, {len(GRID)} hyper-parameters, {where('cpu')}")
    print(f"  loops / assay: {ratio(times, 'loops', 'assay'):.0f} × (target ≥ {TARGET})")
    print(f"  assay {milliseconds['assay']:.1f} ms, loops {milliseconds['loops']:.0f} ms")
    table = race({"table": lambda: score_measures(measures, gap, hyperparameters)}, "cpu", 1)["table"]
    print(f"  20 measures with intervals from 1,000 resamples: {statistics.median(table):.1f} s")


if __name__ == "__main__":
    main()
