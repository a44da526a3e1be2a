from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn

import zoo
from assay import AssayError, Straightness, Subject, curvature, turning_angles
from assay.measures.evidence import Measured
from assay.measures.straightness.streaming import angles_from_sums
from assay.measures.straightness.triples import as_rows, triple_sums
from assay.stats.differences import interval
from assay.stimuli import Sequences, camera_sequences
from memory_kit import told_by


def polygon(k: int) -> np.ndarray:
    t = np.arange(k + 1) * 2 * np.pi / k
    return np.stack([np.cos(t), np.sin(t)], 1)


def streamed(trajectory) -> float:
    """The same quantity from the streaming sums."""
    return angles_from_sums(triple_sums(torch.as_tensor(trajectory))).mean().item()


# -- closed forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [curvature, streamed])
def test_straight_line_is_0(measure):
    direction = np.random.default_rng(0).normal(size=50)
    assert measure(np.arange(11)[:, None] * direction) == pytest.approx(0, abs=1e-6)
    uneven = np.array([0, 1, 3, 3.5, 10, 11.0])[:, None] * direction
    # Streaming sums: a line at uneven speed is the one case where rounding shows, at 1e-6 degrees.
    assert measure(uneven) == pytest.approx(0, abs=1e-6 if measure is curvature else 3e-6)


def test_the_worst_case_of_float32_streaming_is_thousandths_of_a_degree():
    direction = np.random.default_rng(0).normal(size=1000)
    uneven = np.array([0, 1, 3, 3.5, 10, 11.0])[:, None] * direction
    assert streamed(uneven.astype(np.float32)) < 0.01


@pytest.mark.parametrize("measure", [curvature, streamed])
@pytest.mark.parametrize("k", [3, 4, 5, 12, 360])
def test_regular_polygon_is_360_over_k(measure, k):
    assert measure(polygon(k)) == pytest.approx(360 / k, abs=1e-6)


@pytest.mark.parametrize("measure", [curvature, streamed])
def test_helix_of_12_steps_a_turn(measure):
    t = np.arange(40) * 2 * np.pi / 12
    assert measure(np.stack([np.cos(t), np.sin(t), 0.3 * t], 1)) == pytest.approx(28.678996, abs=1e-6)


@pytest.mark.parametrize("measure", [curvature, streamed])
def test_alternation_is_180(measure):
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    assert measure(np.stack([a, b] * 5)) == pytest.approx(180, abs=1e-6)


def test_random_walk_in_high_dimension_is_90_and_independent_noise_120():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(40, 200_000))
    # The cosine of an angle in d dimensions has SD 1/√d: 0.13° here, 0.02° for the mean of 38.
    assert curvature(noise.cumsum(0)) == pytest.approx(90, abs=0.1)
    assert curvature(noise) == pytest.approx(120, abs=0.1)


# -- properties -----------------------------------------------------------------------------------------

trajectories = hnp.arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(2, 6)), elements=st.floats(-100, 100))


@given(trajectories)
def test_streaming_sums_give_the_angles_of_the_definition(x):
    steps = np.linalg.norm(np.diff(x, axis=0), axis=1)
    assume(steps.min() > 1e-3 * max(steps.max(), 1))
    # Bounded by the uneven-speed rounding: √(eps·ratio of step lengths), 1e-4° for a ratio of 1,000.
    np.testing.assert_allclose(
        angles_from_sums(triple_sums(torch.as_tensor(x))).numpy(), turning_angles(x).numpy(), atol=1e-4
    )


@given(trajectories, st.floats(0.1, 10), st.floats(-5, 5))
def test_curvature_ignores_scale_shift_and_the_direction_of_time(x, scale, shift):
    steps = np.linalg.norm(np.diff(x, axis=0), axis=1)
    assume(steps.min() > 1e-2)
    value = curvature(x)
    assert 0 <= value <= 180
    assert curvature(scale * x + shift) == pytest.approx(value, abs=1e-5)
    assert curvature(x[::-1].copy()) == pytest.approx(value, abs=1e-6)


