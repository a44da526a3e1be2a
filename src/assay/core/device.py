"""Devices by name."""

from __future__ import annotations

import torch

from assay.core.errors import AssayError, first_line


def device_named(name: str) -> torch.device:
    """A device that can be used here."""
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise AssayError(f"device={name!r} cannot be used ({first_line(error)})") from error
