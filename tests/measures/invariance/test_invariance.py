from __future__ import annotations

from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from assay import AssayError, Invariance, Subject, evaluate, invariance_scores
from assay.measures.gabor_fit import gabor
from assay.measures.invariance import unit_streams
from assay.measures.invariance.layer_scores import STATUSES
from assay.measures.invariance.unit_responses import near_from_responses
from assay.report.document import LineChart
from assay.stimuli import Family, Gratings, Images, NaturalVideo, ParametricTest, Sequences

SCORES = ["score", "global_rate", "local_rate", "sign", "threshold", "status"]


class Small(nn.Module):
    """A random network with rectified, saturating, quantised, dead and constant units, and a container."""

    def __init__(self, seed: int, side: int = 8) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.conv = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.flat = nn.Flatten()
        self.mix = nn.Linear(3 * (side // 2 - 1) ** 2, 12)
        self.tanh = nn.Tanh()
        self.clip = nn.Hardtanh(-0.05, 0.05)

    def forward(self, x: Tensor) -> Tensor:
        h = self.mix(self.flat(self.conv(x)))
        h = self.clip(self.tanh(h) * torch.tensor([1.0] * 9 + [0.0] + [0.1] * 2))
        return torch.cat([h, (h[:, :3] * 40).round(), torch.full_like(h[:, :1], 3.0)], 1)


def recorded(subject: Subject, test, batch: int) -> dict[str, np.ndarray]:
    """In the same batches, because a network's own rounding may depend on them."""
    parts = [subject.record(b) for b in test.batches(batch)]
    return {layer: torch.cat([p[layer].flatten(1) for p in parts]).numpy() for layer in parts[0]}


def assert_equal_to_the_definition(measure: Invariance, subject: Subject, among=None) -> None:
    """For every transformation; ``among`` says of each which stimuli are asked about, if not all."""
    units = measure.per_unit(subject)
    responses = recorded(subject, measure.test, measure.batch_size)
    for transformation, layer in product(measure.test.transformations, subject.layers):
        ours = units[(units.layer == layer) & (units.transformation == transformation)].reset_index(drop=True)[SCORES]
        rows = [row[row >= 0] for row in measure.test.trajectories(transformation)]
        options = (measure.firing_rate, measure.near_max, measure.signs, among and among(transformation))
        expected = invariance_scores(responses[layer], rows, *options)
        pd.testing.assert_frame_equal(ours, expected, check_dtype=False)


# -- the definition -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=6)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["choose", "positive"]),
    st.sampled_from([0.01, 0.05, 0.2]),
    st.sampled_from([1, 5, 0.1, 1.0]),
    st.sampled_from([1, 7, 64, 1000]),
)
def test_scores_equal_the_definition_on_random_networks(seed, signs, rate, near, batch):
    subject = Subject(Small(seed), "small", example=(1, 8, 8))
    test = Gratings(8, (2.0, 5.0), orientations=6, phases=10)
    measure = Invariance(test, firing_rate=rate, near_max=near, signs=signs, batch_size=batch)
    assert_equal_to_the_definition(measure, subject)


@pytest.mark.slow
def test_how_stimuli_are_batched_does_not_matter():
    # Rounding inside the network may depend on the batch; pooled pixels have no sums in them.
    subject = Subject(nn.Sequential(nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()), "pixels")
    test = Gratings(8, orientations=5, phases=8)
    tables = [Invariance(test, batch_size=size)(subject) for size in (1, 13, 280)]
    columns = ["layer", "transformation", "score", "n", "best_unit", "status", "ok", "tied"]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table[columns], tables[0][columns])


def test_a_complex_cell_is_phase_invariant_and_a_simple_cell_is_not():
    size = 24
    pair = np.stack([gabor(size, 0, 0, 0.5, 4 / 32, phase, 4, 4) for phase in (0, np.pi / 2)])

    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("pair", torch.from_numpy(pair).float().flatten(1))

        def forward(self, x: Tensor) -> Tensor:
            even, odd = (x.flatten(1) @ self.pair.T).unbind(1)
            return torch.stack([even, even**2 + odd**2], 1)

    measure = Invariance(Gratings(size, mean=0.0), near_max=1, signs="positive")
    units = measure.per_unit(Subject(Cells(), "cells"))
    simple, energy = units[units.transformation == "phase"].score
    assert energy > 95
    assert simple < 45  # it fires on less than half of the phases


