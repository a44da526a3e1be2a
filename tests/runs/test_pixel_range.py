"""Pixels in 0…255 that networks are shown as they are are said aloud; other values are not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset
from typer.testing import CliRunner

import assay
from assay import Subject, evaluate
from assay.cli.main import app
from assay.runs.manifest import Manifest
from assay.runs.pixel_range import PixelRanges
from assay.stimuli import (
    Chain,
    Family,
    Grey,
    Images,
    Labelled,
    NaturalVideo,
    Normalize,
    ParametricTest,
    Resize,
    Sequences,
)

PICTURES = np.random.default_rng(0).integers(0, 256, (12, 3, 8, 8)).astype(np.float32)
LABELS = np.arange(12) % 3


def network(preprocess=None, name="net"):
    torch.manual_seed(0)
    return Subject(nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), name, preprocess=preprocess)


def said(pictures, preprocess=None):
    found = PixelRanges([assay.Margins(Labelled(pictures, LABELS), bootstrap=0)])
    found.look_at(network(preprocess))
    return found.sentences


class Own(Dataset):
    """A user's loader of pictures, which forgets to divide by 255."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.tensor(PICTURES[i]), int(LABELS[i])


def test_pixels_up_to_255_are_told_with_the_network_the_data_and_the_remedy():
    (sentence,) = said(PICTURES)
    assert sentence.startswith("net is shown pixels of up to 255 of arrays in memory: unless trained on such pixels, ")
    assert "division by 255 ({normalize: {mean: [0], std: [255]}} in a plan)" in sentence
    (sentence,) = said(PICTURES, Normalize())
    assert "of which its preprocess makes -2 to 1,1" in sentence
    assert said(PICTURES, Chain((Resize(8),))) and said(PICTURES, lambda x: x.flip(-1))


@pytest.mark.parametrize(
    "preprocess",
    [
        lambda x: x / 255,
        lambda x: x / 127.5 - 1,
        Normalize((0.0,), (255.0,)),
        Chain((Normalize((0.0,), (255.0,)), Normalize())),
        Normalize((123.7, 116.3, 103.5), (58.4, 57.1, 57.4)),
        lambda x: x - 120,  # the mean subtracted, as networks of Caffe want it
    ],
)
def test_a_preprocess_that_rescales_the_pixels_is_left_in_peace(preprocess):
    assert said(PICTURES, preprocess) == []


@pytest.mark.parametrize(
    "pictures",
    [
        PICTURES.astype(np.uint8),
        PICTURES / 255,
        PICTURES / 127.5 - 1,
        (PICTURES - PICTURES.mean()) / PICTURES.std(),
        PICTURES - 120,
        PICTURES / 64,  # of a few units
        PICTURES * 257,  # of 16 bits, or depths: who gives these knows
    ],
    ids=["bytes", "shares", "signed", "standardised", "centred", "units", "large"],
)
def test_other_values_are_left_in_peace(pictures):
    assert said(pictures) == []


def test_numbers_that_are_no_pictures_are_left_in_peace():
    data = Labelled(PICTURES.reshape(12, -1), LABELS)
    found = PixelRanges([assay.Margins(data, bootstrap=0)])
    found.look_at(network())
    assert found.sentences == []


def test_images_clips_and_loaders_are_looked_at_too():
    clips = Sequences.of(moving=PICTURES)
    turned = ParametricTest(Images(PICTURES), (Family("rotation", (0, 10)),))
    video = assay.Invariance(NaturalVideo({"time": clips}, whitened=False))
    for measure in (assay.Straightness(clips), assay.Invariance(turned), video, assay.Margins(Own(), bootstrap=0)):
        found = PixelRanges([measure])
        found.look_at(network())
        assert len(found.sentences) == 1, measure
    whitened = PixelRanges([assay.Invariance(NaturalVideo({"time": clips}))])  # networks are shown other values
    whitened.look_at(network())
    assert whitened.sentences == []


def test_networks_that_are_shown_the_same_share_a_sentence():
    found = PixelRanges([assay.Margins(Labelled(PICTURES, LABELS), bootstrap=0)])
    for i in range(5):
        found.look_at(network(name=f"net{i}"))
    found.look_at(network(Grey(), "grey"))
    first, second = found.sentences
    assert first.startswith("net0, net1, net2 and 2 more are shown pixels") and second.startswith("grey is shown")


def test_a_run_warns_once_and_its_manifest_and_report_say_so(tmp_path, caplog):
    data = Labelled(PICTURES, LABELS, "mine.npz")
    measures = [assay.Margins(data, bootstrap=0), assay.ClusterSeparation(data, rounds=1, bootstrap=0, pool=1)]
    run = evaluate([network(), network(lambda x: x / 255, "divided")], measures, tmp_path)
    (note,) = run.manifest.notes
    assert note.startswith("net is shown pixels of up to 255 of mine.npz")
    assert caplog.text.count("is shown pixels") == 1
    assert Manifest.read(run.folder).notes == [note]
    assert note.partition(":")[0] in Path(run.report().path).read_text()
    calm = evaluate(network(lambda x: x / 255), measures, tmp_path / "calm")
    assert calm.manifest.notes == [] and "To be looked at first" not in Path(calm.report().path).read_text()


def test_networks_that_are_read_one_by_one_warn_once(tmp_path, caplog):
    networks = (network(name=f"net{i}") for i in range(3))
    run = evaluate(networks, assay.Margins(Labelled(PICTURES, LABELS), bootstrap=0), tmp_path)
    assert caplog.text.count("pixels of up to 255") == 1 and "net0, net1, net2 are shown" in run.manifest.notes[0]


@pytest.mark.slow
def test_an_examination_warns_once_though_it_asks_many_questions(tmp_path, caplog):
    assay.examine(network(), tmp_path, data=(PICTURES, LABELS), seconds=600)
    assert caplog.text.count("pixels of up to 255") == 1


def test_the_check_of_a_plan_says_so_in_words_and_in_json(tmp_path):
    np.savez(tmp_path / "data.npz", images=PICTURES, labels=LABELS)
    plan = tmp_path / "plan.yaml"
    text = """
subjects: [{source: "assay.networks:small_vgg", preprocess: PRE}]
data: {path: data.npz}
measures: [{measure: margins, bootstrap: 0}]
"""
    plan.write_text(text.replace("PRE", "none"))
    checked = CliRunner().invoke(app, ["check", str(plan)])
    assert checked.exit_code == 0 and "small_vgg is shown pixels of up to 255 of data.npz" in checked.output
    checked = CliRunner().invoke(app, ["check", str(plan), "--json"])
    assert "small_vgg is shown pixels" in json.loads(checked.stdout)["notes"][0]
    plan.write_text(text.replace("PRE", "{normalize: {mean: [0], std: [255]}}"))
    checked = CliRunner().invoke(app, ["check", str(plan)])
    assert checked.exit_code == 0 and "is shown pixels" not in checked.output
