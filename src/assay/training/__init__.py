"""How networks learn: greedily layer by layer or from labels, one or many at once."""

from assay.training.adapters import HuggingFaceCallback, LightningCallback
from assay.training.adversarial import Adversary
from assay.training.attacks import fgsm, pgd
from assay.training.callbacks import (
    LiveLoss,
    LiveMeasure,
    Moment,
    StopBelowPopulation,
    StopWhenConverged,
    Together,
)
from assay.training.layerwise import Greedy, greedy, population
from assay.training.next_frame import NextFrame, TrainedOnFootage, train_next_frame, train_next_frame_many
from assay.training.recipe import Recipe
from assay.training.result import Epoch, Trained
from assay.training.supervised import train, train_many

__all__ = [
    "Adversary",
    "Epoch",
    "Greedy",
    "HuggingFaceCallback",
    "LightningCallback",
    "LiveLoss",
    "LiveMeasure",
    "Moment",
    "NextFrame",
    "Recipe",
    "StopBelowPopulation",
    "StopWhenConverged",
    "Together",
    "Trained",
    "TrainedOnFootage",
    "fgsm",
    "greedy",
    "pgd",
    "population",
    "train",
    "train_many",
    "train_next_frame",
    "train_next_frame_many",
]


def __dir__() -> list[str]:
    return sorted(__all__)
