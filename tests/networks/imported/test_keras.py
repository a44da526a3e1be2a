from __future__ import annotations

import json

import h5py
import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import pgdl_kit as kit
from assay import AssayError, Subject
from assay.networks.imported.keras import load_keras
from assay.networks.imported.keras_layers import keras_layer

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums of up to some hundred terms near 1, against float64
SIDE, KERNEL, STRIDE = st.integers(1, 8), st.integers(1, 4), st.integers(1, 3)
PADDING = st.sampled_from(["same", "valid"])


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def normalizing(channels, seed=0):
    return {
        "gamma": numbers(channels, seed=seed + 1),
        "beta": numbers(channels, seed=seed + 2),
        "moving_mean": numbers(channels, seed=seed + 3),
        "moving_variance": np.abs(numbers(channels, seed=seed + 4)) + 0.5,
    }


def load(folder, layers, input_shape, weights):
    kit.write_keras(folder, layers, input_shape, weights)
    return load_keras(folder / "config.json", folder / "weights.hdf5")


def shown(network, x):
    """Pictures N×H×W×C through a network, and what comes out as Keras has it, channels last."""
    with torch.no_grad():
        out = network(torch.from_numpy(np.moveaxis(x, -1, 1).copy())).numpy()
    return np.moveaxis(out, 1, -1)


@pytest.mark.slow
@given(SIDE, SIDE, KERNEL, KERNEL, STRIDE, STRIDE, PADDING, st.booleans())
def test_convolutions_slide_and_pad_as_in_tensorflow(tmp_path_factory, h, w, kh, kw, sh, sw, padding, bias):
    assume(padding == "same" or (kh <= h and kw <= w))
    x, kernel, offset = numbers(2, h, w, 3), numbers(kh, kw, 3, 4, seed=1), numbers(4, seed=2)
    layer = {"layer_name": "Conv2D", "filters": 4, "kernel_size": [kh, kw], "strides": [sh, sw], "padding": padding}
    stored = {"kernel": kernel} | ({"bias": offset} if bias else {})
    network = load(tmp_path_factory.mktemp("conv"), [layer | {"use_bias": bias}], [h, w, 3], [stored])
    expected = kit.conv(x, kernel, [sh, sw], padding) + (offset if bias else 0)
    np.testing.assert_allclose(shown(network, x), expected, **CLOSE)


