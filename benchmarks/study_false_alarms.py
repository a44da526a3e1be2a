"""Claim: a study calls measures good on noise in at most 5 % of corpora, and finds those that do predict the gap.

A grid of networks, one for each combination; the gap follows all hyper-parameters, and noise. Sixty measures that
predict nothing are of three kinds: pure noise; noise that measures share; and two hyper-parameters each, repeated
with noise, which follow the gap closely and say nothing beyond the two. A false alarm is a corpus in which the page
calls any of them good (p_max ≤ 0.05), or calls the best of equals better than another. A fourth kind has three seeds
of each combination, and gap and measures each follow the combinations in their own way, so that the seeds of one are
alike. Of small corpora whole pages are counted, which are false alarms if anything on them is called good. Power is
the share of corpora in which the page finds a measure that correlates with the gap, among fifty-nine of noise. The
rule before, the best of all above the 95 % level of one random order, is counted beside it.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from assay.report.study_findings import study_findings
from assay.stats.proportions import wilson
from assay.studies import Scoring, against_chance, chance_level, compare_measures, judge

Array = NDArray[np.float64]

LEVEL = 0.05
KINDS = ("pure noise", "shared noise", "two hyper-parameters each")


def of_cells(levels: tuple[int, ...], measures: int, seed: int) -> tuple[dict[str, Array], Array, dict[str, Array]]:
    """Measures, gap and hyper-parameters of three seeds of each combination, which each follows in its own way."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.array(list(itertools.product(*map(range, levels)))), 3, axis=0)
    cells = np.repeat(np.arange(len(codes) // 3), 3)
    alike = rng.normal(size=(measures + 1, len(codes) // 3))[:, cells]
    follow = alike + 0.3 * rng.normal(size=alike.shape)
    grid = {f"h{k}": codes[:, k] for k in range(len(levels))}
    return {f"measure {i}": row for i, row in enumerate(follow[1:])}, follow[0], grid


def green_page(levels: tuple[int, ...], measures: int, seed: int) -> bool:
    """Whether the page of a corpus of pure noise calls anything good."""
    corpus = Corpus(levels, measures, KINDS[0], seed)
    table = pd.DataFrame({"network": [f"n{i}" for i in range(len(corpus.gap))], **corpus.grid, "gap": corpus.gap})
    numbers = pd.DataFrame(corpus.measures, index=table["network"])
    study = judge(table, numbers, list(corpus.grid), Scoring(draws=200, permutations=99, seed=seed))
    items = study_findings(study.ranking, study.comparisons, study.about, study.combined).items
    return any(tone == "good" for tone, _, _ in items)


class Corpus:
    """A simulated corpus: the hyper-parameters and gaps of its networks, and measures that predict nothing."""

    def __init__(self, levels: tuple[int, ...], measures: int, kind: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        codes = np.array(list(itertools.product(*map(range, levels))))
        self.grid = {f"h{k}": codes[:, k] for k in range(len(levels))}
        effects = [self.rng.normal(size=n)[codes[:, k]] for k, n in enumerate(levels)]
        explained = np.sum(effects, axis=0)
        self.gap = explained / explained.std() + 0.5 * self.rng.normal(size=len(codes))
        noise = self.rng.normal(size=(measures, len(codes)))
        if kind == "shared noise":
            noise = noise + 2 * self.rng.normal(size=(4, len(codes)))[np.arange(measures) % 4]
        if kind == "two hyper-parameters each":
            pairs = itertools.cycle(itertools.combinations(effects, 2))
            noise = noise + [3 * np.sum(pair, axis=0) for pair, _ in zip(pairs, noise, strict=False)]
        self.measures = {f"measure {i}": values for i, values in enumerate(noise)}

    def with_one_good(self, correlation: float) -> None:
        """Make the first measure correlate with the gap."""
        gap = (self.gap - self.gap.mean()) / self.gap.std()
        noise = np.sqrt(1 - correlation**2) * self.rng.normal(size=len(gap))
        self.measures["measure 0"] = correlation * gap + noise

    def good(self, permutations: int, seed: int) -> list[str]:
        """The measures that a study calls good."""
        table = against_chance(self.measures, self.gap, self.grid, permutations=permutations, seed=seed).table
        return [str(name) for name in table["measure"][table["p_max"] <= LEVEL]]

    def good_before(self) -> bool:
        """Whether the best measure is above what 95 % of single random orders stay below."""
        table = against_chance(self.measures, self.gap, self.grid, "cmi", permutations=19).table
        return bool(table["value"].max() > chance_level(self.gap, self.grid, "cmi", draws=200))


def share(count: int, of: int) -> str:
    """A proportion with its 95 % interval."""
    low, high = wilson(count / of, of)
    return f"{100 * count / of:5.1f} % ({100 * low:.1f} to {100 * high:.1f}; {count} of {of})"


def false_alarms(levels: tuple[int, ...], measures: int, kind: str, corpora: int, permutations: int) -> int:
    """The number of corpora in which a measure that predicts nothing is called good."""
    return sum(bool(Corpus(levels, measures, kind, s).good(permutations, s)) for s in range(corpora))


def found(levels: tuple[int, ...], measures: int, correlation: float, corpora: int, permutations: int) -> int:
    """The number of corpora in which the one measure that predicts the gap is called good."""
    count = 0
    for seed in range(corpora):
        corpus = Corpus(levels, measures, "pure noise", seed)
        corpus.with_one_good(correlation)
        count += "measure 0" in corpus.good(permutations, seed)
    return count


def equals_told_apart(levels: tuple[int, ...], measures: int, correlation: float, corpora: int, draws: int) -> int:
    """The number of corpora in which, of measures that predict equally well, the best is called better than another."""
    count = 0
    for seed in range(corpora):
        corpus = Corpus(levels, measures, "pure noise", seed)
        gap = (corpus.gap - corpus.gap.mean()) / corpus.gap.std()
        root = np.sqrt(1 - correlation**2)
        equals = {name: correlation * gap + root * noise for name, noise in corpus.measures.items()}
        table = compare_measures(equals, corpus.gap, corpus.grid, draws=draws, seed=seed)
        count += bool((table["p_max"] <= LEVEL).any())
    return count


def lines(options: argparse.Namespace) -> Iterator[str]:
    """The shares in words."""
    levels, n = tuple(options.levels), int(np.prod(options.levels))
    grid = " × ".join(map(str, levels))
    yield f"{n} networks ({grid}), {options.measures} measures, {options.permutations} permutations"
    before = sum(Corpus(levels, options.measures, KINDS[0], s).good_before() for s in range(options.few))
    yield f"  false alarms of the rule before, pure noise: {share(before, options.few)}"
    for kind in KINDS:
        count = false_alarms(levels, options.measures, kind, options.corpora, options.permutations)
        yield f"  false alarms, {kind}: {share(count, options.corpora)}   (at most 5 %)"
    count = 0
    for seed in range(options.few):
        asked, gap, hyper = of_cells((2, 2, 2, 2), 10, seed)
        count += bool((against_chance(asked, gap, hyper, permutations=99, seed=seed).table["p_max"] <= LEVEL).any())
    yield f"  false alarms, 48 networks of 16 cells, 10 measures that follow cells: {share(count, options.few)}"
    for small in ((3, 2, 2), (3, 3, 2)):
        count = sum(green_page(small, 5, seed) for seed in range(options.few))
        said = share(count, options.few)
        yield f"  pages of {np.prod(small)} networks and 5 measures of noise with anything good: {said}"
    for correlation in (0.0, 0.7):
        count = equals_told_apart(levels, 20, correlation, options.few, 200)
        said = share(count, options.few)
        yield f"  best of 20 equals (correlation {correlation}) called better: {said}   (at most 5 %)"
    for correlation in (0.5, 0.6, 0.7, 0.8, 0.9):
        count = found(levels, options.measures, correlation, options.few, options.permutations)
        yield f"  power at a correlation of {correlation} with the gap: {share(count, options.few)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=int, nargs="+", default=[3, 3, 3, 2])
    parser.add_argument("--measures", type=int, default=60)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--corpora", type=int, default=200, help="for the false alarms")
    parser.add_argument("--few", type=int, default=40, help="for the rule before, for power and for comparisons")
    options = parser.parse_args()
    start = time.perf_counter()
    with threadpool_limits(1):
        for line in lines(options):
            print(line, flush=True)
    print(f"  {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
