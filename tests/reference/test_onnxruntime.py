"""ONNX networks in torch give what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from assay import AssayError, Subject
from assay.networks.imported.onnx import load_onnx


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


def test_unknown_operators_and_damaged_files_are_named(tmp_path):
    onnx.save(one_node("Acos", X, {}), tmp_path / "net.onnx")
    with pytest.raises(AssayError, match="operators assay cannot run: Acos"):
        load_onnx(tmp_path / "net.onnx")
    (tmp_path / "net.onnx").write_bytes(b"\x08\x09not onnx")
    with pytest.raises(AssayError, match="cannot be read as an ONNX network"):
        load_onnx(tmp_path / "net.onnx")
