"""What a report says was shown is what was shown: the sentence, the column n and the settings agree."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

import assay
from assay.report.document import Items, Text
from assay.report.measures.section import section_of
from assay.stimuli import Family, Gratings, Images, Labelled, ParametricTest, Sequences

ALL, SHOWN = 30, 12
GRATINGS = Gratings(8, orientations=8, phases=8)


def labelled() -> Labelled:
    rng = np.random.default_rng(0)
    return Labelled(rng.random((ALL, 1, 8, 8)).astype(np.float32), np.arange(ALL) % 3, "noise")


def clips(count: int, still: int = 0) -> Sequences:
    rng = np.random.default_rng(1)
    frames = {f"clip {i}": rng.random((4, 1, 8, 8)).astype(np.float32) for i in range(count)}
    return Sequences.of(**frames, **{f"still {i}": np.ones((4, 1, 8, 8), np.float32) for i in range(still)})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3))
    data = labelled()
    images = Images(data.inputs[:20], source="noise")
    measures = {
        "margins": assay.Margins(data, samples=SHOWN),
        "margins of all": assay.Margins(data),
        "perturbation": assay.PerturbationResponse(data, "intra", magnitudes=3, samples=SHOWN),
        "mixup without partners": assay.PerturbationResponse(data, "intra", magnitudes=3, samples=SHOWN, batch_size=3),
        "sharpness": assay.Sharpness(data, draws=2, steps=4, samples=SHOWN),
        "augmentation": assay.AugmentationRobustness(data, ("flip",), samples=SHOWN),
        "clusters": assay.ClusterSeparation(data, images=SHOWN, rounds=4),
        "gratings": assay.Invariance(GRATINGS, bootstrap=0),
        "rotation": assay.Invariance(ParametricTest(images, (Family("rotation", (-20, 0, 20)),)), firing_rate=0.1),
        "straightness": assay.Straightness(clips(3, still=1) + clips(2).pixel_fade()),
    }
    return assay.evaluate(assay.Subject(network, "net-a"), measures, tmp_path_factory.mktemp("counts"))


def text(run, label: str) -> str:
    record = run.manifest.measures[label]
    blocks = section_of(record.measure)(label, record, run)
    return " ".join(block.text for block in blocks if isinstance(block, Text))


@pytest.mark.parametrize("label", ["margins", "perturbation", "mixup without partners", "sharpness", "augmentation"])
def test_a_sample_is_said_with_its_own_size(run, label):
    assert f"Shown: {SHOWN} of {ALL} inputs of 1×8×8 in 3 classes from noise." in text(run, label)
    table = run.table(label)
    assert (table["n"] + table.get("left_out", 0)).max() == SHOWN


def test_all_inputs_are_said_once(run):
    assert f"Shown: {ALL} inputs of 1×8×8" in text(run, "margins of all")
    assert run.table("margins of all")["n"].max() == ALL


def test_draws_of_clusters_are_said_and_n_counts_them(run):
    assert f"Shown: 4 draws of up to {SHOWN} of {ALL} inputs" in text(run, "clusters")
    assert run.table("clusters")["n"].tolist() == [4]


@pytest.mark.parametrize(("label", "count"), [("gratings", len(GRATINGS)), ("rotation", 20)])
def test_all_stimuli_of_an_invariance_test_are_shown(run, label, count):
    assert re.search(rf"Shown: {count} (gratings|images) of 1×8×8", text(run, label))


def test_clips_are_counted_by_condition_and_a_sentence_says_how_many_it_rests_on(run):
    said = text(run, "straightness")
    assert "Shown: 6 clips of 1×8×8" in said and "(4 natural sequences, 2 pixel-fade control)" in said
    record = run.manifest.measures["straightness"]
    blocks = section_of("straightness")("straightness", record, run)
    sentences = " ".join(item for block in blocks if isinstance(block, Items) for item in block.items)
    assert "n = 3 of 4: the others have no angle there" in sentences and "n = 2)" in sentences
    assert "net-a" in sentences, "the hyphen of a name is no minus sign"


@pytest.mark.parametrize(("broken", "where"), [(1, "layers 1 to 3"), (3, "3")])
def test_all_the_last_layers_without_an_angle_are_named(tmp_path, broken, where):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3))
    with torch.no_grad():
        network[broken].weight.fill_(torch.nan)
    done = assay.evaluate({"net": network}, assay.Straightness(clips(2)), tmp_path)
    blocks = section_of("straightness")("straightness", done.manifest.measures["straightness"], done)
    (said,) = next(block for block in blocks if isinstance(block, Items)).items
    assert said == f"net, natural sequences: undefined at {where}."
