"""Split: a network cut after one layer, so that what follows can be run again without what precedes."""

from __future__ import annotations

import io
import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

from assay.core.errors import AssayError
from assay.subject.subject import OUTPUT, Batch, _call_name, _cloned, _first_tensor, _hooks, _path_and_call

if TYPE_CHECKING:
    from assay.subject.subject import Subject

log = logging.getLogger(__name__)

_MARK = torch.ops.aten.alias.default


class Cut(NamedTuple):
    """What the prefix computed: the layer's output, and everything else the rest will need."""

    output: Tensor
    carried: Carried


class Carried(NamedTuple):
    """What crosses the cut beside the layer's output; made by a prefix, read by the rest."""

    by: _CapturedCut | _ReplacingCut
    values: tuple[Any, ...]


class Split:
    """The network before and after one layer.

    ``rest(*prefix(batch))`` is the whole network; ``rest(changed, carried)`` is the network with the
    layer's output changed. Branches that cross the layer (a residual) are computed once, by the prefix,
    and carried. The rest never writes to what it is given.

    The network is captured once per input shape as a graph (``torch.export``, batch size left open) and
    the graph is cut at the layer. A captured cut is trusted only after it has reproduced the plain network,
    and the plain network with that layer's output changed. Where capture fails or does not reproduce them,
    the rest is a full pass with the layer's output replaced: same numbers, no time saved, one log line.

    Example:
        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> from assay import Subject
        >>> split = Subject(net).split("1")
        >>> x = torch.ones(5, 3)
        >>> output, carried = split.prefix(x)
        >>> torch.equal(split.rest(output, carried), net(x))
        True
        >>> torch.equal(split.rest(output * 0, carried)[0], net[2].bias)
        True
    """

    def __init__(self, subject: Subject, layer: str | int | float) -> None:
        self.subject = subject
        self.layer = layer
        self._cuts: dict[Any, _CapturedCut | _ReplacingCut] = {}

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.prefix, self.rest))

    def prefix(self, batch: Batch) -> Cut:
        """Run the network up to the layer, and whatever else the rest needs, once."""
        ready = self.subject._prepare(batch)
        self.subject._ensure_order(ready)
        weights = _weight_versions(self.subject)
        if self.subject._graphs.setdefault("weights", weights) != weights:  # trained on since: capture anew
            self.subject._graphs = {"weights": weights}
        key = (weights, _signature(ready))
        sized = (key, _length(ready))
        cut = self._cuts.get(sized)
        if cut is None:  # each batch size is checked once: code may branch on it
            known, name = self.subject._graphs, (repr(self.layer), sized)  # 1 is a place in order, 1.0 a depth
            cut = self._cuts[sized] = known[name] = known.get(name) or self._make(ready, key)
        output, values = cut.prefix(ready)
        return Cut(output, Carried(cut, values))

    def rest(self, output: Tensor, carried: Carried) -> Any:
        """The network's output, had the layer returned ``output``."""
        return carried.by.rest(output, carried.values)

    @property
    def captured(self) -> bool:
        """Whether every cut so far runs without redoing the prefix."""
        return all(isinstance(cut, _CapturedCut) for cut in self._cuts.values())

    def _make(self, ready: Any, key: Any) -> _CapturedCut | _ReplacingCut:
        subject = self.subject
        chosen = subject.choose(self.layer)
        if len(chosen) != 1:
            raise AssayError(f"split cuts at one layer, but {self.layer!r} chooses {len(chosen)}")
        (layer,) = chosen
        plain = _ReplacingCut(subject, layer)
        if layer == OUTPUT and OUTPUT not in subject.layers:
            return plain
        # With the batch size left open, else (where the network's own code depends on it) at this very size.
        size = _length(ready)
        failure: Exception | None = None
        for graph_key, captured_at in ((key, 2), ((key, size), size)):
            try:
                if isinstance(known := subject._graphs.get(graph_key), Exception):
                    raise known
                if known is None:
                    subject._graphs[graph_key] = _capture(subject, _rows(ready, captured_at))
                cut = _CapturedCut(subject._graphs[graph_key], subject.layers.index(layer), subject._writes_input)
                _verify(cut, plain, ready)
            except Exception as e:  # capture may fail in any way; the plain cut always works
                failure = e
                subject._graphs.setdefault(graph_key, e)
            else:
                return cut
        if not subject._told_uncaptured:
            subject._told_uncaptured = True
            log.warning(
                "%s could not be captured as a graph (%s: %s): it is cut by full passes with the layer's output "
                "replaced, same numbers, no time saved",
                subject.name, type(failure).__name__, str(failure).strip().split("\n")[0][:200],
            )  # fmt: skip
        return plain


