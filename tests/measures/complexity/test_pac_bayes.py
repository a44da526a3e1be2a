from __future__ import annotations

import re
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from torch import nn

import zoo
from assay import AssayError, Subject
from assay.core.determinism import seeded
from assay.measures.complexity.pac_bayes import CONSTANT, PacBayes, pac_bayes, pac_bayes_magnitude
from assay.measures.complexity.sharpness import EPSILON, Sharpness
from assay.stimuli import Labelled

SETTINGS = {"draws": 3, "steps": 8}


def labelled_by(net, n=40):
    x = torch.rand(n, *zoo.SHAPE, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        labels = net.eval()(x).argmax(1).numpy()
    labels[0] = 9
    return Labelled(x.numpy(), labels)


def divergence(mean, own, wide):
    """The Kullback–Leibler divergence of independent normal variables from others around zero, by its definition."""
    return 0.5 * (own / wide + mean**2 / wide - 1 - np.log(own / wide)).sum()


# -- closed forms and references for the functions -------------------------------------------------------------


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.floats(1e-3, 10), st.integers(1, 10**6))
def test_the_plain_measure_is_half_the_divergence_of_the_noise_from_its_twin_elsewhere(distance, sigma, m):
    d = np.array(distance)
    half = divergence(d, np.full(d.shape, sigma**2), sigma**2) / 2
    # Sums of a few numbers of up to 1e8.
    assert pac_bayes(d, sigma, m) == pytest.approx(half + log(m / sigma) + 10, rel=1e-9)


@pytest.mark.parametrize("epsilon", [EPSILON, 0.3])
def test_the_magnitude_measure_is_half_the_smallest_divergence_from_noise_alike_in_all_directions(epsilon):
    d, sigma, m = np.random.default_rng(0).normal(size=20), 0.4, 500
    own = sigma**2 * d**2 + epsilon**2
    found = optimize.minimize_scalar(
        lambda wide: divergence(d, own, np.exp(wide)), bounds=(-20, 20), options={"xatol": 1e-10}
    )
    expected = found.fun / 2 + log(m / sigma) + CONSTANT
    assert pac_bayes_magnitude(d, d, sigma, m, epsilon) == pytest.approx(expected, rel=1e-10)  # a flat minimum


def test_the_magnitude_measure_is_numpys_of_the_printed_formula():
    rng = np.random.default_rng(1)
    r, d, sigma, m = rng.normal(size=30), rng.normal(size=30), 0.7, 1000
    total = 0.0
    for one in d:
        total += np.log((EPSILON**2 + (sigma**2 + 1) * (r**2).sum() / 30) / (EPSILON**2 + sigma**2 * one**2))
    assert pac_bayes_magnitude(r, d, sigma, m) == pytest.approx(total / 4 + np.log(m / sigma) + 10, rel=1e-12)


def test_the_magnitude_measure_without_epsilon_does_not_depend_on_the_scale():
    d = np.random.default_rng(2).normal(size=10)
    one, other = (pac_bayes_magnitude(s * d, s * d, 0.5, 100, 0.0) for s in (1.0, 1000.0))
    assert one == pytest.approx(other, rel=1e-12)


def test_more_noise_makes_both_measures_smaller_and_more_distance_larger():
    d = np.array([1.0, 2.0])
    assert pac_bayes(d, 0.2, 10) > pac_bayes(d, 0.3, 10) and pac_bayes(2 * d, 0.2, 10) > pac_bayes(d, 0.2, 10)
    assert pac_bayes_magnitude(d, d, 0.2, 10) > pac_bayes_magnitude(d, d, 0.3, 10)


# -- the measure --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vgg():
    net = zoo.build("vgg")
    with seeded(0), torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_var.uniform_(0.5, 2.0)
                module.weight.uniform_(0.5, 2.0)
    start = {name: tensor.clone() for name, tensor in zoo.build("vgg", seed=1).state_dict().items()}
    return Subject(net.eval(), "vgg", initial_weights=start, example=zoo.SHAPE), labelled_by(net)


def test_the_table_is_that_of_sharpness_and_of_weights_that_torch_folds(vgg):
    subject, data = vgg
    found = PacBayes(data, bootstrap=0, **SETTINGS)(subject).set_index("quantity")["value"]
    sharp = Sharpness(data, bootstrap=0, **SETTINGS)(subject).set_index("quantity")["value"]
    w, w0 = (flat(module) for module in (subject.module, began(subject)))
    s, t = sharp["sigma"], sharp["sigma magnitude"]
    assert (found["sigma"], found["sigma magnitude"]) == (s, t)
    m, moved = len(data), w - w0

    def magnitude(reference):
        wide = EPSILON**2 + (t**2 + 1) * np.square(reference).mean()
        return np.log(wide / (EPSILON**2 + t**2 * moved**2)).sum() / 4 + np.log(m / t) + 10

    expected = {
        "pac-bayes init": np.square(moved).sum() / (4 * s**2) + np.log(m / s) + 10,
        "pac-bayes orig": np.square(w).sum() / (4 * s**2) + np.log(m / s) + 10,
        "pac-bayes flatness": 1 / s**2,
        "pac-bayes magnitude init": magnitude(moved),
        "pac-bayes magnitude orig": magnitude(w),
        "pac-bayes magnitude flatness": 1 / t**2,
    }
    # Folded weights are those of the network, in float32.
    assert found[list(expected)].to_dict() == pytest.approx(expected, rel=1e-5)


