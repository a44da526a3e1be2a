"""What a subject carries of its training: the network as it was before, and the loss of every epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import pandas as pd

from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.subject.state import load_state
from assay.subject.subject import Subject
from assay.subject.unwrapped import copied

Past = Literal["initial_weights", "history"]
"""What a measure may look at of a network's training."""


def initial_subject(subject: Subject) -> Subject:
    """The network as it was before training, as a subject of its own with the same name and preprocessing.

    An error where the subject carries no initial weights, or where they are not finite or do not fit the network.

    Example:
        >>> import torch
        >>> net = torch.nn.Linear(2, 1)
        >>> trained = Subject(net, initial_weights={"weight": torch.zeros(1, 2), "bias": torch.ones(1)})
        >>> initial_subject(trained)(torch.ones(1, 2))
        tensor([[1.]])
    """
    if subject.initial_weights is None:
        raise AssayError(
            f"{subject.name!r} does not say what its weights were before training: give Subject(initial_weights=…), or "
            "in a plan the file 'initial_weights' beside 'weights'"
        )
    what = f"the initial weights of {subject.name!r}"
    for name, tensor in subject.initial_weights.items():
        if not tensor.isfinite().all():
            raise AssayError(f"{what}: {name!r} is not finite")
    module = copied(subject.module, "which its initial weights need")
    load_state(module, subject.initial_weights, what)
    return Subject(
        module,
        subject.name,
        preprocess=subject.preprocess,
        example=subject.example,
        channels_last=subject.channels_last,
    )


def training_history(subject: Subject) -> pd.DataFrame:
    """The losses of a subject's training, one row per epoch; an error where the subject carries none."""
    if subject.history is None:
        raise AssayError(
            f"{subject.name!r} does not say how its training went: give Subject(history=…), a table with the loss of "
            "each epoch, or in a plan the CSV file 'history'"
        )
    return subject.history


def past_fingerprint(subject: Subject, kinds: Iterable[Past]) -> str:
    """Content of what a measure looks at of a subject's training; empty where it looks at nothing, or none is there.

    It is part of the key of a cell only of such measures: that a network carries its past changes no other result.
    """
    parts: dict[str, object] = {}
    for kind in kinds:
        if kind == "initial_weights" and subject.initial_weights is not None:
            parts[kind] = dict(subject.initial_weights)
        if kind == "history" and subject.history is not None:
            parts[kind] = {str(name): column.tolist() for name, column in subject.history.items()}
    return fingerprint(parts) if parts else ""
