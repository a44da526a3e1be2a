"""ONNX graphs that onnxruntime runs, with the outputs of their nodes as layers."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, first_line, optional
from assay.networks.imported.onnx_graph import OnnxGraph, attributes_of

# Sessions hold memory of onnxruntime's own, which is neither copied nor pickled: each process makes its own.
_SESSIONS: WeakKeyDictionary[nn.Module, dict[tuple[str, ...], Any]] = WeakKeyDictionary()


class OnnxRuntimeNode(nn.Module):
    """One node of a graph: it passes on what onnxruntime computed for it, so that it can be recorded and replaced.

    Its weights, where it has any, are for looking at: onnxruntime uses those of the file. What recurrent layers compute
    is shown with the inputs of the batch along the first axis.
    """

    def __init__(self, operator: str, outputs: list[str], tensors: dict[str, Tensor], settings: dict[str, Any]) -> None:
        super().__init__()
        self.operator = operator
        self.outputs = outputs
        self.groups = int(settings.get("group", 1))
        self.time_first = operator in ("LSTM", "GRU", "RNN") and not settings.get("layout", 0)
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)
        if operator == "Conv" and "weight" in tensors:
            self.kernel_size = tuple(tensors["weight"].shape[2:])

    def extra_repr(self) -> str:
        """Return the operator, which torch prints."""
        return self.operator

    def forward(self, output: Any) -> Any:
        """Return what the node computed."""
        return output

    def shown(self, output: Tensor) -> Tensor:
        """Return an output of the graph as the layer shows it: T×D×N×H and D×N×H with the axis N first."""
        return output.movedim(-2, 0) if self.time_first else output

    def as_computed(self, output: Tensor) -> Tensor:
        """Return what the layer shows, or what replaces it, as the graph takes it."""
        return output.movedim(0, -2) if self.time_first else output


class OnnxRuntimeNetwork(nn.Module):
    """An ONNX graph run by onnxruntime, on the CPU, in the precision of the file, without gradients.

    Its layers are the nodes that compute floating-point numbers of its inputs. Where the output of a layer is replaced,
    as `Subject.split` does, the part of the graph after it is extracted and run on the replacement. It returns the
    first output of the graph.

    Args:
        graph: The graph, read from a file.
        why: Why torch does not run it, for errors.
    """

    def __init__(self, graph: OnnxGraph, why: str) -> None:
        super().__init__()
        optional("onnxruntime", "onnx", f"{graph.where}, which torch cannot run since {why},")
        self.why = why
        self.input_names = list(graph.inputs)
        self.output_name = graph.outputs[0]
        self._types = {name: kind.str for name, (kind, _) in graph.inputs.items()}
        self._batch = next((shape[0] for _, shape in graph.inputs.values() if shape), None)
        self._example = graph.example
        model, kinds = _with_all_outputs(graph)
        self._model: bytes = model
        tensors = graph.folded()
        for name, node in graph.nodes():
            outputs = [output for output in node.output if output in kinds]
            if outputs:
                named = _weights(graph, node, tensors)
                self.add_module(name, OnnxRuntimeNode(node.op_type, outputs, named, attributes_of(node)))
        if not self._modules:
            raise AssayError(f"{graph.where} computes no floating-point numbers: it is no network")
        try:
            self._session(())
        except AssayError as error:  # here, and not when it is first shown something
            raise AssayError(f"{graph.where}: {error}") from error

    @property
    def example(self) -> Any:
        """An input of the shape that the file states, or a mapping of several; None where it leaves an axis open."""
        if self._example is None:
            return None
        named = {name: torch.from_numpy(array) for name, array in self._example.items()}
        return named if len(named) > 1 else next(iter(named.values()))

    def forward(self, *inputs: Tensor, **by_name: Tensor) -> Any:
        """Return the first output of the graph, for its inputs in order or by name."""
        if torch.compiler.is_compiling():
            raise AssayError("onnxruntime runs this network, and torch cannot capture it")
        given = self._given(inputs, by_name)
        device = next(iter(given.values())).device
        feed = {name: _array(tensor, self._types[name]) for name, tensor in given.items()}
        replaced: dict[str, Any] = {}
        values = self._run(feed, replaced, device)
        for node in self.children():
            if not isinstance(node, OnnxRuntimeNode) or not node._forward_hooks:
                continue
            before = tuple(node.shown(values[output]) for output in node.outputs)
            returned = node(before if len(before) > 1 else before[0])
            after = returned if isinstance(returned, tuple) else (returned,)
            pairs = zip(node.outputs, after, before, strict=True)
            changed = {name: node.as_computed(a) for name, a, b in pairs if a is not b}
            if changed:
                replaced |= {name: _array(tensor, None) for name, tensor in changed.items()}
                values |= {**self._run(feed, replaced, device), **changed}
        return values[self.output_name]

    def _given(self, inputs: tuple[Tensor, ...], by_name: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the inputs by name, checked to be those of the graph."""
        given = dict(zip(self.input_names, inputs, strict=False)) | by_name
        if set(given) != set(self.input_names) or len(inputs) > len(self.input_names):
            names = ", ".join(self.input_names)
            raise AssayError(f"the ONNX network takes the inputs {names}: give a mapping of arrays by these names")
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.values()):
            raise AssayError(
                f"onnxruntime runs this network, since {self.why}, and gives no gradients: measures that need them "
                "take the network that it was exported from"
            )
        count = len(next(iter(given.values())))
        if self._batch is not None and count != self._batch:
            raise AssayError(
                f"the ONNX network was exported for batches of {self._batch}, and was shown {count} inputs: export it "
                "with a batch axis that may vary (dynamic_axes or dynamic_shapes of torch.onnx.export)"
            )
        return given

    def _run(self, feed: dict[str, Any], replaced: dict[str, Any], device: torch.device) -> dict[str, Any]:
        """Run the graph, or what follows the replaced tensors, for the outputs of layers that somebody waits for."""
        session = self._session(tuple(replaced))
        if session is None:
            return {}
        known = {output.name for output in session.get_outputs()}
        watched = [o for node in self.children() if node._forward_hooks for o in node.outputs]  # type: ignore[union-attr]
        names = [name for name in dict.fromkeys([*watched, self.output_name]) if name in known]
        taken = {i.name for i in session.get_inputs()}
        fed = {name: array for name, array in {**feed, **replaced}.items() if name in taken}
        try:
            outputs = session.run(names, fed)
        except Exception as error:  # onnxruntime has a class for each status
            raise AssayError(f"onnxruntime cannot run the network on these inputs ({first_line(error)})") from error
        return {n: torch.from_numpy(np.array(o)).to(device) for n, o in zip(names, outputs, strict=True)}

    def _session(self, replaced: tuple[str, ...]) -> Any:
        """Return the session of the graph, or of the part of it that follows replaced tensors; None if nothing does."""
        sessions = _SESSIONS.setdefault(self, {})
        if replaced not in sessions:
            model = _rest(self._model, replaced) if replaced else self._model
            sessions[replaced] = _session_of(model) if model else None
        return sessions[replaced]

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        moved = fn(torch.empty(0))
        if moved.dtype != torch.float32:
            raise AssayError(f"onnxruntime runs this network in its own precision: leave out dtype={moved.dtype}")
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


