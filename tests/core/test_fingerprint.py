from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import AssayError
from assay.core.fingerprint import file_fingerprint, fingerprint

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(values, values)
def test_equal_fingerprints_mean_equal_values(a, b):
    same = fingerprint(a) == fingerprint(b)
    assert same == (repr(_sorted(a)) == repr(_sorted(b)))


def _sorted(value):
    if isinstance(value, dict):
        return {k: _sorted(value[k]) for k in sorted(value, key=repr)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def test_boundaries_between_parts_count():
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint([1], [2]) != fingerprint([1, 2], [])


def test_arrays_by_shape_type_and_content():
    a = np.arange(6.0)
    assert fingerprint(a) == fingerprint(a.copy())
    assert fingerprint(a) != fingerprint(a.reshape(2, 3)) != fingerprint(a.astype(np.float32))
    assert fingerprint(torch.ones(2, dtype=torch.bfloat16)) != fingerprint(torch.ones(2))
    assert fingerprint(torch.arange(6).reshape(2, 3).T) == fingerprint(torch.arange(6).reshape(2, 3).T.contiguous())


def test_functions_by_source_and_what_they_close_over():
    def scale(by):
        return lambda x: x * by

    assert fingerprint(scale(2)) == fingerprint(scale(2)) != fingerprint(scale(3))
    assert fingerprint(functools.partial(max, 1)) != fingerprint(functools.partial(max, 2))


def test_dataclasses_by_class_and_fields():
    @dataclass
    class A:
        x: int = 1

    @dataclass
    class B:
        x: int = 1

    assert fingerprint(A()) == fingerprint(A(1)) != fingerprint(A(2))
    assert fingerprint(A()) != fingerprint(B())


def test_things_without_content_are_refused():
    with pytest.raises(AssayError, match="cannot fingerprint"):
        fingerprint(object())


def test_files_by_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"one")
    assert file_fingerprint(tmp_path / "a") == file_fingerprint(tmp_path / "b")
    (tmp_path / "b").write_bytes(b"other")
    assert file_fingerprint(tmp_path / "a") != file_fingerprint(tmp_path / "b")


def test_networks_by_attributes_that_their_repr_does_not_show():
    from torch import nn

    def encoder(heads, **settings):
        torch.manual_seed(0)
        return nn.TransformerEncoderLayer(16, heads, 16, **settings)

    assert fingerprint(encoder(2)) == fingerprint(encoder(2))
    prints = [encoder(2), encoder(4), encoder(2, norm_first=True), encoder(2, activation="gelu")]
    assert len({fingerprint(e) for e in prints}) == 4

    class Scaled(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k, self.me = k, [self]

        def forward(self, x):
            return self.k * x

    assert fingerprint(Scaled(1.0)) == fingerprint(Scaled(1.0)) != fingerprint(Scaled(2.0))


K = 2


def test_functions_by_code_constants_defaults_owner_and_globals(monkeypatch):
    one, two = lambda x: x + 1, lambda x: x + 2
    assert fingerprint(one) != fingerprint(two)
    assert fingerprint(lambda x, s=1: x * s) != fingerprint(lambda x, s=2: x * s)

    @dataclass
    class Owner:
        k: int

        def scale(self, x):
            return self.k * x

    assert fingerprint(Owner(1).scale) == fingerprint(Owner(1).scale) != fingerprint(Owner(2).scale)

    def uses_global(x):
        return K * x

    before = fingerprint(uses_global)
    monkeypatch.setitem(uses_global.__globals__, "K", 3)
    assert fingerprint(uses_global) != before


def test_onnx_graphs_by_how_their_nodes_are_joined():
    from onnx import TensorProto, helper

    from assay.networks.imported.onnx import OnnxNetwork

    def network(first, second):
        nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Sub", [first, second], ["y"])]
        shape = helper.make_tensor_value_info
        ends = ([shape(name, TensorProto.FLOAT, [1])] for name in "xy")
        graph = helper.make_graph(nodes, "g", *ends)
        return OnnxNetwork(helper.make_model(graph), "net.onnx")

    assert fingerprint(network("r", "x")) != fingerprint(network("x", "r"))
