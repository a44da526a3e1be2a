"""The reproductions run, small, from the command their pages give; what they committed is what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1] / "reproductions"
INVARIANCES = ROOT / "measuring-invariances-2009"


def test_measuring_invariances_runs_small(tmp_path):
    command = [sys.executable, str(INVARIANCES / "reproduce.py"), "--small", "--device", "cpu", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for kind in ("tables", "figures"):
        made = {p.name for p in (tmp_path / kind).iterdir()}
        assert made == {p.name for p in (INVARIANCES / kind).iterdir()}
    for path in (tmp_path / "tables").glob("*.csv"):
        columns = set(pd.read_csv(path).columns)
        committed = set(pd.read_csv(INVARIANCES / "tables" / path.name).columns)
        assert columns == committed - {"rotation_3d"}, path.name  # photographed objects need their data


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
    cdbn = table["c_cdbn"].groupby("transformation")[["layer_1", "layer_2"]].mean()
    claims = [
        f"scores {best:.1f}", f"score and Gabor fit is {rank:.2f}", f"{len(sparse)} sparse and {len(plain)} plain",
        f"high-frequency weights score {plain[plain['weight_decay'] == 0]['mean'].mean():.1f}",
        *(f"**{score:.1f}**" for score in depth),
        *(f"| {cdbn.loc[t, 'layer_1']:.1f} | {cdbn.loc[t, 'layer_2']:.1f} |" for t in cdbn.index),
        f"{table['a_best_network_gabor_fits']['r2'].median():.2f}",
        f"median r² {table['c_cdbn_gabor_fits']['r2'].median():.2f}",
        f"over {table['d_agreement']['networks'].iloc[0]} networks",
    ]  # fmt: skip
    flat = " ".join(page.split())
    for claim in claims:
        assert claim in flat, claim
    gains = table["c_cdbn"].set_index(["transformation", "seed"])["gain_percent"]
    for better in ("phase", "translation", "rotation_3d_rendered"):
        assert (gains[better] > 0).all()
    assert (gains["orientation"] < 0).all()
