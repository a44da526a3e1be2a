"""ONNX files: what a layer is called, what is run by whom, and one sentence for what cannot be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import assay
from assay import AssayError, Subject
from assay.networks.imported.onnx import OnnxNetwork, load_onnx
from assay.networks.imported.onnx_runtime import OnnxRuntimeNetwork
from assay.subject.anatomy import nonlinearity_after, weighted_layers

rng = np.random.default_rng(0)


def array(*shape):
    return rng.normal(size=shape).astype(np.float32)


WEIGHTS = {"kernel": array(2, 3, 3, 3), "offset": array(2), "matrix": array(3, 72), "shift": array(3)}


def nodes(act="Relu"):
    return [
        helper.make_node("Conv", ["x", "kernel", "offset"], ["a"], name="/net/conv/Conv"),
        helper.make_node(act, ["a"], ["b"], name="act"),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "matrix", "shift"], ["y"], name="readout", transB=1),
    ]


def saved(path, graph_nodes, weights=WEIGHTS, inputs=(("x", ["n", 3, 8, 8]),), rank=2, opset=18):
    graph = helper.make_graph(
        graph_nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"d{i}" for i in range(rank)])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), path)
    return path


@pytest.fixture
def path(tmp_path):
    return saved(tmp_path / "net.onnx", nodes())


PIXELS, LABELS = array(12, 3, 8, 8), np.arange(12) % 3


@pytest.mark.parametrize("act", ["Relu", "Acos"])
def test_measures_agree_on_which_layers_have_weights(tmp_path, act):
    path = saved(tmp_path / "net.onnx", nodes(act))
    subject = Subject.from_onnx(path)
    assert isinstance(subject.module, OnnxNetwork if act == "Relu" else OnnxRuntimeNetwork)
    assert subject.layers == ["net_conv_Conv", "act", "c", "readout"]
    assert weighted_layers(subject) == ["net_conv_Conv", "readout"]
    norms = assay.Norms()(subject)
    assert list(norms[norms.quantity == "spectral norm"].layer) == weighted_layers(subject)
    kernel, matrix = (torch.from_numpy(WEIGHTS[name]).flatten(1) for name in ("kernel", "matrix"))
    expected = [float(torch.linalg.matrix_norm(w.double(), 2)) for w in (kernel, matrix)]
    assert list(norms[norms.quantity == "spectral norm"].value) == pytest.approx(expected)
    if act == "Relu":
        assert assay.ClusterSeparation((PIXELS, LABELS), bootstrap=0)(subject).layer.item() == "net_conv_Conv"
        table = assay.PerturbationResponse((PIXELS, LABELS), layer=(1, 2), magnitudes=2, bootstrap=0)(subject)
        assert set(table["at"]) == {"act", "readout"} and nonlinearity_after(subject, "net_conv_Conv") == "act"


def test_a_network_from_a_file_is_called_like_it_and_knows_the_shape_of_its_input(path):
    subject = Subject.from_onnx(path)
    assert subject.name == "net" and tuple(subject.example.shape) == (1, 3, 8, 8)
    assert Subject.from_onnx(str(path), "mine", example=(3, 8, 8)).name == "mine"
    assert len(assay.Norms()(subject)) > 4


def test_weights_that_two_layers_share_are_one_tensor(tmp_path):
    twice = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("MatMul", ["a", "w"], ["y"], name="second"),
    ]
    module = load_onnx(saved(tmp_path / "net.onnx", twice, {"w": array(4, 4)}, (("x", ["n", 4]),)))
    assert module.first.weight is module.second.weight and len(list(module.buffers())) == 1


def test_a_branch_around_a_replaced_layer_stays_as_it_was(tmp_path):
    graph = [
        helper.make_node("Acos", ["x"], ["a"], name="acos"),
        helper.make_node("Mul", ["a", "two"], ["b"], name="doubled"),
        helper.make_node("Add", ["a", "b"], ["y"], name="sum"),
    ]
    path = saved(tmp_path / "net.onnx", graph, {"two": np.array([2], np.float32)}, (("x", ["n", 4]),))
    subject = Subject.from_onnx(path)
    x = torch.rand(3, 4)
    split = subject.split("doubled")
    output, carried = split.prefix(x)
    torch.testing.assert_close(split.rest(output * 0, carried), torch.acos(x))
    torch.testing.assert_close(split.rest(output, carried), 3 * torch.acos(x))


def test_several_inputs_are_given_by_name(tmp_path):
    add = [helper.make_node("Add", ["left", "right"], ["y"], name="sum")]
    path = saved(tmp_path / "net.onnx", add, {}, (("left", ["n", 4]), ("right", ["n", 4])))
    subject = Subject.from_onnx(path)
    ones = torch.ones(2, 4)
    assert torch.equal(subject({"left": ones, "right": 2 * ones}), 3 * ones)
    for wrong in ({"left": ones}, {"left": ones, "other": ones}, ones):
        with pytest.raises(AssayError, match="takes the inputs left, right: give a mapping of arrays by these names"):
            subject(wrong)


def test_old_softmax_is_run_by_onnxruntime(tmp_path):
    softmax = [helper.make_node("Softmax", ["x"], ["y"], name="softmax")]
    module = load_onnx(saved(tmp_path / "net.onnx", softmax, {}, (("x", ["n", 2, 3]),), 3, opset=11))
    assert isinstance(module, OnnxRuntimeNetwork) and "version 11" in module.why
    assert torch.allclose(module(torch.zeros(1, 2, 3)), torch.full((1, 2, 3), 1 / 6))  # over all axes but the first


def test_a_network_for_batches_of_one_size_says_how_to_export_it(tmp_path):
    acos = [helper.make_node("Acos", ["x"], ["y"], name="acos")]
    subject = Subject.from_onnx(saved(tmp_path / "net.onnx", acos, {}, (("x", [1, 4]),)))
    subject(torch.zeros(1, 4))
    with pytest.raises(AssayError, match="exported for batches of 1, and was shown 3 inputs: export it with a batch"):
        subject(torch.zeros(3, 4))


def test_another_precision_is_refused_where_onnxruntime_runs_the_network(tmp_path):
    path = saved(tmp_path / "net.onnx", nodes("Acos"))
    with pytest.raises(AssayError, match=r"in its own precision: leave out dtype=torch\.float64"):
        Subject.from_onnx(path, dtype=torch.float64)
    assert Subject.from_onnx(saved(tmp_path / "net.onnx", nodes()), dtype=torch.float64)(PIXELS).dtype == torch.float64


def without(path, change):
    model = onnx.load(path)
    change(model)
    path.write_bytes(model.SerializeToString())
    return path


def unknown_operator(model):
    model.graph.node[1].op_type, model.graph.node[1].domain = "Nonsense", "elsewhere"
    model.opset_import.append(helper.make_opsetid("elsewhere", 1))


def short_tensor(model):
    model.graph.initializer[0].raw_data = b"1234"


def huge_tensor(model):
    model.graph.initializer[0].dims[0] = 10**15


def elsewhere(model):
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../../etc/passwd")


def cycle(model):
    model.graph.node[0].input[0] = "y"


def no_input(model):
    del model.graph.input[:]


def no_output(model):
    del model.graph.output[:]


def wrong_shapes(model):
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array(2, 5, 3, 3), "kernel"))


def sequence_input(model):
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None))


HOSTILE = [unknown_operator, short_tensor, huge_tensor, elsewhere, cycle, no_input, no_output, sequence_input]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_file_that_is_wrong_inside_ends_in_one_sentence(path, change):
    with pytest.raises(AssayError, match=r"net\.onnx") as caught:
        load_onnx(without(path, change))
    assert "\n" not in str(caught.value)


def test_layers_that_do_not_fit_each_other_end_in_one_sentence(path):
    with pytest.raises(AssayError) as caught:
        Subject.from_onnx(without(path, wrong_shapes)).record(PIXELS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x08\x09not onnx", b"PK\x03\x04", b"\xff" * 100, "cut"])
def test_a_damaged_file_ends_in_one_sentence(path, content):
    path.write_bytes(path.read_bytes()[:-50] if content == "cut" else content)
    with pytest.raises(AssayError, match=r"net\.onnx"):
        load_onnx(path)


def test_no_file_and_a_folder_end_in_one_sentence(tmp_path):
    for place in (tmp_path, tmp_path / "nothing.onnx"):
        with pytest.raises(AssayError, match="is not a file: give the path of an ONNX network"):
            Subject.from_onnx(place)
