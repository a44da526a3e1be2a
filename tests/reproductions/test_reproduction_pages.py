"""The pages of the reproductions say what the tables beside them say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scipy import stats

ROOT = Path(__file__).parents[2] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"
GRATINGS = ["frequency", "orientation", "phase"]
VIDEO = ["translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered", "turned_by_hand", "footage"]
TESTS = [*GRATINGS, *VIDEO]
PAGE = " ".join((INVARIANCES / "README.md").read_text().split())
TABLE = {p.stem: pd.read_csv(p) for p in (INVARIANCES / "tables").glob("*.csv")}
MAP, OTHER_SIGNS = TABLE["a_sparsity_map"], TABLE["a_other_signs"]
EDGES, BROADER, COPIES, SMOOTHER = (0.1, -0.8), (0.3, -0.5), (0.3, -0.8), (1.0, -0.9)
CELL = ["weight_decay", "target"]


def sparse(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["target"].notna()]


def plain(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["target"].isna()]


def without(*left_out: str, p: str = "") -> pd.Series:
    """Means of the sparse networks over all tests but some."""
    return sparse(MAP)[[f"{test}{p}" for test in TESTS if test not in left_out]].mean(axis=1)


def clear_difference(values: pd.Series) -> float:
    """Means of cells that are so far apart differ by Tukey's range test over all cells, 95 %."""
    groups = values.groupby([sparse(MAP)[name] for name in CELL])
    count, seeds = groups.ngroups, sparse(MAP)["seed"].nunique()
    widest = stats.studentized_range.ppf(0.95, count, count * (seeds - 1))
    return float(widest * (groups.var().mean() / seeds) ** 0.5)


def of_cells(values: pd.Series) -> pd.Series:
    return values.groupby([sparse(MAP)[name] for name in CELL]).mean()


CELLS = sparse(MAP).drop(columns="seed").groupby(CELL).mean()
DEGENERATE = CELLS.index[CELLS["alikeness"] > 0.9]


def said(claims: list[str]) -> None:
    for claim in claims:
        assert claim.replace("-", "−") in PAGE.replace("-", "−"), claim


def test_the_sparsity_map_is_as_the_page_says():
    apart, apart_all = (clear_difference(sparse(MAP)[c]) for c in ("mean", "mean_all"))
    unregularised = plain(MAP)[plain(MAP)["weight_decay"] == 0]
    highest, lowest = (CELLS.loc[CELLS["mean"].sort_values().index[part]] for part in (slice(-4, None), slice(8)))
    assert highest.index[-1] == EDGES and BROADER in highest.index
    assert highest["mean"].iloc[-1] - highest["mean"].iloc[0] < apart
    assert highest["mean"].min() > CELLS.loc[DEGENERATE, "mean"].max() + apart
    of_all = CELLS["mean_all"].nlargest(2)
    assert of_all.index[0] == COPIES and of_all.iloc[0] - of_all.iloc[1] > apart_all
    rank, rank_all = (MAP[[c, "gabor_r2"]].corr("spearman").iloc[0, 1] for c in ("mean", "mean_all"))

    def row(cell: tuple[float, float]) -> str:
        mean, all_units, r2, alike = CELLS.loc[cell, ["mean", "mean_all", "gabor_r2", "alikeness"]]
        bold = ["**" if cell == of else "" for of in (EDGES, COPIES)]
        both = f"| {bold[0]}{mean:.1f}{bold[0]} | {bold[1]}{all_units:.1f}{bold[1]} "
        return f"(λ = {cell[0]:g}, ρ = {cell[1]:g}) {both}| {r2:.2f} | {alike:.2f} |"

    def by_test(name: str, of: pd.DataFrame) -> str:
        return f"| {name} | " + " | ".join(f"{of[t].mean():.1f}" for t in TESTS) + f" | **{of['mean'].mean():.1f}** |"

    def networks(cell: tuple[float, float]) -> pd.DataFrame:
        return sparse(MAP)[(sparse(MAP)["weight_decay"] == cell[0]) & (sparse(MAP)["target"] == cell[1])]

    means = unregularised[["mean", "mean_all", "gabor_r2", "alikeness"]].mean()
    said([
        f"{len(sparse(MAP))} sparse and {len(plain(MAP))} plain",
        f"that are {apart:.1f} apart at p = 0.2, or {apart_all:.1f} at p = 1, differ clearly",
        *map(row, (EDGES, BROADER, COPIES, SMOOTHER)),
        "| {:.1f} | {:.1f} | {:.2f} | {:.2f} |".format(*means),
        f"(r² {highest['gabor_r2'].min():.2f} to {highest['gabor_r2'].max():.2f}, alikeness "
        f"{highest['alikeness'].min():.2f} to {highest['alikeness'].max():.2f})",
        f"median r² of {TABLE['a_best_network_gabor_fits']['r2'].median():.2f}",
        f"over all {len(MAP)} networks is only {rank:.2f}, though; at p = 1 it is {rank_all:.2f}.",
        f"(alikeness {lowest['alikeness'].min():.2f} to {lowest['alikeness'].max():.2f})",
        by_test("edge detectors", networks(EDGES)), by_test("unregularised", unregularised),
        by_test("copies", networks(COPIES)),
    ])  # fmt: skip