@pytest.mark.slow
def test_video_neighbours_are_frames_of_the_same_clip_and_place():
    rng = np.random.default_rng(0)
    clips = {
        "slow": Sequences.of(a=rng.random((30, 12, 12)), b=rng.random((25, 12, 12))),
        "fast": Sequences.of(c=rng.random((40, 12, 12))),
        "dim": Sequences.of(d=rng.random((9, 12, 12)) * 0.1),
    }
    test = NaturalVideo(clips, patch=8, places=4, whitened=False, pooled=True)
    subject = Subject(Small(1), "small")
    for signs in ("choose", "positive"):
        measure = Invariance(test, firing_rate=0.05, batch_size=50, signs=signs)
        assert_equal_to_the_definition(measure, subject, among=test.among)
    units = measure.per_unit(subject)
    assert "silent" in set(units[units.transformation == "dim"].status)


def test_each_transformation_of_a_video_is_a_test_of_its_own():
    """Thresholds, firing rates and Z come from the clips of one transformation, unless they are pooled."""
    rng = np.random.default_rng(0)
    clips = {
        "bright": Sequences.of(a=rng.random((60, 8, 8)), b=rng.random((45, 8, 8))),
        "dim": Sequences.of(c=rng.random((30, 8, 8)) * 0.1 + np.linspace(0, 0.2, 30)[:, None, None]),
    }
    subject = Subject(Small(1), "small")
    settings = {"firing_rate": 0.1, "near_max": 0.25, "batch_size": 50, "signs": "positive"}
    measure = Invariance(NaturalVideo(clips, whitened=False), **settings)
    ours = measure.per_unit(subject)
    for name, sequences in clips.items():
        alone = Invariance(NaturalVideo({name: sequences}, whitened=False), **settings)
        expected = alone.per_unit(subject)
        pd.testing.assert_frame_equal(ours[ours.transformation == name].reset_index(drop=True), expected)
        assert_equal_to_the_definition(alone, subject)
    own, pooled = (
        Invariance(NaturalVideo(clips, whitened=False, pooled=pooled), layers=["mix"], **settings)(subject)
        .set_index("transformation")
        .loc["dim"]
        for pooled in (False, True)
    )
    assert own.z_quantile == 1 / 30  # the first of three on which a unit fires
    assert own.clips == own.z_clips == 1
    assert pooled.silent > 0 or pooled.z_quantile > 0.05


@pytest.mark.slow
def test_a_parametric_test_equals_showing_every_transform():
    images = Images(np.random.default_rng(0).random((150, 1, 8, 8)))
    family = Family("translation_x", (-2.0, -1.0, 0.0, 1.0, 2.0))
    test = ParametricTest(images, (family, Family(lambda x, g: x * g[:, None, None, None], (0.5, 1.0))))
    subject = Subject(Small(2), "small")
    units = Invariance(test, firing_rate=0.04, near_max=0.5, batch_size=20).per_unit(subject)
    layers = recorded(subject, test, 20)
    for family in test.families:
        moved = family(torch.from_numpy(images.array.copy())).flatten(0, 1)
        parts = [subject.record(b) for b in moved.split(20)]
        after = {layer: torch.cat([p[layer].flatten(1) for p in parts]).numpy() for layer in parts[0]}
        for layer, responses in layers.items():
            ours = units[(units.layer == layer) & (units.transformation == family.name)].reset_index(drop=True)
            n, m = len(images), len(family.magnitudes)
            expected = slow_parametric(responses, after[layer].reshape(n, m, -1), 0.04, 0.5)
            np.testing.assert_allclose(ours.score, expected, atol=1e-12)


