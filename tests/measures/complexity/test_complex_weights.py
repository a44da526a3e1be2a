"""Complex weights: they count with |w|², or as two real weights, their real and imaginary parts."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from torch import nn

from assay import AssayError, Subject
from assay.core.determinism import seeded
from assay.measures.complexity.clusters import ClusterSeparation, davies_bouldin_index
from assay.measures.complexity.distance import InitialDistance
from assay.measures.complexity.margin_bounds import MarginBounds
from assay.measures.complexity.norms import Norms, convolution_norm, spectral_norm
from assay.measures.complexity.pac_bayes import PacBayes, pac_bayes, pac_bayes_magnitude
from assay.measures.complexity.sharpness import KINDS, Sharpness, reach
from assay.stimuli.labelled import Labelled


def drawn(*shape, seed=0):
    with seeded(seed):
        return torch.randn(*shape, dtype=torch.complex128)


def values(table):
    return table[table["layer"] == ""].set_index("quantity")["value"]


class Moduli(nn.Module):
    """Class scores are the absolute values of a linear map, of complex weights or of pairs of real numbers."""

    def __init__(self, weight, pairs=False):
        super().__init__()
        self.pairs = pairs
        self.weight = nn.Parameter(torch.view_as_real(weight).clone() if pairs else weight.clone())

    def forward(self, x):
        weight = torch.view_as_complex(self.weight) if self.pairs else self.weight
        return (x.to(weight.dtype) @ weight.T).abs()


class Modulus(nn.Module):
    def forward(self, x):
        return x.abs()


class Complex(nn.Module):
    def forward(self, x):
        return x.to(torch.complex64)


def layered():
    return nn.Sequential(Complex(), nn.Linear(3, 4, dtype=torch.complex64), Modulus(), nn.Linear(4, 2))


def classified(net, n=60):
    """Inputs labelled with what the network says of them."""
    x = np.random.default_rng(3).normal(size=(n, 3)).astype(np.float32)
    with torch.no_grad():
        return Labelled(x, net(torch.from_numpy(x)).argmax(1).numpy())


# -- closed forms ---------------------------------------------------------------------------------------


def test_four_weights_that_moved_by_3i_are_6_away():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 2)
            self.scale = nn.Parameter(torch.ones(4, dtype=torch.complex64))

        def forward(self, x):
            return self.linear((x * self.scale).real)

    net = Scaled()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with torch.no_grad():
        net.scale += 3j
    table = InitialDistance(shape=(4,))(Subject(net, initial_weights=before))
    assert values(table)["parameter distance"] == 6.0  # √(4·3²), whole numbers in float64


def test_norms_of_a_network_of_one_complex_and_one_real_weight():
    complex_layer, real_layer = nn.Linear(1, 1, bias=False, dtype=torch.complex64), nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        complex_layer.weight.fill_(3 + 4j), real_layer.weight.fill_(-2.0)
    table = Norms(shape=(1,))(Subject(nn.Sequential(Complex(), complex_layer, Modulus(), real_layer)))
    assert list(table[table["quantity"] == "frobenius norm"]["value"]) == [5.0, 2.0]
    found = values(table)
    assert found["log path norm"] == pytest.approx(log(10), rel=1e-12)  # |3 + 4i|·|−2|
    assert found["log spectral product"] == pytest.approx(2 * log(10), rel=1e-12)
    assert found["parameters"] == 3
    assert np.isnan(found["vc dimension"])
    assert table.set_index("quantity")["status"]["vc dimension"] == "of real weights only"


def test_a_number_that_multiplies_counts_with_its_absolute_value():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(1, 1, bias=False)

        def forward(self, x):
            return (self.linear(x) * 2j).abs()

    net = Turned()
    with torch.no_grad():
        net.linear.weight.fill_(3.0)
    assert values(Norms(shape=(1,))(Subject(net)))["log path norm"] == pytest.approx(log(6), rel=1e-12)


def test_pac_bayes_measures_of_a_complex_distance_are_those_of_its_two_parts():
    d = drawn(5)
    parts = torch.view_as_real(d)
    assert pac_bayes(d, 0.5, 100) == pac_bayes(parts, 0.5, 100)
    assert pac_bayes(torch.tensor([3.0 + 4.0j]), 0.5, 100) == pac_bayes(torch.tensor([5.0]), 0.5, 100)
    assert pac_bayes_magnitude(d, d, 0.5, 100) == pac_bayes_magnitude(parts, parts, 0.5, 100)


# -- references ------------------------------------------------------------------------------------------


def test_spectral_norm_is_that_of_numpy():
    weight = drawn(4, 6)
    assert spectral_norm(weight) == pytest.approx(np.linalg.norm(weight.numpy(), 2), rel=1e-12)


def test_norm_of_a_complex_convolution_is_that_of_its_whole_matrix():
    kernel = drawn(2, 3, 3)
    ones = torch.eye(3 * 8, dtype=torch.complex128).reshape(24, 3, 8)
    wrapped = torch.cat([ones[..., -1:], ones, ones[..., :1]], dim=2)
    matrix = torch.nn.functional.conv1d(wrapped, kernel, stride=2).flatten(1)
    assert convolution_norm(kernel, [8], 2) == pytest.approx(np.linalg.norm(matrix.numpy(), 2), rel=1e-12)


def test_distances_of_layers_are_those_of_numpy():
    with seeded(1):
        net, start = layered(), layered().state_dict()
    table = InitialDistance(shape=(3,))(Subject(net, initial_weights=start))
    moved = {name: (t.detach().to(start[name]) - start[name]).numpy() for name, t in net.named_parameters()}
    spectral = [np.linalg.norm(moved[name], 2) for name in ("1.weight", "3.weight")]
    # Weights are subtracted in float64 here and in float32 there.
    assert list(table[table["quantity"] == "spectral distance"]["value"]) == pytest.approx(spectral, rel=1e-5)
    whole = np.sqrt(sum((np.abs(m) ** 2).sum() for m in moved.values()))
    assert values(table)["parameter distance"] == pytest.approx(whole, rel=1e-5)


def test_sharpness_and_pac_bayes_are_those_of_the_network_with_pairs_of_real_weights():
    weight, start = drawn(3, 3, seed=1).to(torch.complex64), drawn(3, 3, seed=2).to(torch.complex64)
    whole = Subject(Moduli(weight), "n", initial_weights={"weight": start})
    pairs = Subject(Moduli(weight, pairs=True), "n", initial_weights={"weight": torch.view_as_real(start)})
    data = classified(Moduli(weight))
    few = {"draws": 3, "steps": 8, "bootstrap": 0}
    # The same draws of the same numbers: equal to the bit.
    sharp = [Sharpness(data, KINDS, ascent=5, **few)(subject)["value"].tolist() for subject in (whole, pairs)]
    assert sharp[0] == sharp[1] and np.isfinite(sharp[0]).all()
    bounds = [PacBayes(data, **few)(subject)["value"].tolist() for subject in (whole, pairs)]
    assert bounds[0] == bounds[1] and np.isfinite(bounds[0]).all()


def test_margin_bounds_are_norms_over_the_margin():
    with seeded(1):
        net = layered()
    data = classified(net)
    table = values(MarginBounds(data, bootstrap=0)(Subject(net)))
    norms = values(Norms(shape=(3,))(Subject(net)))
    product = norms["log spectral product"] + table["log inverse squared margin"]
    assert table["log spectral product over margin"] == pytest.approx(product, rel=1e-12)
    path = norms["log path norm"] + table["log inverse squared margin"] / 2
    assert table["log path norm over margin"] == pytest.approx(path, rel=1e-12)


def test_separation_of_a_complex_layer_is_that_of_its_two_parts():
    with seeded(1):
        net = layered()
    data = classified(net)
    responses = net[1](torch.tensor(data.inputs.copy()).to(torch.complex64)).detach()
    expected = davies_bouldin_index(torch.view_as_real(responses).flatten(1), data.labels)
    assert davies_bouldin_index(responses, data.labels) == expected
    (found,) = ClusterSeparation(data, "1", rounds=1, bootstrap=0)(Subject(net))["value"]
    assert found == pytest.approx(expected, rel=1e-6)  # sums over inputs in another order


# -- refusals --------------------------------------------------------------------------------------------


def test_the_reach_of_complex_weights_and_the_maximum_of_complex_maps_are_refused():
    with pytest.raises(AssayError, match="complex weights have no reach"):
        reach(drawn(2), 0.1, "sigma magnitude")
    net = nn.Sequential(Complex(), nn.Conv2d(1, 2, 3, dtype=torch.complex64), Modulus(), nn.Flatten())
    data = Labelled(np.random.default_rng(0).normal(size=(8, 1, 6, 6)).astype(np.float32), np.arange(8) % 2)
    with pytest.raises(AssayError, match="complex maps cannot be pooled by their maximum: give pool=1"):
        ClusterSeparation(data, "1")(Subject(net))
    assert np.isfinite(ClusterSeparation(data, "1", pool=1)(Subject(net))["value"]).all()