def test_what_the_cup_does_to_the_best_at_p_1_is_as_the_page_says():
    by_hand = CELLS["turned_by_hand_all"]
    no_cup, neither = (without(*left_out, p="_all") for left_out in (VIDEO[4:5], VIDEO[4:]))
    three, seven = of_cells(no_cup).nlargest(3), of_cells(neither).nlargest(3)
    clear, clear_of_seven = clear_difference(no_cup), clear_difference(neither)
    broader = of_cells(no_cup)[BROADER]
    assert set(three.index) <= set(DEGENERATE) and COPIES not in three.index and three.iloc[0] - broader < clear
    assert seven.index[0] == BROADER and seven.iloc[0] - seven.iloc[2] < clear_of_seven
    said([
        f"({by_hand[COPIES]:.1f} in that cell, {by_hand[BROADER]:.1f} in broader edge detectors)",
        f"({three.iloc[0]:.1f} to {three.iloc[2]:.1f}; broader edge detectors {broader:.1f}, less than the {clear:.1f}",
        f"lead ({seven.iloc[0]:.1f}), with two cells whose units are much alike "
        "({:.2f} and {:.2f})".format(*CELLS.loc[seven.index[1:], "alikeness"]),
        f"less than {clear_of_seven:.1f} below",
    ])  # fmt: skip


def test_what_choosing_signs_does_is_as_the_page_says():
    assert MAP[[*CELL, "seed"]].equals(OTHER_SIGNS[[*CELL, "seed"]])
    chosen, fixed = (plain(table).groupby("weight_decay")["mean"].mean() for table in (MAP, OTHER_SIGNS))
    all_choose = sparse(OTHER_SIGNS).groupby(CELL)["mean"].mean()
    degenerate = CELLS.loc[DEGENERATE, "mean"]
    assert (all_choose >= CELLS["mean"]).all() and (chosen >= fixed).all()  # a choice never lowers a score
    assert all_choose.idxmax() == EDGES and all_choose.max() > chosen.max()
    assert fixed[0.0] < degenerate.max() < chosen[0.0]
    said([
        f"(λ = 0.3) have {chosen[0.3]:.1f}, more than any sparse cell, but {fixed[0.3]:.1f} when",
        f"the best sparse cell has {all_choose.max():.1f}",
        f"Unregularised networks have {chosen[0.0]:.1f} when they choose, and {fixed[0.0]:.1f} when",
        f"the {len(DEGENERATE)} degenerate cells (alikeness above 0.9) have {degenerate.min():.1f} to "
        f"{degenerate.max():.1f}",
    ])  # fmt: skip


