from __future__ import annotations

import av
import numpy as np
import pytest

from assay import AssayError
from assay.stimuli import load_sequences


def write_video(path, n=10, size=32, fps=10, options=None, noise=False):
    with av.open(str(path), "w", options=options or {}) as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        for t in range(n):
            frame = np.full((size, size, 3), 20 * t % 250, dtype=np.uint8)
            if noise:
                frame = np.random.default_rng(t).integers(0, 256, frame.shape, dtype=np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def all_frames(sequences):
    return np.concatenate([frames for frames, _ in sequences.batches(3)])


def test_video_files_decode_frame_by_frame(tmp_path):
    write_video(tmp_path / "clip.mp4")
    (clip,) = load_sequences(tmp_path)
    frames = np.stack(list(clip.frames()))
    assert frames.shape == (10, 3, 32, 32)
    # A codec is lossy: grey levels 0, 20, … to within 3 of 255.
    np.testing.assert_allclose(frames.mean((1, 2, 3)) * 255, np.arange(10) * 20, atol=3)
    (part,) = load_sequences(tmp_path / "clip.mp4", start=2, stop=8, step=2)
    np.testing.assert_array_equal(np.stack(list(part.frames())), frames[2:8:2])


def test_real_videos_decode(shared_data):
    sequences = load_sequences(shared_data / "videos", size=32, color="grey", stop=5)
    assert len(sequences) == 5
    assert all_frames(sequences).shape == (25, 1, 32, 32)


@pytest.mark.parametrize("name", ["bikes.mp4", "cockatoo.mp4"])
def test_a_truncated_video_is_an_error_not_a_shorter_clip(shared_data, tmp_path, name):
    data = (shared_data / "videos" / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(AssayError, match=name):
        all_frames(load_sequences(tmp_path, size=8))


@pytest.mark.parametrize("content", [b"", b"no video at all" * 20])
def test_a_file_of_which_nothing_can_be_decoded_is_named(tmp_path, content):
    (tmp_path / "clip.mp4").write_bytes(content)
    with pytest.raises(AssayError, match=r"clip\.mp4 cannot be decoded at all: it is empty, cut short, no video, or "):
        all_frames(load_sequences(tmp_path))


def test_a_video_cut_short_behind_its_index_is_an_error(tmp_path):
    write_video(tmp_path / "clip.mp4", n=40, options={"movflags": "faststart"})
    data = (tmp_path / "clip.mp4").read_bytes()
    (tmp_path / "clip.mp4").write_bytes(data[: len(data) - 400])
    with pytest.raises(AssayError, match=r"clip\.mp4"):
        all_frames(load_sequences(tmp_path))


@pytest.mark.parametrize("name", ["a.mkv", "a.mp4"])
def test_damage_inside_a_video_is_an_error(tmp_path, name):
    write_video(tmp_path / name, n=60, size=64, noise=True)
    data = bytearray((tmp_path / name).read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AssayError, match=r"a\.m"):
        all_frames(load_sequences(tmp_path))
    (tmp_path / name).write_bytes(data[:middle])
    with pytest.raises(AssayError, match=r"a\.m"):
        all_frames(load_sequences(tmp_path))
