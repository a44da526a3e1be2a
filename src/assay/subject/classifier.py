"""Class scores of a network for labelled data, checked for shape and finiteness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.arrays import batch_length, tensors_in
from assay.core.errors import AssayError
from assay.stimuli.labelled import Labelled
from assay.subject.network import Batch
from assay.subject.subject import Subject
from assay.subject.taking import taking

Array = np.ndarray[Any, Any]
LOGITS = "logits"
_FEATURES = ("last_hidden_state", "hidden_states", "pooler_output")  # of networks without a classifier


def scores_in(output: Any) -> Any:
    """The class scores in what a network returns: a tensor, ``logits``, or the first matrix in anything else.

    A network that returns features by name has no classifier: what it returned comes back as it is.

    Example:
        >>> scores_in({"loss": torch.zeros(()), "logits": torch.ones(1, 2)})
        tensor([[1., 1.]])
        >>> scores_in((torch.zeros(3, 4, 5), [torch.ones(1, 2)]))
        tensor([[1., 1.]])
    """
    if isinstance(output, Tensor):
        return output
    named = output.get(LOGITS) if isinstance(output, Mapping) else getattr(output, LOGITS, None)
    if isinstance(named, Tensor):
        return named
    if isinstance(output, Mapping) and any(name in output for name in _FEATURES):
        return output
    return next((tensor for tensor in tensors_in(output) if tensor.dim() == 2), output)


def class_scores(subject: Subject, x: Batch, of: Callable[[Any], Any] | None = None, finite: bool = True) -> Tensor:
    """The class scores of a batch: one number for each input and class.

    Args:
        subject: The network that classifies the inputs.
        x: The inputs, before any preprocessing.
        of: Function that computes the network's output from the inputs; by default the subject itself.
        finite: Whether scores of NaN or infinity are errors.
    """
    with taking(subject.name, x):
        output = (of or subject)(x)
    return checked_scores(subject, output, batch_length(x), finite)


def checked_scores(subject: Subject, output: Any, count: int, finite: bool = False) -> Tensor:
    """The class scores in what a network returned for ``count`` inputs; an error where there are none."""
    scores = scores_in(output)
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != count:
        said = tuple(scores.shape) if isinstance(scores, Tensor) else _named(scores)
        raise AssayError(f"{subject.name!r} gives {said}, not one number for each class of {count} inputs")
    if scores.is_complex() or scores.dtype == torch.bool:
        kind = str(scores.dtype).removeprefix("torch.")
        raise AssayError(f"{subject.name!r} gives {kind} outputs, which are no scores of classes: return real numbers")
    scores = scores if scores.is_floating_point() else scores.to(torch.get_default_dtype())
    if finite and not scores.isfinite().all():
        raise AssayError(f"{subject.name!r} gives outputs that are not finite")
    return scores


def _named(output: Any) -> str:
    """What a network returned, as part of a sentence: its type, and the names of what is in it."""
    names = f" of {', '.join(map(str, output))}" if isinstance(output, Mapping) and output else ""
    return f"{type(output).__name__}{names}"


def require_classes(subject: Subject, data: Labelled, finite: bool = True) -> None:
    """Check that a network takes the data and distinguishes at least as many classes as they have, two or more."""
    scored = class_scores(subject, data.shown(slice(0, 1), subject.device), finite=finite).shape[1]
    first, last = int(np.min(data.labels)), int(np.max(data.labels))
    if scored == last and first == 1:
        raise AssayError(
            f"the labels of {data.source} go from 1 to {last}: classes are numbered from 0, so take 1 away"
        )
    if scored < max(data.classes, 2):
        raise AssayError(
            f"{subject.name!r} distinguishes {scored} classes, and the data ({data.source}) have {data.classes}: give "
            "data of the classes that it was trained on"
        )


def batches(data: Labelled, size: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels in order, in batches of ``size``."""
    for start in range(0, len(data), size):
        rows = slice(start, start + size)
        yield data.shown(rows, device), torch.tensor(data.labels[rows], device=device)