def test_accepts_tensors_arrays_batches_and_pictures():
    x = np.random.default_rng(0).normal(size=(4, 7, 3, 5, 5))
    batch = curvature(x)
    assert batch.shape == (4,)
    assert batch[2] == curvature(x[2], batched=False) == curvature(torch.as_tensor(x[2].reshape(7, -1)))


def test_complex_bfloat16_and_channels_last_frames_have_the_same_sums():
    x = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))

    def sums(frames):
        return triple_sums(as_rows(frames))

    torch.testing.assert_close(sums(x.contiguous(memory_format=torch.channels_last)), sums(x))
    torch.testing.assert_close(sums(torch.view_as_complex(torch.stack([x, x], -1))), 2 * sums(x))
    torch.testing.assert_close(sums(x.bfloat16()), sums(x.bfloat16().float()))


@pytest.mark.parametrize("before", [0, 1, 2])
def test_sums_over_a_seam_are_those_of_the_whole(before):
    x = torch.rand(7, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(triple_sums(x[before:], x[:before] if before else None), triple_sums(x))


def test_bad_trajectories_say_what_is_wrong():
    with pytest.raises(AssayError, match="at least 3 points, the trajectory has 2"):
        curvature(np.zeros((2, 4)))
    with pytest.raises(AssayError, match="NaN"):
        curvature(np.full((4, 4), np.nan))
    with pytest.raises(AssayError, match="time × dimensions"):
        curvature(np.zeros(4))


# -- the measure ----------------------------------------------------------------------------------------


def sequences(seed=0, n=3, length=7, shape=zoo.SHAPE):
    rng = np.random.default_rng(seed)
    return Sequences.of(**{f"clip{i}": rng.random((length, *shape)).astype(np.float32) for i in range(n)})


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 7, 32])
@pytest.mark.parametrize("kind", ["resnet", "transformer"])
def test_every_layer_has_the_curvature_of_its_recorded_responses(kind, batch_size):
    subject = Subject(zoo.build(kind), kind)
    shown = sequences()
    table = Straightness(shown, batch_size=batch_size)(subject)
    assert len(table) == 3 * (1 + len(subject.layers))
    for clip in shown:
        frames = torch.from_numpy(np.stack(list(clip.frames())))
        recorded = {"pixels": frames, **subject.record(frames)}
        for layer, responses in recorded.items():
            (row,) = table[(table.layer == layer) & (table.sequence == clip.name)].itertuples()
            # float32 responses differ in the last bits with the batch size.
            assert row.curvature_deg == pytest.approx(curvature(responses, batched=False), abs=1e-3)
            assert row.n == 5 and row.undefined == 0 and row.status == "ok"
    reference = table[table.layer == "pixels"].set_index("sequence").curvature_deg
    assert np.allclose(table.change_deg, table.curvature_deg - table.sequence.map(reference))


def test_clips_of_different_shapes_are_kept_apart():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    rng = np.random.default_rng(0)
    mixed = Sequences.of(a=rng.random((5, 8, 8)), b=rng.random((6, 9, 9)), c=rng.random((5, 8, 8)))
    table = Straightness(mixed, batch_size=4)(Subject(net))
    for clip in mixed:
        expected = curvature(np.stack(list(clip.frames())), batched=False)
        got = table[(table.layer == "pixels") & (table.sequence == clip.name)].curvature_deg.item()
        assert got == pytest.approx(expected, abs=1e-4)  # float32 frames