def test_depth_is_as_the_page_says():
    depth = TABLE["b_depth"].set_index(["chosen_by", "test", "depth"])
    grid = TABLE["b_weight_decay_grid"]
    lost = grid[grid["mean"].isna()].groupby("layer").size()
    decay = plain(MAP).groupby("weight_decay")[["mean", "mean_all"]].mean()
    first = grid[grid["layer"] == "stack.0"]

    def three(test: str, by: str = "mean") -> str:
        return ", ".join(f"{depth.loc[(by, test, d), 'score']:.1f}" for d in (1, 2, 3))

    def row(name: str, by: str) -> str:
        cells = ("{:.1f} ({:.1f}–{:.1f})".format(*depth.loc[(by, by, d), ["score", "low", "high"]]) for d in (1, 2, 3))
        return f"| {name} | " + " | ".join(cells) + " |"

    def alike(by: str) -> str:
        return " | ".join(f"{depth.loc[(by, 'alikeness of responses', d), 'score']:.2f}" for d in (1, 2, 3))

    said([
        row("p = 0.2", "mean"), row("p = 1", "mean_all"), alike("mean"), alike("mean_all"),
        f"not at every step ({three('mean')})", f"gains more ({three('mean_all', 'mean_all')})",
        f"at every depth ({three('rotation_2d')})",
        f"gains translation ({three('translation')}) and loses footage ({three('footage')})",
        f"fall and rise ({three('rotation_3d')}), rendered ones stay and rise ({three('rotation_3d_rendered')})",
        f"({decay['mean'].min():.0f} to {decay['mean'].max():.0f} in one plain layer)",
        f"from weight decay ({decay['mean_all'].min():.0f} to {decay['mean_all'].max():.0f})",
        f"{lost['stack.1']} second and {lost['stack.2']} third layers have no score",
        f"as the score does ({first[['mean', 'alikeness of responses']].corr('spearman').iloc[0, 1]:.2f})",
    ])  # fmt: skip


def test_agreement_of_the_tests_is_as_the_page_says():
    agreement = TABLE["d_agreement"].set_index(["p", "networks of", "test", "other"])
    centre = TABLE["d_rotation_centre"]["spearman"]

    def rho(test: str, other: str, p: float = 0.2, family: str = "all") -> str:
        return f"{agreement.loc[(p, family, test, other), 'spearman']:.2f}"

    def with_interval(test: str, other: str, family: str = "all") -> str:
        row = agreement.loc[(0.2, family, test, other)]
        return f"{row['spearman']:.2f}, {row['low']:.2f} to {row['high']:.2f}"

    def interval_behind(test: str, other: str, family: str = "all") -> str:
        row = agreement.loc[(0.2, family, test, other)]
        return f"{row['spearman']:.2f} ({row['low']:.2f} to {row['high']:.2f})"

    everyone = agreement.xs("all", level="networks of")
    assert set(everyone["networks"]) == {485} and set(everyone["clusters"]) == {70}
    few = agreement[agreement.index.get_level_values("networks of").str.endswith("layers")]
    assert set(few["clusters"]) == {7} and few["low"].isna().all()
    means = ("mean of gratings", "mean of video")
    turns, moves = "rotation_2d", "translation"
    said([
        f"with 2-D rotation ({rho('orientation', turns)}), translation ({rho('orientation', moves)}) "
        f"and rendered objects ({rho('orientation', 'rotation_3d_rendered')})",
        f"photographed ones ({with_interval('orientation', 'rotation_3d')})",
        f"agree with each other ({rho('frequency', 'phase')})",
        f"phase has {interval_behind('phase', moves)} and frequency {interval_behind('frequency', moves)}.",
        f"agrees with translation ({rho(moves, 'turned_by_hand')}) and rendered objects "
        f"({rho('rotation_3d_rendered', 'turned_by_hand')}), with photographed ones not clearly "
        f"({with_interval('rotation_3d', 'turned_by_hand')})",
        f"agree with footage ({rho('footage', 'rotation_3d')}), with translation not at all "
        f"({with_interval('rotation_3d', moves)})",
        f"against translation ({rho('footage', moves)}), 2-D rotation ({rho('footage', turns)}) and orientation "
        f"({rho('footage', 'orientation')}), at p = 1 too ({rho('footage', moves, 1.0)}, {rho('footage', turns, 1.0)}, "
        f"{rho('footage', 'orientation', 1.0)})",
        f"runs against 2-D rotation ({rho('phase', turns)}) and orientation ({rho('orientation', 'phase')})",
        f"told from translation ({rho(turns, moves)}, at p = 1 {rho(turns, moves, 1.0)})",
        f"of the video tests ({with_interval(*means)}; at p = 1 {rho(*means, 1.0)})",
        f"sparse networks alone that is {interval_behind(*means, 'sparse')}, over the plain ones "
        f"{interval_behind(*means, 'plain')}",
        f"alike ({centre[0]:.2f},", f"({centre[1]:.2f} and {centre[2]:.2f})",
    ])  # fmt: skip
    assert everyone.loc[(0.2, "orientation", "phase"), "high"] < 0 and everyone.loc[(0.2, "phase", turns), "high"] < 0


