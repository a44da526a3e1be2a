from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import zoo
from assay import AssayError, Subject
from assay.core.determinism import seeded
from assay.measures.complexity.distance import InitialDistance, distance_totals, log_spectral_complexity
from assay.measures.complexity.norms import Norms


def state(net):
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}


def value(table, quantity, layer=""):
    (found,) = table[(table["quantity"] == quantity) & (table["layer"] == layer)]["value"]
    return found


def trained(kind="vgg"):
    """A network whose weights and statistics of batch norm are not those it began with."""
    net = zoo.build(kind, seed=1).double()
    before = state(net)
    with seeded(2), torch.no_grad():
        for tensor in [*net.parameters(), *net.buffers()]:
            if tensor.is_floating_point():
                tensor.mul_(1 + 0.5 * torch.rand_like(tensor)).add_(0.1 * torch.rand_like(tensor))
    return net.eval(), before


# -- closed forms ---------------------------------------------------------------------------------------


def test_distances_of_two_layers_that_moved_by_known_matrices():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    before = state(net)
    with torch.no_grad():
        net[0].weight.copy_(torch.diag(torch.tensor([2.0, 1.0])))
        net[2].weight.copy_(torch.diag(torch.tensor([1.0, 5.0])))
    before["0.weight"] = net[0].weight.detach() - torch.diag(torch.tensor([3.0, 4.0]))
    before["2.weight"] = net[2].weight.detach() - torch.diag(torch.tensor([12.0, 5.0]))
    before["2.bias"] = net[2].bias.detach() - 1.0
    table = InitialDistance(shape=(2,))(Subject(net, initial_weights=before))
    # Weights are float32: differences of small whole numbers are exact, those of biases to 1e-7.
    assert [value(table, "frobenius distance", layer) for layer in ("0", "2")] == [5.0, 13.0]
    assert value(table, "spectral distance", "0") == pytest.approx(4.0, rel=1e-12)
    assert value(table, "spectral distance", "2") == pytest.approx(12.0, rel=1e-12)
    assert value(table, "squared frobenius distance") == pytest.approx(25 + 169, rel=1e-12)
    assert value(table, "squared spectral distance") == pytest.approx(16 + 144, rel=1e-12)
    assert value(table, "distance over spectral norm") == pytest.approx(25 / 4 + 169 / 25, rel=1e-12)
    expected = log(4 * 25 * (25 / 4 + 169 / 25))
    assert value(table, "log initial spectral complexity") == pytest.approx(expected, rel=1e-12)
    assert value(table, "parameter distance") == pytest.approx(sqrt(25 + 169 + 2), rel=1e-6)
    assert set(table["status"]) == {"ok"} and set(table[table["layer"] == ""]["n"]) == {2}


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0, 9)), min_size=1, max_size=5), st.floats(0.1, 10))
def test_spectral_complexity_grows_with_the_scale_of_a_layer_as_the_product_does(layers, scale):
    norms, distances = (np.array(column) for column in zip(*layers, strict=True))
    if not distances.any():
        distances[0] = 1.0
    scaled = np.r_[norms[0] * scale, norms[1:]], np.r_[distances[0] * scale, distances[1:]]
    change = log_spectral_complexity(*scaled) - log_spectral_complexity(norms, distances)
    assert change == pytest.approx(2 * log(scale), abs=1e-9)  # logarithms of numbers below 1e20


# -- references ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mlp", "vgg", "resnet"])
def test_distances_are_those_of_numpy_on_kernels_that_torch_folds(kind):
    net, before = trained(kind)
    table = InitialDistance()(Subject(net, initial_weights=before, example=zoo.SHAPE))
    start = zoo.build(kind, seed=1).double().eval()
    start.load_state_dict(before)
    layers = [m for m in table["layer"].unique() if m]
    frobenius, spectral, norms = [], [], []
    for layer in layers:
        w, w0 = (folded(one, layer) for one in (net, start))
        frobenius.append(np.linalg.norm(w - w0))
        spectral.append(np.linalg.svd((w - w0).reshape(len(w), -1), compute_uv=False)[0])
        norms.append(np.linalg.svd(w.reshape(len(w), -1), compute_uv=False)[0])
        # Folding and singular values in float64, in another order.
        assert value(table, "frobenius distance", layer) == pytest.approx(frobenius[-1], rel=1e-10)
        assert value(table, "spectral distance", layer) == pytest.approx(spectral[-1], rel=1e-10)
    relative = np.square(frobenius) / np.square(norms)
    whole = {
        "squared frobenius distance": np.square(frobenius).sum(),
        "squared spectral distance": np.square(spectral).sum(),
        "distance over spectral norm": relative.sum(),
        "log initial spectral complexity": np.log(np.prod(np.square(norms)) * relative.sum()),
        "parameter distance": np.sqrt(
            sum(np.square(p.detach().numpy() - before[n].numpy()).sum() for n, p in net.named_parameters())
        ),
    }
    for quantity, expected in whole.items():
        assert value(table, quantity) == pytest.approx(expected, rel=1e-10), quantity


