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
TOGETHER = "control: all hyper-parameters together"
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
        columns = ("width", "depth", "skips", "dropout", "weight_decay", "batch_size", "train_size", "epsilon")
        hyper = [column for column in columns if column in table and table[column].nunique() > 1]
        for measure in [measure for measure in RANKING[name].index if measure in table][:3]:
            levels = {h: table[h].to_numpy() for h in hyper}
            found = conditional_mutual_information(table[measure].to_numpy(), table["gap"].to_numpy(), levels)
            assert found == pytest.approx(RANKING[name].loc[measure, "cmi"], abs=1e-8)  # tables have nine digits


def test_the_page_counts_networks_and_measures():
    done = sum(map(len, NETWORKS.values()))
    assert f"**{done} of 528 networks so far**" in PAGE and f"none of the {done} failed" in PAGE
    seconds = [table for stem, table in TABLES.items() if stem.endswith("_seconds")]
    assert sum(int(table["left_out"].iloc[0]) for table in seconds) == 0
    assert sum(int(table["networks"].iloc[0]) for table in seconds) == done
    for name in CORPORA:
        low, high = 100 * NETWORKS[name]["gap"].min(), 100 * NETWORKS[name]["gap"].max()
        assert f"from {low:.1f} to {high:.1f} % on `{name}`" in PAGE
        assert f", {len(NETWORKS[name])} networks" in PAGE and f"| {len(NETWORKS[name])} |" in TEXT
        assert len(FAMILY[name]) == 102 and set(NETWORKS[name]["status"]) == {"stopped"}


def p_of(name: str, measure: str, column: str = "p_max", digits: int = 2) -> str:
    """The p of a measure as the page writes it."""
    return f"{RANKING[name].loc[measure, column]:.{digits}f}"


def test_what_hyperparameters_say_together_follows_from_the_tables():
    best = TABLES["families"].query("family != 'control'").groupby("corpus")["cmi_distinct"].max()
    for name in ("fashion", "cifar10"):
        together = RANKING[name].loc[TOGETHER, "cmi_distinct"]
        assert RANKING[name].index[0] == TOGETHER
        assert f"`{name}` ({100 * together:.1f} against {100 * best[name]:.1f}" in PAGE
    above = TABLES["cifar10_comparisons"].set_index("other").loc[TOGETHER]
    ends = f"{-100 * above['low']:.1f} to −{-100 * above['high']:.1f}"
    assert f"difference −{-100 * above['difference']:.1f}, −{ends}, by itself; p {above['p_max']:.2f}" in PAGE
    higher = RANKING["adversarial"].index.get_loc(TOGETHER)
    assert higher == 2 and (TABLES["adversarial_comparisons"]["p_max"] > 0.05).all()
    combined = {name: TABLES[f"{name}_combined"].set_index("of") for name in CORPORA}
    r2 = [f"{combined[name].loc['controls', 'r2']:.2f}" for name in CORPORA]
    assert f"({r2[0]}, {r2[1]} and {r2[2]} on" in PAGE
    alone = [f"{combined[name].loc['measures', 'r2']:.2f}" for name in CORPORA]
    assert f"The measures alone reach {alone[0]}, {alone[1]} and {alone[2]}." in PAGE
    for name in CORPORA:
        change = 100 * combined[name].loc["difference", ["r2", "low", "high"]]
        assert change["low"] < 0 < change["high"]
        said = f"−{-change['r2']:.1f}", f"(−{-change['low']:.1f} to {change['high']:.1f})"
        assert all(part in PAGE for part in said)


