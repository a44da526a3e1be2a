"""The script of the table of all families runs, small, from training to scores."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from assay.studies import load_corpus_plan

pytestmark = pytest.mark.reproduction
FOLDER = Path(__file__).parents[2] / "reproductions" / "what-predicts-generalization"


def test_the_plans_are_of_more_than_five_hundred_networks_from_three_seeds():
    plans = [load_corpus_plan(FOLDER / f"{name}.yaml") for name in ("fashion", "cifar10", "adversarial")]
    assert sum(len(plan.combinations()) for plan in plans) == 528
    assert all(plan.grid["seed"] == (0, 1, 2) and plan.fixed["stop_loss"] == 0.01 for plan in plans)


def test_the_figure_is_drawn_from_the_tables_alone(tmp_path):
    shutil.copytree(FOLDER / "tables", tmp_path / "tables")
    subprocess.run([sys.executable, "reproduce.py", "figures", "--out", str(tmp_path)], cwd=FOLDER, check=True)
    with Image.open(tmp_path / "figures" / "families.png") as new, Image.open(FOLDER / "figures/families.png") as old:
        assert new.size == old.size


def test_small_networks_are_trained_asked_and_scored(tmp_path, shared_data):
    command = [sys.executable, "reproduce.py", "--small", "--out", str(tmp_path), "--corpora", str(tmp_path / "runs")]
    command += ["--humans", str(shared_data / "kriegeskorte92"), "--seeds", "0", "--", "fashion", "tables"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert " × " not in done.stderr, done.stderr[-2000:]  # no measure failed
    tables = {path.stem: pd.read_csv(path) for path in (tmp_path / "tables").glob("*.csv")}
    about = tables["fashion_predictors"].set_index("measure")
    assert set(about["family"]) == {
        "complexity", "margins", "sharpness", "training speed", "perturbation response", "straightness", "invariance",
        "human similarity", "combination", "augmentation", "class separation",
    }  # fmt: skip
    assert about.loc["mixup", "budget"] == "60 inputs" and about.loc["gi intra ℓ=0", "direction"] == 1
    ranking = tables["fashion_ranking"]
    assert set(about.index) <= set(ranking["measure"]) and len(tables["fashion_0"]) == 4
    assert {"control: training accuracy", "control: width"} <= set(ranking["measure"])
