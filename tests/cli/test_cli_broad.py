"""The command line of the broad evaluation, on generated twins of both data sets: all runs of all tasks, end to end."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import command_kit
from assay import AssayError
from assay.broad.data.partition import commitment
from assay.broad.plan import load_broad_plan
from assay.broad.protocol import dry_run

pytestmark = pytest.mark.slow

PLAN = Path(__file__).parents[2] / "reproductions" / "broad-evaluation-2010" / "twins-small.yaml"
RATINGS = ("Overall",)  # of five, which are asked in the same way


def assay(*words, expect: int = 0, cwd=None) -> subprocess.CompletedProcess[str]:
    done = command_kit.assay("broad", *words, cwd=cwd)
    assert done.returncode == expect, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def few_reviews(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with one rating of few reviews, of which small learners of text see few words."""
    plan["protocol"] |= {"ratings": list(RATINGS), "n": 60}
    plan["text"]["generated"] |= {"count": 200, "restaurants": 20}
    for team in plan["teams"]:
        team["text"]["preprocessor"]["parameters"]["terms"] = 60
        team["text"]["learner"]["parameters"] |= {"inputs": 60, "hidden": [8, 8, 8], "epochs": 1}
        team["text"]["classifier"]["parameters"]["grid"]["C"] = [0.1]
    plan["evaluators"]["text"]["extractor"]["parameters"]["terms"] = 60
    plan["evaluators"]["text"]["classifier"]["parameters"]["grid"]["topics"] = [3]
    return plan


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The small plan, made smaller still, run by the command line."""
    place = tmp_path_factory.mktemp("twins")
    plan = yaml.safe_load(PLAN.read_text())
    plan["protocol"] |= {"ratings": list(RATINGS), "curve": [0.0, 1.0], "k": 2, "bootstrap": 200}
    plan["video"]["generated"] |= {"training": 48, "test": 36, "frames": [14, 18]}
    convolutional, subspace = (team["video"] for team in plan["teams"])
    convolutional["learner"]["parameters"] |= {"epochs": 1, "blocks": 12}
    subspace["learner"]["parameters"] |= {"iterations": 30}
    for parts in (plan["evaluators"]["video"], convolutional, subspace):
        parts["classifier"]["parameters"]["grid"]["C"] = [100.0]
    (place / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = assay("run", place / "plan.yaml", "--processes", "2", "--json")
    return place, json.loads(done.stdout)


def test_all_eleven_runs_of_both_tasks_end_well(twins):
    place, said = twins
    assert said["not done"] == []
    status = pd.read_csv(place / "runs/twins-small/analysis/status.csv", dtype=str)
    plain = status[~status["run"].str.contains(".", regex=False)]
    assert plain.groupby("task")["run"].nunique().to_dict() == dict.fromkeys(
        ["video", *(f"text:{r}" for r in RATINGS)], 11
    )
    assert set(status["status"]) == {"done"}


def test_learned_features_are_better_than_chance_on_video(twins):
    """Twelve classes of about a tenth of the clips each: chance is near 0.1, hand-made features are far above it."""
    place, _ = twins
    grand = pd.read_csv(place / "runs/twins-small/analysis/grand.csv").set_index(["task", "run"])["mean"]
    assert grand["video", "1"] > 0.3
    assert grand["video", "5s"] > 0.2


@pytest.mark.requirement("A2")
def test_check_run_analyze_report_and_compare(twins):
    """A2: one command for each job; A4: analysing again gives the same bytes; A6: two sites compared."""
    place, said = twins
    folder = place / "runs/twins-small"
    assert Path(said["report"]).exists()
    assert Path(said["slides"]).exists()
    before = {p.name: p.read_bytes() for p in (folder / "analysis").iterdir()}
    shutil.rmtree(folder / "analysis")
    assay("analyze", folder)
    assert {p.name: p.read_bytes() for p in (folder / "analysis").iterdir()} == before
    page = Path(said["report"]).read_bytes()
    Path(said["report"]).unlink()
    assert assay("report", place / "plan.yaml").stdout.strip().endswith("report.html")
    assert Path(said["report"]).read_bytes() == page
    shutil.copytree(folder, place / "other", dirs_exist_ok=True)
    same = json.loads(assay("compare", folder, place / "other", "--json").stdout)
    assert {row["agreement"] for row in same} == {"identical"}


@pytest.mark.requirement("L2")
def test_measures_are_asked_of_the_systems_layers(twins):
    """L2: the project's own measures, by the same contract, on the layers the systems learned."""
    from assay.runs.run import Run

    place, _ = twins
    table = Run(str(place / "runs/twins-small/measures")).table("invariance")
    assert set(table["subject"]) == {"Convolutional", "Subspace"}
    assert table.groupby("subject")["layer"].nunique().min() >= 3
    assert set(table["transformation"]) == {"phase", "orientation", "frequency"}


