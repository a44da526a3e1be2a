from __future__ import annotations

import numpy as np

from assay.core.progress import listening
from assay.stimuli import ArrayClip, Sequences


def test_pixel_fade_is_the_line_between_the_ends():
    clip = ArrayClip("a", np.random.default_rng(0).random((5, 1, 4, 4)))
    (fade,) = Sequences((clip,)).pixel_fade()
    frames = np.stack(list(fade.frames()))
    w = np.linspace(0, 1, 5)[:, None, None, None]
    np.testing.assert_allclose(frames, (1 - w) * clip.array[0] + w * clip.array[-1], atol=1e-7)  # float32
    assert fade.condition == "pixel_fade" and fade.name == "a"


def test_contrast_fade_keeps_the_mean_and_lowers_the_contrast():
    clip = ArrayClip("a", np.random.default_rng(0).random((5, 1, 8, 8)))
    (fade,) = Sequences((clip,)).contrast_fade(low=0.2)
    frames = np.stack(list(fade.frames()))
    np.testing.assert_allclose(frames.mean((1, 2, 3)), clip.array[0].mean(), rtol=1e-6)
    ratio = frames.std((1, 2, 3)) / clip.array[0].std()
    np.testing.assert_allclose(ratio, np.linspace(1, 0.2, 5), rtol=1e-5)


def test_progress_is_told_while_a_long_clip_is_looked_through():
    (fade,) = Sequences((ArrayClip("long", np.zeros((2500, 1, 1, 1))),)).pixel_fade()
    heard = []
    with listening(lambda *report: heard.append(report)):
        next(fade.frames())
    assert heard == [("long: frames looked through", count, None) for count in (1000, 2000)]
