"""Save learners, and load them without running any code that a file may carry."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

from assay.core.errors import AssayError, first_line
from assay.core.folder import Folder
from assay.runs.process_tree import machine_bytes

# What learners are made of: modules of ours whose classes do nothing when they are made, …
_MODULES = ("assay.broad.systems.features", "assay.broad.systems.learners", "assay.broad.systems.classifiers")
_OURS = ("assay.networks", "assay.training", *_MODULES)
# … the functions by which arrays and tensors are put together again, …
_FUNCTIONS = {
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("copyreg", "_reconstructor"),
}
# … and plain containers.
_PLAIN = {
    "builtins": {"set", "frozenset", "dict", "list", "tuple", "object", "slice", "complex", "bytearray", "range"},
    "collections": {"OrderedDict", "defaultdict", "deque", "Counter"},
    "pathlib": {"Path", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"},
}
_LIBRARIES = ("assay", "numpy", "torch", "scipy", "sklearn")


def save_learner(learner: Any, path: str | Path) -> None:
    """Write a learner to a file; whoever reads it needs the same code."""
    try:
        data = pickle.dumps(learner)
    except Exception as error:
        raise AssayError(
            f"{type(learner).__name__} cannot be written to a file ({first_line(error)}): keep only data in it"
        ) from error
    target = Path(path)
    Folder(str(target.parent)).write(target.name, data)


def load_learner(path: str | Path, like: Any) -> Any:
    """Load a learner that `save_learner` wrote.

    Nothing is made of the file but data, networks, estimators and classes from where the learner's own class is, so
    that a hostile file is refused. What a class names in ``never_from_file`` (commands) is taken from ``like``.

    Args:
        path: File of the learner.
        like: A fresh learner of the kind expected, or its class.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise AssayError(f"trained_from={path} cannot be read ({error.strerror})") from error
    return learner_from_bytes(data, like, str(path))


def learner_file(path: str | Path, hidden: Sequence[str] = ()) -> Path:
    """The file of a learner that was trained elsewhere, where its links lead; one that no system may see is refused.

    Its bytes are given to the team's own code, so a link to the labels must not be followed.

    Args:
        path: File of the learner, as the team gave it.
        hidden: Files and folders that no system may see.
    """
    try:
        real = Path(path).resolve(strict=True)
        plain, size = real.is_file(), real.stat().st_size
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise AssayError(f"trained_from={path} cannot be read ({reason})") from error
    if not plain or size == 0:  # nor a pipe, a device, or what the kernel says of a process
        raise AssayError(f"trained_from={path} is no plain file with something in it")
    if any(
        real.is_relative_to(Path(place).resolve()) or real.samefile(place) for place in hidden if Path(place).exists()
    ):
        raise AssayError(f"trained_from={path} leads to what no system may see: give a file of the learner's own")
    if size > machine_bytes() // 2:
        raise AssayError(f"trained_from={path} has {size:,} bytes, more than half of this machine's memory")
    return real


def learner_from_bytes(data: bytes, like: Any, path: str = "the learner's file") -> Any:
    """Load a learner as `load_learner` does, from the bytes of its file; ``path`` names it in errors."""
    kind: type = like if isinstance(like, type) else type(like)
    try:
        learner = _Careful(io.BytesIO(data), kind).load()
    except AssayError as error:
        raise AssayError(f"trained_from={path} is refused: {error}") from error
    except Exception as error:
        raise AssayError(f"trained_from={path} is damaged ({first_line(error)})") from error
    if not isinstance(learner, kind):
        raise AssayError(f"trained_from={path} is a {type(learner).__name__}, not a {kind.__name__}")
    for name in getattr(kind, "never_from_file", ()):
        if not hasattr(like, name) or isinstance(like, type):
            raise AssayError(f"trained_from={path} has no {name} of its own: load it with like=a fresh learner")
        setattr(learner, name, getattr(like, name))
    return learner


class _Careful(pickle.Unpickler):
    """Unpickles only what learners are made of."""

    def __init__(self, file: io.BytesIO, kind: type) -> None:
        super().__init__(file)
        self.kind = kind

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return lambda data: torch.load(io.BytesIO(data), weights_only=True)
        if (module, name) in _FUNCTIONS or name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        if _package(module) in {*_LIBRARIES, _package(self.kind.__module__)}:
            wanted = super().find_class(module, name)
            if isinstance(wanted, torch.dtype) or (isinstance(wanted, type) and self.harmless(wanted)):
                return wanted
        raise AssayError(f"the file wants to use {module}.{name}, and a learner is not made of that")

    def harmless(self, wanted: type) -> bool:
        """Whether making an object of this class has no side effects, whatever name led to the class."""
        from sklearn.base import BaseEstimator  # takes a second, and most systems need none

        if wanted is self.kind:
            return True
        package = _package(wanted.__module__)
        if package not in _LIBRARIES:
            return package == _package(self.kind.__module__)
        if package == "assay":
            return any(wanted.__module__ == m or wanted.__module__.startswith(f"{m}.") for m in _OURS)
        arrays = (np.dtype, np.generic, sparse.spmatrix, sparse.sparray, torch.Size, nn.Parameter)
        layer = issubclass(wanted, nn.Module) and wanted.__module__.startswith("torch.nn.modules.")
        return layer or wanted in (np.ndarray, torch.device) or issubclass(wanted, (*arrays, BaseEstimator))


def _package(module: str) -> str:
    return module.split(".")[0]
