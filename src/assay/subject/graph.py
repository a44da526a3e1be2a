"""Graph: a network captured by ``torch.export`` with a mark on every layer's output, and cut at one of them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

from assay.core.arrays import cloned, first_tensor, with_first_tensor
from assay.core.errors import AssayError, first_line
from assay.subject.compiled import compiled
from assay.subject.dry_run import OUTPUT, DryRun
from assay.subject.hooks import ALL_FUNCTIONS, all_paths, layer_hooks
from assay.subject.network import Network
from assay.subject.silence import silence

log = logging.getLogger(__name__)
_MARK = torch.ops.aten.alias.default
_PASSES_ON = (torch.ops.aten.dropout.default, torch.ops.aten.feature_dropout.default)
"""Operators that return their very input, where they are not training, though a graph does not say so."""


class Graphs:
    """The captured graphs of one network and their cuts, kept until it is another, as far as its `Stamp` tells.

    A network may also do what it does because of something outside it. So in each showing a graph is checked once more
    against the network before it is ``trusted``, and all are forgotten if it is found to do something else.
    """

    def __init__(self) -> None:
        self.graphs: dict[Any, Graph | Exception] = {}
        self.cuts: dict[Any, Any] = {}
        self.trusted: set[Any] = set()
        self._stamp: Any = None
        self._showings = 0
        self.said_uncaptured = False
        self.said_uncompiled = False

    def keep_for(self, network: Network) -> None:
        """Forget everything if the network is not the one that was captured, and trust nothing in a new showing."""
        stamp = network.stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            self.forget()
        if network.showings != self._showings:
            self._showings = network.showings
            self.trusted.clear()

    def forget(self) -> None:
        """Forget everything that was captured."""
        self.graphs.clear()
        self.cuts.clear()
        self.trusted.clear()

    def say_uncompiled(self, name: str, error: Exception) -> None:
        """Say once that a network that was to be compiled is not, and why."""
        if not self.said_uncompiled:
            self.said_uncompiled = True
            log.warning(
                "%s is not compiled (%s: %s): it runs as it is, same numbers, no time saved",
                name, type(error).__name__, first_line(error)[:200],
            )  # fmt: skip


class Graph(NamedTuple):
    """A captured network: its graph, one marker node per layer, and how to rebuild its output."""

    owner: nn.Module
    inputs: list[fx.Node]
    marks: list[fx.Node]
    nodes: list[fx.Node]
    outputs: list[Any]
    out_spec: Any


class CapturedCut:
    """A cut of two graphs: the prefix returns the layer's output and what crosses the cut, and the rest takes them."""

    def __init__(self, graph: Graph, index: int, writes_input: bool) -> None:
        self.owner = graph.owner
        self._writes_input = writes_input
        mark = graph.marks[index]
        after = {mark}  # the mark and everything computed from it
        for node in graph.nodes:
            if any(i in after for i in node.all_input_nodes):
                after.add(node)
        later = [n for n in graph.nodes if n in after and n is not mark]
        wanted: dict[fx.Node, None] = {}  # crosses the cut, in order of first use
        for node in [*later, *[o for o in graph.outputs if isinstance(o, fx.Node)]]:
            for i in [node, *node.all_input_nodes] if node not in after else node.all_input_nodes:
                if i not in after and i.op != "get_attr":
                    wanted[i] = None
        before = _needed([mark, *wanted], graph.nodes)
        self._prefix = _module(graph, graph.inputs, before, [mark, *wanted])
        self._rest: Any = _module(graph, [mark, *wanted], _needed(graph.outputs, later), graph.outputs)
        self.tried = False
        """Whether it was tried to compile the rest."""
        self._out_spec = graph.out_spec
        self._written: tuple[int, ...] | None = None
        self._random = [mark.meta["val"].device] if any(map(draws, graph.nodes)) else None

    def prefix(self, ready: Any) -> tuple[Tensor, tuple[Any, ...]]:
        """Compute the layer's output, and everything else that the rest needs."""
        with self._undisturbed():
            return self._run_prefix(ready)

    def rest(self, output: Tensor, carried: tuple[Any, ...]) -> Any:
        """The output that the network would have, had the layer returned ``output``."""
        with self._undisturbed():
            return self._run_rest(output, carried)

    def compile(self, ready: Any) -> None:
        """Compile the rest, which runs again and again; an error where it then does something else.

        Args:
            ready: The batch to try it with.
        """
        self.tried = True
        output, carried = self.prefix(ready)
        self._rest = compiled(self._rest, [output, *carried])

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Run without gradients, and leave the random state as it was; the graph itself was captured in eval mode."""
        with torch.no_grad():
            if self._random is None:
                yield
            else:
                with torch.random.fork_rng(devices=[d for d in self._random if d.type == "cuda"]):
                    yield

    def _run_prefix(self, ready: Any) -> tuple[Tensor, tuple[Any, ...]]:
        ready = cloned(ready) if self._writes_input else ready
        values = self._prefix(*(ready.values() if isinstance(ready, Mapping) else (ready,)))
        return values[0], tuple(values[1:])

    def _run_rest(self, output: Tensor, carried: tuple[Any, ...]) -> Any:
        first = self._written is None
        values = self._copied([output, *carried])
        versions = [v._version if isinstance(v, Tensor) else 0 for v in values]
        flat = self._rest(*values)
        if first:  # learn which inputs the rest overwrites, and from now on copy only those
            now = [v._version if isinstance(v, Tensor) else 0 for v in values]
            self._written = tuple(i for i, (a, b) in enumerate(zip(versions, now, strict=True)) if a != b)
        return pytree.tree_unflatten(flat, self._out_spec)

    def _copied(self, values: list[Any]) -> list[Any]:
        """What the rest is given, with copies of what it writes to, or of all as long as that is not known."""
        written = range(len(values)) if self._written is None else self._written
        return [v.clone() if i in written and isinstance(v, Tensor) else v for i, v in enumerate(values)]


def capture(network: Network, known: DryRun, ready: Any, functions: bool = False) -> Graph:
    """Export the network with a marker on every layer's output, in order of execution.

    Args:
        network: The network.
        known: What is known of its layers.
        ready: The batch to export it with.
        functions: Whether to mark activations that are functions too: all ``known.calls``.
    """
    marked: list[str] = []
    layers = [layer for layer in (known.calls if functions else known.layers) if layer != OUTPUT]

    def mark(layer: str, returned: Any) -> Any:
        if layer not in layers:
            return None
        marked.append(layer)
        return with_first_tensor(returned, _MARK(first_tensor(returned)))

    open_batch = {0: torch.export.Dim.AUTO}
    args, kwargs = network.arguments(ready)
    shapes: Any = pytree.tree_map(lambda tensor: open_batch, kwargs or args)
    module = network.module
    places = {*all_paths(module), ALL_FUNCTIONS} if functions else all_paths(module)
    first = next(iter(inspect.signature(module.forward).parameters.values()), None)
    if args and first is not None and first.kind is first.VAR_POSITIONAL:  # all of them are one argument
        shapes = (shapes,)
    with network.undisturbed(), layer_hooks(module, places, mark), silence():
        exported = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=False)
    owner = exported.module()
    if written_aside(owner.graph):
        raise AssayError("it writes to a tensor in place under one name and reads it under another")
    marks, nodes, inputs, outputs = [], [], [], []
    for node in owner.graph.nodes:
        if node.op == "placeholder":
            inputs.append(node)
        elif node.op == "output":
            outputs = list(node.args[0])
        elif node.op != "call_module" or node.target != "_guards_fn":  # guards on shapes: we verify instead
            nodes.append(node)
            if node.target is _MARK:
                marks.append(node)
    if marked != layers or len(marks) != len(layers):
        raise AssayError("the captured graph does not run the layers the network ran")
    if OUTPUT in known.layers:
        marks.append(next(n for n in outputs if isinstance(n, fx.Node)))
    return Graph(owner, inputs, marks, nodes, outputs, exported.call_spec.out_spec)


def written_aside(graph: fx.Graph) -> bool:
    """Whether anything is written in place and afterwards read under another name, such as a tensor through its view.

    In a graph, what is written is the result of the node that writes; no arrow leads from there to other names of the
    same memory. A part of such a graph would do without the writing, and no comparison shows it where, on the inputs
    compared, the writing changes nothing, as ``h[:, :3].clamp_(max=6)`` does while no response is above 6.
    """
    order = {node: i for i, node in enumerate(graph.nodes)}
    memory = _memory(order)
    names: dict[Any, list[fx.Node]] = {}
    for node, where in memory.items():
        names.setdefault(where, []).append(node)
    for writing, place in order.items():
        for written in _written_by(writing):
            same = names[memory[written]]
            if any(order[name] < place < order[user] for name in same for user in name.users):
                return True
    return False


def _memory(nodes: Iterable[fx.Node]) -> dict[fx.Node, Any]:
    """What tells the memory of each node's tensor from that of others; of a node without a tensor, itself."""
    passed_on: dict[Any, Any] = {}
    memory: dict[fx.Node, Any] = {}
    for node in nodes:
        value = node.meta.get("val")
        where = value.untyped_storage()._cdata if isinstance(value, Tensor) else node
        if node.target in _PASSES_ON and node.args[2] is False and isinstance(node.args[0], fx.Node):
            passed_on[where] = memory[node.args[0]]
        memory[node] = passed_on.get(where, where)
    return memory


