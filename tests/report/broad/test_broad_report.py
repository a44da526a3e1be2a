from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from assay.broad.run.results import DONE
from assay.core.errors import AssayError
from assay.report.broad.evaluation import Evaluation
from assay.report.broad.figures import forest, grand_means, layer_contributions, learning_curves, per_class, per_fold
from assay.report.broad.report import broad_document, class_table, contrasts_table, deviations, write_broad_report
from assay.report.document import DotChart, Findings, Items, LineChart, Strip, Table, Text
from assay.report.html import html
from broad_report_kit import BEST, CLASSES, EXTRA, RATINGS, RUNS, STATUS, K, make_evaluation
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


def test_verdicts_come_first_each_in_a_sentence_with_its_interval(e):
    made = broad_document(e)
    assert made.sections[0].title == "Verdicts"
    found = made.sections[0].blocks[0]
    assert isinstance(found, Findings)
    decided = [answer for _, asked, answer in found.items if not asked.endswith("undecided")]
    assert len(found.items) == 2 * 2 * 3, "two tasks, two teams, three claims"
    assert decided and all("95 % interval" in answer for answer in decided)
    assert ("open", "Video · " + e.teams["s"] + " · central (6 v 3): undecided") in [i[:2] for i in found.items]


def test_video_and_all_ratings_together_are_shown_in_full_and_each_rating_apart(e):
    assert [(t.name, t.whole, t.metric) for t in e.tasks] == [
        ("video", True, "MAP"), ("text", True, "mRMSE"), *((f"text:{r}", False, "RMSE") for r in RATINGS),
    ]  # fmt: skip
    titles = [s.title for s in broad_document(e).sections]
    assert {"Video: MAP", "Text: mRMSE", "Each rating by itself", "Failures"} <= set(titles)


def test_the_three_graphs_hold_the_numbers_of_the_analysis(e):
    values, by_fold, grand = (e.tables[n] for n in ("values", "by_fold", "grand"))
    for name in ("video", "text"):
        t = task(e, name)
        good = [run for run in t.runs if e.status(t, run)[0] in DONE]
        one, two, three = per_class(e, t), per_fold(e, t), grand_means(e, t)
        assert len(one.marks) == len(good) * len(t.labels) * K
        for mark in one.marks[:: len(one.marks) // 7]:
            fold = int(re.search(r"fold (\d+)", mark.detail)[1])
            row = values[
                (values.task == name) & (values.run == t.runs[mark.series]) & (values.label == t.labels[mark.group])
                & (values.fold == fold)
            ]  # fmt: skip
            assert mark.value == row.value.item()
        assert len(two.marks) == len(good) * K and two.groups == tuple(f"fold {i}" for i in range(1, K + 1))
        for mark in two.marks[::9]:
            row = by_fold[
                (by_fold.task == name) & (by_fold.run == t.runs[mark.series]) & (by_fold.fold == mark.group + 1)
            ]
            np.testing.assert_allclose(
                [mark.value, *mark.interval], [*row["mean"], *row["mean"] - row.se, *row["mean"] + row.se]
            )
        assert [t.runs[m.group] for m in three.marks] == good
        for mark in three.marks:
            row = grand[(grand.task == name) & (grand.run == t.runs[mark.group])]
            np.testing.assert_allclose([mark.value, mark.interval[1] - mark.value], [*row["mean"], *row.se])


def test_the_forest_plot_and_its_table_hold_all_contrasts_and_say_which_have_none(e):
    t = task(e, "video")
    rows = e.tables["contrasts"][e.tables["contrasts"].task == "video"].reset_index(drop=True)
    chart, table = forest(e, t), contrasts_table(e, t)
    assert len(chart.groups) == len(rows) == len(table.frame) and chart.reference == 0
    for mark in chart.marks:
        assert (mark.value, *mark.interval) == tuple(rows.loc[mark.group, ["difference", "low", "high"]])
    without = rows.index[rows.difference.isna()].tolist()
    assert [group for group, _ in chart.absent] == without and len(without) == 3, "6 v 3, 1 v 3 and 3 v 4 of one team"
    assert set(table.frame.loc[without, "difference"]) == {"undecided"}
    assert {"plan rule", "p (Holm)", "not inferior", "smallest detectable"} <= set(table.frame)
    assert all("run 3s has no predictions" in why for why in table.frame.loc[without, "why"])


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


def test_learning_curves_start_at_random_weights_and_layers_end_at_the_run_itself(e):
    t = task(e, "video")
    extra = e.tables["extra"].set_index(["task", "run"])["mean"]
    whole = e.tables["grand"].set_index(["task", "run"])["mean"]
    ((team, points),) = learning_curves(e, t).lines
    assert team == e.teams["s"] and [p.x for p in points] == [0.0, 0.3, 1.0]
    assert [p.y for p in points] == [extra["video", "6s.share0"], extra["video", "6s.share0.3"], whole["video", "6s"]]
    ((_, points),) = layer_contributions(e, t).lines
    assert [p.y for p in points] == [extra["video", "6s.layer1"], extra["video", "6s.layer2"], whole["video", "6s"]]
    ((_, points),) = learning_curves(e, task(e, "text")).lines
    expected = np.mean([extra[f"text:{r}", "6s.share0"] for r in RATINGS])
    np.testing.assert_allclose(points[0].y, expected)
    assert points[0].band is None, "folds of different ratings are different folds"


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


def test_the_page_warns_of_the_plan_rule_of_recalled_numbers_and_of_a_weak_state_of_the_art(page):
    assert "8 to 26 % of video-like and 42 to 70 % of text-like" in page
    assert "recalled, not checked" in page and "Recalled, not checked" in page
    assert "latent Dirichlet allocation, is a weak one" in page
    assert "c0" * 32 in page and "assay broad analyze" in page


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


# -- in a real browser ----------------------------------------------------------------------------------


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
    assert third.locator(".tip").inner_text() == grand_means(e, task(e, "video")).marks[-1].detail
    page.context.close()
