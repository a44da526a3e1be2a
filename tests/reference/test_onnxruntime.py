"""ONNX networks in torch give what onnxruntime gives."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import assay
from assay import AssayError, Subject
from assay.networks.imported.onnx import load_onnx
from assay.networks.imported.onnx_graph import OnnxGraph
from assay.subject.anatomy import weighted_layers


@pytest.mark.parametrize("training", ["standard", "fgsm", "pgd"])
def test_real_cifar_networks_agree_in_every_layer(shared_data, training, tmp_path):
    path = shared_data / "cifar10_networks" / f"resnet_4b_{training}.onnx"
    with np.load(shared_data / "cifar10_subset" / "cifar10_subset.npz") as data:
        x = data["test_images"][::50].transpose(0, 3, 1, 2).astype(np.float32) / 255
    recorded = list(Subject(load_onnx(path)).record(x).values())
    model = onnx.load(path)
    names = [n.output[0] for n in model.graph.node if n.op_type != "Constant"]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for ours, theirs in zip(recorded, session.run(None, {"input": x}), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-3, atol=1e-4)  # float32 convolutions


def one_node(op, inputs, initializers, rank=4, **attributes):
    names = ["x", *initializers]
    node = helper.make_node(op, names[: 1 + len(initializers)], ["out"], name="node", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(inputs.shape))],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [f"d{i}" for i in range(rank)])],
        [numpy_helper.from_array(v, k) for k, v in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


rng = np.random.default_rng(0)
X = rng.normal(size=(2, 4, 7, 7)).astype(np.float32)
W = rng.normal(size=(6, 2, 3, 3)).astype(np.float32)
B = rng.normal(size=6).astype(np.float32)
FOUR = {k: np.abs(rng.normal(size=4)).astype(np.float32) + 0.5 for k in "sbmv"}
M = rng.normal(size=(4, 5)).astype(np.float32)
CASES = [
    ("Conv", X, {"w": W, "b": B}, {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ("Conv", X, {"w": W}, {"group": 2, "pads": [1, 1, 1, 1], "dilations": [2, 2]}),
    ("BatchNormalization", X, FOUR, {"epsilon": 0.01}),
    ("MaxPool", X, {}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0]}),
    ("MaxPool", X, {}, {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", X, {}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", X, {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("GlobalAveragePool", X, {}, {}),
    ("Gemm", M, {"y": M, "z": rng.normal(size=4).astype(np.float32)}, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("Gemm", M, {"y": M}, {"transA": 1}),
    ("MatMul", X, {"y": rng.normal(size=(7, 3)).astype(np.float32)}, {}),
    ("Flatten", X, {}, {}),
    ("Flatten", X, {}, {"axis": 2}),
    ("Reshape", X, {"s": np.array([0, -1, 7])}, {}),
    ("Transpose", X, {}, {"perm": [0, 2, 3, 1]}),
    ("ReduceMean", X, {"a": np.array([2, 3])}, {"keepdims": 0}),
    ("Squeeze", X[:, :1], {"a": np.array([1])}, {}),
    ("Unsqueeze", M, {"a": np.array([0, 3])}, {}),
    ("Concat", X, {"y": X}, {"axis": 1}),
    ("Clip", X, {"l": np.float32(-0.5), "h": np.float32(0.5)}, {}),
    ("Pow", np.abs(X), {"y": np.float32(1.5)}, {}),
    ("LayerNormalization", X, {"w": np.ones(7, np.float32), "b": np.ones(7, np.float32)}, {"epsilon": 1e-3}),
    *((op, X, {"y": FOUR["s"].reshape(4, 1, 1)}, {}) for op in ("Add", "Sub", "Mul", "Div")),
    *((op, X, {}, {}) for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Exp", "Erf", "Neg", "Identity", "Elu")),
    *((op, np.abs(X), {}, {}) for op in ("Sqrt", "Log")),
    ("LeakyRelu", X, {}, {"alpha": 0.2}),
    ("HardSigmoid", X, {}, {"alpha": 0.3, "beta": 0.4}),
    ("Softmax", X, {}, {"axis": 1}),
    ("LogSoftmax", X, {}, {}),
    ("Dropout", X, {}, {}),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_operator_agrees(case, tmp_path):
    op, x, initializers, attributes = case
    flat = {"Gemm": 2, "Flatten": 2, "ReduceMean": 2, "Reshape": 3, "Squeeze": 3}
    model = one_node(op, x, initializers, flat.get(op, 4), **attributes)
    onnx.save(model, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})[0]
    got = load_onnx(tmp_path / "net.onnx")(torch.from_numpy(x))
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)  # float32


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 5, batch_first=True)
        self.readout = nn.Linear(5, 3)

    def forward(self, x):
        return self.readout(self.layer(x)[0][:, -1])


class Logits(nn.Module):
    """A network of transformers that takes its inputs in order and returns its class scores."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, *inputs):
        names = ("input_ids", "attention_mask") if len(inputs) == 2 else ("pixel_values",)
        return self.network(**dict(zip(names, inputs, strict=True))).logits


def vision_transformer():
    transformers = pytest.importorskip("transformers")
    settings = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4,
        num_labels=3,
    )  # fmt: skip
    return Logits(transformers.ViTForImageClassification(settings)), {"x": torch.randn(2, 3, 8, 8)}


