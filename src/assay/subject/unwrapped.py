"""The plain module inside what people have: a compiled, parallel or averaged module, or an exported program."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim.swa_utils import AveragedModel

from assay.core.errors import AssayError, first_line

_AROUND_ONE_MODULE = (nn.DataParallel, nn.parallel.DistributedDataParallel, AveragedModel)


def plain_module(given: Any) -> nn.Module:
    """The module whose layers are the network's own, without what is wrapped around it; it shares its weights.

    ``torch.compile`` fuses layers, so that they can only be seen in the module before it. Of an exported program the
    modules that were exported are put together again, under their names.

    Example:
        >>> net = nn.Linear(2, 1)
        >>> plain_module(nn.DataParallel(net)) is net
        True
    """
    if isinstance(given, torch.export.ExportedProgram):
        return _unflattened(given)
    if not isinstance(given, nn.Module):
        raise AssayError(f"module is a {type(given).__name__}, not a torch.nn.Module")
    module = given
    while True:
        inner = getattr(module, "_orig_mod", None)  # of torch.compile
        if isinstance(module, _AROUND_ONE_MODULE):
            inner = module.module
        if not isinstance(inner, nn.Module):
            break
        module = inner
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(tensor):
            raise AssayError(f"{name!r} of module has no shape yet: show it a batch before it becomes a subject")
        if tensor.is_meta:
            raise AssayError(f"{name!r} of module is on the meta device and has no values: load its weights first")
    return module


def copied(module: nn.Module, why: str) -> nn.Module:
    """A copy of a module with weights of its own; ``why`` it is needed ends the error where it cannot be copied."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as torch does where a module is a graph
            return copy.deepcopy(module, _computed_tensors(module))
    except Exception as error:  # a module may hold anything: an open file, a lock, a tensor of the autograd graph
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise AssayError(f"{type(module).__name__} cannot be copied ({reason}), {why}") from error


def _computed_tensors(module: nn.Module) -> dict[int, Any]:
    """Copies, by identity, of tensors that modules compute and keep, which torch does not copy by itself.

    ``torch.nn.utils.weight_norm`` and ``spectral_norm`` keep the weight so that they compute anew in every pass.
    """
    held = [value for inner in module.modules() for value in vars(inner).values() if isinstance(value, torch.Tensor)]
    return {id(value): value.detach().clone() for value in held if not value.is_leaf}


def is_compiled(module: nn.Module) -> bool:
    """Whether a module, or one inside it, is compiled: by ``torch.compile``, or in place by its method ``compile``."""
    return any(hasattr(m, "_orig_mod") or m._compiled_call_impl is not None for m in module.modules())


def _unflattened(program: torch.export.ExportedProgram) -> nn.Module:
    inputs = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        shape: Sequence[Any] = getattr(node.meta.get("val"), "shape", ()) if node.name in inputs else ()
        if len(shape) and type(shape[0]) is int:
            raise AssayError(
                f"the program was exported for batches of {shape[0]} only: export it with "
                "dynamic_shapes=({0: torch.export.Dim.AUTO},)"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of its own use of what it has deprecated
            module = torch.export.unflatten(program)
    except Exception as error:  # a program may have been made of anything
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise AssayError(f"the exported program cannot be taken apart into its modules ({reason})") from error
    for inner in module.modules():
        for node in getattr(getattr(inner, "graph", None), "nodes", ()):
            node.meta.clear()  # stand-ins for tensors, which cannot be copied
    return module
