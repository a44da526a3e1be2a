"""`assay corpus` as a user runs it: train, study, report; looked at in a browser."""

from __future__ import annotations

import json

import pytest

from command_kit import assay
from conftest import write_digits
from page_kit import open_page

pytestmark = pytest.mark.slow

PLAN = """
network: conv
data: {path: digits.npz, train: 150}
corpus: networks
grid:
  depth: [1, 2]
  learning_rate: [0.01, 0.003]
  dropout: [0.0, 0.2]
  width: 4
training: {optimizer: adam, batch_size: 50, epochs: 3}
measures:
  - measure: perturbation
    perturbation: [intra, {mixup: inter, high: 0.4}]
    layer: [0, 1]
    magnitudes: 5
    bootstrap: 9
  - {measure: norms}
  - {measure: clusters, bootstrap: 9}
  - {measure: perturbation, name: turned, perturbation: rotation, magnitudes: 5, fold: true, bootstrap: 9}
scoring: {draws: 20}
run: study
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    write_digits(place / "digits.npz")
    (place / "plan.yaml").write_text(PLAN)
    return place / "plan.yaml"


@pytest.fixture(scope="module")
def studied(plan):
    trained = assay("corpus", "train", str(plan))
    assert trained.returncode == 0, trained.stderr
    assert "8 networks" in trained.stdout and trained.stdout.strip().endswith("networks")
    done = assay("corpus", "study", str(plan), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_train_and_study(studied, plan):
    ranking = {row["measure"]: row for row in studied["ranking"]}
    assert {"gi intra ℓ=0", "mixup", "davies-bouldin index", "DBI · (1 − mixup)", "turned: gi rotation ℓ=0"} <= set(
        ranking
    )
    assert not studied["failures"] and all(row["n"] == 8 for row in studied["ranking"])
    again = assay("corpus", "study", str(plan))
    assert again.returncode == 0 and again.stdout.strip().endswith("report.html")


def test_the_page_in_a_browser(studied, browser):
    page = open_page(browser, studied["report"], width=1200)
    dom = page.content()
    assert "Which measure predicts the gap best?" in dom and "<svg" in dom and "network_007" in dom
    assert len(page.screenshot(full_page=True)) > 50_000 and not page.problems


def test_report_again_and_of_what_is_no_run(studied, tmp_path):
    again = assay("report", studied["run"])
    assert again.returncode == 0 and again.stdout.strip() == studied["report"]
    nothing = assay("report", str(tmp_path))
    assert nothing.returncode == 2 and "is not a run" in nothing.stderr and "Traceback" not in nothing.stderr


def test_a_study_before_training_says_what_to_do(plan, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN.replace("digits.npz", str(plan.parent / "digits.npz")))
    done = assay("corpus", "study", str(tmp_path / "plan.yaml"))
    assert done.returncode == 2 and "assay corpus train" in done.stderr
