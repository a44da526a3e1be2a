"""The reproduction of perturbation response curves runs, small, from the command its page gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.reproduction
PERTURBATION = Path(__file__).parents[2] / "reproductions" / "perturbation-response-2021"


def test_perturbation_response_runs_small(tmp_path):
    """The two corpora go the same way: one is run, its tables stand in for the other's in the figures."""
    command = [sys.executable, str(PERTURBATION / "reproduce.py"), "--small", "--out", str(tmp_path)]
    for parts in (("fashion", "invariance"), ("tables", "figures")):
        done = subprocess.run([*command, "--corpora", str(tmp_path / "runs"), *parts], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        for path in (tmp_path / "tables").glob("fashion_*.csv"):
            shutil.copy(path, path.with_name(path.name.replace("fashion", "cifar10")))
    ranking = pd.read_csv(tmp_path / "tables" / "fashion_ranking.csv")
    assert {"gi intra ℓ=0", "mixup", "DBI · (1 − mixup)", "lowest curvature change"} <= set(ranking["measure"])
    assert ranking["cmi_distinct"].between(0, 1 + 1e-12).sum() > 30
    assert "control: weight_decay" in set(ranking["measure"][ranking["kind"] == "control"])
    assert (ranking["budget"].notna() == (ranking["kind"] == "measure")).all()
    assert len(pd.read_csv(tmp_path / "tables" / "fashion_networks.csv")) == 8
    three = pd.read_csv(tmp_path / "tables" / "invariance_ranking.csv").query("kind == 'measure'")
    assert set(three["measure"]) == {"gi", "gi folded", "mean accuracy", "random accuracy"}
    for figure in ("table_1", "table_3", "figure_2", "figure_3"):
        assert (tmp_path / "figures" / f"{figure}.png").stat().st_size > 10_000
    made = {p.name: set(pd.read_csv(p).columns) for p in (tmp_path / "tables").glob("*.csv")}
    committed = {p.name: set(pd.read_csv(p).columns) for p in (PERTURBATION / "tables").glob("*.csv")}
    assert committed.keys() - made.keys() == {f"{name}_combined.csv" for name in ("fashion", "cifar10")}  # too few
    new = set().union(*(columns - committed[name] for name, columns in made.items()))
    assert all(column.endswith("_status") for column in new), new  # what so few networks leave undefined, and why