@pytest.mark.parametrize("padding", ["same", "valid", "SAME"])
@pytest.mark.parametrize(("dilation", "groups"), [([2, 1], 1), ([1, 3], 2), ([1, 1], 4)])
def test_convolutions_may_be_dilated_and_grouped(tmp_path, padding, dilation, groups):
    x, kernel = numbers(2, 7, 8, 4), numbers(2, 3, 4 // groups, 8, seed=1)
    layer = {"layer_name": "Conv2D", "filters": 8, "kernel_size": [2, 3], "padding": padding, "use_bias": False}
    network = load(tmp_path, [layer | {"dilation_rate": dilation, "groups": groups}], [7, 8, 4], [{"kernel": kernel}])
    expected = kit.conv(x, kernel, [1, 1], padding.lower(), tuple(dilation))
    np.testing.assert_allclose(shown(network, x), expected, **CLOSE)


@given(SIDE, SIDE, KERNEL, KERNEL, STRIDE, STRIDE, PADDING)
def test_pooling_leaves_out_what_is_outside(h, w, kh, kw, sh, sw, padding):
    assume(padding == "same" or (kh <= h and kw <= w))
    x = numbers(2, h, w, 3) - 5  # negative: a padding of zeros would be the maximum
    arguments = {"pool_size": [kh, kw], "strides": [sh, sw], "padding": padding}
    for name, pool in (("MaxPooling2D", kit.max_pool), ("AveragePooling2D", kit.average_pool)):
        (layer,) = keras_layer({"layer_name": name, **arguments}, (3, h, w))
        expected = pool(x, [kh, kw], [sh, sw], padding)
        out = shown(layer.module, x)
        assert layer.shape == (3, *out.shape[1:3])
        np.testing.assert_allclose(out, expected, **CLOSE)


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (5, 6)])
@pytest.mark.parametrize(
    ("kernel", "strides"), [((3, 3), (2, 2)), ((2, 4), (1, 3)), ((2, 2), (2, 1)), ((4, 3), (3, 2))]
)
def test_onnxruntime_slides_and_pads_likewise(size, kernel, strides):
    """ONNX's SAME_UPPER is TensorFlow's "same"; it refuses windows narrower than their stride."""
    x, w = numbers(2, 3, *size), numbers(4, 3, *kernel, seed=1)
    arguments = {"strides": list(strides), "padding": "same"}
    (conv,) = keras_layer(
        {"layer_name": "Conv2D", "filters": 4, "kernel_size": list(kernel), "use_bias": False, **arguments}, (3, *size)
    )
    with torch.no_grad():
        conv.weights["kernel"].copy_(torch.from_numpy(w))
    pools = [
        keras_layer({"layer_name": name, "pool_size": list(kernel), **arguments}, (3, *size))[0]
        for name in ("MaxPooling2D", "AveragePooling2D")
    ]
    for operator, layer in zip(("Conv", "MaxPool", "AveragePool"), [conv, *pools], strict=True):
        given = ["x", "w"] if operator == "Conv" else ["x"]
        node = helper.make_node(operator, given, ["out"], kernel_shape=kernel, strides=strides, auto_pad="SAME_UPPER")
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", "c", "h", "w"])],
            [numpy_helper.from_array(w, "w")] if operator == "Conv" else [],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (expected,) = session.run(None, {"x": x})
        with torch.no_grad():
            np.testing.assert_allclose(layer.module(torch.from_numpy(x)).numpy(), expected, **CLOSE)


def test_same_padding_with_stride_two_begins_at_the_second_pixel_of_an_even_side():
    # TensorFlow pads only below and to the right here; torch's own padding=1 would look at other pixels.
    (layer,) = keras_layer({"layer_name": "MaxPool2D", "pool_size": 3, "strides": 2, "padding": "same"}, (1, 4, 4))
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert layer.module(x).tolist() == [[[[10, 11], [14, 15]]]]


def test_defaults_are_those_of_keras():
    made = {
        name: keras_layer({"layer_name": name, **arguments}, (3, 9, 9))[0]
        for name, arguments in {
            "Conv2D": {"filters": 2, "kernel_size": 3}, "MaxPooling2D": {}, "BatchNormalization": {},
        }.items()
    }  # fmt: skip
    assert made["Conv2D"].shape == (2, 7, 7) and list(made["Conv2D"].weights) == ["kernel", "bias"]
    assert made["MaxPooling2D"].shape == (3, 4, 4)
    assert made["BatchNormalization"].module.eps == 1e-3
    assert set(made["BatchNormalization"].weights) == {"gamma", "beta", "moving_mean", "moving_variance"}


