from __future__ import annotations

import pytest

from assay.report.broad.evaluation import Evaluation
from assay.report.broad.method import hardware
from assay.report.broad.report import broad_document
from assay.report.broad.runs import deviations
from assay.report.document import Items, Strip, Table
from broad_report_kit import CLASSES, EXTRA, RATINGS, RUNS, STATUS, K, make_evaluation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("broad") / "evaluation")


@pytest.fixture
def e(folder):
    return Evaluation(folder)


def test_the_strip_shows_every_run_of_every_task_with_its_status(e):
    strip = next(b for b in broad_document(e).sections[0].blocks if isinstance(b, Strip))
    assert strip.columns == tuple(RUNS) and len(strip.rows) == 1 + len(RATINGS)
    shown = {(row, run): said for row, cells in strip.rows for run, (said, _, _) in zip(RUNS, cells, strict=True)}
    assert shown["Video", "3s"] == "failed" and shown["Video", "6n"] == "pre-trained"
    assert shown["Text, Food", "3n"] == "not applicable" and shown["Text, Noise", "2s"] == "missing"
    assert sum(said != "done" for said in shown.values()) == len(STATUS)
    assert broad_document(e).status == f"3 of {4 * (len(RUNS) + len(EXTRA))} runs have no result"


def test_a_run_of_a_learning_curve_that_failed_is_said_to_have(e):
    state = e.tables["status"]
    e.tables["status"] = state.assign(
        status=state.status.mask((state.task == "video") & (state.run == "6s.share0"), "timeout")
    )
    made = broad_document(e)
    assert made.status.startswith("4 of ")
    reasons = next(b for b in made.sections[0].blocks if isinstance(b, Items)).items
    assert "video, 6s.share0: timeout." in reasons


def test_settings_warnings_documents_and_deviations_are_listed(e):
    sections = {s.title: s.blocks for s in broad_document(e).sections}
    settings = next(b for b in sections["Chosen settings"] if isinstance(b, Table)).frame
    one = settings[(settings.task == "video") & (settings.run == "1")].set_index("class")
    assert one.loc["AnswerPhone", "fold 1"] == "C = 32, kernel = linear" and len(one) == len(CLASSES)
    assert len(settings[(settings.task == "video") & (settings.run == "6s")]) == 1, "all classes alike: one row"
    warned = next(b for b in sections["Warnings and deviations"] if isinstance(b, Table)).frame
    assert warned[warned.task == "video"].folds.tolist() == ["1, 2"]
    said = deviations(e)
    assert f"{K} folds (the plan: 10)." in said and "4000 left-over reviews at most to tune on (the plan: all)." in said
    assert any("pre-trained (declared: by the protocol, N)" in s for s in said)
    checklist = sections["Systems and their documents"][1].frame
    of_n = checklist[checklist.team == "Net-Scale"].set_index("item").status
    assert of_n["pseudocode with prose"] == "missing" and of_n["architecture figure with prose"] == "handed in"


def test_a_run_on_another_partition_is_called_out(e):
    record = e.records["video", "6s"]
    e.records["video", "6s"] = type(record)(**{**vars(record), "partition": "f" * 64})
    assert any("video/6s was run on another partition, ffffffffffff" in s for s in deviations(e))
    partitions = next(s for s in broad_document(e).sections if s.title == "Partitions").blocks[-1].frame
    assert partitions["runs on it"].tolist()[0] == f"{len(RUNS) - 1} of {len(RUNS)}"


def test_page_and_slides_say_what_kept_systems_apart(e):
    facts = hardware(e)
    assert ("systems kept apart by", "private namespaces") in facts
    reproduce = next(s for s in broad_document(e).sections if s.title == "How to reproduce this")
    assert ("systems kept apart by", "private namespaces") in reproduce.blocks[-1].rows