def began(subject):
    net = zoo.build("vgg")
    net.load_state_dict(subject.initial_weights)
    return net.eval()


def flat(net):
    """All weights and biases of the network with its batch norms folded by torch."""
    fused = []
    for module in net[0]:
        if isinstance(module, nn.BatchNorm2d):
            fused[-1] = nn.utils.fusion.fuse_conv_bn_eval(fused[-1], module)
        else:
            fused.append(module)
    whole = nn.Sequential(*fused, *list(net)[1:])
    return np.concatenate([p.detach().double().numpy().ravel() for p in whole.parameters()])


def test_intervals_are_of_the_noise_and_a_study_expects_all_to_rise(vgg):
    subject, data = vgg
    measure = PacBayes(data, bootstrap=30, samples=20, **SETTINGS)
    measured = measure.measured(subject)
    table = measured.table.set_index("quantity")
    for name in ("pac-bayes init", "pac-bayes magnitude orig"):
        assert table.low[name] <= table.value[name] <= table.high[name] and table.n[name] == 20
    assert table.high["pac-bayes flatness"] == pytest.approx(table.low["sigma"] ** -2, rel=0.05)  # of 30 resamples
    predictors = measure.predictors(measured.table)
    assert {key.direction for key in predictors} == {1} and len(predictors) == 6
    assert measure.budget(measured.table) == "20 inputs × 3 draws"
    (evidence,) = measure.evidence(measured)
    assert len(evidence.draws) == 30 and evidence.better == "lower"
    # m is the number of all inputs, of which 20 are shown
    w, w0 = (flat(module) for module in (subject.module, began(subject)))
    expected = pac_bayes(w - w0, table.value["sigma"], len(data))
    assert table.value["pac-bayes init"] == pytest.approx(expected, rel=1e-5)


def test_the_page_lists_every_quantity_of_the_table():
    net = nn.Linear(4, 2, bias=False)
    subject = Subject(net, initial_weights={"weight": torch.zeros(2, 4)})
    data = Labelled(np.eye(4, dtype=np.float32), np.zeros(4, dtype=int))
    table = PacBayes(data, bootstrap=0, **SETTINGS)(subject)
    page = (Path(__file__).parents[3] / "docs" / "measures" / "pac-bayes.md").read_text()
    listed = {name for row in re.findall(r"^\| (`.*?) \|", page, re.M) for name in re.findall(r"`(.+?)`", row)}
    assert listed == set(table["quantity"])


def test_a_size_out_of_reach_is_said_and_has_no_bound():
    net = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        net.weight.fill_(0.0)  # all scores are equal: the first class, whatever the size
        net.weight[0] = 1e6
    data = Labelled(np.ones((4, 2), np.float32), np.array([0, 0, 0, 0]))
    subject = Subject(net, initial_weights={"weight": torch.zeros(2, 2)})
    table = PacBayes(data, bootstrap=0, **SETTINGS)(subject).set_index("quantity")
    assert table.status["pac-bayes init"] == "above 100" and np.isnan(table.value["pac-bayes init"])


def test_bad_input_is_one_sentence(vgg):
    subject, data = vgg
    one = np.ones(2)
    for wrong in (lambda: pac_bayes(np.array([np.nan]), 1.0, 1), lambda: pac_bayes(np.zeros(0), 1.0, 1)):
        with pytest.raises(AssayError, match="give at least one, all of them finite"):
            wrong()
    for sigma in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(AssayError, match="must be positive and finite"):
            pac_bayes(one, sigma, 1)
    with pytest.raises(AssayError, match="inputs=0"):
        pac_bayes_magnitude(one, one, 1.0, 0)
    with pytest.raises(AssayError, match="2 and 3 weights"):
        pac_bayes_magnitude(one, np.ones(3), 1.0, 1)
    with pytest.raises(AssayError, match="must be positive where a weight has not moved"):
        pac_bayes_magnitude(one, np.array([0.0, 1.0]), 1.0, 1, 0.0)
    with pytest.raises(AssayError, match="drop=2"):
        PacBayes(data, drop=2.0)
    bare = Subject(subject.module, "bare")
    for ask in (PacBayes(data).check, PacBayes(data)):
        with pytest.raises(AssayError, match="'bare' does not say what its weights were before training"):
            ask(bare)


class _TurnsGradientsOff(nn.Module):
    """A network whose code changes a mode of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        torch.set_grad_enabled(False)
        return self.layer(x)


def test_modes_of_torch_and_of_the_network_are_left_as_they_are_found():
    net = _TurnsGradientsOff().train()
    start = {name: torch.zeros_like(tensor) for name, tensor in net.state_dict().items()}
    data = Labelled(np.eye(2, dtype=np.float32), np.array([0, 1]))
    PacBayes(data, bootstrap=0, **SETTINGS)(Subject(net, initial_weights=start))
    assert torch.is_grad_enabled() and net.training
