"""What measures cannot be asked of is said in one sentence, never by an error of torch, pandas or Python."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import assay
from assay import AssayError, Subject
from assay.core.determinism import seeded
from assay.stimuli import Labelled, as_images, as_labelled, camera_sequences

DATA = Labelled(np.random.default_rng(0).random((60, 1, 8, 8), np.float32), np.arange(60) % 3)
OF_CLASSES = (
    assay.Margins(DATA, bootstrap=0),
    assay.PerturbationResponse(DATA, "intra"),
    assay.Sharpness(DATA, draws=1, steps=1, samples=50),
    assay.AugmentationRobustness(DATA),
)


class Net(nn.Module):
    """Two layers, and something that is done to the scores."""

    def __init__(self, last=lambda y: y):
        super().__init__()
        with seeded(0):
            self.a, self.b = nn.Linear(64, 16), nn.Linear(16, 3)
        self.last = last

    def forward(self, x):
        return self.last(self.b(torch.relu(self.a(x.flatten(1)))))


def said(do) -> str:
    with pytest.raises(AssayError) as raised:
        do()
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("measure", OF_CLASSES, ids=lambda m: m.name)
@pytest.mark.parametrize("last", [lambda y: torch.complex(y, y), lambda y: y > 0], ids=["complex", "bool"])
def test_outputs_that_are_no_scores_are_refused_by_check_and_when_asked(measure, last):
    for ask in (measure.check, measure):
        assert "outputs, which are no scores of classes" in said(lambda ask=ask: ask(Net(last)))


def test_scores_without_a_gradient_have_no_margins_inside():
    for ask in (OF_CLASSES[0].check, OF_CLASSES[0]):
        assert "gives scores without a gradient" in said(lambda ask=ask: ask(Net(torch.Tensor.detach)))


def test_a_network_for_one_input_at_a_time_is_told_how_many_it_was_shown():
    class One(Net):
        def forward(self, x):
            return super().forward(x.reshape(1, 64))

    assert "inputs of shape (1, 8, 8), 32 at a time" in said(lambda: OF_CLASSES[0](One()))


def test_arguments_by_name_only_are_told_of_a_mapping():
    class Named(Net):
        def forward(self, *, x):
            return super().forward(x)

    assert "give its inputs as a mapping by the names" in said(lambda: OF_CLASSES[0](Named()))
    by_name = Labelled({"x": DATA.inputs}, DATA.labels)
    assert len(assay.Margins(by_name, bootstrap=0)(Named()))


@pytest.mark.parametrize("wrap", [nn.utils.weight_norm, nn.utils.spectral_norm])
@pytest.mark.filterwarnings("ignore")
def test_norms_of_weights_that_a_hook_computes_are_those_of_the_weights(wrap):
    wrapped, plain = Net(), Net()
    for layer in (wrapped.a, wrapped.b):
        wrap(layer)
    wrapped(torch.rand(2, 1, 8, 8))  # now the weights are part of a graph, which torch does not copy
    wrapped.eval()(torch.rand(2, 1, 8, 8))
    with torch.no_grad():
        for own, other in ((plain.a, wrapped.a), (plain.b, wrapped.b)):
            own.weight.copy_(other.weight)
            own.bias.copy_(other.bias)
    of_both = [assay.Norms(shape=(1, 8, 8))(net).set_index(["quantity", "layer"]).value for net in (wrapped, plain)]
    for quantity in ("frobenius norm", "spectral norm", "log spectral product", "log path norm"):
        np.testing.assert_allclose(of_both[0][quantity], of_both[1][quantity], rtol=1e-5)


def test_weights_that_torch_does_not_see_lead_to_the_output_are_not_called_missing():
    class InNumpy(Net):
        def forward(self, x):
            a, b = (layer.weight.detach().numpy() for layer in (self.a, self.b))
            return torch.from_numpy(np.maximum(x.flatten(1).detach().numpy() @ a.T, 0) @ b.T)

    assert "do not lead to its output by operations of torch" in said(lambda: assay.Norms(shape=(1, 8, 8))(InNumpy()))


def test_settings_that_a_measure_does_not_have_or_lacks_are_named_with_those_it_has():
    listed = "its settings are data, layers, percentiles, samples, bootstrap, seed, batch_size"
    assert said(lambda: assay.Margins(foo=1)) == f"Margins has no setting 'foo': {listed}"
    assert said(lambda: assay.Margins()) == f"Margins: missing a required argument: 'data'; {listed}"
    assert list(inspect.signature(assay.Norms).parameters) == ["convolution", "shape"]
    assert pickle.loads(pickle.dumps(assay.Norms(shape=(3,)))) == assay.Norms(shape=(3,))
    assert "shape=(1, -8, 8) is not the shape of one input" in said(lambda: assay.Norms(shape=(1, -8, 8)))
    assert "example=(1, -8, 8) is not the shape" in said(lambda: Subject(Net(), example=(1, -8, 8)).layers)


def test_tensors_without_values_are_refused():
    empty = torch.zeros(4, 1, 8, 8, device="meta")
    for use in (lambda: as_labelled((empty, [0, 1, 0, 1])), lambda: as_images(empty), lambda: Subject(Net())(empty)):
        assert "meta device" in said(use)


def test_a_path_that_a_table_lacks_is_named():
    table = pd.DataFrame({"path": ["a.png", None, "b.png"], "label": [0, 1, 0]})
    assert "input 1 among paths: give a path for every input" in said(lambda: as_labelled(table))
    assert "names the picture 'a.png'" in said(lambda: as_labelled((np.array(["a.png", "b.png"]), [0, 1])))


def test_a_table_of_something_else_is_not_plotted(tmp_path):
    straightness = assay.Straightness(camera_sequences(8, length=4, pictures=1, color="grey"))
    norms = assay.Norms(shape=(1, 8, 8))(Net())
    for table in (norms, pd.DataFrame({"a": [1]})):
        assert "is none that the measure 'straightness' returns" in said(lambda table=table: straightness.plot(table))
    run = assay.evaluate(Net(), assay.Norms(shape=(1, 8, 8)), tmp_path)
    for wrong in (3, straightness):
        assert "this run has no measure" in said(lambda wrong=wrong: run.plot(wrong))
