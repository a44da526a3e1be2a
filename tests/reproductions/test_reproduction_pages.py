"""The pages of the reproductions say what the tables beside them say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"


def test_the_page_says_what_the_tables_say():
    """Every figure of the text that a reader would quote, from the committed tables."""
    page = (INVARIANCES / "README.md").read_text()
    table = {p.stem: pd.read_csv(p) for p in (INVARIANCES / "tables").glob("*.csv")}
    grid = table["a_sparsity_map"]
    sparse, plain = grid[grid["target"].notna()], grid[grid["target"].isna()]
    best = sparse[(sparse["weight_decay"] == 0.1) & (sparse["target"] == -0.8)]["mean"].mean()
    assert sparse.groupby(["weight_decay", "target"])["mean"].mean().idxmax() == (0.1, -0.8)
    rank = grid[["mean", "gabor_r2"]].dropna().corr("spearman").iloc[0, 1]
    depth = table["b_depth"][table["b_depth"]["test"] == "mean"]["score"].tolist()
    every = table["c_cdbn"]
    every["apart"] = (every["layer_2_low"] > every["layer_1_high"]) | (every["layer_1_low"] > every["layer_2_high"])
    cdbn = every[(every["epochs"] == 60) & (every["near_max"] == 0.1)]
    mean = cdbn.groupby("transformation")[["layer_1", "layer_2"]].mean()
    gain = 100 * (mean["layer_2"] / mean["layer_1"] - 1)
    apart = cdbn.groupby("transformation")["apart"].sum()

    def moved(transformation: str, epochs: int, near_max: float) -> str:
        of = every[(every["transformation"] == transformation) & (every["epochs"] == epochs)]
        one, two = of[of["near_max"] == near_max][["layer_1", "layer_2"]].mean()
        return f"{one:.1f} → {two:.1f}"

    fits, waves = {}, {}
    for name in ("a_best_network_gabor_fits", "c_cdbn_gabor_fits"):
        good = table[name]["r2"] > 0.8
        fits[name], waves[name] = good.sum(), (good & (table[name]["frequency"] * table[name]["sx"] > 0.15)).sum()
    copies = table["b_weight_decay_grid"]
    lost = copies[copies["mean"].isna()].groupby("layer").size()
    agree = table["d_agreement"].set_index(["test", "other"])["spearman"]
    against = agree[[k for k in agree.index if set(k) & {"phase", "frequency"} and not set(k) <= {"phase", "frequency"}
                     and "rotation_3d" not in k and "orientation" not in k]]  # fmt: skip
    tests = ["frequency", "orientation", "phase", "translation", "rotation_2d", "rotation_3d", "rotation_3d_rendered"]
    row = {
        "best": sparse[(sparse["weight_decay"] == 0.1) & (sparse["target"] == -0.8)],
        "unregularised": plain[plain["weight_decay"] == 0],
    }
    claims = [
        f"scores {best:.1f}", f"score and Gabor fit is {rank:.2f}", f"{len(sparse)} sparse and {len(plain)} plain",
        f"high-frequency weights score {plain[plain['weight_decay'] == 0]['mean'].mean():.1f}",
        *(f"**{score:.1f}**" for score in depth),
        *(f"| {mean.loc[t, 'layer_1']:.1f} | {mean.loc[t, 'layer_2']:.1f} | " for t in mean.index),
        *(f"{gain[t]:+.0f} %".replace("-", "−") for t in mean.index),
        *(f"in {apart[t]} of 3" for t in ("phase", "translation", "rotation_3d_rendered", "orientation")),
        f"orientation {moved('orientation', 240, 0.1)}", f"COIL-20 ({moved('rotation_3d', 240, 0.1)})",
        f"orientation {moved('orientation', 60, 1)}",
        f"{fits['a_best_network_gabor_fits']} filters have r² above 0.8, {waves['a_best_network_gabor_fits']} of them",
        f"{fits['c_cdbn_gabor_fits']} of 24 above 0.8, {waves['c_cdbn_gabor_fits']} of them",
        f"{table['a_best_network_gabor_fits']['r2'].median():.2f}",
        f"median r² {table['c_cdbn_gabor_fits']['r2'].median():.2f}",
        f"{lost['stack.1']} second and {lost['stack.2']} third layers have no score",
        f"over {table['d_agreement']['networks'].iloc[0]} networks",
        f"translation ({agree['orientation', 'translation']:.2f}), 2-D rotation "
        f"({agree['orientation', 'rotation_2d']:.2f}) and rendered 3-D rotation "
        f"({agree['orientation', 'rotation_3d_rendered']:.2f})",
        f"({against.max():.2f} to {against.min():.2f})".replace("-", "−"),
        *(f"| {name} | " + " | ".join(f"{of[t].mean():.1f}" for t in tests) + f" | **{of['mean'].mean():.1f}** |"
          for name, of in row.items()),
    ]  # fmt: skip
    flat = " ".join(page.split())
    for claim in claims:
        assert claim in flat, claim
    gains = cdbn.set_index(["transformation", "seed"])["gain_percent"]
    for better in ("phase", "translation", "rotation_3d_rendered"):
        assert (gains[better] > 0).all()
    assert (gains["orientation"] < 0).all()
    assert not apart[["frequency", "rotation_2d", "rotation_3d"]].any()


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
