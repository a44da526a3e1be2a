"""The page of the perturbation response reproduction says what its committed tables say, in numbers and in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import kendalltau

from assay import conditional_mutual_information

PERTURBATION = Path(__file__).parents[2] / "reproductions" / "perturbation-response-2021"
PAGE = " ".join((PERTURBATION / "README.md").read_text().split())
TABLES = {p.stem: pd.read_csv(p) for p in (PERTURBATION / "tables").glob("*.csv")}
CORPORA = ("fashion", "cifar10")
NETWORKS = {name: TABLES[f"{name}_networks"] for name in CORPORA}
RANKING = {name: TABLES[f"{name}_ranking"].set_index("measure") for name in CORPORA}
ERROR = {name: TABLES[f"{name}_test_error"].set_index("measure") for name in CORPORA}
COMBINED = {name: TABLES[f"{name}_combined"].set_index("of") for name in CORPORA}
COMPARED = {name: TABLES[f"{name}_comparisons"] for name in CORPORA}
TO_MIXUP = {name: table[table["measure"] == "mixup"].set_index("other") for name, table in COMPARED.items()}
TRAINING, AUGMENTATION = "control: training accuracy", "control: augmentation level"
KIN = [m for m in RANKING["cifar10"].index if re.search("^(?:gi|pal) |mixup|^mean of pal", m)]
SINGLE = [m for m in KIN if re.fullmatch(r"(?:gi|pal) \w+ ℓ=\d|(?:manifold )?mixup", m)]
AT_INPUT = [m for m in SINGLE if "ℓ=0" in m or m == "mixup"]
LOOKS = [m for m in RANKING["cifar10"].index if re.search("curvature|invariance", m)]
PENALTY, DROP, P90 = "augmentation penalty", "augmentation mean drop", "normalised margin p90 at input"
TOGETHER = "control: all hyper-parameters together"
CELLS = list(TABLES["invariance_ranking"].groupby(["corpus", "perturbation"], sort=False).groups)
THREE = TABLES["invariance_ranking"].set_index(["corpus", "perturbation", "measure"]).sort_index()
GI = TABLES["invariance_comparisons"].set_index(["corpus", "perturbation", "other"]).sort_index()
SCORES = ["random accuracy", "mean accuracy", "gi", "gi folded"]
TRANSLATION = [(corpus, f"translation_{x}") for corpus in ("invariance-vgg", "invariance-resnet") for x in "xy"]
PAIRS = TABLES["equal_mixup"].set_index(["corpus", "also", "within"])
PICTURED = [NETWORKS[n].set_index("network").loc[PAIRS.loc[(n, "mixup", 0.005), ["one", "other"]]] for n in CORPORA]


def interval(row: pd.Series, how: str = "{} ({}–{})", factor: float = 100) -> str:
    """A value and the ends of its interval."""
    return how.format(*(f"{factor * v:.{1 if factor == 100 else 2}f}" for v in row)).replace("-", "−")


def cmi(table: pd.DataFrame, measure: str, how: str = "{} ({}–{})") -> str:
    return interval(table.loc[measure, ["cmi_distinct", "cmi_distinct_low", "cmi_distinct_high"]], how)


def p(value: float) -> str:
    """A p in the page's form: two digits, or three where it is below 0.05."""
    return f"{value:.3f}" if value < 0.0501 else f"{value:.2f}"


def number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def row_of(name: str, measure: str, paper: list[str]) -> str:
    """A row of the page's Table 1."""
    of = RANKING[name].loc[measure]
    rho = interval(of[["partial_rho", "partial_rho_low", "partial_rho_high"]], factor=1)
    shown = re.sub("^(gi|pal) |(?<=of )(gi|pal) ", lambda m: m[0].capitalize(), measure)
    cells = [shown, cmi(RANKING[name], measure), p(of["p_max"]), f"{100 * of['cmi']:.1f}", number(of["tau"]), rho]
    return f"| {' | '.join([*cells, *paper])} |"


def row_of_looks(measure: str) -> str:
    """A row of the page's table of straightness and invariance."""
    cells = [measure]
    for name in CORPORA:
        of = RANKING[name].loc[measure]
        cells += [cmi(RANKING[name], measure), p(of["p_max"]), number(of["tau"])]
    return f"| {' | '.join(cells)} |"


