"""Paired differences in invariance: stimuli are drawn once for both, units for each by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from assay import AssayError, Invariance, Subject, invariance_differences
from assay.measures.evidence import Measured
from assay.runs.evidence import evidence_table, read_evidence
from assay.stats.differences import difference, interval
from assay.stimuli import NaturalVideo, Sequences


def video_of(seed: int) -> NaturalVideo:
    rng = np.random.default_rng(seed)
    clips = {}
    for i in range(24):
        steps = rng.normal(0, 0.05 + 0.02 * i, (20, 64))
        clips[f"clip{i}"] = (rng.normal(size=64) + steps.cumsum(0)).reshape(20, 8, 8).astype(np.float32)
    return NaturalVideo({"time": Sequences.of(**clips)}, whitened=False)


@pytest.fixture(scope="module")
def measure() -> Invariance:
    return Invariance(video_of(0), firing_rate=0.1, near_max=1.0)


def network(name: str, units: int, seed: int) -> Subject:
    """Its units are much alike, and like those of the others: clips make more of a difference than units."""
    common = torch.randn(64, generator=torch.Generator().manual_seed(0))
    first = nn.Linear(64, units)
    with torch.no_grad():
        own = torch.randn(units, 64, generator=torch.Generator().manual_seed(seed))
        first.weight.copy_((common + 0.3 * own) / 40)  # far from where tanh saturates
        first.bias.zero_()
    return Subject(nn.Sequential(nn.Flatten(), first, nn.Tanh()), name, example=(1, 8, 8))


def test_what_stimuli_have_in_common_drops_out(measure):
    """Of two networks that see clips alike the difference is surer than if each had been shown clips of its own."""
    one, other = (measure.measured(network(name, 60, seed)) for name, seed in (("a", 1), ("b", 2)))
    table = invariance_differences(one, other)
    assert table["of"].tolist() == ["best units", "all units"] and table["paired"].all()
    row = table.iloc[1]
    last = [m.table.iloc[-1] for m in (one, other)]
    assert row.difference == pytest.approx(last[0].mean_held_out - last[1].mean_held_out)
    assert row.low < row.difference < row.high and row.low < 0 < row.high  # the same kind of network
    apart = np.hypot(*[(r.mean_held_out_high - r.mean_held_out_low) / 2 for r in last])
    assert (row.high - row.low) / 2 < 0.8 * apart


def test_layers_of_one_network_and_networks_with_other_numbers_of_units(measure):
    found = measure.measured(network("a", 40, 1))
    same = invariance_differences(found, found, "2", "1")
    # tanh only rounds, so that hardly a unit fires otherwise; which units are drawn differs all the same
    assert same["difference"].abs().max() < 1 and (same["low"] < 0).all() and (same["high"] > 0).all()
    assert invariance_differences(found, measure.measured(network("b", 7, 1)))["paired"].all()


def test_what_cannot_be_compared_is_one_clear_sentence(measure):
    found = measure.measured(network("a", 10, 1))
    with pytest.raises(AssayError, match="no layer '9' was measured"):
        invariance_differences(found, found, "9")
    with pytest.raises(AssayError, match=r"a DataFrame has no resamples to pair: give what Invariance\.measured"):
        invariance_differences(found.table, found)  # type: ignore[arg-type]
    clips = {"a": np.random.default_rng(0).random((40, 8, 8), dtype=np.float32)}
    video = NaturalVideo({"other": Sequences.of(**clips)}, whitened=False)
    elsewhere = Invariance(video, firing_rate=0.1).measured(network("a", 10, 1))
    with pytest.raises(AssayError, match="share no transformation: time and other"):
        invariance_differences(found, elsewhere)
    alone = invariance_differences(elsewhere, elsewhere)
    assert np.isnan(alone["low"]).all() and alone["paired"].all()  # one clip tells nothing


@pytest.mark.parametrize(
    ("setting", "value"), [("firing_rate", 0.05), ("near_max", 0.5), ("top", 1.0), ("signs", "positive"), ("seed", 1)]
)
def test_what_was_measured_with_other_settings_is_not_compared(measure, setting, value):
    """At another firing rate the most there can be is another, so that a network would differ from itself."""
    one, other = (m.measured(network("a", 10, 1)) for m in (measure, replace(measure, **{setting: value})))
    with pytest.raises(AssayError, match=f"measured with {setting}=.* and {setting}={value!r}: .* cannot be compared"):
        invariance_differences(one, other)
    assert len(invariance_differences(one, replace(measure, batch_size=7).measured(network("b", 10, 1))))


def test_one_stimulus_is_not_all_of_them(measure):
    one, other = (replace(measure, near_max=size).measured(network("a", 10, 1)) for size in (1, 1.0))
    with pytest.raises(AssayError, match=r"measured with near_max=1 and near_max=1\.0"):
        invariance_differences(one, other)


def test_with_other_settings_it_is_another_number(measure):
    """It goes up to 1/G, so that reference networks at the usual G do not say how far seeds move it."""
    (evidence,) = measure.evidence(measure.measured(network("a", 10, 1)))
    assert evidence.quantity == "invariance to time, last layer, firing rate 0.1"
    assert evidence.n == 24, "it rests on clips, and not on each of their frames"
    other = replace(measure, top=1.0, layers=["1"])
    (evidence,) = other.evidence(other.measured(network("a", 10, 1)))
    assert evidence.quantity == "invariance to time, last of the layers chosen, firing rate 0.1, p = 1"
    usual = Invariance(video_of(0), near_max=0.5)
    (evidence,) = usual.evidence(usual.measured(network("a", 10, 1)))
    assert evidence.quantity == "invariance to time, last layer"


def test_networks_that_were_shown_other_clips_are_not_paired(measure):
    one, same, other = (video_of(seed) for seed in (0, 0, 1))
    of = {video: replace(measure, test=video).measured(network("a", 30, 1)) for video in (one, same, other)}
    assert invariance_differences(of[one], of[same])["paired"].all()  # equal clips, made twice
    apart = invariance_differences(of[one], of[other])
    assert not apart["paired"].any() and apart["low"].notna().any()


def test_the_last_layer_is_the_last_though_another_has_a_score_on_held_out_stimuli(measure):
    found = measure.measured(network("a", 40, 1))
    assert measure.evidence(found)[0].value == found.table["held_out"].iloc[-1]
    last = found.table["order"] == found.table["order"].max()
    without = Measured(found.table.assign(held_out=found.table["held_out"].mask(last)), found.draws)
    (evidence,) = measure.evidence(without)
    assert np.isnan(evidence.value) and evidence.status == "too few clips or stimuli to hold any out"
    table = found.table.assign(score=found.table["score"].mask(last))
    scores = {str(key): value for key, value in measure.predictors(table).items()}
    assert np.isnan(scores["time invariance of the last layer"])
    assert scores["time invariance, mean of layers"] == pytest.approx(table["score"].mean())


def test_no_interval_goes_beyond_what_a_score_can_be(measure):
    (evidence,) = measure.evidence(measure.measured(network("a", 40, 1)))
    assert evidence.least == 0 and evidence.most == pytest.approx(10)  # it fires on a tenth of the stimuli
    (kept,) = read_evidence(evidence_table([replace(evidence, value=9.9)]))
    low, high = interval(kept)
    assert low < 9.9 and high == evidence.most
    far = replace(evidence, value=9.9, draws=evidence.draws * 5)
    apart = difference(far, replace(far, value=0.1, draws=-far.draws))
    assert apart.interval()[1] == pytest.approx(10)  # and no difference beyond what two scores can differ by
