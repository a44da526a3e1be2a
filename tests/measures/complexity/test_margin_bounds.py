from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
import torch
from torch import nn

import zoo
from assay import AssayError, Subject
from assay.measures.complexity.distance import InitialDistance
from assay.measures.complexity.margin_bounds import (
    NOT_POSITIVE,
    MarginBounds,
    NormOverMargin,
    log_inverse_squared_margin,
)
from assay.measures.complexity.margins import Margins
from assay.measures.complexity.norms import Norms, path_norm
from assay.stimuli import Labelled


def by_quantity(table):
    return table[table["layer"] == ""].set_index("quantity")["value"]


def fitted(kind="vgg", n=30):
    """A network and inputs that it classifies as they are labelled."""
    net = zoo.build(kind).double().eval()
    x = torch.rand(n, *zoo.SHAPE, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        labels = net(x).argmax(1).numpy()
    labels[0] = 9  # there are as many classes as the network distinguishes
    return net, Labelled(x.float().numpy(), labels)


# -- closed forms ---------------------------------------------------------------------------------------


def test_norms_over_the_margin_of_a_network_of_two_layers_by_hand():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.diag(torch.tensor([3.0, 4.0])))
        net[2].weight.copy_(torch.diag(torch.tensor([2.0, 2.0])))
    data = Labelled(
        np.eye(2, dtype=np.float32), np.array([0, 1])
    )  # margins 6 and 8, the 10th percentile of which is 6.2
    start = {"0.weight": net[0].weight.detach() - 1.0, "2.weight": net[2].weight.detach()}
    found = by_quantity(MarginBounds(data, bootstrap=0)(Subject(net, initial_weights=start)))
    m = -2 * log(6.2)
    expected = {
        "log inverse squared margin": m,
        "log spectral product over margin": log(16 * 4) + m,
        "log frobenius product over margin": log(25 * 8) + m,
        "log spectral sum over margin": log(2 * sqrt(16 * 4 / 6.2**2)),
        "log frobenius sum over margin": log(2 * sqrt(25 * 8 / 6.2**2)),
        "log path norm over margin": log(sqrt(36 + 64) / 6.2),
        "log spectral complexity over margin": log(16 * 4 * (25 / 16 + 8 / 4)) + m,
        "log initial spectral complexity over margin": log(16 * 4 * (4 / 16)) + m,
    }
    # Scores are float32.
    assert found.to_dict() == pytest.approx(expected, rel=1e-6)


def test_a_percentile_is_interpolated_and_one_that_is_not_positive_has_no_logarithm():
    margins = np.arange(1.0, 12.0)  # the 10th percentile of 1 … 11 is 2
    assert log_inverse_squared_margin(margins) == pytest.approx(-2 * log(2), rel=1e-15)
    assert np.isnan(log_inverse_squared_margin(margins - 2)) and np.isnan(log_inverse_squared_margin(margins - 5))
    assert NormOverMargin("x", 1.0, 0.5).at(4.0) == 3.0


# -- references ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vgg", "resnet"])
def test_the_numbers_are_those_of_norms_and_distances_over_the_percentile_of_numpy(kind):
    net, data = fitted(kind)
    start = {
        name: 0.5 * t if t.is_floating_point() else t
        for name, t in zoo.build(kind, seed=3).double().state_dict().items()
    }
    subject = Subject(net, initial_weights=start, example=zoo.SHAPE)
    found = by_quantity(MarginBounds(data, samples=None, bootstrap=0)(subject))
    with torch.no_grad():
        scores = net(torch.tensor(data.inputs).double()).numpy()
    true = scores[np.arange(len(scores)), data.labels]
    rivals = np.where(np.arange(10) == data.labels[:, None], -np.inf, scores).max(1)
    gamma = np.quantile(true - rivals, 0.1)
    assert gamma > 0
    norms, distances = by_quantity(Norms()(subject)), by_quantity(InitialDistance()(subject))
    depth = norms["layers"]
    for kind_of in ("spectral", "frobenius"):
        product = np.exp(norms[f"log {kind_of} product"])
        # The same logarithms in another order.
        assert found[f"log {kind_of} product over margin"] == pytest.approx(np.log(product / gamma**2), rel=1e-9)
        balanced = depth * (product / gamma**2) ** (1 / depth)
        assert found[f"log {kind_of} sum over margin"] == pytest.approx(np.log(balanced), rel=1e-9)
    assert found["log path norm over margin"] == pytest.approx(np.log(path_norm(subject) / gamma), rel=1e-9)
    product = np.exp(norms["log spectral product"])
    orig, init = norms["stable rank"], distances["distance over spectral norm"]
    assert found["log spectral complexity over margin"] == pytest.approx(np.log(product * orig / gamma**2), rel=1e-9)
    assert found["log initial spectral complexity over margin"] == pytest.approx(
        np.log(product * init / gamma**2), rel=1e-9
    )
    margins = by_quantity(Margins(data, samples=None, bootstrap=0)(subject))
    assert found["log inverse squared margin"] == pytest.approx(margins["log inverse squared margin"], rel=1e-9)


