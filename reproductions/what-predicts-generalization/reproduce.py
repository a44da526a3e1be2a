"""One table of every family of measures as predictors of the generalization gap, of the same 528 networks.

    cd reproductions/what-predicts-generalization
    python reproduce.py fashion --seeds 0      # train and measure the networks of one seed (on a GPU); so for each
    python reproduce.py tables                 # score them, on any machine
    python reproduce.py figures                # draw the scores

The first argument names a plan beside this file. What was measured of the networks of a seed is a table of its own,
``tables/CORPUS_SEED.csv``, so that seeds can be done one after another and on different machines. With --small, a few
networks learn scikit-learn's digits on a CPU for a moment, for the tests: nothing follows from them.
"""

from __future__ import annotations

import argparse
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from assay import (
    AugmentationRobustness,
    ClusterSeparation,
    HumanSimilarity,
    InitialDistance,
    Invariance,
    MarginBounds,
    Margins,
    Measure,
    Norms,
    PacBayes,
    PerturbationResponse,
    Straightness,
    TrainingSpeed,
    evaluate,
)
from assay.core.determinism import Arithmetic
from assay.stats.permutation import permutation_p
from assay.stimuli import Family, Gratings, Images, Labelled, ParametricTest, camera_sequences, load_brain92
from assay.studies import CorpusPlan, TrainedCorpus, load_corpus_plan, train_corpus
from assay.studies.combined import GROUPS, combined_prediction
from assay.studies.controls import ALL_TOGETHER, DETAILS, cells_of, control_columns, control_predictors
from assay.studies.prediction import judge, predictors_and_keys, with_combinations
from assay.studies.ranking import Scoring
from assay.studies.statistics.chance import against_chance, order_within
from assay.studies.statistics.cmi import ConditionalMutualInformation, conditional_mutual_information

log = logging.getLogger("reproduce")
HERE = Path(__file__).parent
CORPORA = ("fashion", "cifar10", "adversarial")
FAMILIES = {
    "perturbation": "perturbation response",
    "clusters": "class separation",
    "augmentation": "augmentation",
    "norms": "complexity",
    "margin-bounds": "complexity",
    "distance": "complexity",
    "pac-bayes": "sharpness",
    "margins": "margins",
    "training-speed": "training speed",
    "straightness": "straightness",
    "gratings": "invariance",
    "transformations": "invariance",
    "human-similarity": "human similarity",
}
"""The family of each measure that is asked."""


def plan_of(name: str, seeds: list[int], folder: Path, small: bool) -> CorpusPlan:
    """The plan of a corpus for some of its seeds."""
    plan = load_corpus_plan(HERE / f"{name}.yaml")
    plan = replace(
        plan, grid={**plan.grid, "seed": tuple(seeds)}, folder=str(folder / name / "-".join(map(str, seeds)))
    )
    if not small:
        return plan
    grid = {"width": (4, 6), "batch_size": (20, 40), "seed": tuple(seeds)}
    fixed = {**plan.fixed, "depth": 1, "epochs": 1, "stop_loss": None, "precision": "float32", "skips": True}
    digits = replace(plan.data, path=folder / "digits.npz", train=120, test=60)
    return replace(plan, data=digits, grid=grid, fixed=fixed, device="cpu", at_once=4)


def measures_of(train: Labelled, humans: Path | None, small: bool) -> dict[str, Measure]:
    """All measures; those of labelled data are shown as many inputs each."""
    channels, size = train.shape[0], train.shape[1]
    few: dict[str, Any] = {"samples": 60 if small else 2000, "bootstrap": 0}
    many = {"batch_size": 60 if small else 2000}  # per pass: nothing but the time it takes depends on it
    pictures = Images(train.sample(100 if small else 1000, 0).inputs)
    families = (
        Family("rotation", tuple(range(-40, 41, 10))),
        Family("translation_x", tuple(range(-6, 7, 2))),
        Family("scale", (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)),
    )
    clips = camera_sequences(size, color="grey" if channels == 1 else "rgb", pictures=1 if small else None)
    gratings = Gratings(size, channels=channels)
    layers: dict[str, Any] = {"units": "centre", "bootstrap": 0, **many}
    asked: dict[str, Measure] = {
        "perturbation": PerturbationResponse(train, ("intra", "inter"), 0 if small else (0, 1), **few),
        "clusters": ClusterSeparation(train, bootstrap=0),
        "augmentation": AugmentationRobustness(train, **few, **many),
        "norms": Norms(),
        "margin-bounds": MarginBounds(train, **few, **many),
        "distance": InitialDistance(),
        "pac-bayes": PacBayes(train, draws=2 if small else 10, **few, **many),
        "margins": Margins(train, **few),
        "training-speed": TrainingSpeed(),
        "straightness": Straightness(clips),
        "gratings": Invariance(gratings, **layers),
        "transformations": Invariance(ParametricTest(pictures, families[:1] if small else families), **layers),
    }
    if humans is not None:
        seen = load_brain92(humans, size=size, color="grey" if channels == 1 else None)
        asked["human-similarity"] = HumanSimilarity(seen, bootstrap=0)
    assert asked.keys() <= FAMILIES.keys()
    if small:
        del asked["gratings"]
    return asked


