"""Clips from video files, decoded frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from assay.core.errors import AssayError
from assay.core.fingerprint import file_fingerprint, fingerprint
from assay.core.reading import reading
from assay.stimuli.clips import Clip
from assay.stimuli.pictures import Array, Color, picture_to_array

VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".y4m"})


@dataclass(frozen=True)
class Video(Clip):
    """A video file, decoded frame by frame through PyAV; every ``step``-th frame of [start, stop)."""

    name: str
    path: Path
    size: int | tuple[int, int] | None = None
    color: Color | None = None
    start: int = 0
    stop: int | None = None
    step: int = 1
    scene: str = ""

    def frames(self) -> Iterator[Array]:
        """Decode and resize the frames, one at a time; see `pictures`."""
        for picture in self.pictures():
            yield picture_to_array(picture, self.size, self.color)

    def pictures(self) -> Iterator[Image.Image]:
        """Decode the frames, one at a time, in their own size and colours.

        Damage that the decoder or the container reveals is an error, not a shorter clip: a broken packet, or frames
        that end before the duration the file states. (An avi states no duration, and may be cut between two frames.)
        """
        import av

        t = -1
        with reading(self.path, "a video"):
            try:
                with av.open(str(self.path)) as container:
                    if not container.streams.video:
                        raise AssayError(f"{self.path} has no video stream")
                    stream = container.streams.video[0]
                    if stream.codec_context is None:  # typed as never None, and is, where damage hides which decoder
                        raise AssayError(f"{self.path} cannot be decoded at all: it does not say by which decoder")
                    stream.codec_context.options = {"err_detect": "explode"}
                    shown_s = 0.0
                    for t, frame in enumerate(container.decode(stream)):
                        if frame.is_corrupt:
                            raise AssayError(f"{self.path} is damaged at frame {t}")
                        if self.stop is not None and t >= self.stop:
                            return
                        shown_s = _end_s(frame, stream)
                        if t >= self.start and (t - self.start) % self.step == 0:
                            yield frame.to_image()  # type: ignore[no-untyped-call]
                    length_s = _length_s(container, stream)
                    slack_s = 1.5 / float(stream.average_rate or 10)
                    if length_s is not None and shown_s + slack_s < length_s:
                        raise AssayError(f"{self.path} is damaged: its frames end at {shown_s:.2f} of {length_s:.2f} s")
            except (av.error.FFmpegError, EOFError) as error:
                nothing = "at all: it is empty, cut short, no video, or breaks the rules of its codec"
                where = f"past frame {t}" if t >= 0 else nothing
                raise AssayError(f"{self.path} cannot be decoded {where} ({error})") from error
        if t < 0:
            raise AssayError(f"{self.path} holds no decodable frame")

    @property
    def fingerprint(self) -> str:
        """Hash of the bytes of the file and of how it is read."""
        window = (self.start, self.stop, self.step)
        return fingerprint(file_fingerprint(self.path), self.size, self.color, window)


def _end_s(frame: Any, stream: Any) -> float:
    """Return when a frame ends, in seconds from the first; infinity where the file does not say."""
    if frame.pts is None:
        return float("inf")
    return float((frame.pts + (frame.duration or 0) - (stream.start_time or 0)) * stream.time_base)


def _length_s(container: Any, stream: Any) -> float | None:
    """Return the duration that the file states, in seconds."""
    if stream.duration is not None:
        return float(stream.duration * stream.time_base)
    return None if container.duration is None else float(container.duration / 1e6)
