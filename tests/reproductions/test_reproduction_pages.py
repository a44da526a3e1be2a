"""The pages of the reproductions say what the tables beside them say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scipy import stats

ROOT = Path(__file__).parents[2] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"
TESTS = [
    "frequency",
    "orientation",
    "phase",
    "translation",
    "rotation_2d",
    "rotation_3d",
    "rotation_3d_rendered",
    "footage",
]


PAGE = " ".join((INVARIANCES / "README.md").read_text().split())
TABLE = {p.stem: pd.read_csv(p) for p in (INVARIANCES / "tables").glob("*.csv")}
GRID = TABLE["a_sparsity_map"]
SPARSE, PLAIN = GRID[GRID["target"].notna()], GRID[GRID["target"].isna()]
EDGES, BROADER, BEST_ALL, ALIKE = (0.1, -0.8), (0.3, -0.5), (1.0, -0.9), (0.3, -0.8)


def cells_of(table: pd.DataFrame) -> pd.DataFrame:
    """Means of every cell of the sparsity map, and of the seven tests beside footage."""
    table = table.assign(**{
        f"others{p}": table[[f"{test}{p}" for test in TESTS if test != "footage"]].mean(axis=1) for p in ("", "_all")
    })  # fmt: skip
    return table.drop(columns="seed").groupby(["weight_decay", "target"]).mean()


CELLS = cells_of(SPARSE)


def clear_difference(column: str) -> float:
    """Means of cells that are so far apart differ by Tukey's range test over all cells, 95 %."""
    groups = SPARSE.groupby(["weight_decay", "target"])[column]
    count, seeds = groups.ngroups, SPARSE["seed"].nunique()
    widest = stats.studentized_range.ppf(0.95, count, count * (seeds - 1))
    return float(widest * (groups.var().mean() / seeds) ** 0.5)


def said(claims: list[str]) -> None:
    for claim in claims:
        assert claim in PAGE, claim


def test_the_sparsity_map_is_as_the_page_says():
    apart, apart_all = clear_difference("mean"), clear_difference("mean_all")
    best, *others = CELLS["mean"].nlargest(3).index
    assert best == EDGES and CELLS["mean"].nlargest(2).diff().abs().iloc[1] > apart
    of_all = CELLS["mean_all"].nlargest(4)
    assert of_all.index[0] == BEST_ALL and of_all.iloc[0] - of_all.iloc[2] < apart_all < of_all.iloc[0] - of_all.iloc[3]
    assert CELLS.loc[of_all.index[:3], "alikeness"].min() > 0.99 and CELLS["alikeness"].idxmax() == ALIKE
    lowest = CELLS.nsmallest(5, "mean")["alikeness"]
    without = CELLS["others_all"].nlargest(5)
    assert without.index[0] == BROADER
    near = without.index[1:][without.iloc[0] - without.iloc[1:] < apart_all]
    assert (CELLS.loc[near, "alikeness"] > 0.8).sum() == 2
    unregularised = PLAIN[PLAIN["weight_decay"] == 0]
    sparse_unregularised = CELLS.loc[0.0, "mean"]
    assert CELLS["mean_all"].idxmin()[0] == 0
    rank, rank_all = (GRID[[c, "gabor_r2"]].corr("spearman").iloc[0, 1] for c in ("mean", "mean_all"))
    decayed = PLAIN[PLAIN["weight_decay"] == 0.3]
    assert decayed["mean_all"].mean() > CELLS["mean_all"].max()

    def row(cell: tuple[float, float]) -> str:
        mean, of_all, r2 = CELLS.loc[cell, ["mean", "mean_all", "gabor_r2"]]
        bold = ["**" if cell == of else "" for of in (EDGES, BEST_ALL)]
        return f"| {bold[0]}{mean:.1f}{bold[0]} | {bold[1]}{of_all:.1f}{bold[1]} | {r2:.2f} |"

    def of_cell(name: str, of: pd.DataFrame) -> str:
        return f"| {name} | " + " | ".join(f"{of[t].mean():.1f}" for t in TESTS) + f" | **{of['mean'].mean():.1f}** |"

    def networks(cell: tuple[float, float]) -> pd.DataFrame:
        return SPARSE[(SPARSE["weight_decay"] == cell[0]) & (SPARSE["target"] == cell[1])]

    means = unregularised[["mean", "mean_all", "gabor_r2"]].mean()
    said([
        f"{len(SPARSE)} sparse and {len(PLAIN)} plain",
        f"that are {apart:.1f} apart at p = 0.2, or {apart_all:.1f} at p = 1, differ clearly",
        *map(row, (EDGES, BROADER, BEST_ALL, ALIKE)),
        f"| {means['mean']:.1f} | {means['mean_all']:.1f} | {means['gabor_r2']:.2f} |",
        *(f"alikeness {CELLS.loc[cell, 'alikeness']:.2f})" for cell in (EDGES, BROADER, ALIKE)),
        "; {:.1f} and {:.1f}) have".format(*CELLS.loc[others, "mean"]),
        "have fits of {:.2f} and {:.2f}".format(*CELLS.loc[others, "gabor_r2"]),
        f"over all {len(GRID)} networks is only {rank:.2f}", f"At p = 1 it is {rank_all:.2f}.",
        f"(alikeness {lowest.min():.2f} to {lowest.max():.2f})",
        f"({sparse_unregularised.min():.1f} to {sparse_unregularised.max():.1f}) not all clearly",
        "among the lowest ({:.1f} to {:.1f})".format(*CELLS.loc[0.0, "mean_all"].agg(["min", "max"])),
        "({:.1f} in the best cell, {:.1f} in the edge".format(*CELLS.loc[[BEST_ALL, EDGES], "footage_all"]),
        f"({without.iloc[0]:.1f}), with two degenerate ones less than {apart_all:.1f} below",
        f"have {decayed['mean'].mean():.1f} and, at p = 1, {decayed['mean_all'].mean():.1f}, more than any sparse cell",
        f"median r² of {TABLE['a_best_network_gabor_fits']['r2'].median():.2f}",
        of_cell("best cell", networks(EDGES)), of_cell("unregularised", unregularised),
        of_cell("most alike", networks(ALIKE)),
        f"({unregularised['footage'].mean():.0f} against {CELLS.loc[EDGES, 'footage']:.0f})",
    ])  # fmt: skip


