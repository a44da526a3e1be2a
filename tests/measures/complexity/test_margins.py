from __future__ import annotations

import itertools
from math import log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor, nn

import zoo
from assay import AssayError, Subject
from assay.measures.complexity.margins import Margins, boundary_distances, output_margins, quartile_signature
from assay.stimuli import Labelled, Normalize
from assay.subject.gradients import differentiate


def value(table, quantity, layer=""):
    (found,) = table[(table.quantity == quantity) & (table.layer == layer)].value
    return found


def classified(kind="vgg", n=12, seed=0):
    """A network, and pictures labelled as it says, but for every third."""
    subject = Subject(zoo.build(kind), kind)
    pictures = 3 * zoo.images(n, seed)
    said = subject(pictures).argmax(1).numpy()
    said[::3] = (said[::3] + 1) % 10
    return subject, Labelled(pictures.numpy(), said)


# -- pure functions -------------------------------------------------------------------------------------


@given(
    hnp.arrays(np.float64, (5, 4), elements=st.floats(-100, 100)), st.lists(st.integers(0, 3), min_size=5, max_size=5)
)
def test_margins_are_true_score_less_the_best_other(scores, labels):
    expected = [row[y] - max(v for j, v in enumerate(row) if j != y) for row, y in zip(scores, labels, strict=True)]
    np.testing.assert_array_equal(output_margins(scores, np.array(labels)).numpy(), expected)


def test_bad_scores_and_labels_are_errors():
    with pytest.raises(AssayError, match=r"scores of shape \(3, 1\)"):
        output_margins(np.zeros((3, 1)), np.zeros(3, int))
    with pytest.raises(AssayError, match="labels from 0 to 2 are not classes 0 … 1"):
        output_margins(np.zeros((2, 2)), np.array([0, 2]))


def test_signature_of_one_to_nine_and_an_outlier():
    values = np.array([*range(1, 10), 50.0])
    # NumPy's quartiles of ten values: 3.25, 5.5, 7.75; fences within 1.5 · 4.5 of the outer ones.
    np.testing.assert_allclose(quartile_signature(values), [1, 3.25, 5.5, 7.75, 9])
    np.testing.assert_allclose(quartile_signature(np.array([2.0])), 2)
    with pytest.raises(AssayError, match="needs finite values, at least one"):
        quartile_signature(np.array([]))


def test_a_zero_gradient_has_no_distance():
    assert boundary_distances(torch.tensor([1.0, 2.0]), torch.tensor([[0.0], [4.0]])).isnan().tolist() == [True, False]


# -- closed forms ---------------------------------------------------------------------------------------


