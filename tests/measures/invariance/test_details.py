"""What is known of single units: how far they are invariant, how selective they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from assay import Invariance, Subject
from assay.measures.invariance.layer_scores import widths
from assay.stimuli import Family, Gratings, Images, NaturalVideo, ParametricTest, Sequences


@pytest.fixture(scope="module")
def net() -> Subject:
    torch.manual_seed(0)
    return Subject(nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.Tanh()), "net", example=(1, 8, 8))


def by_hand(subject: Subject, test, name: str, layer: str, shown, row) -> np.ndarray:
    """Firing rates by magnitude of all units with a score, one by one, from all responses."""
    responses = subject.record(torch.from_numpy(np.concatenate(list(test.batches(500)))))[layer].numpy()
    rates = []
    for unit, sign in enumerate(row.unit_sign):
        h = sign * responses[:, unit]
        count = int(np.ceil(0.1 * len(h) - 1e-9))
        threshold = np.sort(h)[-count - 1]
        z = np.argsort(-h, kind="stable")[: int(np.ceil(0.2 * count - 1e-9))]
        at: list[list[float]] = [[] for _ in row.magnitudes]
        for stimulus in z:
            for place, value in shown(stimulus, unit, sign):
                at[place].append(value > threshold)
        rates.append([np.mean(values) if values else np.nan for values in at])
    return np.array(rates)


def closed(test, name, responses):
    def shown(stimulus, unit, sign):
        for other, place in zip(test.trajectories(name)[stimulus], test.magnitude_of(name)[stimulus], strict=True):
            if other >= 0:
                yield place, sign * responses[other, unit]

    return shown


@pytest.mark.parametrize(
    "test",
    [
        Gratings(8, (2.0, 4.0, 7.0), orientations=6, phases=8),
        NaturalVideo(
            {"turn": Sequences.of(**{f"c{i}": np.random.default_rng(i).random((9, 8, 8)) for i in range(8)})}, reach=2
        ),
    ],
    ids=lambda test: test.name,
)
def test_firing_by_magnitude_is_that_of_every_stimulus_on_the_trajectory(net, test):
    table = Invariance(test, layers=["2"], firing_rate=0.1, near_max=0.2, details=True, top=1.0)(net)
    responses = net.record(torch.from_numpy(np.concatenate(list(test.batches(500)))))["2"].numpy()
    for _, row in table.iterrows():
        rates = by_hand(net, test, row.transformation, "2", closed(test, row.transformation, responses), row)
        with np.errstate(invalid="ignore"):
            expected = np.nanmean(rates, axis=0)
        np.testing.assert_allclose(row.mean_firing_by_magnitude, expected, atol=1e-12)
        np.testing.assert_allclose(row.firing_by_magnitude, expected, atol=1e-12)  # top = 1 is all
        np.testing.assert_allclose(row.unit_width, widths(rates, row.magnitudes))
        assert expected[list(row.magnitudes).index(0)] == 1  # z itself
        assert 0 < row.mean_score <= 10


def test_open_tests_have_the_magnitudes_of_their_families(net):
    images = Images(np.random.default_rng(0).random((60, 1, 8, 8)).astype(np.float32))
    family = Family(lambda x, g: x * g[:, None, None, None], (0.2, 1.0, 0.6))
    test = ParametricTest(images, (family,))
    (row,) = Invariance(test, layers=["1"], firing_rate=0.1, near_max=0.2, details=True)(net).itertuples()
    responses = net.record(torch.from_numpy(images.array.copy()))["1"].numpy()
    scaled = [net.record(torch.from_numpy(g * images.array))["1"].numpy() for g in family.magnitudes]

    def shown(stimulus, unit, sign):
        for place, other in enumerate(scaled):
            yield place, sign * other[stimulus, unit]

    rates = by_hand(net, test, family.name, "1", shown, row)
    np.testing.assert_allclose(row.mean_firing_by_magnitude, rates.mean(0), atol=1e-12)
    np.testing.assert_allclose(row.unit_width, widths(rates, row.magnitudes))
    assert len(responses) == 60


def test_selectivity_is_0_for_a_response_to_all_and_1_for_a_response_to_one():
    class Cells(nn.Module):
        def forward(self, x):
            number = x[:, 0, 0, 0]
            return torch.stack([torch.ones_like(number) + 1e-4 * number, (number > 0.995).float() + 1e-9 * number], 1)

    images = Images(np.linspace(0, 1, 200, dtype=np.float32)[:, None, None, None])
    test = ParametricTest(images, (Family("brightness", (0.0, 0.0)),))
    units = Invariance(test, signs="positive", details=True).per_unit(Subject(Cells(), "cells", example=(1, 1, 1)))
    np.testing.assert_allclose(units["selectivity"], [0, 1], atol=1e-4)
    assert set(units["status"]) == {"ok"} and (units["width"] == 0).all()


def test_widths_stop_where_the_rate_falls_below_half():
    magnitudes = np.array([0.0, 10.0, -10.0, 20.0])
    rates = np.array([[1.0, 0.5, 0.9, 0.0], [1.0, np.nan, 0.2, 0.6], [0.1, 0.2, 0.3, 0.4]])
    assert widths(rates, magnitudes)[:2].tolist() == [20.0, 20.0] and np.isnan(widths(rates, magnitudes)[2])


def test_of_equal_peaks_the_width_is_around_that_nearest_to_no_change():
    assert widths(np.array([[1.0, 0.0, 1.0, 1.0, 1.0]]), np.arange(-2.0, 3.0)).tolist() == [2.0]