def test_identical_frames_are_left_out_with_a_count():
    frames = np.random.default_rng(0).random((7, 1, 4, 4)).astype(np.float32)
    frames[3] = frames[2]
    table = Straightness(Sequences.of(a=frames, still=np.ones((4, 1, 4, 4))))(Subject(nn.Flatten()))
    moving, still = table[table.layer == "pixels"].itertuples()
    assert (moving.n, moving.undefined, moving.status) == (3, 2, "ok")
    assert (still.n, still.undefined, still.status) == (0, 2, "undefined")
    assert np.isnan(still.curvature_deg)
    defined = turning_angles(frames)[~torch.isnan(turning_angles(frames))]
    assert moving.curvature_deg == pytest.approx(defined.mean().item(), abs=1e-4)
    summary = Straightness(sequences()).summary(table)
    assert summary.n.tolist() == [1, 1] and summary.left_out.tolist() == [1, 1]


def test_a_constant_layer_and_a_nan_layer_get_a_status():
    class Odd(nn.Module):
        def __init__(self, fill):
            super().__init__()
            self.fill = fill

        def forward(self, x):
            return torch.full_like(x, self.fill)

    net = nn.Sequential(Odd(1.0), nn.Identity(), Odd(float("nan")))
    table = Straightness(sequences(n=1))(Subject(net))
    assert table.set_index("layer").status.to_dict() == {
        "pixels": "ok", "0": "undefined", "1": "undefined", "2": "not finite",
    }  # fmt: skip


def test_summary_has_mean_sem_interval_and_n():
    table = Straightness(sequences(n=4))(Subject(nn.Flatten()))
    summary = Straightness(sequences(n=4)).summary(table)
    values = table[table.layer == "pixels"].curvature_deg.to_numpy()
    row = summary.iloc[0]
    assert row.curvature_deg == pytest.approx(values.mean())
    assert row.sem_deg == pytest.approx(values.std(ddof=1) / 2)
    assert row.high - row.curvature_deg == pytest.approx(3.182446305284263 * row.sem_deg)  # t(0.975, 3)
    assert row.n == 4


def test_summary_has_the_interval_of_the_change_over_scenes_that_reports_give():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    for shown in (sequences(n=4), camera_sequences(size=16, length=5, pictures=2)):  # three clips of each picture
        measure = Straightness(shown)
        table = measure(Subject(net))
        row = measure.summary(table).iloc[-1]
        at_last = measure.evidence(Measured(table))[0]
        assert row.change_deg == pytest.approx(at_last.value)
        assert (row.change_low, row.change_high) == pytest.approx(interval(at_last))
    changes = table[table.order == table.order.max()].change_deg.to_numpy().reshape(2, 3).mean(axis=1)
    half = 12.706204736 * abs(changes[0] - changes[1]) / 2  # t(0.975, 1)
    assert row.change_high - row.change_deg == pytest.approx(half)


def test_short_clips_and_frames_the_network_cannot_see_are_errors():
    with pytest.raises(AssayError, match="clip 'clip0' has 2 frames: curvature needs at least 3"):
        Straightness(sequences(length=2))(Subject(nn.Flatten()))
    with pytest.raises(AssayError, match=r"'mlp' cannot take inputs of shape \(3, 5, 5\)"):
        Straightness(sequences(shape=(3, 5, 5)))(Subject(zoo.build("mlp"), "mlp"))
    with pytest.raises(AssayError, match="unknown layer 'stemm'"):
        Straightness(sequences(), layers="stemm")(Subject(zoo.build("resnet")))
    with pytest.raises(AssayError, match="batch_size=0"):
        Straightness(sequences(), batch_size=0)


def test_a_noisy_layer_curves_a_still_world_to_120_whatever_the_batch_size():
    class Noisy(nn.Module):
        def forward(self, x):
            return x + 10 * torch.randn_like(x)

    line = np.arange(30)[:, None, None, None] * np.ones((1, 1, 40, 40)) / 30
    for batch_size in (1, 2, 8, 32):
        torch.manual_seed(0)
        table = Straightness(Sequences.of(line=line), batch_size=batch_size)(Subject(nn.Sequential(Noisy())))
        # 28 angles of 1,600 units: SD 1.4° each, 0.3° for their mean.
        assert table.curvature_deg[1] == pytest.approx(120, abs=2), batch_size


