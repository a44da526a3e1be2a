"""The demonstration: straightness of four networks built on the spot, on camera motion over photographs."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from assay.core.determinism import seeded
from assay.measures.straightness.measure import Straightness
from assay.networks import RetinaV1, small_resnet, small_vgg
from assay.runs.evaluate import evaluate
from assay.runs.run import Run
from assay.stimuli import Grey, camera_sequences
from assay.subject.subject import Subject

SIZE = 128


def run_demo(folder: str | Path, seed: int = 0) -> Run:
    """Run it; nothing is downloaded, nothing is trained."""
    natural = camera_sequences(SIZE, length=11, color="rgb")
    with seeded(seed):
        mlp = nn.Sequential(
            nn.AvgPool2d(4), nn.Flatten(), nn.Linear(3 * (SIZE // 4) ** 2, 256), nn.ReLU(), nn.Linear(256, 64)
        )
        subjects = [
            Subject(RetinaV1(SIZE), "retina-v1", preprocess=Grey()),
            Subject(small_resnet(), "resnet, untrained"),
            Subject(small_vgg(), "vgg, untrained"),
            Subject(mlp, "mlp, untrained"),
        ]
    measures = {
        "straightness": Straightness(natural),
        "straightness of pixel fades": Straightness(natural.pixel_fade()),
    }
    return evaluate(subjects, measures, folder, seed=seed)
