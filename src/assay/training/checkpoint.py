"""Checkpoints of training: one file of tensors, replaced as a whole."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from assay.errors import AssayError


def write_checkpoint(path: Path, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
    """Write tensors and where training stands; the file is either the old one or the new one, never half."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        saved = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(saved, temporary, {"progress": json.dumps(progress)})
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        raise AssayError(f"checkpoint={path} cannot be written ({error})") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and where training stood."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            progress = json.loads((file.metadata() or {})["progress"])
            return {name: file.get_tensor(name) for name in file.keys()}, progress  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise AssayError(f"checkpoint={path} cannot be read ({error}): delete it to begin anew") from error