def slow_parametric(responses, moved, rate, near):
    """Stimuli × units and stimuli × magnitudes × units, one unit at a time."""
    n, k = len(responses), int(np.ceil(rate * len(responses)))
    scores = []
    for h, transformed in zip(responses.T.astype(float), moved.transpose(2, 0, 1).astype(float), strict=True):
        found = []
        for sign in (1, -1):
            v = sign * h
            options = [t for t in set(v) if (v > t).sum() >= k]
            fires = v > max(options) if options else np.zeros(n, bool)
            if not options or fires.sum() > n / 2:
                continue
            count = max(int(np.ceil(near * fires.sum() - 1e-9)), 1)
            z = fires & (v >= np.sort(v)[::-1][count - 1])
            local = (sign * transformed[z] > max(options)).mean()
            found.append((fires.sum() <= 1.25 * k, local / fires.mean()))
        scores.append(max(found)[1] if found else np.nan)
    return scores


def test_cyclic_shifts_of_noise_score_seven():
    class First(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([x[:, 0, 0, 0], x.mean((1, 2, 3))], 1)

    def shift(x: Tensor, amount: Tensor) -> Tensor:
        return torch.stack([row.roll(int(a), -1) for row, a in zip(x, amount, strict=True)])

    images = Images(np.random.default_rng(0).normal(size=(20_000, 1, 1, 16)))
    test = ParametricTest(images, (Family(shift, tuple(range(16))),))
    measure = Invariance(test, near_max=1.0, signs="positive", batch_size=4096)
    first, mean = measure.per_unit(Subject(First(), "first")).score
    # E[L] = 1/16 + 15/16·G; 200 Z × 15 independent shifts make the standard deviation of S 0.16.
    assert first == pytest.approx((1 / 16 + 15 / 16 * 0.01) / 0.01, abs=0.6)
    # A mean of shifted values is the same but for the rounding of its sum, which may cross the threshold.
    assert mean == pytest.approx(100, abs=0.6)


# -- the table ------------------------------------------------------------------------------------------


def test_every_unit_is_counted_under_one_status():
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            h = x.flatten(1)
            sparse = (h[:, :1] - h[:, :1].detach().amax()).relu()
            return torch.cat([h[:, :5], h[:, :2] * 0 + 4, sparse, h[:, :1].log() * torch.nan], 1)

    table = Invariance(Gratings(6, phases=20, orientations=5))(Subject(Odd(), "odd"))
    row = table.iloc[0]
    assert [row[s.replace(" ", "_")] for s in STATUSES] == [5, 0, 3, 0, 0, 0, 1]
    assert row.units == 9 and row.n == 1 and row.score > 0
    assert row.held_out == row.score and np.isnan(row.held_out_low)  # of a whole grid; one unit tells nothing of others


def test_a_layer_of_nothing_but_nan_is_undefined_and_said_to_be_so():
    table = Invariance(Gratings(6))(Subject(nn.Sequential(nn.Flatten(), Nan()), "nan"))
    row = table[table.layer == "1"].iloc[0]
    assert row.status == "undefined" and row.not_finite == row.units == 36 and np.isnan(row.score)


class Nan(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.nan


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_a_layer_without_units_is_undefined():
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 0), nn.Linear(0, 3))
    table = Invariance(Gratings(6), details=True)(Subject(net, "narrow"))
    assert set(table[table.layer == "1"].status) == {"undefined"} and (table.units[table.layer == "1"] == 0).all()
    assert (table[table.layer == "0"].status == "ok").all() and (table.constant[table.layer == "2"] == 3).all()


def test_blocks_of_units_and_their_number_do_not_matter():
    frames = np.random.default_rng(0).random((5, 30, 8, 8)).astype(np.float32)
    test = NaturalVideo({"noise": Sequences.of(**{f"clip{i}": clip for i, clip in enumerate(frames)})}, patch=6)
    tables = []
    for block in (1, 200, 1 << 20):  # one unit at a time, a few, and all
        with patch.object(unit_streams, "_BLOCK", block):
            tables.append(Invariance(test, firing_rate=0.05, details=True)(Subject(Small(3, side=6), "small")))
    for table in tables[1:]:
        pd.testing.assert_frame_equal(tables[0], table, rtol=1e-12)  # sums of squares add up in another order


