from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from assay.core.fingerprint import state_fingerprint


class Thing:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.seen_ = 0


def changed(thing, change) -> bool:
    before = state_fingerprint(thing)
    assert state_fingerprint(thing) == before
    change(thing)
    return state_fingerprint(thing) != before


CHANGES = {
    "an element of an array": (Thing(w_=np.zeros(3)), lambda t: t.w_.__setitem__(1, 1e-300)),
    "the type of an array": (Thing(w_=np.zeros(2, np.int32)), lambda t: setattr(t, "w_", t.w_.view(np.float32))),
    "a new attribute": (Thing(), lambda t: setattr(t, "w_", None)),
    "an element of a long array in an array of objects": (
        Thing(w_=np.array([np.zeros(5000), None], dtype=object)),
        lambda t: t.w_[0].__setitem__(2500, 1.0),
    ),
    "a value of a sparse matrix": (Thing(w_=sparse.eye_array(4).tocsr()), lambda t: t.w_.data.__setitem__(0, 2.0)),
    "deep inside": (Thing(parts=[{"a": (Thing(w_=1.0),)}]), lambda t: setattr(t.parts[0]["a"][0], "w_", 2.0)),
    "a set": (Thing(words_={"a", "b"}), lambda t: t.words_.add("c")),
    "where a list ends": (Thing(w_=[1, 23]), lambda t: setattr(t, "w_", [12, 3])),
    "how lists are nested": (Thing(w_=[[1], 2]), lambda t: setattr(t, "w_", [[1, 2]])),
    "a generator that was drawn from": (Thing(rng=np.random.default_rng(0)), lambda t: t.rng.normal()),
    "a weight": (nn.Linear(2, 2), lambda m: m.weight.data.add_(1e-6)),
    "a weight in half precision": (nn.Linear(2, 2).bfloat16(), lambda m: m.weight.data.neg_()),
    "a buffer": (nn.BatchNorm1d(2), lambda m: m(torch.randn(4, 2))),
    "an attribute of a network": (Counter(), lambda m: setattr(m, "seen_", 1)),
    "an attribute of a layer": (nn.Sequential(Counter()), lambda m: setattr(m[0], "seen_", 1)),
    "a sparse tensor": (Thing(w_=torch.eye(2).to_sparse()), lambda t: setattr(t, "w_", (2 * torch.eye(2)).to_sparse())),
    "a compiled tree": (
        DecisionTreeClassifier(random_state=0).fit(np.arange(6)[:, None], [0, 0, 0, 1, 1, 1]),
        lambda t: t.fit(np.arange(6)[:, None], [0, 1, 0, 1, 0, 1]),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_of_what_is_known_is_seen(what):
    assert changed(*CHANGES[what])


def test_caches_modes_and_copies_do_not_count():
    assert not changed(Thing(w_=1), lambda t: setattr(t, "_cache", 2))
    assert not changed(Counter(), lambda m: m.eval())
    shared = np.ones(3)
    assert state_fingerprint([shared, shared]) == state_fingerprint([shared, shared.copy()])
    assert state_fingerprint({"a": 1, "b": 2}) == state_fingerprint({"b": 2, "a": 1})
    assert state_fingerprint(Thing(w_=torch.ones(2, 3).T)) == state_fingerprint(Thing(w_=torch.ones(3, 2)))


def test_what_holds_itself_has_a_hash():
    one, other = Thing(w_=1), Thing(w_=1)
    one.me, other.me = one, other
    assert state_fingerprint(one) == state_fingerprint(other)
    other.w_ = 2
    assert state_fingerprint(one) != state_fingerprint(other)


def test_functions_and_modules_count_by_name():
    assert state_fingerprint(Thing(f=np.tanh, m=np)) == state_fingerprint(Thing(f=np.tanh, m=np))
    assert state_fingerprint(Thing(f=np.tanh)) != state_fingerprint(Thing(f=np.sinh))


def test_a_lazy_layer_has_a_state_before_it_has_weights():
    def lazy() -> nn.Module:
        return nn.LazyLinear(3)

    made = lazy()
    assert state_fingerprint(made) == state_fingerprint(lazy())
    made(torch.zeros(1, 2))
    assert state_fingerprint(made) != state_fingerprint(lazy())
