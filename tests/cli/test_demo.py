"""The demonstration, with little training and little time."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from assay.cli import demo
from assay.cli.main import app
from assay.runs.run import Run

pytestmark = pytest.mark.slow


def test_the_demonstration_ends_with_the_path_of_a_report_of_four_networks(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.run_demo, "__defaults__", (0, 10.0, 1))  # seed, seconds, epochs
    done = CliRunner().invoke(app, ["demo", "--run", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    page = tmp_path / "demo" / "report.html"
    assert done.output.strip().splitlines()[-1].endswith(str(page)) and page.exists()
    assert set(Run(str(tmp_path / "demo")).subjects) == {"standard", "augmented", "untrained twin", "retina and V1"}
