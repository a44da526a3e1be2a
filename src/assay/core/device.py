"""Devices of torch by name."""

from __future__ import annotations

import torch

from assay.core.errors import AssayError, first_line


def device_named(name: str) -> torch.device:
    """The device of that name, if this machine can use it; an error if it cannot."""
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise AssayError(f"device={name!r} cannot be used ({first_line(error)})") from error