def test_check_lists_runs_and_conformance(tmp_path):
    plan = few_reviews(yaml.safe_load(PLAN.read_text())) | {"measures": []}
    del plan["video"]
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    said = json.loads(assay("check", tmp_path / "plan.yaml", "--run", tmp_path / "kept", "--json").stdout)
    assert len([r for r in said["runs"] if r["task"] == "text:Overall" and "." not in r["run"]]) == 11
    assert {c["requirement"] for c in said["checks"]} >= {"J1", "J2", "J3", "J4", "J5", "J6"}
    assert not [c for c in said["checks"] if c["status"] == "fail"]
    assert len(said["commitment"]) == 64
    kept = pd.read_csv(tmp_path / "kept" / "conformance.csv", dtype=str)
    assert kept.to_dict("records") == said["checks"]
    assert not (tmp_path / "runs").exists()  # checking makes no folder by itself
    only = json.loads(assay("check", tmp_path / "plan.yaml", "--dry-run", "--json").stdout)
    assert only["checks"] == []
    assert only["runs"] == said["runs"]
    assert only["partitions"] == said["partitions"]


@pytest.mark.requirement("F9")
def test_parameters_may_be_in_a_file(tmp_path):
    """F9: a registered name and a parameter file."""
    plan = yaml.safe_load(PLAN.read_text())
    (tmp_path / "isa.yaml").write_text(yaml.safe_dump(plan["teams"][1]["video"]["learner"]["parameters"]))
    plan["teams"][1]["video"]["learner"]["parameters"] = "isa.yaml"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    given, inline = load_broad_plan(tmp_path / "plan.yaml"), load_broad_plan(PLAN)
    assert given.teams == inline.teams


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda p: p.pop("teams"), "lacks the key 'teams'"),
        (lambda p: p.update(secret="short"), "the secret seed has 5 characters"),
        (lambda p: p.update(commitment="0" * 64), "the seed is not the one committed to"),
        (lambda p: p.update(colour="red"), "plan.yaml:1: colour: unknown key"),
        (lambda p: p["teams"].append(p["teams"][0]), "a second system of team 'n'"),
        (lambda p: p["protocol"].update(k=1), "k=1 folds"),
        (lambda p: p["protocol"].update(p=70), "did you mean 0.7?"),
        (lambda p: p["protocol"].update(n=10**6), "N=1000000"),
        (lambda p: p["teams"][0]["text"].update(learner="isaa"), "no module is called 'isaa'; did you mean 'isa'?"),
        (
            lambda p: p["teams"][0]["text"]["learner"]["parameters"].update(architecture="transformer"),
            "would choose an architecture",
        ),
        (lambda p: p["teams"][0]["text"]["learner"]["parameters"].update(hiden=[3]), "unknown parameter 'hiden'"),
        (
            lambda p: p["teams"][0]["text"].update(learner={"module": "sparse_autoencoder", "frozen": "0" * 64}),
            "is frozen as 000000000000",
        ),
        (lambda p: p.update(text={"opentable": "no.csv"}), "no.csv"),
        (lambda p: (p.pop("text"), p.pop("video")), "there is nothing to evaluate on"),
        (lambda p: p.update(secret="env:NO_SUCH_VARIABLE"), "the environment has no variable 'NO_SUCH_VARIABLE'"),
    ],
)
def test_mistakes_in_a_plan_are_one_sentence(tmp_path, change, sentence):
    plan = yaml.safe_load(PLAN.read_text())
    plan["video"]["generated"] |= {"training": 40, "test": 30}
    change(plan)
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(AssayError) as caught:
        loaded = load_broad_plan(tmp_path / "plan.yaml")
        commitment(loaded.secret)
        dry_run(loaded.tasks(), loaded.teams, loaded.evaluators, loaded.protocol)
    assert sentence in str(caught.value)


def test_the_command_line_says_it_in_one_sentence(tmp_path):
    (tmp_path / "plan.yaml").write_text("teams: []")
    done = assay("check", tmp_path / "plan.yaml", expect=2)
    assert "lacks the key 'secret'" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("there", [True, False])
def test_checks_are_kept_in_the_plans_folder_if_it_is_there(tmp_path, there):
    from typer.testing import CliRunner

    from assay.cli.broad import broad

    plan = few_reviews(yaml.safe_load(PLAN.read_text())) | {"measures": []}
    del plan["video"], plan["teams"][1]
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    folder = tmp_path / "runs" / "twins-small"
    if there:
        folder.mkdir(parents=True)
    done = CliRunner().invoke(broad, ["check", str(tmp_path / "plan.yaml"), "--json"])
    assert done.exit_code == 0 and {check["team"] for check in json.loads(done.stdout)["checks"]} == {"Convolutional"}
    assert (folder / "conformance.csv").exists() == there
