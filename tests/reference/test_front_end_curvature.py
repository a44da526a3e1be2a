"""Curvature of the VOne front end and the periphery model beside what is published for natural sequences at 224 px.

The published figures are means over 12 sequences (Harrington et al. 2022, and their released notebooks), of which 11
are at hand. The pixels tell how much the one that is missing matters: 81.10° are published, the 11 have 80.19°.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from assay import Straightness, Subject
from assay.networks import Periphery, VOne
from assay.networks.front_ends.filters import GaborBank
from assay.networks.front_ends.vone import CellNoise, SimpleCells
from assay.stimuli import load_sequences

PIXELS_OF_11 = 80.190
# A sequence that is missing from 12 has, if the model is the published one, 12·(mean of 12) − 11·(mean of 11) degrees;
# that must lie between 0 and 180, and between what other sequences of about 91° in pixels have.
PUBLISHED = {"pixels": 81.10, "simple": 68.239, "noise": 119.67, "periphery": 54.82}


@pytest.fixture(scope="module")
def sequences(shared_data):
    found = load_sequences(shared_data / "natural_sequences", size=224, color="grey")
    assert len(found) == 11
    return found


class SimpleStage(nn.Module):
    """The simple cells of the released networks alone: a third of the front end's work."""

    def __init__(self) -> None:
        super().__init__()
        vone = VOne(channels=1, sf_max=6.0)
        self.filters = GaborBank(vone.filters.weight[:256], stride=4)
        self.simple = SimpleCells(25.0)
        self.noise = CellNoise("fresh")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.noise(self.simple(self.filters(x)))


def missing(published: float, ours: float) -> float:
    return 12 * published - 11 * ours


@pytest.mark.slow
def test_simple_cells_straighten_as_published(sequences):
    table = Straightness(sequences, layers="simple", batch_size=11)(Subject(SimpleStage(), "simple cells"))
    means = table.groupby("layer").curvature_deg.mean()
    assert means["pixels"] == pytest.approx(PIXELS_OF_11, abs=0.001)
    # Ours is 1.12° below the published 68.239°; the pixels of the same 11 sequences are 0.91° below theirs.
    assert means["simple"] == pytest.approx(67.119, abs=0.005)
    assert 75 < missing(PUBLISHED["simple"], means["simple"]) < missing(PUBLISHED["pixels"], means["pixels"]) < 95


@pytest.mark.slow
def test_noise_curves_to_120_degrees_whatever_the_sequence(shared_data):
    """Three sequences, of 41°, 70° and 105° in pixels: the mean over all 11 and all cells is 119.69°."""
    names = ["water", "smile", "bees"]
    shown = load_sequences(shared_data / "natural_sequences", size=224, color="grey", names=names)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        table = Straightness(shown, layers="noise", batch_size=11)(Subject(SimpleStage(), "simple cells"))
    noisy = table[table.layer == "noise"].curvature_deg
    # Independent noise of every frame has 120°; the published 119.67° is the mean over 12 sequences and all cells.
    assert len(noisy) == 3 and (noisy - PUBLISHED["noise"]).abs().max() < 0.5


@pytest.mark.slow
def test_the_periphery_model_is_within_a_degree_of_the_published_curvature(sequences):
    table = Straightness(sequences, batch_size=11)(Subject(Periphery(224), "periphery"))
    means = table.groupby("layer").curvature_deg.mean()
    # Ours is 0.29° above the published 54.82°, over 11 sequences instead of 12.
    assert means["statistics"] == pytest.approx(55.113, abs=0.005)
    assert abs(means["statistics"] - PUBLISHED["periphery"]) < 1
    assert 40 < missing(PUBLISHED["periphery"], means["statistics"]) < 75
