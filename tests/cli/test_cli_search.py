"""`assay search` as a user runs it."""

from __future__ import annotations

import json

import pytest

from assay.studies import read_search
from command_kit import assay
from page_kit import open_page
from search_kit import PLAN, write_plan

pytestmark = pytest.mark.slow
SMALL = PLAN.replace("trials: 12", "trials: 4")


def test_search_prints_the_best_trials_and_the_report_comes_last(tmp_path):
    plan = write_plan(tmp_path, SMALL)
    done = assay("search", str(plan))
    assert done.returncode == 0, done.stderr
    assert "4 of 4 trials finished, 4 complete; the best" in done.stdout
    assert done.stdout.strip().endswith("run/report.html")
    told = json.loads(assay("search", str(plan), "--json").stdout)
    assert told["status"] == {"complete": 4} and told["failed"] == [] and told["best"][0]["status"] == "complete"
    again = assay("report", str(tmp_path / "run"))
    assert again.returncode == 0 and again.stdout.strip() == told["report"]


def test_of_several_objectives_all_trials_are_told_that_none_beats(tmp_path):
    two = "[{number: loss, direction: minimize}, {number: width, name: size, direction: maximize}]"
    plan = write_plan(tmp_path, SMALL.replace("[{number: loss, direction: minimize}]", two))
    told = json.loads(assay("search", str(plan), "--json").stdout)
    found = read_search(str(tmp_path / "run"))
    assert [trial["trial"] for trial in told["best"]] == found.best["trial"].tolist()
    said = f"4 of 4 trials finished, 4 complete; {len(found.best)} that none beats in all objectives"
    assert said in assay("search", str(plan)).stdout.replace("\n", " ")


def test_failed_trials_and_wrong_plans_have_their_exit_codes(tmp_path):
    failing = assay("search", str(write_plan(tmp_path, SMALL.replace(":train", ":breaks"))))
    assert failing.returncode == 3 and "failed: trial " in failing.stderr
    assert "RuntimeError: odd widths do not work" in failing.stderr and "Traceback" not in failing.stderr
    wrong = assay("search", str(write_plan(tmp_path, SMALL.replace("trials: 4", "trials: no\nsampler: x"))))
    assert wrong.returncode == 2 and wrong.stderr.strip().endswith("2 problems")
    unreachable = f"{SMALL}storage: postgresql://nobody:secret@127.0.0.1:1/none\n"
    lost = assay("search", str(write_plan(tmp_path, unreachable)))
    assert lost.returncode == 2 and "the database of the search cannot be used" in lost.stderr
    assert "secret" not in lost.stderr and "Traceback" not in lost.stderr


def test_the_page_in_a_browser(tmp_path, browser):
    rule = "pruning: {number: loss, direction: minimize, every: 1, population: {after: 2, least: 2}}\n"
    report = json.loads(assay("search", str(write_plan(tmp_path, SMALL + rule)), "--json").stdout)["report"]
    page = open_page(browser, report, width=1200)
    dom = page.content()
    assert "Which hyper-parameters are best?" in dom and "<svg" in dom and "loss against rate" in dom