def test_depth_is_as_the_page_says():
    depth = TABLE["b_depth"].set_index(["test", "depth"])
    lost = TABLE["b_weight_decay_grid"]
    lost = lost[lost["mean"].isna()].groupby("layer").size()
    decay = PLAIN.groupby("weight_decay")[["mean", "mean_all"]].mean()

    def three(test: str) -> str:
        return ", ".join(f"{depth.loc[(test, d), 'score']:.1f}" for d in (1, 2, 3))

    said([
        *("**{:.1f}** ({:.1f}–{:.1f})".format(*depth.loc[("mean", d), ["score", "low", "high"]]) for d in (1, 2, 3)),
        "at p = 1 {:.1f}, {:.1f} and {:.1f}.".format(*(depth.loc[("mean_all", d), "score"] for d in (1, 2, 3))),
        *(f"({three(test)})" for test in TESTS[2:] if test != "rotation_2d"), f"({three('translation_all')})",
        f"at every depth ({three('rotation_2d')})",
        f"weight decay ({decay['mean'].min():.0f} to {decay['mean'].max():.0f} in one plain layer)",
        f"about as large ({decay['mean_all'].min():.0f} to {decay['mean_all'].max():.0f})",
        f"{lost['stack.1']} second and {lost['stack.2']} third layers have no score",
    ])  # fmt: skip
    assert set(TABLE["b_depth"].query("depth == 3")["weight_decay"]) == {"(0.3, 0.0, 1.0)"}


def test_agreement_of_the_tests_is_as_the_page_says():
    agree = {p: rows.set_index(["test", "other"]) for p, rows in TABLE["d_agreement"].groupby("p")}

    def rho(test: str, other: str, p: float = 0.2) -> str:
        return f"{agree[p].loc[(test, other), 'spearman']:.2f}".replace("-", "−")

    def with_interval(test: str, other: str) -> str:
        return "({}, {:.2f} to {:.2f})".format(
            rho(test, other), *agree[0.2].loc[(test, other), ["low", "high"]]
        ).replace("-", "−")

    low, high = (f"{agree[0.2].loc[('phase', 'translation'), end]:.2f}".replace("-", "−") for end in ("low", "high"))
    centre = TABLE["d_rotation_centre"]["spearman"]
    assert set(TABLE["d_agreement"]["networks"]) == {485}
    said([
        f"with 2-D rotation ({rho('orientation', 'rotation_2d')}), translation ({rho('orientation', 'translation')}) "
        f"and rendered objects ({rho('orientation', 'rotation_3d_rendered')})",
        f"photographed ones {with_interval('orientation', 'rotation_3d')}",
        f"agree with each other ({rho('frequency', 'phase')})",
        f"phase has {rho('phase', 'translation')} ({low} to {high}) and frequency {rho('frequency', 'translation')}.",
        f"agree with footage ({rho('footage', 'rotation_3d')}) and hardly with rendered ones "
        f"({rho('rotation_3d', 'rotation_3d_rendered')}), with translation not at all "
        f"{with_interval('rotation_3d', 'translation')}",
        f"against translation ({rho('footage', 'translation')}), 2-D rotation ({rho('footage', 'rotation_2d')}) and "
        f"orientation ({rho('footage', 'orientation')}), at p = 1 too ({rho('footage', 'translation', 1.0)}, "
        f"{rho('footage', 'rotation_2d', 1.0)}, {rho('footage', 'orientation', 1.0)})",
        f"for footage ({rho('footage', 'phase')}): it runs against 2-D rotation ({rho('phase', 'rotation_2d')})",
        f"from translation ({rho('rotation_2d', 'translation')}, at p = 1 {rho('rotation_2d', 'translation', 1.0)})",
        f"alike ({centre[0]:.2f},", f"({centre[1]:.2f} and {centre[2]:.2f})",
    ])  # fmt: skip
    pairs = agree[0.2]["spearman"]
    for test in TESTS[3:7]:
        phase, frequency = (pairs.get((of, test), pairs.get((test, of))) for of in ("phase", "frequency"))
        assert phase < frequency, test
    grid = pd.concat([GRID[TESTS], TABLE["b_weight_decay_grid"][TESTS]], ignore_index=True).dropna().drop_duplicates()
    means = pd.DataFrame({"gratings": grid[TESTS[:3]].mean(axis=1), "video": grid[TESTS[3:]].mean(axis=1)})
    assert len(grid) == 485 and f"of the video tests ({means.corr('spearman').iloc[0, 1]:.2f})" in PAGE


