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
from pathlib import Path

import numpy as np
from timing import where

from assay.broad.conditions import run_specs
from assay.broad.protocol import Protocol, _jobs, _write_manifest, run_conditions
from assay.broad.results import Results
from assay.broad.systems import Evaluators, Module, Parts, Team
from assay.broad.tasks import make_tasks
from assay.broad.twins import generated_reviews

COSTS = {"grid": {"C": [0.001, 0.01, 0.1, 1.0]}}
TEAMS = (
    Team("n", "denoising", {"text": Parts(
        Module("bag_of_words", {"weights": "binary"}), Module("denoising_autoencoder"), Module("logistic", COSTS))}),
    Team("s", "sparse", {"text": Parts(
        Module("bag_of_words"), Module("sparse_autoencoder"), Module("linear_svr", COSTS))}),
)  # fmt: skip
EVALUATORS = {"text": Evaluators(Module("bag_of_words"), Module("topics", {"grid": {"topics": [20]}}))}


def conditions(count: int, n: int, processes: int, cap: int | None, ratings: tuple[str, ...] | None) -> None:
    start = time.perf_counter()
    reviews = generated_reviews(count)
    print(f"{len(reviews):,} reviews generated: {time.perf_counter() - start:.0f} s")
    protocol = Protocol(n=n, validation_cap=cap, ratings=ratings)
    start = time.perf_counter()
    tasks = make_tasks(None, reviews, "the secret of a benchmark", n=n, ratings=ratings, validation_cap=cap)
    print(f"{len(tasks)} partitions: {time.perf_counter() - start:.0f} s")
    total: dict[str, float] = defaultdict(float)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        results = Results(place)
        _write_manifest(results, tasks, TEAMS, EVALUATORS, "the secret of a benchmark", protocol, None)
        for task in tasks:
            keys = tuple(
                f"{task.name}/{job.key}"
                for job in _jobs(task, TEAMS, EVALUATORS, protocol)
                if job.spec.condition.number <= 4
            )
            records = run_conditions(task, TEAMS, EVALUATORS, results, protocol, processes, keys)
            truth, _ = task.truth()
            for record in records:
                stages = {k if k[:4] != "fold" else "folds": 0.0 for k in record.seconds}
                for name, took in record.seconds.items():
                    stages[name if name[:4] != "fold" else "folds"] += took
                for name, took in stages.items():
                    total[f"{record.run} {name}"] += took
                found = results.predictions(task.name, record.run, protocol.k)
                rmse = "" if found is None else f"RMSE {np.sqrt(((found[:, :, 0] - truth[:, 0]) ** 2).mean()):.3f}"
                print(f"{task.name:>14} {record.run:>3} {record.status} {rmse} {record.reason}", flush=True)
    print(json.dumps({k: round(v) for k, v in sorted(total.items())}, indent=1))
    peak = max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**20
    print(f"{where('cpu')}; all: {(time.perf_counter() - began) / 60:.0f} min; peak of one process {peak:.2f} GiB")


def learners(count: int, device: str, epochs: int) -> None:
    """Both deep text learners on the whole training text of one rating."""
    reviews = generated_reviews(count)
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
    assert len(run_specs(("n", "s"))) == 11
    assert Path(__file__).exists()
    if options.device == "cpu":
        ratings = tuple(options.ratings) if options.ratings else None
        conditions(options.count, options.n, options.processes, options.cap, ratings)
    else:
        learners(options.count, options.device, options.epochs)