def row_of_cell(corpus: str, kind: str) -> str:
    """A row of the page's Table 3."""
    asked = TABLES[f"{corpus}_networks"].query("perturbation == @kind and trained_accuracy >= 0.8")
    levels = asked["augmentation"].str.split().str[-1].value_counts()
    cells = [f"{ {'invariance-vgg': 'VGG', 'invariance-resnet': 'ResNet'}[corpus] }, {kind}"]
    cells += [" + ".join(str(levels.get(level, 0)) for level in ("none", "partial", "full"))]
    of = THREE.loc[corpus, kind]
    cells += [f"{100 * of['chance'].iloc[0]:.1f}"]
    for measure in (*SCORES, AUGMENTATION, TRAINING):
        star = "*" if of.loc[measure, "p_max"] <= 0.05 else ""
        beside = f" / {100 * of.loc[measure, 'cmi']:.1f}" if measure in SCORES[:3] else ""
        cells += [f"{100 * of.loc[measure, 'cmi_distinct']:.1f}{star}{beside}"]
    return f"| {' | '.join(cells)} |"


def from_mixup(name: str, measure: str) -> str:
    """By how much a measure scores more or less than mixup."""
    row = TO_MIXUP[name].loc[measure, ["difference", "low", "high"]]
    return interval(row if row["difference"] > 0 else -row[["difference", "high", "low"]], "{}, {}–{}")


def right(name: str, also: str = "mixup", within: float = 0.005) -> str:
    row = PAIRS.loc[(name, also, within)]
    return interval(row[["right", "right_low", "right_high"]], "{} % ({}–{})")


def explained(name: str, of: str) -> str:
    return interval(COMBINED[name].loc[of, ["r2", "low", "high"]], "{} % ({}–{})")


def both(one: Callable[[str], str]) -> str:
    return " and ".join(map(one, CORPORA))


def of_negative(networks: pd.DataFrame, hyper: list[str], measure: str) -> list[float]:
    """CMI of a measure and of its negative, as PGDL counts, the smaller first."""
    signs = (s * networks[measure] for s in (1, -1))
    return sorted(conditional_mutual_information(m, networks["gap"], networks[hyper]) for m in signs)


def papers() -> dict[str, dict[str, list[str]]]:
    """What the page quotes from the paper, beside our rows, all of which are checked: by corpus and measure."""
    quoted = {}
    for name, columns in (("cifar10", 2), ("fashion", 1)):
        quoted[name] = {}
        for measure in KIN:
            start = row_of(name, measure, [])[:-1]
            assert start in PAGE, start
            said = PAGE.split(start, 1)[1].split("|")
            quoted[name][measure] = [cell.strip() for cell in said[1 : 1 + columns]]
    return quoted


