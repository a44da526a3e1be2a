"""Which layers of a network have weights, and what follows them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export.unflatten import InterpreterModule

from assay.core.errors import AssayError
from assay.networks.imported.onnx_graph import ACTIVATIONS
from assay.networks.imported.onnx_runtime import OnnxRuntimeNetwork
from assay.subject.functions import is_function
from assay.subject.hooks import module_path
from assay.subject.subject import Subject

AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_OF_SEVERAL_WEIGHTS = (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)  # none of which is called ``weight``


def require_visible_layers(subject: Subject) -> None:
    """Refuse a network of TorchScript, whose layers and weights can be seen and moved by nothing but itself."""
    if isinstance(subject.module, torch.jit.ScriptModule):
        raise AssayError(f"{subject.name!r} is TorchScript, which hides its layers: give the module it was made of")


def require_movable_weights(subject: Subject) -> None:
    """Refuse a network whose weights nobody but itself can move: one of TorchScript, or one that onnxruntime runs."""
    require_visible_layers(subject)
    if isinstance(subject.module, OnnxRuntimeNetwork):
        raise AssayError(
            f"onnxruntime runs {subject.name!r}, since {subject.module.why}, and its weights cannot be moved: give the "
            "network that it was exported from"
        )


def weighted_layers(subject: Subject) -> list[str]:
    """Names of the layers with a matrix of weights (batch norm has none), in order of execution."""
    return [name for name in subject.layers if _has_weights(layer_module(subject, name))]


def layer_module(subject: Subject, layer: str) -> nn.Module | None:
    """The module of a layer; None for the output of the whole network."""
    try:
        return subject.module.get_submodule(layer.partition("#")[0])
    except (AttributeError, RuntimeError):  # TorchScript does not look for them
        return None


def nonlinearity_after(subject: Subject, layer: str) -> str | None:
    """Name of the activation that follows a layer with weights before the next such layer; None if there is none.

    It may be a module, or a function that the network's code calls: ``relu()``, ``relu()#2`` and so on.
    """
    calls = subject.calls
    for name in calls[calls.index(layer) + 1 :]:
        if is_function(module_path(name)):
            return name
        module = layer_module(subject, name)
        if _has_weights(module):
            return None
        if _home(module) == nn.ReLU.__module__ or getattr(module, "operator", None) in ACTIVATIONS:
            return name
    return None


def _home(module: nn.Module | None) -> str:
    """The module of Python in which the class of a layer is, or was before it was exported."""
    exported = module.type_name() if isinstance(module, InterpreterModule) else None
    return exported.rpartition(".")[0] if exported else type(module).__module__


def first_affine(subject: Subject) -> str | None:
    """Name of the first layer with weights, if it is affine, else None."""
    first = next(iter(weighted_layers(subject)), None)
    return first if first is not None and isinstance(layer_module(subject, first), AFFINE) else None


def _has_weights(module: nn.Module | None) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(module, _OF_SEVERAL_WEIGHTS) or (isinstance(weight, Tensor) and weight.dim() >= 2)