def test_a_layer_without_one_entry_per_stimulus_is_said_to_be_so():
    class Folded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fold = nn.Flatten(0, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.fold(x).mean() + x.flatten(1)

    table = Invariance(Gratings(6))(Subject(Folded(), "folded"))
    assert table[table.layer == "fold"].status.unique().tolist() == ["not per stimulus"]
    assert table[table.layer == "output"].status.unique().tolist() == ["ok"]


def test_a_filter_and_its_quarter_turn_are_equally_invariant():
    """Whichever way a unit points: an orientation is turned on past half a turn, where the phase is reversed."""
    rng = np.random.default_rng(0)
    weight = torch.from_numpy(np.stack([gabor(8, 0, 0, a, 0.15, 90, 2, 2) for a in np.arange(6) * np.pi / 6])).float()
    weight = weight + 0.01 * torch.from_numpy(rng.normal(size=weight.shape)).float()  # no two responses alike
    layer = nn.Linear(64, 12, bias=False)
    layer.weight.data = torch.cat([weight, weight.rot90(1, (1, 2))]).flatten(1)
    subject = Subject(nn.Sequential(nn.Flatten(), layer), "turned")
    for signs in ("choose", "positive"):
        units = Invariance(Gratings(8, orientations=12, phases=12), layers="1", signs=signs).per_unit(subject)
        for _, rows in units.groupby("transformation"):
            score = rows["score"].to_numpy()
            np.testing.assert_allclose(score[:6], score[6:])


def test_units_are_all_or_channels_or_the_central_one():
    torch.manual_seed(0)
    subject = Subject(nn.Sequential(nn.Conv2d(1, 4, 3)), "conv")
    test = Gratings(9, orientations=5, phases=8)
    counts = {u: Invariance(test, units=u)(subject).units.iloc[0] for u in ("all", "channels", "centre")}
    assert counts == {"all": 4 * 49, "channels": 4, "centre": 4}
    responses = recorded(subject, test, 32)["0"].reshape(280, 4, 7, 7)
    picked = {"channels": responses.max((2, 3)), "centre": responses[:, :, 3, 3]}
    for kind, values in picked.items():
        ours = Invariance(test, units=kind).per_unit(subject)
        expected = invariance_scores(values, test.trajectories("phase")).score
        np.testing.assert_allclose(ours[ours.transformation == "phase"].score, expected)


@pytest.mark.slow
def test_intervals_are_reproducible_and_narrow_with_units():
    torch.manual_seed(0)
    few, many = (Subject(nn.Sequential(nn.Flatten(), nn.Linear(64, n)), "net") for n in (40, 1000))
    measure = Invariance(Gratings(8), layers="1")
    again = measure(many)
    pd.testing.assert_frame_equal(measure(many), again)
    width = [(t.held_out_high - t.held_out_low).mean() for t in (measure(few), again)]
    assert width[1] < width[0]
    assert (
        Invariance(Gratings(8), layers="1", bootstrap=0)(many)[["held_out_low", "held_out_high"]].isna().all(axis=None)
    )


def test_pictures_are_the_stimuli_that_drive_the_best_unit():
    import io

    from PIL import Image

    subject = Subject(nn.Flatten(), "pixels")
    test = Gratings(8, orientations=5, phases=8)
    row = Invariance(test, near_max=3, signs="positive")(subject).iloc[0]
    picture = np.asarray(Image.open(io.BytesIO(row.pictures)), dtype=float) / 255
    assert picture.shape[0] == 8 and (picture.shape[1] + 1) % 9 == 0
    pixel = picture[row.best_unit // 8, row.best_unit % 8]
    assert pixel > 0.95  # the pixel that the unit is, is bright in what drives it


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Invariance(Gratings(6, (2.0,), 3, 5)),
            "a firing rate of 0.01 needs at least 100 stimuli, there are 15",
        ),
        (lambda: Invariance(Gratings(12)), "cannot take inputs of shape (1, 12, 12)"),
        (lambda: Invariance(Gratings(8), layers="nope"), "nope"),
        (lambda: Invariance(Gratings(8), top=0.0), "p=0.0 is not a proportion"),
        (lambda: Invariance(Gratings(8), near_max=0), "near_max=0"),
        (lambda: Invariance(Gratings(8), signs="both"), "signs='both'"),
        (lambda: Invariance(Gratings(8), units="some"), "units='some'"),
        (lambda: Invariance(Gratings(8), firing_rate=1.5), "firing_rate=1.5"),
        (lambda: Invariance(Gratings(8), batch_size=0), "batch_size=0"),
        (lambda: Invariance(Gratings(8), bootstrap=-1), "bootstrap=-1"),
        (
            lambda: Invariance(NaturalVideo({"one": Sequences.of(still=np.zeros((1, 8, 8)))})),
            "clip 'still' has 1 frames: the video test needs at least 2",
        ),
    ],
)
@pytest.mark.parametrize("way", ["check", "__call__"])
def test_bad_input_is_one_clear_sentence(make, sentence, way):
    with pytest.raises(AssayError) as error:
        getattr(make(), way)(Subject(Small(0), "small"))
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_frames_of_a_clip_are_drawn_together():
    """Frames of a still clip are one observation: more of them do not make the interval narrower."""

    def width(frames: int) -> float:
        rng = np.random.default_rng(0)
        noisy = [rng.random((1, 1, 6, 6), dtype=np.float32) for _ in range(30)]
        clips = {f"clip{i}": np.clip(x + 0.4 * rng.random((frames, 1, 6, 6), dtype=np.float32), 0, 1)
                 for i, x in enumerate(noisy)}  # fmt: skip
        video = NaturalVideo({"still": Sequences.of(**clips)}, whitened=False, reach=1)
        assert (np.bincount(video.blocks("still")) == frames).all()
        torch.manual_seed(0)
        subject = Subject(nn.Sequential(nn.Flatten(), nn.Linear(36, 40)), "linear")
        measure = Invariance(video, layers=["1"], firing_rate=0.1, near_max=1.0, signs="positive", bootstrap=400)
        row = measure(subject).iloc[0]
        return float(row["mean_held_out_high"] - row["mean_held_out_low"])

    # Drawn one by one, four times the frames would halve the width; a third more or less is chance.
    assert width(16) > 0.67 * width(4)


