from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import zoo
from assay import AssayError, Subject
from assay.measures.complexity.affine import folded_weights
from assay.measures.complexity.moved_weights import PerturbedWeights
from assay.measures.complexity.sharpness import EPSILON, KINDS, Sharpness, largest_within, reach
from assay.stimuli import Labelled

TENTH = 1.2815515655446004  # the standard normal exceeds it with probability 0.1


def value(table, quantity):
    (found,) = table[table.quantity == quantity].value
    return found


def one_margin(n, margin):
    """n inputs, each with weights of its own: all have the same margin, and independent noise."""
    net = nn.Linear(n, 2, bias=False)
    with torch.no_grad():
        net.weight[0], net.weight[1] = margin, 0.0
    return Subject(net), Labelled(np.eye(n), np.zeros(n, int))


def labelled_by(subject, pictures):
    return Labelled(pictures.numpy(), subject(pictures).argmax(1).numpy())


# -- closed forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.03, 2.0])
def test_sigma_of_a_linear_classifier_of_known_margin(margin):
    # The margin moves by N(0, 2σ²); one in ten is lost where margin/(√2·σ) = 1.28. Of 8 · 1,000 independent margins
    # the share has a standard error of 0.0034, and σ of 0.0034/0.225 = 1.5 %.
    subject, data = one_margin(1000, margin)
    table = Sharpness(data, kinds=("sigma",), draws=8, batch_size=1000, bootstrap=20)(subject)
    expected = margin / (sqrt(2) * TENTH)
    assert value(table, "sigma") == pytest.approx(expected, rel=0.045)
    assert value(table, "inverse squared sigma") == pytest.approx(value(table, "sigma") ** -2)
    assert value(table, "log inverse squared sigma") == pytest.approx(-2 * log(value(table, "sigma")))
    for row in table.itertuples():
        assert row.low <= row.value <= row.high and row.n == 1000 and row.status == "ok"


def test_sigma_relative_to_the_weights_does_not_depend_on_their_scale():
    # The margin 2 moves by N(0, 4σ² + 2ε²).
    found = []
    for margin in (2.0, 50.0):
        subject, data = one_margin(1000, margin)
        measure = Sharpness(data, kinds=("sigma magnitude",), draws=8, batch_size=1000, bootstrap=0)
        found.append(value(measure(subject), "sigma magnitude"))
        expected = sqrt((margin / TENTH) ** 2 - 2 * EPSILON**2) / margin
        assert found[-1] == pytest.approx(expected, rel=0.045)  # as above
    assert found[0] == pytest.approx(found[1], rel=1e-3)  # the same draws; one step of the search is 0.1 %


def test_alpha_of_a_linear_classifier_is_half_its_margin():
    # The worst corner of the box takes 2α off the margin; with magnitudes (α·m + ε) + ε.
    subject, data = one_margin(50, 2.0)
    table = Sharpness(data, kinds=("alpha", "alpha magnitude"), ascent=5, batch_size=50, bootstrap=0)(subject)
    # All inputs are lost at once, somewhere between two sizes 0.1 % apart.
    assert value(table, "alpha") == pytest.approx(1.0, rel=2e-3)
    assert value(table, "alpha magnitude") == pytest.approx((2 - 2 * EPSILON) / 2, rel=2e-3)


def test_alpha_finds_the_input_with_the_smallest_margin_where_chance_does_not():
    margins = torch.linspace(1, 2, 20)
    net = nn.Linear(20, 2, bias=False)
    with torch.no_grad():
        net.weight[0], net.weight[1] = margins, 0.0
    data = Labelled(np.eye(20), np.zeros(20, int))
    measure = Sharpness(data, kinds=("alpha",), drop=0.12, ascent=5, batch_size=12, bootstrap=0)
    # Two in twenty may be lost: until the third margin.
    assert value(measure(Subject(net)), "alpha") == pytest.approx(margins[2].item() / 2, rel=2e-3)


def test_bisection_finds_the_limit_and_says_beyond_which_end_it_lies():
    assert largest_within(lambda s: s**2, 0.25, 1e-5, 1e2, 20) == pytest.approx(0.5, rel=1e-4)
    assert largest_within(lambda s: 1.0, 0.1, 1e-5, 1e2, 10) == 0
    assert largest_within(lambda s: 0.0, 0.1, 1e-5, 1e2, 10) == np.inf


def test_reach_of_every_kind():
    weight = torch.tensor([0.0, 3.0], dtype=torch.float64)
    for kind, expected in {
        "sigma": [2, 2],
        "alpha": [2, 2],
        "sigma magnitude": [EPSILON, sqrt(36 + EPSILON**2)],
        "alpha magnitude": [EPSILON, 6 + EPSILON],
    }.items():
        np.testing.assert_allclose(reach(weight, 2.0, kind), expected, rtol=1e-12)  # type: ignore[arg-type]


