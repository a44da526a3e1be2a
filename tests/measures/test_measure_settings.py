"""Settings of measures as people give them: data of any kind, lists for tuples, one sentence for what does not fit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

import assay
from assay import AssayError, Measure, Subject
from assay.stimuli import Family, Images, Labelled, NaturalVideo, ParametricTest, Sequences

rng = np.random.default_rng(0)
PIXELS = rng.integers(0, 256, (12, 1, 8, 8), dtype=np.uint8)
LABELS = np.arange(12) % 3
CLIPS = rng.random((2, 5, 1, 8, 8), dtype=np.float32)
DATA = Labelled(PIXELS, LABELS)
TEST = ParametricTest(PIXELS, [Family("rotation", [0, 90])])
WITH_DATA = {
    assay.Margins: {},
    assay.Sharpness: {"samples": 6, "steps": 2, "draws": 2},
    assay.MarginBounds: {},
    assay.PacBayes: {"samples": 6, "steps": 2, "draws": 2},
    assay.ClusterSeparation: {},
    assay.AugmentationRobustness: {},
    assay.PerturbationResponse: {"magnitudes": 3},
}
MEASURES = {
    **{kind: {"data": DATA, **settings} for kind, settings in WITH_DATA.items()},
    assay.Straightness: {"sequences": CLIPS},
    assay.Invariance: {"test": TEST},
    assay.Norms: {},
    assay.InitialDistance: {},
    assay.TrainingSpeed: {},
    assay.ObjectMatching: {"objects": DATA, "trials": 2},
}


@pytest.fixture(scope="module")
def subject():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(72, 3)
    network = torch.nn.Sequential(*layers)
    start = {name: torch.zeros_like(tensor) for name, tensor in network.state_dict().items()}
    return Subject(network, "small", example=(1, 8, 8), initial_weights=start)


@pytest.mark.parametrize("kind", WITH_DATA)
def test_every_measure_of_labelled_data_takes_what_people_have(kind, subject, tmp_path):
    for i, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        (tmp_path / "abc"[label]).mkdir(exist_ok=True)
        Image.fromarray(pixels[0]).save(tmp_path / "abc"[label] / f"{i:02}.png")
    order = np.argsort(LABELS, kind="stable")
    tensors = TensorDataset(torch.tensor(PIXELS[order]), torch.tensor(LABELS[order]))
    settings = {**WITH_DATA[kind], "bootstrap": 0}
    expected = kind(Labelled(PIXELS[order], LABELS[order]), **settings)(subject)
    for given in (tmp_path, str(tmp_path), (PIXELS[order], LABELS[order]), DataLoader(tensors, 5), tensors):
        pd.testing.assert_frame_equal(kind(given, **settings)(subject), expected)


def test_clips_and_images_are_taken_as_people_have_them(subject):
    expected = assay.Straightness(Sequences.of(**{"clip 0": CLIPS[0], "clip 1": CLIPS[1]}))(subject)
    pd.testing.assert_frame_equal(assay.Straightness(torch.tensor(CLIPS))(subject), expected)
    assert isinstance(TEST.images, Images) and TEST.families == (Family("rotation", (0, 90)),)
    assert isinstance(NaturalVideo({"translation": CLIPS}).clips["translation"], Sequences)


@pytest.mark.parametrize("kind", [*MEASURES])
def test_lists_serve_for_tuples(kind):
    measure = kind(**MEASURES[kind])
    for field in fields(kind):
        value = getattr(measure, field.name)
        if isinstance(value, tuple):
            again = kind(**{**MEASURES[kind], field.name: list(value)})
            assert getattr(again, field.name) == value and again == measure
            assert hash(getattr(again, field.name)) == hash(value)
    layered = assay.Straightness(CLIPS, layers=["0", 1])
    assert layered.layers == ("0", 1) and layered.code_version
    assert assay.PerturbationResponse(DATA, ["intra", "inter"], [0, 1], magnitudes=[0.0, 0.25]).layers == (0, 1)


ODD = [None, "x", -1, 1.5, [], ["0"], {}, (1, "a"), object(), True, np.zeros(3), torch.zeros(2), dict, b"x", 10**20]


@pytest.mark.parametrize("kind", [*MEASURES])
def test_no_setting_ends_in_an_error_of_python(kind):
    for field in fields(kind):
        for value in ODD:
            try:
                kind(**{**MEASURES[kind], field.name: value})
            except AssayError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: assay.Margins(None), "data=None cannot be used: give a folder of class folders"),
        (lambda: assay.Margins("nowhere"), "data='nowhere' does not exist"),
        (lambda: assay.Margins(DATA, samples="many"), "samples='many' does not fit: give a whole number or None"),
        (lambda: assay.Margins(DATA, percentiles=["a"]), "give a list, each of which is a number"),
        (lambda: assay.Margins(DATA, seed=-1), "seed=-1 must be at least 0"),
        (lambda: assay.Invariance(PIXELS), "give an assay.stimuli.InvarianceTest"),
        (lambda: assay.Straightness(None), "sequences=None cannot be used: give a folder of clips"),
        (lambda: ParametricTest(None, (Family("rotation", (0,)),)), "images=None cannot be used"),
        (lambda: ParametricTest(PIXELS, None), "families=None"),
        (lambda: ParametricTest(PIXELS, ["rotation"]), "families"),
        (lambda: NaturalVideo(None), "clips=None"),
        (lambda: NaturalVideo({"a": None}), r"clips\['a'\]=None cannot be used"),
        (lambda: Family("rotation", None), "magnitudes=None"),
        (lambda: Family(None, (0,)), "transformation"),
        (lambda: Sequences(None), "clips"),
        (lambda: Sequences([3]), "clips"),
    ],
    ids=range(16),
)
def test_the_sentence_names_the_argument_the_value_and_the_remedy(make, said):
    with pytest.raises(AssayError, match=said):
        make()


@dataclass(frozen=True)
class Brightness(Measure):
    """A measure as a user writes it, without a word about how its data are given."""

    images: Images
    data: Labelled | None = None
    thresholds: tuple[float, ...] = (0.5,)
    value: ClassVar[str] = "share"

    def __call__(self, subject):
        return pd.DataFrame([{"share": float((self.images.array > t).mean())} for t in self.thresholds])


def test_a_measure_of_the_users_takes_the_same():
    measure = Brightness(PIXELS, data=(PIXELS, LABELS), thresholds=[0.25, np.float64(0.5)])
    assert isinstance(measure.images, Images) and isinstance(measure.data, Labelled)
    assert measure.thresholds == (0.25, 0.5) and Brightness(PIXELS).data is None
