"""Claim: where all systems are equal by construction, the analysis of the plan's design (each of K = 10 disjoint folds
trains a classifier, all are scored on one test set) calls 3 to 7 % of the planned contrasts different and at most 7 %
of the families of contrasts, with groups, with few or unequal groups and with ratings that share reviews; and where a
system is worse by exactly the margin, it calls it comparable, not inferior or equivalent at most 5 % of the time. The
plan's own rule and the tests over folds raise far more false alarms. The limit is shown too: few groups that are both
trained and tested on, whose chance is in every fold alike and which no resampling of the test set can see."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from assay.broad.analysis.claims import LEVEL, SUPPORTED, excludes_margin, verdict_on
from assay.broad.analysis.comparisons import FOCAL, adjust_planned, compared
from assay.broad.analysis.scores import RunResult, TaskTruth, combined, scored
from assay.broad.conditions import CONTRASTS
from assay.broad.metrics import MAP, RMSE, Metric
from assay.stats.equivalence import equivalence_p, noninferiority_p
from assay.stats.paired import two_sided_p

FOLDS = 10
ALL = ("1", "3n", "3s", "4n", "4s", "5n", "5s", "6n", "6s")  # the runs of the eight planned contrasts
EDGE = ("1", "6n", "6s")  # the runs of comparability
Row = dict[str, Any]
RULES = {  # of one contrast: the p value, or whether the rule says that systems differ
    "plan: standard errors apart": lambda row, _: row["plan_rule"] != "no difference suggested",
    "paired t over folds": lambda row, _: row["paired_t_p"] < LEVEL,
    "Wilcoxon over folds": lambda row, _: row["wilcoxon_p"] < LEVEL,
    "Nadeau–Bengio": lambda row, design: _p(row, row["v_fold"] * (1 + FOLDS * design.n_test / design.n_train)) < LEVEL,
    "test-set bootstrap only": lambda row, _: _p(row, row["v_test"], None) < LEVEL,
    "two components, normal law": lambda row, _: _p(row, row["v_fold"] + row["v_test"], None) < LEVEL,
    "two components, Student's t": lambda row, _: row["p"] < LEVEL,
}


@dataclass(frozen=True)
class Design:
    """Instances with Gaussian latent variables; each system sees them through noise of its own, but of the same law.

    So systems are exchangeable and expected scores are equal, unless some have more noise. Instances of a group are
    alike, in what they are and in how systems see them. Each rating has a partition of its own of the same instances.

    Args:
        metric: Metric of the task.
        n_train: Number of instances of a fold.
        n_test: Number of test instances of a rating.
        groups: Sizes of the groups, relative to each other; none for no groups.
        spare: Number of instances that are neither trained nor tested on, such as the plan's validation instances.
        ratings: Number of ratings; more than one are tasks of their own, of the same reviews.
        labels: Number of classes of a video task.
        dimensions: Number of latent variables.
        noise: Noise of the systems, in standard deviations of the latent variables.
        likeness: Share of the variance that instances of a group have in common.
        positives: Share of positive instances of a class.
        trained_on: Whether the groups of the test set are also those of the folds.
    """

    metric: Metric
    n_train: int
    n_test: int
    groups: tuple[int, ...] = ()
    spare: int = 0
    ratings: int = 1
    labels: int = 1
    dimensions: int = 12
    noise: float = 1.0
    likeness: float = 0.3
    positives: float = 0.09
    trained_on: bool = False

    def evaluation(
        self, seed: int, runs: tuple[str, ...], more_noise: float
    ) -> tuple[list[RunResult], list[TaskTruth]]:
        """Simulate an evaluation; condition 6 has more noise than the others, by this factor."""
        rng = np.random.default_rng(seed)
        n = FOLDS * self.n_train + self.n_test + self.spare
        order = [rng.permutation(n) for _ in range(self.ratings)]
        member = self._groups(rng, order[0])

        def field() -> np.ndarray:
            own = rng.normal(size=(n, self.dimensions))
            common = rng.normal(size=(member.max() + 1, self.dimensions))[member]
            return np.sqrt(1 - self.likeness) * own + np.sqrt(self.likeness) * common if self.groups else own

        latent = field()
        factor = {run: more_noise if run[0] == "6" else 1.0 for run in runs}
        seen = {run: np.column_stack([latent + self.noise * factor[run] * field(), np.ones(n)]) for run in runs}
        results, truths = [], []
        for rating in range(self.ratings):
            weights = np.roll(np.eye(self.dimensions), rating, axis=0)[:, : self.labels] + 0.3
            signal = latent @ (weights / np.linalg.norm(weights, axis=0)) + 0.5 * rng.normal(size=(n, self.labels))
            spread = np.sqrt(1.25)
            if self.metric is MAP:
                targets = (signal > spread * stats.norm.isf(self.positives)).astype(float)
            else:
                targets = np.clip(np.rint(3.5 + 1.1 * signal / spread), 1, 5)
            test, rest = np.split(order[rating], [self.n_test])
            folds = rest[: FOLDS * self.n_train].reshape(FOLDS, self.n_train)
            task = "video" if self.metric is MAP else f"text:{rating}"
            names = tuple(f"label {c}" for c in range(self.labels))
            ids = tuple(f"review {i}" for i in test)
            truths.append(
                TaskTruth(task, self.metric, names, targets[test], member[test] if self.groups else None, ids)
            )
            for run in runs:
                train = seen[run][folds]
                gram = train.transpose(0, 2, 1) @ train + np.eye(train.shape[2])  # ridge regression
                predicted = seen[run][test] @ np.linalg.solve(gram, train.transpose(0, 2, 1) @ targets[folds])
                bounded = 1 / (1 + np.exp(-predicted)) if self.metric is MAP else np.clip(predicted, 1, 5)
                results.append(RunResult(task, run, int(run[0]), run[1:] or None, "done", bounded))
        return results, truths

    def _groups(self, rng: np.random.Generator, order: np.ndarray) -> np.ndarray:
        """The group of each instance; folds have groups of their own unless they train on the tested ones."""
        shares = np.array(self.groups or (1,)) / sum(self.groups or (1,))
        sizes = [len(order)] if self.trained_on else [self.n_test, len(order) - self.n_test]
        drawn = [rng.choice(len(shares), size=size, p=shares) + len(shares) * i for i, size in enumerate(sizes)]
        member = np.empty(len(order), dtype=int)
        member[order] = np.concatenate(drawn)
        return member

    def contrasts(self, seed: int, runs: tuple[str, ...], more_noise: float = 1.0, draws: int = 200) -> list[Row]:
        """The planned contrasts of one simulated evaluation, all ratings together, as the analysis makes them."""
        results, truths = self.evaluation(seed, runs, more_noise)
        tasks = [scored(t, [r for r in results if r.task == t.task], truths, draws, seed) for t in truths]
        (whole,) = tasks if self.metric is MAP else combined(truths, tasks)
        planned = [c for c in CONTRASTS if c.focal == FOCAL]
        rows = [compared(whole, contrast, team, margin=0.0) for contrast in planned for team in whole.teams]
        adjust_planned(rows)
        return [row for row in rows if row["status"] == "ok"]


UNEQUAL = (400, 200, 100, 100, 50, 50, 50, 50, 25, 25, 25, 25)
AIRLINES = (72, 40, 39, 35, 30, 24, 24, 22, 22, 20, 19, 18, 17, 16, 15, 15, 14, 13, 12, 10, *(4,) * 77)
DESIGNS = {
    "video-like": Design(MAP, n_train=82, n_test=884, labels=3),
    "video-like, 60 films": Design(MAP, n_train=82, n_test=884, labels=3, groups=(1,) * 60),
    "text-like": Design(RMSE, n_train=1000, n_test=6000),
    "text-like, 5 ratings of the same reviews": Design(RMSE, n_train=40, n_test=450, spare=650, ratings=5),
    "text-like, 200 restaurants": Design(RMSE, n_train=200, n_test=2000, groups=(1,) * 200, trained_on=True),
    "text-like, 97 airlines of unequal size": Design(RMSE, n_train=60, n_test=675, groups=AIRLINES, trained_on=True),
    "text-like, 22 groups": Design(RMSE, n_train=200, n_test=1320, groups=(1,) * 22),
    "text-like, 12 groups": Design(RMSE, n_train=200, n_test=1200, groups=(1,) * 12),
    "text-like, 12 groups of unequal size": Design(RMSE, n_train=200, n_test=1200, groups=UNEQUAL),
    "text-like, 8 groups": Design(RMSE, n_train=200, n_test=1200, groups=(1,) * 8),
    "limit: 12 groups, also trained on": Design(RMSE, n_train=200, n_test=1200, groups=(1,) * 12, trained_on=True),
    "limit: 40 groups, also trained on": Design(RMSE, n_train=200, n_test=1200, groups=(1,) * 40, trained_on=True),
}


@dataclass(frozen=True)
class Rates:
    """Shares of simulated evaluations.

    Args:
        contrast: Share of planned contrasts that are called different.
        family: Share of families in which any planned contrast is called different after Holm.
        rules: The share of each rule, of one contrast.
        support: Share in which each claim is supported though the system is worse by the margin.
        true_sd: The true standard deviation of a difference.
        estimated_sd: What the two components say it is.
    """

    contrast: float
    family: float
    rules: dict[str, float]
    support: dict[str, float]
    true_sd: float
    estimated_sd: float


def simulate(design: Design, repetitions: int, seed: int = 0) -> Rates:
    """Simulate evaluations of equal systems, and as many of a system that is worse by exactly the margin."""
    with threadpool_limits(1):  # many small products: threads would only wait for each other
        null = [design.contrasts(seed + r, ALL) for r in range(repetitions)]
        edge = [design.contrasts(seed + r, EDGE, more_noise=2.0) for r in range(repetitions)]
    rows = [row for family in null for row in family]
    losses = [row for family in edge for row in family if row["contrast"] == "6 v 1"]
    margin = -float(np.mean([row["difference"] for row in losses]))
    at_margin = [_with_margin(row, margin) for row in losses]
    return Rates(
        contrast=float(np.mean([row["p"] < LEVEL for row in rows])),
        family=float(np.mean([any(row["p_holm"] < LEVEL for row in family) for family in null])),
        rules={name: float(np.mean([bool(says(row, design)) for row in rows])) for name, says in RULES.items()},
        support={
            "comparable": float(np.mean([verdict_on("comparable", row) == SUPPORTED for row in at_margin])),
            "not inferior": float(np.mean([verdict_on("non-inferior", row) == SUPPORTED for row in at_margin])),
            "equivalent": float(
                np.mean([excludes_margin(row["equivalent_p"], row["few_groups"]) for row in at_margin])
            ),
        },
        true_sd=float(np.sqrt(np.mean([row["difference"] ** 2 for row in rows]))),
        estimated_sd=float(np.sqrt(np.mean([row["v_fold"] + row["v_test"] for row in rows]))),
    )


def _with_margin(row: Row, margin: float) -> Row:
    """A contrast as if this margin had been declared."""
    estimate = (row["difference"], row["v_fold"] + row["v_test"], margin, row["df"])
    return row | {
        "margin": margin, "noninferior_p": noninferiority_p(*estimate), "equivalent_p": equivalence_p(*estimate),
    }  # fmt: skip


def _p(row: Row, variance: float, df: float | None = FOLDS - 1) -> float:
    return two_sided_p(row["difference"], float(np.sqrt(variance)), df)


def lines(name: str, design: Design, rates: Rates, repetitions: int) -> Iterator[str]:
    """The rates of a design in words, with what is promised of them."""
    groups = f" in {len(design.groups)} groups" if design.groups else ""
    yield f"{name}: {design.metric.name}, {FOLDS} folds of {design.n_train}, {design.n_test} test instances{groups}"
    error = 100 * np.sqrt(0.05 * 0.95 / repetitions)
    ok = 0.03 <= rates.contrast <= 0.07 and rates.family <= 0.07 and max(rates.support.values()) <= 0.05
    yield f"  false alarms a contrast   {100 * rates.contrast:4.1f} %   (3 to 7 %)"
    yield f"  false alarms a family     {100 * rates.family:4.1f} %   (at most 7 %; simulated to ±{error:.1f})"
    for claim, rate in rates.support.items():
        yield f"  false support: {claim:12s} {100 * rate:3.1f} %   (at most 5 %, worse by exactly the margin)"
    yield f"  SD of a difference: true {rates.true_sd:.4f}, two components {rates.estimated_sd:.4f}"
    yield "  by rule: " + ", ".join(f"{rule} {100 * rate:.0f} %" for rule, rate in rates.rules.items())
    yield "  no promise is made of it" if name.startswith("limit") else f"  {'kept' if ok else 'NOT KEPT'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--only", default="", help="designs whose names contain this")
    arguments = parser.parse_args()
    for name, design in DESIGNS.items():
        if arguments.only in name:
            start = time.perf_counter()
            rates = simulate(design, arguments.repetitions)
            print("\n".join(lines(name, design, rates, arguments.repetitions)))
            print(f"  {arguments.repetitions} repetitions of each, {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
