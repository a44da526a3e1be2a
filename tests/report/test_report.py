from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import zoo
from assay import AssayError, Measure, Straightness, Subject, evaluate
from assay.cli.main import app
from assay.report import document, html, write_report
from assay.report.document import Document, LineChart, Point, Section, Table
from measure_kit import Broken, sequences
from page_kit import open_page

HOSTILE = "<script>window.hacked = 1</script> & \"quotes\" 'n' </script>"


@dataclass(frozen=True)
class Plain(Measure):
    """A measure the report has no special way of showing."""

    name: ClassVar[str] = "plain"
    value: ClassVar[str] = "value"

    def __call__(self, subject: Subject) -> pd.DataFrame:
        return pd.DataFrame({"layer": [HOSTILE], "value": [float("nan")]})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    subjects = [Subject(zoo.build("resnet"), HOSTILE), Subject(zoo.build("vgg"), "vgg")]
    shown = sequences() + sequences(1).pixel_fade()
    measures = {"straightness": Straightness(shown), "plain": Plain(), "broken": Broken()}
    return evaluate(subjects, measures, tmp_path_factory.mktemp("reports") / "run")


@pytest.fixture(scope="module")
def path(run):
    return write_report(run)


def test_the_document_says_what_was_asked_found_and_failed(run):
    made = document(run)
    titles = ["At a glance", "straightness", "plain", "broken", "Failures", "What was asked"]
    assert [s.title for s in made.sections] == titles
    assert [s.folded for s in made.sections] == [False, True, True, True, False, True]
    assert made.status == "2 of 6 cells not done"
    charts = [b for b in made.sections[1].blocks if isinstance(b, LineChart)]
    assert [len(c.lines) for c in charts] == [2, 2], "one line per subject, one chart per condition"
    table = run.summary("straightness")
    line = dict(charts[0].lines)["vgg"]
    mine = table[(table.subject == "vgg") & (table.condition == "natural")]
    assert [p.y for p in line] == mine.curvature_deg.tolist()
    assert [p.band for p in line] == list(zip(mine.low, mine.high, strict=True)), "95 % intervals"
    pixels = mine.iloc[0]
    interval = f"{pixels.curvature_deg:.2f}° ({pixels.low:.2f}° to {pixels.high:.2f}°)"
    assert line[0].detail.startswith(f"{interval}, ")
    assert charts[0].reference == ("pixels", mine.curvature_deg.iloc[0])
    assert len(made.sections[-2].blocks) == 2 and len([b for b in made.sections[2].blocks if isinstance(b, Table)]) == 1


def test_the_page_is_one_file_that_needs_nothing_else(run):
    page = html(document(run))
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in page.replace("http://www.w3.org/2000/svg", ""), word
    assert "default-src 'none'" in page


