"""Split: a network cut after one layer, so that what follows it can be run again without what precedes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from assay.core.arrays import batch_length, batch_rows, first_tensor, with_first_tensor
from assay.core.errors import AssayError, first_line
from assay.subject.agreement import require_same
from assay.subject.dry_run import OUTPUT, DryRun
from assay.subject.graph import CapturedCut, Graphs, batch_signature, capture
from assay.subject.hooks import layer_hooks, module_path
from assay.subject.network import Batch, Network
from assay.subject.taking import taking

log = logging.getLogger(__name__)


class Cut(NamedTuple):
    """Result of a prefix: the layer's output, and everything else that the rest of the network needs."""

    output: Tensor
    carried: Carried


class Carried(NamedTuple):
    """Values that cross a cut beside the layer's output, and the cut whose prefix made them."""

    by: CapturedCut | ReplacingCut
    values: tuple[Any, ...]


class Split:
    """A network cut in two: the prefix up to one layer, and the rest after it.

    ``rest(*prefix(batch))`` is the whole network; ``rest(changed, carried)`` is the network with the
    layer's output changed. Branches that cross the layer (a residual) are computed once, by the prefix,
    and carried. The rest never writes to what it is given.

    The network is captured once per input shape as a graph (``torch.export``, batch size left open) and
    the graph is cut at the layer. A captured cut is trusted only after it has reproduced the plain network,
    and the plain network with that layer's output changed. Where capture fails or does not reproduce them,
    the rest is a full pass with the layer's output replaced: same numbers, no time saved, one log line. A network that
    was changed is shown as it is then, whatever was changed: weights, hooks, modules, attributes. What it reads
    elsewhere (global variables, objects of other classes) is looked at in the first batch of each `Subject.showing`.
    With ``Subject(compile=True)`` the rest is compiled for any batch size, and kept if it gives the same numbers.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from assay import Subject
        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> split = Subject(net).split("1")
        >>> x = torch.ones(5, 3)
        >>> output, carried = split.prefix(x)
        >>> torch.equal(split.rest(output, carried), net(x))
        True
        >>> torch.equal(split.rest(output * 0, carried)[0], net[2].bias)
        True
    """

    def __init__(
        self,
        network: Network,
        layer: str | int | float,
        name: str,
        look: Callable[[Any], DryRun],
        graphs: Graphs,
        compile: bool = False,
    ) -> None:
        self.network = network
        self.layer = layer
        self.name = name
        self._look = look
        self._graphs = graphs
        self._compile = compile
        self.captured = True
        """Whether every cut so far runs without redoing the prefix."""

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.prefix, self.rest))

    def prefix(self, batch: Batch) -> Cut:
        """Run the network up to the layer, and whatever else the rest needs, once."""
        ready = self.network.prepare(batch)
        known = self._look(ready)
        self._graphs.keep_for(self.network)
        kind = batch_signature(ready)
        sized = (repr(self.layer), kind, batch_length(ready))  # 1 is a place in order, 1.0 a depth
        cut: CapturedCut | ReplacingCut | None = self._graphs.cuts.get(sized)
        if isinstance(cut, CapturedCut) and not self._still_same(cut, ready, known):
            self._graphs.forget()
            cut = None
        if cut is None:  # each batch size is checked once: code may branch on it
            cut = self._graphs.cuts[sized] = self._make(ready, kind, known)
        self.captured &= isinstance(cut, CapturedCut)
        with taking(self.name, ready):
            output, values = cut.prefix(ready)
        return Cut(output, Carried(cut, values))

    def rest(self, output: Tensor, carried: Carried) -> Any:
        """The output that the network would have, had the layer returned ``output``."""
        with taking(self.name, output):
            return carried.by.rest(output, carried.values)

    def _still_same(self, cut: CapturedCut, ready: Any, known: DryRun) -> bool:
        """Whether a captured cut still gives what the network does; each graph is looked at once in a showing."""
        if cut.owner not in self._graphs.trusted:
            devices = [self.network.device] if self.network.device.type == "cuda" else []
            try:
                with torch.random.fork_rng(devices=devices), self.network.undisturbed():
                    whole = self.network.forward(ready, known.writes_input)
                require_same(cut.rest(*cut.prefix(ready)), whole, recomputed=cut.tried)
            except Exception:  # one that fails by now is another too
                return False
            self._graphs.trusted.add(cut.owner)
        return True

    def _make(self, ready: Any, kind: Any, known: DryRun) -> CapturedCut | ReplacingCut:
        chosen = known.choose(self.layer)
        if len(chosen) != 1:
            raise AssayError(f"split cuts at one layer, but {self.layer!r} chooses {len(chosen)}")
        (layer,) = chosen
        plain = ReplacingCut(self.network, layer, known.writes_input)
        functions = layer not in known.layers and layer in known.calls
        if layer not in known.layers and not functions:  # the output, which is also that of a module
            return plain
        marked = known.calls if functions else known.layers
        # With the batch size left open, else (where the network's own code depends on it) at this very size.
        size = batch_length(ready)
        graphs = self._graphs.graphs
        failure: Exception | None = None
        for key, captured_at in (((kind, functions), 2), ((kind, functions, size), size)):
            try:
                if isinstance(graph := graphs.get(key), Exception):
                    raise graph
                if graph is None:
                    graph = graphs[key] = capture(self.network, known, batch_rows(ready, captured_at), functions)
                    self._graphs.trusted.add(graph.owner)
                at = ("captured", key, layer)  # the same for every batch size
                cut = self._graphs.cuts.get(at) or CapturedCut(graph, marked.index(layer), known.writes_input)
                if not self._still_same(cut, ready, known):
                    self._graphs.forget()
                    return self._make(ready, kind, known)
                _verify(cut, plain, ready)
                self._graphs.cuts[at] = cut
            except Exception as error:  # capture may fail in any way; the plain cut always works
                failure = error
                graphs.setdefault(key, error)
            else:
                return self._compiled(cut, ready)
        if failure is not None and not self._graphs.said_uncaptured:
            self._graphs.said_uncaptured = True
            log.warning(
                "%s could not be captured as a graph (%s: %s): it is cut by full passes with the layer's output "
                "replaced, same numbers, no time saved",
                self.name, type(failure).__name__, first_line(failure)[:200],
            )  # fmt: skip
        return plain

    def _compiled(self, cut: CapturedCut, ready: Any) -> CapturedCut:
        """The cut, compiled if that was asked for and works."""
        if self._compile and not cut.tried:
            try:
                cut.compile(ready)
            except Exception as error:  # inductor may fail in any way; what was captured works
                self._graphs.say_uncompiled(self.name, error)
        return cut


