"""Devices of torch by name."""

from __future__ import annotations

import torch

from assay.core.errors import AssayError, first_line, shown


def device_named(name: str | torch.device) -> torch.device:
    """The device of that name, if this machine can use it; an error if it cannot."""
    if not isinstance(name, (str, torch.device)):
        raise AssayError(f"device={shown(name)} is no device: give its name, as 'cpu' or 'cuda'")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise AssayError(f"device={str(name)!r} cannot be used ({first_line(error)}): give another") from error
