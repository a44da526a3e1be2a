from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from assay.core.errors import AssayError
from assay.core.names import showable
from assay.report.broad.charts import grand_means, per_class
from assay.report.broad.evaluation import Evaluation
from assay.report.broad.report import broad_document, write_broad_report
from assay.report.broad.tables import class_table
from assay.report.document import DotChart, Findings, LineChart, Text
from assay.report.html import html
from broad_report_kit import BEST, CLASSES, RATINGS, RUNS, K, make_evaluation
from page_kit import open_page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("broad") / "evaluation")


@pytest.fixture(scope="module")
def path(folder):
    return write_broad_report(folder)


@pytest.fixture
def e(folder):
    return Evaluation(folder)


@pytest.fixture(scope="module")
def page(path):
    return Path(path).read_text(encoding="utf-8")


def task(e, name):
    return next(t for t in e.tasks if t.name == name)


@pytest.mark.requirement("M3")
def test_verdicts_come_first_each_in_a_sentence_with_its_interval(e):
    made = broad_document(e)
    assert made.sections[0].title == "Verdicts"
    found = made.sections[0].blocks[0]
    assert isinstance(found, Findings)
    decided = [answer for _, asked, answer in found.items if not asked.endswith("undecided")]
    assert len(found.items) == 2 * 2 * 3, "two tasks, two teams, three claims"
    assert decided and all("(95 %:" in answer for answer in decided)
    assert ("open", "Video · " + e.teams["s"] + " · central (6 v 3): undecided") in [i[:2] for i in found.items]


def test_video_and_all_ratings_together_are_shown_in_full_and_each_rating_apart(e):
    assert [(t.name, t.whole, t.metric) for t in e.tasks] == [
        ("video", True, "MAP"), ("text", True, "mRMSE"), *((f"text:{r}", False, "RMSE") for r in RATINGS),
    ]  # fmt: skip
    titles = [s.title for s in broad_document(e).sections]
    assert {"Video: MAP", "Text: mRMSE", "Each rating by itself", "Failures"} <= set(titles)


def test_a_failed_run_is_never_a_number(e, page):
    t = task(e, "video")
    assert (e.tables["grand"]["mean"] == BEST).any(), "the analysis folder holds what the failed run left"
    assert set(class_table(e, t).frame["3s"]) == {"failed"}
    assert (RUNS.index("3s"), "failed") in grand_means(e, t).absent
    for shown in (f"{BEST:.3f}", f"{BEST:.4f}", str(BEST)):
        assert shown not in page
    text = task(e, "text")
    assert {why for _, why in grand_means(e, text).absent} == {"missing", "not applicable"}
    assert set(class_table(e, text).frame["2s"]) == {"missing"}, "one rating missing: no mean of all"


def test_what_is_absent_from_the_analysis_is_absent_from_the_report(e):
    for name in ("labels", "extra", "rankings", "by_fold", "contrasts"):
        e.tables[name] = e.tables[name].iloc[:0]
    e.tables["claims"] = pd.DataFrame({"task": ["video"]})
    made = broad_document(e)
    blocks = next(s for s in made.sections if s.title == "Video: MAP").blocks
    assert not any(isinstance(b, LineChart) for b in blocks)
    assert [b.caption.partition(".")[0] for b in blocks if isinstance(b, DotChart)] == ["Graph 1", "Graph 3"]
    assert isinstance(made.sections[0].blocks[0], Text), "no verdict is made up"
    assert "<html" in html(made)


def test_the_page_warns_of_the_plan_rule_of_recalled_numbers_and_of_a_weak_state_of_the_art(page):
    assert "8 to 26 % of video-like and 42 to 70 % of text-like" in page
    assert "recalled, not checked" in page and "Recalled, not checked" in page
    assert "latent Dirichlet allocation, is a weak one" in page
    assert "c0" * 32 in page and "assay broad analyze" in page


