"""What every measure does, whoever wrote it: it takes a bare module, and refuses in a sentence what is no network."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import assay
from assay import AssayError, Measure, Straightness, Subject
from assay.core.fingerprint import fingerprint
from measure_kit import Slow, sequences


def test_a_measure_of_a_bare_module_is_that_of_a_subject_made_of_it():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4))
    measure = Straightness(sequences())
    measure.check(network)
    pd.testing.assert_frame_equal(measure(network), measure(Subject(network)))
    pd.testing.assert_frame_equal(measure.measured(network).table, measure(network))


@pytest.mark.parametrize("kind", list(Measure.known().values()), ids=list(Measure.known()))
def test_every_measure_refuses_what_is_no_network_in_a_sentence(kind):
    measure = object.__new__(kind)  # what it is asked of is looked at before its settings
    for method in (measure, measure.check, measure.measured):
        for wrong in (None, 3, "resnet18", np.zeros(3), nn.Linear):
            with pytest.raises(AssayError, match=r"^subject=.* is no network: give a "):
                method(wrong)


def test_taking_modules_leaves_names_signatures_and_fingerprints_as_they_are():
    assert str(inspect.signature(Slow.__call__)) == "(self, subject: 'Subject') -> 'pd.DataFrame'"
    assert Slow.__call__.__qualname__ == "Slow.__call__" and Slow.__call__.__doc__ == Slow.__call__.__wrapped__.__doc__
    assert pickle.loads(pickle.dumps(Slow(2.0))) == Slow(2.0)
    assert pickle.loads(pickle.dumps(Slow.__call__)) is Slow.__call__
    before = fingerprint(Slow())
    wrapped = Slow.__call__
    try:
        Slow.__call__ = wrapped.__wrapped__
        assert fingerprint(Slow()) == before
    finally:
        Slow.__call__ = wrapped


def test_what_a_subclass_of_a_measure_says_is_what_runs_keep(tmp_path):
    """A measure that adds rows to those of another has them in the table of a run too."""

    @dataclass(frozen=True)
    class MoreNorms(assay.Norms):
        name: ClassVar[str] = ""

        def __call__(self, subject):
            return assay.Norms.__call__(self, subject).assign(more=1)

    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    run = assay.evaluate(net, {"more": MoreNorms(shape=(3,))}, tmp_path)
    assert (run.table("more")["more"] == 1).all()