def test_the_page_has_the_numbers_of_its_tables():
    quoted = papers()
    paper = pd.DataFrame({name: {m: float(v[0]) for m, v in rows.items()} for name, rows in quoted.items()})
    assert len(KIN) == 14 and len(SINGLE) == 10 and len(AT_INPUT) == 5
    assert paper.loc["pal inter ℓ=1"].tolist() == [12.09, 14.13]
    assert paper.idxmax().tolist() == ["PCA of gi intra ℓ=0 and mixup", "gi inter ℓ=1"]
    assert max(KIN, key=lambda m: float(quoted["cifar10"][m][1])) == "PCA of gi intra ℓ=0 and mixup"
    for name in CORPORA:
        assert len(NETWORKS[name]) == 96 and not len(TABLES[f"{name}_left_out"])
        assert (RANKING[name]["n"] == 96).all() and RANKING[name]["kind"].value_counts().to_dict() == {
            "measure": 76,
            "control": 8,
        }

    def alike(name: str, measures: list[str]) -> str:
        return f"{kendalltau(RANKING[name].loc[measures, 'cmi_distinct'], paper.loc[measures, name]).statistic:.2f}"

    def tau(name: str, measure: str, kind: str = "tau", how: str = "{} ({}–{})") -> str:
        return interval(RANKING[name].loc[measure, [kind, f"{kind}_low", f"{kind}_high"]], how, 1)

    def chance(name: str) -> str:
        return f"{100 * RANKING[name]['chance'].iloc[0]:.1f}"

    def predicting(name: str) -> str:
        return str((RANKING[name].query("kind == 'measure'")["p_max"] <= 0.05).sum())

    fashion, cifar = RANKING["fashion"], RANKING["cifar10"]
    pca, product = "PCA of gi intra ℓ=0 and mixup", "pal intra ℓ=0 · ℓ=1"
    within = NETWORKS["fashion"]["gap"] - NETWORKS["fashion"].groupby("dropout")["gap"].transform("mean")
    known = NETWORKS["fashion"]["test_accuracy"].mean()
    shares = {n: TABLES[f"{n}_gap"].set_index("hyper-parameter").loc["dropout", "share"] for n in CORPORA}
    gi_intra = TABLES["cifar10_batches"].query("perturbation == 'intra'")
    spread = 100 * gi_intra.groupby("batches")["cmi"].agg(["mean", "std"])
    seconds = TABLES["fashion_batch_seconds"].groupby("batches")["seconds"].mean()
    asking = TABLES["fashion_seconds"].set_index("work").loc["perturbation", "seconds"]
    accuracy = {n: 100 * NETWORKS[n]["train_accuracy"] for n in CORPORA}
    baselines = GI.loc[(slice(None), slice(None), SCORES[:2]), :]
    lead = 100 * baselines.groupby("other")[["difference", "pgdl_difference"]].mean()
    by = [-100 * GI.loc[(*cell, AUGMENTATION), "difference"] for cell in TRANSLATION]
    jitter = GI.loc["invariance-vgg", "color_jitter"].loc[[AUGMENTATION, TRAINING], "p_max"]
    of_penalty = COMPARED["cifar10"].query("measure == @PENALTY").set_index("other")["p_max"]
    best = pd.concat([of_penalty, pd.Series({"mixup": TO_MIXUP["cifar10"].loc[PENALTY, "p_max"]})])
    above = TO_MIXUP["cifar10"].loc[[PENALTY, DROP, P90], "p_max"]
    corrected = cifar.loc[
        ["mixup", *(f"{m} {k} ℓ=0" for m in ("pal", "gi") for k in ("intra", "inter"))], "partial_p_max"
    ]
    kept = fashion.loc[KIN].query("partial_p_max <= 0.05")["partial_p_max"]
    assert set(kept.index) == {"mixup", "DBI · (1 − mixup)", pca, "gi intra ℓ=0"}
    assert (kept.drop("gi intra ℓ=0") < 0.0025).all() and p(kept["gi intra ℓ=0"]) == "0.010"
    claims = [
        *(row_of_looks(m) for m in LOOKS if "of the last layer" not in m or "curvature" in m),
        *(row_of_cell(*cell) for cell in CELLS),
        f"(the lowest p_max is {p(baselines['p_max'].min())}), with them one of {len(baselines)} is "
        f"({p(baselines['pgdl_p_max'].min())})",
        f"({cmi(fashion, TRAINING, '{}')} against at most {cmi(fashion, 'parameter norm', '{}')},",
        f"has {cmi(cifar, pca, '{}')}, mixup alone {cmi(cifar, 'mixup', '{}')} (",
        f"explain {explained('cifar10', 'measures')} of the variance of the gap in CIFAR-10 networks left out, "
        f"and the controls {explained('cifar10', 'controls')} (Fashion-MNIST: {explained('fashion', 'measures')} and "
        f"{explained('fashion', 'controls')})",
        *(f"{accuracy[n].min():.1f} to {accuracy[n].max():.1f} % on {where}"
          for n, where in zip(CORPORA, ("Fashion-MNIST", "CIFAR-10"), strict=True)),
        "(Pearson " + both(lambda n: f"{NETWORKS[n]['gap'].corr(accuracy[n]):.2f}"),
        f"stay below {chance('fashion')} on Fashion-MNIST and {chance('cifar10')} on CIFAR-10",
        f"Of 76 measures {predicting('fashion')} and {predicting('cifar10')} are called predicting",
        f"Pal intra ℓ=0, has a p_max of {p(fashion.loc['pal intra ℓ=0', 'p_max'])}",
        f"predicts ({cmi(fashion, 'parameter norm')}, p_max {p(fashion.loc['parameter norm', 'p_max'])})",
        f"above it ({cmi(fashion, TRAINING)}, p_max {p(fashion.loc[TRAINING, 'p_max'])};",
        f"the paper's is {alike('fashion', SINGLE)} over the ten single measures",
        f"have {cmi(fashion, 'gi inter ℓ=1', '{}')} and {cmi(fashion, 'pal inter ℓ=1', '{}')} here",
        f"explains {100 * shares['fashion']:.0f} % of the variance", f"CIFAR-10: {100 * shares['cifar10']:.0f} %",
        f"is {100 * within.std():.2f} percentage points", f"up to {100 * (known * (1 - known) / 10_000) ** 0.5:.2f},",
        f"less than mixup by {from_mixup('cifar10', pca)} (Holm's p {p(TO_MIXUP['cifar10'].loc[pca, 'p_holm'])})",
        f"have {cmi(cifar, TOGETHER)} on CIFAR-10",
        f"(mixup: p_max {p(TO_MIXUP['cifar10'].loc[TOGETHER, 'p_max'])}), and {cmi(fashion, TOGETHER)} on Fashion",
        "mixup has p {}, Pal intra and inter {} and {}, and Gi {} and {}.".format(*map(p, corrected)),
        "on CIFAR-10 {} and {}, on Fashion-MNIST {} and {}.".format(
            *(p(RANKING[n].loc[m, "partial_p_max"]) for n in reversed(CORPORA) for m in ("mixup", "gi intra ℓ=0"))
        ),
        f"does not predict ({cmi(cifar, product, '{}')}, p_max {p(cifar.loc[product, 'p_max'])})",
        f"alone does ({cmi(cifar, 'pal intra ℓ=0', '{}')}; the paper {quoted['cifar10'][product][0]} v "
        f"{quoted['cifar10']['pal intra ℓ=0'][0]})",
        f"τ between the columns is {alike('cifar10', KIN)}",
        f"two columns is {alike('cifar10', SINGLE)} over the ten",
        f"more than Gi intra ℓ=0 by {from_mixup('cifar10', 'gi intra ℓ=0')} "
        f"(Holm's p {p(TO_MIXUP['cifar10'].loc['gi intra ℓ=0', 'p_holm'])}: not significant)",
        f"highest of all ({cmi(ERROR['fashion'], pca)}), before mixup ({cmi(ERROR['fashion'], 'mixup')}) and Gi intra "
        f"ℓ=0 ({cmi(ERROR['fashion'], 'gi intra ℓ=0')})",
        f"the penalty is the highest again ({cmi(ERROR['cifar10'], PENALTY)}); mixup has "
        f"{cmi(ERROR['cifar10'], 'mixup', '{}')}, Gi intra ℓ=0 {cmi(ERROR['cifar10'], 'gi intra ℓ=0', '{}')}",
        f"under augmentation ({cmi(cifar, PENALTY)}). It is significantly ahead of Gi "
        f"(p_max {p(best['gi intra ℓ=0'])}) and of {(best[KIN] <= 0.05).sum()} of the paper's fourteen measures, "
        f"but not of mixup (p_max {p(best['mixup'])})",
        "ahead of mixup (p_max {}, {} and {}), nor".format(*map(p, above)),
        f"nor the penalty of DBI · (1 − mixup) (p_max {p(best['DBI · (1 − mixup)'])})",
        f"(penalty {cmi(cifar, PENALTY)}", f"(mean drop {cmi(cifar, DROP)}", f"quantile {cmi(cifar, P90)}",
        f"which predicts there, has {cmi(cifar, 'parameter norm', '{}')} on CIFAR-10",
        f"on CIFAR-10 by {explained('cifar10', 'difference')} of its variance, on Fashion-MNIST by "
        f"{explained('fashion', 'difference')}. Both intervals include 0.",
        f"it does not (p_max {p(fashion.loc['scale invariance, mean of layers', 'p_max'])})",
        "granulated τ " + both(lambda n: tau(n, "scale invariance, mean of layers", "granulated_tau", "{}, {}–{}")),
        "change is " + both(lambda n: tau(n, "lowest curvature change")),
        "not clearly: τ is " + both(lambda n: tau(n, "curvature change of the last layer")),
        "average " + both(lambda n: f"{NETWORKS[n]['lowest curvature change'].mean():+.1f}°"),
        f"of {PAIRS.loc[('fashion', 'mixup', 0.005), 'pairs']:,} such pairs",
        f"in {right('fashion')}, of {PAIRS.loc[('cifar10', 'mixup', 0.005), 'pairs']} on CIFAR-10",
        f"in {right('cifar10')}, where",
        "it is " + both(lambda n: right(n, "train_accuracy")),
        "0.2 points " + both(lambda n: right(n, "train_accuracy", 0.002)),
        "(these differ by " + " and ".join(f"{100 * abs(d['train_accuracy'].diff().iloc[1]):.1f}" for d in PICTURED),
        "much alike (τ " + both(lambda n: number(NETWORKS[n]["gi intra ℓ=0"].corr(NETWORKS[n]["mixup"], "kendall"))),
        f"from {spread.loc[1, 'mean']:.1f} with one batch to {spread.loc[39, 'mean']:.1f} with 39",
        f"falls from {spread.loc[1, 'std']:.1f} to {spread.loc[39, 'std']:.1f}",
        f"takes {seconds[1]:.3f} s from one batch and {seconds[78]:.2f} s from 78", f"the GPU, {asking:.1f} s",
        *(f"({lead.loc[m, 'pgdl_difference'] - lead.loc[m, 'difference']:.1f} of {lead.loc[m, 'pgdl_difference']:.1f}"
          for m in SCORES[:2]),
        "(by {:.1f}, {:.1f}, {:.1f} and {:.1f};".format(*by),
        "significantly (p_max {} and {})".format(*map(p, jitter)),
    ]  # fmt: skip
    assert not [claim for claim in claims if claim not in PAGE]