class ReplacingCut:
    """The fall-back cut, whose rest is the whole network with the layer's output replaced by a hook."""

    def __init__(self, network: Network, layer: str, writes_input: bool) -> None:
        self.network = network
        self.layer = layer
        self.writes_input = writes_input

    def prefix(self, ready: Any) -> tuple[Tensor, tuple[Any, ...]]:
        """Run the network for the layer's output; the batch itself is carried, from which the rest begins anew."""
        outputs: list[Tensor] = []

        def keep(layer: str, returned: Any) -> None:
            if layer == self.layer:
                outputs.append(first_tensor(returned).clone())

        with self.network.undisturbed(), layer_hooks(self.network.module, [module_path(self.layer)], keep):
            returned = self.network.forward(ready, self.writes_input)
        if self.layer == OUTPUT and not outputs:
            outputs.append(first_tensor(returned).clone())
        if not outputs:
            raise AssayError(f"the network did not run layer {self.layer!r} on this batch, though it did before")
        return outputs[0], (ready,)

    def rest(self, output: Tensor, carried: tuple[Any, ...]) -> Any:
        """Run the whole network on the same batch, with the layer's output replaced."""

        def replace(layer: str, returned: Any) -> Any:
            return with_first_tensor(returned, output.clone()) if layer == self.layer else None

        with self.network.undisturbed(), layer_hooks(self.network.module, [module_path(self.layer)], replace):
            returned = self.network.forward(carried[0], self.writes_input)
        return with_first_tensor(returned, output) if self.layer == OUTPUT else returned


def _verify(cut: CapturedCut, plain: ReplacingCut, ready: Any) -> None:
    """Check the captured cut against the network itself: as it is, and with the layer's output changed."""
    output, carried = cut.prefix(ready)
    expected, whole = plain.prefix(ready)
    ours, theirs = [output], [expected]
    for changed in (expected, expected.flip(0) * 0.5 if expected.is_floating_point() else expected.flip(0)):
        ours.append(cut.rest(changed, carried))
        theirs.append(plain.rest(changed, whole))
    require_same(ours, theirs, recomputed=cut.tried)
