"""The reproduction of Measuring invariances runs, small, from the command its page gives."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.reproduction
# What photographs alone do not give: scores of autoencoders at both p, and of both layers of a convolutional network.
NEED_DATA = {
    f"{name}{end}" for name in ("rotation_3d", "turned_by_hand", "footage") for end in ("", "_all", "_1", "_2")
}
INVARIANCES = Path(__file__).parents[2] / "reproductions" / "measuring-invariances-2009"


def test_measuring_invariances_runs_small(tmp_path):
    command = [sys.executable, str(INVARIANCES / "reproduce.py"), "--small", "--device", "cpu", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for kind in ("tables", "figures"):
        assert {p.name for p in (tmp_path / kind).iterdir()} == {p.name for p in (INVARIANCES / kind).iterdir()}
    for path in (tmp_path / "tables").glob("*.csv"):
        committed = set(pd.read_csv(INVARIANCES / "tables" / path.name).columns)
        assert set(pd.read_csv(path).columns) == committed - NEED_DATA, path.name
    swept = pd.read_csv(tmp_path / "tables" / "c_cdbn_sweep.csv")
    assert len(swept) == 2 and swept["criterion"].is_monotonic_decreasing
    assert (swept[["reconstruction", "contours"]].sum() == 1).all()


def test_no_scene_is_both_learned_from_and_shown(shared_data, monkeypatch):
    monkeypatch.syspath_prepend(INVARIANCES)
    material = importlib.import_module("material")
    camera, filmed = material.camera_scenes(), {clip.name for clip in material.footage(shared_data, 12)}
    worn = {clip.scene for clip in material.rendered_objects(16, 2, 36)}
    shown = {*camera, *filmed, *worn}
    learned = set(material.still_pictures(shared_data))
    assert worn == set(material.WORN) and not set(camera) & worn
    assert not shown & learned and len(shown) == 26 and len(learned) == 12
    recorded = {folder.name for folder in (shared_data / "natural_sequences").iterdir() if folder.is_dir()}
    assert recorded <= shown | learned
    pictures, validation = material.learned_and_validation(shared_data)
    assert (len(pictures), len(validation)) == (20, 4) and all(p.shape[0] == 1 for p in pictures)
    (clip,) = [c for c in material.footage(shared_data, 12) if c.name == "bikes"]
    assert next(iter(clip.frames())).shape == (1, 272, 640) and clip.count() == 12  # as it was recorded
    sys.modules.pop("material")
