"""Subject: any torch module, seen through its named layers."""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from assay.core.arrays import channels_last
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint
from assay.subject.layers import ALL, Layers, choose_layers

if TYPE_CHECKING:
    from assay.subject.split import Split

log = logging.getLogger(__name__)

Batch = Tensor | np.ndarray[Any, Any] | Mapping[str, Any]
Visitor = Callable[[str, Tensor], None]
OUTPUT: Final = "output"


class _Stop(Exception):
    """Raised by a hook after the last layer asked for; never leaves this file."""


class Subject:
    """Who is shown the stimuli: a torch module, its layers recorded and cut, the module itself untouched.

    Layers are called by module name, in order of execution; the second call of a module is ``name#2``.
    The network's own output is the layer ``"output"`` (listed when no module returns that very tensor).
    Where a module returns a tuple or a mapping, its layer is the first tensor in it.

    While a subject is shown something its module is in eval mode, without gradients; afterwards the
    training flags, the grad mode and the random number generators are as they were found.

    Args:
        module: The network. If ``device``, ``dtype`` or ``channels_last`` ask for something else than it
            is, a converted copy is used.
        name: What tables call it; the class name by default.
        preprocess: Applied to every batch before the network (a callable, e.g. `assay.stimuli.Normalize`).
        example: An input, or the shape of one without the batch axis, for the dry run that finds
            the layers. Without it, the first batch shown serves.
        device: Where to run.
        dtype: Precision of weights and floating-point inputs, e.g. ``torch.bfloat16``.
        channels_last: Run 4-D inputs in channels-last memory format.

    Example:
        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
        >>> subject = Subject(net, name="mlp", example=(3,))
        >>> subject.layers
        ['0', '1', '2']
        >>> {layer: tuple(t.shape) for layer, t in subject.record(torch.ones(5, 3), ["0", "1"]).items()}
        {'0': (5, 4), '1': (5, 4)}
    """

    def __init__(
        self,
        module: nn.Module,
        name: str | None = None,
        *,
        preprocess: Callable[[Any], Any] | None = None,
        example: Batch | Sequence[int] | None = None,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        channels_last: bool = False,
    ) -> None:
        if not isinstance(module, nn.Module):
            raise AssayError(f"module={module!r} is not a torch.nn.Module")
        self.name = name or type(module).__name__
        self.preprocess = preprocess
        self.channels_last = channels_last
        tensors = [*module.parameters(), *module.buffers()]
        found = next((t for t in tensors if t.is_floating_point()), torch.empty(0))
        self.device = torch.empty(0, device=device).device if device is not None else found.device
        self.dtype = dtype or found.dtype
        if self.device != found.device or self.dtype != found.dtype or channels_last:
            module = copy.deepcopy(module).to(self.device, self.dtype)
            if channels_last:
                module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.module = module
        self.example = example
        self._order: list[str] | None = None
        self._overwritten: set[str] = set()
        self._writes_input = False
        self._out_of_place = True
        self._per_sample: set[str] = set()
        self._showing = False
        self._graphs: dict[Any, Any] = {}
        self._told_uncaptured = False

    def __repr__(self) -> str:
        return f"Subject({self.name!r}, {type(self.module).__name__}, {self.device}, {self.dtype})"

    def __getstate__(self) -> dict[str, Any]:
        # Captured graphs are cheap to find again and not worth sending to a worker.
        return {**self.__dict__, "_graphs": {}}

    # -- what it is -----------------------------------------------------------------------------------

    @property
    def layers(self) -> list[str]:
        """Layer names in order of execution (a layer follows the layers inside it)."""
        if self._order is None:
            if self.example is None:
                raise AssayError(
                    f"the layers of {self.name!r} are found by a dry run: give Subject(example=...) an input "
                    "or its shape, or show it a batch first"
                )
            self._dry_run(self._example_batch())
        assert self._order is not None
        return list(self._order)

    @property
    def fingerprint(self) -> str:
        """Content hash of structure, code, weights, buffers, preprocessing and precision (not the name).

        Computed anew each time: the weights may have been trained on since.
        """
        return fingerprint(self.module, self.preprocess, self.dtype, self.channels_last)

    def choose(self, layers: Layers = ALL) -> list[str]:
        """The layer names chosen, in order of execution; see `assay.choose_layers`. ``"output"`` always exists."""
        known = self.layers
        named = [layers] if isinstance(layers, (str, int, float)) else layers
        if OUTPUT in named and OUTPUT not in known:
            known.append(OUTPUT)
        return choose_layers(known, layers)

    def choose_one(self, layer: str | int | float) -> str:
        """The one layer that a name, glob, place or depth chooses; an error if it chooses several."""
        chosen = self.choose(layer)
        if len(chosen) != 1:
            raise AssayError(f"layer={layer!r} chooses {len(chosen)} layers of {self.name!r}, not one")
        return chosen[0]

    # -- showing it something -------------------------------------------------------------------------

    def record(self, batch: Batch, layers: Layers = ALL) -> dict[str, Tensor]:
        """What each layer did: one forward pass, stopped right after the last layer asked for.

        What is returned stays as it was when the layer returned it, whatever the network does in place
        afterwards. Torch's own in-place activations write to new memory during this pass, and the few outputs
        that are overwritten all the same (``out += x``) are copied; the others are not.
        """
        ready = self._prepare(batch)
        self._ensure_order(ready)
        wanted = self.choose(layers)
        given = [t.untyped_storage().data_ptr() for t in _tensors(ready)]  # a layer may return its input
        while True:
            kept: dict[str, Tensor] = {}
            versions: dict[str, int] = {}

            def keep(layer: str, output: Tensor, kept: Any = kept, versions: Any = versions) -> None:
                if layer in self._overwritten or output.is_inference() or _same_memory(output, given):
                    kept[layer] = output.clone()
                else:
                    kept[layer], versions[layer] = output, output._version

            self._run(ready, wanted, keep, out_of_place=self._out_of_place)
            changed = {layer for layer, version in versions.items() if kept[layer]._version != version}
            if not changed:
                return {layer: kept[layer].detach() for layer in wanted}
            # A path the dry run did not see wrote over these: remember, and look again.
            self._overwritten |= changed

    def visit(self, batch: Batch, visitor: Visitor, layers: Layers = ALL) -> None:
        """Call ``visitor(layer, output)`` as each layer returns; nothing is copied and nothing is kept.

        The streaming form of `record`: the visitor must not keep or change ``output``, which the network
        may overwrite as soon as it goes on.
        """
        ready = self._prepare(batch)
        self._ensure_order(ready)
        self._run(ready, self.choose(layers), visitor)

    def __call__(self, batch: Batch) -> Any:
        """The network's whole output, as the module returns it."""
        ready = self._prepare(batch)
        self._ensure_order(ready)
        with self._undisturbed():
            return self._forward(ready)

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Make several batches one showing: a network that draws random numbers goes on drawing between them.

        Outside, every batch begins from the random state it was found in, which is restored after it.
        """
        with self._undisturbed():
            self._showing = True
            try:
                yield
            finally:
                self._showing = False

    def is_per_sample(self, layer: str) -> bool:
        """Whether the first axis of a layer's output was the batch in the dry run."""
        return layer in self._per_sample

    def split(self, layer: str | int | float) -> Split:
        """Cut the network after ``layer``: a prefix to run once and a rest to run again and again."""
        from assay.subject.split import Split

        return Split(self, layer)

    # -- how ------------------------------------------------------------------------------------------

    def _run(self, ready: Any, wanted: Sequence[str], visitor: Visitor, out_of_place: bool = False) -> None:
        """One pass over a prepared batch, hooks on the wanted layers only, stopped after the last."""
        left = set(wanted)
        calls: Counter[str] = Counter()

        def after(path: str) -> Callable[[nn.Module, Any, Any], None]:
            def hook(module: nn.Module, args: Any, output: Any) -> None:
                calls[path] += 1
                layer = _call_name(path, calls[path])
                if layer in left:
                    left.discard(layer)
                    visitor(layer, _first_tensor(output))
                    if not left:
                        raise _Stop

            return hook

        paths = {_path_and_call(layer)[0] for layer in left}
        with self._undisturbed(out_of_place), _hooks(self.module, paths, after):
            try:
                output = self._forward(ready)
                if OUTPUT in left:
                    left.discard(OUTPUT)
                    visitor(OUTPUT, _first_tensor(output))
            except _Stop:
                pass
        if left:
            raise AssayError(
                f"{self.name!r} did not run layer {min(left)!r} on this batch, though it did in the dry run"
            )

    def _dry_run(self, ready: Any) -> None:
        """Find the layers, whether the input is written to, and which outputs are overwritten when recording."""
        found = self._trace(ready, out_of_place=False)
        elsewhere = self._trace(ready, out_of_place=True)
        self._order, self._writes_input = found.order, found.writes_input
        # A network may rely on what is written in place (it reads the tensor again): then it is left so.
        self._out_of_place = found.same_values(elsewhere)
        self._overwritten = (elsewhere if self._out_of_place else found).overwritten
        self._per_sample = found.per_sample

    def _trace(self, ready: Any, out_of_place: bool) -> _Trace:
        calls: Counter[str] = Counter()
        seen: list[tuple[str, Tensor, int, Tensor]] = []

        def after(path: str) -> Callable[[nn.Module, Any, Any], None]:
            def hook(module: nn.Module, args: Any, output: Any) -> None:
                calls[path] += 1
                tensor = _first_tensor(output, required=False)
                if tensor is not None:
                    seen.append((_call_name(path, calls[path]), tensor, _version(tensor), tensor.clone()))

            return hook

        inputs = _cloned(ready)
        before = [_version(t) for t in _tensors(inputs)]
        paths = {path for path, _ in self.module.named_modules() if path}
        with self._undisturbed(out_of_place), _hooks(self.module, paths, after):
            output = _first_tensor(self._call(inputs), required=False)
        order = [layer for layer, *_ in seen]
        if output is not None and OUTPUT not in order and not any(output is tensor for _, tensor, *_ in seen):
            order.append(OUTPUT)
            seen.append((OUTPUT, output, _version(output), output))
        count = len(next(_tensors(ready)))
        return _Trace(
            order,
            {layer: value for layer, _, _, value in seen},
            {layer for layer, tensor, version, _ in seen if _version(tensor) != version},
            {layer for layer, _, _, value in seen if value.dim() > 0 and len(value) == count},
            before != [_version(t) for t in _tensors(inputs)],
        )

    def _forward(self, ready: Any) -> Any:
        return self._call(_cloned(ready) if self._writes_input else ready)

    def _call(self, ready: Any) -> Any:
        return self.module(**ready) if isinstance(ready, Mapping) else self.module(ready)

    def _ensure_order(self, ready: Any) -> None:
        if self._order is None:
            first = {k: v[:1] for k, v in ready.items()} if isinstance(ready, Mapping) else ready[:1]
            self._dry_run(first)

    def _prepare(self, batch: Batch) -> Any:
        if self.preprocess is not None:
            batch = self.preprocess(torch.as_tensor(batch) if isinstance(batch, np.ndarray) else batch)
        if isinstance(batch, Mapping):
            return {key: self._to_device(value) for key, value in batch.items()}
        return self._to_device(batch)

    def _to_device(self, value: Any) -> Tensor:
        tensor = torch.as_tensor(value)
        if tensor.dtype == torch.uint8:
            raise AssayError("the batch is uint8: show networks floating-point values (pixels in [0, 1])")
        tensor = tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)
        return channels_last(tensor) if self.channels_last else tensor

    def _example_batch(self) -> Any:
        if isinstance(self.example, Sequence):
            # Not zeros: a network may divide by a norm. Not random: the dry run must not need a seed.
            size = 1
            for side in self.example:
                size *= int(side)
            return self._prepare(torch.linspace(0, 1, size).reshape(1, *self.example))
        assert self.example is not None
        return self._prepare(self.example)

    @contextmanager
    def _undisturbed(self, out_of_place: bool = False) -> Iterator[None]:
        """Eval mode, no gradients, a forked random state; everything as found on the way out.

        With ``out_of_place``, modules with an ``inplace`` switch have it off: what they would overwrite stays.
        """
        changes = [(m, "training", True) for m in self.module.modules() if m.training]
        if out_of_place:
            changes += [(m, "inplace", True) for m in self.module.modules() if getattr(m, "inplace", False) is True]
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(devices=devices, enabled=not self._showing):
            try:
                for m, switch, _ in changes:
                    setattr(m, switch, False)
                yield
            finally:
                for m, switch, found in changes:
                    setattr(m, switch, found)


