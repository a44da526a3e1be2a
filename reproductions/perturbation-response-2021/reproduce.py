"""Reproduce "Predicting deep neural network generalization with perturbation response curves" (Schiff et al. 2021).

    cd reproductions/perturbation-response-2021
    python reproduce.py all      # or some of fashion, cifar10, invariance, tables, figures

The first three parts train the corpora of the plans beside this file, ask everything of every network and write the
answers (CSV); they need a GPU. Networks are asked in the cells of a run, ``runs/CORPUS/asked``: a part that was broken
off goes on where it was. ``tables`` scores the answers, ``figures`` draws: both from the tables alone, on any machine.
``data/fashion-mnist`` is Debian's /usr/share/datasets/fashion-mnist, ``data/cifar10.npz`` is what cifar10.py makes.
With --small all of it runs in about a minute on a CPU, on scikit-learn's digits, for the tests: too small to learn
from.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from asked import FAMILIES, WEIGHT_DRAWS
from common import AUGMENTED, BATCH, CORPORA, HERE, PERTURBATIONS, SMALL, Scale, plan_of, write, write_digits
from drawing import figures
from response_measures import GI_OF_BATCH, PerturbedAccuracy, ResponseByBatch
from scoring import tables

from assay import (
    AugmentationRobustness,
    ClusterSeparation,
    Invariance,
    Margins,
    Measure,
    Norms,
    PerturbationResponse,
    Run,
    Sharpness,
    Straightness,
    evaluate,
    gi_score,
)
from assay.core.determinism import Arithmetic
from assay.stimuli import Gratings, Images, Labelled, ParametricTest, camera_sequences
from assay.studies import TrainedCorpus, train_corpus
from assay.studies.prediction import NAMES

log = logging.getLogger("reproduce")
PARTS = (*CORPORA, "invariance", "tables", "figures")


def ask(corpus: TrainedCorpus, networks: Iterable[str], measures: Mapping[str, Measure], run: str, scale: Scale) -> Run:
    """Ask the measures of networks of a corpus, in the run of that name in its folder."""
    arithmetic = Arithmetic.here()
    if scale.processes:
        arithmetic = replace(arithmetic, threads=1)  # the threads of several processes get into each other's way
    with arithmetic.used():
        done = evaluate(map(corpus.subject, networks), measures, corpus.folder.path(run), processes=scale.processes)
    for cell in done.failures:
        raise SystemExit(f"{corpus.name}: {cell.subject} × {cell.measure}: {cell.error}\n{cell.traceback or ''}")
    return done


# -- Table 1, Figures 2 and 3 -----------------------------------------------------------------------------------------


def measures_of(train: Labelled, scale: Scale) -> dict[str, Measure]:
    """The measures of every network: first mixup of the input and of the first layer, as the paper has it."""
    channels, size = train.shape[0], train.shape[1]
    pictures = Images(train.sample(scale.pictures, 0).inputs)
    clips = camera_sequences(size, color="grey" if channels == 1 else "rgb", pictures=1 if scale.small else None)
    gratings = Gratings(size, channels=channels, **({"orientations": 5, "phases": 4} if scale.small else {}))
    few: dict[str, Any] = {"samples": scale.pictures, "bootstrap": 0, "batch_size": 1024}
    units: dict[str, Any] = {"units": "centre", "bootstrap": 0, "batch_size": 2048}
    samples = scale.batches * BATCH
    return {
        "perturbation": ResponseByBatch(train, ("intra", "inter"), (0, 1), samples=samples, bootstrap=0),
        "clusters": ClusterSeparation(train, bootstrap=0),
        "norms": Norms(),
        "margins": Margins(train, **few),
        "sharpness": Sharpness(train, draws=WEIGHT_DRAWS, steps=3 if scale.small else 10, **few),
        "augmentation": AugmentationRobustness(train, **few),
        "straightness": Straightness(clips),
        "invariance to gratings": Invariance(gratings, **units),
        "invariance to transformations": Invariance(
            ParametricTest(pictures, FAMILIES[:1] if scale.small else FAMILIES), **units
        ),
    }


def predictors(run: Run, measures: Mapping[str, Measure]) -> pd.DataFrame:
    """The numbers a study takes from the measures, under their names alone: one row per network."""
    numbers: dict[str, dict[str, float]] = {}
    for label, measure in measures.items():
        for network, rows in run.table(label).groupby("subject", sort=False):
            named = {NAMES.get(name, name): value for name, value in measure.predictors(rows).items()}
            numbers.setdefault(str(network), {}).update(named)
    return pd.DataFrame(list(numbers.values()), index=list(numbers))


def by_seconds(corpus: TrainedCorpus, scale: Scale) -> Iterator[dict[str, Any]]:
    """Seconds of a curve of the input from so many batches, of one network, alone (their Figure 3, above)."""
    subject = corpus.subject(corpus.networks[0])
    PerturbationResponse(corpus.train, "intra", samples=BATCH, bootstrap=0)(subject)  # once, to warm up
    for kind, count, run in itertools.product(("intra", "inter"), scale.counts, range(min(scale.runs, 3))):
        if count * BATCH <= len(corpus.train) or scale.small:
            start = time.perf_counter()
            PerturbationResponse(corpus.train, kind, samples=count * BATCH, bootstrap=0)(subject)
            yield {"perturbation": kind, "batches": count, "run": run, "seconds": time.perf_counter() - start}


def ask_corpus(name: str, out: Path, folder: str, scale: Scale) -> None:
    """Train a corpus and ask everything of it."""
    start = time.perf_counter()
    corpus = train_corpus(plan_of(name, folder, scale.small))
    trained = time.perf_counter() - start
    log.info("%s: %d networks in %.0f s, %d left out", name, len(corpus), trained, len(corpus.left_out))
    start = time.perf_counter()
    measures = measures_of(corpus.train, scale)
    run = ask(corpus, corpus.networks, measures, "asked", scale)
    asked = time.perf_counter() - start
    log.info("%s: asked in %.0f s", name, asked)
    numbers = predictors(run, measures)
    write(out, f"{name}_networks", corpus.table.merge(numbers, left_on="network", right_index=True, how="left"))
    write(out, f"{name}_left_out", corpus.left_out)
    response = run.table("perturbation").rename(columns={"subject": "network"})
    curves = response[response["quantity"] == "accuracy"]
    write(out, f"{name}_curves", curves[["network", "perturbation", "layer", "magnitude", "value"]])
    batches = response[response["quantity"] == GI_OF_BATCH].groupby(["network", "perturbation"], sort=False)
    gi = [{"network": n, "perturbation": p, **dict(enumerate(rows["value"]))} for (n, p), rows in batches]
    write(out, f"{name}_gi_by_batch", pd.DataFrame(gi))
    write(out, f"{name}_batch_seconds", pd.DataFrame(by_seconds(corpus, scale)))
    cells = pd.DataFrame({"work": cell.measure, "seconds": cell.seconds} for cell in run.cells)
    seconds = cells.groupby("work", sort=False)["seconds"].median()
    table = pd.concat([seconds, pd.Series({"training, all": trained, "asking, all": asked})])
    write(out, f"{name}_seconds", table.rename_axis("work").rename("seconds").reset_index())


# -- Table 3 ----------------------------------------------------------------------------------------------------------


def ask_augmented(name: str, out: Path, folder: str, scale: Scale) -> None:
    """Train networks with and without augmentation, and ask how each perturbation changes them."""
    start = time.perf_counter()
    corpus = train_corpus(plan_of(name, folder, scale.small))
    log.info("%s: %d networks in %.0f s", name, len(corpus), time.perf_counter() - start)
    table = pd.concat([perturbed(corpus, kind, scale) for kind in PERTURBATIONS[: 1 if scale.small else None]])
    log.info("%s: asked, in %.0f s with training", name, time.perf_counter() - start)
    write(out, f"{name}_networks", table.sort_values("network", kind="stable"))


def perturbed(corpus: TrainedCorpus, kind: str, scale: Scale) -> pd.DataFrame:
    """Scores on training data and gap to test data of the networks augmented by a perturbation, or by none."""
    augmentation = corpus.table["augmentation"]
    networks = corpus.table[(augmentation == "none") | augmentation.str.startswith(f"{kind} ")]
    tenth = max(len(corpus.train) // 10, 20)
    measures: dict[str, Measure] = {
        "response": PerturbationResponse(corpus.train, kind, samples=tenth, bootstrap=0),
        "test data": PerturbedAccuracy(corpus.test, kind, batch_size=BATCH),
    }
    run = ask(corpus, networks["network"], measures, f"asked/{kind}", scale)
    responses = dict(list(run.table("response").groupby("subject")))
    tested = run.table("test data").set_index("subject")["accuracy"]
    rows = []
    for row in networks.to_dict("records"):
        network = row["network"]
        response = responses[network]
        curve = response[response["quantity"] == "accuracy"]
        scores = response.set_index("quantity")["value"]
        rows.append(
            {
                "network": network,
                "perturbation": kind,
                **{h: row[h] for h in corpus.hyperparameters},
                "trained_accuracy": row["trained_accuracy"],
                "test_accuracy": tested[network],
                "gap": row["trained_accuracy"] - tested[network],
                "gi": scores["gi"],
                "gi folded": gi_score(curve["magnitude"], curve["value"], fold=True),
                "mean accuracy": scores["mean accuracy"],
                "random accuracy": scores["random accuracy"],
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Some parts, or all, in the order in which they need each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "all"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--corpora", default=str(HERE / "runs"), help="where the networks go")
    parser.add_argument("--processes", type=int, help="processes that share the GPU")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    scale = SMALL if given.small else Scale()
    scale = scale if given.processes is None else replace(scale, processes=given.processes)
    if scale.small:
        write_digits(given.corpora)
    for part in PARTS if "all" in given.parts else sorted(given.parts, key=PARTS.index):
        if part in CORPORA:
            ask_corpus(part, given.out, given.corpora, scale)
        elif part == "invariance":
            for name in AUGMENTED:
                ask_augmented(name, given.out, given.corpora, scale)
        elif part == "tables":
            tables(given.out, scale)
        else:
            figures(given.out)
    if torch.cuda.is_available():
        log.info("%s", json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
