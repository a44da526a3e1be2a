"""The report of a broad evaluation: verdicts first, then how every run went, the graphs, and what lies behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from assay.broad.conditions import CONTRASTS
from assay.broad.run.results import DONE, Results
from assay.broad.systems.team import system_hash
from assay.report.broad import text
from assay.report.broad.evaluation import Evaluation, TaskShown, rows
from assay.report.broad.figures import (
    difference,
    forest,
    grand_means,
    layer_contributions,
    learning_curves,
    per_class,
    per_fold,
)
from assay.report.document import (
    Block,
    Code,
    Document,
    Facts,
    Failure,
    Findings,
    Flow,
    Items,
    Section,
    Strip,
    Table,
    Text,
)
from assay.report.html import html

PLAN = {"k": 10, "p": 0.7, "n": 10_000, "validation_cap": None}  # what the plan sets (§5.5.1)
NOTES = {
    "difference": "mean over folds of the difference; positive: the first condition is better",
    "95 % interval": "two components: variance over folds and over resampled test sets",
    "p": "two-sided, of the two-component interval",
    "p (Holm)": "adjusted for the planned contrasts of the task",
    "plan rule": "whether the intervals mean ± standard error over folds overlap; raises many false alarms",
    "p (Benjamini–Hochberg)": "adjusted so that at most 5 % of what is called significant is false",
    "not inferior": "whether the lower end of the interval is above −δ",
    "δ": "margin declared before the run",
    "smallest detectable": "true difference that a single test at 5 % finds with a probability of 80 %",
}
MAIN_CLAIMS = ("central", "comparable in quality", "non-inferior")
DIAGNOSTIC_CLAIMS = ("deep learning helps", "depth helps")
_TONE = {"supported": "good", "not supported": "bad"}


def write_broad_report(folder: str) -> str:
    """Write ``report.html`` into the folder of an analysed evaluation; return its path."""
    e = Evaluation(folder)
    e.files.write("report.html", html(broad_document(e)).encode())
    return e.files.path("report.html")


def broad_document(e: Evaluation) -> Document:
    """The whole report."""
    without = sum(e.outcome(task, run)[0] not in DONE for task, run in e.records)
    main = [t for t in e.tasks if t.whole]
    sections = [
        Section("Verdicts", (verdicts(e, main, MAIN_CLAIMS), Text(text.TWO_COMPONENTS), *status_blocks(e))),
        Section("Diagnostics", (verdicts(e, main, DIAGNOSTIC_CLAIMS), verdict_matrix(e, e.tasks))),
    ]
    sections += [Section(f"{task.title}: {task.metric}", tuple(task_blocks(e, task))) for task in main]
    apart = [t for t in e.tasks if not t.whole]
    if len(apart) > 1:
        sections.append(Section("Each rating by itself", tuple(b for t in apart for b in rating_blocks(e, t))))
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


# -- findings -------------------------------------------------------------------------------------------


def verdicts(e: Evaluation, tasks: list[TaskShown], claims: tuple[str, ...]) -> Block:
    """A sentence for each of these claims, each task and each team, with its numbers."""
    items = []
    for claim in claims:
        for task in tasks:
            for row in rows(e.table("claims", task.name, "team", "claim", "verdict", "sentence")):
                if row["claim"] == claim:
                    asked = f"{task.title} · {e.team(row['team'])} · {claim_name(row)}: {row['verdict']}"
                    items.append((_TONE.get(row["verdict"], "open"), asked, row["sentence"]))
    return Findings(tuple(items)) if items else Text("No claim could be judged: the analysis holds none.")


def verdict_matrix(e: Evaluation, tasks: tuple[TaskShown, ...]) -> Block:
    """All verdicts: teams and tasks by claims."""
    table = e.table("claims", None, "team", "claim", "verdict", "sentence")
    names = list(dict.fromkeys(claim_name(row) for row in rows(table)))
    made = []
    for task in tasks:
        mine = rows(table[table["task"] == task.name])
        for team in dict.fromkeys(row["team"] for row in mine):
            found = {claim_name(row): row for row in mine if row["team"] == team}
            cells = [
                (found[n]["verdict"], _TONE.get(found[n]["verdict"], "open"), found[n]["sentence"])
                if n in found
                else ("–", "", "")
                for n in names
            ]
            made.append((f"{task.title} · {e.team(team)}", tuple(cells)))
    return Strip("Verdicts on all claims", tuple(names), tuple(made))


def claim_name(row: dict[str, Any]) -> str:
    """Such as ``central (6 v 3)``."""
    return f"{row['claim']} ({row['contrast']})" if row.get("contrast") else str(row["claim"])


def status_blocks(e: Evaluation) -> list[Block]:
    """How every run of every task went, and why where it did not simply go well."""
    tasks = [t for t in e.tasks if any((t.name, run) in e.records for run in t.runs)]
    runs = tuple(dict.fromkeys(run for task in tasks for run in task.runs))
    made, reasons = [], []
    for task in tasks:
        cells = []
        for run in runs:
            status, why = e.status(task, run) if run in task.runs else ("no such run", "")
            tone = "good" if status == "done" else "open" if status in DONE or run not in task.runs else "bad"
            cells.append((status, tone, why))
            if status != "done" and run in task.runs:
                reasons.append(f"{task.title}, {e.describe(run)}: {status}{': ' + why if why else ''}.")
        made.append((task.title, tuple(cells)))
    for task_name, run in e.records:  # learning curves and layers
        status, why = e.outcome(task_name, run)
        if "." in run and status != "done":
            reasons.append(f"{task_name}, {run}: {status}{': ' + why if why else ''}.")
    blocks: list[Block] = [Strip("How every run went", runs, tuple(made))]
    return [*blocks, Items(tuple(reasons))] if reasons else blocks


def task_blocks(e: Evaluation, task: TaskShown) -> list[Block]:
    """Graphs and tables of one task."""
    found: list[Block | None] = [Text(sizes(e, task)), per_class(e, task), per_fold(e, task), grand_means(e, task)]
    found += [forest(e, task), contrasts_table(e, task), ranking_table(e, task), class_table(e, task)]
    found.append(class_contrasts_table(e, task))
    found += [learning_curves(e, task), layer_contributions(e, task)]
    blocks = [b for b in found if b is not None]
    return blocks if len(blocks) > 1 else [*blocks, Text("No run of this task has a result.")]


def rating_blocks(e: Evaluation, task: TaskShown) -> list[Block]:
    """One rating of several: grand means and contrasts; its values are in the graphs of all ratings."""
    found = (grand_means(e, task), forest(e, task), contrasts_table(e, task))
    return [Text(f"{task.title}. {sizes(e, task)}"), *(b for b in found if b is not None)]


def sizes(e: Evaluation, task: TaskShown) -> str:
    """How much everything rests on."""
    known = next((t for t in e.manifest["tasks"] if t["name"] == task.name), None)
    kinds = ("class", "classes") if task.modality == "video" else ("rating", "ratings")
    what = f"{task.metric}, {task.better}; {len(task.labels)} {kinds[len(task.labels) > 1]}"
    if known is None:
        return f"{what}, each with a partition of its own; {e.protocol['k']} folds."
    left = f", {known['validation']:,} more to tune on" if known["validation"] else ""
    return (
        f"{what}; {known['training']:,} training instances in {e.protocol['k']} folds{left}; {known['test']:,} test "
        f"instances ({known['data']})."
    )


def contrasts_table(e: Evaluation, task: TaskShown) -> Table | None:
    """All contrasts in numbers."""
    table = e.table("contrasts", task.name, "contrast", "team", "difference", "low", "high")
    if table.empty:
        return None
    made = []
    for row in rows(table):
        none = pd.isna(row["difference"])
        shown: dict[str, Any] = {"contrast": row["contrast"], "team": e.team(row["team"]) or "–"}
        shown["difference"] = "undecided" if none else f"{row['difference']:+.3f}"
        shown["95 % interval"] = difference(row).partition(" (")[2].rstrip(")") or "–"
        for column, name in (("p", "p"), ("p_holm", "p (Holm)")):
            if column in row:
                shown[name] = "–" if pd.isna(row[column]) else p_value(row[column])
        for column, name in (("plan_rule", "plan rule"), ("noninferior", "not inferior")):
            if column in row:
                shown[name] = "–" if none else said(row[column])
        for column, name in (("margin", "δ"), ("mdd", "smallest detectable")):
            if column in row:
                shown[name] = "–" if pd.isna(row[column]) else f"{row[column]:.3f}"
        if table.get("reason", pd.Series(dtype=str)).any():
            shown["why"] = row["reason"] or "–"
        made.append(shown)
    return Table(f"{task.title}: contrasts", pd.DataFrame(made), NOTES, e.csv("contrasts"))


def class_contrasts_table(e: Evaluation, task: TaskShown) -> Table | None:
    """Planned contrasts class by class, to explore."""
    table = e.table("labels", task.name, "contrast", "team", "label", "difference", "low", "high", "p", "p_bh")
    made = [
        {
            "contrast": row["contrast"],
            "team": e.team(row["team"]),
            "class" if task.modality == "video" else "rating": row["label"],
            "difference": f"{row['difference']:+.3f}",
            "95 % interval": f"{row['low']:+.3f} to {row['high']:+.3f}",
            "p": p_value(row["p"]),
            "p (Benjamini–Hochberg)": p_value(row["p_bh"]),
        }
        for row in rows(table)
        if str(row["contrast"]).startswith("6")
    ]
    if not made:
        return None
    return Table(f"{task.title}: contrasts one by one (exploratory)", pd.DataFrame(made), NOTES, e.csv("labels"))


def ranking_table(e: Evaluation, task: TaskShown) -> Table | None:
    """The teams by condition 6; one ranking for each metric and task."""
    table = e.table("rankings", task.name, "rank", "team", "value")
    if table.empty:
        return None
    made = []
    for row in rows(table):
        none = pd.isna(row["value"])
        shown: dict[str, Any] = {"rank": "–" if none or pd.isna(row["rank"]) else int(row["rank"])}
        shown["team"] = e.team(row["team"])
        if "run" in row:
            shown["run"] = row["run"]
        metric = row.get("metric") or task.metric
        shown[f"mean {metric}"] = "no result" if none else f"{row['value']:.3f}"
        for column, name in (("tied", "tied"), ("plan_rule", "plan rule")):
            if column in row:
                shown[name] = said(row[column]) or "–"
        if "stability" in row:
            shown["order kept in"] = "–" if pd.isna(row["stability"]) else f"{row['stability']:.0%} of resamples"
        made.append(shown)
    return Table(f"{task.title}: ranking by condition 6 ({task.better})", pd.DataFrame(made), {}, e.csv("rankings"))


def class_table(e: Evaluation, task: TaskShown) -> Table | None:
    """Mean over folds of each class and run; a run without a result has its status instead."""
    table = e.table("values", task.name, "run", "label", "value")
    if table.empty:
        return None
    means = table.assign(run=table["run"].astype(str)).groupby(["label", "run"], sort=False)["value"].mean()
    made = []
    for label in task.labels:
        row: dict[str, Any] = {"class" if task.modality == "video" else "rating": label}
        for run in task.runs:
            value = means.get((label, run), np.nan)
            row[run] = e.status(task, run)[0] if not e.counts(task, run) else "–" if pd.isna(value) else f"{value:.3f}"
        made.append(row)
    caption = f"{task.title}: mean {task.one} over {e.protocol['k']} folds"
    return Table(caption, pd.DataFrame(made), {run: e.describe(run) for run in task.runs}, e.csv("values"))


# -- what lies behind -----------------------------------------------------------------------------------


def settings_blocks(e: Evaluation) -> list[Block]:
    """What was chosen on the validation instances, by fold; one row where all classes chose alike."""
    labels = {t["name"]: t["labels"] for t in e.manifest["tasks"]}
    made = []
    for (task, run), folds in e.folds.items():
        chosen = {i: [_settings(c) for c in info.chosen] for i, info in folds.items()}
        if not chosen or "." in run:
            continue
        alike = all(len(set(c)) == 1 for c in chosen.values())
        for j, label in enumerate(["all"] if alike else labels[task]):
            row = {"task": task, "run": run, "class": label}
            made.append(row | {f"fold {i}": c[j] if j < len(c) else "–" for i, c in chosen.items()})
    if not made:
        return [Text("No fold is done.")]
    return [
        Text("Settings of each classifier, chosen by the task's metric on the validation instances of its fold."),
        Table("Settings by fold", pd.DataFrame(made).fillna("–")),
    ]


def warning_blocks(e: Evaluation) -> list[Block]:
    """What a reader should know."""
    noted: dict[tuple[str, str, str], list[int]] = {}
    for (task, run), folds in e.folds.items():
        for i, info in folds.items():
            for warning in info.warnings:
                noted.setdefault((task, run, warning), []).append(i)
    made = [
        {"task": task, "run": run, "warning": warning, "folds": ", ".join(map(str, sorted(set(folds))))}
        for (task, run, warning), folds in noted.items()
    ]
    blocks: list[Block] = [Items(tuple(deviations(e)) or ("The protocol is the plan's, without deviation.",))]
    if made:
        return [*blocks, Table("Warnings of the runs", pd.DataFrame(made))]
    return [*blocks, Text("No run gave a warning.")]


def deviations(e: Evaluation) -> list[str]:
    """Where this evaluation departs from the plan, and which contingencies were used."""
    words = {
        "k": "folds",
        "p": "as the share of text to train on",
        "n": "reviews to make the folds of",
        "validation_cap": "left-over reviews at most to tune on",
    }
    found = [
        f"{e.protocol[key]} {words[key]} (the plan: {'all' if planned is None else planned})."
        for key, planned in PLAN.items()
        if key in e.protocol and e.protocol[key] != planned
    ]
    if e.protocol.get("ratings"):
        found.append(f"Only these ratings: {', '.join(e.protocol['ratings'])}.")
    if e.protocol.get("limit_s"):
        found.append(f"A fit may take {e.protocol['limit_s']:g} s at most.")
    for team in e.manifest["teams"]:
        for modality, parts in team["parts"].items():
            if parts.get("trained_from"):
                found.append(
                    f"{team['name']}, {modality}: the learner came pre-trained (declared: {parts['declaration']})."
                )
    for (task, run), record in e.records.items():
        if record.partition and record.partition != _partition(e, task):
            found.append(f"{task}/{run} was run on another partition, {record.partition[:12]}…: not comparable.")
    return found


def component_table(e: Evaluation) -> Table:
    """Who brought which module, with its parameters and the hash of its source."""
    made = []
    parties = [("evaluators", e.manifest["evaluators"]), *((t["name"], t["parts"]) for t in e.manifest["teams"])]
    for who, by_modality in parties:
        for modality, parts in by_modality.items():
            for role, module in parts.items():
                if isinstance(module, dict):
                    made.append(
                        {
                            "who": who,
                            "task": modality,
                            "part": role,
                            "module": module["module"],
                            "parameters": _settings(module["parameters"]),
                            "source": module["source"][:12],
                        }
                    )
    return Table("Components", pd.DataFrame(made), {"source": "first digits of the SHA-256 of its source"})


def checklist_table(e: Evaluation) -> Table:
    """What each team handed in, and how deep its learners are (the plan, §3.2)."""
    made = []
    for team in e.manifest["teams"]:
        given = team.get("documents") or {}
        for name in (*text.DOCUMENTS, *(n for n in given if n not in text.DOCUMENTS)):
            place = given.get(name)
            row = {"team": team["name"], "item": text.DOCUMENTS.get(name, name)}
            made.append(row | {"status": "handed in" if place else "missing", "detail": place or "–"})
        for modality, parts in team["parts"].items():
            layers = next(
                (r.layers for (task, run), r in e.records.items()
                 if task.partition(":")[0] == modality and run == f"6{team['letter']}" and r.layers), None,
            )  # fmt: skip
            row = {"team": team["name"], "item": f"{modality}: the same algorithms in at least three layers"}
            enough = "not known" if layers is None else "three or more" if len(layers) >= 3 else "non-conforming"
            made.append(row | {"status": enough, "detail": "–" if layers is None else ", ".join(layers)})
            came = (
                ("pre-trained (declared)", parts["declaration"]) if parts.get("trained_from") else ("trained here", "–")
            )
            row = {"team": team["name"], "item": f"{modality}: learner"}
            made.append(row | {"status": came[0], "detail": came[1]})
    return Table("Submission checklist", pd.DataFrame(made))


def conformance_table(e: Evaluation) -> Table | None:
    """What ``assay broad check`` found of the systems; of those that have changed since, that it is out of date."""
    checks = Results(e.files.url).read_checks()
    if checks is None or checks.empty:
        return None
    systems = {
        (team["name"], modality): system_hash(parts)[:12]
        for team in e.manifest["teams"]
        for modality, parts in team["parts"].items()
    }
    made = []
    for row in rows(checks):
        system = row.pop("system")
        now = systems.get((row["team"], row["task"]))
        made.append(row if system == now else row | {"status": "out of date"})
    notes = {"status": "out of date: source or parameters have changed since it was checked"}
    return Table("Conformance (the plan, §3.2)", pd.DataFrame(made), notes, "conformance.csv")


def system_blocks(e: Evaluation) -> list[Block]:
    """Components, documents and, where it was checked, conformance."""
    conformance = conformance_table(e)
    return [component_table(e), checklist_table(e), *([] if conformance is None else [conformance])]


def partition_table(e: Evaluation) -> Table:
    """Sizes and hashes, and whether all runs carry the same hash."""
    made = []
    for task in e.manifest["tasks"]:
        mine = [r for (name, _), r in e.records.items() if name == task["name"] and r.partition]
        same = sum(r.partition == task["partition"] for r in mine)
        made.append(
            {
                "task": task["name"],
                "training": task["training"],
                "validation": task["validation"],
                "test": task["test"],
                "runs on it": f"{same} of {len(mine)}",
                "partition": task["partition"],
            }
        )
    return Table("Partitions", pd.DataFrame(made), {"partition": "SHA-256 of folds, validation and test set"})


def partition_blocks(e: Evaluation) -> list[Block]:
    """Commitment and hashes."""
    return [
        Text(
            "Partitions are drawn from a secret seed. Its commitment can be published before the evaluation; when the "
            "seed is revealed, anyone can verify it and draw the same partitions."
        ),
        Facts((("commitment (SHA-256 of the seed)", str(e.manifest["commitment"])), ("manifest", e.digest))),
        partition_table(e),
    ]


def glossary_table() -> Table:
    """The six conditions."""
    return Table("The six conditions", pd.DataFrame(text.GLOSSARY, columns=["condition", "made of", "what it shows"]))


def method_blocks() -> list[Block]:
    """Conditions, metrics, protocol and statistics."""
    flow = Flow("How a prediction is made (blue: the evaluators', orange: the team's)", text.FLOW_OF_CONDITIONS)
    asked = Facts((("", "Contrasts"), *((c.name, c.question) for c in CONTRASTS)))
    said = (Text(text.PROTOCOL), Items(text.METRICS), Items(text.STATISTICS))
    return [Items(text.CLAIMS), flow, glossary_table(), asked, *said]


def published_table() -> Table:
    """Numbers recalled from papers."""
    columns = ["system", "data", "recalled, not checked", "source"]
    return Table("Published results (recalled, not checked)", pd.DataFrame(text.PUBLISHED, columns=columns))


def context_blocks() -> list[Block]:
    """What others reported, with due warnings."""
    return [Text(text.PUBLISHED_WARNING), published_table(), Text(text.LDA_WARNING)]


def reproduction_blocks(e: Evaluation) -> list[Block]:
    """Commands, versions and machine."""
    machine = e.manifest.get("environment", {})
    command = " ".join(str(word) for word in machine.get("command", []))
    lines = [
        "# the recorded plan, with the same seed and data",
        "assay broad run plan.yaml",
        "# the tables again from the recorded predictions, without training",
        f"assay broad analyze {e.name}",
        "# run by run against the folder of another site",
        f"assay broad compare {e.name} OTHER",
    ]
    facts = [("command", command), ("python", str(machine.get("python", "")))]
    facts.append(("packages", ", ".join(f"{k} {v}" for k, v in machine.get("packages", {}).items())))
    if machine.get("git"):
        dirty = " with changes" if machine["git"].get("dirty") else ""
        facts.append(("code", f"{machine['git']['commit'][:12]}{dirty}"))
    facts += [(name, str(value)) for name, value in hardware(e)]
    return [Code("\n".join(lines)), Facts(tuple((k, v) for k, v in facts if v))]


def hardware(e: Evaluation) -> list[tuple[str, str]]:
    """The machine."""
    h = e.manifest.get("environment", {}).get("hardware", {})
    memory = f"{h['memory_bytes'] / 2**30:.0f} GiB" if h.get("memory_bytes") else ""
    found = [
        ("platform", str(h.get("platform", ""))),
        ("processor", f"{h.get('processor', '')}, {h.get('cores', '?')} cores" if h else ""),
        ("memory", memory),
        ("accelerators", ", ".join(h.get("gpus", [])) or "none"),
    ]
    return [row for row in found if row[1]]


def failure_blocks(e: Evaluation) -> list[Block]:
    """Runs that ended in an error, with all that is known of it."""
    return [
        Failure(f"{task} × {run}: {record.status}", record.reason, record.traceback)
        for (task, run), record in e.records.items()
        if record.traceback
    ]


def said(value: Any) -> str:
    """A cell in words: yes, no, or as it is.

    >>> said(True), said(np.bool_(False)), said(float("nan")), said("with 6n")
    ('yes', 'no', '–', 'with 6n')
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return "–" if value is None or pd.isna(value) else str(value)


def p_value(p: float) -> str:
    """A p value, never as 0.

    >>> p_value(0.0312), p_value(1e-9)
    ('0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _settings(given: dict[str, Any]) -> str:
    return ", ".join(f"{k} = {f'{v:g}' if isinstance(v, float) else v}" for k, v in given.items()) or "–"


def _partition(e: Evaluation, task: str) -> str:
    return next(str(t["partition"]) for t in e.manifest["tasks"] if t["name"] == task)