@pytest.mark.slow
def test_self_pairs_favour_measures_that_rise_as_much_as_the_page_and_the_documentation_say():
    hyper = list(TABLES["fashion_gap"]["hyper-parameter"])
    found = {(n, m): of_negative(NETWORKS[n], hyper, m) for n in CORPORA for m in NETWORKS[n].columns[14:]}
    favour = [high / low - 1 for low, high in found.values() if high > 0.04]
    assert f"by {100 * min(favour):.0f} to {100 * max(favour):.0f} % for measures above 4" in PAGE
    few = TABLES["invariance-vgg_networks"].query("perturbation == 'rotation' and trained_accuracy >= 0.8")
    one = of_negative(few.reset_index(drop=True), ["depth", "batch_size", "learning_rate"], "mean accuracy")
    numbers = (
        " v ".join(f"{value:.2f}" for value in reversed(one)),
        " v ".join(f"{value:.2f}" for value in reversed(found["cifar10", "mixup"])),
    )
    described = " ".join((conditional_mutual_information.__doc__ or "").split())
    assert f"{numbers[0]} for one measure over {len(few)} networks, {numbers[1]} for another over 96" in described


def test_the_sentences_on_table_one_follow_from_its_tables():
    fashion, cifar = RANKING["fashion"], RANKING["cifar10"]
    predicts = {name: table["p_max"] <= 0.05 for name, table in RANKING.items()}
    measures = fashion["kind"] == "measure"
    assert fashion["cmi_distinct"].idxmax() == TRAINING and not predicts["fashion"][KIN].any()
    assert fashion.index[measures & predicts["fashion"]].tolist() == ["parameter norm"]
    assert fashion.loc[KIN, "cmi_distinct"].idxmax() == "pal intra ℓ=0"
    compared = COMPARED["fashion"].set_index(["measure", "other"])
    assert compared.loc[("parameter norm", TRAINING), "p_max"] > 0.05
    assert (
        predicts["cifar10"][AT_INPUT].all() and not predicts["cifar10"][[m for m in SINGLE if m not in AT_INPUT]].any()
    )
    assert (cifar.loc[AT_INPUT, "direction"] == "as expected").all()
    assert predicts["cifar10"]["mean of pal inter and intra ℓ=0"] and not predicts["cifar10"]["pal intra ℓ=0 · ℓ=1"]
    distinct = cifar["cmi_distinct"]
    for score in ("gi", "pal"):
        assert distinct[f"{score} intra ℓ=0"] > distinct[f"{score} inter ℓ=0"] > distinct[f"{score} inter ℓ=1"]
        assert distinct[f"{score} inter ℓ=1"] > distinct[f"{score} intra ℓ=1"]
    assert distinct[KIN].idxmax() == "DBI · (1 − mixup)"
    assert distinct.index[0] == PENALTY and distinct.index[1] == DROP and distinct[P90] > distinct[KIN].max()
    assert not predicts["fashion"][[PENALTY, DROP, P90]].any() and predicts["cifar10"][[PENALTY, DROP, P90]].all()
    ends = cifar.loc[AT_INPUT, ["partial_rho_low", "partial_rho_high"]]
    sign = (cifar.loc[AT_INPUT, "expected"] == "rises").map({True: 1, False: -1})
    assert (ends.mul(sign, axis=0) > 0).all(axis=None)
    for name in CORPORA:
        assert (ERROR[name].loc[["mixup", "gi intra ℓ=0"], "p_max"] <= 0.05).all()
    assert max(COMBINED[name].loc["difference", "low"] for name in CORPORA) < 0
    assert ERROR["cifar10"].index[0] == PENALTY
    assert ERROR["fashion"].index[0] == "PCA of gi intra ℓ=0 and mixup"
    assert len(LOOKS) == 14 and not predicts["fashion"][LOOKS].any()
    assert cifar.loc[LOOKS].index[predicts["cifar10"][LOOKS]].tolist() == ["scale invariance, mean of layers"]


