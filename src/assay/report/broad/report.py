"""The report of a broad evaluation: verdicts first, then how every run went, the graphs, and what lies behind them."""

from __future__ import annotations

from assay.broad.run.results import DAMAGED, DONE
from assay.core.reading import reading
from assay.report.broad import text
from assay.report.broad.charts import forest, grand_means, layer_contributions, learning_curves, per_class, per_fold
from assay.report.broad.evaluation import Evaluation, TaskShown
from assay.report.broad.layers import layer_blocks
from assay.report.broad.method import context_blocks, method_blocks, partition_blocks, reproduction_blocks
from assay.report.broad.other_tests import other_tests_blocks
from assay.report.broad.runs import failure_blocks, settings_blocks, status_blocks, warning_blocks
from assay.report.broad.sites import site_blocks
from assay.report.broad.systems import system_blocks
from assay.report.broad.tables import class_contrasts_table, class_table, contrasts_table, ranking_table, sizes
from assay.report.broad.verdicts import DIAGNOSTIC_CLAIMS, MAIN_CLAIMS, verdict_details, verdict_matrix, verdicts
from assay.report.document import (
    Block,
    Document,
    Section,
    Text,
)
from assay.report.html import html


def write_broad_report(folder: str) -> str:
    """Write ``report.html`` into the folder of an analysed evaluation; return its path."""
    e = Evaluation(folder)
    with reading(folder, "an evaluation", DAMAGED):
        page = html(broad_document(e)).encode()
    e.files.write("report.html", page)
    return e.files.path("report.html")


def broad_document(e: Evaluation) -> Document:
    """Read an analysed evaluation into the document of its report."""
    without = sum(e.outcome(task, run)[0] not in DONE for task, run in e.records)
    whole = [t for t in e.tasks if t.whole]
    sections = [
        Section("Verdicts", (verdicts(e, whole, MAIN_CLAIMS), Text(text.TWO_COMPONENTS), *status_blocks(e))),
        Section("Diagnostics", (verdicts(e, whole, DIAGNOSTIC_CLAIMS), verdict_matrix(e, e.tasks))),
        Section("What each verdict rests on", (verdict_details(e),), folded=True),
    ]
    sections += [Section(f"{task.title}: {task.metric}", tuple(task_blocks(e, task))) for task in whole]
    apart = [t for t in e.tasks if not t.whole]
    if len(apart) > 1:
        sections.append(Section("Each rating by itself", tuple(b for t in apart for b in rating_blocks(e, t))))
    if other_sites := site_blocks(e):
        sections.append(Section("Other sites", tuple(other_sites)))
    if layers := layer_blocks(e):
        sections.append(Section("Layer measures", tuple(layers)))
    if others := other_tests_blocks(e):
        sections.append(Section("Other tests", tuple(others), folded=True))
    sections += [
        Section("Chosen settings", tuple(settings_blocks(e))),
        Section("Warnings and deviations", tuple(warning_blocks(e))),
        Section("Systems and their documents", tuple(system_blocks(e))),
        Section("Partitions", tuple(partition_blocks(e))),
        Section("Method", tuple(method_blocks())),
        Section("Context: published results", tuple(context_blocks())),
        Section("How to reproduce this", tuple(reproduction_blocks(e))),
    ]
    if failures := failure_blocks(e):
        sections.append(Section("Failures", tuple(failures)))
    return Document(
        f"Broad Evaluation: {e.name}",
        f"{len(e.teams)} teams, {len(e.manifest['tasks'])} tasks, {e.edition}, written "
        f"{str(e.manifest.get('written', ''))[:16].replace('T', ' ')} UTC",
        "complete" if not without else f"{without} of {len(e.records)} runs have no result",
        tuple(sections),
        e.manifest,
    )


def task_blocks(e: Evaluation, task: TaskShown) -> list[Block]:
    """Graphs and tables of one task."""
    available: list[Block | None] = [Text(sizes(e, task)), per_class(e, task), per_fold(e, task), grand_means(e, task)]
    available += [forest(e, task), contrasts_table(e, task), ranking_table(e, task), class_table(e, task)]
    available.append(class_contrasts_table(e, task))
    available += [learning_curves(e, task), layer_contributions(e, task)]
    blocks = [b for b in available if b is not None]
    return blocks if len(blocks) > 1 else [*blocks, Text("No run of this task has a result.")]


def rating_blocks(e: Evaluation, task: TaskShown) -> list[Block]:
    """Grand means and contrasts of one rating of several; its values are in the graphs of all ratings."""
    available = (grand_means(e, task), forest(e, task), contrasts_table(e, task))
    return [Text(f"{task.title}. {sizes(e, task)}"), *(b for b in available if b is not None)]