BELIEF = TABLE["c_cdbn"][lambda table: table["transformation"] != "turned_by_hand"]
LONGER = BELIEF[(BELIEF["of"] == "all units") & (BELIEF["near_max"] == 0.1)]
SETTINGS = ("reconstruction", "contours")


def test_the_layers_of_the_convolutional_network_are_as_the_page_says():
    usual = LONGER[LONGER["epochs"] == 60]
    clear = usual.assign(clear=(usual["low"] > 0) | (usual["high"] < 0)).groupby(["setting", "transformation"])
    mean, count = clear[["other_score", "score", "difference"]].mean(), clear["clear"].sum()
    layers = TABLE["c_cdbn_layers"].query("transformation == 'turned_by_hand' and epochs == 60")
    cup = layers.groupby(["setting", "order"])["mean_score"].mean()

    def row(transformation: str) -> str:
        cells = []
        for key in ((setting, transformation) for setting in SETTINGS):
            below, above, difference = mean.loc[key]
            bold = "**" if count[key] > 1 else ""
            cells.append(f"{below:.1f} → {above:.1f} | {bold}{difference:+.1f}{bold} | {count[key]} of 3")
        return "| " + " | ".join(cells) + " |"

    def falls(epochs: int, near_max: float) -> str:
        rows = BELIEF.query(
            f"of == 'all units' and transformation == 'orientation' and epochs == {epochs} and near_max == {near_max}"
        )
        by_setting = -rows.groupby("setting")["difference"].mean()
        return " and ".join(f"{by_setting[setting]:.1f}" for setting in SETTINGS)

    gain = mean["difference"] / mean["other_score"]
    rendered, phase = (f"{gain[('reconstruction', t)] * 100:.0f}" for t in ("rotation_3d_rendered", "phase"))
    said([
        *map(row, set(TESTS) - {"turned_by_hand"}),
        "have {:.1f} and {:.1f} (best".format(*cup["reconstruction"]),
        "{:.1f} and {:.1f} (most contours)".format(*cup["contours"]),
        f"orientation falls by {falls(120, 0.1)}, and by {falls(60, 1)}.", f"as phase ({rendered} and {phase} %)",
    ])  # fmt: skip
    assert gain["contours", "phase"] > gain["contours", "rotation_3d_rendered"]
    of = LONGER.set_index("transformation")
    assert (of.loc["orientation", "high"] < 0).sum() == 7 and len(of.loc["orientation"]) == 8
    assert (BELIEF.query("of == 'all units' and transformation == 'phase'")["low"] > 0).all()
    assert not ((of.loc["translation", "low"] > 0) | (of.loc["translation", "high"] < 0)).any()
    best = BELIEF.query("of == 'best units' and near_max == 0.1 and epochs == 60").set_index(
        ["setting", "transformation"]
    )
    assert [(best.loc[(s, "phase"), "low"] > 0).sum() for s in SETTINGS] == [1, 3]
    assert [(best.loc[(s, "orientation"), "high"] < 0).sum() for s in SETTINGS] == [2, 2]
    assert [best.loc[(s, "orientation"), "high"].notna().sum() for s in SETTINGS] == [3, 2]