def test_how_many_stimuli_a_score_rests_on_is_said(tmp_path):
    """1,000 pictures at the defaults: a unit fires on 10 of them, a tenth of which is one."""
    from assay.report.measures.invariance import section

    pictures = np.random.default_rng(0).random((1000, 1, 6, 6)).astype(np.float32)
    test = ParametricTest(Images(pictures), (Family("rotation", (-10.0, 10.0)),))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Tanh())
    run = evaluate(Subject(net, "net"), {"few": Invariance(test, bootstrap=0)}, tmp_path)
    assert (run.table("few")["z"] == 1).all()
    warned = section("few", run.manifest.measures["few"], run)
    assert any("rests on 1 stimulus" in str(block) for block in warned)
    assert not any("near-maximal" in str(block) for block in warned)  # one of ten is what was asked for
    (chart,) = (block for block in warned if isinstance(block, LineChart))
    assert "held-out" in chart.caption and all(len(line) == len(run.table("few")) for _, line in chart.lines)
    # Halves of 100 pictures are too small to hold any out: the scores themselves are drawn, without a band.
    fewer = ParametricTest(Images(pictures[:150]), (Family("rotation", (-10.0, 10.0)),))
    run = evaluate(Subject(net, "net"), {"fewer": Invariance(fewer, bootstrap=0)}, tmp_path / "fewer")
    (chart,) = (b for b in section("fewer", run.manifest.measures["fewer"], run) if isinstance(b, LineChart))
    assert "held-out" not in chart.caption and all(point.band is None for _, line in chart.lines for point in line)