def test_the_sentences_on_comparisons_follow_from_their_tables():
    mixup = TO_MIXUP["cifar10"]
    with_best = COMPARED["cifar10"].query("measure == @PENALTY")
    assert not (COMPARED["fashion"]["p_max"] <= 0.05).any() and not (TO_MIXUP["fashion"]["p_holm"] <= 0.05).any()
    assert not (mixup["p_max"] <= 0.05).any()  # neither Gi, nor the PCA, nor the penalty
    ahead = with_best.query("p_max <= 0.05")
    assert (
        ahead["difference"] > 0
    ).all() and f"penalty is ahead of {len(ahead)} of the {len(with_best) + 1} others" in PAGE
    better, worse = (mixup[(mixup["p_holm"] <= 0.05) & (s * mixup["difference"] > 0)] for s in (-1, 1))
    assert set(better.index) == {PENALTY, DROP} and f"it is ahead of {len(worse)} others" in PAGE
    assert {"pal inter ℓ=1", "manifold mixup"} <= set(worse.index)
    alike = ["gi intra ℓ=0", "gi inter ℓ=0", "pal intra ℓ=0", "PCA of gi intra ℓ=0 and mixup", "DBI · (1 − mixup)"]
    assert (mixup.loc[alike, "p_holm"] > 0.05).all()


