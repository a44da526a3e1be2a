"""The page of the perturbation response reproduction says what its committed tables say, in numbers and in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import kendalltau

from assay import conditional_mutual_information
from assay.stats.multiplicity import holm

PERTURBATION = Path(__file__).parents[2] / "reproductions" / "perturbation-response-2021"
PAGE = " ".join((PERTURBATION / "README.md").read_text().split())
TABLES = {p.stem: pd.read_csv(p) for p in (PERTURBATION / "tables").glob("*.csv")}
CORPORA = ("fashion", "cifar10")
NETWORKS = {name: TABLES[f"{name}_networks"] for name in CORPORA}
RANKING = {name: TABLES[f"{name}_ranking"].set_index("measure") for name in CORPORA}
TO_MIXUP = {name: TABLES[f"{name}_comparisons"].query("not self_pairs").set_index("other") for name in CORPORA}
KIN = [m for m in RANKING["cifar10"].index if re.search("^(?:gi|pal) |mixup|^mean of pal", m)]
LOOKS = [m for m in RANKING["cifar10"].index if re.search("curvature|invariance", m)]
GI = TABLES["invariance_comparisons"].assign(ahead=lambda t: t["difference"] > 0, surely=lambda t: t["low"] > 0)
SCORES = ["random accuracy", "mean accuracy", "gi", "gi folded"]
PAIRS = TABLES["equal_mixup"].set_index(["corpus", "also", "within"])
PICTURED = [NETWORKS[n].set_index("network").loc[PAIRS.loc[(n, "mixup", 0.005), ["one", "other"]]] for n in CORPORA]


def told(row: pd.Series, how: str = "{} ({}–{})", factor: float = 100) -> str:
    """A value and the ends of its interval."""
    return how.format(*(f"{factor * v:.{1 if factor == 100 else 2}f}" for v in row)).replace("-", "−")


def cmi(name: str, measure: str, how: str = "{} ({}–{})") -> str:
    return told(RANKING[name].loc[measure, ["cmi", "cmi_low", "cmi_high"]], how)


def with_tau(name: str, measure: str) -> str:
    return f"{cmi(name, measure)} | {RANKING[name].loc[measure, 'tau']:.2f}".replace("-", "−")


def before(name: str, measure: str) -> str:
    """By how much mixup is before another measure, or behind it."""
    row = TO_MIXUP[name].loc[measure, ["difference", "low", "high"]]
    return told(row if row["difference"] > 0 else -row[["difference", "high", "low"]], "{}, {}–{}")


def right(name: str, also: str = "mixup", within: float = 0.005) -> str:
    row = PAIRS.loc[(name, also, within)]
    return f"{100 * row['right']:.0f} % ({100 * row['right_low']:.0f}–{100 * row['right_high']:.0f})"


def both(one: Callable[[str], str]) -> str:
    return " and ".join(map(one, CORPORA))


def of_negative(networks: pd.DataFrame, hyper: list[str], measure: str) -> list[float]:
    """CMI of a measure and of its negative, the smaller first."""
    signs = (s * networks[measure] for s in (1, -1))
    return sorted(conditional_mutual_information(m, networks["gap"], networks[hyper]) for m in signs)


def papers() -> pd.DataFrame:
    """What the page quotes from the paper, its Fashion-MNIST and CINIC-10, beside our numbers, which are checked."""
    cells = re.findall(r"\| ([^|]+) \| ([^|]+ \| [^|]+) \| ([^|]+) \| ([^|]+ \| [^|]+) \| ([^|]+) \| ([^|]+) \|", PAGE)
    rows = {re.sub("(?:Gi|Pal) ", lambda m: m[0].lower(), name): rest for name, *rest in cells}
    assert len(KIN) == 14
    for measure in KIN:
        assert [rows[measure][0], rows[measure][2]] == [with_tau(name, measure) for name in CORPORA], measure
    return pd.DataFrame({m: [float(rows[m][1]), float(rows[m][3])] for m in KIN}, index=list(CORPORA)).T


def test_the_page_on_perturbation_response_has_the_numbers_of_its_tables():
    paper = papers()
    assert paper.loc["pal inter ℓ=1"].tolist() == [14.13, 12.09]
    assert paper.idxmax().tolist() == ["gi inter ℓ=1", "PCA of gi intra ℓ=0 and mixup"]
    for name in CORPORA:
        assert len(NETWORKS[name]) == 96 and not len(TABLES[f"{name}_left_out"])
        assert (RANKING[name]["n"] == 96).all() and len(RANKING[name]) == 76

    single = [m for m in KIN if re.fullmatch(r"(?:gi|pal) \w+ ℓ=\d|(?:manifold )?mixup", m)]

    def alike(name: str, measures: list[str], column: str = "cmi") -> str:
        return f"{kendalltau(RANKING[name].loc[measures, column], paper.loc[measures, name]).statistic:.2f}"

    def tau(name: str, measure: str, kind: str = "tau", how: str = "{} ({}–{})") -> str:
        return told(RANKING[name].loc[measure, [kind, f"{kind}_low", f"{kind}_high"]], how, 1)

    def chance(name: str) -> str:
        return f"{100 * RANKING[name]['cmi_chance'].iloc[0]:.1f}"

    within = NETWORKS["fashion"]["gap"] - NETWORKS["fashion"].groupby("dropout")["gap"].transform("mean")
    known = NETWORKS["fashion"]["test_accuracy"].mean()
    shares = {n: TABLES[f"{n}_gap"].set_index("hyper-parameter").loc["dropout", "share"] for n in CORPORA}
    spread = 100 * TABLES["cifar10_batches"].query("perturbation == 'intra'").groupby("batches")["cmi"].agg(
        ["mean", "std"]
    )
    seconds = TABLES["fashion_batch_seconds"].groupby("batches")["seconds"].mean()
    asking = TABLES["fashion_seconds"].set_index("work").loc["perturbation", "seconds"]
    accuracy = {n: 100 * NETWORKS[n]["train_accuracy"] for n in CORPORA}
    lead = 100 * GI.groupby(["self_pairs", "other"])["difference"].mean()
    penalty, drop, p90 = "augmentation penalty", "augmentation mean drop", "normalised margin p90 at input"
    claims = [
        *(f"| {m} | " + " | ".join(with_tau(n, m) for n in CORPORA) + " |"
          for m in LOOKS if "of the last layer" not in m or "curvature" in m),
        f"stay below {chance('fashion')} on Fashion-MNIST and {chance('cifar10')} on CIFAR-10",
        "by luck; " + both(lambda n: str((RANKING[n]["cmi"] > RANKING[n]["cmi_chance"]).sum())) + " are",
        *(f"{accuracy[n].min():.1f} to {accuracy[n].max():.1f} % on {where}"
          for n, where in zip(CORPORA, ("Fashion-MNIST", "CIFAR-10"), strict=True)),
        "(Pearson " + both(lambda n: f"{NETWORKS[n]['gap'].corr(accuracy[n]):.2f}"),
        f"two columns is {alike('cifar10', single)} over the ten",
        f"({alike('cifar10', single, 'cmi_distinct')} without self-pairs)",
        f"τ between the columns is {alike('cifar10', KIN)}",
        f"τ between the columns is {alike('fashion', single)} over the ten",
        f"ahead of Gi intra ℓ=0 (by {before('cifar10', 'gi intra ℓ=0')})",
        f"ahead of mixup ({before('cifar10', 'DBI · (1 − mixup)')})",
        f"PCA loses (by {before('cifar10', 'PCA of gi intra ℓ=0 and mixup')})",
        f"({cmi('cifar10', 'pal intra ℓ=0 · ℓ=1', '{}')} v {cmi('cifar10', 'pal intra ℓ=0', '{}')}; "
        f"the paper {paper.loc['pal intra ℓ=0 · ℓ=1', 'cifar10']:.2f} v {paper.loc['pal intra ℓ=0', 'cifar10']:.2f})",
        f"({cmi('fashion', 'gi inter ℓ=1', '{}')} and {cmi('fashion', 'pal inter ℓ=1', '{}')})",
        f"explains {100 * shares['fashion']:.0f} % of the variance", f"CIFAR-10: {100 * shares['cifar10']:.0f} %",
        f"is {100 * within.std():.2f} percentage points", f"up to {100 * (known * (1 - known) / 10_000) ** 0.5:.2f},",
        f"penalty {cmi('cifar10', penalty, '{}, {}–{}')}", f"ahead of mixup by {before('cifar10', penalty)})",
        f"(mean drop {cmi('cifar10', drop, '{}, {}–{}')})",
        f"quantile {cmi('cifar10', p90, '{}, {}–{}')}; ahead of mixup by {before('cifar10', p90)})",
        f"ranks first ({cmi('fashion', 'parameter norm', '{}, {}–{}')};",
        f"on CIFAR-10 it predicts nothing ({cmi('cifar10', 'parameter norm', '{}')})",
        "granulated τ "
        + both(lambda n: tau(n, "scale invariance, mean of layers", "granulated_tau", "{}, {}–{}")),
        "change is " + both(lambda n: tau(n, "lowest curvature change")),
        "smaller gap: " + both(lambda n: tau(n, "curvature change of the last layer")),
        "average " + both(lambda n: f"{NETWORKS[n]['lowest curvature change'].mean():+.1f}°"),
        f"of {PAIRS.loc[('fashion', 'mixup', 0.005), 'pairs']:,} such pairs",
        f"in {right('fashion')}, of {PAIRS.loc[('cifar10', 'mixup', 0.005), 'pairs']} on CIFAR-10",
        f"in {right('cifar10')}, where",
        "it is " + both(lambda n: right(n, "train_accuracy")),
        "0.2 points " + both(lambda n: right(n, "train_accuracy", 0.002)),
        "(these differ by " + " and ".join(f"{100 * abs(d['train_accuracy'].diff().iloc[1]):.1f}" for d in PICTURED),
        "much alike (τ "
        + both(lambda n: f"−{-kendalltau(NETWORKS[n]['gi intra ℓ=0'], NETWORKS[n]['mixup']).statistic:.2f}"),
        f"from {spread.loc[1, 'mean']:.1f} with one batch to {spread.loc[39, 'mean']:.1f} with 39",
        f"falls from {spread.loc[1, 'std']:.1f} to {spread.loc[39, 'std']:.1f}",
        f"takes {seconds[1]:.3f} s from one batch and {seconds[78]:.2f} s from 78", f"the GPU, {asking:.1f} s",
        *(f"({(lead[True] - lead[False])[m]:.1f} of {lead[True][m]:.1f}" for m in SCORES[:2]),
    ]  # fmt: skip
    for (corpus, kind), cell in TABLES["invariance_ranking"].groupby(["corpus", "perturbation"], sort=False):
        asked = TABLES[f"{corpus}_networks"].query("perturbation == @kind and trained_accuracy >= 0.8")
        levels = asked["augmentation"].str.split().str[-1].value_counts()
        counts = " + ".join(str(levels.get(level, 0)) for level in ("none", "partial", "full"))
        found = cell.set_index("measure").loc[SCORES]
        values = [f"{100 * r['cmi']:.1f} / {100 * r['cmi_distinct']:.1f} / {r['tau']:.2f}" for _, r in found.iterrows()]
        name = {"invariance-vgg": "VGG", "invariance-resnet": "ResNet"}[corpus]
        row = [f"{name}, {kind}", counts, f"{100 * found['cmi_chance'].iloc[0]:.1f}", *values]
        claims.append(f"| {' | '.join(row)} |".replace("-", "−"))
    assert not [claim for claim in claims if claim not in PAGE]


@pytest.mark.slow
def test_self_pairs_favour_measures_that_rise_as_much_as_the_page_and_the_documentation_say():
    hyper = list(TABLES["fashion_gap"]["hyper-parameter"])
    found = {(n, m): of_negative(NETWORKS[n], hyper, m) for n in CORPORA for m in NETWORKS[n].columns[14:]}
    favour = [high / low - 1 for low, high in found.values() if high > 0.04]
    assert f"by {100 * min(favour):.0f} to {100 * max(favour):.0f} % for measures above 4" in PAGE
    few = TABLES["invariance-vgg_networks"].query("perturbation == 'rotation' and trained_accuracy >= 0.8")
    one = of_negative(few.reset_index(drop=True), ["depth", "batch_size", "learning_rate"], "mean accuracy")
    told = (
        " v ".join(f"{value:.2f}" for value in reversed(one)),
        " v ".join(f"{value:.2f}" for value in reversed(found["cifar10", "mixup"])),
    )
    described = " ".join((conditional_mutual_information.__doc__ or "").split())
    assert f"{told[0]} for one measure over {len(few)} networks, {told[1]} for another over 96" in described


def test_the_page_on_perturbation_response_says_what_its_tables_say():
    counted = GI.groupby(["self_pairs", "other"])[["ahead", "surely"]].sum()
    assert counted.loc[True].loc[SCORES[:2]].to_numpy().tolist() == [[8, 2], [8, 1]]
    assert counted.loc[False].loc[SCORES[:2]].to_numpy().tolist() == [[6, 0], [4, 0]]
    assert counted["ahead"][True]["gi folded"] == 7
    baselines = GI[~GI["self_pairs"] & GI["other"].isin(SCORES[:2])].groupby(["corpus", "perturbation"])["ahead"].all()
    tau = TABLES["invariance_ranking"].set_index(["corpus", "perturbation", "measure"])["tau"].abs().unstack()
    assert baselines.sum() == 4 and (tau["gi"] > tau["mean accuracy"]).sum() == 4

    distinct = RANKING["cifar10"]["cmi_distinct"]
    for score in ("gi", "pal"):
        assert distinct[f"{score} intra ℓ=0"] > distinct[f"{score} inter ℓ=0"] > distinct[f"{score} inter ℓ=1"]
        assert distinct[f"{score} inter ℓ=1"] > distinct[f"{score} intra ℓ=1"]
    assert distinct[KIN].idxmax() == "DBI · (1 − mixup)"
    assert [r["cmi"].idxmax() for r in RANKING.values()] == ["parameter norm", "augmentation penalty"]

    fashion, cifar = TO_MIXUP["fashion"], TO_MIXUP["cifar10"]
    surely = fashion.query("low > 0").index
    assert set(surely) == {"manifold mixup", "mean accuracy inter ℓ=0", "parameters", "vc dimension", "layers"}
    assert not (fashion["high"] < 0).any() and cifar.loc["pal intra ℓ=0", "low"] < 0
    assert len(LOOKS) == 14 and (cifar.loc[LOOKS, "low"] > 0).all()
    assert (fashion.loc[LOOKS, "low"] <= 0).all() and (fashion.loc[LOOKS, "high"] >= 0).all()
    corrected = pd.Series(holm(cifar["p"].to_numpy()), cifar.index)
    better = corrected[(cifar["high"] < 0) & (corrected < 0.05)].index
    assert set(better) == {"augmentation penalty", "augmentation mean drop"} and len(corrected) == 75
    assert cifar.loc["normalised margin p1 at input", "low"] > 0
    assert [(r.loc[LOOKS, "cmi"] > r["cmi_chance"].iloc[0]).sum() for r in RANKING.values()] == [6, 9]
    for pair in PICTURED:
        assert pair["gap"].diff().iloc[1] * pair["gi intra ℓ=0"].diff().iloc[1] < 0