@pytest.mark.requirement("H6")
def test_the_page_is_one_file_escapes_everything_and_links_the_tables(folder, page):
    bare = page.replace("http://www.w3.org/2000/svg", "")
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in bare, word
    assert "<script>window.hacked" not in page and "&lt;script&gt;window.hacked" in page
    links = set(re.findall(r'href="([^"#]+)"', page))
    assert {"analysis/values.csv", "analysis/by_fold.csv", "analysis/grand.csv", "analysis/contrasts.csv"} <= links
    e = Evaluation(folder)
    assert all(e.files.exists(link) for link in links)


def test_the_same_folder_gives_the_same_page(folder, path, page):
    write_broad_report(folder)
    assert Path(path).read_text(encoding="utf-8") == page


def test_a_folder_that_is_no_evaluation_or_not_analysed_is_refused(tmp_path, folder):
    with pytest.raises(AssayError, match="no manifest"):
        write_broad_report(str(tmp_path))
    (tmp_path / "manifest.json").write_bytes(Evaluation(folder).files.read("manifest.json"))
    with pytest.raises(AssayError, match="analyse"):
        write_broad_report(str(tmp_path))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_graphs_are_drawn_and_can_be_read_at_laptop_and_phone_width(browser, path, e, width, scheme):
    page = open_page(browser, path, width, scheme)
    assert page.problems == [] and page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page does not scroll sideways"
    charts = page.locator("figure.chart")
    assert charts.count() == page.locator("figure.chart svg[role=img]").count()
    first = charts.filter(has_text="Graph 1. Video")
    whole = per_class(e, task(e, "video"))
    assert first.locator("svg path.mark").count() == len(whole.marks)
    assert first.locator("svg[role=img]").get_attribute("aria-label") == whole.alt
    first.locator(".legend button").filter(has_text="6s PRE/DUL/SLC").click()
    assert first.locator("svg path.mark").count() == len(whole.marks) - len(CLASSES) * K

    third = charts.filter(has_text="Graph 3. Video")
    assert third.locator("svg text.absent").all_text_contents() == ["failed"]
    third.locator("svg path.mark").last.hover(force=True)
    assert third.locator(".tip").inner_text() == showable(grand_means(e, task(e, "video")).marks[-1].detail)
    page.context.close()


WIDER = """[...document.querySelectorAll(".cards .scroll, .strip .scroll")].filter(e => e.offsetParent !== null)
    .filter(e => e.scrollWidth > e.clientWidth).map(e => e.closest("figure").querySelector("figcaption").innerText)"""
CUT_WORDS = """[...document.querySelectorAll(".cards th button, .strip thead th")].filter(e => e.offsetParent !== null)
    .filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)"""


@pytest.mark.parametrize(("width", "medium"), [(1366, "screen"), (688, "print"), (390, "screen")])
def test_tables_of_verdicts_and_contrasts_fit_a_laptop_paper_and_a_phone(browser, path, width, medium):
    page = open_page(browser, path, width)  # A4 has 688 pixels between its margins
    page.emulate_media(media=medium)
    assert page.locator(".cards .scroll").count() > 8 and page.locator(".strip .scroll").count() == 2
    assert page.evaluate(WIDER) == [] and page.evaluate(CUT_WORDS) == []
    page.context.close()


def test_on_a_phone_the_number_comes_first(browser, path, e):
    page = open_page(browser, path, 390)
    contrasts = page.locator("figure.cards").filter(has_text="Video: contrasts").first
    card = contrasts.locator("tbody tr").first
    row = e.table("contrasts", "video").iloc[0]
    first = card.locator("td.lead").first
    assert first.inner_text() == f"{row.difference:+.3f}"
    tops = [cell.bounding_box()["y"] for cell in card.locator("td").all()]
    assert first.bounding_box()["y"] == pytest.approx(min(tops), abs=6)
    assert first.bounding_box()["x"] < 40
    page.context.close()


def test_learning_curves_and_layers_have_bands_on_the_page(browser, path):
    page = open_page(browser, path, 1366)
    for caption in ("Video: learning", "Text: learning", "Video: condition 6 read", "Text: condition 6 read"):
        chart = page.locator("figure.chart").filter(has_text=caption)
        assert chart.locator("path.band").count() == chart.locator("path.path").count() == 1
    page.context.close()
