"""Network: a torch module ready to be shown inputs, and left as it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.arrays import as_tensor, channels_last, cloned
from assay.core.device import device_named
from assay.core.errors import ANYTHING, AssayError, reason, shown
from assay.core.names import require_writable
from assay.core.shapes import shape_of
from assay.subject.memory import Memory
from assay.subject.stamp import Stamp, attributes_stamp, structure_stamp
from assay.subject.taking import described, reason_of
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
        if preprocess is not None and not callable(preprocess):
            raise AssayError(f"preprocess={shown(preprocess)} is no function of a batch: give one, or None")
        if not isinstance(dtype, torch.dtype | None):
            raise AssayError(f"dtype={shown(dtype)} is no precision of torch: give one, as torch.bfloat16")
        plain = plain_module(module)
        self.preprocess = preprocess
        self.channels_last = in_channels_last
        tensors = [*plain.parameters(), *plain.buffers()]
        own = next((t for t in tensors if t.is_floating_point()), torch.empty(0))
        self.device = own.device if device is None else device_named(device)
        self.dtype = dtype or own.dtype
        if self.device != own.device or self.dtype != own.dtype or in_channels_last:
            why = "which another device, dtype or memory format needs: give it as it should run"
            plain = copied(plain, why).to(self.device, self.dtype)
            if in_channels_last:
                plain = plain.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.module = plain
        self._compiled = is_compiled(plain)
        self._in_one_mapping: dict[tuple[str, ...], bool] = {}
        self._one_showing = False
        self._attributes: Stamp | None = None
        self._memory = Memory()
        self.showings = 0
        """How often `one_showing` was entered."""

    def prepare(self, batch: Batch) -> Any:
        """Prepare a batch as the module takes it: preprocessed, on its device, in its precision and memory format."""
        if self.preprocess is not None:
            given = _own(as_tensor(batch) if isinstance(batch, np.ndarray) else batch)
            try:
                batch = self._preprocessed(self.preprocess, given)
            except (AssayError, torch.OutOfMemoryError):
                raise
            except ANYTHING as error:  # it is the user's
                raise AssayError(f"preprocess cannot take {described(given)}: {reason_of(error)}") from error
        if not isinstance(batch, Mapping):
            return self._to_device(batch)
        ready = {str(key): self._to_device(value) for key, value in batch.items()}
        lengths = {key: len(value) if value.dim() else 0 for key, value in ready.items()}
        if len(set(lengths.values())) != 1 or not all(lengths.values()):
            rows = ", ".join(f"{key!r} has {length}" for key, length in lengths.items()) or "there are none"
            raise AssayError(f"inputs by name must have a row for each of the same inputs: {rows}")
        return ready

    def _preprocessed(self, preprocess: Callable[[Any], Any], given: Any) -> Any:
        """What the preprocessing makes of a batch; that of a network of videos is shown all frames, N×C×H×W."""
        if not (getattr(self.module, "video", False) and isinstance(given, Tensor) and given.dim() == 5):
            return preprocess(given)
        frames = preprocess(given.flatten(0, 1))
        return frames.unflatten(0, given.shape[:2])

    def prepare_example(self, example: Batch | Sequence[int]) -> Any:
        """A prepared example input, made from one that is given or from its shape without the batch axis."""
        if isinstance(example, Mapping):
            named = {key: _made(value) if isinstance(value, tuple) else value for key, value in example.items()}
            return self.prepare(named)
        return self.prepare(_made(example) if isinstance(example, Sequence) else example)

    def _to_device(self, value: Any) -> Tensor:
        try:
            tensor = as_tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise AssayError(
                f"the batch is a {type(value).__name__}: show networks a tensor or an array, or a mapping of them by "
                "the names of the arguments of forward"
            ) from error
        if tensor.is_meta:
            raise AssayError("the batch is on the meta device and has no values: show networks tensors that have some")
        if tensor.dim() == 0:
            raise AssayError(f"the batch is one number, {tensor.item()}: show networks an array with a row per input")
        if tensor.dtype == torch.uint8:
            raise AssayError("the batch is uint8: show networks floating-point values (pixels in [0, 1])")
        tensor = tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)
        return channels_last(tensor) if self.channels_last else tensor

    def forward(self, ready: Any, copy_input: bool = False, runs: nn.Module | None = None) -> Any:
        """What the module, or one that ``runs`` in its place, returns for a prepared batch.

        ``copy_input`` keeps it from writing to the batch.
        """
        args, kwargs = self.arguments(cloned(ready) if copy_input else ready)
        return (self.module if runs is None else runs)(*args, **kwargs)

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
        modes, default = [(m, m.training) for m in modules], torch.get_default_dtype()
        changes = [(m, "training", True) for m, training in modes if training]
        if out_of_place:
            switches = [m for m in modules if not isinstance(m, torch.jit.ScriptModule)]  # those have it built in
            changes += [(m, "inplace", True) for m in switches if getattr(m, "inplace", False) is True]
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
                for module, training in modes:
                    if module.training != training:  # the network has changed it itself
                        module.training = training
                torch.set_default_dtype(default)  # which is everybody's

    @contextmanager
    def one_showing(self) -> Iterator[None]:
        """Make several batches one showing, between which a network goes on drawing random numbers and remembering."""
        with self.undisturbed():
            self._one_showing = True
            self.showings += 1
            self._attributes = attributes_stamp(list(self.module.modules()))
            try:
                yield
            finally:
                self._one_showing = False
                self._attributes = None

    def stamp(self) -> tuple[Stamp, Stamp]:
        """A note of the network as it is, to be compared with one made later; see `Stamp`.

        Of its own attributes, in which it may remember what it was shown, as they were when the showing began.
        """
        modules = list(self.module.modules())
        return structure_stamp(modules), self._attributes or attributes_stamp(modules)


def _made(shape: Sequence[int]) -> Tensor:
    """One input of a shape."""
    # Not zeros: a network may divide by a norm. Not random: the dry run must not need a seed.
    sides = shape_of(shape, "example")
    return torch.linspace(0, 1, prod(sides)).reshape(1, *sides)


def _own(batch: Any) -> Any:
    """A copy of a batch, for who may write to it; what is no tensor, and no array, is given as it is."""
    if isinstance(batch, dict):
        return {key: _own(value) for key, value in batch.items()} if type(batch) is dict else batch
    if isinstance(batch, Tensor):
        return batch.clone()
    return batch.copy() if isinstance(batch, np.ndarray) else batch


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


def checked_network(name: str, module: Any, *settings: Any) -> Network:
    """A network of a module and the settings of `Network`; what the module's own code raises is one sentence.

    Args:
        name: What errors call the network.
        module: A torch module, or an exported program.
        settings: The other arguments of `Network`, in order.
    """
    try:
        network = Network(module, *settings)
        layers = [layer for layer, _ in network.module.named_modules()]
    except (AssayError, torch.OutOfMemoryError):
        raise
    except ANYTHING as error:  # a module may overwrite what every module of torch's has
        raise AssayError(
            f"{name!r} cannot be used as a module of torch: its own code raises {reason(error)}"
        ) from error
    for layer in layers:
        require_writable(layer, "the name of a layer")
    return network
