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


@pytest.mark.parametrize("axis", AXES)
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


def test_wrong_grids_say_what_is_wrong():
    with pytest.raises(AssayError, match="cycles per 32 pixels: above 0 and at most 16"):
        Gratings(20, (2.0, 17.0))
    with pytest.raises(AssayError, match="must be positive"):
        Gratings(20, phases=0)
    with pytest.raises(AssayError, match="vary in frequency, orientation, phase, not in 'scale'"):
        Gratings(20).trajectories("scale")
