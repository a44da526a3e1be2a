"""The demonstration: two small networks trained on the spot, examined beside a model of retina and V1 and a twin.

One network learns scikit-learn's digits as they are, the other the same digits turned at random in every epoch. The
twin has their architecture and random weights.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from assay.core.determinism import seeded
from assay.networks import RetinaV1
from assay.plans.examination import examine
from assay.runs.run import Run
from assay.stimuli.labelled import Labelled
from assay.stimuli.transforms import Resize
from assay.subject.subject import Subject
from assay.training import Recipe, train_many
from assay.training.augmentation import Augment

log = logging.getLogger(__name__)

SIZE, RETINA = 32, 128
TRAINED_ON = 1200
SECONDS = 150.0
EPOCHS = 8


def digits() -> tuple[Labelled, Labelled]:
    """Scikit-learn's digits at 32×32 pixels: 1,200 to learn from and 597 to be asked about."""
    inputs, labels = load_digits(return_X_y=True)
    pictures = (inputs.reshape(-1, 1, 8, 8) / 16).astype(np.float32).repeat(4, 2).repeat(4, 3)
    order = np.random.default_rng(0).permutation(len(pictures))
    first, rest = order[:TRAINED_ON], order[TRAINED_ON:]
    return Labelled(pictures[first], labels[first], "digits"), Labelled(pictures[rest], labels[rest], "other digits")


def small_network() -> nn.Module:
    """Three convolutions and a linear layer, for ten classes of grey pictures."""
    layers: list[nn.Module] = []
    for before, after in ((1, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * (SIZE // 8) ** 2, 10))


def run_demo(folder: str | Path, seed: int = 0, seconds: float = SECONDS, epochs: int = EPOCHS) -> Run:
    """Train two networks and examine four; nothing is downloaded."""
    train, test = digits()
    names = ("standard", "augmented", "untrained twin")
    modules = []
    for _ in names:
        with seeded(seed):
            modules.append(small_network())
    augmentations = (None, Augment("rotation", 0.5, (0.0,), (1.0,)))
    recipes = [
        Recipe("adam", 0.004, 50, epochs=epochs, augmentation=augmentation, seed=seed) for augmentation in augmentations
    ]
    train_many(modules[:2], train.shown(), torch.tensor(train.labels), recipes, at_once=1)
    subjects = [Subject(module, name, example=train.shape) for module, name in zip(modules, names, strict=True)]
    seen = Resize(RETINA)  # the model's filters need a larger picture
    subjects.append(Subject(RetinaV1(RETINA), "retina and V1", preprocess=seen, example=train.shape))
    return examine(subjects, str(folder), data=test, seconds=seconds, seed=seed)
