"""A subject from what people have: a subject as it is, or a bare network of torch's."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import torch
from torch import nn

from assay.core.errors import AssayError, shown
from assay.core.labels import numbered
from assay.subject.subject import Subject


def is_network(thing: Any) -> bool:
    """Whether a thing is a network of torch's, of which a subject can be made."""
    return isinstance(thing, (nn.Module, torch.export.ExportedProgram))


def as_subject(network: Any, argument: str = "subject", taken: Collection[str] = ()) -> Subject:
    """Make a subject of a bare torch module, called by its class; a subject stays as it is.

    Args:
        network: A `Subject`, a torch module or an exported program.
        argument: What an error calls the argument that the network was given as.
        taken: Names that other networks have: a module whose name is among them gets a number.

    Example:
        >>> as_subject(nn.Linear(2, 2), taken=["Linear"]).name
        'Linear-2'
    """
    if isinstance(network, Subject):
        return network
    if is_network(network):
        subject = Subject(network)
        subject.name = numbered(subject.name, taken)
        return subject
    remedy = "give a torch module or an assay.Subject"
    if inspect.isclass(network):
        remedy = f"give a network made of it, as {network.__name__}()"
    raise AssayError(f"{argument}={shown(network)} is no network: {remedy}")
