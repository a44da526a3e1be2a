from __future__ import annotations

import html
import importlib.util
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import datetime
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from assay.core.errors import AssayError
from assay.report.broad.charts import grand_means
from assay.report.broad.evaluation import Evaluation
from assay.report.broad.verdicts import DIAGNOSTIC_CLAIMS, MAIN_CLAIMS
from assay.report.slides.broad import write_slides
from assay.report.slides.text import BOLD, longest_word
from broad_report_kit import BEST, RUNS, make_evaluation
from conftest import need
from slides_kit import cells, opened, require_inside, titles

pytestmark = pytest.mark.slides
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
FOOTER_IN = 7.02  # nothing but the footer lies below


@pytest.fixture(scope="module", autouse=True)
def _pptx():
    need(importlib.util.find_spec("pptx") is not None, "the package python-pptx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("broad") / "evaluation")


@pytest.fixture(scope="module")
def path(folder):
    return Path(write_slides(folder))


@pytest.fixture(scope="module")
def show(path):
    return opened(path.read_bytes())


@pytest.mark.requirement("M1")
def test_the_slides_follow_the_order_of_the_plan(show):
    order = [re.sub(r" \(\d+ of \d+\)", "", title) for title in titles(show)]
    expected = [
        "Broad Evaluation: evaluation", "Claims", "Process", "Six conditions", "Components", "Metrics", "Protocol",
        "Logistics, deviations and contingencies", "How every run went",
        "Graph 1. Video", "Graph 2. Video", "Graph 3. Video", "Video: advantage in MAP", "Video: ranking",
        "Graph 1. Text", "Graph 2. Text", "Graph 3. Text", "Text: advantage in mRMSE", "Text: ranking",
        "Are the claims supported?", "All verdicts", "Diagnostics", "Video: learning curve", "Text: learning curve",
        "Conformance", "Open issues and changes", "Appendix: glossary",
    ]  # fmt: skip
    distinct = list(dict.fromkeys(order))
    assert len(distinct) >= len(expected)
    for title, start in zip(distinct, expected, strict=False):
        assert title.startswith(start), (title, start)
    assert all(title.startswith("Appendix") for title in distinct[len(expected) :])


def test_slides_are_wide_have_notes_and_nothing_lies_outside(show):
    assert show.slide_width / show.slide_height == pytest.approx(16 / 9, abs=1e-4)
    require_inside(show)
    for slide in show.slides:
        assert slide.notes_slide.notes_text_frame.text.strip(), slide.shapes.title.text_frame.text
        for shape in slide.shapes:
            if shape.shape_type is not None and (shape.has_table or shape.has_chart or hasattr(shape, "image")):
                assert shape._element.xpath("./*[1]/p:cNvPr")[0].get("descr"), "alternative text"


@pytest.mark.requirement("M2")
def test_the_title_slide_says_which_edition_of_what(show, folder):
    said = " ".join(c.text for f in show.slides[0].shapes if f.has_table for row in f.table.rows for c in row.cells)
    assert "iteration 2, draft" in said and "2 January 2026" in said and "Net-Scale (n)" in said
    e = Evaluation(folder)
    assert not re.search(r"[0-9a-f]{12}", said), "words on the slide, hashes in its notes"
    notes = show.slides[0].notes_slide.notes_text_frame.text
    assert e.digest in notes and "c0" * 32 in notes


def tables(show):
    for number, slide in enumerate(show.slides, 1):
        for shape in slide.shapes:
            if shape.has_table:
                yield number, shape.table


def test_cells_are_large_and_short_and_the_notes_have_what_is_cut(show, folder):
    for number, table in tables(show):
        for row in table.rows:
            for cell in row.cells:
                sizes = {run.font.size.pt for paragraph in cell.text_frame.paragraphs for run in paragraph.runs}
                assert min(sizes, default=14) >= 14, (number, cell.text)
                assert len(cell.text.split()) <= 25, (number, cell.text)
    notes = " ".join(slide.notes_slide.notes_text_frame.text for slide in show.slides)
    claims = Evaluation(folder).tables["claims"]
    of_whole_tasks = claims[claims.task.isin(["video", "text"]) & claims.claim.isin(MAIN_CLAIMS + DIAGNOSTIC_CLAIMS)]
    assert len(of_whole_tasks) == 2 * 2 * 5
    for sentence in of_whole_tasks.sentence:
        assert sentence.replace("\x1b", "�") in notes


def test_no_name_of_a_column_is_broken_inside_a_word(show):
    for number, table in tables(show):
        if table.first_row:
            for column, cell in zip(table.columns, table.rows[0].cells, strict=True):
                room = (column.width - cell.margin_left - cell.margin_right) / 914400
                size = cell.text_frame.paragraphs[0].runs[0].font.size.pt
                assert longest_word(cell.text, size, BOLD) <= room, (number, cell.text)


def test_nothing_overlaps_and_nothing_but_the_footer_lies_below(show):
    for number, slide in enumerate(show.slides, 1):
        boxes = []
        for shape in slide.shapes:
            footer = shape.top / 914400 > FOOTER_IN
            assert footer or (shape.top + shape.height) / 914400 <= FOOTER_IN, (number, shape.name)
            boxes.append((shape.left, shape.top, shape.left + shape.width, shape.top + shape.height, shape.name))
        for a, b in itertools.combinations(boxes, 2):
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, (number, a[4], b[4])


@pytest.mark.requirement("H4")
def test_graph_3_is_also_a_native_chart_with_the_standard_errors_as_error_bars(show, folder):
    e = Evaluation(folder)
    natives = [f.chart for s in show.slides for f in s.shapes if f.has_chart]
    assert len(natives) == 2
    for native, name in zip(natives, ("video", "text"), strict=True):
        chart = grand_means(e, next(t for t in e.tasks if t.name == name))
        marks = {m.group: m for m in chart.marks}
        assert list(native.plots[0].series[0].values) == [
            marks[i].value if i in marks else None for i in range(len(RUNS))
        ]
        series = native._chartSpace.findall(f".//{C}ser")[0]
        order = [child.tag.removeprefix(C) for child in series]
        assert order.index("errBars") == order.index("cat") - 1, "the schema wants it just before the categories"
        for side, sign in (("plus", 1), ("minus", -1)):
            points = series.findall(f"{C}errBars/{C}{side}/{C}numLit/{C}pt")
            found = {int(p.get("idx")): float(p.find(f"{C}v").text) for p in points}
            assert set(found) == set(marks)
            end = 1 if sign > 0 else 0
            np.testing.assert_allclose(
                list(found.values()), [sign * (marks[i].interval[end] - marks[i].value) for i in found]
            )
    assert "3s (failed)" in list(natives[0].plots[0].categories)


def test_a_failed_run_is_never_a_number(path, show):
    assert "failed" in cells(show)
    with zipfile.ZipFile(path) as file:
        everything = b"".join(file.read(n) for n in file.namelist() if n.endswith(".xml")).decode()
    assert f"{BEST:.3f}" not in everything and str(BEST) not in everything


def test_equal_input_gives_equal_bytes_and_no_time_of_writing_is_kept(folder, path):
    before = path.read_bytes()
    write_slides(folder)
    assert path.read_bytes() == before
    with zipfile.ZipFile(path) as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        books = [n for n in file.namelist() if n.endswith(".xlsx")]
        assert len(books) == 2
        for name in books:
            with zipfile.ZipFile(io.BytesIO(file.read(name))) as book:
                dates = re.findall(r"\d{4}-\d\d-\d\dT", book.read("docProps/core.xml").decode())
                assert dates and set(dates) == {"1980-01-01T"}
    about = opened(before).core_properties
    assert about.created == about.modified == datetime(2026, 1, 2, 3, 4, 5) and about.author == "assay"


def test_one_team_and_no_text_make_a_deck_too(tmp_path):
    show = opened(Path(write_slides(make_evaluation(tmp_path / "one", teams=1, text=False))).read_bytes())
    require_inside(show)
    assert not any("Text" in title for title in titles(show))


def test_without_python_pptx_the_error_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pptx", None)
    with pytest.raises(AssayError, match=r"python-pptx|assay\[slides\]"):
        write_slides(folder)


@pytest.fixture(scope="module", params=["installed", "substitute"])
def pdf(request, path, tmp_path_factory):
    """The slides as an office program shows them, with the fonts installed here and with none but DejaVu."""
    soffice = shutil.which("soffice")
    need(soffice is not None and shutil.which("pdftotext") is not None, "LibreOffice (soffice) or poppler (pdftotext)")
    folder = tmp_path_factory.mktemp("office")
    environment = {**os.environ, "FONTCONFIG_FILE": only_dejavu(folder)} if request.param == "substitute" else None
    profile = f"-env:UserInstallation=file://{folder}/profile"
    command = [soffice, profile, "--headless", "--convert-to", "pdf", "--outdir", str(folder), str(path)]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return folder / "slides.pdf"


def only_dejavu(folder: Path) -> str:
    """Write a configuration of fonts that knows none but matplotlib's own copies of DejaVu."""
    (folder / "fonts").mkdir()
    for font in Path(matplotlib.get_data_path(), "fonts", "ttf").glob("DejaVuSans*.ttf"):
        (folder / "fonts" / font.name).symlink_to(font)
    known = f"<dir>{folder}/fonts</dir><cachedir>{folder}/cache</cachedir>"
    (folder / "fonts.conf").write_text(f"<fontconfig>{known}</fontconfig>")
    return str(folder / "fonts.conf")


def test_an_office_program_shows_every_slide_and_no_text_runs_into_the_footer(pdf, path, show):
    words = subprocess.run(["pdftotext", "-bbox", str(pdf), "-"], check=True, capture_output=True, text=True).stdout
    e = Evaluation(str(path.parent))
    footer = {"Broad", "Evaluation:", e.name, "·", "iteration", "2,", "draft", "2", "January", "2026"}
    pages = re.split(r"<page ", words)[1:]
    assert len(pages) == len(show.slides)
    for number, page in enumerate(pages, 1):
        allowed = footer | {str(number)}
        for x_max, y_max, word in re.findall(r'xMax="([\d.]+)" yMax="([\d.]+)">(.*?)</word>', page):
            assert float(x_max) <= 13.34 * 72, (number, word)
            assert float(y_max) <= FOOTER_IN * 72 or word in allowed, (number, word)
    for number, table in tables(show):
        if table.first_row:
            names = {word for cell in table.rows[0].cells for word in cell.text.split()}
            assert names <= set(html.unescape(pages[number - 1]).replace("<", ">").split(">")), (number, names)
