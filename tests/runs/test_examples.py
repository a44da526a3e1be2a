"""An input for networks that have none, from the stimuli of the other measures of a run."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from assay import Margins, Norms, Straightness, Subject, evaluate
from assay.core.determinism import seeded
from assay.measures import Invariance
from assay.runs.evaluate import cell_fingerprint
from assay.runs.examples import Examples
from assay.stimuli import Gratings, Labelled, Sequences


def network() -> nn.Module:
    with seeded(0):
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))


def labelled(side: int = 8) -> Labelled:
    return Labelled(np.random.default_rng(0).random((4, 1, side, side), dtype=np.float32), np.arange(4) % 2)


@pytest.mark.parametrize(
    "other",
    [
        Margins(labelled(), samples=4),
        Straightness(Sequences.of(noise=np.random.default_rng(0).random((5, 1, 8, 8)))),
        Invariance(Gratings(8)),
    ],
)
def test_norms_take_the_shape_of_the_stimuli_beside_them(other, tmp_path):
    net = network()
    run = evaluate({"a": net}, [Norms(), other], tmp_path)
    assert not run.failures
    expected = Norms(shape=(1, 8, 8))(Subject(net))
    assert run.table("norms").drop(columns="subject").equals(expected)


def test_a_subject_keeps_its_own_example_and_is_not_given_another():
    examples = Examples([Norms(), Margins(labelled())])
    own, bare = Subject(network(), example=(1, 16, 16)), Subject(network())
    assert examples.lend(own, Norms()) is own and examples.lend(bare, Norms(shape=(1, 9, 9))) is bare
    assert examples.lend(bare, Norms()) is not bare and bare.example is None


def test_norms_of_another_shape_are_another_cell(tmp_path):
    for side, measured in ((8, 1), (16, 1), (8, 0)):
        run = evaluate({"a": network()}, Norms(), tmp_path, example=(1, side, side))
        assert run.outcome.measured == measured
    key = cell_fingerprint(Subject(network()), Norms(), 0, Examples([], (1, 8, 8)))
    assert run.keys[0].fingerprint == key


def test_another_example_is_another_cell(tmp_path):
    """A convolution's norm follows from the size of the picture it is shown."""
    sizes = (8, 8, 12)
    runs = [evaluate(Subject(network(), example=(1, size, size)), Norms(), tmp_path / "run").outcome for size in sizes]
    assert [outcome.measured for outcome in runs if outcome is not None] == [1, 0, 1]
