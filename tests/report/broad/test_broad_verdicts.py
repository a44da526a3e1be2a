"""What stands behind the verdicts is in the report: their details, other tests, the registered rules and changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.report.broad.evaluation import Evaluation
from assay.report.broad.report import broad_document
from assay.report.broad.verdicts import headlines
from assay.report.document import Facts, Table, Text
from broad_report_kit import make_evaluation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("broad") / "evaluation")


@pytest.fixture(scope="module")
def sections(folder):
    manifest = Path(folder) / "manifest.json"
    content = json.loads(manifest.read_text())
    content |= {"registration": "ab" * 32, "plan": {"changes": ["A classifier was replaced.", "Reviews were added."]}}
    manifest.write_text(json.dumps(content))
    return {section.title: section for section in broad_document(Evaluation(folder)).sections}


def test_every_verdict_has_its_detail_folded_away(sections):
    section = sections["What each verdict rests on"]
    (table,) = section.blocks
    assert section.folded and isinstance(table, Table) and len(table.frame) == 5 * 2 * 6
    decided = table.frame[~table.frame["sentence"].str.contains("cannot be compared")]
    assert decided["detail"].str.contains("folds").all() and decided["detail"].str.contains("degrees of freedom").all()


def test_other_tests_are_shown_folded_away_with_what_limits_them(sections):
    section = sections["Other tests"]
    assert section.folded
    tables = [block for block in section.blocks if isinstance(block, Table)]
    columns = {column for table in tables for column in table.frame.columns}
    assert {"Wilcoxon p", "sign p", "equivalent", "equivalence p", "P(comparable)"} <= columns
    words = " ".join(block.text for block in section.blocks if isinstance(block, Text))
    assert "No verdict rests on these." in words and "2/2^5 = 0.062" in words


def test_the_page_has_the_hash_of_the_registered_rules(sections):
    facts = next(block for block in sections["Partitions"].blocks if isinstance(block, Facts))
    assert ("rules registered before the first result (SHA-256)", "ab" * 32) in facts.rows


@pytest.mark.requirement("M2")
def test_changes_of_the_plan_reach_the_page_and_the_title_slide(folder, sections):
    words = "Changes since the last edition: A classifier was replaced; Reviews were added."
    assert words in [b.text for b in sections["Warnings and deviations"].blocks if isinstance(b, Text)]
    pytest.importorskip("pptx")
    from assay.report.slides.broad import broad_deck

    deck = broad_deck(Evaluation(folder))
    title = json.dumps([str(cell) for cell in _cells(deck)])
    assert "A classifier was replaced; Reviews were added" in title


def _cells(deck):
    import io

    from pptx import Presentation

    slide = Presentation(io.BytesIO(deck.bytes())).slides[0]
    return [cell.text for shape in slide.shapes if shape.has_table for row in shape.table.rows for cell in row.cells]


def test_the_few_sentences_of_the_terminal_name_team_and_task(folder):
    claims = Evaluation(folder).tables["claims"]
    few = headlines(claims)
    assert len(few) == 2 * 2 * 2, "two teams, two tasks, two claims"
    assert all(sentence.startswith("Team ") and (" on video" in sentence or " on text" in sentence) for sentence in few)
    assert not any("(Food)" in sentence for sentence in few)