def test_the_sentences_on_table_three_follow_from_its_tables():
    cells = GI.unstack()
    ahead, ahead_pgdl = cells["difference"] > 0, cells["pgdl_difference"] > 0
    assert ahead[SCORES[:2]].sum().tolist() == [6, 4] and ahead[SCORES[:2]].all(axis=1).sum() == 4
    assert ahead_pgdl[SCORES[:2]].all(axis=None) and len(ahead) == 8
    assert (cells["p_max"][SCORES[:2]] > 0.05).all(axis=None)
    assert (cells["pgdl_p_max"][SCORES[:2]] <= 0.05).sum(axis=None) == 1
    assert cells["pgdl_p_max"]["mean accuracy"].idxmin() == ("invariance-vgg", "color_jitter")
    tau = THREE["tau"].abs().unstack()
    assert (tau["gi"] > tau["mean accuracy"]).sum() == 4
    assert not ahead[AUGMENTATION][TRANSLATION].any() and (~ahead_pgdl[AUGMENTATION][TRANSLATION]).sum() == 3
    trained = ahead.index[~ahead[TRAINING]].tolist()
    assert trained == [("invariance-resnet", "translation_x"), ("invariance-resnet", "translation_y")]
    assert (cells["p_max"][[AUGMENTATION, TRAINING]].loc[TRANSLATION] > 0.05).all(axis=None)
    jitter = [("invariance-vgg", "color_jitter"), ("invariance-resnet", "color_jitter")]
    assert ahead.loc[jitter, [AUGMENTATION, TRAINING]].all(axis=None)
    assert (cells["p_max"].loc[jitter, [AUGMENTATION, TRAINING]] <= 0.05).all(axis=1).tolist() == [True, False]
    partial = THREE.query("kind == 'measure'")
    kept = partial[partial["partial_p_max"] <= 0.05]
    jittered, shifted = ("invariance-vgg", "color_jitter"), ("invariance-resnet", "translation_x")
    assert set(kept.index) == {(*jittered, m) for m in SCORES} | {(*shifted, m) for m in SCORES[:2]}
    sizes = partial.loc[jittered, "partial_rho"].abs()
    assert f"(|ρ| {sizes.min():.2f} to {sizes.max():.2f}, p {p(kept.loc[jittered, 'partial_p_max'].max())} for" in PAGE
    said = partial.loc[shifted, ["partial_rho", "partial_p_max"]].abs().loc[SCORES[:3]]
    rho, p_max = ([f"{v:.2f}" for v in said["partial_rho"]], [p(v) for v in said["partial_p_max"]])
    assert f"({rho[0]} and {rho[1]}, p {p_max[0]} and {p_max[1]}; Gi {rho[2]}, {p_max[2]})" in PAGE
    predicts = (THREE["p_max"] <= 0.05).unstack()
    assert predicts[[*SCORES[:3], AUGMENTATION]].sum().tolist() == [6, 7, 7, 7]
    assert not predicts.loc[("invariance-resnet", "rotation")].any()
    assert ahead["gi folded"].sum() == 7 and (cells["p_max"]["gi folded"] > 0.05).all()


