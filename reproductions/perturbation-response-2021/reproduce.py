"""Reproduce "Predicting deep neural network generalization with perturbation response curves" (Schiff et al. 2021).

    cd reproductions/perturbation-response-2021
    python reproduce.py all      # or one of fashion, cifar10, invariance, tables, figures

The first three parts train the corpora of the plans beside this file, ask everything of every network and write what it
said (CSV); they need a GPU. ``tables`` scores what was said, ``figures`` draws: both from the tables alone, on any
machine. ``data/fashion-mnist`` is Debian's /usr/share/datasets/fashion-mnist, ``data/cifar10.npz`` is what
cifar10.py makes. With --small all of it runs in a minute or two on a CPU, on scikit-learn's digits, for the tests: too
small to learn from.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch

from assay import (
    AugmentationRobustness,
    ClusterSeparation,
    Invariance,
    Margins,
    Measure,
    Norms,
    PerturbationResponse,
    Sharpness,
    Straightness,
    gi_score,
)
from assay.core.folder import Folder
from assay.measures.perturbation.curves import Curve, show_perturbed
from assay.stimuli import Family, Gratings, Images, Labelled, ParametricTest, camera_sequences
from assay.stimuli.perturbations import Perturbation, perturbation
from assay.studies import (
    ConditionalMutualInformation,
    CorpusPlan,
    Scoring,
    TrainedCorpus,
    chance_level,
    compare_measures,
    conditional_mutual_information,
    load_corpus_plan,
    rank,
    train_corpus,
)
from assay.studies.prediction import NAMES, with_combinations

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullLocator

log = logging.getLogger("reproduce")
HERE = Path(__file__).parent
CORPORA = ("fashion", "cifar10")
AUGMENTED = ("invariance-vgg", "invariance-resnet")
PARTS = (*CORPORA, "invariance", "tables", "figures")
SCORES = ("random accuracy", "mean accuracy", "gi folded", "gi")
PERTURBATIONS = ("rotation", "translation_x", "translation_y", "color_jitter")
BATCH = 128
ENOUGH = 0.8  # of the training data as shown: the paper's rule for its second experiment


@dataclass(frozen=True)
class Scale:
    """How much of it."""

    batches: int = 78  # of 128 inputs
    runs: int = 20
    counts: tuple[int, ...] = (1, 2, 5, 10, 20, 39, 78)
    draws: int = 1000
    workers: int = 5  # that share the GPU: more take each other's turns
    pictures: int = 1000
    small: bool = False


SMALL = Scale(batches=1, runs=2, counts=(1,), draws=20, workers=0, pictures=100, small=True)


# -- corpora ----------------------------------------------------------------------------------------------------------


@cache
def plan_of(name: str, folder: str, small: bool) -> CorpusPlan:
    """A plan of this folder, its corpus under ``folder``; a small one has few networks and the digits."""
    plan = replace(load_corpus_plan(HERE / f"{name}.yaml"), folder=f"{folder}/{name}")
    if not small:
        return plan
    third = "augmentation" if "augmentation" in plan.grid else "batch_size"
    levels = {"augmentation": ("none", "rotation full"), "batch_size": (20, 40)}[third]
    grid = {"depth": (1, 2), "learning_rate": (0.01, 0.003), third: levels}
    digits = replace(plan.data, path=Path(folder) / "digits.npz", train=120, test=60)
    fixed = {**plan.fixed, "width": 4, "epochs": 3, "stop_accuracy": None, "precision": "float32"}
    fixed |= {} if "batch_size" in grid else {"batch_size": 20}
    return replace(plan, data=digits, grid=grid, fixed=fixed, device="cpu", at_once=2)


def write_digits(folder: str) -> None:
    """scikit-learn's digits, 8×8, in three equal channels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pictures = (digits.images * (255 / 16)).astype(np.uint8)[..., None].repeat(3, 3)
    parts = {"train": slice(0, 1200), "test": slice(1200, None)}
    arrays = {f"{s}_images": pictures[p] for s, p in parts.items()}
    arrays |= {f"{s}_labels": digits.target[p] for s, p in parts.items()}
    Path(folder).mkdir(parents=True, exist_ok=True)
    np.savez(Path(folder) / "digits.npz", **arrays)  # type: ignore[arg-type]


