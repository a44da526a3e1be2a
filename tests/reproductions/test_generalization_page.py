"""The page of the table of all families says what its committed tables say, in numbers and in words."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from assay import conditional_mutual_information

FOLDER = Path(__file__).parents[2] / "reproductions" / "what-predicts-generalization"
TEXT = (FOLDER / "README.md").read_text()
PAGE = " ".join(TEXT.split())
TABLES = {path.stem: pd.read_csv(path) for path in (FOLDER / "tables").glob("*.csv")}
CORPORA = tuple(TABLES["families"]["corpus"].unique())
NETWORKS = {
    name: pd.concat([table for stem, table in TABLES.items() if re.fullmatch(rf"{name}_\d", stem)]) for name in CORPORA
}
RANKING = {name: TABLES[f"{name}_ranking"].set_index("measure") for name in CORPORA}
FAMILY = {name: TABLES[f"{name}_predictors"].set_index("measure")["family"] for name in CORPORA}
GOOD = {name: table[table["p_max"] <= 0.05] for name, table in RANKING.items()}


def interval(row: pd.Series, score: str, factor: float, between: str, digits: int) -> str:
    """A value and the ends of its interval in the page's form."""
    value, low, high = (f"{factor * row[f'{score}{end}']:.{digits}f}" for end in ("", "_low", "_high"))
    return f"{value} ({low}{between}{high})".replace("-", "−")


def row_of(best: pd.Series) -> str:
    """A row of the page's table of families."""
    bold = "**" if best["p_max"] <= 0.05 else ""
    p = f"{best['p_max']:.3f}" if best["p_max"] <= 0.05 else f"{best['p_max']:.2f}"
    equal = "" if pd.isna(best["partial_rho"]) else interval(best, "partial_rho", 1, " to ", 2)
    cells = (f"{bold}{best['family']}{bold}", best["measures"], best["measure"],
             interval(best, "cmi_distinct", 100, "–", 1), p, best["direction"], equal)  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


@pytest.mark.parametrize("number", range(len(TABLES["families"])))
def test_the_rows_of_the_families_are_those_of_the_table(number):
    assert row_of(TABLES["families"].iloc[number]) in TEXT


def test_the_families_are_the_best_of_the_rankings():
    for _, best in TABLES["families"].iterrows():
        ranking = RANKING[best["corpus"]]
        of = ranking[(ranking.index.map(FAMILY[best["corpus"]]).fillna("control") == best["family"]).tolist()]
        assert len(of) == best["measures"] and of["cmi_distinct"].idxmax() == best["measure"]


def test_scores_follow_from_the_networks():
    for name, table in NETWORKS.items():
        hyper = [column for column in ("width", "depth", "skips", "dropout", "weight_decay", "batch_size", "train_size")
                 if column in table and table[column].nunique() > 1]  # fmt: skip
        for measure in RANKING[name].index[:3]:
            levels = {h: table[h].to_numpy() for h in hyper}
            found = conditional_mutual_information(table[measure].to_numpy(), table["gap"].to_numpy(), levels)
            assert found == pytest.approx(RANKING[name].loc[measure, "cmi"], abs=1e-8)  # tables have nine digits


def test_the_page_counts_networks_and_measures():
    done = sum(map(len, NETWORKS.values()))
    assert f"**{done} of 528 networks so far**" in PAGE and f"none of the {done} failed" in PAGE
    seconds = [table for stem, table in TABLES.items() if stem.endswith("_seconds")]
    assert sum(int(table["left_out"].iloc[0]) for table in seconds) == 0
    assert sum(int(table["networks"].iloc[0]) for table in seconds) == done
    for name, title in (("fashion", "Fashion-MNIST"), ("cifar10", "CIFAR-10")):
        low, high = 100 * NETWORKS[name]["gap"].min(), 100 * NETWORKS[name]["gap"].max()
        assert f"from {low:.1f} to {high:.1f} % on {title}" in PAGE
        assert len(FAMILY[name]) == 102 and len(RANKING[name]) == 109


def test_what_is_said_against_the_papers_follows_from_the_tables():
    for name in CORPORA:
        families = set(GOOD[name].index.map(FAMILY[name]))
        assert families == ({"augmentation", "complexity"} if name == "fashion" else {"augmentation"})
    complexity = GOOD["fashion"][(GOOD["fashion"].index.map(FAMILY["fashion"]) == "complexity").tolist()]
    assert len(complexity) == 7 and set(complexity["direction"]) == {"against expectation"}
    best = TABLES["families"].set_index(["corpus", "family"])["p_max"]
    assert round(best["cifar10", "perturbation response"], 2) == 0.10
    assert best["fashion", "perturbation response"] == 1
    assert not set(GOOD["fashion"].index) & set(GOOD["cifar10"].index)
    for name, measure in (("fashion", "augmentation flip drop"), ("cifar10", "augmentation crop drop")):
        assert round(RANKING[name].loc[measure, "p_max"], 2) == 1
    winner = [f"{RANKING[name].loc['DBI · (1 − mixup)', 'p_max']:.2f}" for name in ("fashion", "cifar10")]
    assert f"(p {winner[0]} and {winner[1]})" in PAGE
    assert f"({RANKING['fashion'].loc['augmentation penalty', 'p_max']:.2f})" in PAGE
    combined = {name: TABLES[f"{name}_combined"].set_index("of") for name in CORPORA}
    assert {round(table.loc["controls", "r2"], 2) for table in combined.values()} == {0.94}
    alone = [f"{combined[name].loc['measures', 'r2']:.2f}" for name in ("cifar10", "fashion")]
    assert f"without hyper-parameters, reach {alone[0]} and {alone[1]}" in PAGE
    up, down = (100 * combined[n].loc["difference", ["r2", "low", "high"]] for n in ("cifar10", "fashion"))
    assert f"{up['r2']:.1f} points higher on CIFAR-10 (−{-up['low']:.1f} to {up['high']:.1f})" in PAGE
    assert f"{-down['r2']:.1f} points *lower* on Fashion-MNIST ({-down['high']:.1f} to {-down['low']:.1f})" in PAGE


def test_what_is_said_to_agree_follows_from_the_tables():
    compared = TABLES["cifar10_comparisons"]
    assert set(compared["measure"]) == {"augmentation flip drop"}
    unclear = compared[compared["p_max"] > 0.05]["other"].map(FAMILY["cifar10"]).value_counts()
    assert f"above {(compared['p_max'] <= 0.05).sum()} of the {len(compared)} other" in PAGE
    assert unclear.to_dict() == {"augmentation": 5, "perturbation response": 7, "combination": 1, "sharpness": 2}
    near = NETWORKS["cifar10"]["augmentation flip drop"].corr(NETWORKS["cifar10"]["gap"])
    assert f"close to the gap itself (correlation {near:.2f})" in PAGE
    assert not (TABLES["fashion_comparisons"]["p_max"] <= 0.05).any()
    kept = {n: table[(table["partial_rho_low"] > 0) | (table["partial_rho_high"] < 0)] for n, table in RANKING.items()}
    assert [*kept["cifar10"].index.map(FAMILY["cifar10"])] == ["augmentation"] * 4
    assert [*kept["fashion"].index.map(FAMILY["fashion"])] == ["complexity"] * 4
    distances = kept["fashion"]["partial_rho"].drop("log spectral sum")
    assert all("distance" in name for name in distances.index)
    assert f"{distances.min():.2f} to {distances.max():.2f}" in PAGE
    assert f"norms, {kept['fashion'].loc['log spectral sum', 'partial_rho']:.2f})" in PAGE
