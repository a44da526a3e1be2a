"""Network: a torch module ready to be shown inputs, and left as it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.arrays import channels_last, cloned
from assay.core.errors import AssayError, first_line
from assay.subject.memory import Memory
from assay.subject.unwrapped import copied, is_compiled, plain_module

Batch = Tensor | np.ndarray[Any, Any] | Mapping[str, Any]


class Network:
    """A module with its preprocessing, device, precision and memory format.

    If ``device``, ``dtype`` or ``in_channels_last`` ask for something else than the module is, a converted copy is
    used.
    """

    def __init__(
        self,
        module: nn.Module | torch.export.ExportedProgram,
        preprocess: Callable[[Any], Any] | None,
        device: str | torch.device | None,
        dtype: torch.dtype | None,
        in_channels_last: bool,
    ) -> None:
        module = plain_module(module)
        self.preprocess = preprocess
        self.channels_last = in_channels_last
        tensors = [*module.parameters(), *module.buffers()]
        own = next((t for t in tensors if t.is_floating_point()), torch.empty(0))
        self.device = torch.empty(0, device=device).device if device is not None else own.device
        self.dtype = dtype or own.dtype
        if self.device != own.device or self.dtype != own.dtype or in_channels_last:
            why = "which another device, dtype or memory format needs: give it as it should run"
            module = copied(module, why).to(self.device, self.dtype)
            if in_channels_last:
                module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.module = module
        self._compiled = is_compiled(module)
        self._in_one_mapping: dict[tuple[str, ...], bool] = {}
        self._one_showing = False
        self._memory = Memory()

    def prepare(self, batch: Batch) -> Any:
        """Prepare a batch as the module takes it: preprocessed, on its device, in its precision and memory format."""
        if self.preprocess is not None:
            given = torch.as_tensor(batch) if isinstance(batch, np.ndarray) else batch
            try:
                batch = self.preprocess(given)
            except (AssayError, torch.OutOfMemoryError):
                raise
            except Exception as error:  # it is the user's, and may raise anything
                raise AssayError(f"preprocess cannot take {_described(given)}: {_reason(error)}") from error
        if not isinstance(batch, Mapping):
            return self._to_device(batch)
        ready = {str(key): self._to_device(value) for key, value in batch.items()}
        lengths = {key: len(value) if value.dim() else 0 for key, value in ready.items()}
        if len(set(lengths.values())) != 1 or not all(lengths.values()):
            rows = ", ".join(f"{key!r} has {length}" for key, length in lengths.items()) or "there are none"
            raise AssayError(f"inputs by name must have a row for each of the same inputs: {rows}")
        return ready

    def prepare_example(self, example: Batch | Sequence[int]) -> Any:
        """A prepared example input, made from one that is given or from its shape without the batch axis."""
        if isinstance(example, Mapping):
            named = {key: _made(value) if isinstance(value, tuple) else value for key, value in example.items()}
            return self.prepare(named)
        return self.prepare(_made(example) if isinstance(example, Sequence) else example)

    def _to_device(self, value: Any) -> Tensor:
        try:
            tensor = torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise AssayError(
                f"the batch is a {type(value).__name__}: show networks a tensor or an array, or a mapping of them by "
                "the names of the arguments of forward"
            ) from error
        if tensor.dim() == 0:
            raise AssayError(f"the batch is one number, {tensor.item()}: show networks an array with a row per input")
        if tensor.dtype == torch.uint8:
            raise AssayError("the batch is uint8: show networks floating-point values (pixels in [0, 1])")
        tensor = tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)
        return channels_last(tensor) if self.channels_last else tensor

    def forward(self, ready: Any, copy_input: bool = False) -> Any:
        """What the module returns for a prepared batch; ``copy_input`` keeps it from writing to the batch."""
        args, kwargs = self.arguments(cloned(ready) if copy_input else ready)
        return self.module(*args, **kwargs)

    def arguments(self, ready: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, by position and by name, with which the module is called for a prepared batch.

        Inputs by name are keyword arguments, or one mapping where ``forward`` takes no such keywords and one argument.
        """
        if not isinstance(ready, Mapping):
            return (ready,), {}
        names = tuple(ready)
        if names not in self._in_one_mapping:
            self._in_one_mapping[names] = _takes_one_mapping(self.module, names)
        return ((dict(ready),), {}) if self._in_one_mapping[names] else ((), dict(ready))

    @contextmanager
    def undisturbed(self, out_of_place: bool = False) -> Iterator[None]:
        """Run in eval mode, without gradients, on a forked random state inside the block; afterwards all is as before.

        What the network keeps of what it was shown, such as its last activations, is taken back too. With
        ``out_of_place``, modules with an ``inplace`` switch have it off: what they would overwrite stays.
        """
        modules = list(self.module.modules())
        changes = [(m, "training", True) for m in modules if m.training]
        if out_of_place:
            changes += [(m, "inplace", True) for m in modules if getattr(m, "inplace", False) is True]
        devices = [self.device] if self.device.type == "cuda" else []
        # Compiled code would be compiled again for every set of hooks.
        eager = torch.compiler.set_stance("force_eager") if self._compiled else nullcontext()
        with eager, torch.no_grad(), torch.random.fork_rng(devices=devices, enabled=not self._one_showing):
            try:
                for module, switch, _ in changes:
                    setattr(module, switch, False)
                with nullcontext() if self._one_showing else self._memory.taken_back(modules):
                    yield
            finally:
                for module, switch, before in changes:
                    setattr(module, switch, before)

    @contextmanager
    def one_showing(self) -> Iterator[None]:
        """Make several batches one showing, between which a network goes on drawing random numbers and remembering."""
        with self.undisturbed():
            self._one_showing = True
            try:
                yield
            finally:
                self._one_showing = False

    def weight_versions(self) -> int:
        """A number that changes whenever a parameter or buffer is written to or replaced."""
        return hash(tuple((id(t), t._version) for t in [*self.module.parameters(), *self.module.buffers()]))


