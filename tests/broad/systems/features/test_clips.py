"""Reading clips as grey arrays, the two video preprocessors, and vectors of one length."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from assay.broad.data.dataset import Inputs
from assay.broad.systems.features.clips import ContrastClips, GreyClips, as_vectors, read_clip
from assay.broad.systems.features.contrast import local_contrast
from assay.core.errors import AssayError
from assay.stimuli.clips import ArrayClip

rng = np.random.default_rng(0)
CLIPS = [ArrayClip("a", rng.random((7, 3, 24, 32))), ArrayClip("b", rng.random((12, 40, 30)))]
INPUTS = Inputs(CLIPS, ("a", "b"))


@pytest.mark.requirement("B3")
def test_width_is_300_and_the_height_is_free():
    assert read_clip(ArrayClip("wide", np.zeros((2, 40, 100)))).shape == (2, 120, 300)
    assert read_clip(ArrayClip("half", np.zeros((1, 333, 600)))).shape == (1, 166, 300)  # 166.5 rounds to even


def test_colour_becomes_luminance():
    found = read_clip(CLIPS[0], width=None)
    expected = np.einsum("tchw,c->thw", CLIPS[0].array, [0.299, 0.587, 0.114])
    np.testing.assert_allclose(found, expected, atol=1e-6)  # float32
    assert found.dtype == np.float32


def test_frames_of_the_right_width_are_left_alone():
    np.testing.assert_array_equal(read_clip(CLIPS[1], width=30), CLIPS[1].array[:, 0])


def test_shrinking_averages_over_area_and_keeps_the_mean():
    board = np.indices((32, 32)).sum(0) % 2  # every pixel differs from its neighbours: sampling would show it
    found = read_clip(ArrayClip("board", board[None].astype(float)), width=8)
    # Away from borders the triangular window weighs both colours alike.
    np.testing.assert_allclose(found[0, 1:-1, 1:-1], 0.5, atol=1e-6)


def test_every_so_manieth_frame_and_no_more_than_asked_for():
    clip = ArrayClip("ramp", np.arange(10.0)[:, None, None] / 10 * np.ones((1, 4, 4)))
    taken = [
        10 * read_clip(clip, None, every, frames)[:, 0, 0] for every, frames in ((1, None), (3, None), (2, 3), (9, 5))
    ]
    for found, expected in zip(taken, (range(10), (0, 3, 6, 9), (0, 2, 4), (0, 9)), strict=True):
        np.testing.assert_allclose(found, list(expected), atol=1e-6)


def test_frames_past_the_last_one_wanted_are_not_read():
    array = np.zeros((5, 4, 4))
    array[3] = np.nan
    assert read_clip(ArrayClip("damaged later", array), None, frames=3).shape == (3, 4, 4)
    with pytest.raises(AssayError, match="frame 3 has NaN"):
        read_clip(ArrayClip("damaged", array), None)


def test_preprocessors_treat_each_clip_alone_and_give_t_h_w():
    for preprocessor in (GreyClips(width=16), ContrastClips(width=16, every=2, frames=5)):
        assert preprocessor.fit(INPUTS) is preprocessor
        both = preprocessor.transform(INPUTS)
        alone = [preprocessor.transform(INPUTS.take(np.array([i])))[0] for i in range(2)]
        for x, y in zip(both, alone, strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.ndim == 3 and x.dtype == np.float32 and x.shape[2] == 16
    assert [x.shape for x in GreyClips(width=16).transform(INPUTS)] == [(7, 12, 16), (12, 21, 16)]


def test_grey_clips_are_half_as_wide_as_the_plan_says():
    assert (GreyClips().width, ContrastClips().width) == (150, 300)


def test_contrast_clips_are_normalised_grey_clips():
    (found, _) = ContrastClips(width=16, sigma=1.5, tau=1.0).transform(INPUTS)
    (grey, _) = GreyClips(width=16).transform(INPUTS)
    np.testing.assert_array_equal(found, local_contrast(torch.from_numpy(grey), 1.5, 1.0).numpy())


# -- vectors ---------------------------------------------------------------------------------------------


def test_clips_of_all_sizes_become_vectors_of_one_length():
    found = as_vectors([rng.random(shape) for shape in ((3, 5, 7), (30, 20, 40), (4, 8, 8))])
    assert found.shape == (3, 4 * 8 * 8)


@settings(max_examples=20)
@given(st.tuples(*[st.integers(1, 3)] * 3), st.tuples(*[st.integers(1, 3)] * 3))
def test_parts_of_the_grid_are_means_of_their_pixels(grid, times):
    clip = rng.random(tuple(g * k for g, k in zip(grid, times, strict=True)))
    (t, y, x), (a, b, c) = grid, times
    expected = clip.reshape(t, a, y, b, x, c).mean((1, 3, 5)).ravel()
    np.testing.assert_allclose(as_vectors([clip], grid)[0], expected, atol=1e-12)


def test_bags_become_the_mean_over_their_windows():
    bags = [rng.random((m, 6)) for m in (1, 4)]
    np.testing.assert_array_equal(as_vectors(bags), [bags[0][0], bags[1].mean(axis=0)])


def test_matrices_are_left_alone():
    for matrix in (rng.random((3, 4)), sparse.csr_matrix(np.eye(3))):
        assert as_vectors(matrix) is matrix


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: read_clip(CLIPS[0], width=0), "width=0"),
        (lambda: read_clip(CLIPS[0], every=0), "every=0"),
        (lambda: GreyClips(frames=0), "frames=0"),
        (lambda: ContrastClips(tau=-1), "tau=-1"),
        (lambda: read_clip(ArrayClip("two", np.zeros((3, 2, 4, 4)))), "2 channels"),
        (lambda: read_clip(ArrayClip("none", np.zeros((0, 4, 4)))), "no frames"),
        (lambda: GreyClips().fit(Inputs(["a review"], ("r",))), "GreyClips takes clips, not str"),
        (
            lambda: ContrastClips().transform(Inputs(sparse.eye(2, format="csr"), ("r", "s"))),
            "ContrastClips takes clips",
        ),
        (lambda: as_vectors([]), "none"),
        (lambda: as_vectors([np.zeros((2, 3)), np.zeros((2, 3, 4))]), "give clips T×H×W, or bags m×d"),
        (lambda: as_vectors([np.zeros((0, 3))]), "none empty"),
        (lambda: as_vectors([np.zeros((2, 3)), np.zeros((2, 4))]), r"different lengths: \[3, 4\]"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
