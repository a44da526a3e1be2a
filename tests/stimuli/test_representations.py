"""What stimuli say of themselves is one line, whatever they hold."""

from __future__ import annotations

import numpy as np
import pytest

import assay
from assay.stimuli import Family, Images, Labelled, ParametricTest, Sequences, camera_sequences

PICTURES = np.zeros((20, 1, 8, 8), np.float32)
DATA = Labelled(PICTURES, np.arange(20) % 2, "blanks")
CLIPS = camera_sequences(size=8, length=4, pictures=1, color="grey")


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (DATA, "Labelled(20 inputs of 1×8×8 in 2 classes from blanks)"),
        (Images(PICTURES, source="blanks"), "Images(20 images of 1×8×8 from blanks)"),
        (CLIPS.clips[0], "CameraClip('china-translation')"),
        (Sequences.of(noise=PICTURES).clips[0], "ArrayClip('noise')"),
        (assay.Margins(DATA), "Margins(data=Labelled(20 inputs"),
        (assay.Straightness(CLIPS), "Straightness(sequences=Sequences("),
        (ParametricTest(Images(PICTURES), (Family("rotation", (0.0, 10.0)),)), "ParametricTest("),
    ],
)
def test_a_representation_is_short_and_shows_no_pixels(thing, words):
    assert repr(thing).startswith(words) and "\n" not in repr(thing)
    assert "array(" not in repr(thing) and len(repr(thing)) < 400