def test_the_sweep_of_the_convolutional_network_is_as_the_page_says():
    swept, kinds, fits = (TABLE[f"c_cdbn_{name}"] for name in ("sweep", "combinations", "gabor_fits"))
    alive = swept[swept["explained_1"] > 0.01]
    above = {test: (alive[f"{test}_2"] > alive[f"{test}_1"]).sum() for test in TESTS}
    assert not swept["diverged"].any() and above["phase"] == len(alive) and above["orientation"] == 0
    assert (swept["orientation_2"] < swept["orientation_1"]).all() and swept["oriented"].median() == 0
    eligible = swept[swept["sparse"]]
    for chosen, by in (("reconstruction", "criterion"), ("contours", "contours_combined")):
        assert swept[chosen].sum() == 1 and swept[swept[chosen]][by].iloc[0] == eligible[by].max()
    usual = kinds[kinds["epochs"] == 60].groupby("setting")
    maps, border = (usual[column].agg(["min", "max"]) for column in ("maps_combined", "on_border"))
    combining = kinds[kinds["epochs"] == 60]["combining"]
    assert border.loc["contours"].eq(0).all() and border.loc["reconstruction"].between(0.33, 0.55).all()
    said([
        f"{len(swept)} settings", f"{(swept['epochs'] == 12).sum()} of them for 12 epochs",
        f"and {(swept['epochs'] == 36).sum()},", f"in {len(swept) - len(alive)} the first layer is silent",
        f"among the {len(eligible)} settings", f"In all {len(alive)} settings",
        f"in translation it is above in {above['translation']}, in 3-D rotation of rendered objects in "
        f"{above['rotation_3d_rendered']} and of photographed ones in {above['rotation_3d']}, in 2-D rotation in "
        f"{above['rotation_2d']}",
        f"{combining.min() * 100:.0f} to {combining.max() * 100:.0f} % of its units",
        f"{maps.loc['contours', 'min']:.0f} to {maps.loc['contours', 'max']:.0f} maps",
        f"{maps.loc['reconstruction', 'min']:.0f} to {maps.loc['reconstruction', 'max']:.0f} at the other",
    ])  # fmt: skip
    alike = fits.query("setting == 'contours' and 0.86 < r2 < 0.88 and frequency < 0.02")
    assert f"{len(alike)} of the {len(fits) // 2} filters are copies" in PAGE


def test_the_page_on_reviews_says_what_its_tables_say():
    folder = ROOT / "broad-evaluation-2010"
    page = " ".join((folder / "README.md").read_text().split())
    done = 0
    for data, name in (("we8there", "we8there"), ("skytrax", "Skytrax")):
        grand = pd.read_csv(folder / data / "analysis" / "grand.csv").set_index(["task", "run"])["mean"]["text"]
        contrasts = pd.read_csv(folder / data / "analysis" / "contrasts.csv")
        both = contrasts[contrasts["task"] == "text"].set_index(["contrast", "team"])
        done += (pd.read_csv(folder / data / "analysis" / "status.csv")["status"] == "done").sum()
        for team in ("n", "s"):
            runs = ["1", *(f"{i}{team}" for i in range(2, 7))]
            assert f"| {name}, {team} | " + " | ".join(f"{grand[run]:.3f}" for run in runs) + " |" in page
            assert f"{both.loc[('6 v 3', team), 'difference']:+.3f} ({team})".replace("-", "−") in page
            deeper = both.loc[("6 v 5", team)]
            assert deeper["high"] < 0  # depth hurts, and the interval is away from 0
            assert 0.019 <= round(-deeper["difference"], 3) <= 0.137
    assert f"all {done} runs are done" in page