class _ReplacingCut:
    """The fall-back: the rest is the whole network with the layer's output replaced by a hook."""

    def __init__(self, subject: Subject, layer: str) -> None:
        self.subject, self.layer = subject, layer

    def prefix(self, ready: Any) -> tuple[Tensor, tuple[Any, ...]]:
        found: dict[str, Tensor] = {}

        def keep(layer: str, output: Tensor) -> None:
            found[layer] = output.clone()

        self.subject._run(ready, [self.layer], keep)
        return found[self.layer], (ready,)

    def rest(self, output: Tensor, carried: tuple[Any, ...]) -> Any:
        path, call = _path_and_call(self.layer)
        calls = 0

        def replace(path: str) -> Callable[[nn.Module, Any, Any], Any]:
            def hook(module: nn.Module, args: Any, returned: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == call:
                    return _with_first_tensor(returned, output.clone())
                return None

            return hook

        with self.subject._undisturbed(), _hooks(self.subject.module, {path}, replace):
            returned = self.subject._forward(carried[0])
        return _with_first_tensor(returned, output) if self.layer == OUTPUT else returned


class _Graph(NamedTuple):
    """A captured network: its graph, one marker node per layer, and how to rebuild its output."""

    owner: nn.Module
    inputs: list[fx.Node]
    marks: list[fx.Node]
    nodes: list[fx.Node]
    outputs: list[Any]
    out_spec: Any


class _CapturedCut:
    """Two graphs: the prefix returns the layer's output and what crosses it, the rest takes them."""

    def __init__(self, graph: _Graph, index: int, writes_input: bool) -> None:
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
        self._rest = _module(graph, [mark, *wanted], _needed(graph.outputs, later), graph.outputs)
        self._out_spec = graph.out_spec
        self._written: tuple[int, ...] | None = None
        self._random = [mark.meta["val"].device] if any(map(_draws, graph.nodes)) else None

    def prefix(self, ready: Any) -> tuple[Tensor, tuple[Any, ...]]:
        with self._undisturbed():
            return self._run_prefix(ready)

    def rest(self, output: Tensor, carried: tuple[Any, ...]) -> Any:
        with self._undisturbed():
            return self._run_rest(output, carried)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """No gradients; the random state as found. (The graph was captured in eval mode, and has no flags.)"""
        with torch.no_grad():
            if self._random is None:
                yield
            else:
                with torch.random.fork_rng(devices=[d for d in self._random if d.type == "cuda"]):
                    yield

    def _run_prefix(self, ready: Any) -> tuple[Tensor, tuple[Any, ...]]:
        ready = _cloned(ready) if self._writes_input else ready
        values = self._prefix(*(ready.values() if isinstance(ready, Mapping) else (ready,)))
        return values[0], tuple(values[1:])

    def _run_rest(self, output: Tensor, carried: tuple[Any, ...]) -> Any:
        values: list[Any] = [output, *carried]
        first = self._written is None
        for i in range(len(values)) if first else self._written or ():
            if isinstance(values[i], Tensor):
                values[i] = values[i].clone()
        versions = [v._version if isinstance(v, Tensor) else 0 for v in values]
        flat = self._rest(*values)
        if first:  # learn which inputs the rest overwrites, and from now on copy only those
            now = [v._version if isinstance(v, Tensor) else 0 for v in values]
            self._written = tuple(i for i, (a, b) in enumerate(zip(versions, now, strict=True)) if a != b)
        return pytree.tree_unflatten(flat, self._out_spec)


def _capture(subject: Subject, ready: Any) -> _Graph:
    """Export the network with a marker on every layer's output, in order of execution."""
    marked: list[str] = []
    known = set(subject.layers)
    calls: dict[str, int] = {}

    def mark(path: str) -> Callable[[nn.Module, Any, Any], Any]:
        def hook(module: nn.Module, args: Any, returned: Any) -> Any:
            calls[path] = calls.get(path, 0) + 1
            layer = _call_name(path, calls[path])
            if layer not in known:
                return None
            marked.append(layer)
            return _with_first_tensor(returned, _MARK(_first_tensor(returned)))

        return hook

    open_batch = {0: torch.export.Dim.AUTO}
    as_mapping = isinstance(ready, Mapping)
    args, kwargs = ((), dict(ready)) if as_mapping else ((ready,), {})
    shapes: Any = {key: open_batch for key in ready} if as_mapping else None
    if shapes is None:
        shapes = (open_batch,)
    paths = {path for path, _ in subject.module.named_modules() if path}
    with subject._undisturbed(), _hooks(subject.module, paths, mark), _silence():
        exported = torch.export.export(subject.module, args, kwargs, dynamic_shapes=shapes, strict=False)
    owner = exported.module()
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
    layers = [layer for layer in subject.layers if layer != OUTPUT]
    if marked != layers or len(marks) != len(layers):
        raise AssayError("the captured graph does not run the layers the network ran")
    if OUTPUT in subject.layers:
        marks.append(next(n for n in outputs if isinstance(n, fx.Node)))
    return _Graph(owner, inputs, marks, nodes, outputs, exported.call_spec.out_spec)


def _draws(node: fx.Node) -> bool:
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


def _module(graph: _Graph, inputs: list[fx.Node], body: list[fx.Node], outputs: list[Any]) -> fx.GraphModule:
    """A module that computes ``outputs`` from ``inputs`` by the nodes of ``body``, markers dissolved."""
    new = fx.Graph()
    values: dict[fx.Node, fx.Node] = {n: new.placeholder(f"x{i}") for i, n in enumerate(inputs)}

    def value(node: fx.Node) -> fx.Node:
        if node not in values:
            if node.op == "get_attr":  # a weight: each half reads its own
                values[node] = new.get_attr(str(node.target))
            elif node.target is _MARK:
                values[node] = value(node.args[0])  # type: ignore[arg-type]
            else:
                values[node] = new.node_copy(node, value)
        return values[node]

    for node in body:
        if node not in values:
            value(node)
    new.output(tuple(value(o) if isinstance(o, fx.Node) else o for o in outputs))
    return fx.GraphModule(graph.owner, new)


def _verify(cut: _CapturedCut, plain: _ReplacingCut, ready: Any) -> None:
    """Check the captured cut against the network itself: as it is, and with the layer's output changed."""
    output, carried = cut.prefix(ready)
    expected, whole = plain.prefix(ready)
    tolerance = 1e-4 if output.dtype in (torch.float32, torch.float64) else 5e-2  # rounding of the type
    pairs = [(output, expected)]
    for changed in (expected, expected.flip(0) * 0.5 if expected.is_floating_point() else expected.flip(0)):
        ours, theirs = cut.rest(changed, carried), plain.rest(changed, whole)
        pairs += zip(pytree.tree_leaves(ours), pytree.tree_leaves(theirs), strict=True)
    for a, b in pairs:
        if isinstance(b, Tensor):
            scale = b.abs().amax().clamp_min(1.0).item() if b.numel() and b.is_floating_point() else 1.0
            torch.testing.assert_close(a, b, rtol=0, atol=tolerance * scale, equal_nan=True)


def _rows(ready: Any, n: int) -> Any:
    """The first ``n`` rows of a batch, repeated where it has fewer."""
    if isinstance(ready, Mapping):
        return {key: _rows(value, n) for key, value in ready.items()}
    return ready[torch.arange(n, device=ready.device) % len(ready)]


def _length(ready: Any) -> int:
    return len(next(iter(ready.values())) if isinstance(ready, Mapping) else ready)


@contextmanager
def _silence() -> Iterator[None]:
    """Torch reports a failed capture at length, in the log and on stderr; we say it in one line."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _signature(ready: Any) -> Any:
    """What a captured graph depends on besides the network: shapes past the batch, types, device."""
    tensors = ready.items() if isinstance(ready, Mapping) else [("", ready)]
    return tuple((key, tuple(t.shape[1:]), t.dtype, t.device) for key, t in tensors)


def _weight_versions(subject: Subject) -> int:
    """Changes whenever a parameter or buffer is written to or replaced."""
    return hash(tuple((id(t), t._version) for t in [*subject.module.parameters(), *subject.module.buffers()]))


def _with_first_tensor(structure: Any, tensor: Tensor) -> Any:
    """``structure`` with its first tensor replaced."""
    if isinstance(structure, Tensor):
        return tensor
    if isinstance(structure, Mapping):
        for key, value in structure.items():
            if _first_tensor(value, required=False) is not None:
                copied = type(structure)(structure)  # type: ignore[call-arg]
                operator.setitem(copied, key, _with_first_tensor(value, tensor))  # type: ignore[call-overload]
                return copied
    for i, value in enumerate(structure):
        if _first_tensor(value, required=False) is not None:
            items = [*structure[:i], _with_first_tensor(value, tensor), *structure[i + 1 :]]
            return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    raise AssayError(f"a layer returned {type(structure).__name__}, which holds no tensor")
