"""Showing stimuli to a subject, with torch's complaints made sentences."""

from __future__ import annotations

from torch import Tensor

from assay.core.errors import AssayError, first_line
from assay.subject.layers import Layers
from assay.subject.subject import Subject, Visitor


def show(subject: Subject, stimuli: Tensor, visit: Visitor, layers: Layers) -> None:
    """`Subject.visit`; a network that cannot take the stimuli is an error that names their shape."""
    try:
        subject.visit(stimuli, visit, layers)
    except RuntimeError as error:  # torch's own complaint about shapes
        raise AssayError(
            f"{subject.name!r} cannot see frames of shape {tuple(stimuli.shape[1:])}: {first_line(error)}"
        ) from error


class Returned:
    """The tensor a layer has just returned: a container returns the very tensor of its last child."""

    def __init__(self) -> None:
        self.tensor: Tensor | None = None
        self.version = -1

    def again(self, tensor: Tensor) -> bool:
        """Whether it is returned again, unchanged since."""
        return tensor is self.tensor and not tensor.is_inference() and tensor._version == self.version

    def remember(self, tensor: Tensor) -> None:
        """From now on this one."""
        self.tensor, self.version = tensor, -1 if tensor.is_inference() else tensor._version


def require_batch_size(asked: int | None) -> None:
    """At least 1, or None."""
    if asked is not None and asked < 1:
        raise AssayError(f"batch_size={asked} must be at least 1")


def batch_size(subject: Subject, asked: int | None) -> int:
    """As asked; else 32 on a CPU, 256 on a GPU."""
    return asked or (256 if subject.device.type == "cuda" else 32)
