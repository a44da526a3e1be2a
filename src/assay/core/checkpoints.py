"""Checkpoints: tensors by name in a file, read without running any code that it may hold."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.reading import is_there, reading

SAFETENSORS, TORCH = "safetensors", "a torch checkpoint"
AGAIN = "it is damaged; download or copy it again"


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint by name, read without running any code in it.

    Whether a file is safetensors or of torch is told by its content, whatever its name is. Of a torch file that holds
    more than a state_dict, the mapping under ``state_dict`` or ``model`` is taken.
    """
    if require_checkpoint(path) == SAFETENSORS:
        from safetensors.torch import load_file

        with reading(path, SAFETENSORS, AGAIN):
            return dict(load_file(path))
    with reading(path, TORCH, AGAIN), path.open("rb") as file:  # by its path, torch would go by the file's name
        try:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
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


def require_checkpoint(path: Path) -> str:
    """Say whether a file is safetensors or of torch, by its first bytes and its list of contents.

    What that shows is an error: a file that is cut short, empty, a pointer of git-lfs or of another kind. Tensors are
    not read, so that this takes a moment for a file of any size.
    """
    if not is_there(path):
        raise AssayError(f"weights={path}: no such file")
    with reading(path, "a checkpoint", AGAIN), path.open("rb") as file:
        head = file.read(64)
    if not head:
        raise AssayError(f"weights={path} is empty: download or copy it again")
    if head.startswith(b"version https://git-lfs"):
        raise AssayError(f"weights={path} is a pointer of git-lfs, not the file itself: fetch it (git lfs pull)")
    if head[8:9] == b"{":  # after the length of the header
        from safetensors import safe_open

        with reading(path, SAFETENSORS, AGAIN), safe_open(path, "pt"):
            return SAFETENSORS
    if head.startswith(b"PK"):
        with reading(path, TORCH, AGAIN):
            if not zipfile.is_zipfile(path):
                raise ValueError("its end is missing")
            with zipfile.ZipFile(path) as archive:
                contents = {name.rpartition("/")[2] for name in archive.namelist()}
        if "constants.pkl" in contents:
            raise AssayError(f"weights={path} is a TorchScript archive, which holds code: save its state_dict")
        if "data.pkl" in contents:
            return TORCH
    if head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):  # a pickle, as torch wrote before version 1.6
        return TORCH
    raise AssayError(
        f"weights={path} is neither safetensors nor a torch checkpoint{_another_kind(head)}: name another file, or "
        "download it again"
    )


def _another_kind(head: bytes) -> str:
    """The kind of a file by its first bytes, as part of a sentence that repeats nothing of what the file says."""
    if head.lstrip()[:9].lower().startswith((b"<html", b"<!doctype")):
        return " (it is a web page)"
    line = head.split(b"\n")[0].decode("ascii", "replace")
    return " (it is text)" if line.isascii() and line.rstrip("\r").isprintable() else ""


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