@dataclass(frozen=True)
class _Trace:
    """What a dry run saw."""

    order: list[str]
    values: dict[str, Tensor]
    overwritten: set[str]
    per_sample: set[str]
    writes_input: bool

    def same_values(self, other: _Trace) -> bool:
        return self.order == other.order and all(
            torch.equal(torch.nan_to_num(value), torch.nan_to_num(other.values[layer]))
            for layer, value in self.values.items()
        )


def _call_name(path: str, call: int) -> str:
    return path if call == 1 else f"{path}#{call}"


def _path_and_call(layer: str) -> tuple[str, int]:
    """The module path of a layer, and which call of it."""
    path, mark, call = layer.rpartition("#")
    return (path, int(call)) if mark and call.isdigit() else (layer, 1)


def _same_memory(output: Tensor, given: list[int]) -> bool:
    return output.untyped_storage().data_ptr() in given


@contextmanager
def _hooks(
    module: nn.Module, paths: set[str], make: Callable[[str], Callable[[nn.Module, Any, Any], Any]]
) -> Iterator[None]:
    """Forward hooks on the modules at ``paths``, gone afterwards whatever happens."""
    handles: list[RemovableHandle] = []
    try:
        for path, child in module.named_modules():
            if path in paths:
                handles.append(child.register_forward_hook(make(path)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _cloned(ready: Any) -> Any:
    return {k: v.clone() for k, v in ready.items()} if isinstance(ready, Mapping) else ready.clone()


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _first_tensor(output: Any, required: bool = True) -> Any:
    first = next(_tensors(output), None)
    if first is None and required:
        raise AssayError(f"a layer returned {type(output).__name__}, which holds no tensor")
    return first


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
