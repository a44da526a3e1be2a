"""Next-frame error: its formula, its table, and the networks that it cannot be asked of."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import assay
from assay.core.determinism import seeded
from assay.measures.evidence import Measured
from assay.measures.prediction import NextFrameError, copy_last_error, next_frame_error


class Copying(nn.Module):
    """Predicts that the next frame is the last one, a little brighter; and 0 before the first."""

    video = True
    prediction = "last"

    def __init__(self, brighter=0.0):
        super().__init__()
        self.last = nn.Identity()
        self.brighter = brighter

    def forward(self, frames):
        before = torch.cat([torch.zeros_like(frames[:, :1]), frames[:, :-1]], 1)
        return self.last(before + self.brighter).sum()


def summed(measure, network):
    return measure.summary(measure(network)).iloc[0]


def clips(*lengths, seed=0, shape=(3, 8, 8)):
    rng = np.random.default_rng(seed)
    return assay.stimuli.Sequences.of(**{f"c{i}": rng.random((n, *shape), np.float32) for i, n in enumerate(lengths)})


def test_a_network_that_copies_has_the_error_of_copying():
    shown = clips(10, 7)
    row = summed(NextFrameError(shown, length=None), Copying())
    squares = np.concatenate([np.diff(clip.array.astype(np.float64), axis=0) ** 2 for clip in shown])
    assert row["mse"] == row["copy_last_mse"] == pytest.approx(squares.mean(), rel=1e-12)
    assert (row["n"], row["frames"], row["gain"]) == (2, 15, 0.0)


def test_a_constant_offset_on_a_still_picture_is_the_error():
    still = np.broadcast_to(np.random.default_rng(0).random((1, 3, 8, 8), np.float32), (6, 3, 8, 8))
    row = summed(NextFrameError(assay.stimuli.Sequences.of(still=still)), Copying(brighter=0.25))
    assert row["mse"] == pytest.approx(1 / 16, rel=1e-6) and row["copy_last_mse"] == 0  # the sum is in float32
    assert np.isnan(row["low"]) and np.isnan(row["high"])  # of one clip nothing is known of others


def test_clips_are_cut_into_sequences_each_shown_from_rest():
    with seeded(0):
        network = assay.PredNet((3, 4))
    shown = clips(11, 5, 8)  # cut to 4, 4, 3; 4 and a frame that cannot be predicted; 4, 4
    row = summed(NextFrameError(shown, length=4, batch_size=3), network)
    squares, copied = [], []
    for clip in shown:
        for start in range(0, len(clip.array) - 1, 4):
            x = torch.from_numpy(clip.array[start : start + 4].copy())
            if len(x) > 1:
                with torch.no_grad():
                    error = next_frame_error(x, network(x[None])[0])
                squares.append((len(x) - 1, error))
                copied.append((len(x) - 1, copy_last_error(x)))
    mean = lambda pairs: sum(n * e for n, e in pairs) / sum(n for n, _ in pairs)  # noqa: E731
    assert row["mse"] == pytest.approx(mean(squares), rel=1e-6)  # convolutions of another batch size, in float32
    assert row["copy_last_mse"] == pytest.approx(mean(copied), rel=1e-12)
    assert row["frames"] == 8 + 3 + 6 and row["low"] <= row["mse"] <= row["high"]


def test_the_interval_is_over_scenes_and_the_gain_is_paired():
    measure = NextFrameError(clips(6, 6, 6, 6))
    row = summed(measure, Copying(brighter=0.5))
    # Without an offset both are the same in every clip; with it, the gain hardly varies and is surely negative.
    assert summed(measure, Copying())[["gain_low", "gain_high"]].tolist() == [0, 0]
    assert row["gain_high"] < 0 and row["gain_high"] - row["gain_low"] < 0.1
    table = measure(Copying(brighter=0.5))
    low, high = stats.t.interval(0.95, 3, table["mse"].mean(), stats.sem(table["mse"]))  # clips of equal length
    assert (row["low"], row["high"]) == pytest.approx((low, high), rel=1e-9)
    (evidence,) = measure.evidence(Measured(table))
    assert evidence.items == pytest.approx(dict(zip(table["sequence"], table["mse"], strict=True)), rel=1e-9)
    assert evidence.better == "lower" and evidence.value == pytest.approx(row["mse"], rel=1e-12)
    together = table.assign(scene=["a", "a", "b", "b"])
    assert measure.summary(together)["n"].item() == 2


def test_the_functions_take_one_video_or_several_and_leave_out_the_first_frame():
    frames = np.random.default_rng(0).random((2, 4, 1, 3, 3))
    predictions = frames + 0.5
    predictions[:, 0] = 100
    assert next_frame_error(frames, predictions) == pytest.approx(0.25)
    assert next_frame_error(frames[0], predictions[0]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: NextFrameError(clips(3))(nn.Flatten()), "video = True and prediction"),
        (lambda: NextFrameError(clips(1, 4))(Copying()), "clip 'c0' has 1 frames"),
        (lambda: NextFrameError(clips(4, 1)).check(Copying()), "clip 'c1' has 1 frames"),
        (lambda: NextFrameError(clips(4), length=1), "length=1"),
        (lambda: NextFrameError(clips(4, shape=(3, 6, 6)))(assay.PredNet((3, 4, 5))), "multiples of 4"),
        (lambda: next_frame_error(np.zeros((3, 2)), np.zeros((3, 1))), "give one for each"),
    ],
)
def test_what_cannot_be_asked_is_named(ask, said):
    with pytest.raises(assay.AssayError) as error:
        ask()
    assert said in str(error.value)


def test_a_network_whose_prediction_is_not_finite_says_so():
    row = summed(NextFrameError(clips(4, 4)), Copying(brighter=float("nan")))
    assert row["status"] == "not finite" and np.isnan(row["mse"])