def _written_by(node: fx.Node) -> list[fx.Node]:
    """The nodes whose memory a node writes to."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return []
    given = {argument.name: value for argument, value in zip(schema.arguments, node.args, strict=False)} | node.kwargs
    written = [given.get(a.name) for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    return [one for some in written for one in pytree.tree_leaves(some) if isinstance(one, fx.Node)]


def draws(node: fx.Node) -> bool:
    """Whether a node draws random numbers (dropout in eval mode does not)."""
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags and not (
        node.target is torch.ops.aten.dropout.default and node.args[2] is False
    )


def _needed(targets: list[Any], nodes: list[fx.Node]) -> list[fx.Node]:
    """The nodes that must run, in order, to compute ``targets``."""
    wanted = {t for t in targets if isinstance(t, fx.Node)}
    for node in reversed(nodes):
        if node in wanted:
            wanted.update(node.all_input_nodes)
    return [node for node in nodes if node in wanted]


def recording(graph: Graph, outputs: list[Any]) -> fx.GraphModule:
    """A module that computes some nodes of a graph as they are when computed, whatever is written in place later."""
    return _module(graph, graph.inputs, _needed(outputs, graph.nodes), outputs, copy_marked=True)


def batch_signature(ready: Any) -> Any:
    """The properties of a batch that a captured graph depends on: shapes without the batch axis, types, device."""
    tensors = ready.items() if isinstance(ready, Mapping) else [("", ready)]
    return tuple((key, tuple(t.shape[1:]), t.dtype, t.device) for key, t in tensors)


def _module(
    graph: Graph, inputs: list[fx.Node], body: list[fx.Node], outputs: list[Any], copy_marked: bool = False
) -> fx.GraphModule:
    """A module that computes ``outputs`` from ``inputs`` by the nodes of ``body``.

    Markers are dissolved. With ``copy_marked``, an output that is a mark is what it was there.
    """
    new = fx.Graph()
    values: dict[fx.Node, fx.Node] = {n: new.placeholder(f"x{i}") for i, n in enumerate(inputs)}
    copies: dict[fx.Node, fx.Node] = {}

    def value(node: fx.Node) -> fx.Node:
        if node not in values:
            if node.op == "get_attr":  # a weight: each half reads its own
                values[node] = new.get_attr(str(node.target))
            elif node.target is _MARK:
                values[node] = value(node.args[0])  # type: ignore[arg-type]
                if copy_marked and node in outputs:
                    copies[node] = new.call_function(torch.ops.aten.clone.default, (values[node],))
            else:
                values[node] = new.node_copy(node, value)
        return values[node]

    for node in body:
        if node not in values:
            value(node)
    new.output(tuple(copies.get(o) or value(o) if isinstance(o, fx.Node) else o for o in outputs))
    return fx.GraphModule(graph.owner, new)
