"""Claim: for two systems that are equal by construction, under the plan's design (each of K = 10 disjoint folds trains
a classifier, all are scored on one test set), the two-component interval raises a false alarm about one time in
twenty, and the plan's own rule and the tests over folds do so far more often."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from assay.broad.analysis.two_component import resampled_scores, standard_errors_apart, two_component
from assay.broad.metrics import MAP, RMSE, Metric
from assay.stats.paired import corrected_t_p, paired_t_p, wilcoxon_p

FOLDS = 10
RULES = {  # with the rates of an earlier, independent simulation: video-like, text-like
    "plan: standard errors apart": ("8–26 %", "42–70 %"),
    "paired t over folds": ("8–14 %", "43–66 %"),
    "Wilcoxon over folds": ("9–11 %", "42–60 %"),
    "Nadeau–Bengio": ("0 %", "0 % (31 % at n_te 1,300)"),
    "test-set bootstrap only": ("19–21 %", "7 %"),
    "two components, z": ("5–8 %", "5–7 %"),
    "two components, t": ("1–4 %", "1–3 %"),
}


@dataclass(frozen=True)
class Setting:
    """Latent Gaussian instances; each of two systems sees them through noise of its own but of the same law.

    So the systems are exchangeable, and every expected score is equal.
    """

    metric: Metric
    n_train: int  # per fold
    n_test: int
    labels: int
    dimensions: int
    noise: float  # of features
    share: float = 0.09  # of positives, where labels are classes

    def scores(self, rng: np.random.Generator, draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Values (systems × folds) and draws (systems × folds × draws) of one simulated evaluation."""
        n = FOLDS * self.n_train + self.n_test
        latent = rng.normal(size=(n, self.dimensions))
        weights = np.eye(self.dimensions)[:, : self.labels] + 0.3  # the same in every repetition
        signal = latent @ (weights / np.linalg.norm(weights, axis=0)) + 0.5 * rng.normal(size=(n, self.labels))
        spread = np.sqrt(1.25)
        if self.metric is MAP:
            targets = (signal > spread * stats.norm.isf(self.share)).astype(float)
        else:
            targets = np.clip(np.rint(3.5 + 1.1 * signal / spread), 1, 5)
        test = targets[-self.n_test :]
        predictions = []
        for _ in range(2):
            features = np.column_stack([latent + self.noise * rng.normal(size=latent.shape), np.ones(n)])
            train = features[: -self.n_test].reshape(FOLDS, self.n_train, -1)
            wanted = targets[: -self.n_test].reshape(FOLDS, self.n_train, -1)
            gram = train.transpose(0, 2, 1) @ train + np.eye(features.shape[1])  # ridge
            fitted = np.linalg.solve(gram, train.transpose(0, 2, 1) @ wanted)
            predictions.append(features[-self.n_test :] @ fitted)
        stacked = np.concatenate(predictions)  # system-folds × instances × labels
        plain = np.stack([self.metric.values(test, p) for p in stacked]).mean(axis=1)
        drawn = resampled_scores(self.metric, test, stacked, draws, int(rng.integers(2**31))).mean(axis=1)
        return plain.reshape(2, FOLDS), drawn.reshape(2, FOLDS, draws)


VIDEO = Setting(MAP, n_train=82, n_test=884, labels=3, dimensions=12, noise=1.0)
TEXT = Setting(RMSE, n_train=1000, n_test=6000, labels=1, dimensions=20, noise=1.0)


def alarms(setting: Setting, seed: int, draws: int = 100) -> tuple[dict[str, bool], float, float]:
    """What each rule says of one evaluation at 5 %, with the mean difference and the variance estimated for it."""
    rng = np.random.default_rng(seed)
    (a, b), (drawn_a, drawn_b) = setting.scores(rng, draws)
    d = a - b
    v_test = float((drawn_a - drawn_b).mean(axis=0).var(ddof=1))
    both = two_component(d, v_test)
    said = {
        "plan: standard errors apart": standard_errors_apart(a, b),
        "paired t over folds": paired_t_p(d) < 0.05,
        "Wilcoxon over folds": wilcoxon_p(d) < 0.05,
        "Nadeau–Bengio": corrected_t_p(d, setting.n_test, setting.n_train) < 0.05,
        "test-set bootstrap only": abs(d.mean()) > stats.norm.ppf(0.975) * np.sqrt(v_test),
        "two components, z": both.p < 0.05,
        "two components, t": two_component(d, v_test, reference="t").p < 0.05,
    }
    return said, both.difference, both.variance


def simulate(setting: Setting, repetitions: int, seed: int = 0) -> tuple[dict[str, int], float, float]:
    """False alarms of each rule, the true SD of the mean difference, and the two-component estimate of it."""
    with threadpool_limits(1):  # many small products: threads would only wait for each other
        found = [alarms(setting, seed + r) for r in range(repetitions)]
    counted = {rule: sum(bool(said[rule]) for said, _, _ in found) for rule in RULES}
    # Both expected scores are equal: the mean difference is known to be 0.
    true = float(np.sqrt(np.mean([d**2 for _, d, _ in found])))
    return counted, true, float(np.sqrt(np.mean([v for _, _, v in found])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=500)
    repetitions = parser.parse_args().repetitions
    for column, (name, setting) in enumerate({"video-like": VIDEO, "text-like": TEXT}.items()):
        counted, true, estimated = simulate(setting, repetitions)
        print(
            f"{name}: {setting.metric.name}, {FOLDS} folds of {setting.n_train}, {setting.n_test} test instances, "
            f"{setting.labels} label(s), {repetitions} repetitions"
        )
        for rule, count in counted.items():
            low, high = stats.binomtest(count, repetitions).proportion_ci(method="exact")
            rate = f"{100 * count / repetitions:5.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
            print(f"  {rule:30s} {rate:24s} earlier: {RULES[rule][column]}")
        print(f"  SD of the mean difference: true {true:.4f}, two components {estimated:.4f}")


if __name__ == "__main__":
    main()
