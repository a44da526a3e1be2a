from __future__ import annotations

import numpy as np
import pytest

from assay import AssayError
from assay.stimuli import (
    NaturalVideo,
    Sequences,
    camera_video,
    load_coil20,
    load_sequences,
    turning_objects,
)
from assay.stimuli.pictures import photographs


def test_patches_lie_at_the_centre_of_rotation():
    frames = np.zeros((5, 30, 40), np.float32)
    frames[:, 15 - 2 : 15 + 2, 20 - 2 : 20 + 2] = 1
    (patch,) = {
        b.tobytes() for b in next(NaturalVideo({"turn": Sequences.of(a=frames)}, patch=4, whitened=False).batches(9))
    }
    assert np.frombuffer(patch, np.float32).all()


def test_clips_of_one_scene_are_one_block_and_clips_without_a_scene_are_their_own():
    moving = NaturalVideo(camera_video(20, length=3, clips=4, pictures=2), patch=9, places=4)
    blocks = moving.blocks("translation")
    assert len(blocks) == len(moving) == 2 * 2 * 4 * 3 * 4  # motions, scenes, clips, frames, places
    scenes = [clip.scene for sequences in moving.clips.values() for clip in sequences]
    assert len(set(zip(scenes, blocks[:: 3 * 4].tolist(), strict=True))) == len(set(scenes)) == 2
    alone = NaturalVideo({"a": Sequences.of(x=np.zeros((2, 9, 9)), y=np.ones((3, 9, 9)))}, patch=9, whitened=False)
    assert alone.blocks("a").tolist() == [0, 0, 1, 1, 1]


def test_camera_video_turns_around_the_centre_of_the_patch():
    clip = camera_video(33, length=3, clips=1, turn_deg=90.0, pictures=1)["rotation_2d"].clips[0]
    a, b, c = (f[0] for f in clip.frames())
    turned = np.rot90(a) if np.abs(np.rot90(a) - b).max() < np.abs(np.rot90(a, -1) - b).max() else np.rot90(a, -1)
    np.testing.assert_allclose(turned, b, atol=1e-4)
    np.testing.assert_allclose(np.rot90(a, 2), c, atol=1e-4)


def test_rendered_objects_come_back_after_a_full_turn_and_are_seen_whole():
    for clip in turning_objects(48, length=5, count=4, turn_deg=90.0):
        frames = np.stack(list(clip.frames()))
        np.testing.assert_allclose(frames[0], frames[4], atol=1e-5)
        assert clip.count() == 5 and np.abs(frames[0] - frames[1]).max() > 0.1
        edge = np.concatenate([frames[..., 0, :].ravel(), frames[..., -1, :].ravel()])
        assert not edge.any() and (frames > 0).mean() > 0.1


def test_rendered_objects_wear_the_photographs_that_are_asked_for():
    every, two = (turning_objects(16, length=1, count=4, pictures=names) for names in (None, ["rocket", "china"]))
    known = dict(photographs(256, "grey"))
    assert all(np.array_equal(clip.texture, picture) for clip, picture in zip(every, known.values(), strict=False))
    assert [np.array_equal(clip.texture, known["china"]) for clip in two] == [False, True, False, True]
    assert [clip.scene for clip in two] == ["rocket", "china", "rocket", "china"]  # those in one picture are one scene
    assert all(a.radii == b.radii and a.start_deg == b.start_deg for a, b in zip(every, two, strict=True))
    with pytest.raises(AssayError, match="no photograph 'rokcet'; did you mean 'rocket'"):
        turning_objects(16, length=1, pictures=["rokcet"])
    for nothing in ("rocket", []):
        with pytest.raises(AssayError, match="a list of names of photographs: china"):
            turning_objects(16, length=1, pictures=nothing)


def test_a_box_seen_straight_on_has_the_area_it_should():
    from assay.stimuli import TurningObject

    box = TurningObject("box", np.ones((1, 8, 8), np.float32), "box", (0.6, 0.3, 0.5), 240, 1, lean_deg=0.0)
    (frame,) = box.frames()
    assert (frame > 0).mean() == pytest.approx(1.2 * 0.6 / 2.4**2, rel=0.03)  # pixels are counted whole


@pytest.mark.slow
def test_real_footage_and_turntables_load(shared_data):
    coil = load_coil20(shared_data / "coil20" / "coil20_64.npz")
    footage = load_sequences(shared_data / "videos", size=32, color="grey", stop=12)
    test = NaturalVideo({"turntable": coil, "footage": footage}, patch=14)
    shown = np.concatenate(list(test.batches(500)))
    assert len(coil) == 20 and coil.clips[0].count() == 72
    assert shown.shape == (len(test), 1, 14, 14) and len(test) == 20 * 72 + 5 * 12
    assert np.abs(shown).max() <= 1 and np.isfinite(shown).all()


def test_a_damaged_video_is_one_clear_sentence(shared_data, tmp_path):
    data = (shared_data / "videos" / "bikes.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(data[: len(data) // 2])
    test = NaturalVideo({"footage": load_sequences(tmp_path, size=16)})
    with pytest.raises(AssayError, match=r"cut\.mp4"):
        len(test)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"clips": {}}, "clips is empty"),
        ({"reach": 0}, "reach=0"),
        ({"patch": 0}, "patch=0"),
        ({"places": 3, "patch": 4}, "places=3 is not a square number"),
        ({"places": 4}, "needs the side of a patch"),
    ],
)
def test_bad_settings_are_one_clear_sentence(settings, sentence):
    clips = {"a": Sequences.of(x=np.zeros((4, 8, 8)))}
    with pytest.raises(AssayError, match=sentence):
        NaturalVideo(**({"clips": clips} | settings))


def test_a_patch_larger_than_the_frame_is_one_clear_sentence():
    with pytest.raises(AssayError, match="frames of 8×8 are smaller than patch=9"):
        next(NaturalVideo({"a": Sequences.of(x=np.zeros((4, 8, 8)))}, patch=9).batches(4))
