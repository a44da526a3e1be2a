"""A small world for plans: data of every kind, a module of networks, a trained corpus, and plans that are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from assay.studies.corpus.plan import load_corpus_plan
from assay.studies.corpus.trained import train_corpus

MODULE = """
import torch
from torch import nn

def tiny(channels: int = 3, width: int = 4, classes: int = 3):
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(4 * width, classes),
    )

def halved(pictures):
    return pictures / 2

def train(learning_rate: float, width: int = 4, seed: int = 0, callback=None):
    torch.manual_seed(seed)
    return tiny(width=width), {"loss": learning_rate}

def weight_norm(subject):
    return float(sum(p.norm() for p in subject.module.parameters()))
"""
TINY = {"source": "fuzz_networks:tiny", "name": "tiny"}
DATA = {"path": "data.npz"}
CAMERA = {"camera": {"size": 12, "length": 5, "pictures": 1, "motions": ["translation"]}}
CORPUS: dict[str, Any] = {
    "network": "conv",
    "data": {"path": "data.npz", "train": 24, "test": 12},
    "corpus": "networks",
    "grid": {"depth": [1, 2], "learning_rate": [0.01, 0.003], "width": 4},
    "training": {"optimizer": "adam", "batch_size": 12, "epochs": 1},
}
MEASURES: dict[str, dict[str, Any]] = {
    "straightness": {"measure": "straightness", "sequences": {**CAMERA, "control": ["natural", "pixel_fade"]}},
    "frames": {
        "measure": "straightness", "layers": ["*"], "batch_size": 4,
        "sequences": {"folder": "clips", "size": [8, 8], "color": "rgb", "start": 0, "stop": 4, "step": 1},
    },
    "array": {"measure": "straightness", "sequences": {"path": "clips.npy"}},
    "turning": {
        "measure": "straightness", "layers": -1,
        "sequences": {"objects": {"size": 10, "length": 4, "count": 2, "color": "rgb", "turn_deg": 2.0, "seed": 1}},
    },
    "gratings": {
        "measure": "invariance", "units": "channels", "bootstrap": 5, "firing_rate": 0.05,
        "test": {"gratings": {"size": 8, "frequencies": [2.0, 8.0], "orientations": 4, "phases": 4, "channels": 3}},
    },
    "video": {
        "measure": "invariance", "bootstrap": 5, "units": "centre", "layers": ["0", "1"], "firing_rate": 0.1,
        "test": {
            "video": {
                "clips": {
                    "moved": {"moving": {
                        "motion": "translation", "size": 16, "length": 6, "clips": 1, "pictures": 1, "color": "rgb",
                        "speed": 1.0, "seed": 2,
                    }},
                },
                "reach": 2, "patch": 8, "places": 4, "whitened": True,
            }
        },
    },
    "parametric": {
        "measure": "invariance", "bootstrap": 5, "units": "channels", "firing_rate": 0.2,
        "test": {
            "parametric": {
                "images": {"path": "pictures", "size": 8, "color": "rgb", "count": 6},
                "families": [
                    {"transformation": "rotation", "magnitudes": [0, 90.0]},
                    {"transformation": "blur", "magnitudes": [0, 1.5]},
                ],
            }
        },
    },
    "perturbation": {
        "measure": "perturbation", "perturbation": ["intra", {"mixup": "inter", "high": 0.4}, {"noise": {}}],
        "layer": [0, 1], "magnitudes": 3, "samples": 12, "bootstrap": 5, "batch_size": 12,
        "nonlinearity": "after", "fold": False,
    },
    "rotated": {
        "measure": "perturbation", "perturbation": {"function": "rotation", "low": -10.0, "high": 10.0},
        "magnitudes": [0.0, 5.0], "bootstrap": 5, "data": {"path": "classes", "size": 8, "color": "rgb", "limit": 9},
    },
    "margins": {"measure": "margins", "percentiles": [1.0, 50.0], "samples": 12, "bootstrap": 5, "layers": ["0"]},
    "clusters": {"measure": "clusters", "rounds": 2, "images": 4, "pool": 2, "bootstrap": 3},
    "sharpness": {
        "measure": "sharpness", "kinds": ["sigma"], "drop": 0.1, "draws": 1, "ascent": 1, "steps": 2, "samples": 12,
        "bootstrap": 3,
    },
    "margin-bounds": {"measure": "margin-bounds", "convolution": "circular", "samples": 12, "bootstrap": 3},
    "norms": {"measure": "norms", "convolution": "reshaped", "shape": [3, 8, 8]},
    "augmentation": {"measure": "augmentation", "augmentations": ["flip", "crop"], "samples": 12, "bootstrap": 3},
    "matching": {
        "measure": "matching", "gallery": 2, "trials": 2, "layer": -1,
        "objects": {"novel": {"count": 3, "size": 12, "changes": 2, "seed": 0, "samples": 1, "background": 0.5}},
    },
    "human": {
        "measure": "human-similarity", "metric": "correlation", "method": "spearman", "bootstrap": 3,
        "stimuli": {"images": "pictures", "rdms": "rdm.npy", "size": 8, "color": "rgb"},
    },
}  # fmt: skip
"""A measure of every kind with stimuli of every kind, as plans write them."""
SEARCH: dict[str, Any] = {
    "train": "fuzz_networks:train",
    "space": {"learning_rate": {"float": [0.001, 0.1], "log": True}, "width": {"int": [2, 8], "step": 2}},
    "sampler": "random",
    "trials": 2,
    "objectives": [{"function": "fuzz_networks:weight_norm", "direction": "minimize", "name": "norm"}],
    "seed": 1,
    "run": "search",
    "keep": False,
}
CLASSIFIER_SEARCH: dict[str, Any] = {
    "network": "conv",
    "data": CORPUS["data"],
    "space": {"depth": [1, 2], "learning_rate": {"float": [0.001, 0.05], "log": True}},
    "fixed": {"optimizer": "adam", "batch_size": 12, "epochs": 1, "width": 4},
    "trials": 2,
    "objectives": [
        {"number": "test_accuracy", "direction": "maximize"},
        {"measure": {"measure": "clusters", "bootstrap": 0, "images": 4, "rounds": 1},
         "take": "davies-bouldin index", "direction": "minimize"},
    ],
    "pruning": {"number": "loss", "direction": "minimize", "every": 1, "population": {"after": 1, "least": 2},
                "convergence": {"window": 2, "sd": 0.1}},
    "run": "classifier-search",
}  # fmt: skip
MODULE_NAMED: dict[str, Any] = {"module": "bag_of_words", "parameters": {"terms": 50}}
BROAD: dict[str, Any] = {
    "folder": "broad",
    "secret": "not a secret: an example",
    "video": {"generated": {"training": 12, "test": 12, "frames": [4, 6], "size": [24, 18], "seed": 1}},
    "text": {"generated": {"count": 40, "restaurants": 8, "seed": 1}},
    "protocol": {"k": 3, "n": 10, "phase": "end", "curve": [0.0, 1.0], "limit_s": 20},
    "evaluators": {
        "text": {"extractor": MODULE_NAMED, "classifier": {"module": "topics",
        "parameters": {"grid": {"topics": [5]}}}},
        "video": {"extractor": {"module": "bag_of_features", "parameters": {"words": 4}}, "classifier": "kernel_svm"},
    },
    "teams": [
        {
            "letter": "s", "name": "Subspace",
            "text": {
                "preprocessor": MODULE_NAMED,
                "learner": {"module": "sparse_autoencoder", "parameters": {"inputs": 50, "hidden": [4], "epochs": 1}},
                "classifier": {"module": "linear_svr", "parameters": {"grid": {"C": [0.1]}}},
            },
        }
    ],
    "measures": [MEASURES["gratings"]],
    "changes": ["a sentence"],
}  # fmt: skip


def right_plans() -> list[tuple[str, dict[str, Any]]]:
    """Plans in which nothing is wrong, each with its kind: ``run``, ``corpus``, ``study``, ``search`` or ``broad``."""
    runs: list[tuple[str, dict[str, Any]]] = [
        ("run", {"subjects": [TINY], "measures": [measure], "data": DATA, "run": "run", "seed": 0})
        for measure in MEASURES.values()
    ]
    predicting = {"source": "assay.networks:PredNet", "args": {"channels": [3, 4]}, "name": "predicting"}
    following = {"measure": "next-frame-error", "sequences": CAMERA, "length": 4}
    runs.append(("run", {"subjects": [predicting], "measures": [following], "run": "run"}))
    whole = {
        "subjects": [
            {**TINY, "args": {"width": 3}, "seed": 1, "preprocess": [{"resize": 8}, "imagenet"], "dtype": "float32"},
            {"source": "fuzz_networks:tiny", "name": "other", "preprocess": {"resize": {"shorter": 8}}, "recipe": "a"},
        ],
        "measures": [MEASURES["straightness"], "norms", MEASURES["margins"]],
        "data": {"path": "classes", "size": [8, 8], "color": "rgb", "limit": 9},
        "resources": {"cpus": 1, "gpus": 0},
    }
    studied = {**CORPUS, "measures": [MEASURES["norms"], MEASURES["clusters"], MEASURES["perturbation"]]}
    studied |= {"scoring": {"draws": 5}, "run": "study"}
    fresh = {**CORPUS, "corpus": "fresh", "seed": 2, "device": "cpu", "at_once": 2}
    attacked = {
        **fresh,
        "corpus": "attacked",
        "training": {**CORPUS["training"], "epsilon": 0.1, "norm": "linf", "attack_steps": 1},
    }
    return [
        *runs, ("run", whole), ("corpus", fresh), ("corpus", attacked), ("study", studied), ("search", SEARCH),
        ("search", CLASSIFIER_SEARCH), ("broad", BROAD),
    ]  # fmt: skip


def make_world(folder: Path, trained: bool = True) -> None:
    """Write all that the plans name into a folder; the corpus only where it is to be ``trained``: that takes long."""
    rng = np.random.default_rng(0)

    def pictures(*count: int) -> np.ndarray[Any, Any]:
        return rng.integers(0, 256, (*count, 8, 8, 3), dtype=np.uint8)

    (folder / "fuzz_networks.py").write_text(MODULE)
    train, test = np.arange(36) % 3, np.arange(18) % 3
    np.savez(
        folder / "data.npz", train_images=pictures(36), train_labels=train, test_images=pictures(18), test_labels=test
    )
    np.save(folder / "clips.npy", rng.random((2, 5, 3, 8, 8), dtype=np.float32))
    distances = rng.random((2, 6, 6))
    distances = distances + distances.swapaxes(1, 2)
    distances[:, np.arange(6), np.arange(6)] = 0
    np.save(folder / "rdm.npy", distances)
    for place, count in (("pictures", 6), ("clips/a", 5), ("clips/b", 5), *((f"classes/{c}", 3) for c in "abc")):
        (folder / place).mkdir(parents=True)
        for number, picture in enumerate(pictures(count)):
            Image.fromarray(picture).save(folder / place / f"{number}.png")
    (folder / "corpus.yaml").write_text(yaml.safe_dump(CORPUS, sort_keys=False))
    if trained:
        train_corpus(load_corpus_plan(folder / "corpus.yaml"))
