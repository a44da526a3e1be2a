"""Clips on their way to a worker: nothing but what they show says what they show."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
from PIL import Image

from assay.broad.data.hollywood2 import ACTIONS
from assay.broad.data.staging import StoredClip, staged
from assay.broad.data.twin_clips import generated_clips
from assay.broad.data.videos import load_labelled_videos
from assay.broad.tasks import make_tasks

SECRET = "an open secret, for tests"


def test_generated_clips_are_handed_over_as_frames_without_their_recipe(tmp_path):
    view = make_tasks(generated_clips(24, 24, (3, 4), (16, 12)), None, SECRET, 2)[0].for_systems()
    some = view.inputs.take(view.partition.test[:5])
    given = staged(some, tmp_path)
    assert all(type(clip) is StoredClip for clip in given.items)
    assert all(not hasattr(clip, "actions") and not hasattr(clip, "film") for clip in given.items)
    for clip, original in zip(given.items, some.items, strict=True):
        assert clip.name.startswith("instance-") and clip.count() == original.count()
        for a, b in zip(clip.frames(), original.frames(), strict=True):
            assert np.array_equal(a, b) and a.dtype == b.dtype
    told = pickle.dumps(given)
    assert not any(action.encode() in told for action in ACTIONS) and b"twin_clips" not in told


def test_folders_of_classes_do_not_reach_a_system(tmp_path):
    for label in ("kiss", "run"):
        for name in "abcd":
            place = tmp_path / "data" / label / name
            place.mkdir(parents=True)
            for t in range(2):
                Image.fromarray(np.full((4, 5), 40 * t, dtype=np.uint8)).save(place / f"{label}{t}.png")
    view = make_tasks(load_labelled_videos(tmp_path / "data", test=0.5), None, SECRET, 2)[0].for_systems()
    (tmp_path / "given").mkdir()
    given = staged(view.inputs, tmp_path / "given")
    told = pickle.dumps(given).replace(str(tmp_path).encode(), b"")
    assert b"kiss" not in told and b"run" not in told and b"training" not in told
    assert sorted(p.name for p in (tmp_path / "given").iterdir()) == sorted(given.ids)
    assert {p.name for clip in given.items for p in clip.paths} == {"frame-000000.png", "frame-000001.png"}
    assert all(Path(p).read_bytes() for clip in given.items for p in clip.paths)
    shown = view.inputs.ids
    assert list(shown) == sorted(shown) and all(name.startswith("instance-") for name in shown)


def test_the_order_of_classes_is_lost(tmp_path):
    training, test = generated_clips(48, 48, (2, 2), (8, 8))
    view = make_tasks((training, test), None, SECRET, 2)[0].for_systems()
    original = [clip.fingerprint for clip in (*training.inputs.items, *test.inputs.items)]
    assert [clip.fingerprint for clip in view.inputs.items] != original
    assert sorted(clip.fingerprint for clip in view.inputs.items) == sorted(original)