def ask(name: str, seeds: list[int], given: argparse.Namespace) -> None:
    """Train the networks of some seeds, ask everything of each, and write what they answered."""
    if given.humans is not None:
        load_brain92(given.humans)  # before hours of training, so that a wrong folder is known at once
    start = time.perf_counter()
    corpus = train_corpus(plan_of(name, seeds, given.corpora, given.small))
    trained = time.perf_counter() - start
    log.info("%s: %d networks in %.0f s, %d left out", name, len(corpus), trained, len(corpus.left_out))
    start = time.perf_counter()
    measures = measures_of(corpus.train, given.humans, given.small)
    answers, about = asked(corpus, measures, given.processes)
    log.info("%s: asked in %.0f s", name, time.perf_counter() - start)
    write(given.out, f"{name}_predictors", about)
    combined = about["measure"][about["family"] == "combination"]  # which `tables` makes of all seeds
    table = corpus.table.merge(answers.drop(columns=combined), left_on="network", right_index=True)
    for seed, rows in table.groupby("seed"):
        write(given.out, f"{name}_{seed}", rows.assign(network=[f"{n}-{seed}" for n in rows["network"]]))
    took = {"training": trained, "asking": time.perf_counter() - start, "networks": len(corpus)}
    left_out = len(corpus.left_out)
    write(given.out, f"{name}_{'-'.join(map(str, seeds))}_seconds", pd.DataFrame([took | {"left_out": left_out}]))


