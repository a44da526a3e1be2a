"""Whether networks are shown pixels in 0…255 as they are: most were trained on pixels in [0, 1]."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from typing import Any

import numpy as np
import torch

from assay.core.errors import AssayError
from assay.measures.base import Measure
from assay.stimuli.clips import FrameFolder
from assay.stimuli.images import Images
from assay.stimuli.labelled import Labelled
from assay.stimuli.pictures import Array
from assay.stimuli.samples import spread
from assay.stimuli.sequences import Sequences
from assay.stimuli.video import Video
from assay.subject.subject import Subject

log = logging.getLogger(__name__)

_LOOKED_AT = 256  # pictures
_CLIPS = 8  # of which the first frame is looked at
_SHOWN = 4  # of those, the brightest, to see what the preprocessing makes of them
_BYTES = (100.0, 256.0)  # what the brightest pixel of many pictures lies between where pixels go up to 255
_CENTRED = 0.1  # of the largest value, how far below zero values go where the mean is subtracted
_NAMED = 3  # networks in a sentence


_sentences_said: ContextVar[set[str] | None] = ContextVar("sentences_said", default=None)


@contextmanager
def warning_once() -> Iterator[None]:
    """Have `warn` say every sentence once inside the block, for work that is several runs."""
    token = _sentences_said.set(set())
    try:
        yield
    finally:
        _sentences_said.reset(token)


def warn(sentences: Iterable[str]) -> None:
    """Log sentences as warnings."""
    said_before = _sentences_said.get()
    for sentence in sentences:
        if said_before is None or sentence not in said_before:
            log.warning("%s", sentence)
        if said_before is not None:
            said_before.add(sentence)


class PixelRanges:
    """What is found out of the pixels that the networks of a run are shown, in sentences to warn people by.

    Values are pixels in 0…255 where those of floating-point pictures are all positive and the largest is near 255;
    values that were normalised are not. A network whose preprocessing makes other values of them is in no sentence.

    Args:
        measures: The measures that show the pictures.

    Example:
        >>> import torch, assay
        >>> pictures = np.linspace(0, 255, 48, dtype=np.float32).reshape(4, 3, 2, 2)
        >>> found = PixelRanges([assay.Margins(Labelled(pictures, np.arange(4)))])
        >>> found.look_at(Subject(torch.nn.Flatten(), "divided", preprocess=lambda x: x / 255))
        >>> found.sentences
        []
        >>> found.look_at(Subject(torch.nn.Flatten(), "plain"))
        >>> found.sentences[0].partition(":")[0]
        'plain is shown pixels of up to 255 of arrays in memory'
    """

    def __init__(self, measures: Iterable[Measure]) -> None:
        self._bright = _bright(measures)
        self._networks: dict[tuple[str, str], list[str]] = {}  # by source, and what the network is shown of it

    def look_at(self, subject: Subject) -> None:
        """Find out what a network is shown of the pictures whose pixels are in 0…255."""
        for source, pictures in self._bright.items():
            shown = pictures
            if subject.preprocess is not None:
                shown = np.zeros(0)
                with suppress(AssayError), subject.network.undisturbed():  # the measure says what does not fit
                    prepared = subject.network.prepare(pictures)
                    if isinstance(prepared, torch.Tensor):
                        shown = prepared.float().cpu().numpy()
            if shown.size and shown.max() > _BYTES[0] and shown.min() > -_CENTRED * shown.max():
                what = f"pixels of up to {round(float(pictures.max())):,} of {source}"
                if subject.preprocess is not None:
                    what += f", of which its preprocess makes {shown.min():,.0f} to {shown.max():,.0f}"
                self._networks.setdefault((source, what), []).append(subject.name)

    @property
    def sentences(self) -> list[str]:
        """A sentence for every set of pictures, with the networks that are shown them; empty where all is well."""
        said = []
        for (_, what), names in self._networks.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            networks = f"{', '.join(names[:_NAMED])}{more} {'is' if len(names) == 1 else 'are'}"
            said.append(
                f"{networks} shown {what}: unless trained on such pixels, give preprocess a division by 255 "
                "({normalize: {mean: [0], std: [255]}} in a plan), or give the pictures as uint8 or in [0, 1]"
            )
        return said


def _bright(measures: Iterable[Measure]) -> dict[str, Array]:
    """By their source, the brightest of the pictures whose pixels are in 0…255."""
    brightest_of: dict[str, Array] = {}
    seen: set[int] = set()
    for measure in measures:
        for value in measure.settings.values():
            for source, pictures in _pictures_of(value):
                if id(value) in seen or not pictures.size or source in brightest_of:
                    continue
                if pictures.min() >= 0 and _BYTES[0] < pictures.max() < _BYTES[1]:
                    brightest = np.argsort(-pictures.reshape(len(pictures), -1).max(axis=1), kind="stable")
                    brightest_of[source] = pictures[np.sort(brightest[:_SHOWN])]
            seen.add(id(value))
    return brightest_of


def _pictures_of(value: Any) -> Iterator[tuple[str, Array]]:
    """Some of the floating-point pictures N×C×H×W of a setting, with their source."""
    if isinstance(value, Labelled):
        # Inputs by name go to a network together: what each becomes is not looked at.
        pictures = value.arrays.get("")
        if pictures is not None and _are_pictures(pictures):
            yield value.source, pictures[spread(len(value), _LOOKED_AT)]
    elif isinstance(value, Images):
        if _are_pictures(value.array):
            yield value.source, value.array[spread(len(value), _LOOKED_AT)]
    elif isinstance(value, Sequences):
        natural = (clip for clip in value if clip.condition == "natural" and not isinstance(clip, FrameFolder | Video))
        with suppress(AssayError):  # the measure says what is wrong with a clip
            frames = [frame for clip in islice(natural, _CLIPS) for frame in islice(clip.frames(), 1)]
            alike = [frame for frame in frames if frame.shape == frames[0].shape]
            if alike and _are_pictures(stacked := np.stack(alike)):
                yield value.source, stacked
    elif isinstance(images := getattr(value, "images", None), Images):  # of a test of invariance, of people's brains
        yield from _pictures_of(images)
    elif isinstance(clips := getattr(value, "clips", None), Mapping) and not value.whitened:  # of a test of invariance
        for sequences in clips.values():
            yield from _pictures_of(sequences)


def _are_pictures(array: Any) -> bool:
    return np.issubdtype(array.dtype, np.floating) and array.ndim == 4 and array.shape[1] in (1, 3)
