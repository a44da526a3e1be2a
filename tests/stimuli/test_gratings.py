from __future__ import annotations

import math

import numpy as np
import pytest

from assay import AssayError
from assay.stimuli.gratings import AXES, Gratings


def everything(gratings: Gratings) -> np.ndarray:
    return np.concatenate(list(gratings.batches(7)))


def test_each_grating_is_the_formula():
    gratings = Gratings(11, (1.0, 3.0), orientations=4, phases=3, amplitude=0.3, mean=0.4)
    shown = everything(gratings)
    assert shown.shape == (24, 1, 11, 11) and shown.dtype == np.float32
    number = (1 * 4 + 2) * 3 + 1
    theta, phi, omega = 2 * math.pi / 4, 2 * math.pi / 3, 2 * math.pi * 3 / 32
    for row, column in ((0, 0), (3, 8)):
        x, y = column - 5, row - 5
        value = 0.4 + 0.3 * math.sin(omega * (x * math.cos(theta) + y * math.sin(theta)) - phi)
        assert shown[number, 0, row, column] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("axis", ["frequency", "phase"])
def test_trajectories_change_one_parameter_and_keep_the_others(axis):
    gratings = Gratings(20, (2.0, 4.0, 6.0), orientations=5, phases=4)
    table = gratings.trajectories(axis)
    which = AXES.index(axis)
    assert table.shape == (60, gratings.shape[which])
    for i, line in enumerate(table):
        mine = np.unravel_index(i, gratings.shape)
        theirs = np.array(np.unravel_index(line, gratings.shape))
        assert i in line and sorted(theirs[which]) == list(range(gratings.shape[which]))
        assert all((theirs[a] == mine[a]).all() for a in range(3) if a != which)


@pytest.mark.parametrize("phases", [1, 4, 5, 8])
@pytest.mark.parametrize("orientations", [1, 4, 5])
def test_trajectories_of_orientation_turn_a_grating_on_past_half_a_turn(orientations, phases):
    """Past π the grid has the grating with phase π − φ, and none where the number of phases is odd."""
    gratings = Gratings(9, (3.0, 5.0), orientations=orientations, phases=phases)
    shown = everything(gratings)[:, 0]
    y, x = np.mgrid[-4:5, -4:5]
    table, differences = gratings.trajectories("orientation"), gratings.magnitudes("orientation")
    number = gratings.magnitude_of("orientation")
    for i, line in enumerate(table):
        f, o, p = np.unravel_index(i, gratings.shape)
        assert i in line and len(set(number[i])) == orientations
        for other, difference in zip(line, differences[number[i]], strict=True):
            degrees = 180 * o / orientations + difference
            assert (other < 0) == (bool(phases % 2) and not 0 <= degrees < 180)
            if other < 0:
                continue
            theta, phi, omega = math.radians(degrees), 2 * math.pi * p / phases, 2 * math.pi * (3, 5)[f] / 32
            turned = 0.5 + 0.5 * np.sin(omega * (x * math.cos(theta) + y * math.sin(theta)) - phi)
            np.testing.assert_allclose(shown[other], turned, atol=1e-6)  # single precision


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("phases", [4, 5])
def test_gratings_whose_trajectories_meet_are_drawn_together(axis, phases):
    gratings = Gratings(9, (3.0, 5.0), orientations=6, phases=phases)
    block = gratings.blocks(axis)
    for i, line in enumerate(gratings.trajectories(axis)):
        assert set(block[line[line >= 0]]) == {block[i]}
    sizes = np.bincount(block)
    # A circle of orientations has two phases, φ and π − φ; π/2 and 3π/2 have themselves.
    assert set(sizes) == ({6, 12} if axis == "orientation" and phases == 4 else {gratings.shape[AXES.index(axis)]})


def test_wrong_grids_say_what_is_wrong():
    with pytest.raises(AssayError, match="cycles per 32 pixels: above 0 and at most 16"):
        Gratings(20, (2.0, 17.0))
    with pytest.raises(AssayError, match="must be positive"):
        Gratings(20, phases=0)
    with pytest.raises(AssayError, match="must be whole numbers"):
        Gratings(20, phases=2.5)
    with pytest.raises(AssayError, match="must be finite"):
        Gratings(20, amplitude=math.nan)
    with pytest.raises(AssayError, match="name one twice"):
        Gratings(20, (4.0, 4.0))
    for wrong in (4.0, "24", (2.0, "4"), None):
        with pytest.raises(AssayError, match="must be numbers, one after the other"):
            Gratings(20, wrong)  # type: ignore[arg-type]
    with pytest.raises(AssayError, match="vary in frequency, orientation, phase, not in 'scale'"):
        Gratings(20).trajectories("scale")