def asked(corpus: TrainedCorpus, measures: dict[str, Measure], processes: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The predictors of every network; and of each predictor its family, expected direction, and what it rests on."""
    arithmetic = replace(Arithmetic.here(), threads=1) if processes else Arithmetic.here()
    with arithmetic.used():
        run = evaluate(corpus.subjects(), measures, corpus.folder.path("asked"), processes=processes)
    for cell in run.failures:
        log.warning("%s × %s: %s", cell.subject, cell.measure, cell.error)
    numbers, keys, budgets = predictors_and_keys(run, measures, corpus.networks)
    of = {str(key): label for label in measures for rows in [run.table(label)] if len(rows)
          for key in measures[label].predictors(rows[rows["subject"] == rows["subject"].iloc[0]])}  # fmt: skip
    families = [FAMILIES.get(of.get(str(key), ""), "combination") for key in keys.values()]
    directions = [key.direction for key in keys.values()]
    about = {"measure": list(keys), "family": families, "direction": directions, "budget": [budgets[k] for k in keys]}
    return numbers, pd.DataFrame(about)


def tables(given: argparse.Namespace) -> None:
    """Score the predictors of each corpus, all its seeds together; and of each family its best measure."""
    best = []
    for name in CORPORA:
        files = sorted((given.out / "tables").glob(f"{name}_[0-9].csv"))
        if not files:
            continue
        table = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
        plan = load_corpus_plan(HERE / f"{name}.yaml")
        hyper = [h for h in plan.grid if h in table and h != "seed" and table[h].nunique() > 1]
        numbers = predictors_of(table)
        draws, permutations = (20, 19) if given.small else (1000, 1000)
        scoring = Scoring(draws=draws, permutations=permutations, test_size=60 if given.small else 10_000)
        about = pd.read_csv(given.out / "tables" / f"{name}_predictors.csv").fillna("").set_index("measure")
        directions, budgets = about["direction"].astype(int).to_dict(), about["budget"].to_dict()
        study = judge(table, numbers, hyper, scoring, {"corpus": name}, directions, budgets)
        for part in ("ranking", "test_error", "comparisons", "combined"):
            if len(found := getattr(study, part)):
                write(given.out, f"{name}_{part}", found)
        if "cmi_distinct" in study.ranking:  # not of a few networks
            best.append(best_of_families(study.ranking, about["family"]).assign(corpus=name))
            write(given.out, f"{name}_three_held", three_held(table, numbers, hyper, permutations))
            write(given.out, f"{name}_by_seed", by_seed(table, numbers, hyper))
            write(given.out, f"{name}_by_family", by_family(table, numbers, hyper, about["family"]))
            if table["seed"].nunique() > 1:
                write(given.out, f"{name}_among_seeds", among_seeds(table, numbers, hyper, 10 * permutations))
    if best:
        write(given.out, "families", pd.concat(best))


def predictors_of(table: pd.DataFrame) -> pd.DataFrame:
    """The predictors of all networks of a corpus, as they are scored.

    Combinations are made here, since one of them compares networks with each other: all seeds must be there. Of
    PAC-Bayes measures μ, which were asked with the largest set of training pictures, the bounds √(μ/(m − 1)) are taken
    where the number m of pictures that a network learned from differs between networks.
    """
    numbers = table.iloc[:, table.columns.get_loc("status") + 1 :].set_index(table["network"])
    if "train_size" in table:
        size = table["train_size"].to_numpy(dtype=np.float64)
        for measure in numbers.filter(like="pac-bayes"):
            has_log = not measure.endswith("flatness")  # log m is a part of the others
            numbers[measure] = np.sqrt((numbers[measure] + has_log * np.log(size / size.max())) / (size - 1))
    return with_combinations(numbers)


def three_held(table: pd.DataFrame, numbers: pd.DataFrame, hyper: list[str], permutations: int) -> pd.DataFrame:
    """The score of each measure, and its p of the best of all, where three hyper-parameters are held constant.

    The last row is what all hyper-parameters together predict of networks of other settings.
    """
    statistic = ConditionalMutualInformation(sizes=(3,), self_pairs=False)
    numbers = numbers.set_axis(table.index).join(control_predictors(table, hyper, table["gap"]).filter([ALL_TOGETHER]))
    tested = against_chance(numbers, table["gap"], table[hyper], statistic, permutations)
    return tested.table.assign(chance=tested.chance())


def by_seed(table: pd.DataFrame, numbers: pd.DataFrame, hyper: list[str]) -> pd.DataFrame:
    """The score of each measure among the networks of each seed alone."""
    columns: dict[str, Any] = {"measure": [*numbers]}
    for seed, rows in table.groupby("seed"):
        of = numbers.loc[rows["network"]].to_numpy(dtype=np.float64).T
        columns[f"seed_{seed}"] = [
            conditional_mutual_information(x, rows["gap"].to_numpy(), rows[hyper], self_pairs=False) for x in of
        ]
    return pd.DataFrame(columns)


def by_family(table: pd.DataFrame, numbers: pd.DataFrame, hyper: list[str], family: pd.Series) -> pd.DataFrame:
    """How much more of the gap each family and the hyper-parameters explain than the hyper-parameters, cross-validated.

    ``low`` and ``high`` are of one family; ``low_of_all`` and ``high_of_all`` hold for all families at once
    (Bonferroni).
    """
    degrees = [control_columns(table, hyper, detail) for detail in DETAILS]
    gap, cells = table["gap"].to_numpy(dtype=np.float64), cells_of(table, hyper)
    rows = []
    names = sorted(set(family))
    levels = [1 - 0.025 / len(names), 0.975]
    for name in names:
        values = numbers[family.index[family == name]].to_numpy(dtype=np.float64)
        found = combined_prediction(values, degrees, gap, cells).set_index("of")
        change = found.loc["difference"]
        wider = (change["r2"] - change["low"]) * np.divide(*stats.t.ppf(levels, GROUPS - 1))
        rows.append({
            "family": name, "measures": values.shape[1], "r2": found.loc["controls and measures", "r2"],
            "difference": change["r2"], "low": change["low"], "high": change["high"],
            "low_of_all": change["r2"] - wider, "high_of_all": change["r2"] + wider,
        })  # fmt: skip
    return pd.DataFrame(rows)


def among_seeds(table: pd.DataFrame, numbers: pd.DataFrame, hyper: list[str], permutations: int) -> pd.DataFrame:
    """Whether a measure tells which of two networks that differ in their seed alone has the wider gap.

    ``tau`` is Kendall's τ-b over the pairs of networks of one setting, Σ s_m·s_g / √(Σ s_m²·Σ s_g²) with the signs s of
    their differences in the measure and the gap. ``p`` is that of the measure alone, and ``p_max`` that of the largest
    |τ| of all measures, when the measures of the networks of each setting are exchanged at random.
    """
    cells = cells_of(table, hyper)
    one, other = np.triu_indices(len(table), 1)
    one, other = (side[cells[one] == cells[other]] for side in (one, other))
    values, gap = numbers.to_numpy(dtype=np.float64).T, table["gap"].to_numpy()
    wider = np.sign(gap[one] - gap[other])

    def taus(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        signs = np.sign(values[:, one] - values[:, other])
        return signs @ wider / np.sqrt(np.maximum((signs**2).sum(axis=1), 1) * (wider**2).sum())

    rng = np.random.default_rng(0)
    found = taus(values)
    chance = np.abs([taus(values[:, order_within(cells, rng)]) for _ in range(permutations)])
    p, p_max = (permutation_p(np.abs(found), by) for by in (chance, chance.max(axis=1, keepdims=True)))
    columns = {"measure": [*numbers], "pairs": len(one), "tau": found, "p": p, "p_max": p_max}
    return pd.DataFrame(columns).assign(chance=np.quantile(chance.max(axis=1), 0.95))


def best_of_families(ranking: pd.DataFrame, family: pd.Series) -> pd.DataFrame:
    """The best measure of each family, with the chance of the best of all measures; the best control beside them."""
    of = ranking["measure"].map(family).fillna("control")
    rows = ranking.assign(family=of, measures=of.map(of.value_counts())).dropna(subset=["cmi_distinct"])
    best = rows.sort_values("cmi_distinct", ascending=False).drop_duplicates("family")
    scores = [f"{score}{end}" for score in ("cmi_distinct", "tau", "partial_rho") for end in ("", "_low", "_high")]
    return best[["family", "measures", "measure", "n", *scores, "partial_p_max", "p_max", "chance", "direction"]]


def figures(out: Path) -> None:
    """Draw the score of every measure of every family, and the interval of the best of each."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    families = pd.read_csv(out / "tables" / "families.csv")
    names = [name for name in CORPORA if name in set(families["corpus"])]
    order = families.groupby("family")["cmi_distinct"].mean().sort_values().index
    figure, axes = plt.subplots(1, len(names), figsize=(4.6 * len(names) + 1.6, 4), layout="constrained", sharey=True)
    for ax, name in zip(np.atleast_1d(axes), names, strict=True):
        family = pd.read_csv(out / "tables" / f"{name}_predictors.csv").set_index("measure")["family"]
        ranking = pd.read_csv(out / "tables" / f"{name}_ranking.csv")
        y = order.get_indexer(ranking["measure"].map(family).fillna("control"))
        ax.scatter(100 * ranking["cmi_distinct"], y, s=9, color="0.7")
        best = families[families["corpus"] == name].set_index("family").reindex(order)
        value, low, high = (100 * best[f"cmi_distinct{end}"] for end in ("", "_low", "_high"))
        good = best["p_max"] <= 0.05
        for of, color in ((good, "tab:green"), (~good, "black")):
            spread = [(value - low)[of], (high - value)[of]]
            ax.errorbar(value[of], np.flatnonzero(of), xerr=spread, fmt="o", color=color)
        ax.axvline(100 * best["chance"].iloc[0], color="0.3", lw=0.9, ls="--")
        ax.set_title(f"{name}: {int(best['n'].max())} networks", fontsize=10)
        ax.set_xlabel("conditional mutual information with the gap, × 100")
        ax.set_yticks(range(len(order)), order)
        ax.spines[["top", "right"]].set_visible(False)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "figures" / "families.png", dpi=130)


def write(out: Path, name: str, table: pd.DataFrame) -> None:
    """Write a table."""
    (out / "tables").mkdir(parents=True, exist_ok=True)
    table.to_csv(out / "tables" / f"{name}.csv", index=False, float_format="%.9g")


def write_digits(folder: Path) -> None:
    """Write scikit-learn's digits, 8×8, as a data set."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pictures = (digits.images * (255 / 16)).astype(np.uint8)[..., None]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(
        folder / "digits.npz",
        train_images=pictures[:1200],
        train_labels=digits.target[:1200],
        test_images=pictures[1200:],
        test_labels=digits.target[1200:],
    )


def main() -> None:
    """Some corpora, and the scores of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*CORPORA, "tables", "figures"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--corpora", type=Path, default=HERE / "runs", help="where the networks go")
    parser.add_argument("--humans", type=Path, help="folder of the 92-image set, for the similarity to people")
    parser.add_argument("--processes", type=int, default=0, help="processes that share the GPU")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if given.small:
        write_digits(given.corpora)
    for part in given.parts:
        if part == "tables":
            tables(given)
        elif part == "figures":
            figures(given.out)
        else:
            ask(part, given.seeds, given)


if __name__ == "__main__":
    main()
