"""What stimuli say of themselves is one line, whatever they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import assay
from assay.stimuli import Family, FrameFolder, Gratings, Images, Labelled, ParametricTest, Sequences, camera_sequences

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


@pytest.mark.parametrize(
    ("thing", "pictures"),
    [
        (DATA, 2),
        (Images(PICTURES), 8),
        (CLIPS, 3),
        (CLIPS.clips[0], 4),
        (ParametricTest(Images(PICTURES), (Family("rotation", (0.0, 10.0)),)), 8),
        (Gratings(8, phases=2, orientations=2), 8),
        (Labelled(np.zeros((20, 5), np.float32), np.arange(20) % 2), 0),
        (FrameFolder("lost", (Path("nowhere.png"),)), 0),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_notebook_shows_a_few_thumbnails_where_stimuli_are_pictures(thing, pictures):
    shown = thing._repr_html_()
    assert shown.count("<img") == pictures and len(shown) < 20_000


def test_names_of_classes_are_escaped_under_their_pictures():
    shown = Labelled(PICTURES, np.arange(20) % 2, class_names=("<b>cat", "dog"))._repr_html_()
    assert "<b>cat" not in shown and shown.count("&lt;b&gt;cat") == 3