# -- what changes nothing -------------------------------------------------------------------------------


def test_the_scale_of_the_scores_changes_no_norm_over_the_margin_but_that_of_the_distance():
    net, data = fitted("vgg")
    last = [m for m in net.modules() if isinstance(m, nn.Linear)][-1]
    subject = Subject(net, initial_weights=zoo.build("vgg", seed=3).double().state_dict())
    before = by_quantity(MarginBounds(data, bootstrap=0)(subject))
    with torch.no_grad():
        last.weight.mul_(5.0)
        last.bias.mul_(5.0)
    change = by_quantity(MarginBounds(data, bootstrap=0)(subject)) - before
    assert change.pop("log inverse squared margin") == pytest.approx(-2 * log(5))
    assert abs(change.pop("log initial spectral complexity over margin")) > 0.01  # the initial weights stay
    assert len(change) == 6 and change.to_numpy() == pytest.approx(np.zeros(6), abs=1e-9)


# -- intervals, what a study takes, and refusals ----------------------------------------------------------


def test_intervals_are_those_of_the_percentile_over_resamples_of_the_inputs():
    net, data = fitted("mlp", 200)
    measure = MarginBounds(data, bootstrap=100)
    measured = measure.measured(Subject(net))
    table = measured.table.set_index("quantity")
    margin, product = table.loc["log inverse squared margin"], table.loc["log spectral product over margin"]
    assert margin["low"] < margin["value"] < margin["high"] and set(table["n"]) == {200}
    shift = product["value"] - margin["value"]
    assert [product["low"] - shift, product["high"] - shift] == pytest.approx([margin["low"], margin["high"]])
    (evidence,) = measure.evidence(measured)
    assert evidence.value == product["value"] and len(evidence.draws) == 100


def test_a_study_takes_all_but_the_margin_and_expects_them_to_rise():
    net, data = fitted("mlp")
    measure = MarginBounds(data, bootstrap=0)
    table = measure(Subject(net))
    found = measure.predictors(table)
    assert {key.direction for key in found} == {1} and len(found) == 6 and "log inverse squared margin" not in found
    assert measure.budget(table) == "30 inputs" and not any("initial" in key for key in found)


def test_margins_that_are_not_positive_are_said_in_the_status():
    net, data = fitted("vgg")
    wrong = Labelled(data.inputs, (data.labels + 1) % 10)
    measure = MarginBounds(wrong, bootstrap=5)
    table = measure(Subject(net))
    assert set(table["status"]) == {NOT_POSITIVE} and table[["value", "low", "high"]].isna().all(axis=None)
    assert all(np.isnan(number) for number in measure.predictors(table).values())


def test_a_norm_that_is_missing_keeps_its_own_reason():
    net = nn.Sequential(nn.Flatten(), nn.Linear(zoo.SHAPE[0] * zoo.SHAPE[1] * zoo.SHAPE[2], 10), nn.Tanh())
    data = fitted("mlp")[1]
    table = MarginBounds(data, bootstrap=0)(Subject(net)).set_index("quantity")
    assert "not a network of affine maps" in table.status["log path norm over margin"]


def test_bad_input_is_one_sentence():
    for margins in (np.zeros(0), np.array([1.0, np.nan]), np.ones((2, 2))):
        with pytest.raises(AssayError, match="must be finite numbers in a row"):
            log_inverse_squared_margin(margins)
    _, data = fitted("mlp")
    with pytest.raises(AssayError, match="convolution='round'"):
        MarginBounds(data, "round")  # type: ignore[arg-type]
    with pytest.raises(AssayError, match="has no linear or convolutional layer"):
        MarginBounds(data).check(Subject(nn.Sequential(nn.Flatten(), nn.Softmax(1))))
