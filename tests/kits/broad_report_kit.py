"""A made-up evaluation with everything a report must show: two teams, video and text, failures and odd names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from assay.broad.analysis.analysis import Analysis, RunResult, TaskTruth, analyze_results
from assay.broad.conditions import CONTRASTS, run_specs
from assay.broad.metrics import METRICS
from assay.broad.run.results import DONE, FoldInfo, Results, RunRecord

HOSTILE = '<script>window.hacked = 1</script> & "quotes" $x_1$ \x1b[31m'
CLASSES = (
    "AnswerPhone", "DriveCar", "Eat", "FightPerson", "GetOutCar", "HandShake", "HugPerson", "Kiss", "Run", "SitDown",
    "SitUp", HOSTILE,
)  # fmt: skip
RATINGS = ("Overall", "Food", "Noise")
K = 5
RUNS = [spec.key for spec in run_specs(("n", "s"))]
STATUS = {
    ("video", "3s"): ("failed", f"RuntimeError: {HOSTILE}", "Traceback (most recent call last):\n  boom " + HOSTILE),
    ("video", "5n"): ("non-conforming", "2 layers; the plan asks for 3 or more", ""),
    ("video", "6n"): ("pre-trained", "declared", ""),
    ("text:Food", "3n"): ("not applicable", "topics need counts, and this preprocessor gives real numbers", ""),
    ("text:Noise", "2s"): ("missing", "not run yet", ""),
}
TASKS = {"video": CLASSES} | {f"text:{rating}": (rating,) for rating in RATINGS}
EXTRA = (".layer1", ".layer2", ".share0", ".share0.3")
BEST = 7.654321  # what the failed run must never be shown with


def make_evaluation(folder: Path, teams: int = 2, text: bool = True) -> str:
    """Write manifest, records, folds and analysis into a folder; return it."""
    results = Results(str(folder))
    tasks = {name: labels for name, labels in TASKS.items() if text or name == "video"}
    results.write_manifest(_manifest(teams, list(tasks)))
    letters = ("n", "s")[:teams]
    runs = [r for r in RUNS if r[1:] in ("", *letters)]
    for task, labels in tasks.items():
        for run in runs:
            status, reason, trace = STATUS.get((task, run), ("done", "", ""))
            if status == "missing":
                continue
            layers = ["one", "two", "three"][: 2 if status == "non-conforming" else 3] if run[0] in "56" else []
            record = RunRecord(task, run, status, reason, _hash(task), layers=layers, traceback=trace)
            results.write_run(record)
            if status in DONE:
                for fold in range(1, K + 1):
                    chosen = [{"C": float(2 ** (fold % 3)), "kernel": "chi2"} for _ in labels]
                    if run == "1" and task == "video":
                        chosen[0] = {"C": 32.0, "kernel": "linear"}
                    warnings = ["Eat: one class only in the fold: constant scores"] if fold < 3 and run == "6s" else []
                    arrays = {"predictions": np.zeros((2, len(labels)))}
                    info = FoldInfo(f"{task}{run}{fold}", chosen, [0.5] * len(labels), warnings, 1.0)
                    results.write_fold(task, run, fold, arrays, info)
    _analysis(runs, tasks).write(results.folder)
    return str(folder)


def _hash(task: str) -> str:
    return f"{sum(map(ord, task)):064x}"


def _manifest(teams: int, tasks: list[str]) -> dict[str, Any]:
    def module(name: str, **parameters: Any) -> dict[str, Any]:
        return {"module": name, "parameters": parameters, "source": "ab" * 32}

    def parts(learner: str) -> dict[str, Any]:
        return {
            "preprocessor": module("grey_clips", width=300), "learner": module(learner, units=[300, 200, 100], seed=0),
            "classifier": module("linear_svm"), "trained_from": None, "declaration": "",
        }  # fmt: skip

    letters = ("n", "s")[:teams]
    runs = [r for r in RUNS if r[1:] in ("", *letters)]
    described = [
        {
            "name": "video", "modality": "video", "labels": list(CLASSES), "data": "generated clips",
            "instances": 1707, "training": 823, "validation": 0, "test": 884, "partition": _hash("video"),
            "runs": [*runs, *(f"{runs[-1]}{key}" for key in EXTRA)],
        }
    ]  # fmt: skip
    for rating in RATINGS:
        described.append(
            {
                "name": f"text:{rating}", "modality": "text", "labels": [rating], "data": "generated reviews",
                "instances": 20_000, "training": 10_000, "validation": 4_000, "test": 6_000,
                "partition": _hash(f"text:{rating}"), "runs": [*runs, *(f"{runs[-1]}{key}" for key in EXTRA)],
            }
        )  # fmt: skip
    net_scale = {"letter": "n", "name": "Net-Scale", "documents": {"architecture": "docs/n.pdf"},
                 "parts": {"video": parts("cdbn") | {"trained_from": "n.learner", "declaration": "by the protocol, N"},
                           "text": parts("denoising_autoencoder")}}  # fmt: skip
    stanford = {"letter": "s", "name": f"Stanford {HOSTILE}",
                "documents": {"architecture": "a.pdf", "pseudocode": "b.pdf", "example": "c.pdf", "source": "src/"},
                "parts": {"video": parts("isa"), "text": parts("sparse_autoencoder")}}  # fmt: skip
    hardware = {"platform": "Linux", "processor": "a processor", "cores": 2, "memory_bytes": 2**34, "gpus": []}
    return {
        "written": "2026-01-02T03:04:05+00:00",
        "commitment": "c0" * 32,
        "protocol": {
            "k": K, "p": 0.7, "n": 10_000, "ratings": None, "validation_cap": 4_000, "phase": "end", "limit_s": 600.0,
            "margin": {"MAP": 0.02, "RMSE": 0.02}, "bootstrap": 1000, "iteration": 2, "draft": True,
        },
        "tasks": [task for task in described if task["name"] in tasks],
        "teams": [net_scale, stanford][:teams],
        "evaluators": {
            "video": {"extractor": module("bag_of_features"), "classifier": module("kernel_svm")},
            "text": {"extractor": module("bag_of_words"), "classifier": module("topics")},
        },
        "plan": {"folder": "here"},
        "isolation": "private namespaces",
        "environment": {"python": "3.11", "packages": {"assay": "0.1.0"}, "git": {"commit": "d" * 40, "dirty": True},
                        "command": ["assay", "broad", "run", "plan.yaml"], "hardware": hardware},
    }  # fmt: skip


def _analysis(runs: list[str], tasks: dict[str, tuple[str, ...]]) -> Analysis:
    """The real analysis of made-up predictions; the failed run has left values, which a report must not show."""
    rng = np.random.default_rng(0)
    truths, results, extra = [], [], []
    for task, labels in tasks.items():
        video = task == "video"
        targets = rng.random((40, len(labels))) < 0.3 if video else rng.integers(1, 6, (40, 1)).astype(float)
        targets[0] = True if video else 1  # no class without a positive
        truths.append(TaskTruth(task, METRICS["MAP" if video else "RMSE"], labels, targets))
        for run in (*runs, *(f"{runs[-1]}{key}" for key in EXTRA)):
            status, reason, _ = STATUS.get((task, run), ("done", "", ""))
            spread = 0.9 - 0.08 * int(run[0]) + 0.1 * ("." in run)
            noisy = targets + spread * rng.normal(size=(K, *targets.shape))
            predictions = np.clip(noisy, 0, 1) if video else np.clip(noisy, 1, 5)
            one = RunResult(
                task, run, int(run[0]), run[1:2] or None, status, predictions if status in DONE else None, reason
            )
            (extra if "." in run else results).append(one)
    found = analyze_results(results, truths, CONTRASTS, bootstrap=20, extra=extra)
    left = [{"task": "video", "run": "3s", "label": c, "fold": 1, "value": BEST} for c in CLASSES]
    tables = dict(found.tables)
    tables["values"] = pd.concat([tables["values"], pd.DataFrame(left)], ignore_index=True)
    for name in ("by_fold", "grand"):
        row = pd.DataFrame([{"task": "video", "run": "3s", "fold": 1, "mean": BEST, "se": 0.0}])
        tables[name] = pd.concat([tables[name], row[[c for c in row if c in tables[name]]]], ignore_index=True)
    return Analysis(tables)
