"""Passes: whole passes of a network as a compiled graph, which returns what all the chosen layers return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from assay.core.arrays import batch_length, batch_rows, cloned, tensors_in
from assay.subject.agreement import require_same
from assay.subject.compiled import compiled
from assay.subject.dry_run import DryRun
from assay.subject.graph import Graph, Graphs, batch_signature, capture, draws, recording
from assay.subject.network import Network


class Passes:
    """Compiled passes of one network, each made at its first use, and checked against the network at each batch size.

    All outputs of a pass are in memory at once. Where a network cannot be captured or compiled, or then does something
    else, there is no compiled pass, and one line of the log says so.
    """

    def __init__(self, network: Network, name: str, graphs: Graphs) -> None:
        self.network = network
        self.name = name
        self.graphs = graphs

    def record(
        self, ready: Any, known: DryRun, layers: Sequence[str], plain: Callable[[], dict[str, Tensor]]
    ) -> dict[str, Tensor]:
        """What the chosen layers return; ``plain`` gives it by a plain pass."""
        functions = any(layer not in known.layers for layer in layers)
        marked = known.calls if functions else known.layers

        def outputs(graph: Graph) -> list[Any]:
            return [graph.marks[marked.index(layer)] for layer in layers]

        run = self._run(ready, known, functions, tuple(layers), outputs, lambda: list(plain().values()))
        return plain() if run is None else dict(zip(layers, run(ready), strict=True))

    def whole(self, ready: Any, known: DryRun, plain: Callable[[], Any]) -> Any:
        """The network's own output; ``plain`` gives it by a plain pass."""
        run = self._run(ready, known, False, None, lambda graph: graph.outputs, lambda: pytree.tree_leaves(plain()))
        if run is None:
            return plain()
        return pytree.tree_unflatten(list(run(ready)), self._graph(ready, known, False).out_spec)

    def _run(
        self,
        ready: Any,
        known: DryRun,
        functions: bool,
        of: tuple[str, ...] | None,
        outputs: Callable[[Graph], list[Any]],
        plain: Callable[[], list[Any]],
    ) -> Callable[[Any], Any] | None:
        """The compiled pass of some outputs; None where there is none that does what the network does."""
        self.graphs.keep_for(self.network)
        key = ("pass", batch_signature(ready), of)
        sized = (*key, batch_length(ready))  # code may branch on the size of its batch
        before = self.graphs.cuts.get(sized, self.graphs.cuts.get(key))
        if key not in self.graphs.trusted and not _still_same(before, ready, plain):
            self.graphs.forget()
        if sized not in self.graphs.cuts:
            try:
                if key not in self.graphs.cuts:
                    self.graphs.cuts[key] = self._made(ready, known, functions, outputs)
                run = self.graphs.cuts[key]
                require_same(run(ready), plain())
                self.graphs.cuts[sized] = run
            except Exception as error:  # capture and inductor may fail in any way; the plain pass always works
                self.graphs.cuts[sized] = None
                self.graphs.say_uncompiled(self.name, error)
        self.graphs.trusted.add(key)
        checked: Callable[[Any], Any] | None = self.graphs.cuts[sized]
        return checked

    def _made(
        self, ready: Any, known: DryRun, functions: bool, outputs: Callable[[Graph], list[Any]]
    ) -> Callable[[Any], Any]:
        graph = self._graph(ready, known, functions)
        if any(map(draws, graph.nodes)):
            raise ValueError("it draws random numbers")
        function = compiled(recording(graph, outputs(graph)), list(tensors_in(cloned(ready))))

        def run(ready: Any) -> Any:
            with torch.no_grad():
                return function(*tensors_in(cloned(ready) if known.writes_input else ready))

        return run

    def _graph(self, ready: Any, known: DryRun, functions: bool) -> Graph:
        key = (batch_signature(ready), functions)
        graph = self.graphs.graphs.get(key)
        if graph is None:
            graph = self.graphs.graphs[key] = capture(self.network, known, batch_rows(ready, 2), functions)
        if isinstance(graph, Exception):
            raise graph
        return graph


def _still_same(run: Callable[[Any], Any] | None, ready: Any, plain: Callable[[], list[Any]]) -> bool:
    """Whether a compiled pass, if there is one, still gives what a plain pass does."""
    try:
        if run is not None:
            require_same(run(ready), plain())
    except Exception:  # one that fails by now is another too
        return False
    return True
