"""Showing still pictures to any subject: a network of videos is shown each picture for a few frames."""

from __future__ import annotations

from typing import Final

from torch import Tensor

from assay.core.arrays import as_tensor
from assay.core.errors import AssayError
from assay.subject.layers import ALL, Layers
from assay.subject.network import Batch
from assay.subject.subject import Subject
from assay.subject.visitors import Visitor

FRAMES: Final = 5


def require_frames(frames: int) -> None:
    """Refuse to show a still picture for less than two frames: the first is dropped."""
    if not isinstance(frames, int) or frames < 2:
        raise AssayError(f"frames={frames!r} must be a whole number from 2: the response to the first is dropped")


def visit_stills(
    subject: Subject,
    batch: Batch,
    visitor: Visitor,
    layers: Layers = ALL,
    *,
    frames: int = FRAMES,
    repeats: bool = True,
    steps: bool = False,
) -> None:
    """Show still pictures N×C×H×W, and call ``visitor(layer, output)`` as each layer returns.

    A network of images is shown the batch as it is. One of videos (`Subject.video`) is shown each picture for a number
    of frames. The response to the first frame is dropped, since a network that predicts has seen nothing then; those to
    the others are put side by side: a layer B×T×C×H×W is visited as B×(T−1)·C×H×W.

    Args:
        subject: The network.
        batch: The pictures, N×C×H×W.
        visitor: Function called with the name and output of each layer; see `Subject.visit`.
        layers: Layers to visit; all by default.
        frames: Number of frames for which a network of videos is shown each picture.
        repeats: Whether to visit also layers that return the very tensor of a layer before them.
        steps: Whether to give time an axis of its own, N×(T−1)×…; it has one entry where a layer is not over time.
    """

    def visit_one_step(layer: str, output: Tensor) -> None:
        visitor(layer, output[:, None] if steps and output.dim() else output)

    if not subject.video:
        subject.visit(batch, visit_one_step, layers, repeats=repeats)
        return
    require_frames(frames)
    pictures = as_tensor(batch)
    if pictures.dim() != 4:
        raise AssayError(f"still pictures are N×C×H×W, not {tuple(pictures.shape)}: a video is shown by Subject.visit")

    def visit(layer: str, output: Tensor) -> None:
        if output.shape[:2] == (len(pictures), frames):
            visitor(layer, output[:, 1:] if steps else output[:, 1:].flatten(1, min(2, output.dim() - 1)))
        else:
            visit_one_step(layer, output)

    subject.visit(pictures.unsqueeze(1).expand(-1, frames, -1, -1, -1), visit, layers, repeats=repeats)


def record_stills(subject: Subject, batch: Batch, layers: Layers = ALL, *, frames: int = FRAMES) -> dict[str, Tensor]:
    """Return the outputs of the chosen layers for still pictures N×C×H×W, shown as by `visit_stills`."""
    if not subject.video:
        return subject.record(batch, layers)
    responses: dict[str, Tensor] = {}

    def keep(layer: str, output: Tensor) -> None:
        responses[layer] = output.clone()

    visit_stills(subject, batch, keep, layers, frames=frames)
    return responses