@cache
def corpus_of(name: str, folder: str, small: bool) -> TrainedCorpus:
    """A corpus that is there, read once in each process."""
    return TrainedCorpus(plan_of(name, folder, small))


def everywhere(work: Any, name: str, networks: list[str], folder: str, scale: Scale) -> list[Any]:
    """Ask all networks of a corpus, in processes side by side if there are any; what one said is kept in a file."""
    asked = partial(kept, work, name, folder, scale)
    if not scale.workers:
        return list(map(asked, networks))
    # One thread each: they would get into each other's way.
    with ProcessPoolExecutor(
        scale.workers, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        told = []
        for network, answer in zip(networks, pool.map(asked, networks), strict=True):
            told.append(answer)
            log.info("%s: asked %s, %d of %d", name, network, len(told), len(networks))
        return told


def kept(work: Any, name: str, folder: str, scale: Scale, network: str) -> Any:
    """What a network said, from its file if it was asked before."""
    place, file = Folder(f"{folder}/{name}"), f"asked/{network}.json"
    if not place.exists(file):
        place.write(file, json.dumps(work(name, folder, network, scale), default=np.generic.item).encode())
    return json.loads(place.read(file))


# -- Table 1, Figures 2 and 3 -----------------------------------------------------------------------------------------


def mixing(train: Labelled, scale: Scale) -> PerturbationResponse:
    """Mixup of the input and of the first layer: what the paper asks of every network."""
    return PerturbationResponse(train, ("intra", "inter"), (0, 1), samples=scale.batches * BATCH, bootstrap=0)


def questions(train: Labelled, scale: Scale) -> dict[str, Measure]:
    """What is asked of every network beside it."""
    channels, size = train.shape[0], train.shape[1]
    pictures = Images(train.sample(scale.pictures, 0).inputs)
    families = (
        Family("rotation", tuple(range(-40, 41, 10))),
        Family("translation_x", tuple(range(-6, 7, 2))),
        Family("scale", (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)),
    )
    clips = camera_sequences(size, color="grey" if channels == 1 else "rgb", pictures=1 if scale.small else None)
    gratings = Gratings(size, channels=channels, **({"orientations": 5, "phases": 8} if scale.small else {}))
    few: dict[str, Any] = {"samples": scale.pictures, "bootstrap": 0, "batch_size": 1024}
    units: dict[str, Any] = {"units": "centre", "bootstrap": 0, "batch_size": 2048}
    return {
        "clusters": ClusterSeparation(train, bootstrap=0),
        "norms": Norms(),
        "margins": Margins(train, **few),
        "sharpness": Sharpness(train, draws=3, steps=3 if scale.small else 10, **few),
        "augmentation": AugmentationRobustness(train, **few),
        "straightness": Straightness(clips),
        "invariance to gratings": Invariance(gratings, **units),
        "invariance to transformations": Invariance(
            ParametricTest(pictures, families[:1] if scale.small else families), **units
        ),
    }


def ask(name: str, folder: str, network: str, scale: Scale) -> dict[str, Any]:
    """Everything about one network: numbers by name, its curves, Gi of every batch, seconds."""
    corpus = corpus_of(name, folder, scale.small)
    subject = corpus.subject(network)
    numbers: dict[str, float] = {}
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    response = mixing(corpus.train, scale)
    shown = response.curves(subject)
    table = response.table(subject, shown)
    seconds["perturbation"] = time.perf_counter() - start
    numbers |= {NAMES.get(k, k): v for k, v in response.predictors(table).items()}
    points = table[table["quantity"] == "accuracy"]
    curves = points[["perturbation", "layer", "magnitude", "value"]].to_dict("records")
    gi = {some.name: by_batch(some, curve).tolist() for (some, layer), curve in shown.items() if layer == 0}
    for label, measure in questions(corpus.train, scale).items():
        start = time.perf_counter()
        numbers |= {NAMES.get(k, k): v for k, v in measure.predictors(measure(subject)).items()}
        seconds[label] = time.perf_counter() - start
    return {"network": network, "numbers": numbers, "curves": curves, "gi": gi, "seconds": seconds}


def by_batch(some: Perturbation, curve: Curve) -> np.ndarray:
    """Gi of each batch of 128. It is linear in accuracies: that of many batches is the mean."""
    alphas = some.magnitudes(21)
    size = min(BATCH, curve.right.shape[1])
    whole = curve.right.shape[1] // size * size
    gi: np.ndarray = gi_score(alphas, curve.right[: len(alphas), :whole].reshape(len(alphas), -1, size).mean(2).T)
    return gi


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
    """Train a corpus, ask everything."""
    start = time.perf_counter()
    corpus = train_corpus(plan_of(name, folder, scale.small))
    trained = time.perf_counter() - start
    log.info("%s: %d networks in %.0f s, %d left out", name, len(corpus), trained, len(corpus.left_out))
    start = time.perf_counter()
    told = everywhere(ask, name, corpus.networks, folder, scale)
    asked = time.perf_counter() - start
    log.info("%s: asked in %.0f s", name, asked)
    write(out, f"{name}_networks", corpus.table.join(pd.DataFrame([t["numbers"] for t in told])))
    write(out, f"{name}_left_out", corpus.left_out)
    write(out, f"{name}_curves", pd.DataFrame([{"network": t["network"], **p} for t in told for p in t["curves"]]))
    gi = [{"network": t["network"], "perturbation": k, **dict(enumerate(v))} for t in told for k, v in t["gi"].items()]
    write(out, f"{name}_gi_by_batch", pd.DataFrame(gi))
    write(out, f"{name}_batch_seconds", pd.DataFrame(by_seconds(corpus, scale)))
    seconds = pd.DataFrame([t["seconds"] for t in told]).median()
    table = pd.concat([seconds, pd.Series({"training, all": trained, "asking, all": asked})])
    write(out, f"{name}_seconds", table.rename_axis("work").rename("seconds").reset_index())


def table_one(name: str, out: Path, scale: Scale) -> None:
    """Score what the networks of a corpus said."""
    table = read(out, f"{name}_networks")
    hyper = [h for h in load_corpus_plan(HERE / f"{name}.yaml").grid if h in table]
    gap, grid = table["gap"], table[hyper]
    numbers = with_combinations(table.iloc[:, table.columns.get_loc("status") + 1 :])  # what they said comes last
    ranking = rank(numbers, gap, grid, Scoring(draws=scale.draws))
    write(out, f"{name}_ranking", ranking.assign(cmi_chance=chance_level(gap, grid, draws=2 * scale.draws)))
    whole = numbers[ranking["measure"][ranking["status"] == "ok"]]
    write(out, f"{name}_comparisons", compared("mixup", whole, gap, grid, scale))
    write(out, f"{name}_gap", pd.DataFrame(explained(gap, grid)))
    write(out, f"{name}_batches", pd.DataFrame(by_count(read(out, f"{name}_gi_by_batch"), gap, grid, scale)))


def explained(gap: pd.Series, hyper: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The share of the gap's variance between the levels of each hyper-parameter (η²)."""
    for name, levels in hyper.items():
        yield {"hyper-parameter": name, "share": gap.groupby(levels).transform("mean").var() / gap.var()}


def compared(one: str, numbers: pd.DataFrame, gap: pd.Series, hyper: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    """One measure compared with each other under the same resamples, as PGDL scores and without self-pairs."""
    numbers = numbers[[one, *numbers.columns.drop(one)]]
    found = []
    for self_pairs in (True, False):
        statistic = ConditionalMutualInformation(self_pairs=self_pairs)
        pairs = compare_measures(numbers, gap, hyper, statistic, draws=scale.draws)
        found.append(pairs[pairs["measure"] == one].assign(self_pairs=self_pairs))
    return pd.concat(found, ignore_index=True)


def by_count(batches: pd.DataFrame, gap: pd.Series, hyper: pd.DataFrame, scale: Scale) -> Iterator[dict[str, Any]]:
    """CMI of Gi from so many batches, drawn many times over with repetition (their Figure 3, below)."""
    rng = np.random.default_rng(0)
    for kind, rows in batches.groupby("perturbation", sort=False):
        gi = rows.drop(columns=["network", "perturbation"]).to_numpy()
        for count, run in itertools.product((c for c in scale.counts if c <= gi.shape[1]), range(scale.runs)):
            drawn = gi[:, rng.integers(gi.shape[1], size=count)].mean(1)
            cmi = conditional_mutual_information(drawn, gap, hyper)
            yield {"perturbation": kind, "batches": count, "run": run, "cmi": cmi}


def equal_mixup(name: str, out: Path, scale: Scale) -> Iterator[dict[str, Any]]:
    """Pairs of networks whose mixup accuracies differ by less than 0.5 %: how often the greater Gi has the greater gap.

    And of those, pairs whose training accuracies differ little too. Intervals are from resampling networks. The two
    named are the pair whose Gi differ most (their Figure 2).
    """
    table = read(out, f"{name}_networks")
    columns = ("gi intra ℓ=0", "gap", "mixup", "train_accuracy")
    differences = {c: np.subtract.outer(table[c].to_numpy(), table[c].to_numpy()) for c in columns}
    gi = differences["gi intra ℓ=0"]
    times = np.random.default_rng(0).multinomial(len(table), np.full(len(table), 1 / len(table)), scale.draws)
    near = np.triu(np.ones_like(gi, dtype=bool), 1)
    for column, within in (("mixup", 0.005), ("train_accuracy", 0.005), ("train_accuracy", 0.002)):
        near = near & (np.abs(differences[column]) < within)
        right = near & (gi * differences["gap"] > 0)
        drawn = [(t @ right @ t) / (t @ near @ t) for t in times if t @ near @ t] or [np.nan]
        low, high = np.quantile(drawn, (0.025, 0.975))
        pair = np.unravel_index(np.argmax(np.where(near, np.abs(gi), -1)), gi.shape)
        one, other = table["network"].iloc[list(pair)]
        row = {"corpus": name, "also": column, "within": within, "pairs": int(near.sum()), "one": one, "other": other}
        yield row | {"right": right.sum() / max(near.sum(), 1), "right_low": low, "right_high": high}


# -- Table 3 ----------------------------------------------------------------------------------------------------------


def ask_invariance(name: str, folder: str, network: str, scale: Scale) -> list[dict[str, Any]]:
    """For the perturbations a network was augmented by (all, if by none): scores on training data, gap on test data."""
    corpus = corpus_of(name, folder, scale.small)
    row = corpus.table[corpus.table["network"] == network].iloc[0]
    subject = corpus.subject(network)
    rows = []
    for kind in PERTURBATIONS:
        if row["augmentation"] != "none" and not row["augmentation"].startswith(f"{kind} "):
            continue
        tenth = max(len(corpus.train) // 10, 20)
        measure = PerturbationResponse(corpus.train, kind, samples=tenth, bootstrap=0)
        scores = measure(subject).set_index("quantity")["value"]
        folded = replace(measure, fold=True)(subject).set_index("quantity")["value"]
        some = perturbation(kind)
        tested = show_perturbed(subject, corpus.test, {some: ()}, {0: None}, BATCH, 0)[some, 0].right.mean()
        rows.append(
            {
                "network": network,
                "perturbation": kind,
                **{h: row[h] for h in corpus.hyperparameters},
                "trained_accuracy": row["trained_accuracy"],
                "test_accuracy": float(tested),
                "gap": row["trained_accuracy"] - float(tested),
                "gi": scores["gi"],
                "gi folded": folded["gi"],
                "mean accuracy": scores["mean accuracy"],
                "random accuracy": scores["random accuracy"],
            }
        )
    return rows


def ask_augmented(out: Path, folder: str, scale: Scale) -> None:
    """Train the networks with and without augmentation, ask them."""
    for name in AUGMENTED:
        start = time.perf_counter()
        corpus = train_corpus(plan_of(name, folder, scale.small))
        log.info("%s: %d networks in %.0f s", name, len(corpus), time.perf_counter() - start)
        told = [row for rows in everywhere(ask_invariance, name, corpus.networks, folder, scale) for row in rows]
        log.info("%s: asked, in %.0f s with training", name, time.perf_counter() - start)
        write(out, f"{name}_networks", pd.DataFrame(told))


def table_three(out: Path, scale: Scale) -> None:
    """Which score tells how well a network generalizes to perturbed test data, and Gi compared with the others."""
    cells, pairs = [], []
    for name in AUGMENTED:
        told = read(out, f"{name}_networks")
        plan = load_corpus_plan(HERE / f"{name}.yaml")
        hyper = [h for h in plan.grid if h != "augmentation" and h in told]
        for kind, rows in told.groupby("perturbation", sort=False):
            good = rows if scale.small else rows[rows["trained_accuracy"] >= ENOUGH]
            good = good.reset_index(drop=True)
            ranked = rank(good[list(SCORES)], good["gap"], good[hyper], Scoring(draws=scale.draws))
            if "cmi" in ranked:  # else there are too few networks
                ranked["cmi_chance"] = chance_level(good["gap"], good[hyper], draws=2 * scale.draws)
                found = compared("gi", good[list(SCORES)], good["gap"], good[hyper], scale)
                pairs.append(found.assign(corpus=name, perturbation=kind))
            cells.append(ranked.assign(corpus=name, perturbation=kind))
    write(out, "invariance_ranking", pd.concat(cells, ignore_index=True))
    if pairs:
        write(out, "invariance_comparisons", pd.concat(pairs, ignore_index=True))


# -- figures ----------------------------------------------------------------------------------------------------------


TITLES = {
    "fashion": "Fashion-MNIST, VGG",
    "cifar10": "CIFAR-10, fully convolutional",
    "invariance-vgg": "VGG",
    "invariance-resnet": "ResNet",
}
KINDS = {  # of measures, by what their names have in them
    "the paper's": (r"\b(?:gi|pal) |mixup|DBI|(?:mean|random) accuracy", "tab:blue"),
    "straightness and invariance": (r"curvature|invariance", "tab:green"),
    "others": (r"", "tab:gray"),
}


def figures(out: Path) -> None:
    """From the tables alone."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    forest(out)
    augmented(out)
    two_networks(out)
    batches(out)


def dots(ax: Any, table: pd.DataFrame, **colors: Any) -> None:
    """Columns of measures, with intervals; dotted, what a measure that knows nothing stays below."""
    y = np.arange(len(table))
    for below, (column, color) in enumerate(colors.items()):
        spread = np.stack([table[column] - table[f"{column}_low"], table[f"{column}_high"] - table[column]])
        ax.errorbar(100 * table[column], y - 0.25 * below, xerr=100 * spread, fmt="none", ecolor="0.75", lw=1)
        ax.scatter(100 * table[column], y - 0.25 * below, c=color, s=16, zorder=3)
    ax.axvline(100 * table["cmi_chance"].iloc[0], color="0.4", lw=0.8, ls=":", label="95 % of random orders")
    ax.set_yticks(y, table["measure"], fontsize=7)
    ax.set_xlim(left=0)
    ax.spines[["top", "right"]].set_visible(False)


def forest(out: Path) -> None:
    """CMI of every measure on both corpora."""
    figure, axes = plt.subplots(1, 2, figsize=(13, 10), layout="constrained")
    for ax, name in zip(axes, CORPORA, strict=True):
        table = read(out, f"{name}_ranking").dropna(subset=["cmi"]).sort_values("cmi")
        kind = [next(k for k, (words, _) in KINDS.items() if re.search(words, m)) for m in table["measure"]]
        dots(ax, table, cmi=[KINDS[k][1] for k in kind])
        ax.set(xlabel="conditional mutual information × 100, as PGDL counts", ylim=(-1, len(table)))
        ax.set_title(f"{TITLES[name]}: {int(table['n'].iloc[0])} networks")
    for k, (_, color) in KINDS.items():
        axes[1].scatter([], [], c=color, s=16, label=k)
    axes[1].legend(loc="lower right", frameon=False)
    save(figure, out, "table_1")


def augmented(out: Path) -> None:
    """CMI of the scores of curves under four perturbations, of networks with and without augmentation."""
    table = read(out, "invariance_ranking").dropna(subset=["cmi"])
    figure, axes = plt.subplots(2, 4, figsize=(13, 4), layout="constrained", sharex=True, sharey=True)
    for row, name in zip(axes, AUGMENTED, strict=True):
        for ax, kind in zip(row, PERTURBATIONS, strict=True):
            mine = table[(table["corpus"] == name) & (table["perturbation"] == kind)]
            mine = mine.set_index("measure").loc[[m for m in SCORES if m in set(mine["measure"])]].reset_index()
            if len(mine):
                dots(ax, mine, cmi="tab:blue", cmi_distinct="tab:orange")
                ax.set_title(f"{TITLES[name]}, {kind}: {int(mine['n'].iloc[0])} networks", fontsize=8)
    told = "blue: as PGDL counts, dotted: 95 % of random orders are below; orange: without self-pairs"
    figure.supxlabel(f"CMI × 100; {told}", fontsize=9)
    save(figure, out, "table_3")


def two_networks(out: Path) -> None:
    """Curves of the two networks of equal mixup whose Gi differ most."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, found in zip(axes, read(out, "equal_mixup").query("also == 'mixup'").to_dict("records"), strict=True):
        name = found["corpus"]
        networks, curves = read(out, f"{name}_networks").set_index("network"), read(out, f"{name}_curves")
        for network in (found["one"], found["other"]):
            mine = curves.query("network == @network and perturbation == 'intra' and layer == 0")
            gap, gi, mixup = networks.loc[network, ["gap", "gi intra ℓ=0", "mixup"]]
            ax.plot(mine["magnitude"], mine["value"], label=f"gap {gap:.3f}, Gi {gi:.3f}, mixup {mixup:.3f}")
        ax.set(xlabel="α", ylabel="accuracy", title=TITLES[name])
        ax.legend(fontsize=7, frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, out, "figure_2")


def batches(out: Path) -> None:
    """Seconds of a curve and CMI against the number of batches, mean and standard deviation over runs."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", sharex=True, sharey="row")
    counts: set[int] = set()
    for (above, below), name in zip(axes.T, CORPORA, strict=True):
        for ax, table, column, factor in ((above, "batch_seconds", "seconds", 1), (below, "batches", "cmi", 100)):
            for beside, (kind, rows) in enumerate(read(out, f"{name}_{table}").groupby("perturbation", sort=False)):
                by = factor * rows.groupby("batches")[column].agg(["mean", "std"])
                x = by.index * 1.04**beside  # not on top of each other
                ax.errorbar(x, by["mean"], yerr=by["std"], marker="o", ms=4, capsize=2, label=kind)
            ax.spines[["top", "right"]].set_visible(False)
        above.set(title=TITLES[name], yscale="log")
        above.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        above.yaxis.set_major_formatter("{x:g}")
        above.yaxis.set_minor_locator(NullLocator())
        above.legend(fontsize=8, frameon=False)
        below.set(xscale="log", xlabel=f"batches of {BATCH}")
        counts |= set(by.index)
    axes[1, 0].set_xticks(sorted(counts), sorted(counts))  # of both corpora, which share the axis
    axes[1, 0].minorticks_off()
    axes[0, 0].set_ylabel("seconds of a curve")
    axes[1, 0].set_ylabel("CMI of Gi × 100")
    save(figure, out, "figure_3")


def save(figure: Any, out: Path, name: str) -> None:
    figure.savefig(out / "figures" / f"{name}.png", dpi=120, metadata={"Software": None})
    plt.close(figure)


def write(out: Path, name: str, table: pd.DataFrame) -> None:
    (out / "tables").mkdir(parents=True, exist_ok=True)
    table.to_csv(out / "tables" / f"{name}.csv", index=False, float_format="%.9g")


def read(out: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(out / "tables" / f"{name}.csv")


def main() -> None:
    """One part, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--corpora", default=str(HERE / "runs"), help="where the networks go")
    parser.add_argument("--workers", type=int, help="processes that share the GPU")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    scale = SMALL if given.small else Scale()
    scale = scale if given.workers is None else replace(scale, workers=given.workers)
    if scale.small:
        write_digits(given.corpora)
    for part in PARTS if given.part == "all" else (given.part,):
        if part in CORPORA:
            ask_corpus(part, given.out, given.corpora, scale)
        elif part == "invariance":
            ask_augmented(given.out, given.corpora, scale)
        elif part == "tables":
            for name in CORPORA:
                table_one(name, given.out, scale)
            write(given.out, "equal_mixup", pd.DataFrame(r for n in CORPORA for r in equal_mixup(n, given.out, scale)))
            table_three(given.out, scale)
        else:
            figures(given.out)
    if torch.cuda.is_available():
        log.info("%s", json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
