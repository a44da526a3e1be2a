from __future__ import annotations

import numpy as np
import pytest

from assay import AssayError
from assay.stimuli import CameraClip, camera_sequences, photographs


def ramp(size=64):
    y, x = np.mgrid[:size, :size]
    return np.stack([x, y]).astype(np.float32)


def test_translation_moves_the_window_by_the_shift():
    frames = list(CameraClip("a", ramp(), 8, 5, shift=(0.5, 2.0)).frames())
    steps = np.diff([f.mean((1, 2)) for f in frames], axis=0)
    np.testing.assert_allclose(steps, [[2.0, 0.5]] * 4, atol=1e-4)  # bilinear sampling of a ramp is exact


def test_rotation_turns_about_the_centre_and_a_full_turn_returns():
    frames = list(CameraClip("a", ramp(), 9, 5, turn_deg=90.0).frames())
    np.testing.assert_allclose(frames[0], frames[4], atol=1e-4)
    np.testing.assert_allclose(frames[1], np.rot90(frames[2], 1, axes=(1, 2)), atol=1e-4)


def test_zoom_scales_the_window():
    frames = list(CameraClip("a", ramp(), 9, 3, zoom=2.0).frames())
    spans = [f[0].max() - f[0].min() for f in frames]
    np.testing.assert_allclose(spans, [4, 8, 16], atol=1e-3)


def test_camera_sequences_over_real_photographs():
    sequences = camera_sequences(size=16, length=4, pictures=2)
    assert [c.name for c in sequences] == [
        f"{p}-{m}" for p in ("china", "flower") for m in ("translation", "rotation", "zoom")
    ]
    frames, _ = next(sequences.batches(100))
    assert frames.shape == (24, 3, 16, 16) and frames.std() > 0.1
    assert frames.min() >= 0 and frames.max() <= 1


def test_photographs_are_real_pictures():
    found = dict(photographs(32, "grey"))
    assert {"china", "flower"} <= set(found)
    assert all(p.shape == (1, 32, 32) and p.std() > 0.03 for p in found.values())


def test_bad_settings_are_named():
    with pytest.raises(AssayError, match="unknown motion 'spin'"):
        camera_sequences(motions=("spin",))
    with pytest.raises(AssayError, match="length=0"):
        camera_sequences(length=0)