def _session_of(model: bytes) -> Any:
    runtime = optional("onnxruntime", "onnx", "running this ONNX network")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each status
        raise AssayError(f"neither torch nor onnxruntime can run this ONNX network ({first_line(error)})") from error


def _with_all_outputs(graph: OnnxGraph) -> tuple[bytes, set[str]]:
    """Return the model with every floating-point tensor computed of its inputs as an output, and their names."""
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(graph.model)
        model = onnx.ModelProto()
        model.CopyFrom(graph.model)
        known = {v.name: v for v in [*inferred.graph.value_info, *inferred.graph.output]}
        floating = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE}
        kept: dict[str, Any] = {}
        computed = set(graph.inputs)  # from the values of the inputs, not only from their shapes
        for _, node in graph.nodes():
            if node.op_type in ("Shape", "Size") or not (computed & set(node.input) or _has_a_body(node)):
                continue
            computed |= set(node.output)
            for name in filter(None, node.output):
                kind = known[name].type.tensor_type.elem_type if name in known else onnx.TensorProto.UNDEFINED
                if kind in floating:
                    kept[name] = onnx.helper.make_tensor_value_info(name, kind, None)
        outputs = [kept.get(o.name, o) for o in model.graph.output]
        del model.graph.output[:]
        model.graph.output.extend(outputs)
        model.graph.output.extend(v for name, v in kept.items() if name not in {o.name for o in outputs})
        return model.SerializeToString(), set(kept)
    except Exception as error:  # protobuf and shape inference share no base class
        raise AssayError(f"{graph.where} cannot be read as an ONNX network ({first_line(error)})") from error


def _has_a_body(node: Any) -> bool:
    """Whether a node holds a graph of its own (``If``, ``Loop``, ``Scan``), which may take any tensor."""
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def _rest(serialized: bytes, replaced: tuple[str, ...]) -> bytes:
    """Return the part of a model that follows tensors, which become inputs; empty where nothing follows them.

    What it needs beside them, of branches that go around them, is computed anew.
    """
    import onnx

    model = onnx.load_from_string(serialized)
    changed = set(replaced)
    for node in model.graph.node:
        if changed & set(node.input) or (_has_a_body(node) and changed):
            changed |= set(node.output)
    outputs = [o.name for o in model.graph.output if o.name in changed - set(replaced)]
    if not outputs:
        return b""
    inputs = [i.name for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
    extracted = onnx.utils.Extractor(model).extract_model([*inputs, *replaced], outputs)
    serialized_rest: bytes = extracted.SerializeToString()
    return serialized_rest


def _weights(graph: OnnxGraph, node: Any, tensors: dict[str, Any]) -> dict[str, Tensor]:
    """Return the weights of a node as tensors, also where an identity or transpose stands between."""
    known = OnnxGraph(graph.model, graph.where, tensors, graph.inputs).tensors(node)
    return {
        name: torch.from_numpy(np.array(array))
        for name, array in known.values()
        if not name.startswith("constant") and array.dtype.kind == "f"
    }


def _array(tensor: Tensor, kind: str | None) -> Any:
    array = tensor.detach().cpu().numpy()
    return array if kind is None else np.ascontiguousarray(array.astype(np.dtype(kind)))