def test_a_plain_convolutional_network_gives_the_numbers_of_its_definition(tmp_path):
    k1, k2, d1, d2 = numbers(3, 3, 3, 6), numbers(3, 3, 6, 5, seed=1), numbers(80, 7, seed=2), numbers(7, 4, seed=3)
    b1, b2, e1, e2 = (numbers(n, seed=9) for n in (6, 5, 7, 4))
    layers = [
        {"layer_name": "Conv2D", "filters": 6.0, "kernel_size": [3, 3], "activation": "relu", "padding": "same"},
        {"layer_name": "Conv2D", "filters": 5, "kernel_size": 3, "activation": "relu", "padding": "same"},
        {"layer_name": "MaxPooling2D", "pool_size": [2, 2]},
        {"layer_name": "Flatten"},
        {"layer_name": "Dense", "units": 7, "activation": "tanh", "kernel_regularizer": None},
        {"layer_name": "Dropout", "rate": 0.5},
        {"layer_name": "Dense", "units": 4},
    ]
    weights = [
        {"kernel": k1, "bias": b1}, {"kernel": k2, "bias": b2}, {}, {},
        {"kernel": d1, "bias": e1}, {}, {"kernel": d2, "bias": e2},
    ]  # fmt: skip
    network = load(tmp_path, layers, [8, 9, 3], weights)
    names = [
        "conv_1",
        "relu_1",
        "conv_2",
        "relu_2",
        "max_pool_1",
        "flatten_1",
        "dense_1",
        "tanh_1",
        "dropout_1",
        "dense_2",
    ]
    assert Subject(network, example=network.input_shape).layers == names
    assert network.input_shape == (3, 8, 9)

    x = numbers(5, 8, 9, 3, seed=5)
    hidden = np.maximum(kit.conv(x, k1, [1, 1], "same") + b1, 0)
    hidden = np.maximum(kit.conv(hidden, k2, [1, 1], "same") + b2, 0)
    hidden = kit.max_pool(hidden, [2, 2], [2, 2], "valid")
    hidden = np.tanh(hidden.reshape(5, -1) @ d1 + e1)  # NumPy's order of H×W×C is Keras'
    # Deviations of some 1e-6 in the sums of two convolutions and 80 terms, times weights near 1.
    np.testing.assert_allclose(shown(network, x), hidden @ d2 + e2, rtol=1e-4, atol=1e-4)


def test_a_network_in_network_with_batch_norm_gives_the_numbers_of_its_definition(tmp_path):
    k1, k2, n1, n2 = numbers(3, 3, 2, 6), numbers(1, 1, 6, 5, seed=1), normalizing(6), normalizing(5, seed=7)
    del n2["gamma"]
    layers = [
        {"layer_name": "Conv2D", "filters": 6, "kernel_size": 3, "strides": 2, "padding": "same", "use_bias": False},
        {"layer_name": "BatchNormalization", "axis": [3], "momentum": 0.9},
        {"layer_name": "Activation", "activation": "relu"},
        {"layer_name": "Conv2D", "filters": 5, "kernel_size": 1, "use_bias": False},
        {"layer_name": "BatchNormalization", "scale": False, "epsilon": 0.01},
        {"layer_name": "ReLU"},
        {"layer_name": "GlobalAveragePooling2D"},
        {"layer_name": "Softmax"},
    ]
    network = load(tmp_path, layers, [8, 7, 2], [{"kernel": k1}, n1, {}, {"kernel": k2}, n2, {}, {}, {}])
    x = numbers(5, 8, 7, 2, seed=5)
    hidden = np.maximum(kit.batch_norm(kit.conv(x, k1, [2, 2], "same"), n1), 0)
    hidden = np.maximum(kit.batch_norm(kit.conv(hidden, k2, [1, 1], "valid"), n2, 0.01), 0).mean((1, 2))
    odds = np.exp(hidden)
    np.testing.assert_allclose(shown(network, x), odds / odds.sum(1, keepdims=True), **CLOSE)
    assert [name for name, _ in network.named_children()][-2:] == ["global_average_pool_1", "softmax_1"]


def test_uneven_layers_are_recorded_and_cut_like_others(tmp_path):
    layers = [
        {"layer_name": "Conv2D", "filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "use_bias": False},
        {"layer_name": "MaxPooling2D", "padding": "same"},
        {"layer_name": "AveragePooling2D", "padding": "same"},
        {"layer_name": "GlobalMaxPooling2D"},
    ]
    network = load(tmp_path, layers, [10, 10, 2], [{"kernel": numbers(3, 3, 2, 3)}, {}, {}, {}])
    subject = Subject(network, example=network.input_shape)
    x = torch.from_numpy(numbers(4, 2, 10, 10))
    assert all(out.isfinite().all() for out in subject.record(x).values())
    prefix, rest = (split := subject.split("conv_1"))
    cut = prefix(x)
    torch.testing.assert_close(rest(cut.output, cut.carried), subject(x))
    assert split.captured


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("elu", lambda x: np.where(x > 0, x, np.exp(x) - 1)),
        ("selu", lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * (np.exp(x) - 1))),
        ("softplus", lambda x: np.log(np.exp(x) + 1)),
        ("softsign", lambda x: x / (np.abs(x) + 1)),
        ("swish", lambda x: x / (1 + np.exp(-x))),
        ("softmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        ("linear", lambda x: x),
    ],
)
def test_activations_are_those_of_keras_documentation(name, formula):
    x = numbers(3, 2, 4, 5)
    out = x
    for layer in keras_layer({"layer_name": "Activation", "activation": name}, (5, 2, 4)):
        assert layer.kind == name
        out = shown(layer.module, x)
    np.testing.assert_allclose(out, formula(x.astype(np.float64)), rtol=1e-5, atol=1e-6)


