"""The pages of the reproductions say what the tables beside them say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"
TESTS = ["frequency", "orientation", "phase", "translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered"]


def test_the_page_says_what_the_tables_say():
    """Every figure of the text that a reader would quote, from the committed tables."""
    page = (INVARIANCES / "README.md").read_text()
    table = {p.stem: pd.read_csv(p) for p in (INVARIANCES / "tables").glob("*.csv")}
    grid = table["a_sparsity_map"]
    sparse, plain = grid[grid["target"].notna()], grid[grid["target"].isna()]
    cells = sparse.groupby(["weight_decay", "target"])[["mean", "mean_all", "gabor_r2", "alikeness"]].mean()
    assert cells["mean"].idxmax() == (0.3, -0.7) and cells["mean_all"].idxmax() == (1.0, -0.7)
    assert (cells.nlargest(8, "mean_all")["alikeness"] > 0.985).all()
    unregularised = plain[plain["weight_decay"] == 0]
    assert cells["mean"].min() < unregularised["mean"].mean() < cells["mean"].nsmallest(20).max()
    alike = grid[(grid["weight_decay"] == 0.3) & (grid["target"] == -0.97)]
    rank, rank_all = (grid[[c, "gabor_r2"]].dropna().corr("spearman").iloc[0, 1] for c in ("mean", "mean_all"))
    depth = table["b_depth"].set_index(["test", "depth"])["score"]
    lost = table["b_weight_decay_grid"]
    lost = lost[lost["mean"].isna()].groupby("layer").size()
    pairs = table["c_cdbn"]
    pairs["clear"] = (pairs["low"] > 0) | (pairs["high"] < 0)
    usual = pairs[(pairs["epochs"] == 60) & (pairs["near_max"] == 0.1)]
    of_all, of_best = (usual[usual["of"] == of] for of in ("all units", "best units"))
    mean = of_all.groupby("transformation")[["other_score", "score", "difference"]].mean()
    clear = of_all.groupby("transformation")["clear"].sum()
    agree = {p: rows.set_index(["test", "other"])["spearman"] for p, rows in table["d_agreement"].groupby("p")}
    video = ["rotation_2d", "rotation_3d", "rotation_3d_rendered", "translation"]
    fits = table["c_cdbn_gabor_fits"]["r2"]

    def moved(transformation: str, epochs: int, near_max: float) -> str:
        of = pairs[(pairs["transformation"] == transformation) & (pairs["of"] == "all units")]
        of = of[(of["epochs"] == epochs) & (of["near_max"] == near_max)]
        return f"{of['other_score'].mean():.1f} → {of['score'].mean():.1f}"

    def of_cell(name: str, of: pd.DataFrame) -> str:
        return f"| {name} | " + " | ".join(f"{of[t].mean():.1f}" for t in TESTS) + f" | **{of['mean'].mean():.1f}** |"

    claims = [
        f"{len(sparse)} sparse and {len(plain)} plain",
        f"the {len(grid)} networks is {rank:.2f} (at p = 1: {rank_all:.2f})",
        f"| **{cells.loc[(0.3, -0.7), 'mean']:.1f}** | {cells.loc[(0.3, -0.7), 'mean_all']:.1f} | 0.97 |",
        f"| {cells.loc[(0.1, -0.8), 'mean']:.1f} | {cells.loc[(0.1, -0.8), 'mean_all']:.1f} | 0.87 |",
        f"| {cells.loc[(1.0, -0.7), 'mean']:.1f} | **{cells.loc[(1.0, -0.7), 'mean_all']:.1f}** | 0.77 |",
        f"| {unregularised['mean'].mean():.1f} | {unregularised['mean_all'].mean():.1f} | 0.14 |",
        f"| {alike['mean'].mean():.1f} | {alike['mean_all'].mean():.1f} | {alike['gabor_r2'].mean():.2f} |",
        f"({table['d_agreement']['networks'].max()} at p = 1",
        f"median r² of {table['a_best_network_gabor_fits']['r2'].median():.2f}",
        of_cell("best cell", sparse[(sparse["weight_decay"] == 0.3) & (sparse["target"] == -0.7)]),
        of_cell("unregularised", unregularised), of_cell("most alike", alike),
        *(f"**{depth['mean', d]:.1f}**" for d in (1, 2, 3)),
        "{:.1f}, {:.1f} and {:.1f}".format(*(depth["mean_all", d] for d in (1, 2, 3))),
        "at every depth ({:.1f}, {:.1f}, {:.1f})".format(*(depth["rotation_2d", d] for d in (1, 2, 3))),
        "phase falls and then rises a little ({:.1f}, {:.1f}, {:.1f})".format(*(depth["phase", d] for d in (1, 2, 3))),
        f"{lost['stack.1']} second and {lost['stack.2']} third layers have no score",
        *(f"| {mean.loc[t, 'other_score']:.1f} | {mean.loc[t, 'score']:.1f} | " for t in mean.index),
        *(f"{mean.loc[t, 'difference']:+.1f}".replace("-", "−") for t in mean.index),
        moved("orientation", 180, 0.1), moved("orientation", 60, 1),
        f"median r² {fits.median():.2f}, {(fits > 0.8).sum()} of 24 above 0.8",
        f"over {table['d_agreement']['networks'].min()} networks",
        f"translation ({agree[0.2]['orientation', 'translation']:.2f}), 2-D rotation "
        f"({agree[0.2]['orientation', 'rotation_2d']:.2f}), rendered "
        f"({agree[0.2]['orientation', 'rotation_3d_rendered']:.2f}) and photographed "
        f"({agree[0.2]['orientation', 'rotation_3d']:.2f})",
        "({:.2f} to {:.2f} at p = 0.2, {:.2f} to {:.2f} at p = 1)".format(
            *(of for p in (0.2, 1.0) for of in (agree[p]["phase"][video].max(), agree[p]["phase"][video].min()))
        ).replace("-", "−"),
        f"from translation ({agree[0.2]['rotation_2d', 'translation']:.2f} and "
        f"{agree[1.0]['rotation_2d', 'translation']:.2f})",
    ]  # fmt: skip
    flat = " ".join(page.split())
    for claim in claims:
        assert claim in flat, claim
    assert (clear[["phase", "translation", "rotation_3d_rendered", "orientation"]] == 3).all()
    assert not clear[["frequency", "rotation_2d", "rotation_3d"]].any()
    assert (of_all.set_index("transformation").loc["orientation", "high"] < 0).all()
    best = of_best.groupby("transformation")["clear"].sum()
    assert best[["translation", "rotation_3d_rendered", "orientation", "phase"]].tolist() == [2, 1, 2, 0]


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
