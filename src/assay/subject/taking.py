"""What a network raises when it cannot take what it is shown, as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from assay.core.errors import ANYTHING, AssayError, first_line, reason

_ABOUT_ARGUMENTS = re.compile("positional argument|keyword-only argument")


class NotTaken(AssayError):
    """A network cannot take what it was shown."""


@contextmanager
def taking(name: str, ready: Any, passed_on: Sequence[BaseException] = ()) -> Iterator[None]:
    """Make whatever a network raises, while it is shown a batch, a sentence that names the batch's shape.

    Args:
        name: What tables call the network.
        ready: The batch.
        passed_on: Errors that are not the network's, and come through as they are.
    """
    try:
        yield
    except (AssayError, torch.OutOfMemoryError):
        raise
    except ANYTHING as error:  # the network is the user's
        if error in passed_on:
            raise
        hint = _layout_hint(ready)
        if isinstance(error, TypeError) and _ABOUT_ARGUMENTS.search(str(error)):
            hint = "; give its inputs as a mapping by the names of the arguments, or a preprocess that makes one"
        raise NotTaken(
            f"{name!r} cannot take {described(ready)}{_at_a_time(ready)}: {reason_of(error)}{hint}"
        ) from error


@contextmanager
def showing(what: str) -> Iterator[None]:
    """Begin the sentence on a network that cannot take its inputs with what a measure shows it.

    Args:
        what: The measure and what it shows, as in ``straightness shows frames``.
    """
    try:
        yield
    except NotTaken as error:
        raise NotTaken(f"{what}, and {error}") from error


def _layout_hint(batch: Any) -> str:
    """What may be wrong with the axes of a batch of pictures, as the end of a sentence."""
    shape = tuple(getattr(batch, "shape", ()))
    if len(shape) == 3:
        return "; pictures are shown as N×C×H×W: give batch[None] for one picture, batch[:, None] for grey ones"
    if len(shape) == 4 and shape[3] in (1, 3) and shape[1] not in (1, 3):
        return "; pictures are shown as N×C×H×W: give batch.transpose(0, 3, 1, 2) of an array"
    return ""


def described(batch: Any) -> str:
    """What a batch holds, as part of a sentence."""
    if isinstance(batch, Mapping):
        return " and ".join(f"{key} of shape {_shape(value)}" for key, value in batch.items())
    return f"inputs of shape {_shape(batch)}"


def _at_a_time(batch: Any) -> str:
    """How many inputs a batch has, where it has several: a network may take them one by one only."""
    first: Any = next(iter(batch.values()), None) if isinstance(batch, Mapping) else batch
    shape = tuple(getattr(first, "shape", ()))
    count = shape[0] if shape else 1
    return f", {count} at a time" if count > 1 else ""


def _shape(value: Any) -> str:
    return str(tuple(value.shape[1:])) if hasattr(value, "shape") else f"unknown, a {type(value).__name__}"


def reason_of(error: BaseException) -> str:
    """What an exception says; torch's own are all of one type, others are clearer with theirs."""
    return first_line(error) if type(error) is RuntimeError else reason(error)
