"""Class scores of a network for labelled data, checked for shape and finiteness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.errors import AssayError, first_line
from assay.stimuli.labelled import Labelled
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]


def tensor(values: Tensor | Array) -> Tensor:
    """A tensor of an array's values; an array that may not be written to is copied, because torch warns of it."""
    frozen = isinstance(values, np.ndarray) and not values.flags.writeable
    return torch.as_tensor(np.array(values) if frozen else values)


def class_scores(subject: Subject, x: Tensor, of: Callable[[Tensor], Any] | None = None, finite: bool = True) -> Tensor:
    """The class scores of a batch: one number for each input and class.

    Args:
        subject: The network that classifies the inputs.
        x: The inputs, before any preprocessing.
        of: Function that computes the scores from the inputs; by default the subject itself.
        finite: Whether scores of NaN or infinity are errors.
    """
    try:
        scores = (of or subject)(x)
    except RuntimeError as error:  # torch's own complaint about shapes
        seen = tuple(x.shape[1:])
        raise AssayError(f"{subject.name!r} cannot take inputs of shape {seen}: {first_line(error)}") from error
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != len(x):
        said = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise AssayError(f"{subject.name!r} gives {said}, not one number for each class of {len(x)} inputs")
    if finite and not scores.isfinite().all():
        raise AssayError(f"{subject.name!r} gives outputs that are not finite")
    return scores


def as_taken(subject: Subject, x: Tensor) -> Tensor:
    """Inputs as the module of a subject takes them: preprocessed, in its precision, on its device."""
    ready = subject.network.prepare(x)
    if not isinstance(ready, Tensor):
        raise AssayError(f"the preprocessing of {subject.name!r} makes {type(ready).__name__}, not a tensor")
    return ready


def require_classes(subject: Subject, data: Labelled, finite: bool = True) -> None:
    """Check that a network takes the data and tells at least as many classes as they have, two or more."""
    scored = class_scores(subject, data.shown(slice(0, 1), subject.device), finite=finite).shape[1]
    if scored < max(data.classes, 2):
        raise AssayError(f"{subject.name!r} tells {scored} classes, {data.source} has {data.classes}")


def batches(data: Labelled, size: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels in order, in batches of ``size``."""
    for start in range(0, len(data), size):
        rows = slice(start, start + size)
        yield data.shown(rows, device), torch.tensor(data.labels[rows], device=device)