def test_layers_without_one_entry_per_frame_get_a_status_and_the_others_go_on():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.tokens_first, self.patches, self.total = (nn.Identity() for _ in range(4))

        def forward(self, x):
            x = self.first(x)
            self.tokens_first(x.flatten(2).permute(2, 0, 1))
            self.patches(x.reshape(-1, 3, 8, 8))
            self.total(x.sum())
            return x

    for batch_size in (7, 256):
        table = Straightness(sequences(), batch_size=batch_size)(Subject(Odd()))
        status = table.groupby("layer").status.unique().map(list).to_dict()
        odd = {name: ["not per frame"] for name in ("tokens_first", "patches", "total")}
        assert status == {"pixels": ["ok"], "first": ["ok"], **odd}


def test_a_layer_called_pixels_is_refused():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.pixels = nn.Identity()

        def forward(self, x):
            return self.pixels(x)

    with pytest.raises(AssayError, match="is called 'pixels', as is the input"):
        Straightness(sequences())(Subject(Wrapped()))


def test_complex_trajectories_turn_in_both_parts():
    x = torch.randn(6, 4, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    assert curvature(x) == pytest.approx(curvature(torch.view_as_real(x).flatten(1)))


LONG_CLIPS = r"""
import numpy as np
from torch import nn
from assay import Straightness, Subject
from assay.stimuli import Clip, Sequences

class Noise(Clip):
    def __init__(self, length):
        self.name, self.length = "noise", length

    def frames(self):
        rng = np.random.default_rng(0)
        for _ in range(self.length):
            yield rng.random((1, 256, 256), dtype=np.float32)

    @property
    def fingerprint(self):
        return str(self.length)

def peak_of(length):
    net = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Tanh())
    Straightness(Sequences((Noise(length),)), batch_size=8)(Subject(net))
    return peak()

short = peak_of(40)
print(json.dumps(peak_of(800) - short))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_frames():
    # 760 frames more, kept in 3 layers and the pixels, would be 800 MB; sums of 4 numbers a frame are nothing.
    assert told_by(LONG_CLIPS) < 60e6


def test_the_change_from_the_pixels_is_over_the_angles_that_a_layer_has():
    class DarkFrames(nn.Module):
        """Frames as they are where their first pixel is dark, and black ones otherwise."""

        def forward(self, x):
            return x.flatten(1) * (x[:, 0, 0, 0] < 0.5)[:, None]

    clip = np.random.default_rng(0).random((11, 1, 4, 4)).astype(np.float32)
    clip[:, 0, 0, 0] = np.arange(11) > 5  # the last five are black to the layer
    table = Straightness(Sequences.of(clip=clip))(Subject(nn.Sequential(DarkFrames()))).set_index("layer")
    in_layer = turning_angles(clip * (clip[:, :, :1, :1] < 0.5))
    kept = ~in_layer.isnan()
    assert table.loc["0", "n"] == kept.sum() < 9 == table.loc["pixels", "n"]
    same_angles = (in_layer - turning_angles(clip))[kept].mean().item()
    assert table.loc["0", "change_deg"] == pytest.approx(same_angles, abs=1e-4)


def test_only_natural_clips_have_a_direction_that_people_want():
    clips = camera_sequences(size=8, length=4, color="grey", pictures=1)
    measure = Straightness(clips + clips.pixel_fade())
    numbers = measure.evidence(Measured(measure(Subject(nn.Sequential(nn.Flatten(), nn.Linear(64, 4))))))
    assert [number.better for number in numbers] == ["lower", "lower", "", ""]


def test_one_clip_is_described_in_the_singular():
    clips = camera_sequences(size=8, length=4, motions=("zoom",), pictures=1)
    assert clips.description.startswith("1 clip of 3×8×8")
