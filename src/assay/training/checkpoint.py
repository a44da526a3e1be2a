"""Checkpoints of training: one file of tensors, replaced as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from assay.core.errors import AssayError
from assay.core.folder import Folder


def write_checkpoint(path: Path, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
    """Write tensors and where training stands; the file is either the old one or the new one, never half."""
    from safetensors.torch import save

    saved = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        Folder(str(path.parent)).write(path.name, save(saved, {"progress": json.dumps(progress)}))
    except AssayError as error:
        raise AssayError(f"checkpoint={path} cannot be written: {error}") from error


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and where training stood."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            progress = json.loads((file.metadata() or {})["progress"])
            return {name: file.get_tensor(name) for name in file.keys()}, progress  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise AssayError(f"checkpoint={path} cannot be read ({error}): delete it to begin anew") from error
