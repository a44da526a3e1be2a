from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from torch import nn

from assay import AssayError, Straightness, Subject
from assay.stimuli import ArrayClip, NaturalVideo, Sequences, as_sequences, load_footage, load_sequences


def write_frames(folder, n=4, size=(12, 8), mode="L", seed=0):
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
    frames = rng.integers(0, 256, (n, *shape), dtype=np.uint8)
    for i, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / f"{i:02d}.png")
    return frames


def all_frames(sequences):
    return np.concatenate([frames for frames, _ in sequences.batches(3)])


def test_a_folder_of_folders_is_a_clip_each(tmp_path):
    a = write_frames(tmp_path / "a")
    write_frames(tmp_path / "b", seed=1)
    (tmp_path / "notes.txt").write_text("not a clip")
    sequences = load_sequences(tmp_path)
    assert [c.name for c in sequences] == ["a", "b"]
    np.testing.assert_array_equal(np.stack(list(sequences.clips[0].frames()))[:, 0], np.float32(a) / 255)


def test_a_folder_of_pictures_is_one_clip_and_windows_apply(tmp_path):
    frames = write_frames(tmp_path / "clip", n=9)
    (clip,) = load_sequences(tmp_path / "clip", start=1, stop=8, step=3)
    got = np.stack(list(clip.frames()))[:, 0]
    np.testing.assert_array_equal(got, np.float32(frames[1:8:3]) / 255)