def test_the_convolutional_network_is_as_the_page_says():
    pairs = TABLE["c_cdbn"]
    pairs["clear"] = (pairs["low"] > 0) | (pairs["high"] < 0)
    usual = pairs[(pairs["epochs"] == 60) & (pairs["near_max"] == 0.1)]
    of_all, of_best = (usual[usual["of"] == of] for of in ("all units", "best units"))
    mean = of_all.groupby("transformation")[["other_score", "score", "difference"]].mean()
    clear = of_all.groupby("transformation")["clear"].sum()
    fits, layers, swept = (TABLE[name] for name in ("c_cdbn_gabor_fits", "c_cdbn_layers", "c_cdbn_sweep"))

    def moved(transformation: str, epochs: int, near_max: float) -> str:
        of = pairs[(pairs["transformation"] == transformation) & (pairs["of"] == "all units")]
        of = of[(of["epochs"] == epochs) & (of["near_max"] == near_max)]
        return f"{of['other_score'].mean():.1f} → {of['score'].mean():.1f}"

    video = layers[(layers["layer"] == "stack.0") & (layers["test"] == "video") & (layers["epochs"] == 60)]
    others = ["learning_rate", "sigma", "target_1", "target_2"]
    by_decay = swept.pivot(index=others, columns="decay_1", values="criterion")
    said([
        *(f"| {mean.loc[t, 'other_score']:.1f} | {mean.loc[t, 'score']:.1f} | " for t in mean.index),
        *(f"{mean.loc[t, 'difference']:+.1f}".replace("-", "−") for t in mean.index),
        moved("orientation", 120, 0.1), moved("orientation", 60, 1),
        f"median r² {fits['r2'].median():.2f}, {(fits['r2'] > 0.8).sum()} of 24 above 0.8",
        f"{(fits['frequency'] < 0.05).sum()} of the 24 are spots",
        f"of 24 units, {video['tied'].min()} to {video['tied'].max()} in the video tests",
        f"{len(swept)} settings", f"among the {swept['sparse'].sum()} settings",
        f"at most {by_decay.diff(axis=1).abs().max(axis=None):.3f} of the criterion",
    ])  # fmt: skip
    assert (clear[["phase", "translation", "rotation_3d_rendered", "rotation_3d"]] == 3).all()
    assert not clear[["frequency", "rotation_2d"]].any() and (clear[["footage", "orientation"]] == 2).all()
    gain = (mean["score"] / mean["other_score"]).nlargest(2)
    assert gain.index[0] == "rotation_3d_rendered" and mean["difference"].idxmax() == "rotation_3d_rendered"
    assert (of_all[of_all["transformation"] == "orientation"]["difference"] < 0).all()
    assert of_best.groupby("transformation")["clear"].sum().drop("orientation").sum() == 0
    known = of_best[of_best["low"].notna()].groupby("transformation").size()
    assert known.to_dict() == {"frequency": 3, "orientation": 1}
    longer = pairs[(pairs["transformation"] == "orientation") & (pairs["of"] == "all units")].drop(
        usual.index, errors="ignore"
    )
    assert not longer["clear"].any() and not swept["diverged"].any()
    chosen = swept[swept["chosen"]].iloc[0]
    assert chosen["criterion"] == swept[swept["sparse"]]["criterion"].max()
    assert chosen[["learning_rate", "sigma", "target_2"]].tolist() == [0.01, 0.07, 0.03]
    ends = swept[["learning_rate", "target_2"]].max().tolist(), swept["sigma"].min()
    assert ends == ([0.01, 0.03], 0.07)


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