def test_a_network_of_vectors_normalizes_vectors(tmp_path):
    norm = normalizing(4)
    del norm["beta"]
    kernel = numbers(3, 4)
    layers = [
        {"layer_name": "Flatten", "input_shape": [3]},
        {"layer_name": "Dense", "units": 4, "use_bias": False, "kernel_initializer": "zeros"},
        {"layer_name": "BatchNormalization", "center": False},
    ]
    network = load(tmp_path, layers, [3], [{}, {"kernel": kernel}, norm])
    x = numbers(6, 3, seed=1)
    np.testing.assert_allclose(shown(network, x), kit.batch_norm(x @ kernel, norm), **CLOSE)


def test_loading_draws_no_random_numbers(tmp_path):
    before = torch.random.get_rng_state()
    load(tmp_path, [{"layer_name": "Dense", "units": 2}], [3], [{"kernel": numbers(3, 2), "bias": numbers(2)}])
    assert torch.equal(torch.random.get_rng_state(), before)


# -- what is wrong is said ------------------------------------------------------------------------------------

DENSE = {"layer_name": "Dense", "units": 2}
GOOD = {"kernel": numbers(3, 2), "bias": numbers(2)}


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"layer_name": "Cov2D"}, r"unknown layer_name 'Cov2D'; did you mean 'Conv2D'"),
        ({"units": 3}, "not a mapping with a 'layer_name'"),
        ("Dense", "not a mapping with a 'layer_name'"),
        ({"layer_name": "Flatten", "unit": 3}, "Flatten has an unknown argument 'unit'"),
        ({"layer_name": "Conv2D", "filter": 3}, r"unknown argument 'filter'; did you mean 'filters'"),
        ({"layer_name": "Conv2D", "filters": 3}, "Conv2D lacks its argument 'kernel_size'"),
        ({"layer_name": "Conv2D", "filters": 3.5, "kernel_size": 1}, "filters=3.5 is not a whole number from 1"),
        ({"layer_name": "Conv2D", "filters": "3", "kernel_size": 1}, "filters='3' is not a number"),
        ({"layer_name": "Conv2D", "filters": 2, "kernel_size": [1, 2, 3]}, "kernel_size=.* neither a number nor two"),
        ({"layer_name": "Conv2D", "filters": 2, "kernel_size": 7}, "window of 7 is larger than the picture, 6"),
        ({"layer_name": "Conv2D", "filters": 2, "kernel_size": 1, "padding": "causal"}, "padding='causal' is neither"),
        ({"layer_name": "Conv2D", "filters": 2, "kernel_size": 1, "groups": 2}, "groups=2 does not divide 3 channels"),
        ({"layer_name": "Conv2D", "filters": 2, "kernel_size": 1, "activation": "rely"}, "did you mean 'relu'"),
        ({"layer_name": "Activation", "activation": {"class_name": "ReLU"}}, "unknown activation"),
        ({"layer_name": "Flatten", "data_format": "channels_first"}, "assay reads only 'channels_last'"),
        ({"layer_name": "ReLU", "max_value": 6}, "ReLU has max_value=6: assay reads only None"),
        ({"layer_name": "BatchNormalization", "axis": 1}, "axis=1 is not the last one"),
        ({"layer_name": "Softmax", "axis": 1}, "axis=1 is not the last one"),
        ({"layer_name": "Dropout", "rate": 2}, "Dropout: dropout probability"),
        ({"layer_name": "Dense", "units": 2}, "it follows pictures"),
    ],
)
def test_layers_that_cannot_be_read_are_named(tmp_path, layer, message):
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({"model_config": [{"layer_name": "Dropout", "rate": 0}, layer], "input_shape": [6, 6, 3]})
    )
    with pytest.raises(AssayError, match=f"config.json: layer 2: .*{message}"):
        load_keras(path, tmp_path / "weights.hdf5")


