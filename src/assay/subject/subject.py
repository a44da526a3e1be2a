"""Subject: any torch module, seen through its named layers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from assay.core.arrays import first_tensor, tensors_in
from assay.core.errors import AssayError, shown
from assay.core.fingerprint import fingerprint
from assay.core.names import require_writable
from assay.core.notebook import facts_as_html
from assay.networks.imported.onnx import load_onnx
from assay.subject.dry_run import OUTPUT, DryRun, dry_run
from assay.subject.graph import Graphs
from assay.subject.hooks import layer_hooks, module_path
from assay.subject.in_place import writing_over
from assay.subject.layers import ALL, Layers
from assay.subject.network import Batch, checked_network
from assay.subject.passes import Passes
from assay.subject.probe import InputKind, Probe, example_kinds, input_kinds, probe
from assay.subject.split import Split
from assay.subject.state import require_past
from assay.subject.taking import taking
from assay.subject.visitors import Distinct, Recording, Visitor, shown_plain


class _Stop(Exception):
    """Raised by a hook after the last layer asked for; never leaves this file."""


class Subject:
    """A network that is shown stimuli: any torch module, its layers recorded and cut, the module itself untouched.

    Layers are called by module name, in order of execution; the second call of a module is ``name#2``.
    The network's own output is the layer ``"output"`` (listed when no module returns that very tensor).
    Where a module returns a tuple or a mapping, its layer is the first tensor in it.

    While a subject is shown something its module is in eval mode, without gradients; afterwards the
    training flags, the grad mode and the random number generators are as they were found.

    Args:
        module: The network. One that is compiled, or wrapped for several devices, is unwrapped; of a
            ``torch.export.ExportedProgram`` the modules are put together again. If ``device``, ``dtype`` or
            ``channels_last`` ask for something else than it is, a converted copy is used.
        name: What tables call the network; the name of its class by default.
        preprocess: Function applied to every batch before the network, such as `assay.stimuli.Normalize`; of videos
            it is given all frames, N×C×H×W.
        example: An input, or the shape of one without the batch axis, for the dry run that finds
            the layers. Without it, the first batch shown serves.
        device: Device to run on; that of the module by default.
        dtype: Precision of weights and floating-point inputs, e.g. ``torch.bfloat16``.
        channels_last: Whether to run 4-D inputs in channels-last memory format.
        compile: Whether to compile the network (``torch.compile``) where it is recorded, visited and split, with batch
            norm folded into the layer before it unless that layer's own output is asked for. This takes up to a minute
            at first, pays where much is shown, above all on a GPU, and changes numbers by rounding. A pass that visits
            layers then holds all of them at once. Where a network cannot be compiled, or then does something else, it
            runs as it is, and one line of the log says so. One that was changed is compiled again; see `Split`.
        recipe: A name that networks trained alike from other seeds share; a report then compares recipes, by how far
            their networks are apart.
        initial_weights: The weights before training by name, such as ``module.state_dict()`` was then; for measures of
            the distance from them. They are no part of the fingerprint.
        history: The training, one row per epoch, with a column ``loss``; for measures of its speed.

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
        module: nn.Module | torch.export.ExportedProgram,
        name: str | None = None,
        *,
        preprocess: Callable[[Any], Any] | None = None,
        example: Batch | Sequence[int] | None = None,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        channels_last: bool = False,
        compile: bool = False,
        recipe: str = "",
        initial_weights: Mapping[str, Tensor] | None = None,
        history: pd.DataFrame | None = None,
    ) -> None:
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise AssayError(f"name={shown(name)} is no name of a network: give text that is not empty, or None")
        require_writable(name or "", "the name of a network")
        if not isinstance(recipe, str):
            raise AssayError(f"recipe={shown(recipe)} is no name of a recipe: give text, which may be empty")
        require_past(initial_weights, history)
        self.network = checked_network(name or type(module).__name__, module, preprocess, device, dtype, channels_last)
        exported = isinstance(module, torch.export.ExportedProgram)
        self.name = name or type(module if exported else self.module).__name__
        self.example = example
        self.recipe = recipe
        self.initial_weights = initial_weights
        self.history = history
        self._dry_run: DryRun | None = None
        self._also_overwritten: set[str] = set()  # on paths that the dry run did not take
        self._inputs: dict[str, InputKind] | None = None
        self.compile = compile
        self._graphs = Graphs()

    @classmethod
    def from_onnx(cls, path: str | os.PathLike[str], name: str | None = None, **settings: Any) -> Subject:
        """A network from an ONNX file; its layers are the nodes of the graph, under their names in the file.

        A graph of one input, of operators that assay knows, is run by torch, with gradients and on any device. Any
        other (a transformer, a recurrent network, several inputs) is run by onnxruntime on the CPU: its layers are
        recorded, replaced and split as others are, and measures that need gradients or move weights say that they
        cannot be asked of it. Needs ``pip install 'assay[onnx]'``.

        Args:
            path: The ONNX file.
            name: What tables call the network; the name of the file by default.
            settings: Settings of `Subject`. The example is by default one of the shape that the file states, where it
                states one.

        Example:
            ```python
            torch.onnx.export(network, images, "network.onnx", dynamic_axes={"input": {0: "n"}}, input_names=["input"])
            subject = assay.Subject.from_onnx("network.onnx", preprocess=assay.stimuli.Normalize())
            assay.Norms()(subject)
            ```
        """
        module = load_onnx(Path(path))
        return cls(module, name or Path(path).stem, **{"example": module.example, **settings})

    def __repr__(self) -> str:
        return f"Subject({self.name!r}, {type(self.module).__name__}, {self.device}, {self.dtype})"

    def _repr_html_(self) -> str:
        parameters = sum(p.numel() for p in self.module.parameters())
        facts = {
            "network": type(self.module).__name__,
            "parameters": f"{parameters:,}",
            "layers": self._layers_in_words(),
            "preprocess": self.preprocess or "none",
            "runs on": f"{self.device}, {str(self.dtype).removeprefix('torch.')}",
        }
        return facts_as_html(f"Subject {self.name}", facts)

    def _layers_in_words(self) -> str:
        if self._dry_run is None and self.example is None:
            return "known once it was shown something"
        try:
            return str(len(self.layers))
        except AssayError as error:  # the example does not fit; what is shown of a thing must not be an error
            return str(error)

    def __getstate__(self) -> dict[str, Any]:
        # Captured graphs are cheap to find again and not worth sending to a worker.
        return {**self.__dict__, "_graphs": Graphs()}

    # -- what it is -----------------------------------------------------------------------------------

    @property
    def module(self) -> nn.Module:
        """The torch module that is shown the stimuli."""
        return self.network.module

    @property
    def preprocess(self) -> Callable[[Any], Any] | None:
        """The function that is applied to every batch before the network; None for none."""
        return self.network.preprocess

    @property
    def device(self) -> torch.device:
        """The device that the network runs on."""
        return self.network.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the network's weights and floating-point inputs."""
        return self.network.dtype

    @property
    def channels_last(self) -> bool:
        """Whether 4-D inputs run in channels-last memory format."""
        return self.network.channels_last

    @property
    def video(self) -> bool:
        """Whether it takes videos B×T×C×H×W, its layers returning B×T×…: its module has ``video = True``."""
        return bool(getattr(self.module, "video", False))

    @property
    def layers(self) -> list[str]:
        """Layer names in order of execution (a layer follows the layers inside it)."""
        return list(self._known().layers)

    @property
    def calls(self) -> list[str]:
        """The layers, and among them the activations that are functions in the network's code, such as ``relu()``."""
        known = self._known()
        return list(known.calls or known.layers)

    @property
    def fingerprint(self) -> str:
        """Content hash of structure, code, weights, buffers, preprocessing and precision (not the name).

        Computed anew each time: the weights may have been trained on since.
        """
        rounding = ("compiled",) if self.compile else ()
        return fingerprint(self.module, self.preprocess, self.dtype, self.channels_last, *rounding)

    def probe(self, inputs: dict[str, InputKind] | None = None) -> Probe | None:
        """The network's answer to one small fixed input, of the kind it was shown, or of the kinds given.

        None where the network was shown nothing yet, has no example, or takes something else than arrays of numbers.
        """
        kinds = inputs or self._inputs or (None if self.example is None else example_kinds(self.example))
        return None if kinds is None else probe(self.network, kinds)

    def choose(self, layers: Layers = ALL) -> list[str]:
        """Names of the chosen layers in order of execution; see `assay.choose_layers`. ``"output"`` always exists."""
        return self._known().choose(layers)

    def choose_one(self, layer: str | int | float) -> str:
        """Name of the one layer that a name, glob, place or depth chooses; an error if it chooses several."""
        chosen = self.choose(layer)
        if len(chosen) != 1:
            raise AssayError(f"layer={layer!r} chooses {len(chosen)} layers of {self.name!r}, not one")
        return chosen[0]

    def repeats(self, layers: Layers = ALL) -> dict[str, str]:
        """Chosen layers that return the very tensor of another chosen layer before them, with that layer.

        A container returns the tensor of its last child: what was computed of the one holds for the other.
        """
        chosen, first = self.choose(layers), self._known().repeats
        repeats: dict[str, str] = {}
        by_origin: dict[str, str] = {}
        for layer in chosen:
            origin = first.get(layer, layer)
            if origin in by_origin:
                repeats[layer] = by_origin[origin]
            by_origin.setdefault(origin, layer)
        return repeats

    def is_per_sample(self, layer: str) -> bool:
        """Whether the first axis of a layer's output was the batch in the dry run."""
        return layer in self._known().per_sample

    def returns_several(self, layer: str) -> bool:
        """Whether a layer returned more than one tensor in the dry run; the layer is the first of them."""
        return layer in self._known().several

    # -- showing it something -------------------------------------------------------------------------

    def record(self, batch: Batch, layers: Layers = ALL) -> dict[str, Tensor]:
        """Outputs of the chosen layers, from one forward pass that stops right after the last of them.

        What is returned stays as it was when the layer returned it, whatever the network does in place
        afterwards. Torch's own in-place activations write to new memory during this pass, and the few outputs
        that are overwritten all the same (``out += x``) are copied; the others are not.
        """
        ready = self._prepare(batch)
        known = self._known(ready)
        wanted = self.choose(layers)
        if self.compile:
            return self._passes.record(ready, known, wanted, lambda: self._record(ready, wanted))
        return self._record(ready, wanted)

    def _record(self, ready: Any, wanted: Sequence[str]) -> dict[str, Tensor]:
        known = self._known(ready)
        inputs = {t.untyped_storage().data_ptr() for t in tensors_in(ready)}  # a layer may return its input
        while True:
            copied = known.overwritten | self._also_overwritten
            recording = Recording(copied, inputs)
            self._run(ready, wanted, recording.keep, kept=True)
            changed = recording.changed()
            if not changed:
                return {layer: recording.kept[layer].detach() for layer in wanted}
            # A path the dry run did not see wrote over these: remember, and look again.
            self._also_overwritten |= changed

    def visit(self, batch: Batch, visitor: Visitor, layers: Layers = ALL, *, repeats: bool = True) -> None:
        """Call ``visitor(layer, output)`` as each layer returns; nothing is copied and nothing is kept.

        The streaming form of `record`: the visitor must not keep or change ``output``, which the network
        may overwrite as soon as it goes on. A network that cannot take the batch is an `AssayError` that names
        its shape; what the visitor raises comes through as it is.

        Args:
            batch: The inputs to show.
            visitor: Function called with the name and output of each layer, in order of execution.
            layers: Layers to visit; all by default.
            repeats: Whether to visit also layers that return the very tensor of a chosen layer before them (see
                `repeats`).
        """
        ready = self._prepare(batch)
        known = self._known(ready)
        wanted = self.choose(layers)
        visitor = shown_plain(visitor)
        again = {} if repeats else self.repeats(layers)
        if self.compile:
            wanted = [layer for layer in wanted if layer not in again]
            recorded = self._passes.record(ready, known, wanted, lambda: self._record(ready, wanted))
            for layer, output in recorded.items():
                visitor(layer, output)
        else:
            self._run(ready, wanted, Distinct(self.name, visitor, again) if again else visitor, kept=False)

    def __call__(self, batch: Batch) -> Any:
        """Show a batch, and return the network's whole output as the module returns it."""
        ready = self._prepare(batch)
        known = self._known(ready)
        with taking(self.name, ready), self.network.undisturbed():
            if self.compile:
                return self._passes.whole(ready, known, lambda: self.network.forward(ready, known.writes_input))
            output = self.network.forward(ready, known.writes_input, writing_over(self.module))
        # A network may have asked for gradients itself; whoever is given its output has not.
        return output.detach() if isinstance(output, Tensor) and output.requires_grad else output

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Make several batches one showing: a network that draws random numbers goes on drawing between them.

        Outside, every batch begins from the random state it was found in, which is restored after it. Where a graph of
        the network was captured before, the first batch is also shown to the network itself, to see that they agree.
        """
        with self.network.one_showing():
            yield

    def split(self, layer: str | int | float) -> Split:
        """Cut the network after ``layer``: a prefix to run once and a rest to run again and again."""
        return Split(self.network, layer, self.name, self._known, self._graphs, self.compile)

    # -- how ------------------------------------------------------------------------------------------

    @property
    def _passes(self) -> Passes:
        return Passes(self.network, self.name, self._graphs)

    def _prepare(self, batch: Batch) -> Any:
        ready = self.network.prepare(batch)
        if self._inputs is None:
            self._inputs = input_kinds(batch)
        return ready

    def _known(self, ready: Any = None) -> DryRun:
        """The dry run of the network, made from the batch's first input or the example where there is none yet."""
        if self._dry_run is None:
            if ready is not None:
                is_mapping = not isinstance(ready, Tensor)
                first = {key: value[:1] for key, value in ready.items()} if is_mapping else ready[:1]
            elif self.example is not None:
                first = self.network.prepare_example(self.example)
            else:
                raise AssayError(
                    f"the layers of {self.name!r} are found by a dry run: give Subject(example=...) an input "
                    "or its shape, or show it a batch first"
                )
            with taking(self.name, first):
                self._dry_run = dry_run(self.network, first)
        return self._dry_run

    def _run(self, ready: Any, wanted: Sequence[str], visitor: Visitor, *, kept: bool) -> None:
        """Make one pass over a batch, with hooks on the wanted layers only, whose outputs are kept, or looked at."""
        known = self._known(ready)
        runs = self.module if kept else writing_over(self.module)  # before there are hooks
        left = set(wanted)
        visitor_errors: list[BaseException] = []

        def after(layer: str, output: Any) -> None:
            if layer in left:
                left.discard(layer)
                try:
                    visitor(layer, first_tensor(output))
                except BaseException as error:
                    visitor_errors.append(error)
                    raise
                if not left:
                    raise _Stop

        with (
            taking(self.name, ready, visitor_errors),
            self.network.undisturbed(out_of_place=kept and known.out_of_place),
            layer_hooks(self.module, map(module_path, wanted), after),
            suppress(_Stop),
        ):
            output = self.network.forward(ready, known.writes_input, runs)
            if OUTPUT in left:
                after(OUTPUT, output)
        if left:
            raise AssayError(
                f"{self.name!r} did not run layer {min(left)!r} on this batch, though it did in the dry run"
            )