def test_resizing_is_pils_lanczos_of_the_central_square(tmp_path):
    (frame,) = write_frames(tmp_path / "clip", n=1, size=(12, 8))
    (clip,) = load_sequences(tmp_path, size=4)
    expected = Image.fromarray(frame[:, 2:10]).resize((4, 4), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(next(clip.frames())[0], np.float32(np.asarray(expected)) / 255)
    (whole,) = load_sequences(tmp_path, size=(4, 6))
    assert next(whole.frames()).shape == (1, 4, 6)


def test_colour_on_request(tmp_path):
    write_frames(tmp_path / "grey")
    write_frames(tmp_path / "rgb", mode="RGB")
    assert [next(c.frames()).shape[0] for c in load_sequences(tmp_path)] == [1, 3]
    assert [next(c.frames()).shape[0] for c in load_sequences(tmp_path, color="rgb")] == [3, 3]
    assert [next(c.frames()).shape[0] for c in load_sequences(tmp_path, color="grey")] == [1, 1]


def test_16_bit_and_floating_point_pictures_keep_their_values(tmp_path):
    values = np.array([[0, 1000], [40000, 65535]], dtype=np.uint16)
    for name, picture in {"int.png": values, "float.tif": (values / 65535).astype(np.float32)}.items():
        (tmp_path / name).mkdir()
        Image.fromarray(picture).save(tmp_path / name / name)
    for clip in load_sequences(tmp_path, color="rgb"):
        np.testing.assert_allclose(next(clip.frames()), np.float32(np.stack([values] * 3)) / 65535, atol=1e-7)


def test_frames_play_in_the_order_of_their_numbers(tmp_path):
    (tmp_path / "clip").mkdir()
    for t in range(1, 13):
        Image.new("L", (2, 2), t).save(tmp_path / "clip" / f"frame{t}.png")
    (clip,) = load_sequences(tmp_path)
    assert [round(f[0, 0, 0] * 255) for f in clip.frames()] == list(range(1, 13))


def test_a_folder_of_arrays_is_a_clip_each(tmp_path):
    rng = np.random.default_rng(0)
    one, two = rng.random((6, 4, 5), np.float32), rng.integers(0, 256, (6, 4, 5, 3), np.uint8)
    np.save(tmp_path / "one.npy", one)
    np.savez(tmp_path / "more.npz", two=two, several=np.stack([one[:, None]] * 2))
    clips = {clip.name: np.stack(list(clip.frames())) for clip in load_sequences(tmp_path, start=1, step=2)}
    assert list(clips) == ["two", "several 0", "several 1", "one"]
    np.testing.assert_array_equal(clips["one"], one[1::2, None])
    np.testing.assert_array_equal(clips["several 1"], one[1::2, None])
    np.testing.assert_array_equal(clips["two"], np.float32(two[1::2].transpose(0, 3, 1, 2)) / 255)
    assert as_sequences(tmp_path).fingerprint == load_sequences(tmp_path).fingerprint
    with pytest.raises(AssayError, match=r"one.npy holds arrays of 1×4×5, which are used as they are .* size=3"):
        load_sequences(tmp_path / "one.npy", size=3)
    with pytest.raises(AssayError, match="holds the array 'two': footage is read from pictures and videos"):
        load_footage(tmp_path)


def test_an_array_beside_pictures_or_videos_is_no_clip(tmp_path):
    write_frames(tmp_path / "a")
    np.save(tmp_path / "labels.npy", np.arange(3))
    assert [clip.name for clip in load_sequences(tmp_path)] == ["a"]


def test_a_sub_folder_of_clips_is_a_scene_whose_clips_are_drawn_together(tmp_path):
    write_frames(tmp_path / "alone", n=12)
    write_frames(tmp_path / "park" / "morning", n=12, seed=1)
    write_frames(tmp_path / "park" / "evening", n=12, seed=2)
    (tmp_path / "street").mkdir()
    np.save(tmp_path / "street" / "cars.npy", np.random.default_rng(0).random((12, 8, 12)))
    (tmp_path / "empty" / "too" / "deep").mkdir(parents=True)
    sequences = load_sequences(tmp_path)
    scenes = {"alone": "", "park evening": "park", "park morning": "park", "street cars": "street"}
    assert {clip.name: clip.scene for clip in sequences} == scenes
    assert [clip.scene for clip in sequences.pixel_fade()] == list(scenes.values())
    blocks = NaturalVideo({"walking": sequences}, whitened=False).blocks("walking")
    assert len(np.unique(blocks)) == 3
    table = Straightness(sequences)(Subject(nn.Sequential(nn.Flatten(), nn.ReLU())))
    assert table.groupby("sequence")["scene"].first().to_dict() == {name: of or name for name, of in scenes.items()}


def test_arrays_beside_a_scene_of_arrays_are_clips_too(tmp_path):
    frames = np.random.default_rng(0).random((12, 8, 8))
    (tmp_path / "walk").mkdir()
    for name in ("a", "b", "walk/c"):
        np.save(tmp_path / f"{name}.npy", frames)
    assert {clip.name: clip.scene for clip in load_sequences(tmp_path)} == {"a": "", "b": "", "walk c": "walk"}


def test_batches_cross_clips_and_end_where_the_shape_changes():
    rng = np.random.default_rng(0)
    sequences = Sequences.of(a=rng.random((4, 6, 6)), b=rng.random((3, 6, 6)), c=rng.random((2, 5, 5)))
    sizes = [(len(frames), owner.tolist()) for frames, owner in sequences.batches(5)]
    assert sizes == [(5, [0, 0, 0, 0, 1]), (2, [1, 1]), (2, [2, 2])]


def test_fingerprints_follow_content_and_how_it_is_read(tmp_path):
    write_frames(tmp_path / "x" / "a")
    write_frames(tmp_path / "y" / "a")
    x, y = load_sequences(tmp_path / "x"), load_sequences(tmp_path / "y")
    assert x.fingerprint == y.fingerprint
    assert x.fingerprint != load_sequences(tmp_path / "x", size=4).fingerprint
    assert x.fingerprint != x.pixel_fade().fingerprint != x.contrast_fade().fingerprint


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: load_sequences(p / "nowhere"), "does not exist"),
        (lambda p: load_sequences(p), "holds no sub-folder of pictures, no video"),
        (lambda p: load_sequences(p, color="blue"), "color='blue' is not"),
        (lambda p: load_sequences(p, size=0), "size=0 is not a positive"),
        (lambda p: Sequences(()), "no sequences"),
        (lambda p: Sequences.of(a=np.zeros(3)), r"T×C×H×W or T×H×W, not \(3,\)"),
        (lambda p: Sequences.of(a=np.zeros((3, 4, 4), int)), "frames are int64"),
        (lambda p: Sequences((ArrayClip("a", np.zeros((3, 2, 2))),) * 2), "two natural clips are called 'a'"),
        (lambda p: all_frames(Sequences.of(a=np.full((3, 2, 2), np.nan))), "'a': frame 0 has NaN"),
        (lambda p: all_frames(Sequences.of(a=np.zeros((0, 2, 2)))), "'a' has no frames"),
    ],
)
def test_bad_sequences_say_what_is_wrong(tmp_path, make, message):
    with pytest.raises(AssayError, match=message):
        make(tmp_path)


def test_a_damaged_picture_and_uneven_frames_are_named(tmp_path):
    write_frames(tmp_path / "a")
    (tmp_path / "a" / "01.png").write_bytes(b"not a picture")
    with pytest.raises(AssayError, match=r"01\.png cannot be read as a picture"):
        all_frames(load_sequences(tmp_path))
    Image.new("L", (3, 3)).save(tmp_path / "a" / "01.png")
    with pytest.raises(AssayError, match="frame 1 is"):
        all_frames(load_sequences(tmp_path))
