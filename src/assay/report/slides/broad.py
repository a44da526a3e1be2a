"""The plan's PowerPoint document (§3.1, Document): the report of a broad evaluation as slides, in the plan's order."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pandas as pd

from assay.broad.run.results import DAMAGED
from assay.core.reading import reading
from assay.report.broad import text
from assay.report.broad.charts import forest, grand_means, layer_contributions, learning_curves, per_class, per_fold
from assay.report.broad.evaluation import Evaluation, TaskShown
from assay.report.broad.layers import INTRODUCTION, layer_charts
from assay.report.broad.method import glossary_table, hardware, partition_table, published_table
from assay.report.broad.runs import changes, deviations, status_blocks, warning_blocks
from assay.report.broad.systems import checklist_table, component_table, conformance_table
from assay.report.broad.tables import class_table, contrasts_table, ranking_table, sizes
from assay.report.broad.verdicts import DIAGNOSTIC_CLAIMS, MAIN_CLAIMS, verdict_matrix
from assay.report.document import Facts, Flow, Items, Table, Text
from assay.report.slides.claims import claims_notes, claims_table
from assay.report.slides.deck import Deck
from assay.report.slides.pages import Beside, Editable

_NO_RESULT = "No run of this task has a result."


def write_slides(folder: str) -> str:
    """Write ``slides.pptx`` into the folder of an analysed evaluation; return its path. Equal input, equal bytes."""
    e = Evaluation(folder)
    with reading(folder, "an evaluation", DAMAGED):
        slides = broad_deck(e).bytes()
    e.files.write("slides.pptx", slides)
    return e.files.path("slides.pptx")


def broad_deck(e: Evaluation) -> Deck:
    """Make all slides of an evaluation, in the order of the plan's §3.1."""
    deck = Deck(
        f"Broad Evaluation: {e.name}",
        f"Broad Evaluation: {e.name} · {e.edition} · {written(e)}",
        datetime.fromisoformat(e.manifest["written"]).replace(tzinfo=None),
    )
    whole = [t for t in e.tasks if t.whole]
    _opening(deck, e)
    for task in whole:
        _results(deck, e, task)
    claims = "Plan §5.1. " + " ".join(text.CLAIMS)
    sentences = claims_notes(e, whole, MAIN_CLAIMS)
    deck.add(
        "Are the claims supported?",
        [claims_table(e, whole, MAIN_CLAIMS)],
        f"{sentences}\n{claims} {text.TWO_COMPONENTS}",
    )
    deck.add("All verdicts", [verdict_matrix(e, tuple(whole))], claims)
    deck.add(
        "Diagnostics: does it learn, does depth help?",
        [claims_table(e, whole, DIAGNOSTIC_CLAIMS)],
        f"{claims_notes(e, whole, DIAGNOSTIC_CLAIMS)}\n"
        "If 6 is not better than 4 or than 5, the plan (§5.2) says: either the task is unsuitable or the deep learning "
        "system is not performing well.",
    )
    for task in whole:
        charts = tuple(c for c in (learning_curves(e, task), layer_contributions(e, task)) if c is not None)
        if charts:
            notes = "Plan §5.4.1 and §5.4.2: wanted at the end of the phase."
            deck.add(f"{task.title}: learning curve and layers", [Beside(charts)], notes)
    layers = layer_charts(e)
    for i in range(0, len(layers), 2):
        deck.add("Layer measures", [Beside(tuple(layers[i : i + 2]))], f"Plan §5.4.2. {INTRODUCTION}")
    deck.add("Conformance and documents", [checklist_table(e), *_conformance(e)], "Plan §3.2, Validation.")
    _issues(deck, e)
    _appendix(deck, e, whole)
    return deck