def folded(net, layer):
    """The kernel of a layer with the batch norm that follows it in the network's own list of modules."""
    modules = [(name, m) for name, m in net.named_modules() if not list(m.children())]
    place = [name for name, _ in modules].index(layer)
    module = modules[place][1]
    after = modules[place + 1][1] if place + 1 < len(modules) else None
    if isinstance(module, nn.BatchNorm2d):
        return (module.weight / (module.running_var + module.eps).sqrt()).detach().numpy()[:, None]
    if isinstance(after, nn.BatchNorm2d):
        module = nn.utils.fusion.fuse_conv_bn_eval(module, after)
    return module.weight.detach().numpy()


# -- what changes nothing -------------------------------------------------------------------------------


def test_the_scale_of_a_trained_weight_before_a_batch_norm_changes_no_distance_of_layers():
    def net(scale):
        made = nn.Sequential(
            nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2, eps=0.0), nn.Flatten(), nn.Linear(2, 2)
        ).double()
        with seeded(0), torch.no_grad():
            for p in made.parameters():
                p.copy_(torch.randn(p.shape))
            made[0].weight.mul_(scale)
            made[1].running_var.fill_(scale**2)
        return made.eval()

    before = {name: torch.ones_like(tensor) for name, tensor in net(1.0).state_dict().items()}
    one, other = (InitialDistance(shape=(1, 3, 3))(Subject(net(s), initial_weights=before)) for s in (1.0, 7.0))
    same = one["quantity"] != "parameter distance"
    assert one["value"][same].to_numpy() == pytest.approx(other["value"][same].to_numpy(), rel=1e-12)
    assert one["value"].iloc[-1] != other["value"].iloc[-1]


def test_biases_count_in_the_parameter_distance_alone():
    net = nn.Linear(2, 2)
    before = state(net)
    with torch.no_grad():
        net.bias.add_(3.0)
    table = InitialDistance(shape=(2,))(Subject(net, initial_weights=before))
    assert value(table, "squared frobenius distance") == 0 and value(table, "parameter distance") == pytest.approx(
        sqrt(18), rel=1e-6
    )
    assert "no layer moved" in table.set_index("quantity").status["log initial spectral complexity"]


def test_from_an_origin_the_distances_are_the_norms():
    net, before = trained("mlp")
    origin = {name: torch.zeros_like(tensor) for name, tensor in before.items()}
    subject = Subject(net, initial_weights=origin, example=zoo.SHAPE)
    table, norms = InitialDistance()(subject), Norms()(subject)
    assert value(table, "squared frobenius distance") == pytest.approx(value(norms, "parameter norm"), rel=1e-12)
    assert value(table, "distance over spectral norm") == pytest.approx(value(norms, "stable rank"), rel=1e-12)


def test_the_circular_norm_of_a_convolution_is_taken_where_it_is_asked_for():
    net, before = trained("vgg")
    subject = Subject(net, initial_weights=before, example=zoo.SHAPE)
    reshaped, circular = (
        value(InitialDistance(how)(subject), "squared spectral distance") for how in ("reshaped", "circular")
    )
    assert circular > reshaped


# -- what a study takes, and refusals ----------------------------------------------------------------------


def test_all_numbers_of_the_network_are_expected_to_rise_and_rest_on_no_inputs():
    net, before = trained("mlp")
    measure = InitialDistance()
    table = measure(Subject(net, initial_weights=before, example=zoo.SHAPE))
    found = measure.predictors(table)
    assert {key: key.direction for key in found} == dict.fromkeys(table[table["layer"] == ""]["quantity"], 1)
    assert len(found) == 5 and measure.budget(table) == ""
    assert measure.evidence(measure.measured(Subject(net, initial_weights=before, example=zoo.SHAPE)))[0].exact


def test_what_has_no_distance_is_refused():
    with pytest.raises(AssayError, match="convolution='round' is not"):
        InitialDistance(convolution="round")  # type: ignore[arg-type]
    for norms, distances in (([1.0], [1.0, 2.0]), ([], []), ([0.0], [1.0]), ([1.0], [0.0]), ([np.nan], [1.0])):
        with pytest.raises(AssayError, match=r"give one of each|must be positive"):
            log_spectral_complexity(norms, distances)
    assert np.isnan(distance_totals([1.0, 1.0], [1.0, 1.0], [1.0, 0.0])["log initial spectral complexity"])
    poisoned, before = trained("mlp")
    with torch.no_grad():
        next(poisoned.parameters()).fill_(torch.nan)
    with pytest.raises(AssayError, match="are not finite"):
        InitialDistance()(Subject(poisoned, initial_weights=before, example=zoo.SHAPE))
