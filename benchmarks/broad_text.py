"""The plan's full text size on this machine: 433,697 generated reviews, 5 ratings, N = 10,000, K = 10, conditions 1–4.

Prints the time of each stage and the peak memory of the largest process (target: below 8 GiB). With --device cuda it
trains the teams' deep text learners on the whole training text instead.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections import defaultdict

import numpy as np
from timing import where

from assay.broad.data.dataset import Dataset, Modality
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.protocol import Protocol, dry_run, run_conditions
from assay.broad.run.results import Results
from assay.broad.systems.team import Evaluators, Module, Parts, Team
from assay.broad.tasks import make_tasks

COSTS = {"grid": {"C": [0.001, 0.01, 0.1, 1.0]}}
TEAMS = (
    Team("n", "denoising", {"text": Parts(
        Module("bag_of_words", {"weights": "binary"}), Module("denoising_autoencoder"), Module("logistic", COSTS))}),
    Team("s", "sparse", {"text": Parts(
        Module("bag_of_words"), Module("sparse_autoencoder"), Module("linear_svr", COSTS))}),
)  # fmt: skip
EVALUATORS: dict[Modality, Evaluators] = {
    "text": Evaluators(Module("bag_of_words"), Module("topics", {"grid": {"topics": [20]}}))
}


def of_the_plan(count: int) -> Dataset:
    """So many reviews, of as many restaurants as the plan's share."""
    return generated_reviews(count, max(round(count * 10_066 / 433_697), 1))


def conditions(count: int, n: int, processes: int, cap: int | None, ratings: tuple[str, ...] | None) -> None:
    start = time.perf_counter()
    reviews = of_the_plan(count)
    print(f"{len(reviews):,} reviews generated: {time.perf_counter() - start:.0f} s")
    protocol = Protocol(n=n, validation_cap=cap, ratings=ratings)
    start = time.perf_counter()
    tasks = make_tasks(None, reviews, "the secret of a benchmark", n=n, ratings=ratings, validation_cap=cap)
    print(f"{len(tasks)} partitions: {time.perf_counter() - start:.0f} s")
    total: dict[str, float] = defaultdict(float)
    began, peak = time.perf_counter(), 0.0
    with tempfile.TemporaryDirectory() as place:
        results = Results(place)
        for task in tasks:
            runs = dry_run([task], TEAMS, EVALUATORS, protocol)
            without_learner = [f"{task.name}/{run['run']}" for run in runs if not run["learner"]]
            records = run_conditions(task, TEAMS, EVALUATORS, results, protocol, processes, without_learner)
            truth, _ = task.truth()
            for record in records:
                peak = max(peak, record.peak_bytes)
                for name, took in record.seconds.items():
                    total[f"{record.run} {'folds' if name.startswith('fold') else name}"] += took
                found = results.predictions(task.name, record.run, protocol.k)
                rmse = "" if found is None else f"RMSE {np.sqrt(((found[:, :, 0] - truth[:, 0]) ** 2).mean()):.3f}"
                print(f"{task.name:>14} {record.run:>3} {record.status} {rmse} {record.reason}", flush=True)
    print(json.dumps({k: round(v) for k, v in sorted(total.items())}, indent=1))
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, peak) / 2**30
    print(f"{where('cpu')}; all: {(time.perf_counter() - began) / 60:.0f} min; peak of one process {peak:.2f} GiB")


def learners(count: int, device: str, epochs: int) -> None:
    """Both deep text learners on the whole training text of one rating."""
    reviews = of_the_plan(count)
    task = make_tasks(None, reviews, "the secret of a benchmark", ratings=("Overall",))[0]
    learn = np.concatenate([task.partition.training, task.partition.validation])
    inputs = task.dataset.inputs
    for team in TEAMS:
        parts = team.parts["text"]
        words = parts.preprocessor.build().fit(inputs.take(learn))
        x, test = words.transform(inputs.take(learn)), words.transform(inputs.take(task.partition.test))
        learner = Module(parts.learner.name, {"device": device, "epochs": epochs, "samples": len(learn)}).build()
        start = time.perf_counter()
        learner.fit(x)
        fitted = time.perf_counter() - start
        start = time.perf_counter()
        found = learner.transform(test)
        print(
            f"{where(device)}; {parts.learner.name}: {len(learner.layers)} layers learn from {x.shape[0]:,} × "
            f"{x.shape[1]:,} in {fitted:.1f} s ({epochs} epochs a layer); {found.shape[0]:,} represented in "
            f"{time.perf_counter() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=433_697)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cap", type=int, help="validation cap (the plan's footnote 5)")
    parser.add_argument("--ratings", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    if options.device == "cpu":
        ratings = tuple(options.ratings) if options.ratings else None
        conditions(options.count, options.n, options.processes, options.cap, ratings)
    else:
        learners(options.count, options.device, options.epochs)
