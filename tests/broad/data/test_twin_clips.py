from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from assay import AssayError
from assay.broad.data.hollywood2 import ACTIONS, check_hollywood2
from assay.broad.data.twin_clips import CLASS_SIZES, PATTERNS, generated_clips


def pixels(clip):
    return np.stack(list(clip.checked_frames()))


@pytest.fixture(scope="module")
def small():
    return generated_clips(training=160, test=160, frames=(14, 18), size=(48, 36), seed=0)


@pytest.mark.requirement("B9")
def test_generated_clips_have_the_plans_numbers():
    training, test = generated_clips()
    assert check_hollywood2(training, test) == []
    assert training.targets.sum(axis=0).tolist() == list(CLASS_SIZES["training"])
    assert test.targets.sum(axis=0).tolist() == list(CLASS_SIZES["test"])
    assert not set(training.groups) & set(test.groups)
    assert (len(set(training.groups)), len(set(test.groups))) == (33, 36)
    assert {40, 80} == {f({c.count() for c in training.inputs.items}) for f in (min, max)}


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(12, 900), st.integers(12, 900), st.integers(0, 2**32))
def test_other_sizes_keep_the_proportions_and_every_action(training, test, seed):
    for twin, count, by_labels in zip(
        generated_clips(training, test, seed=seed), (training, test), ((750, 68, 5), (798, 84, 2)), strict=True
    ):
        assert len(twin) == count and twin.targets.any(axis=0).all()
        assert len({c.fingerprint for c in twin.inputs.items}) == count
        found = np.bincount(twin.targets.sum(axis=1), minlength=4)
        expected = count * np.array(by_labels) / sum(by_labels)
        assert found[0] == 0 and (abs(found[1:] - expected) < 1).all()


def test_clips_follow_from_their_fields_and_survive_pickling(small):
    (clip, other), (same, _) = (
        small[0].inputs.items[:2],
        generated_clips(160, 160, (14, 18), (48, 36))[0].inputs.items[:2],
    )
    copy = pickle.loads(pickle.dumps(clip))
    assert copy == clip == same and copy.fingerprint == clip.fingerprint == same.fingerprint != other.fingerprint
    shown = pixels(clip)
    assert shown.shape == (clip.count(), 3, 36, 48) and shown.dtype == np.float32
    assert shown.min() >= 0 and shown.max() <= 1 and 14 <= len(shown) <= 18
    np.testing.assert_array_equal(shown, pixels(copy))
    assert abs(shown[:14] - pixels(other)[:14]).max() > 0.1
    other_seed = generated_clips(160, 160, (14, 18), (48, 36), seed=1)[0].inputs.items[0]
    assert other_seed.fingerprint != clip.fingerprint


def test_a_clip_shows_as_many_windows_as_it_has_labels(small):
    """Change over time is mostly inside the windows: with several labels, more of the frame changes."""
    training = small[0]
    counts = training.targets.sum(axis=1)
    moving = np.array([np.diff(pixels(c).mean(axis=1), axis=0).std(axis=0).max(axis=0) for c in training.inputs.items])
    share = (moving > 0.12).mean(axis=1)
    assert share[counts >= 2].mean() > 1.4 * share[counts == 1].mean()


def motion(clip):
    """How much of the change in a clip is along each direction at each speed: a histogram of space-time gradients."""
    grey = pixels(clip).mean(axis=1)
    grey = (grey[:, :-1, :-1] + grey[:, 1:, :-1] + grey[:, :-1, 1:] + grey[:, 1:, 1:]) / 4
    gt, gy, gx = np.gradient(grey)
    steep = np.hypot(gx, gy)
    angle = ((np.arctan2(gy, gx) / (2 * np.pi) + 1 / 16) % 1 * 8).astype(int)
    speed = np.digitize(gt / (steep + 0.02), [-1, -0.3, 0.3, 1])
    weight = np.sqrt(steep**2 + gt**2)
    cell = (np.digitize(weight, [0.03, 0.06, 0.12]) * 8 + angle) * 5 + speed
    return np.sqrt(np.bincount(cell.ravel(), weight.ravel(), minlength=4 * 8 * 5))


@pytest.mark.slow
def test_a_linear_model_of_motion_beats_chance_on_clips_and_a_constant_does_not(small):
    training, test = small
    shown = StandardScaler().fit([motion(c) for c in training.inputs.items])
    x, z = (shown.transform([motion(c) for c in part.inputs.items]) for part in small)
    learned, constant = [], []
    for j in range(len(ACTIONS)):
        model = LogisticRegression(C=0.1, max_iter=1000, class_weight="balanced").fit(x, training.targets[:, j])
        learned.append(average_precision_score(test.targets[:, j], model.decision_function(z)))
        constant.append(average_precision_score(test.targets[:, j], np.ones(len(test))))
    prevalence = test.targets.mean(axis=0)
    np.testing.assert_allclose(constant, prevalence, atol=1e-12)
    assert np.mean(learned) > 3 * prevalence.mean()
    assert np.mean(learned) < 0.95  # not trivial


@pytest.mark.parametrize(
    ("action", "reverse"), [("AnswerPhone", "DriveCar"), ("GetOutCar", "HugPerson"), ("SitDown", "StandUp")]
)
def test_some_actions_are_others_run_backwards_so_that_no_single_frame_tells_them_apart(action, reverse):
    y, x = np.mgrid[-2:2:9j, -2:2:9j]
    for t in (0.0, 0.3, 1.7):
        # Equal but for the rounding of sums below 5 turns, in radians.
        np.testing.assert_allclose(PATTERNS[action](x, y, t), PATTERNS[reverse](x, y, -t), atol=1e-13)
        assert abs(PATTERNS[action](x, y, 0.25) - PATTERNS[reverse](x, y, 0.25)).max() > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generated_clips(training=11), "training=11: the 12 actions need at least 12 clips"),
        (lambda: generated_clips(test=3), "test=3"),
        (lambda: generated_clips(frames=(9, 5)), r"frames=\(9, 5\)"),
        (lambda: generated_clips(size=(96, 4)), r"size=\(96, 4\)"),
    ],
)
def test_wrong_sizes_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
