"""Writes docs/broad-requirements.md: every requirement of the Broad Evaluation, and the tests that show it.

A test says what it shows by ``@pytest.mark.requirement("A8")``; this page is made of these marks.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
PAGE = Path(__file__).with_name("broad-requirements.md")
SECTIONS = {
    "A": "Process and scope (plan §1–3, §6–7)",
    "B": "Data and tasks (§4)",
    "C": "Partitions (Figs 3, 6, 7)",
    "D": "Protocol (Figs 3–5)",
    "E": "Conditions and runs (§5.2)",
    "F": "Modules (§5.3)",
    "G": "Metrics (§5.4.1)",
    "H": "Analysis (§5.6)",
    "I": "Claims (§5.1)",
    "J": "Conformance of systems (§3.2)",
    "K": "Contingencies (§5.3.4, §6.1, §8.2)",
    "L": "Wanted at the end of the phase (§5.4.2)",
    "M": "Report (§3.1, §5.5.2)",
}
REQUIREMENTS = {
    "A1": "The harness is light, and an adapter for a new deep system has fewer than 50 lines.",
    "A2": "There is one command for each job: run the conditions, analyse, draw the graphs, check a system.",
    "A3": "All systems and conditions of a task have the same training, validation and test sets.",
    "A4": "Results are kept, and analysing them again without training gives the same bytes.",
    "A5": "A system of the evaluators' own runs end to end.",
    "A6": "Teams can repeat the evaluation at their site and compare.",
    "A7": "Partitions come from a secret seed, to which a commitment can be published first.",
    "A8": "The labels of test instances never reach a team's code.",
    "A9": "Systems are frozen: a module whose source has changed is refused.",
    "A10": "A team has exactly one system for each task.",
    "A11": "There is one replication.",
    "A12": "Single runs can be repeated, and the others stay as they are.",
    "A13": "The middle of a phase has quantitative metrics only; its end has learning curves and layers as well.",
    "A14": "Speed and space are recorded, not ranked.",
    "B1": "Video is Hollywood2 with its 12 actions; a clip may show several.",
    "B2": "All counts of Hollywood2 that the plan gives are checked.",
    "B3": "Frames are 300 pixels wide, and their height is free.",
    "B4": "Local contrast normalisation in space and time is available.",
    "B5": "Text is OpenTable's reviews with five ratings of 1 to 5.",
    "B6": "Reviews of fewer than 30 characters are left out.",
    "B7": "All counts of OpenTable that the plan gives are checked.",
    "B8": "When one rating is predicted, the other four are absent from all data.",
    "B9": "Data sets are not shipped: there are loaders of local copies and generated twins.",
    "C1": "Stratified samples mimic the whole and have exactly the size asked for.",
    "C2": "Training, validation and test sets have the plan's sizes.",
    "C3": "Stratified folds are even in size and in every class.",
    "C4": "Only the first label of an instance counts for stratification.",
    "C5": "Folds are numbered from 1 to K, and each has a complement.",
    "C6": "Folds are made once for each task and shared by all conditions.",
    "D1": "The whole protocol runs with the plan's defaults K = 10, P = 0.7 and N = 10,000.",
    "D2": "Video keeps its own test set and has no validation set.",
    "D3": "Each rating of the text is a task of its own.",
    "D4": "A task has eleven runs, in the order of the plan's figure.",
    "D5": "A run preprocesses, learns without labels, trains a classifier on each fold and predicts the test set.",
    "D6": "Tuning uses the task's metric, and nothing is fitted again afterwards.",
    "D7": "Values of each class and fold give means over classes, then over folds, with standard errors.",
    "D8": "Nothing is learned at test time.",
    "D9": "The learner sees neither labels nor test instances.",
    "E1": "There are six conditions with the plan's names.",
    "E2": "A task with two teams has eleven runs, which are listed before they are done.",
    "E3": "Conditions are data, and those that make no sense cannot be built.",
    "E4": "All contrasts are reported, each with the question that it answers.",
    "F1": "The state of the art for video is LIBSVM, with a search over kernels.",
    "F2": "The state of the art for text is latent Dirichlet allocation as a predictor.",
    "F3": "One team's classifiers are LIBLINEAR's SVM and LIBSVM's linear ε-regression.",
    "F4": "The other team's classifiers are a windowed SVM and LIBLINEAR's logistic regression.",
    "F5": "The shallow learner is the deep one with exactly one layer.",
    "F6": "A team has one deep learner for each task.",
    "F7": "Feature extractors are HOG3D with dense sampling, and bags of words.",
    "F8": "Preprocessors use no additional data.",
    "F9": "Every module is named in the plan and replaceable, with its parameters in a file.",
    "G1": "Classifiers of video give confidences between 0 and 1.",
    "G2": "Average precision has 11 points, and recall is compared in whole numbers.",
    "G3": "MAP is the mean over classes; its mean and standard error over folds are reported.",
    "G4": "Tuning uses the same metric on the validation instances.",
    "G5": "RMSE is taken for each rating, mRMSE over ratings within a fold.",
    "G6": "Whether higher or lower is better belongs to the metric.",
    "H1": "A run has one value for each class and fold.",
    "H2": "Graph 1 shows the metric of each class.",
    "H3": "Graph 2 shows each fold, with standard errors over classes.",
    "H4": "Graph 3 shows the grand mean, with standard errors over folds.",
    "H5": "Standard errors have n − 1 in s.",
    "H6": "The tables behind the graphs are CSV files.",
    "H7": "Teams are ranked for each metric and task, with a note on whether they differ.",
    "H8": "No ranking combines metrics or tasks.",
    "I1": "The central claim compares condition 6 with condition 3.",
    "I2": "What is not claimed is said to be so.",
    "I3": "“Comparable in quality” compares condition 6 with condition 1; each verdict has its numbers.",
    "I4": "The same rule decides for every team and task.",
    "I5": "The plan's diagnosis is given where deep learning or depth does not help.",
    "J1": "The same algorithms work in at least three layers; fewer are a status.",
    "J2": "The representation of each layer can be output.",
    "J3": "Parameters tune a system, and none chooses an architecture.",
    "J4": "The report lists which documents each team has handed in.",
    "J5": "Learning occurs in all layers.",
    "J6": "Preprocessors are deterministic, treat each instance by itself and read nothing else.",
    "J7": "One function checks all rules and answers with a line for each.",
    "K1": "Systems that were trained elsewhere are accepted with a declaration, and shown as such.",
    "K2": "An evaluation can be run at a team's site, and its results taken in.",
    "K3": "The validation set can be reduced, by a stratified sample.",
    "K4": "Where a module fails, the other runs finish, and the result is shown as missing.",
    "K5": "A fit that takes too long is stopped, with the status `timeout`.",
    "L1": "Learning curves start at random weights.",
    "L2": "Measures of the learned layers, and the contribution of each, are in the report.",
    "M1": "The slides have all that the plan lists, in its order.",
    "M2": "Title slide and page say which edition this is, draft or final, and what has changed.",
    "M3": "The page has the same content as the slides.",
    "M4": "The three graphs of each task are in both.",
}
OUT_OF_SCOPE = {
    "A11": "There is exactly one replication and no setting for more; another is another folder with another seed.",
}


def shown_by() -> dict[str, list[str]]:
    """For each requirement that a test is marked with, the tests: file below ``tests/`` and name of the function."""
    shown: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.requirement" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                for name in _marks(node):
                    shown.setdefault(name, []).append(f"{path.relative_to(TESTS).as_posix()}::{node.name}")
    return shown


def _marks(function: ast.FunctionDef) -> list[str]:
    """The requirements that a test is marked with."""
    calls = [d for d in function.decorator_list if isinstance(d, ast.Call)]
    marks = [c for c in calls if ast.unparse(c.func) == "pytest.mark.requirement"]
    return [ast.literal_eval(argument) for call in marks for argument in call.args]


def page() -> str:
    """Write the page."""
    shown = shown_by()
    lines = [
        "# Requirements of the Broad Evaluation",
        "",
        "Every requirement of the Broad Evaluation Plan (Aha & Schneider 2010, version 4), with the tests that show",
        "that it is met, or the reason why it is out of scope. `python docs/write_requirements.py` makes this page",
        "from the marks of the tests; files are below `tests/`.",
    ]
    for letter, title in SECTIONS.items():
        lines += ["", f"## {letter}. {title}", "", "| | requirement | shown by |", "|---|---|---|"]
        for name, sentence in REQUIREMENTS.items():
            if name[0] == letter:
                tests = "<br>".join(f"`{test}`" for test in shown.get(name, []))
                lines.append(f"| {name} | {sentence} | {tests or 'out of scope: ' + OUT_OF_SCOPE.get(name, '')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