# -- folding --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vgg", "resnet", "mlp"])
def test_the_folded_network_is_the_network(kind):
    subject = Subject(zoo.build(kind).double(), kind)
    x = zoo.images(4).double()
    folded = folded_weights(subject, zoo.SHAPE)
    with subject.showing():
        torch.testing.assert_close(torch.func.functional_call(subject.module, folded.tensors, (x,)), subject(x))
    norms = [m for m in subject.module.modules() if isinstance(m, nn.BatchNorm2d)]
    layers = [m for m in subject.module.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    biased = sum(m.bias is not None for m in layers)
    unbiased = len(layers) - biased
    assert len(folded.weights) == len(layers) + biased + (unbiased if norms else 0)


def test_scale_before_a_batch_norm_does_not_count():
    net = zoo.build("vgg")
    pictures = 3 * zoo.images(30)
    data = labelled_by(Subject(net), pictures)
    measure = Sharpness(data, draws=3, steps=10, bootstrap=0)
    before = measure(Subject(net))
    with torch.no_grad():
        net[0][0].weight *= 100
        net[0][0].bias *= 100
        net[0][1].running_mean *= 100
        net[0][1].running_var.copy_((net[0][1].running_var + 1e-5) * 1e4 - 1e-5)
    # Equal but for rounding; a picture at the boundary may move σ by a step of the search, 1.6 %.
    np.testing.assert_allclose(measure(Subject(net)).value, before.value, rtol=0.1)


class AroundNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.head = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.head(x + self.norm(x))


def test_where_folding_would_change_the_network_its_own_weights_are_moved():
    subject = Subject(AroundNorm())
    data = Labelled(np.random.default_rng(0).normal(size=(9, 4)), np.arange(9) % 2)
    with subject.showing():
        perturbed = PerturbedWeights(subject, data, 9)
        assert list(perturbed.weights) == [name for name, _ in subject.module.named_parameters()]
        np.testing.assert_array_equal(perturbed.right({}), subject(data.shown()).argmax(1).numpy() == data.labels)


class Imported(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("tensor0", weight)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.tensor0


def test_the_weights_of_an_imported_network_are_its_buffers():
    subject, data = one_margin(50, 2.0)
    measure = Sharpness(data, kinds=("alpha",), ascent=5, batch_size=50, bootstrap=0)
    imported = Subject(Imported(subject.module.weight.detach().T.clone()))
    assert value(measure(imported), "alpha") == value(measure(subject), "alpha")


# -- the measure ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_results_depend_on_the_seed_and_not_on_the_batch_size():
    subject = Subject(zoo.build("vgg"))
    data = labelled_by(subject, 3 * zoo.images(12))

    def found(**settings):
        return Sharpness(data, kinds=KINDS, draws=2, ascent=2, steps=5, bootstrap=5, **settings)(subject)

    first = found(batch_size=12)
    assert first.equals(found(batch_size=12))
    np.testing.assert_allclose(found(batch_size=7).value, first.value, rtol=0.02)  # rounding, as above
    assert not first.value.equals(found(batch_size=12, seed=1).value)


def test_weights_gradients_modes_and_random_state_are_left_bit_for_bit_even_after_an_error():
    net = zoo.build("resnet")
    subject = Subject(net)
    data = labelled_by(subject, zoo.images(6))
    before = {name: t.clone() for name, t in net.state_dict().items()}
    state = torch.random.get_rng_state()
    measure = Sharpness(data, kinds=KINDS, draws=2, ascent=2, steps=3, bootstrap=2)
    measure(subject)
    calls = 0

    def fails(module: nn.Module, args: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 10:
            raise OSError("out of the blue")

    hook = net.fc.register_forward_pre_hook(fails)  # type: ignore[union-attr]
    with pytest.raises(AssayError, match="OSError: out of the blue"):
        measure(subject)
    hook.remove()
    assert net.training and torch.is_grad_enabled() and torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in net.parameters())


def test_sizes_beyond_the_range_get_a_status():
    subject, data = one_margin(4, 1.0)
    wrong = Labelled(np.eye(4), np.ones(4, int))  # nothing to lose
    measure = Sharpness(wrong, kinds=("alpha",), steps=4, ascent=1)
    table = measure(subject)
    assert set(table.status) == {"above 100"} and table.value.isna().all()
    assert np.isnan(measure.predictors(table)["log inverse squared alpha"])
    subject, data = one_margin(4, 1e-9)
    table = Sharpness(data, kinds=("alpha magnitude",), steps=4, ascent=3)(subject)
    assert set(table.status) == {"below 1e-05"}


def test_predictors_are_the_logarithms():
    subject, data = one_margin(40, 1.0)
    measure = Sharpness(data, draws=2)
    assert set(measure.predictors(measure(subject))) == {
        "log inverse squared sigma", "log inverse squared sigma magnitude",
    }  # fmt: skip


def test_bad_settings_and_networks_are_errors():
    subject, data = one_margin(4, 1.0)
    for wrong in ({"drop": 0.0}, {"draws": 0}, {"ascent": 0}, {"steps": 0}, {"samples": 0}, {"batch_size": 0}):
        with pytest.raises(AssayError, match=f"{next(iter(wrong))}=0"):
            Sharpness(data, **wrong)  # type: ignore[arg-type]
    with pytest.raises(AssayError, match="kind='sigmas' is not known; did you mean 'sigma'"):
        Sharpness(data, kinds=("sigmas",))  # type: ignore[arg-type]
    with pytest.raises(AssayError, match="'Flatten' has no weights to move"):
        Sharpness(data)(Subject(nn.Flatten()))
    with pytest.raises(AssayError, match=r"distinguishes 2 classes, and the data .*have 4"):
        Sharpness(Labelled(np.eye(4), np.arange(4)))(subject)
    nn.init.constant_(subject.module.weight, float("nan"))
    with pytest.raises(AssayError, match="outputs that are not finite"):
        Sharpness(data)(subject)
