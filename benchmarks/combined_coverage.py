"""Claim: the interval of what all measures together explain holds the truth, and noise is not said to add anything.

Corpora of 48 cells, of one or three networks each, whose gap follows nothing but noise; or the hyper-parameters; or,
besides, something that four of twenty measures see. All measures follow the hyper-parameters a little. The truth is the
mean R² over all corpora of a kind. Prints how often the intervals of `combined_prediction` hold it, how wide they are
beside the spread of R² itself, and how often the measures are said to explain more than the controls. Intervals from
resampled cells with the predictions as they are, the usual way, are counted beside them.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from threadpoolctl import threadpool_limits

from assay.stats.bootstrap import multinomial_counts
from assay.stats.proportions import wilson
from assay.studies import combined, combined_prediction

KINDS = ("nothing", "controls", "measures")
LEVELS = (2, 2, 2, 3, 2)
MEASURES = 20


def corpus(kind: str, seeds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Measures, controls, gaps and cells of networks."""
    grid = np.repeat(np.array(list(itertools.product(*map(range, LEVELS))), dtype=float), seeds, axis=0)
    own = rng.normal(size=len(grid))  # what is of the network and not of its hyper-parameters
    gap = own + 0.5 * rng.normal(size=len(grid))
    if kind != "nothing":
        gap = gap + grid @ [0.7, 0.35, -0.35, 0.35, 0.0]
    measures = rng.normal(size=(len(grid), MEASURES)) + 0.5 * grid @ rng.normal(size=(len(LEVELS), MEASURES))
    if kind == "measures":
        measures[:, :4] += own[:, None]
    return measures, grid, gap, np.arange(len(grid)) // seeds


def usual(measures: np.ndarray, controls: np.ndarray, gap: np.ndarray, cells: np.ndarray, seed: int) -> float:
    """Half of the interval of R² of both from resampled cells, predictions as they are."""
    rng = np.random.default_rng(seed)
    folds = [rng.permutation(cells.max() + 1) % combined._FOLDS for _ in range(combined._REPEATS)]
    both, nothing = (
        combined._errors([x], gap, cells, folds) for x in (np.hstack([controls, measures]), np.empty((len(gap), 0)))
    )
    times = multinomial_counts(int(cells.max()) + 1, 200, seed)[:, cells]
    return float(1.96 * (1 - (times @ both) / (times @ nothing)).std(ddof=1))


def main() -> None:
    """All kinds of corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=100)
    count = parser.parse_args().corpora
    print(f"{count} corpora of each kind; R² of controls and measures")
    for kind, seeds in itertools.product(KINDS, (1, 3)):
        rng = np.random.default_rng(0)
        found, halves = [], []
        for number in range(count):
            given = corpus(kind, seeds, rng)
            found.append(combined_prediction(*given, seed=number).set_index("of"))
            halves.append(usual(*given, number))
        both = np.array([table.loc["controls and measures", ["r2", "low"]] for table in found], dtype=float)
        r2, half = both[:, 0], both[:, 0] - both[:, 1]
        covers = int((np.abs(r2 - r2.mean()) <= half).sum())
        before = int((np.abs(r2 - r2.mean()) <= halves).sum())
        adds = sum(float(table.loc["difference", "low"]) > 0 for table in found)
        low, high = wilson(covers / count, count)
        print(
            f"{kind:>8}, {seeds} a cell: mean {r2.mean():5.2f}; holds it {covers / count:.0%} ({low:.0%}–{high:.0%}), "
            f"the usual one {before / count:.0%}; half width ÷ (1.96 × spread) {half.mean() / (1.96 * r2.std()):.1f}; "
            f"said to add: {adds / count:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
