"""Subjects by name: a factory in a package, a checkpoint, an ONNX file, timm, Hugging Face."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from assay.core.checkpoints import read_tensors
from assay.core.determinism import seeded
from assay.core.device import device_named
from assay.core.errors import ANYTHING, AssayError, nearest, optional, reason
from assay.core.reading import is_there, reading
from assay.core.tensor_limits import limited_tensors
from assay.core.user_code import import_named, same_directory
from assay.networks.imported.hugging_face import NEW_WEIGHTS, Checkpoint, load_hugging_face
from assay.networks.imported.onnx import OnnxNetwork, load_onnx
from assay.networks.imported.onnx_runtime import OnnxRuntimeNetwork
from assay.stimuli.transforms import transform_named
from assay.subject.state import load_state
from assay.subject.subject import Subject

KINDS = "'package.module:factory', 'file.onnx', 'timm:name' or 'hf:name'"
DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True)
class SubjectSource:
    """How to make a subject, as written in a plan.

    Args:
        source: ``package.module:factory``, ``file.onnx``, ``timm:name``, or ``hf:name``, a folder or name of a Hugging
            Face checkpoint, of which the architecture that it names is loaded.
        name: What tables call the network; made from the source by default.
        args: Arguments of the factory; for ``hf:name`` those of ``from_pretrained``, and ``allow_new_weights: true``
            to permit random weights where the checkpoint has none. An ONNX file takes none.
        weights: Checkpoint to load into the network: safetensors, or a torch file of tensors only.
        seed: Seed of the random initial weights.
        preprocess: What is done to pictures first: a word such as ``imagenet``, a mapping such as ``{resize: 224}``, a
            function of the user's, ``module:function``, or a list of these; see `assay.stimuli.transform_named`. By
            default nothing, and for ``hf:name`` what the checkpoint's image processor does.
        device: Device to run on, such as ``cuda``.
        dtype: Precision: ``float32``, ``float64``, ``bfloat16`` or ``float16``.
        channels_last: Whether to run pictures in channels-last memory format.
        compile: Whether to compile the network, see `Subject`.
        recipe: A name that networks trained alike from other seeds share, so that reports compare recipes.
        initial_weights: The weights before training, a file like that of ``weights``, for measures that look at them.
        history: CSV file with one row per epoch of training, for measures that look at it: ``loss`` and more, see
            `assay.TrainingSpeed`.
    """

    source: str
    name: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    weights: Path | None = None
    seed: int = 0
    preprocess: str | dict[str, Any] | list[Any] | None = None
    device: str | None = None
    dtype: str | None = None
    channels_last: bool = False
    compile: bool = False
    recipe: str = ""
    initial_weights: Path | None = None
    history: Path | None = None

    @property
    def label(self) -> str:
        """The name of the network in tables, or one made from its source."""
        return self.name or Path(self.source.rpartition(":")[2]).stem

    def load(self) -> Subject:
        """Make the network, load its weights, and wrap it as a subject."""
        dtype = None if self.dtype is None else dtype_named(self.dtype)
        device = None if self.device is None else device_named(self.device)
        preprocess: Any = None if self.preprocess is None else transform_named(self.preprocess)
        with seeded(self.seed):
            if self.source.startswith("hf:"):
                module, own = self._checkpoint()
                preprocess = own if self.preprocess is None else preprocess
            else:
                module = self._module()
        if self.weights is not None:
            load_weights(module, self.weights)
        return Subject(
            module,
            self.label,
            preprocess=preprocess,
            example=module.example if isinstance(module, OnnxNetwork | OnnxRuntimeNetwork) else None,
            device=device,
            dtype=dtype,
            channels_last=self.channels_last,
            compile=self.compile,
            recipe=self.recipe,
            initial_weights=None if self.initial_weights is None else read_tensors(self.initial_weights),
            history=None if self.history is None else read_history(self.history),
        )

    def _checkpoint(self) -> Checkpoint:
        """The network of a Hugging Face checkpoint; it may lack weights where others are loaded over all of them."""
        name = self.source.removeprefix("hf:")
        args = self.args if self.weights is None else {NEW_WEIGHTS: True} | self.args
        return load_hugging_face(name, args, preprocess=self.preprocess is None)

    def _module(self) -> nn.Module:
        kind, _, rest = self.source.partition(":")
        if self.source.endswith(".onnx"):
            if self.args:
                raise AssayError(f"args={self.args!r} is given to a file of ONNX, which takes none: leave it out")
            path = Path(self.source)
            if not is_there(path):
                raise AssayError(f"source={self.source!r}: no such file")
            return load_onnx(path)
        if kind == "timm":
            return _timm(rest, self.args)
        if Path(self.source).suffix in (".safetensors", ".pt", ".pth", ".th", ".ckpt"):
            raise AssayError(
                f"source={self.source!r} is a checkpoint, which holds weights but no network: give its "
                "'package.module:factory' as source and the file as weights"
            )
        factory = import_named(self.source, f"source={self.source!r}", KINDS)
        if not callable(factory):
            raise AssayError(f"source={self.source!r} is a {type(factory).__name__}, not a factory of a network")
        try:
            inspect.signature(factory).bind(**self.args)
        except ValueError:  # a function of C that does not say what it takes
            pass
        except TypeError as error:
            raise AssayError(f"source={self.source!r} does not take args={self.args!r} ({error})") from error
        try:
            # A size that a plan gives may be mistyped; what a factory makes by itself is what its author meant.
            what = f"source={self.source!r} with args={self.args!r}"
            with same_directory(), limited_tensors(what) if self.args else nullcontext():
                module = factory(**self.args)
        except AssayError:
            raise
        except ANYTHING as error:  # whatever the factory raises is about what it was given
            raise AssayError(f"source={self.source!r} with args={self.args!r} failed ({reason(error)})") from error
        if not isinstance(module, nn.Module):
            raise AssayError(f"source={self.source!r} made a {type(module).__name__}, not a torch.nn.Module")
        return module


def dtype_named(name: str) -> torch.dtype:
    """The precision that a plan calls by this name."""
    if name not in DTYPES:
        raise AssayError(f"unknown dtype {name!r}{nearest(name, DTYPES)}")
    return DTYPES[name]


def read_history(path: Path) -> pd.DataFrame:
    """Read the losses of a network's training, a CSV file with one row per epoch."""
    with reading(path, "a table"):
        return pd.read_csv(path)


def load_weights(module: nn.Module, path: Path) -> None:
    """Load a checkpoint of tensors into a network; a checkpoint that holds code is refused unread.

    Accepts safetensors, and torch files through ``weights_only=True``; a ``state_dict`` or ``model`` inside
    is unpacked and a ``module.`` prefix (data-parallel training) is dropped. Every tensor must fit.
    """
    load_state(module, read_tensors(path), f"weights={path}")


def _timm(name: str, args: Mapping[str, Any]) -> nn.Module:
    timm = optional("timm", "timm", f"source='timm:{name}'")
    try:
        network: nn.Module = timm.create_model(name, **args)
    except RuntimeError as error:
        known = nearest(name, timm.list_models())
        raise AssayError(f"source='timm:{name}' cannot be made ({error}){known}") from error
    return network
