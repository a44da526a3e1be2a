"""Claim: a bootstrap of stimuli with its noise ceiling (92 stimuli, 8 subjects, 1,000 resamples) takes at least 50 ×
less CPU time than rsatoolbox's.

The peer is `rsatoolbox.inference.eval_bootstrap_pattern` with its default, which resamples the ceiling too; it runs for
fewer resamples, and times are compared per resample. The limit is what any exact way has to do: to look up the weights
of every RDM in its sorted order and add them up.
"""

from __future__ import annotations

import argparse
import statistics
import warnings

import numpy as np
from threadpoolctl import threadpool_limits
from timing import cpu_seconds

from assay import bootstrap_rdms, rdm
from assay.measures.similarity.resampling import pair_weights
from assay.stats.bootstrap import counts

with warnings.catch_warnings():  # deprecations inside the package
    warnings.simplefilter("ignore")
    import rsatoolbox.inference
    import rsatoolbox.model
    import rsatoolbox.rdm
    import tqdm

STIMULI, SUBJECTS, DRAWS, TARGET = 92, 8, 1000, 50


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The RDM of a model and those of subjects who see the same with noise."""
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(STIMULI, 20))
    return rdm(seen)[None], np.stack([rdm(seen + 2 * rng.normal(size=seen.shape)) for _ in range(SUBJECTS)])


def sums_alone(model: np.ndarray, data: np.ndarray, draws: int) -> None:
    order = np.argsort(np.concatenate([model, data]), axis=1)
    for part in counts(STIMULI, draws):
        for row in part:
            pair_weights(row).take(order).cumsum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-draws", type=int, default=50)
    options = parser.parse_args()
    model, data = problem()
    fixed = rsatoolbox.model.ModelFixed("model", rsatoolbox.rdm.RDMs(model))
    theirs = rsatoolbox.rdm.RDMs(data)

    def peer() -> object:
        np.random.seed(0)  # noqa: NPY002  # rsatoolbox draws from the global generator
        evaluate = rsatoolbox.inference.eval_bootstrap_pattern
        return evaluate(fixed, theirs, method="spearman", N=options.peer_draws)

    quiet = tqdm.tqdm.__init__
    tqdm.tqdm.__init__ = lambda self, *args, **kwargs: quiet(self, *args, **{**kwargs, "disable": True})  # type: ignore[method-assign]
    with threadpool_limits(1):
        bootstrap_rdms(model, data, draws=20)
        times: dict[str, list[float]] = {"assay": [], "rsatoolbox": [], "limit": []}
        for _ in range(options.rounds):
            times["assay"].append(cpu_seconds(lambda: bootstrap_rdms(model, data, draws=DRAWS)))
            times["limit"].append(cpu_seconds(lambda: sums_alone(model, data, DRAWS)))
            times["rsatoolbox"].append(cpu_seconds(peer) * DRAWS / options.peer_draws)
        drawn = bootstrap_rdms(model, data, draws=DRAWS)
    seconds = {name: statistics.median(values) for name, values in times.items()}

    def ratio(a: str, b: str) -> float:
        return statistics.median(x / y for x, y in zip(times[a], times[b], strict=True))

    print(
        f"Spearman, {STIMULI} stimuli, {SUBJECTS} subjects, {DRAWS:,} resamples with ceiling; one thread, CPU seconds"
    )
    print(f"  rsatoolbox / assay: {ratio('rsatoolbox', 'assay'):.0f} × (target ≥ {TARGET})")
    print(f"  assay / limit, weights added up in sorted order: {ratio('assay', 'limit'):.1f} ×")
    print(", ".join(f"  {name} {value:.2f} s" for name, value in seconds.items()))
    evaluated = peer()
    spread = evaluated.evaluations.std(ddof=1), drawn.draws.std(ddof=1)  # type: ignore[attr-defined]
    print(f"  standard deviation of the score over resamples: rsatoolbox {spread[0]:.4f}, assay {spread[1]:.4f}")


if __name__ == "__main__":
    main()