def test_two_linear_layers_by_hand():
    net = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Linear(2, 3))
    first, second = (
        torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
        torch.tensor([[2.0, 1.0], [0.0, 1.0], [-1.0, 0.0]]),
    )
    bias = torch.tensor([0.5, 0.0, 0.0])
    with torch.no_grad():
        net[0].weight.copy_(first)
        net[1].weight.copy_(second)
        net[1].bias.copy_(bias)
    x = torch.tensor([[1.0, 1.0, 0.0], [2.0, 0.0, -1.0], [-4.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    labels = np.array([0, 0, 2, 1])  # f is linear: the first three are right
    f = x @ first.T @ second.T + bias
    margins = torch.stack([f[0, 0] - f[0, 1], f[1, 0] - f[1, 1], f[2, 2] - f[2, 1], f[3, 1] - f[3, 0]])
    assert (margins > 0).tolist() == [True, True, True, False]
    slopes = torch.stack([second[0] - second[1], second[0] - second[1], second[2] - second[1]])
    table = Margins(Labelled(x.numpy(), labels), layers="0", bootstrap=0)(Subject(net))
    assert value(table, "accuracy") == 0.75
    assert value(table, "mean margin") == pytest.approx(margins.mean().item())
    assert value(table, "margin p10") == pytest.approx(np.percentile(margins.numpy(), 10))
    for layer, values, gradient in (("input", x, slopes @ first), ("0", x @ first.T, slopes)):
        spread = (values - values.mean(0)).square().sum(1).mean()
        expected = (margins[:3] / gradient.norm(dim=1) / spread.sqrt()).numpy()
        assert value(table, "total variation", layer) == pytest.approx(spread.item())
        assert value(table, "normalised margin mean", layer) == pytest.approx(expected.mean())
        assert value(table, "normalised margin median", layer) == pytest.approx(np.median(expected))
        assert value(table, "normalised margin p90", layer) == pytest.approx(np.percentile(expected, 90))
    assert table[table.quantity.str.startswith("normalised")].n.unique().tolist() == [3]
    assert table.set_index("quantity").status["log inverse squared margin"] == "the 10th percentile is not positive"


def test_a_linear_network_says_its_true_distance_from_the_boundary():
    # Two classes on either side of the plane w·x = 0: the distance is |w·x|/‖w‖.
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=5), rng.normal(size=(40, 5))
    net = nn.Linear(5, 2, bias=False).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor(np.stack([w, -w])))
    data = Labelled(x, (x @ w < 0).astype(int))
    x = data.inputs.astype(np.float64)  # kept in float32
    distance = abs(x @ w) / np.linalg.norm(w) / sqrt(x.var(0).sum())
    table = Margins(data, bootstrap=0)(Subject(net))
    np.testing.assert_allclose(
        [value(table, f"normalised margin {s}", "input") for s in ("lower quartile", "median", "upper quartile")],
        np.quantile(distance, (0.25, 0.5, 0.75)),
        rtol=1e-6,
    )
    assert value(table, "log inverse squared margin") == pytest.approx(-2 * log(np.percentile(2 * abs(x @ w), 10)))


# -- against differences, and properties ----------------------------------------------------------------


def replacing(subject, x, layer):
    """The network on x as a function of what a layer returns."""
    path, _, call = layer.partition("#")

    def rest(changed):
        calls = itertools.count(1)
        module = subject.module.get_submodule(path)
        hook = module.register_forward_hook(lambda *_: changed.clone() if next(calls) == int(call or 1) else None)
        try:
            return subject(x)
        finally:
            hook.remove()

    return rest


@pytest.mark.parametrize(
    ("kind", "layers"),
    [
        ("vgg", ["0.0", "0.1", "0.3", "0.8"]),  # a batch norm that an in-place ReLU writes to
        ("resnet", ["stem", "layer1.0.relu", "layer1.0.bn2", "layer2.1.relu#2"]),  # skips, a module called twice
        ("densenet", ["convs.0", "convs.2"]),
        ("transformer", ["patches", "encoder.layers.0"]),
    ],
)
def test_gradients_agree_with_differences_of_the_network_cut_at_the_layer(kind, layers):
    subject = Subject(zoo.build(kind).double(), kind)
    x = zoo.images(3).double()
    labels = subject(x).argmax(1)
    margins, values, gradients = differentiate(
        subject, x, ["input", *layers], lambda scores: output_margins(scores, labels)
    )
    torch.testing.assert_close(margins, output_margins(subject(x), labels))
    step, generator = 1e-6, torch.Generator().manual_seed(0)
    for layer, gradient in gradients.items():
        if layer == "input":
            start, rest = x, subject
        else:
            start, rest = subject.record(x, layer)[layer], replacing(subject, x, layer)
        torch.testing.assert_close(values[layer], start)
        direction = torch.randn(start.shape, generator=generator, dtype=torch.float64) * step
        ahead, behind = (output_margins(rest(start + sign * direction), labels) for sign in (1, -1))
        # Central differences of a step of 1e-6: 1e-12 of curvature, and 1e-16/1e-6 of rounding.
        expected = (gradient * direction).flatten(1).sum(1) / step
        torch.testing.assert_close((ahead - behind) / (2 * step), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("batch_size", [1, 5, 32])
def test_the_batch_size_does_not_matter(batch_size):
    subject, data = classified()
    table = Margins(data, layers=["0.0", "0.7"], batch_size=batch_size, bootstrap=20)(subject)
    whole = Margins(data, layers=["0.0", "0.7"], batch_size=12, bootstrap=20)(subject)
    # float32 convolutions differ in the last bits with the batch size.
    np.testing.assert_allclose(table[["value", "low", "high"]], whole[["value", "low", "high"]], rtol=1e-3)
    assert set(table.layer) == {"", "input", "0.0", "0.7"}


def test_normalised_margins_do_not_change_with_the_scale_of_a_layer_or_of_the_scores():
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    x = np.random.default_rng(0).normal(size=(30, 6))
    data = Labelled(x, Subject(net)(x).argmax(1).numpy())
    before = Margins(data, layers=["0", "1"], bootstrap=0)(Subject(net))
    with torch.no_grad():
        net[0].weight *= 3
        net[0].bias *= 3
        net[2].weight *= 7 / 3
        net[2].bias *= 7
    after = Margins(data, layers=["0", "1"], bootstrap=0)(Subject(net))
    same = before.quantity.str.startswith("normalised")
    np.testing.assert_allclose(after[same].value, before[same].value, rtol=1e-6)
    assert value(after, "mean margin") == pytest.approx(7 * value(before, "mean margin"))


def test_intervals_hold_the_value_and_narrow_with_more_inputs():
    net = nn.Linear(4, 2)
    x = np.random.default_rng(0).normal(size=(2000, 4))
    data = Labelled(x, Subject(net)(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy())
    wide, narrow = (Margins(data, samples=n)(Subject(net)).set_index("quantity").loc["mean margin"] for n in (50, 2000))
    for found in (wide, narrow):
        assert found.low < found.value < found.high
    # By √40 in the mean; within a factor of two.
    assert 3 < (wide.high - wide.low) / (narrow.high - narrow.low) < 13


def test_preprocessing_lies_between_the_input_and_the_network():
    net, x = nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), np.random.default_rng(0).random((8, 3, 2, 2))
    halved = Subject(net, preprocess=Normalize((0.0, 0.0, 0.0), (0.5, 0.5, 0.5)))
    labels = Subject(net)(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy()
    ours = Margins(Labelled(x / 2, labels), layers="1", bootstrap=0)(halved)
    theirs = Margins(Labelled(x, labels), layers="1", bootstrap=0)(Subject(net))
    same = ours.quantity.str.startswith("normalised")
    np.testing.assert_allclose(ours[same].value, theirs[same].value, rtol=1e-5)
    assert value(ours, "total variation", "input") == pytest.approx(value(theirs, "total variation", "input") / 4)


# -- what is left, and what is refused ------------------------------------------------------------------


def test_the_network_is_left_as_found_even_after_an_error():
    subject, data = classified()
    net = subject.module
    before = {name: t.clone() for name, t in net.state_dict().items()}
    state = torch.random.get_rng_state()
    Margins(data, layers="0.0")(subject)
    with pytest.raises(AssayError):
        Margins(data, layers="0.?")(Subject(nn.Sequential(net, nn.Sequential(Breaks()))))
    assert net.training and torch.is_grad_enabled()
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters()) and not any(m._forward_hooks for m in net.modules())
    assert torch.equal(torch.random.get_rng_state(), state)


class Breaks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * float("nan")


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair, self.linear = Pair(), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.pair(x)[0])


class Whole(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class Summed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.whole, self.linear = Whole(), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.whole(x)


def test_of_a_layer_that_returns_several_tensors_the_first_is_measured():
    network = Odd()
    with torch.no_grad():  # weights that put every row into its class: the margins of rows in a wrong one do not count
        network.linear.weight.copy_(torch.tensor([[1.0, 0, 0], [0, 2, 1]]))
        network.linear.bias.zero_()
    table = Margins(Labelled(np.eye(3), np.array([0, 1, 1])), layers="pair", bootstrap=0)(Subject(network))
    rows = table[table["quantity"] == "normalised margin mean"].set_index("layer").value
    assert rows["pair"] == pytest.approx(rows["input"])
    assert rows["pair"] > 0


def test_networks_and_data_that_do_not_fit_are_errors():
    data = Labelled(np.eye(3), np.arange(3))
    with pytest.raises(AssayError, match=r"'Linear' distinguishes 2 classes, and the data .*have 3"):
        Margins(data)(Subject(nn.Linear(3, 2)))
    with pytest.raises(AssayError, match="'Linear' distinguishes 1 classes"):
        Margins(Labelled(np.eye(3), np.zeros(3, int)))(Subject(nn.Linear(3, 1)))
    with pytest.raises(AssayError, match=r"'Linear' cannot take inputs of shape \(3,\)"):
        Margins(data).check(Subject(nn.Linear(4, 3)))
    with pytest.raises(AssayError, match="'Sequential' gives outputs that are not finite"):
        Margins(data)(Subject(nn.Sequential(nn.Linear(3, 3), Breaks())))
    with pytest.raises(AssayError, match=r"'Unflatten' gives \(1, 3, 1\), not one number for each class"):
        Margins(data)(Subject(nn.Unflatten(1, (3, 1))))
    with pytest.raises(AssayError, match="unknown layer '5'"):
        Margins(data, layers="5")(Subject(nn.Sequential(nn.Linear(3, 3))))
    with pytest.raises(AssayError, match="layer 'whole' of 'Summed' does not return a tensor with a row per input"):
        Margins(Labelled(np.eye(3), np.array([0, 1, 1])), layers="whole")(Subject(Summed()))
    with pytest.raises(AssayError, match="'input' and 'output' are measured anyway"):
        Margins(data, layers="output")(Subject(nn.Sequential(nn.Linear(3, 3))))
    for wrong in ({"samples": 0}, {"bootstrap": -1}, {"batch_size": 0}, {"percentiles": (101.0,)}):
        with pytest.raises(AssayError, match=next(iter(wrong))):
            Margins(data, **wrong)  # type: ignore[arg-type]


def test_a_constant_layer_and_a_network_that_is_always_wrong_get_a_status():
    flat = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    nn.init.zeros_(flat[0].weight)
    data = Labelled(np.eye(3), np.zeros(3, int))
    with torch.no_grad():
        flat[1].weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        flat[0].bias.fill_(1.0)
        flat[1].bias.zero_()
    table = Margins(data, layers="0")(Subject(flat)).set_index(["layer", "quantity"])
    assert table.status["0", "total variation"] == "constant"
    assert table.status["0", "normalised margin mean"] == table.status["input", "normalised margin mean"]
    assert table.status["0", "normalised margin mean"] == "no input has one"
    wrong = Margins(Labelled(np.eye(3), np.ones(3, int)))
    found = wrong(Subject(flat))
    assert value(found, "accuracy") == 0 and np.isnan(wrong.predictors(found)["log inverse squared margin"])
    assert found.set_index("quantity").status["normalised margin mean"] == "no input has one"


def test_predictors_are_the_output_and_every_layer_by_name():
    subject, data = classified()
    measure = Margins(data, layers="0.0", percentiles=(10.0,))
    table = measure(subject)
    found = measure.predictors(table)
    assert found["margin p10"] == value(table, "margin p10")
    assert found["normalised margin median at 0.0"] == value(table, "normalised margin median", "0.0")
    assert len(found) == 4 + 2 * 7 and all(isinstance(v, float) for v in found.values())