def _opening(deck: Deck, e: Evaluation) -> None:
    tasks = ", ".join(f"{t.title} ({t.metric})" for t in e.tasks if t.whole)
    facts = [
        ("teams", ", ".join(f"{name} ({letter})" for letter, name in e.teams.items())),
        ("tasks", tasks),
        ("edition", f"{e.edition}; {'for comments of the teams' if e.protocol.get('draft') else 'final'}"),
        ("changes since the last edition", "; ".join(changes(e))),
        ("written", written(e)),
        ("plan", "version 4 of the Broad Evaluation Plan (2010)"),
    ]
    hashes = f"Manifest (SHA-256): {e.digest}\nCommitment to the seed: {e.manifest['commitment']}"
    if e.manifest.get("registration"):
        hashes += f"\nRules registered before the first result (SHA-256): {e.manifest['registration']}"
    deck.add(f"Broad Evaluation: {e.name}", [Facts(tuple(facts))], hashes)
    deck.add(
        "Claims", [Items(text.CLAIMS)], "Plan §5.1. The teams specified one claim; what is not claimed is theirs too."
    )
    deck.add(
        "Process",
        [Text("Blue: the evaluators; orange: the teams."), Flow("Evaluation process", text.FLOW_OF_PROCESS)],
        "Plan §3.1, Fig. 1. Reports go through drafts and comments.",
    )
    deck.add(
        "Six conditions",
        [Text("Blue: the evaluators'; orange: the team's."), Flow("The six conditions", text.FLOW_OF_CONDITIONS)],
        "Plan §5.2, Fig. 2. " + " ".join(f"{name}: {shows}" for name, _, shows in text.GLOSSARY),
    )
    components = component_table(e)
    deck.add("Components", [components], "Plan §5.3. Parameters come from files; the source of each module is hashed.")
    deck.add(
        "Metrics",
        [Items(text.METRICS)],
        "Plan §5.4.1. Recall is compared in whole numbers; ties are admitted together.",
    )
    protocol = [
        ("folds (K)", str(e.protocol["k"])),
        ("share of text to train on (P)", f"{e.protocol['p']:.0%}"),
        ("reviews that make the folds (N)", f"{e.protocol['n']:,}"),
        ("runs a task", str(len(e.tasks[0].runs))),
        ("resamples of the test set", f"{e.protocol['bootstrap']:,}"),
        ("margins (δ)", ", ".join(f"{k} {v:g}" for k, v in e.protocol["margin"].items())),
    ]
    sizes_of_tasks = partition_table(e).frame.drop(columns=["partition", "runs on it"])
    deck.add("Protocol", [Facts(tuple(protocol)), Table("Sizes", sizes_of_tasks)], text.PROTOCOL)
    machine = e.manifest.get("environment", {})
    versions = [(name, version) for name, version in machine.get("packages", {}).items()]
    logistics = [
        *hardware(e),
        ("versions", ", ".join(f"{n} {v}" for n, v in [("python", machine.get("python", "")), *versions])),
    ]
    departures = deviations(e) or ["The protocol is the plan's, without deviation."]
    deck.add(
        "Logistics, deviations and contingencies",
        [Facts(tuple(logistics)), Items(tuple(departures))],
        "Plan §6 and §8.2. Speed and space are not evaluation metrics (§5.4.1).",
    )
    deck.add("How every run went", [*_status_blocks(e)], "A run that failed is shown as such; nothing takes its place.")


def written(e: Evaluation) -> str:
    """When the evaluation was written, as ``2 January 2026``."""
    when = datetime.fromisoformat(e.manifest["written"])
    return f"{when.day} {when:%B %Y}"


def _status_blocks(e: Evaluation) -> list[Any]:
    """The status of every run, with the first few reasons: the open issues list all."""
    return [Items(block.items[:6]) if isinstance(block, Items) else block for block in status_blocks(e)]


def _results(deck: Deck, e: Evaluation, task: TaskShown) -> None:
    size = sizes(e, task)
    classes = per_class(e, task)
    folds = per_fold(e, task)
    means = grand_means(e, task)
    if classes is None or folds is None or means is None:
        deck.add(f"{task.title}: {task.metric}", [Text(_NO_RESULT), Text(size)], size)
        return
    notes = f"Plan §5.6. {size}"
    deck.add(classes.caption, [classes], f"{notes} Every classifier is trained once for each fold and class.")
    deck.add(folds.caption, [folds], f"{notes} Standard error: s/√C over {len(task.labels)} values.")
    deck.add(
        means.caption, [Editable(means)], f"{notes} {means.alt} Standard error: s/√K over {e.protocol['k']} folds."
    )
    if (contrasts := forest(e, task)) is not None:
        deck.add(contrasts.caption, [contrasts], f"{text.TWO_COMPONENTS} {text.PLAN_RULE} {contrasts.alt}")
    if (ranking := ranking_table(e, task)) is not None:
        note = Items((text.STATISTICS[-1], text.PLAN_RULE))
        deck.add(ranking.caption, [ranking, note], "Plan §3.2: no ranking combines metrics or tasks.")


