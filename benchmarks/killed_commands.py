"""The commands that kills.py kills: of each a small plan, its words, and what must come of it to the byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

SYSTEM = '''
import subprocess
from assay.broad.systems.learners.guinea_pig import RandomProjections


class Leaves(RandomProjections):
    """Starts a process of its own session whenever it learns, and never ends it."""

    def __init__(self, units: tuple[int, ...] = (12, 10, 8), seed: int = 0) -> None:
        super().__init__(units, seed)

    def fit(self, X):
        subprocess.Popen(["sleep", "7777"], start_new_session=True)
        return super().fit(X)
'''
BROAD = {
    "folder": "run",
    "secret": "an open secret, for kills",
    "text": {"generated": {"count": 240, "restaurants": 20, "seed": 3}},
    "protocol": {"k": 2, "p": 0.6, "n": 60, "ratings": ["Overall"], "bootstrap": 100},
    "evaluators": {
        "text": {
            "extractor": {"module": "bag_of_words", "parameters": {"terms": 100}},
            "classifier": {"module": "topics", "parameters": {"grid": {"topics": [3]}}},
        }
    },
    "teams": [
        {
            "letter": "s",
            "name": "Leaving",
            "text": {
                "preprocessor": {"module": "bag_of_words", "parameters": {"terms": 100, "weights": "binary"}},
                "learner": "leaving_system:Leaves",
                "classifier": {"module": "linear_svr", "parameters": {"grid": {"C": [0.1]}}},
            },
        }
    ],
}
NETWORKS = """
from torch import nn


def tiny(width: int = 4):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, 3)
    )
"""
RUN: dict[str, Any] = {
    "run": "run",
    "subjects": [{"source": "small_networks:tiny", "name": f"tiny{w}", "args": {"width": w}} for w in range(3, 7)],
    "data": {"path": "data.npz"},
    "measures": [
        "norms",
        {"measure": "margins", "samples": 40},
        {"measure": "straightness", "sequences": {"camera": {"size": 16, "length": 5, "pictures": 2}}},
        {"measure": "perturbation", "perturbation": ["intra", "rotation"], "magnitudes": 4, "bootstrap": 9},
        {
            "measure": "invariance",
            "units": "channels",
            "bootstrap": 9,
            "test": {"gratings": {"size": 12, "channels": 3, "orientations": 8, "phases": 8}},
        },
    ],
}
ON_RAY: dict[str, Any] = {**RUN, "subjects": RUN["subjects"][:2], "measures": RUN["measures"][:3]}
CORPUS: dict[str, Any] = {
    "network": "conv",
    "data": {"path": "data.npz", "train": 60, "test": 30},
    "corpus": "run",
    "grid": {"depth": [1, 2], "learning_rate": [0.01, 0.003], "dropout": [0.0, 0.2], "width": 4},
    "training": {"optimizer": "adam", "batch_size": 20, "epochs": 12},
}


@dataclass(frozen=True)
class Killed:
    """A command that is killed.

    Args:
        words: The words of the command, but for its plan.
        plan: The plan.
        files: Text of the files beside the plan, by name.
        results: Everything in the run's folder that must not depend on what disturbed it, by name, to the byte.
        loaded: Modules to load before the command is forked.
        processes: Whether the command may do several things at a time.
    """

    words: tuple[str, ...]
    plan: dict[str, Any]
    files: dict[str, str]
    results: Callable[[Path], dict[str, bytes]]
    loaded: tuple[str, ...]
    processes: bool = True

    def write(self, place: Path) -> Path:
        """Write the plan, what is beside it, and a place for temporary files into a new folder."""
        place.mkdir(parents=True)
        (place / "temporary").mkdir()
        for name, text in self.files.items():
            (place / name).write_text(text)
        (place / "plan.yaml").write_text(yaml.safe_dump(self.plan))
        if "data" in self.plan:
            random = np.random.default_rng(0)
            counts = {"train": 90, "test": 45}
            images = {f"{s}_images": random.integers(0, 256, (n, 12, 12, 3), np.uint8) for s, n in counts.items()}
            np.savez(place / "data.npz", **images, **{f"{s}_labels": np.arange(n) % 3 for s, n in counts.items()})
        return place


def results_of_broad(run: Path) -> dict[str, bytes]:
    """Predictions and tables of an evaluation."""
    found = {p.name: p.read_bytes() for p in (run / "analysis").iterdir()}
    for file in sorted((run / "runs").rglob("*.npz")):
        with np.load(file) as archive:
            found[f"{file.parent.name}/{file.name}"] = archive["predictions"].tobytes()
    return found


def results_of_run(run: Path) -> dict[str, bytes]:
    """Tables, summaries and names of cells of a run; a cell's own file also holds how long it took."""
    from assay.runs.run import Run

    done = Run(str(run))
    found = {f"cells/{p.name}": b"" for p in (run / "cells").iterdir()}
    for measure in done.measures:
        found[f"{measure}.csv"] = done.table(measure).to_csv().encode()
        found[f"{measure}.summary.csv"] = done.summary(measure).to_csv().encode()
    return {**found, "status": done.manifest.status.encode()}


def results_of_corpus(run: Path) -> dict[str, bytes]:
    """The weights and the result of every trained network; the manifest also names the plan's place."""
    return {str(p.relative_to(run)): p.read_bytes() for p in (run / "networks").iterdir()}


_NETWORKS = {"small_networks.py": NETWORKS}
_RUN = ("torch", "assay.plans.check", "assay.report")
COMMANDS = {
    "run": Killed(("run",), RUN, _NETWORKS, results_of_run, _RUN),
    "corpus": Killed(("corpus", "train"), CORPUS, {}, results_of_corpus, ("assay.studies.corpus.trained",)),
    "broad": Killed(
        ("broad", "run"), BROAD, {"leaving_system.py": SYSTEM}, results_of_broad,
        ("assay.broad.plan", "assay.report.broad.report", "assay.report.slides.broad"),
    ),
    "ray": Killed(("run", "--ray"), ON_RAY, _NETWORKS, results_of_run, (*_RUN, "ray"), processes=False),
    "corpus-ray": Killed(
        ("corpus", "train", "--ray"), {**CORPUS, "grid": {"depth": [1, 2], "width": 4}}, {}, results_of_corpus,
        ("assay.studies.corpus.trained", "ray"), processes=False,
    ),
    "broad-ray": Killed(
        ("broad", "run", "--ray"), BROAD, {"leaving_system.py": SYSTEM}, results_of_broad,
        ("assay.broad.plan", "assay.report.broad.report", "assay.report.slides.broad", "ray"), processes=False,
    ),
}  # fmt: skip
