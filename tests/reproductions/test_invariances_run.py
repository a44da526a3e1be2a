"""The reproduction of Measuring invariances runs, small, from the command its page gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.reproduction
INVARIANCES = Path(__file__).parents[2] / "reproductions" / "measuring-invariances-2009"


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
        assert columns == committed - {"rotation_3d", "rotation_3d_all"}, (
            path.name
        )  # photographed objects need their data