def test_a_report_says_where_z_is_not_near_maximal_and_draws_magnitudes_over_their_range(tmp_path):
    from assay.report.measures.invariance import section

    rng = np.random.default_rng(0)
    clips = {
        "bright": Sequences.of(**{f"b{i}": rng.random((60, 6, 6), dtype=np.float32) for i in range(12)}),
        "dim": Sequences.of(**{f"d{i}": 0.5 * rng.random((60, 6, 6), dtype=np.float32) for i in range(12)}),
    }
    torch.manual_seed(0)
    net = Subject(nn.Sequential(nn.Flatten(), nn.Linear(36, 12)), "net")
    blocks = {}
    for pooled in (False, True):
        test = NaturalVideo(clips, whitened=False, reach=3, pooled=pooled)
        measure = Invariance(test, layers=["1"], firing_rate=0.05, near_max=0.1, bootstrap=100, details=True)
        run = evaluate(net, {"video": measure}, tmp_path / str(pooled))
        blocks[pooled] = section("video", run.manifest.measures["video"], run)
    assert not any("near-maximal" in str(block) for block in blocks[False])
    assert any("dim: Z is not near-maximal" in str(block) for block in blocks[True])
    charts = [block for block in blocks[False] if isinstance(block, LineChart)]
    assert [chart.x_range for chart in charts] == [None, (-3, 3), None, (-3, 3)]
    assert "held-out" in charts[0].caption and charts[0].lines[0][1][0].band is not None


def test_fewer_stimuli_than_a_trajectory_has_bound_the_score_and_the_report_says_so(tmp_path):
    """A unit that fires on k of n stimuli, which all are on a trajectory of m, scores (k/m)/(k/n) = n/m there."""
    from assay.report.measures.invariance import section

    net = Subject(nn.Sequential(nn.Flatten(), nn.Linear(36, 6)), "net")
    rng = np.random.default_rng(0)
    clips = {f"c{i}": rng.random((40, 6, 6), dtype=np.float32) for i in range(9)}
    video = NaturalVideo({"time": Sequences.of(**clips)}, whitened=False)
    measure = Invariance(video, layers=["1"], bootstrap=0)
    (row,) = measure(net).itertuples()
    assert row.stimuli == 360 and row.on_trajectory == 11  # 4 fire; 6 are on the trajectory of a first frame
    assert row.largest == pytest.approx(360 / 6) and row.best_score <= row.largest
    enough = NaturalVideo({"time": Sequences.of(**{f"c{i}": np.repeat(c, 4, 0) for i, c in enumerate(clips.values())})})
    assert set(replace(measure, test=replace(enough, whitened=False))(net)["largest"]) == {96.0}  # 15 of 1440 fire
    few = replace(measure, test=Gratings(6, frequencies=(2.0, 4.0), orientations=4, phases=16))
    largest = few(net).set_index("transformation")[["largest", "on_trajectory"]]
    assert largest.loc["phase"].tolist() == [8.0, 16]  # 2 of 128 fire
    said = {}
    for name, asked in (("video", measure), ("gratings", few)):
        run = evaluate(net, {name: asked}, tmp_path / name)
        said[name] = " ".join(map(str, section(name, run.manifest.measures[name], run)))
    assert "fires on 4 of the 360 stimuli of time" in said["video"] and "32.7 is the most" in said["video"]
    assert "near the end of a clip" in said["video"] and "Show at least 1100 stimuli" in said["video"]
    assert "8.0 is the most" in said["gratings"] and "end of a clip" not in said["gratings"]
    turning = ParametricTest(Images(rng.random((200, 1, 6, 6), dtype=np.float32)), (Family("rotation", (0.0, 90.0)),))
    (row,) = replace(measure, test=turning)(net).itertuples()
    assert (row.largest, row.on_trajectory) == (100.0, 0)


@pytest.mark.parametrize("details", [False, True])
def test_a_single_unit_with_one_stimulus_in_z_is_looked_at_again(details):
    """One pair is an array of one, not a number."""
    responses = np.zeros((50, 1))
    responses[7] = 1.0
    every = np.arange(50)
    found = near_from_responses(responses, every, 1, 0.02, 1, np.ones(50, dtype=bool), every[:, None], details)
    assert found.stimulus.tolist() == [7] and found.local.tolist() == [1.0] and found.at_least.tolist() == [1]
    assert found.fires is None if not details else found.fires.tolist() == [[True]]