def test_what_is_said_against_the_papers_follows_from_the_tables():
    good = {name: table.index.map(FAMILY[name]).fillna("control").value_counts() for name, table in GOOD.items()}
    assert good["fashion"].to_dict() == {"complexity": 8, "margins": 2, "augmentation": 1, "control": 1}
    assert good["cifar10"].to_dict() == {"augmentation": 5, "perturbation response": 2, "control": 1}
    assert good["adversarial"].to_dict() == {"augmentation": 5, "control": 1}
    of = GOOD["fashion"].index.map(FAMILY["fashion"])
    assert set(GOOD["fashion"]["direction"][of == "complexity"]) == {"against expectation"}
    assert set(GOOD["fashion"]["direction"][of == "margins"]) == {"as expected"}
    pal, gi = "pal inter ℓ=1", "gi inter ℓ=1"
    assert {pal, gi} < set(GOOD["cifar10"].index)
    assert f"p {p_of('cifar10', pal, digits=3)} and {p_of('cifar10', gi, digits=3)}" in PAGE
    more = TABLES["cifar10_more_held"].set_index("measure")["p_max_given_3"]
    assert f"held constant ({more[pal]:.2f} and {more[gi]:.2f})" in PAGE
    assert (RANKING["cifar10"].loc[[pal, gi], "partial_p_max"] > 0.9).all()
    family = TABLES["families"].set_index(["corpus", "family"])["p_max"]
    others = [f"{family[name, 'perturbation response']:.2f}" for name in ("fashion", "adversarial")]
    assert f"(p of the best {others[0]} and {others[1]})" in PAGE
    assert {p_of(name, "DBI · (1 − mixup)") for name in CORPORA} == {"1.00"}
    given_all = {name: TABLES[f"{name}_more_held"] for name in ("fashion", "cifar10")}
    least = [f"{table['p_max_given_all'].min():.2f}" for table in given_all.values()]
    assert f"(p of the best {least[0]} and {least[1]})" in PAGE
    by_chance = [f"{100 * table['chance_given_all'].iloc[0]:.0f}" for table in given_all.values()]
    assert f"reaches {by_chance[0]} and {by_chance[1]} by chance" in PAGE


def test_what_is_said_to_agree_follows_from_the_tables():
    best = TABLES["families"].query("family == 'augmentation'").set_index("corpus")["measure"]
    assert best.to_dict() == {
        "fashion": "augmentation crop drop",
        "cifar10": "augmentation flip saturation drop",
        "adversarial": "augmentation penalty",
    }
    measures = [set(table.index) - {TOGETHER} for table in GOOD.values()]
    assert not set.intersection(*measures)
    assert f"the penalty has p {p_of('fashion', 'augmentation penalty')} on `fashion`" in PAGE
    assert {p_of(name, "augmentation crop drop") for name in ("cifar10", "adversarial")} == {"1.00"}
    compared = TABLES["cifar10_comparisons"]
    assert set(compared["measure"]) == {best["cifar10"]}
    clear = compared[(compared["p_max"] <= 0.05) & (compared["difference"] > 0)]
    assert f"above {len(clear)} of {len(compared)} others" in PAGE
    four = [m for m in RANKING["cifar10"].query("partial_p_max <= 0.05").index if m.startswith("augmentation")]
    assert len(four) == 4
    more = TABLES["cifar10_more_held"].set_index("measure").loc[four]
    low, high = 100 * more["cmi_given_3"].min(), 100 * more["cmi_given_3"].max()
    assert f"({low:.1f} to {high:.1f}, p 0.001)" in PAGE and (more["p_max_given_3"] < 0.0015).all()
    rho = RANKING["cifar10"].loc[four, "partial_rho"]
    assert f"at equal controls ({rho.min():.2f} to {rho.max():.2f})" in PAGE
    near = NETWORKS["cifar10"][four].corrwith(NETWORKS["cifar10"]["gap"])
    assert f"(correlations {near.min():.2f} to {near.max():.2f})" in PAGE


def test_what_is_left_at_equal_controls_follows_from_the_tables():
    kept = {name: table[table["partial_p_max"] <= 0.05] for name, table in RANKING.items()}
    assert [len(kept[name]) for name in CORPORA] == [1, 5, 0]
    bound, distance = kept["cifar10"].loc["pac-bayes orig"], kept["fashion"].loc["squared frobenius distance"]
    assert f"({bound['partial_rho']:.2f}, p {bound['partial_p_max']:.3f})" in PAGE
    assert f"({distance['partial_rho']:.2f}, p {distance['partial_p_max']:.3f})" in PAGE
