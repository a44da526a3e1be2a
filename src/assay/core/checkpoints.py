"""Checkpoints: tensors by name in a file, read without running any code that it may hold."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.reading import is_there, reading


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint by name, read without running any code in it."""
    if not is_there(path):
        raise AssayError(f"weights={path}: no such file")
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        with reading(path, "safetensors", f"weights={path} is damaged, or a file of another kind"):
            return dict(load_file(path))
    with reading(path, "a torch checkpoint", f"weights={path} is damaged, or a file of another kind"):
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise AssayError(
                f"weights={path} holds more than tensors and was not loaded, because loading it could run code: "
                "save it as safetensors, or as a state_dict"
            ) from error
    for key in ("state_dict", "model"):
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    named = isinstance(loaded, Mapping) and all(isinstance(name, str) for name in loaded)
    if not named or not all(isinstance(v, Tensor) for v in loaded.values()):
        raise AssayError(f"weights={path} is not a mapping of names to tensors")
    return dict(loaded)


def write_checkpoint(path: Path, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
    """Write tensors and the progress of training; the file is always a whole one, the old or the new."""
    from safetensors.torch import save

    saved = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        Folder(str(path.parent)).write(path.name, save(saved, {"progress": json.dumps(progress)}))
    except AssayError as error:
        raise AssayError(f"checkpoint={path} cannot be written: {error}") from error


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors of a checkpoint and the progress of its training."""
    from safetensors import safe_open

    with reading(path, "a checkpoint of training", "delete it to begin anew"), safe_open(path, "pt") as file:
        progress = json.loads((file.metadata() or {})["progress"])
        if not isinstance(progress, dict):
            raise ValueError("its progress is no mapping")
        return {name: file.get_tensor(name) for name in file.keys()}, progress  # noqa: SIM118
