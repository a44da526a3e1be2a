from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from assay.stimuli import (
    Clip,
    ContrastFade,
    Family,
    Images,
    NaturalVideo,
    ParametricTest,
    PixelFade,
    Sequences,
)


@dataclass(frozen=True)
class Dark(Clip):
    """Generated frames; its fingerprint covers the settings only."""

    name: str = "clip"

    def frames(self):
        yield from np.zeros((3, 1, 4, 4), np.float32)

    @property
    def fingerprint(self):
        return "no settings"


@dataclass(frozen=True)
class Bright(Dark):
    """The same settings after an edit to the code that generates the frames."""

    def frames(self):
        yield from np.ones((3, 1, 4, 4), np.float32)


class Relabelled(Images):
    """The same pixels under another class."""


@pytest.mark.parametrize(
    "composite",
    [PixelFade, ContrastFade, lambda clip: Sequences((clip,)), lambda clip: NaturalVideo({"any": Sequences((clip,))})],
    ids=["pixel fade", "contrast fade", "sequences", "video test"],
)
def test_other_code_behind_the_same_settings_makes_another_fingerprint(composite):
    assert Dark().fingerprint == Bright().fingerprint
    assert composite(Dark()).fingerprint == composite(Dark()).fingerprint
    assert composite(Dark()).fingerprint != composite(Bright()).fingerprint


def test_the_parametric_test_follows_the_class_of_its_images():
    families = (Family("rotation", (0, 90)),)
    pixels = np.zeros((2, 1, 4, 4))
    plain = ParametricTest(Images(pixels), families)
    assert plain.fingerprint == ParametricTest(Images(pixels), families).fingerprint
    assert plain.fingerprint != ParametricTest(Relabelled(pixels), families).fingerprint
