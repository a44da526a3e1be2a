"""What `assay broad check` found is kept with an evaluation, and shown by its reports."""

from __future__ import annotations

import pytest

from assay.broad.run.results import CHECKS, Results
from assay.broad.systems.team import system_hash
from assay.report.broad.evaluation import Evaluation
from assay.report.broad.report import broad_document
from assay.report.broad.systems import conformance_table
from assay.report.document import Table
from assay.report.slides.broad import broad_deck
from broad_report_kit import make_evaluation

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    return make_evaluation(tmp_path / "run", teams=1, text=False)


def check(status: str, what: str, system: str) -> dict[str, str]:
    return dict(zip(CHECKS, ("Net-Scale", "video", "J1", status, what, system), strict=True))


def shown(e: Evaluation) -> str:
    return "\n".join(s.text_frame.text for p in broad_deck(e).show.slides for s in p.shapes if s.has_text_frame)


def test_nothing_is_shown_where_nothing_was_checked(folder):
    e = Evaluation(folder)
    assert conformance_table(e) is None
    assert "checks of the systems" not in shown(e)


def test_checks_are_shown_and_those_of_another_version_are_out_of_date(folder):
    now = system_hash(Evaluation(folder).manifest["teams"][0]["parts"]["video"])[:12]
    checks = [check("pass", "3 layers, of one algorithm", now), check("non-conforming", "none, but <b>", now)]
    Results(folder).write_checks([*checks, check("pass", "as it was", "0" * 12)])
    e = Evaluation(folder)
    table = conformance_table(e)
    assert table is not None
    assert table.frame["status"].tolist() == ["pass", "non-conforming", "out of date"]
    assert table.frame["what"].tolist() == ["3 layers, of one algorithm", "none, but <b>", "as it was"]
    assert e.files.exists(table.csv)
    (systems,) = [s for s in broad_document(e).sections if s.title.startswith("Systems")]
    assert table.caption in [b.caption for b in systems.blocks if isinstance(b, Table)]
    assert "1 of 3 checks of the systems passed." in shown(e)


def test_a_system_with_other_parameters_has_another_hash():
    parts = {"learner": {"module": "isa", "parameters": {"units": (3, 2)}, "source": "ab"}}
    as_read = {"learner": {"source": "ab", "parameters": {"units": [3, 2]}, "module": "isa"}}
    assert system_hash(parts) == system_hash(as_read)
    as_read["learner"]["parameters"] = {"units": [3, 3]}
    assert system_hash(parts) != system_hash(as_read)
