"""The plan's full text size on this machine: 433,697 generated reviews, N = 10,000, K = 10, conditions 1–6.

Needs no data: reviews are generated. Prints the time of each stage, the peak memory of the largest process, and that of
each run with everything it starts, which the protocol keeps below 8 GiB (a run that takes more is ``out of memory``).

    python benchmarks/broad_text.py --processes 8                             all conditions, all five ratings
    python benchmarks/broad_text.py --conditions 5 6 --ratings Overall        the learners, one rating
    python benchmarks/broad_text.py --conditions 6 --count 43370 --terms 4000 a tenth of it
    python benchmarks/broad_text.py --device cuda                             only the learners, on a GPU

The learners learn from --samples reviews for --epochs passes a layer (20,000 and 30 by default, as the modules do).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import defaultdict
from typing import Any

import numpy as np
from timing import where

from assay.broad.data.dataset import Dataset, Modality
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.protocol import Protocol, dry_run, run_conditions
from assay.broad.run.results import Results
from assay.broad.systems.team import Evaluators, Module, Parts, Team
from assay.broad.tasks import make_tasks
from assay.runs.process_tree import tree_bytes

COSTS = {"grid": {"C": [0.001, 0.01, 0.1, 1.0]}}
GIB = 2**30


def teams(terms: int = 5000, **learning: Any) -> tuple[Team, ...]:
    """Both teams, with the given number of terms, whose learners have the given settings."""
    learning |= {"inputs": terms}
    return (
        Team("n", "denoising", {"text": Parts(
            Module("bag_of_words", {"weights": "binary", "terms": terms}), Module("denoising_autoencoder", learning),
            Module("logistic", COSTS))}),
        Team("s", "sparse", {"text": Parts(
            Module("bag_of_words", {"terms": terms}), Module("sparse_autoencoder", learning),
            Module("linear_svr", COSTS))}),
    )  # fmt: skip


EVALUATORS: dict[Modality, Evaluators] = {
    "text": Evaluators(Module("bag_of_words"), Module("topics", {"grid": {"topics": [20]}}))
}


def of_the_plan(count: int) -> Dataset:
    """So many reviews, of as many restaurants as the plan's share."""
    return generated_reviews(count, max(round(count * 10_066 / 433_697), 1))


class Watch(threading.Thread):
    """Notes the largest memory of this process and everything below it, twice a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.peak = max(self.peak, tree_bytes(os.getpid()))


def conditions(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    reviews = of_the_plan(options.count)
    print(f"{len(reviews):,} reviews generated: {time.perf_counter() - start:.0f} s")
    ratings = tuple(options.ratings) if options.ratings else None
    protocol = Protocol(n=options.n, validation_cap=options.cap, ratings=ratings, memory_gib=options.memory_gib)
    entrants = teams(options.terms, samples=options.samples, epochs=options.epochs)
    start = time.perf_counter()
    tasks = make_tasks(
        None, reviews, "the secret of a benchmark", n=options.n, ratings=ratings, validation_cap=options.cap
    )
    print(f"{len(tasks)} partitions: {time.perf_counter() - start:.0f} s")
    total: dict[str, float] = defaultdict(float)
    began, largest, watch = time.perf_counter(), 0.0, Watch()
    watch.start()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        results = Results(place)
        for task in tasks:
            runs = [f"{task.name}/{run['run']}" for run in dry_run([task], entrants, EVALUATORS, protocol)]
            chosen = [run for run in runs if int(run.rpartition("/")[2][0]) in options.conditions]
            records = run_conditions(task, entrants, EVALUATORS, results, protocol, options.processes, chosen)
            truth, _ = task.truth()
            for record in records:
                largest = max(largest, record.peak_bytes)
                for name, took in record.seconds.items():
                    total[f"{record.run} {'folds' if name.startswith('fold') else name}"] += took
                found = results.predictions(task.name, record.run, protocol.k)
                rmse = "" if found is None else f"RMSE {np.sqrt(((found[:, :, 0] - truth[:, 0]) ** 2).mean()):.3f}"
                peak = f"{record.peak_bytes / GIB:.2f} GiB in its largest process"
                print(f"{task.name:>14} {record.run:>3} {record.status} {rmse} {record.reason} {peak}", flush=True)
    watch.over.set()
    print("seconds by run and stage:", json.dumps({k: round(v) for k, v in sorted(total.items())}, indent=1))
    print(
        f"{where('cpu')}; {options.processes} runs at a time: {(time.perf_counter() - began) / 60:.1f} min; "
        f"this process and {options.processes} runs with all they started took up to {watch.peak / GIB:.2f} GiB; "
        f"the largest process {largest / GIB:.2f} GiB"
    )


def learners(count: int, device: str, epochs: int) -> None:
    """Both deep text learners on the whole training text of one rating."""
    reviews = of_the_plan(count)
    task = make_tasks(None, reviews, "the secret of a benchmark", ratings=("Overall",))[0]
    learn = np.concatenate([task.partition.training, task.partition.validation])
    inputs = task.dataset.inputs
    for team in teams():
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
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--terms", type=int, default=5000, help="words that the teams look at; few reviews have fewer")
    parser.add_argument("--conditions", type=int, nargs="*", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--memory-gib", type=float, default=8.0, help="limit of one run with all it starts")
    parser.add_argument("--folder", help="where features and results are kept meanwhile, up to 15 GiB at full size")
    options = parser.parse_args()
    if options.device == "cpu":
        conditions(options)
    else:
        learners(options.count, options.device, options.epochs)