def test_a_report_that_cannot_be_written_into_its_run_can_be_written_elsewhere(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("report.html"))
    (tmp_path / "run" / "report.html").mkdir()
    refused = CliRunner().invoke(app, ["report", str(tmp_path / "run")])
    assert isinstance(refused.exception, AssayError)
    assert str(refused.exception).endswith("choose another folder; --out FILE writes the report elsewhere")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0 and (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_every_string_is_escaped(run):
    page = html(document(run))
    assert "<script>window.hacked" not in page and "<b>it broke</b>" not in page
    assert "&lt;script&gt;window.hacked" in page


# -- in a real browser ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_table_chart_and_theme_at_laptop_and_phone_width(browser, path, run, width, scheme):
    page = open_page(browser, path, width, scheme)
    assert page.problems == []
    assert page.evaluate("window.hacked") is None

    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page does not scroll sideways"
    glance = page.locator("figure.matrix")
    assert glance.locator("tbody tr").count() == 4 and glance.locator("thead th").count() == 2
    assert page.locator("figure.charts figure.chart svg path.path").count() == 4, "two charts of two lines"
    assert not page.locator("figure.table").first.is_visible()
    page.locator("details.section summary").filter(has_text="straightness").click()
    summary = run.summary("straightness")
    table = page.locator("figure.table").filter(has_text="Curvature by layer")
    assert table.locator("tbody tr").count() == len(summary)
    shown = table.locator("tbody tr").nth(1).locator("td").nth(3).inner_text()
    assert shown == f"{summary.curvature_deg[1]:.3f}"

    chart = page.locator("details.section figure.chart").first
    assert chart.locator("svg path.path").count() == 2
    assert chart.locator("svg path.band").count() == 2
    assert chart.locator("svg path.reference").count() == 1
    assert chart.locator("svg").bounding_box()["width"] > 0.8 * min(width, 1000)

    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = np.mean([int(v) for v in ground.removeprefix("rgb(").removesuffix(")").split(",")]) > 128
    assert bright == (scheme == "light")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    page.context.close()


def test_the_chart_answers_the_pointer_and_the_legend(browser, path):
    page = open_page(browser, path)
    page.locator("details.section summary").filter(has_text="straightness").click()
    chart = page.locator("details.section figure.chart").first
    chart.locator("svg circle[fill^='var']").nth(5).hover(force=True)
    tip = chart.locator(".tip").inner_text()
    assert "° from pixels, n = 2" in tip
    chart.locator(".legend button").filter(has_text="vgg").click()
    assert chart.locator("svg path.path").count() == 1
    page.context.close()


def test_rows_sort_and_filter(browser, path):
    page = open_page(browser, path)
    page.locator("details.section summary").filter(has_text="straightness").click()
    table = page.locator("figure.table").filter(has_text="Curvature by layer")
    table.locator("th button").filter(has_text="curvature_deg").click()
    values = [float(v) for v in table.locator("tbody tr td:nth-child(4)").all_inner_texts()]
    assert values == sorted(values)
    table.locator("input.filter").fill("vgg pixels")
    assert table.locator("tbody tr:visible").count() == 2
    page.context.close()


def test_failures_are_shown_as_failures(browser, path):
    page = open_page(browser, path)
    failures = page.locator("section.failures div.failure")
    assert failures.count() == 2
    assert "RuntimeError: <b>it broke</b> & how" in failures.first.inner_text()
    assert page.locator(".status.bad").inner_text() == "2 of 6 cells not done"
    page.context.close()


def test_a_line_of_equal_values_lies_in_the_middle_of_an_axis_that_can_be_read(browser, tmp_path):
    for value, wanted in ((100.0, {"90", "100", "110"}), (0.0, {"−1.0", "0.0", "1.0"})):
        line = ("net", tuple(Point(x, value, None, "a", "") for x in (0.0, 1.0)))
        document = Document("Scores", "", "complete", (Section("s", (LineChart("c", "x", "y", (line,)),)),), {})
        (tmp_path / "page.html").write_text(html(document), encoding="utf-8")
        page = open_page(browser, tmp_path / "page.html", 1300)
        said = page.locator("figure.chart svg text").all_text_contents()
        assert wanted <= set(said), said
        page.context.close()


def test_zero_on_an_axis_has_no_sign_and_long_names_of_columns_go_on_in_another_line(browser, tmp_path):
    line = ("net", (Point(0.0, -0.23, None, "a", ""), Point(1.0, 0.17, None, "b", "")))
    chart = LineChart("Scores", "depth", "score", (line,), ("pixels", -0.02))
    table = Table("All", pd.DataFrame({"subject_mean": [0.1], "<b>": [0.2]}))
    text = html(Document("Scores", "", "complete", (Section("scores", (chart, table)),), {}))
    assert "subject_<wbr>mean" in text and "&lt;b&gt;" in text
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    page = open_page(browser, tmp_path / "page.html", 1300)
    said = page.locator("figure.chart svg text").all_text_contents()
    assert "0.0" in said and "−0.1" in said and not any("-" in label for label in said)
    assert "pixels −0.020" in page.locator("figure.chart .legend").inner_text()
    page.context.close()
