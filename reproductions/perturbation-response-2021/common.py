"""What all parts of the reproduction share: its corpora, how much of it is done, and its tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from assay.studies import CorpusPlan, load_corpus_plan

HERE = Path(__file__).parent
CORPORA = ("fashion", "cifar10")
AUGMENTED = ("invariance-vgg", "invariance-resnet")
PERTURBATIONS = ("rotation", "translation_x", "translation_y", "color_jitter")
SCORES = {"random accuracy": -1, "mean accuracy": -1, "gi folded": 1, "gi": 1}
"""The scores of a curve, and whether each is expected to rise or fall with the gap."""
BATCH = 128


@dataclass(frozen=True)
class Scale:
    """How much of it is done.

    Args:
        batches: Batches of `BATCH` inputs in a curve.
        runs: How often so many batches are drawn, for each of ``counts``.
        counts: Numbers of batches whose curves are compared.
        draws: Resamples of the networks for the intervals.
        permutations: Permutations of the networks for what the best of all measures has by chance.
        processes: Processes that share the GPU, of which more take each other's turns; 0 for this process itself.
        pictures: Inputs shown to the measures that are not curves.
        small: Whether it is done on few small networks of scikit-learn's digits, for the tests.
    """

    batches: int = 78
    runs: int = 20
    counts: tuple[int, ...] = (1, 2, 5, 10, 20, 39, 78)
    draws: int = 1000
    permutations: int = 500
    processes: int = 5
    pictures: int = 1000
    small: bool = False


SMALL = Scale(batches=1, runs=2, counts=(1,), draws=20, permutations=19, processes=0, pictures=100, small=True)


def plan_of(name: str, folder: str, small: bool) -> CorpusPlan:
    """A plan of this folder, its corpus under ``folder``; a small one has few networks and the digits."""
    plan = replace(load_corpus_plan(HERE / f"{name}.yaml"), folder=f"{folder}/{name}")
    if not small:
        return plan
    third = {"augmentation": ("none", "rotation full")} if "augmentation" in plan.grid else {"weight_decay": (0, 0.1)}
    grid = {"batch_size": (20, 40), "learning_rate": (0.01, 0.003), **third}
    digits = replace(plan.data, path=Path(folder) / "digits.npz", train=120, test=60)
    fixed = {**plan.fixed, "depth": 1, "width": 4, "epochs": 1, "stop_accuracy": None, "precision": "float32"}
    return replace(plan, data=digits, grid=grid, fixed=fixed, device="cpu", at_once=2)


def write_digits(folder: str) -> None:
    """Write scikit-learn's digits, 8×8, in three equal channels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pictures = (digits.images * (255 / 16)).astype(np.uint8)[..., None].repeat(3, 3)
    parts = {"train": slice(0, 1200), "test": slice(1200, None)}
    arrays = {f"{s}_images": pictures[p] for s, p in parts.items()}
    arrays |= {f"{s}_labels": digits.target[p] for s, p in parts.items()}
    Path(folder).mkdir(parents=True, exist_ok=True)
    np.savez(Path(folder) / "digits.npz", **arrays)  # type: ignore[arg-type]


def write(out: Path, name: str, table: pd.DataFrame) -> None:
    """Write a table."""
    (out / "tables").mkdir(parents=True, exist_ok=True)
    table.to_csv(out / "tables" / f"{name}.csv", index=False, float_format="%.9g")


def read(out: Path, name: str) -> pd.DataFrame:
    """Read a table."""
    return pd.read_csv(out / "tables" / f"{name}.csv")
