"""The page of the table of all families says what its committed tables say, in numbers and in words."""

from __future__ import annotations

import importlib.util
import re
from itertools import combinations
from pathlib import Path

import numpy as np
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
COLUMNS = ("width", "depth", "skips", "dropout", "weight_decay", "batch_size", "train_size", "epsilon")
HYPER = {name: [c for c in COLUMNS if c in table and table[c].nunique() > 1] for name, table in NETWORKS.items()}
THREE = {name: TABLES[f"{name}_three_held"].set_index("measure") for name in CORPORA}
SEEDS = {name: TABLES[f"{name}_among_seeds"].set_index("measure") for name in CORPORA}
BY_SEED = {name: TABLES[f"{name}_by_seed"].set_index("measure") for name in CORPORA}
TOGETHER = "control: all hyper-parameters together"
PENALTY = "augmentation penalty"
QUARTILE = "normalised margin lower quartile at input"
PHASE = "gratings: phase invariance, mean of layers"
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


def of_family(name: str, family: str, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """The rows of a table that are measures of a family; by default of those beyond chance."""
    table = GOOD[name] if table is None else table
    return table[(table.index.map(FAMILY[name]) == family).tolist()]


def number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def p_in_bold(p: float) -> str:
    if pd.isna(p):
        return ""
    return "**≤ 0.001**" if p < 0.00105 else f"**{p:.3f}**" if p <= 0.05 else f"{p:.2f}"


def rows_beyond_chance(name: str) -> list[str]:
    """A row for every measure that has a p of at most 0.05 by one of the four questions."""
    rows = []
    for measure, of in RANKING[name].iterrows():
        three, seeds = THREE[name].reindex([measure]).iloc[0], SEEDS[name].reindex([measure]).iloc[0]
        p = of["p_max"], three["p_max"], of["partial_p_max"], seeds["p_max"]
        values = 100 * of["cmi_distinct"], 100 * three["value"], of["partial_rho"], seeds["tau"]
        if min(x for x in p if not pd.isna(x)) > 0.05:
            continue
        score, held, rho, tau = ("" if pd.isna(v) else number(v, d) for v, d in zip(values, (1, 1, 2, 2), strict=True))
        first, second, third, fourth = map(p_in_bold, p)
        direction = "" if of["direction"] == "none declared" else of["direction"]
        cells = (name, measure, score, first, direction, held, second, rho, third, tau, fourth)
        rows.append("| " + " | ".join(cells) + " |")
    return rows


@pytest.mark.parametrize("name", CORPORA)
def test_everything_beyond_chance_is_in_one_table(name):
    said = [line for line in TEXT.splitlines() if line.startswith(f"| {name} |")]
    assert said == rows_beyond_chance(name)


def test_scores_follow_from_the_networks():
    for name, table in NETWORKS.items():
        for measure in [measure for measure in RANKING[name].index if measure in table][:3]:
            levels = {h: table[h].to_numpy() for h in HYPER[name]}
            found = conditional_mutual_information(table[measure].to_numpy(), table["gap"].to_numpy(), levels)
            assert found == pytest.approx(RANKING[name].loc[measure, "cmi"], abs=1e-8)  # tables have nine digits


def test_scores_of_single_seeds_follow_from_the_networks():
    for name, measure in (("cifar10", "augmentation flip drop"), ("fashion", "augmentation crop drop"),
                          ("adversarial", "mean margin")):  # fmt: skip
        found = []
        for seed, table in NETWORKS[name].groupby("seed"):
            score = conditional_mutual_information(table[measure], table["gap"], table[HYPER[name]], self_pairs=False)
            assert score == pytest.approx(BY_SEED[name].loc[measure, f"seed_{seed}"], abs=1e-8)
            found.append(number(100 * score, 1))
        assert f"{found[0]}, {found[1]} and {found[2]} on" in PAGE


def test_the_page_counts_networks_and_measures():
    done = sum(map(len, NETWORKS.values()))
    assert f"**{done} networks** in three corpora, each setting with three seeds." in PAGE
    assert f"none of the {done} failed" in PAGE
    assert all((table.groupby(HYPER[name])["seed"].nunique() == 3).all() for name, table in NETWORKS.items())
    seconds = [table for stem, table in TABLES.items() if stem.endswith("_seconds")]
    assert sum(int(table["left_out"].iloc[0]) for table in seconds) == 0
    assert sum(int(table["networks"].iloc[0]) for table in seconds) == done
    for name in CORPORA:
        low, high = 100 * NETWORKS[name]["gap"].min(), 100 * NETWORKS[name]["gap"].max()
        assert f"from {low:.1f} to {high:.1f} % on `{name}`" in PAGE
        assert f", {len(NETWORKS[name])} networks" in PAGE and f"`{name}` | {len(NETWORKS[name])} on " in TEXT
        assert len(FAMILY[name]) == 102 and set(NETWORKS[name]["status"]) == {"stopped"}
    attacked = NETWORKS["adversarial"]["epsilon"] > 0
    assert attacked.mean() == pytest.approx(2 / 3)


def p_of(name: str, measure: str, column: str = "p_max", digits: int = 2) -> str:
    """The p of a measure as the page writes it."""
    return f"{RANKING[name].loc[measure, column]:.{digits}f}"


def test_what_hyperparameters_say_together_follows_from_the_tables():
    best = TABLES["families"].query("family != 'control'").groupby("corpus")["cmi_distinct"].max()
    for name, before in (("fashion", "difference of the best measure "), ("cifar10", "")):
        together = RANKING[name].loc[TOGETHER, "cmi_distinct"]
        assert RANKING[name].index[0] == TOGETHER
        d = 100 * TABLES[f"{name}_comparisons"].set_index("other").loc[TOGETHER, ["difference", "low", "high"]]
        ends = f"{number(d['low'], 1)} to {number(d['high'], 1)}"
        numbers = f"{100 * together:.1f} against {100 * best[name]:.1f}; {before}{number(d['difference'], 1)}, {ends}"
        assert f"`{name}` ({numbers})" in PAGE and d["high"] < 0
    assert RANKING["adversarial"].index.get_loc(TOGETHER) == 2
    above = TABLES["adversarial_comparisons"].set_index("other").loc[TOGETHER]
    ends = f"({100 * above['low']:.1f} to {100 * above['high']:.1f})"
    assert f"by {100 * above['difference']:.1f} {ends} and by less" in PAGE and above["p_max"] > 0.05


def test_what_all_measures_explain_together_follows_from_the_tables():
    combined = {name: TABLES[f"{name}_combined"].set_index("of") for name in CORPORA}
    r2 = [f"{combined[name].loc['controls', 'r2']:.2f}" for name in CORPORA]
    assert f"({r2[0]}, {r2[1]} and {r2[2]} on" in PAGE
    for name in CORPORA:
        change = 100 * combined[name].loc["difference", ["r2", "low", "high"]]
        assert change["low"] < 0 < change["high"]
        said = f"{change['r2']:+.1f}".replace("-", "−"), f"(−{-change['low']:.1f} to {change['high']:.1f})"
        assert all(part in PAGE for part in said)
    families = pd.concat([TABLES[f"{name}_by_family"].assign(corpus=name) for name in CORPORA])
    (clear,) = families[families["low"] > 0].itertuples()
    assert (clear.corpus, clear.family, clear.measures) == ("adversarial", "augmentation", 9)
    numbers = f"+{100 * clear.difference:.1f} ({100 * clear.low:.1f} to {100 * clear.high:.1f})"
    at_once = f"−{-100 * clear.low_of_all:.1f} to {100 * clear.high_of_all:.1f} when all eleven"
    assert f"{numbers}, but {at_once}" in PAGE and families.groupby("corpus")["family"].nunique().eq(11).all()
    room = []
    for name in CORPORA:
        gap = NETWORKS[name].groupby(HYPER[name])["gap"]
        room.append(f"{1 - gap.var().mean() / NETWORKS[name]['gap'].var():.2f}")
    assert f"leaves {room[0]}, {room[1]} and {room[2]} to settings" in PAGE


def test_what_is_said_against_the_papers_follows_from_the_tables():
    good = {
        name: table.index.map(FAMILY[name]).fillna("control").value_counts().to_dict() for name, table in GOOD.items()
    }
    assert good["fashion"] == {"complexity": 8, "margins": 1, "augmentation": 1, "sharpness": 1, "control": 1}
    assert good["cifar10"] == {"augmentation": 5, "perturbation response": 1, "sharpness": 1, "control": 1}
    assert good["adversarial"] == {
        "augmentation": 6, "margins": 3, "sharpness": 2, "invariance": 1, "perturbation response": 1, "control": 1,
    }  # fmt: skip
    assert not set.intersection(*(set(table.index) - {TOGETHER} for table in GOOD.values()))
    assert set(of_family("fashion", "complexity")["direction"]) == {"against expectation"}
    for family in ("perturbation response", "sharpness"):
        for name in CORPORA:
            for measure in of_family(name, family).index:
                assert THREE[name].loc[measure, "p_max"] > 0.05 and SEEDS[name].loc[measure, "p_max"] > 0.05
                assert RANKING[name].loc[measure, "partial_p_max"] > 0.05
    best = of_family("fashion", "perturbation response", RANKING["fashion"])["p_max"].min()
    assert f"none on `fashion` (p of the best {best:.2f})" in PAGE
    assert {p_of(name, "DBI · (1 − mixup)") for name in CORPORA} == {"1.00"}
    human = RANKING["adversarial"].loc["human-model similarity"]
    assert f"(τ −{-human['tau']:.2f}), which is not beyond the best of all by chance (p {human['p_max']:.2f})" in PAGE


def test_what_is_said_of_augmentation_follows_from_the_tables():
    best = TABLES["families"].query("family == 'augmentation'").set_index("corpus")["measure"]
    assert best.to_dict() == {"fashion": "augmentation crop drop", "cifar10": PENALTY, "adversarial": PENALTY}
    for name in CORPORA:
        families = TABLES["families"][TABLES["families"]["corpus"] == name].set_index("family")
        measures = families.drop(index="control")
        assert measures["cmi_distinct"].idxmax() == "augmentation"
    assert f"the penalty is not beyond chance (p {p_of('fashion', PENALTY)})" in PAGE
    for name, before in (("cifar10", "above "), ("fashion", ""), ("adversarial", "")):
        compared = TABLES[f"{name}_comparisons"]
        assert set(compared["measure"]) == {best[name]}
        clear = compared[(compared["p_max"] <= 0.05) & (compared["difference"] > 0)]
        assert f"{before}{len(clear)} of {len(compared)}" in PAGE
    unclear = TABLES["cifar10_comparisons"].query("p_max > 0.05 or difference < 0")["other"]
    assert sorted(unclear.map(FAMILY["cifar10"]).fillna("control")) == ["augmentation"] * 3 + ["control"]
    for name, count, above in (("cifar10", 4, False), ("adversarial", 3, True)):
        held = of_family(name, "augmentation", THREE[name][THREE[name]["p_max"] <= 0.05])
        control = THREE[name].loc[TOGETHER, "value"]
        assert len(held) == count and ((held["value"] > control) == above).all()
        assert f"({100 * control:.1f})" in PAGE
    of = RANKING["adversarial"].loc[PENALTY]
    ends = f"{of['partial_rho']:.2f}, {of['partial_rho_low']:.2f} to {of['partial_rho_high']:.2f}"
    seeds = SEEDS["adversarial"].loc[PENALTY]
    told = f"(τ {seeds['tau']:.2f} over {seeds['pairs']:.0f} pairs, p {seeds['p_max']:.4f})"
    assert f"equal controls ({ends}) and tells seeds apart {told}" in PAGE and of["partial_p_max"] <= 0.05
    of = RANKING["cifar10"].loc[PENALTY]
    ends = f"{of['partial_rho']:.2f}, {number(of['partial_rho_low'], 2)} to {of['partial_rho_high']:.2f}"
    assert f"({ends}) is beyond the largest by chance (p {of['partial_p_max']:.3f})" in PAGE
    table = NETWORKS["cifar10"]
    falls, gaps = 100 * table["augmentation flip drop"].mean(), 100 * table["gap"].mean()
    assert f"almost the gap ({falls:.1f} and {gaps:.1f} %)" in PAGE
    for name, words in (("sobel", "(sobel, "), ("flip", "mirroring (")):
        score = 100 * RANKING["adversarial"].loc[f"augmentation {name} drop", "cmi_distinct"]
        assert f"{words}{score:.1f})" in PAGE


def test_what_is_said_of_sharpness_margins_and_seeds_follows_from_the_tables():
    sharp = {name: of_family(name, "sharpness") for name in CORPORA}
    assert all(set(table["direction"]) == {"as expected"} for table in sharp.values())
    p = {name: [f"{p:.3f}" for p in table["p_max"]] for name, table in sharp.items()}
    assert f"on `fashion` (p {p['fashion'][0]}) and on `cifar10` ({p['cifar10'][0]})" in PAGE
    assert "two on `adversarial` ({} and {})".format(*p["adversarial"]) in PAGE
    margins = {name: of_family(name, "margins") for name in CORPORA}
    assert [len(margins[name]) for name in CORPORA] == [1, 0, 3]
    assert all(set(table["direction"]) <= {"as expected"} for table in margins.values())
    assert f"one of 16 on `fashion` (p {margins['fashion']['p_max'].iloc[0]:.3f}) and three on `adversarial`" in PAGE
    assert margins["adversarial"]["p_max"].max() < 0.00105
    for name in CORPORA:
        assert (of_family(name, "margins", THREE[name])["p_max"] > 0.05).all()
    of, seeds = RANKING["fashion"].loc[QUARTILE], SEEDS["fashion"].loc[QUARTILE]
    assert f"not among them (p {of['p_max']:.2f})" in PAGE and of["p_max"] > 0.05 >= of["partial_p_max"]
    ends = ", ".join(
        [number(of["partial_rho"], 2), f"{number(of['partial_rho_low'], 2)} to {number(of['partial_rho_high'], 2)}"]
    )
    told = f"(τ {number(seeds['tau'], 2)} over {seeds['pairs']:.0f} pairs, p {seeds['p_max']:.3f})"
    assert (
        f"equal controls ({ends}) and among seeds {told}" in PAGE and f"rises* with the gap (τ {of['tau']:.2f})" in PAGE
    )
    assert f"tells seeds apart (p of the best {SEEDS['cifar10']['p_max'].min():.2f})" in PAGE


def test_what_is_said_of_invariance_follows_from_the_tables():
    assert of_family("adversarial", "invariance").index.tolist() == [PHASE]
    of, held = RANKING["adversarial"].loc[PHASE], THREE["adversarial"].loc[PHASE]
    assert of["direction"] == "none declared" and of["p_max"] < 0.00105
    assert f"({100 * of['cmi_distinct']:.1f}, p ≤ 0.001; τ {number(of['tau'], 2)})" in PAGE
    assert f"({100 * held['value']:.1f}, p {held['p_max']:.3f})" in PAGE
    assert f"({number(of['partial_rho'], 2)}, p {of['partial_p_max']:.2f})" in PAGE


def test_taus_among_seeds_follow_from_the_networks():
    for name in CORPORA:
        seeds = TABLES[f"{name}_among_seeds"]
        seeds = seeds[seeds["measure"].isin(NETWORKS[name])].sort_values("p_max").head(3)
        for row in seeds.itertuples():
            signs = []
            for _, cell in NETWORKS[name].groupby(HYPER[name]):
                for (m, g), (n, h) in combinations(zip(cell[row.measure], cell["gap"], strict=True), 2):
                    signs.append(((m > n) - (m < n), (g > h) - (g < h)))
            both, of_measure, of_gap = (sum(x * y for x, y in pairs) for pairs in (
                signs, [(m, m) for m, _ in signs], [(g, g) for _, g in signs]))  # fmt: skip
            assert len(signs) == row.pairs and both / (of_measure * of_gap) ** 0.5 == pytest.approx(row.tau, abs=1e-8)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("table_of_families", FOLDER / "reproduce.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_script_makes_what_the_tables_have_where_three_are_held_and_among_seeds(script):
    """Scores do not depend on the number of permutations; the small run has too few networks for either table."""
    for name, made, stem, score in (
        ("adversarial", script.three_held, "adversarial_three_held", "value"),
        ("cifar10", script.among_seeds, "cifar10_among_seeds", "tau"),
    ):
        table = NETWORKS[name].reset_index(drop=True)
        found = made(table, script.predictors_of(table), HYPER[name], 19).set_index("measure")[score]
        expected = TABLES[stem].set_index("measure")[score]
        # The tables have nine digits.
        pd.testing.assert_series_equal(found, expected.reindex(found.index), atol=1e-8, rtol=0)


def test_predictors_are_made_of_all_networks_and_bounds_of_what_each_learned_from(script):
    table = NETWORKS["fashion"].reset_index(drop=True)
    numbers = script.predictors_of(table)
    assert set(numbers) == set(FAMILY["fashion"].index)
    pca = numbers["PCA of gi intra ℓ=0 and mixup"]
    gi, mixup = ((table[c] - table[c].mean()) / table[c].std(ddof=0) for c in ("gi intra ℓ=0", "mixup"))
    first = np.linalg.svd(np.stack([gi, mixup], axis=1))[2][0]
    assert abs(np.corrcoef(pca, first[0] * gi + first[1] * mixup)[0, 1]) == pytest.approx(1)  # one line for all seeds
    size = table["train_size"].to_numpy()
    mu = table["pac-bayes orig"].to_numpy() - np.log(60_000) + np.log(size)
    assert numbers["pac-bayes orig"].to_numpy() == pytest.approx(np.sqrt(mu / (size - 1)))
    flatness = np.sqrt(table["pac-bayes flatness"].to_numpy() / (size - 1))
    assert numbers["pac-bayes flatness"].to_numpy() == pytest.approx(flatness)
