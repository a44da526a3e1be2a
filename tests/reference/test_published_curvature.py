"""Curvature published with the stimuli of the perceptual-straightening experiments.

Source: the released notebooks of Harrington et al. 2022, frames resized to 256 px with PIL's LANCZOS.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from assay import Straightness, Subject, curvature
from assay.networks import RetinaV1
from assay.stimuli import load_sequences

STAGES = {"pixel": "pixels", "retina": "retina", "v1": "v1"}
# The one published value that is an artefact: a linear fade is straight, but the released code takes a float32
# arccos, which turns rounding of a dot product near 1 into angles of up to 0.3° (see the last test).
ARTEFACT = ("pixelfade", "pixel", "prairieTer")


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "natural_sequences"


@pytest.fixture(scope="module")
def published(folder):
    return json.loads((folder / "reference_curvature_deg.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["groundtruth", "pixelfade"])
def test_pixel_retina_and_v1_match_to_a_hundredth_of_a_degree(folder, published, condition):
    names = list(published["groundtruth"]["pixel"])
    sequences = load_sequences(folder, size=256, color="grey", names=names)
    if condition == "pixelfade":
        sequences = sequences.pixel_fade()
    table = Straightness(sequences)(Subject(RetinaV1(256), "retina-v1"))
    compared = 0
    for stage, layer in STAGES.items():
        for name, expected in published[condition][stage].items():
            got = table[(table.layer == layer) & (table.sequence == name)].curvature_deg.item()
            if (condition, stage, name) == ARTEFACT:
                assert expected == 0.123 and got == pytest.approx(0, abs=0.01)
            else:
                assert got == pytest.approx(expected, abs=0.01), (condition, stage, name)
            compared += 1
    assert compared == 15


def test_contrast_fades_have_no_published_value_and_are_straight_in_pixels(folder, published):
    assert published["contrast"] == {"pixel": {}, "retina": {}, "v1": {}}
    sequences = load_sequences(folder, size=64, color="grey", names=["water", "bees"]).contrast_fade()
    table = Straightness(sequences)(Subject(torch.nn.Flatten()))
    assert table.curvature_deg.max() < 0.001  # float32 frames


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (256, {"water": 42.0942, "prairieTer": 97.4774, "boats": 48.5338, "walking": 87.3111, "bees": 104.8444}),
        (224, {"water": 40.7633, "prairieTer": 96.6501, "boats": 43.8663, "walking": 87.2721, "bees": 104.6412}),
    ],
)
def test_pixel_values_at_both_sizes(folder, size, expected):
    for clip in load_sequences(folder, size=size, names=list(expected)):
        value = curvature(np.stack(list(clip.frames())), batched=False)
        assert value == pytest.approx(expected[clip.name], abs=1e-4)


def test_float32_arccos_explains_the_published_fade_that_is_not_straight(folder):
    """The fade itself is straight; the same frames through a float32 arccos are not, by up to 0.3°."""
    (fade,) = load_sequences(folder, size=256, color="grey", names=["prairieTer"]).pixel_fade()
    frames = torch.from_numpy(np.stack(list(fade.frames()))).flatten(1)
    steps = frames.diff(dim=0)
    units = steps / steps.norm(dim=1, keepdim=True)
    cosines = (units[1:] * units[:-1]).sum(1).clamp(-1, 1)
    artefact = torch.rad2deg(torch.arccos(cosines)).mean().item()
    assert cosines.dtype == torch.float32 and 0.01 < artefact < 1
    assert curvature(frames) < 0.001
