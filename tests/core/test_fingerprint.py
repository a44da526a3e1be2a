from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import InitVar, dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import AssayError
from assay.core.fingerprint import file_fingerprint, fingerprint, remembering
from assay.core.source_code import source_fingerprint

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(values, values)
def test_equal_fingerprints_mean_equal_values(a, b):
    assert (fingerprint(a) == fingerprint(b)) == (repr(a) == repr(b))


def test_the_order_of_mappings_counts_and_that_of_sets_does_not():
    """Whoever goes through a mapping sees its order, so that a measure may depend on it."""
    assert fingerprint({"a": 1, "b": 2}) != fingerprint({"b": 2, "a": 1})
    assert fingerprint({1: "a", (2,): "b"}) != fingerprint({(2,): "b", 1: "a"})
    words = ["b", "a", "d", "c"]
    assert fingerprint(set(words)) == fingerprint(set(reversed(words)))


def test_the_order_in_which_attributes_were_set_does_not_count():
    class Settings(dict):
        pass

    one, other = Settings(), Settings()
    one.a, one.b = 1, 2
    other.b, other.a = 2, 1
    assert fingerprint(one) == fingerprint(other)


def test_boundaries_between_parts_count():
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint([1], [2]) != fingerprint([1, 2], [])


class Pictures:
    """Large stimuli that count how often they are hashed."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels
        self.times = 0

    @property
    def fingerprint(self) -> str:
        self.times += 1
        return fingerprint(self.pixels)


def test_stimuli_are_hashed_once_while_remembering_and_to_the_same_fingerprint_as_otherwise():
    pixels = np.arange(2**15, dtype=np.float64)
    parts = [pixels, torch.from_numpy(pixels), {"a": pixels}, Pictures(pixels)]
    outside = [fingerprint(part) for part in parts]
    with remembering():
        assert [fingerprint(part) for part in parts] == outside
        counted = Pictures(pixels)
        assert fingerprint("one", counted) != fingerprint("other", counted)
    assert counted.times == 1


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


def test_onnx_graphs_by_how_their_nodes_are_joined(tmp_path):
    from onnx import TensorProto, helper

    from assay.networks.imported.onnx import load_onnx

    def network(first, second):
        nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Sub", [first, second], ["y"])]
        shape = helper.make_tensor_value_info
        ends = ([shape(name, TensorProto.FLOAT, [1])] for name in "xy")
        graph = helper.make_graph(nodes, "g", *ends)
        (tmp_path / "net.onnx").write_bytes(helper.make_model(graph).SerializeToString())
        return load_onnx(tmp_path / "net.onnx")

    assert fingerprint(network("r", "x")) != fingerprint(network("x", "r"))


class Times(NamedTuple):
    k: float

    def __call__(self, x):
        return x * self.k


class Plus(NamedTuple):
    k: float

    def __call__(self, x):
        return x + self.k


class Settings(dict):
    pass


class Colour(Enum):
    RED = "red"


class OtherColour(Enum):
    RED = "red"


@dataclass
class Derived:
    k: InitVar[float]

    def __post_init__(self, k):
        self._k = k


def with_attribute(kind, k):
    made = kind()
    made.k = k
    return made


def cached(k):
    return functools.lru_cache(lambda x: x * k)


def wrapped(k):
    return functools.wraps(torch.nn.functional.relu)(lambda x: k * torch.relu(x))


def dispatching(k):
    return functools.singledispatch(lambda x: x * k)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Times(2.0), Plus(2.0)),
        (Times(2.0), Times(3.0)),
        (with_attribute(Settings, 1), with_attribute(Settings, 2)),
        (Colour.RED, OtherColour.RED),
        (Derived(2.0), Derived(3.0)),
        (cached(2), cached(3)),
        (torch.tensor(2.0).mul, torch.tensor(3.0).mul),
        (wrapped(2), wrapped(3)),
        (dispatching(2), dispatching(3)),
    ],
)
def test_things_that_look_alike_and_behave_otherwise_differ(one, other):
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)


def test_a_parameter_is_no_buffer_and_a_frozen_one_does_not_learn():
    def module(kind):
        made = torch.nn.Module()
        weight = torch.ones(3)
        if kind == "buffer":
            made.register_buffer("w", weight)
        else:
            made.w = torch.nn.Parameter(weight, requires_grad=kind == "learns")
        return made

    assert len({fingerprint(module(kind)) for kind in ("buffer", "learns", "fixed")}) == 3


scale = 5


def test_an_attribute_of_the_name_of_a_variable_is_not_that_variable(monkeypatch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            return x * self.scale

    before = fingerprint(Net())
    monkeypatch.setitem(globals(), "scale", 6)
    assert fingerprint(Net()) == before


SAME_EVERYWHERE = """
import functools, torch
from dataclasses import dataclass
from assay.core.fingerprint import fingerprint
class Plain:
    def __init__(self, k):
        self.k = k
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.by = {torch.relu: 1, torch.tanh: 2, abs: 3}
        self.some = {Plain(i) for i in range(6)}
        self.words = {"b", "a", "c"}
        self.library = torch
    @functools.cached_property
    def slow(self):
        return 1
    shout = functools.partialmethod(print, end="!")
    def forward(self, x):
        return x
@dataclass(frozen=True)
class Setting:
    a: int = 1
    @functools.cached_property
    def b(self):
        return 2
one = Setting()
before = fingerprint(one)
one.b
assert fingerprint(one) == before, "what a cached property keeps is no content"
print(fingerprint(Net()), before)
"""


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process():
    said = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SAME_EVERYWHERE]
        said.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(said) == 1


def test_packages_without_an_init_file_and_scripts_inside_packages_are_followed(tmp_path):
    (tmp_path / "plain" / "inner").mkdir(parents=True)
    script = """
from assay.core.source_code import source_fingerprint
if __name__ == "__main__":
    from .inner.helpers import K
    print(source_fingerprint("__main__"), source_fingerprint("plain.inner.helpers"))
"""
    (tmp_path / "plain" / "go.py").write_text(script)
    said = []
    for k in (1, 2):
        (tmp_path / "plain" / "inner" / "helpers.py").write_text(f"K = {k}")
        command = [sys.executable, "-B", "-m", "plain.go"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    assert all(said[0]) and said[0][0] != said[1][0] and said[0][1] != said[1][1]


@pytest.mark.parametrize(
    ("number", "written"),
    list(
        enumerate(
            [
                'importlib.import_module("CONST").K',
                'import_module("CONST").K',
                'import_module(".CONST", __package__).K',
                'import_module(name="CONST").K',
                '__import__("CONST").K',
                'importlib.import_module("PASSING").K',
                "lazy.K",
            ]
        )
    ),
)
def test_a_module_that_is_imported_by_a_call_is_followed(tmp_path, monkeypatch, number, written):
    """By a call with the name written in it; a name that is computed cannot be followed."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    names = {"CONST": f"const{number}", "PASSING": f"passing{number}", "USER": f"user{number}"}

    def write(path: str, text: str) -> None:
        for word, name in names.items():
            path, text = path.replace(word, name), text.replace(word, name)
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    imports = 'import importlib\nfrom importlib import import_module\nlazy = import_module("PASSING")\n'
    write("PASSING/__init__.py", "from CONST import K")
    write("USER/__init__.py", "")
    write("USER/code.py", f"{imports}def f():\n    return {written}\n")
    found = []
    for k in (1, 22):
        write("CONST.py", f"K = {k}")
        write("USER/CONST.py", f"K = {k}")
        found.append(source_fingerprint(f"user{number}.code"))
    assert found[0] and found[0] != found[1]