@contextmanager
def taking(name: str, ready: Any, passed_on: Sequence[BaseException] = ()) -> Iterator[None]:
    """Make whatever a network raises, while it is shown a batch, a sentence that names the batch's shape.

    Args:
        name: What tables call the network.
        ready: The batch.
        passed_on: Errors that are not the network's, and come through as they are.
    """
    try:
        yield
    except (AssayError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the network is the user's, and may raise anything
        if error in passed_on:
            raise
        hint = _layout_hint(ready)
        if isinstance(error, TypeError) and "required positional argument" in str(error):
            hint = "; give its inputs as a mapping by the names of the arguments, or a preprocess that makes one"
        raise AssayError(f"{name!r} cannot take {_described(ready)}: {_reason(error)}{hint}") from error


def _layout_hint(batch: Any) -> str:
    """What may be wrong with the axes of a batch of pictures, as the end of a sentence."""
    shape = tuple(getattr(batch, "shape", ()))
    if len(shape) == 3:
        return "; pictures are shown as N×C×H×W: give batch[None] for one picture, batch[:, None] for grey ones"
    if len(shape) == 4 and shape[3] in (1, 3) and shape[1] not in (1, 3):
        return "; pictures are shown as N×C×H×W: give batch.transpose(0, 3, 1, 2) of an array"
    return ""


def _described(batch: Any) -> str:
    """What a batch holds, as part of a sentence."""
    if isinstance(batch, Mapping):
        return " and ".join(f"{key} of shape {_shape(value)}" for key, value in batch.items())
    return f"inputs of shape {_shape(batch)}"


def _shape(value: Any) -> str:
    return str(tuple(value.shape[1:])) if hasattr(value, "shape") else f"unknown, a {type(value).__name__}"


def _reason(error: Exception) -> str:
    """What an exception says; torch's own are all of one type, others are clearer with theirs."""
    return first_line(error) if type(error) is RuntimeError else f"{type(error).__name__}: {first_line(error)}"


def _made(shape: Sequence[int]) -> Tensor:
    """One input of a shape."""
    # Not zeros: a network may divide by a norm. Not random: the dry run must not need a seed.
    size = 1
    for side in shape:
        size *= int(side)
    return torch.linspace(0, 1, size).reshape(1, *shape)


def _takes_one_mapping(module: nn.Module, names: Sequence[str]) -> bool:
    """Whether a module's ``forward`` takes one argument, and not the names as keywords."""
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):  # compiled code has none
        return False
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError:
        try:
            signature.bind(None)
        except TypeError:
            return False
        return not set(names) & set(signature.parameters)
    return False