def test_the_budgets_on_the_page_are_those_of_the_ranking():
    fashion, cifar = (RANKING[name]["budget"] for name in CORPORA)
    assert fashion["gi intra ℓ=0"] == "9984 inputs × 21 magnitudes" and cifar["mixup"] == "5000 inputs"
    assert cifar["log inverse squared sigma"] == "1000 inputs × 3 draws" and cifar["mean margin"] == "1000 inputs"
    assert fashion["DBI · (1 − mixup)"] == "120 inputs × 10 rounds; 9984 inputs"
    assert (RANKING["cifar10"]["budget"].notna() == (RANKING["cifar10"]["kind"] == "measure")).all()
    for said in (
        "9,984 inputs (CIFAR-10: 5,000) at 21",
        "10 rounds of 120",
        "1,000 inputs with 3 draws",
        "27 clips of 11",
    ):
        assert said in PAGE


def test_the_documentation_says_what_the_tables_say():
    docs = PERTURBATION.parents[1] / "docs"
    said = {name: " ".join((docs / name).read_text().split()) for name in ("generalization.md", "cmi-self-pairs.md")}
    predict = {n: (RANKING[n].query("kind == 'measure'")["p_max"] <= 0.05).sum() for n in CORPORA}
    assert f"{predict['cifar10']} measures predict the gap in one" in said["generalization.md"]
    assert f"and {predict['fashion']} in the other, where the exact training" in said["generalization.md"]
    ahead = {c: (GI[c].unstack()[SCORES[:2]] > 0).all(axis=1).sum() for c in ("difference", "pgdl_difference")}
    said_of_pairs = "in {pgdl_difference} of 8 cells of its Table 3 with these pairs, and in {difference} of 8 without"
    assert said_of_pairs.format(**ahead) in said["cmi-self-pairs.md"]


def test_the_pictured_pairs_are_ordered_the_other_way_round():
    for pair in PICTURED:
        assert pair["gap"].diff().iloc[1] * pair["gi intra ℓ=0"].diff().iloc[1] < 0


def test_intervals_of_pairs_leave_out_guessing_on_the_page_where_they_do_in_the_table():
    ends = PAIRS[["right_low", "right_high"]]
    shown = [re.search(r"\((.*)–(.*)\)", right(*key)) for key in PAIRS.index]
    leave_out = (ends["right_high"] < 0.5) | (ends["right_low"] > 0.5)
    assert [not float(m[1]) <= 50 <= float(m[2]) for m in shown if m] == leave_out.tolist()
    assert leave_out.drop(index="mixup", level="also").tolist() == [True, False, False, False]
    assert "of these four only the first leaves out guessing" in PAGE