def text_transformer():
    transformers = pytest.importorskip("transformers")
    settings = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=12, num_labels=3,
    )  # fmt: skip
    words = {"input_ids": torch.randint(0, 20, (2, 7)), "attention_mask": torch.ones(2, 7, dtype=torch.int64)}
    return Logits(transformers.BertForSequenceClassification(settings)), words


EXPORTED = {
    "lstm": lambda: (Recurrent(), {"x": torch.randn(2, 6, 4)}),
    "vit": vision_transformer,
    "bert": text_transformer,
}


@pytest.fixture(scope="module", params=EXPORTED)
def exported(request, tmp_path_factory):
    """An exported network: its file, the torch module, and inputs by name."""
    torch.manual_seed(0)
    network, inputs = EXPORTED[request.param]()
    network.eval()
    path = tmp_path_factory.mktemp("onnx") / f"{request.param}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of itself
        torch.onnx.export(
            network, tuple(inputs.values()), str(path), input_names=list(inputs), output_names=["scores"],
            dynamic_axes={name: {0: "n"} for name in inputs}, dynamo=False,
        )  # fmt: skip
    return path, network, inputs


def shown(inputs):
    return inputs if len(inputs) > 1 else inputs["x"]


def test_exported_networks_agree_with_onnxruntime_and_with_torch(exported):
    path, network, inputs = exported
    subject = Subject.from_onnx(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})[0]
    np.testing.assert_allclose(subject(shown(inputs)).numpy(), expected, rtol=1e-5, atol=1e-6)  # float32
    with torch.no_grad():
        np.testing.assert_allclose(expected, network(*inputs.values()).numpy(), rtol=1e-4, atol=1e-5)


def test_every_layer_of_an_exported_network_is_what_onnxruntime_computes(exported):
    path, _, inputs = exported
    recorded = Subject.from_onnx(path).record(shown(inputs))
    model = onnx.load(path)
    names = {name: node.output[0] for name, node in OnnxGraph(model, "", {}, {}).nodes()}
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(names[layer]) for layer in recorded)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    assert len(recorded) > 4
    for (layer, ours), theirs in zip(recorded.items(), expected, strict=True):
        theirs = np.moveaxis(theirs, -2, 0) if layer.endswith("LSTM") else theirs
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_the_rest_of_an_exported_network_follows_a_changed_layer(exported):
    path, _, inputs = exported
    subject = Subject.from_onnx(path)
    layers = weighted_layers_of(subject, inputs)
    middle = layers[len(layers) // 2]
    split = subject.split(middle)
    output, carried = split.prefix(shown(inputs))
    whole = subject(shown(inputs))
    torch.testing.assert_close(split.rest(output, carried), whole)
    assert not torch.allclose(split.rest(output.flip(0) * 3, carried), whole)
    last = subject.split(layers[-1])
    output, carried = last.prefix(shown(inputs))
    torch.testing.assert_close(last.rest(output, carried), whole)


def weighted_layers_of(subject, inputs):
    subject.record(shown(inputs), 0)
    return weighted_layers(subject)


def test_a_changed_recurrent_layer_gives_what_torch_gives(exported):
    path, network, inputs = exported
    if not isinstance(network, Recurrent):
        pytest.skip("of the recurrent network")
    split = Subject.from_onnx(path).split("layer_LSTM")
    output, carried = split.prefix(inputs["x"])
    assert output.shape == (2, 6, 1, 5)  # inputs × steps × directions × units
    with torch.no_grad():
        expected = network.readout(2 * output[:, -1, 0])
    torch.testing.assert_close(split.rest(2 * output, carried), expected)


def test_measures_of_an_exported_network_work_or_say_why_not(exported):
    path, _, inputs = exported
    subject = Subject.from_onnx(path)
    repeated = {name: tensor.repeat(6, *[1] * (tensor.dim() - 1)).numpy() for name, tensor in inputs.items()}
    data = (shown(repeated), np.arange(12) % 3)
    assert assay.ClusterSeparation(data, bootstrap=0)(subject).layer.item() in weighted_layers(subject)
    assert len(assay.PerturbationResponse(data, layer=1, magnitudes=2, bootstrap=0)(subject)) > 2
    norms = assay.Norms()(subject).set_index("quantity")
    assert set(norms.loc[["spectral norm"]].layer) <= set(weighted_layers(subject))
    assert "it has operators that only onnxruntime runs" in norms.status["log path norm"]
    with pytest.raises(AssayError, match=r"onnxruntime runs .* its weights cannot be moved"):
        assay.Sharpness(data)(subject)
    if len(inputs) == 1:
        with pytest.raises(AssayError, match="gives no gradients: measures that need them take the network"):
            assay.Margins(data)(subject)


def test_copies_and_pickles_of_an_exported_network_are_the_same(exported):
    path, _, inputs = exported
    module = load_onnx(path)
    for other in (load_onnx(path), copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert Subject(other).fingerprint == Subject(module).fingerprint
        assert torch.equal(Subject(other)(shown(inputs)), Subject(module)(shown(inputs)))