def _conformance(e: Evaluation) -> list[Table | Text]:
    """How many checks of the systems passed, and those that did not; the page lists all."""
    table = conformance_table(e)
    if table is None:
        return []
    not_passed = table.frame[table.frame["status"] != "pass"]
    passed = Text(f"{len(table.frame) - len(not_passed)} of {len(table.frame)} checks of the systems passed.")
    return [passed] if not_passed.empty else [passed, Table(table.caption, not_passed)]


def _issues(deck: Deck, e: Evaluation) -> None:
    issues = [f"Changes since the last edition: {'; '.join(changes(e))}."]
    for block in status_blocks(e):
        if isinstance(block, Items):
            issues += block.items
    if e.protocol.get("draft"):
        issues.append("Draft: comments of the teams are awaited before this goes further (plan §3.1, Assess).")
    tables = [b for b in warning_blocks(e) if isinstance(b, Table)]
    warnings = [f"{len(b.frame)} kinds of warnings were noted; the page lists them." for b in tables]
    used = e.manifest.get("evaluators", {}).get("text", {}).get("classifier", {}).get("module")
    weak = [text.LDA_WARNING] if used == "topics" else []
    deck.add("Open issues and changes", [Items((*issues, *warnings, *weak))], "Plan §3.1, Document and Assess.")


def _appendix(deck: Deck, e: Evaluation, whole: list[TaskShown]) -> None:
    deck.add("Appendix: glossary of the conditions", [glossary_table()], "Plan §5.2.")
    for task in whole:
        if (table := class_table(e, task)) is not None:
            deck.add(f"Appendix: {table.caption}", [Table(table.caption, table.frame)], sizes(e, task))
        if (table := contrasts_table(e, task)) is not None:
            frame = table.frame.drop(columns="why", errors="ignore")  # the open issues give the reasons
            deck.add(f"Appendix: {table.caption}", [Table(table.caption, frame)], " ".join(text.STATISTICS))
    ratings = [t for t in e.tasks if not t.whole]
    if len(ratings) > 1:
        deck.add("Appendix: each rating by itself", [_ratings(e, ratings)], "Mean RMSE ± standard error over folds.")
    table = partition_table(e)
    hashes = "\n".join(f"{t['name']}: {t['partition']}" for t in e.manifest["tasks"])
    short = table.frame.assign(partition=table.frame["partition"].str[:12])
    notes = f"SHA-256 of folds, validation and test set; the same for all runs.\n{hashes}"
    deck.add("Appendix: partitions", [Table(table.caption, short)], notes)
    deck.add("Appendix: how to read the statistics", [Items(text.STATISTICS)], "Plan §5.6, with what its design needs.")
    deck.add(
        "Appendix: published results (recalled, not checked)",
        [Text(text.PUBLISHED_WARNING), published_table()],
        f"{text.PUBLISHED_WARNING} {text.LDA_WARNING}",
    )


def _ratings(e: Evaluation, ratings: list[TaskShown]) -> Table:
    table_rows = []
    for run in dict.fromkeys(run for task in ratings for run in task.runs):
        row = {"run": e.describe(run)}
        for task in ratings:
            means = e.table("grand", task.name, "run", "mean", "se")
            means = means[means["run"] == run]
            if e.counts(task, run) and len(means):
                row[task.labels[0]] = f"{means.iloc[0]['mean']:.3f} ± {means.iloc[0]['se']:.3f}"
            else:
                row[task.labels[0]] = e.status(task, run)[0]
        table_rows.append(row)
    return Table("Each rating: mean RMSE ± standard error over folds (lower is better)", pd.DataFrame(table_rows))