def test_pictures_are_needed_where_windows_slide():
    with pytest.raises(AssayError, match="MaxPooling2D: it needs pictures, and gets 3 features"):
        keras_layer({"layer_name": "MaxPooling2D"}, (3,))
    with pytest.raises(AssayError, match="GlobalAveragePooling2D: it needs pictures"):
        keras_layer({"layer_name": "GlobalAveragePooling2D"}, (3,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model_config": [', "cannot be read as JSON"),
        ("[]", "holds a list, not a mapping"),
        ("{}", "model_config=None is not a list of layers"),
        ('{"model_config": [], "input_shape": [3]}', r"model_config=\[\] is not a list"),
        ('{"model_config": [{"layer_name": "Flatten"}]}', "input_shape=None is neither"),
        ('{"model_config": [{"layer_name": "Flatten"}], "input_shape": [4, 4]}', r"input_shape=\[4, 4\] is neither"),
        ('{"model_config": [{"layer_name": "Flatten"}], "input_shape": [0]}', "input_shape=0 is not a whole number"),
    ],
)
def test_a_damaged_config_is_named(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(AssayError, match=f"config.json.*{message}"):
        load_keras(tmp_path / "config.json", tmp_path / "weights.hdf5")


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([GOOD | {"kernel": numbers(2, 3)}], r"the kernel of dense_1 is \(2, 3\), the network needs \(3, 2\)"),
        ([GOOD | {"bias": np.array([0, np.nan], dtype="f4")}], "the bias of dense_1 has NaN or infinite values"),
        ([{"kernel": GOOD["kernel"]}], r"has \['kernel'\] for dense_1, which needs \['bias', 'kernel'\]"),
        ([{}], r"has weights of 0 layers, the network has 1: \['dense_1'\]"),
    ],
)
def test_weights_that_do_not_fit_are_named(tmp_path, stored, message):
    with pytest.raises(AssayError, match=f"weights.hdf5.*{message}"):
        load(tmp_path, [DENSE], [3], stored)


def test_the_shape_of_a_convolution_is_said_as_keras_has_it(tmp_path):
    layer = {"layer_name": "Conv2D", "filters": 5, "kernel_size": [2, 3], "use_bias": False}
    with pytest.raises(AssayError, match=r"is \(3, 2, 4, 5\), the network needs \(2, 3, 4, 5\)"):
        load(tmp_path, [layer], [9, 9, 4], [{"kernel": numbers(3, 2, 4, 5)}])


def test_a_damaged_file_of_weights_is_named(tmp_path):
    load(tmp_path, [DENSE], [3], [GOOD])
    path = tmp_path / "weights.hdf5"
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"no weights", b""):
        path.write_bytes(broken)
        with pytest.raises(AssayError, match=r"weights\.hdf5 cannot be read as Keras weights"):
            load_keras(tmp_path / "config.json", path)
    path.unlink()
    with pytest.raises(AssayError, match=r"weights\.hdf5 cannot be read"):
        load_keras(tmp_path / "config.json", path)
    with h5py.File(path, "w") as file:
        file.create_dataset("kernel", data=numbers(3, 2))
    with pytest.raises(AssayError, match=r"weights\.hdf5 cannot be read as Keras weights"):
        load_keras(tmp_path / "config.json", path)
