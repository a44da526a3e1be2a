"""Curves against a plain loop over full passes; closed forms; sharing; bad data."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from assay import AssayError, PerturbationResponse, Subject, gi_score, pal_score
from assay.core.determinism import reproducible
from assay.measures.perturbation import curves as perturbed
from assay.measures.perturbation.curves import batches, show_perturbed
from assay.networks import VGG, small_resnet
from assay.stats.differences import difference
from assay.stats.evidence import Evidence
from assay.stimuli import Labelled, Mixup, Noise, Transformed


def pictures(n: int = 60, classes: int = 4, size: int = 8, channels: int = 3, seed: int = 0) -> Labelled:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    patterns = rng.random((classes, channels, size, size))
    shown = np.where(rng.random(n) < 0.2, rng.permutation(labels), labels)  # some labels are wrong
    noisy = 0.4 * patterns[shown] + 0.6 * rng.random((n, channels, size, size))
    return Labelled(noisy.astype(np.float32), labels)


def network(kind: str, data: Labelled) -> Subject:
    """A network that tells most of the classes: its last layer is fitted to what comes before it."""
    torch.manual_seed(0)
    channels = data.shape[0]
    net: nn.Module
    if kind == "resnet":
        net = small_resnet(data.classes, 8)
        last: nn.Linear = net.fc  # type: ignore[assignment]
    elif kind == "vgg":
        net = VGG(((8,), (8, 8)), data.classes, batch_norm=True, channels=channels)
        last = net.classifier
    else:
        net = nn.Sequential(
            nn.Flatten(), nn.Linear(int(np.prod(data.shape)), 20), nn.Tanh(), nn.Linear(20, data.classes)
        )
        last = net[3]
    net.eval()
    kept: list[torch.Tensor] = []
    handle = last.register_forward_pre_hook(lambda module, args: kept.append(args[0]))
    with torch.no_grad():
        net(data.shown())
        handle.remove()
        x = torch.cat([kept[0], torch.ones(len(data), 1)], 1).double()
        target = F.one_hot(torch.tensor(data.labels)).double()
        solution = torch.linalg.solve(x.T @ x + 1e-2 * torch.eye(x.shape[1]), x.T @ target)
        last.weight.copy_(solution[:-1].T)
        last.bias.copy_(solution[-1])
    return Subject(net, kind)


def plain_curve(measure: PerturbationResponse, subject: Subject, layer: str | None) -> np.ndarray:
    """Every magnitude by a full pass, the layer's output changed by a hook; the same sample, batches and partners."""
    (some,) = measure.perturbations
    data = measure.data.sample(measure.samples, measure.seed)
    rng = np.random.default_rng(measure.seed)
    right = []
    net = subject.module
    for rows in batches(data.labels, measure.batch_size or 32, rng):
        drawn, ok = some.draw(data.labels[rows], rng)
        chance = torch.from_numpy(rng.uniform(some.low, some.high, len(rows))).float()
        of_batch = []
        for alpha in [*(torch.full((len(rows),), a) for a in measure.points(some)), chance]:
            x = data.shown(rows)
            handles = []
            if layer is None:
                x = some.on(x, drawn)(alpha)
            else:

                def change(module, args, output, drawn=drawn, alpha=alpha, calls=[]):  # noqa: B006
                    calls.append(1)  # a module may be called more than once: the layer is its first call
                    return some.on(output.clone(), drawn)(alpha) if len(calls) == 1 else None

                handles.append(net.get_submodule(layer).register_forward_hook(change))
            with torch.no_grad():
                told = net(x).argmax(1).numpy()
            for handle in handles:
                handle.remove()
            of_batch.append((told == data.labels[rows])[ok])
        right.append(np.stack(of_batch))
    return np.concatenate(right, 1).mean(1)


def curve(table, quantity="accuracy"):
    return table.loc[table["quantity"] == quantity, "value"].to_numpy()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "vgg", "resnet"])
@pytest.mark.parametrize("perturbation", ["intra", "inter", "noise"])
@pytest.mark.parametrize("layer", [0, 1, 2, 0.5])
@pytest.mark.parametrize("room", [0, 160_000])
def test_equals_full_passes_with_the_output_replaced(monkeypatch, kind, perturbation, layer, room):
    monkeypatch.setattr(perturbed, "room", lambda device: room)  # as on a GPU, where several magnitudes share a pass
    data = pictures()
    subject = network(kind, data)
    measure = PerturbationResponse(data, perturbation, layer, magnitudes=5, batch_size=24, bootstrap=0)
    table = measure(subject)
    at = table["at"].iloc[0]
    expected = plain_curve(measure, subject, None if at == "input" else at)
    assert curve(table)[0] > 0.3 and np.ptp(curve(table)) > 0  # it tells something, and perturbing changes it
    # The same arithmetic up to rounding: no accuracy of these 60 inputs changes.
    assert np.allclose(curve(table), expected[:-1], atol=1e-12)
    assert curve(table, "random accuracy")[0] == pytest.approx(expected[-1], abs=1e-12)
    alpha = measure.points(measure.perturbations[0])
    assert curve(table, "gi")[0] == pytest.approx(gi_score(alpha, expected[:-1]))
    assert curve(table, "pal")[0] == pytest.approx(pal_score(alpha, expected[:-1]))


def test_a_function_that_gives_nothing_back_is_named():
    data = pictures()
    forgetful = Transformed(lambda x, magnitudes: None, 0.0, 1.0)
    with pytest.raises(AssayError, match="<lambda> gave back None, not a tensor"):
        PerturbationResponse(data, forgetful, magnitudes=3, bootstrap=0)(network("mlp", data))


def laid_out(kind: str) -> torch.Tensor:
    x = torch.rand(6, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    return {
        "rows": x,
        "channels last": x.contiguous(memory_format=torch.channels_last),
        "inputs innermost": x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
        "every second": x.repeat(2, 1, 1, 1)[::2],
        "the same for all channels": x[:, :1].expand(6, 3, 4, 5),
    }[kind]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "kind", ["rows", "channels last", "inputs innermost", "every second", "the same for all channels"]
)
def test_mixing_at_several_magnitudes_is_mixing_at_each(kind, dtype):
    x, partner = laid_out(kind).to(dtype), np.array([1, 0, 3, 2, 5, 4])
    random = torch.linspace(0, 0.5, 6)
    stack = Mixup("intra").on_stack(x, partner)([0.125, random, 0.4375])  # numbers that bfloat16 has
    each = Mixup("intra").on(x, partner)
    expected = torch.cat([each(torch.full((6,), 0.125)), each(random), each(torch.full((6,), 0.4375))])
    # One rounding more or less, since processors multiply and add in one step or in two.
    torch.testing.assert_close(stack, expected, rtol=2 * torch.finfo(dtype).eps, atol=torch.finfo(dtype).eps)
    if kind == "channels last":
        assert stack.is_contiguous(memory_format=torch.channels_last)


def test_partners_lie_in_memory_as_the_inputs_do(monkeypatch):
    """A GPU mixes what lies alike three times faster, and an index gives rows of channels one after another."""
    x = laid_out("channels last")
    mixed, lerp = [], torch.lerp
    monkeypatch.setattr(torch, "lerp", lambda a, b, *args, **kw: mixed.append((a, b)) or lerp(a, b, *args, **kw))
    Mixup("intra").on_stack(x, np.array([1, 0, 3, 2, 5, 4]))([0.1, 0.2])
    assert len(mixed) == 2 and all(a.stride() == b.stride() for a, b in mixed)


def test_a_sample_is_shown_as_a_data_set_of_its_own_would_be():
    data = pictures()
    subject = network("vgg", data)
    measure = PerturbationResponse(data, ("intra", "noise"), 0, magnitudes=3, samples=40, batch_size=24, seed=3)
    of_all, points = measure.curves(subject), {p: measure.points(p) for p in measure.perturbations}
    for pair, alone in show_perturbed(subject, data.sample(40, 3), points, {0: None}, 24, 3).items():
        assert np.array_equal(alone.right, of_all[pair].right)


def test_curves_together_equal_curves_alone():
    data = pictures()
    subject = network("resnet", data)
    both = PerturbationResponse(data, ("intra",), (0, 1), magnitudes=5, bootstrap=20, batch_size=30)(subject)
    for layer in (0, 1):
        alone = PerturbationResponse(data, "intra", layer, magnitudes=5, bootstrap=20, batch_size=30)(subject)
        mine = both[both["layer"] == str(layer)].reset_index(drop=True)
        assert mine.equals(alone)


def test_layers_by_count_are_those_with_weights_before_or_after_the_nonlinearity():
    data = pictures()
    subject = network("vgg", data)
    names = {}
    for nonlinearity in ("after", "before"):
        measure = PerturbationResponse(data, layer=(1, 2), nonlinearity=nonlinearity, magnitudes=2, bootstrap=0)
        names[nonlinearity] = list(measure(subject)["at"].unique())
    assert names == {"after": ["features.2", "features.6"], "before": ["features.0", "features.4"]}
    last = PerturbationResponse(data, layer=4, magnitudes=2, bootstrap=0)(subject)
    assert set(last["at"]) == {"classifier"}  # no nonlinearity follows


def test_a_linear_classifier_between_two_points_has_a_step_for_a_curve():
    """One input a class at ±1 with the boundary at 0.2: mixed with the other, −1 crosses it at 0.6, +1 at 0.4."""
    data = Labelled(np.array([[-1.0], [1.0]] * 10, dtype=np.float32), np.array([0, 1] * 10))
    net = nn.Linear(1, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        net.bias.copy_(torch.tensor([0.2, -0.2]))
    mix = Mixup("inter", 0.0, 0.5)
    table = PerturbationResponse(data, mix, magnitudes=tuple(np.arange(50) / 100), bootstrap=0)(Subject(net))
    alpha = table["magnitude"].dropna().to_numpy()
    assert np.allclose(curve(table), np.where(alpha < 0.4, 1.0, 0.5))
    intra = PerturbationResponse(data, "intra", bootstrap=0)(Subject(net))
    assert curve(intra, "gi")[0] == pytest.approx(0, abs=1e-12) and curve(intra, "pal")[0] == pytest.approx(84)


def test_noise_costs_what_the_normal_distribution_says():
    """f = sign(x), x = ±1, noise α: right with probability Φ(1/α); 20,000 inputs, so within 4·√(¼/20,000) = 0.014."""
    from scipy.stats import norm

    labels = np.arange(20_000) % 2
    data = Labelled((2.0 * labels[:, None] - 1).astype(np.float32), labels)
    net = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    table = PerturbationResponse(data, Noise(0, 2), magnitudes=5, samples=None, batch_size=5000)(Subject(net))
    alpha = table["magnitude"].dropna().to_numpy()
    expected = np.where(alpha > 0, norm.cdf(1 / np.maximum(alpha, 1e-9)), 1)
    assert np.abs(curve(table) - expected).max() < 0.014
    points = table[table["quantity"] == "accuracy"]
    width = (points["high"] - points["low"]).to_numpy()[1:]
    binomial = 2 * 1.96 * np.sqrt(expected * (1 - expected) / 20_000)[1:]
    assert np.allclose(width, binomial, rtol=0.25)  # 200 resamples give an interval to about 10 %


def test_moving_pictures_through_any_function():
    def flip_when_large(x, magnitudes):
        return torch.where((magnitudes > 0.5)[:, None, None, None], 1 - x, x)

    data = pictures()
    subject = network("vgg", data)
    table = PerturbationResponse(data, Transformed(flip_when_large, 0, 1), magnitudes=3, bootstrap=0)(subject)
    assert table["perturbation"].unique().tolist() == ["flip_when_large"]
    a = curve(table)
    assert a[0] == a[1] != a[2]


@pytest.mark.parametrize("name", ["rotation", "translation_x", "translation_y", "color_jitter", "blur", "dim"])
def test_named_perturbations_are_nothing_at_zero(name):
    some = Transformed(name)
    x = torch.from_numpy(pictures(6).inputs.copy())
    y = some.on(x, 0)(torch.zeros(6))
    assert torch.allclose(x, y, atol=1e-5)  # interpolation at whole pixels, and hue there and back, round
    moved = some.on(x, 0)(torch.full((6,), some.high))
    assert not torch.allclose(x, moved, atol=1e-2)


def test_alpha_zero_is_shown_once(monkeypatch):
    data = pictures(20)
    subject = network("mlp", data)
    shown = []
    forward = nn.Tanh.forward
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, x: shown.append(len(x)) or forward(self, x))
    perturbations = (Transformed("dim"), Transformed("rotation", 0, 90))
    PerturbationResponse(data, perturbations, magnitudes=4, batch_size=20, bootstrap=0)(subject)
    # 1 to learn the layers, twice (with and without writing in place), 1 input to check, 1 at zero,
    # then 2 curves × (3 magnitudes + 1 random)
    assert shown.count(20) == 1 + 2 * 4


def test_mixing_after_a_first_layer_that_is_not_affine_in_the_input_is_not_done():
    class Squares(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(192, 4)

        def forward(self, x):
            return self.linear(x.flatten(1) ** 2)

    data = pictures()
    torch.manual_seed(1)
    subject = Subject(Squares().eval(), "squares")
    measure = PerturbationResponse(data, "inter", magnitudes=7, batch_size=20, bootstrap=0)
    assert np.array_equal(curve(measure(subject)), plain_curve(measure, subject, None)[:-1])


GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("bend", [0.0, 0.2])
def test_a_slight_bend_before_the_first_layer_is_seen(device, bend):
    """Mixing after it changes outputs by 0.6 %: more than the 0.1 % for rounding, less than TF32 would need."""
    calls = []

    class Bends(nn.Module):
        def forward(self, x):
            calls.append(len(x))
            return x + bend * x**2

    data = pictures()
    torch.manual_seed(1)
    net = nn.Sequential(Bends(), nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 4)).eval()
    subject = Subject(net, device=device)
    PerturbationResponse(data, "inter", magnitudes=21, batch_size=len(data), bootstrap=0)(subject)
    # The whole network for every magnitude, or only what follows the first layer.
    assert (sum(n // len(data) for n in calls) > 20) == (bend > 0)


@pytest.mark.parametrize("kind", ["mlp", "vgg", "resnet"])
@pytest.mark.parametrize("layer", [0, 1, 0.5])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_curve_of_a_cpu(kind, layer):
    data = pictures()
    here = network(kind, data)
    there = Subject(here.module, device="cuda")
    measure = PerturbationResponse(data, ("intra", "noise"), layer, magnitudes=5, batch_size=24, bootstrap=0)
    measure(there)  # captured now: torch.export refuses to inside the block
    with reproducible():  # without TF32 no accuracy of these 60 inputs changes
        assert np.array_equal(curve(measure(there)), curve(measure(here)))


class Centres(nn.Module):
    """Looks at its whole batch."""

    def forward(self, x):
        return x - x.mean(0)


class Sized(nn.Module):
    """Takes batches of up to 20."""

    def forward(self, x):
        if len(x) > 20:
            raise RuntimeError("too many")
        return x


@pytest.mark.parametrize("middle", [Centres, Sized, nn.Identity])
def test_magnitudes_share_a_pass_only_where_inputs_are_seen_one_by_one(monkeypatch, middle):
    data = pictures()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), middle(), nn.Tanh(), nn.Linear(192, 4)).eval()
    shown = []
    forward = nn.Tanh.forward
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, x: shown.append(len(x)) or forward(self, x))
    measure = PerturbationResponse(data, "noise", magnitudes=5, batch_size=20, bootstrap=0)
    alone = plain_curve(measure, Subject(net), None)
    monkeypatch.setattr(perturbed, "room", lambda device: 3 * 20 * 192 * 4)
    assert np.array_equal(curve(measure(Subject(net))), alone[:-1])
    assert (60 in shown) == (middle is nn.Identity)


# -- bad data -------------------------------------------------------------------------------------------------------


def test_an_input_alone_in_its_class_is_left_out_and_counted():
    data = pictures(9, 3)
    lonely = Labelled(np.concatenate([data.inputs, data.inputs[:1]]), np.append(data.labels, 3))
    subject = network("mlp", pictures(9, 4))
    table = PerturbationResponse(lonely, ("intra", "inter"), magnitudes=3, bootstrap=0)(subject)
    counts = table.groupby("perturbation")[["n", "left_out"]].first()
    assert counts.loc["intra"].tolist() == [9, 1] and counts.loc["inter"].tolist() == [10, 0]


def test_a_missing_class_changes_nothing_else():
    data = pictures(12, 4)
    some = Labelled(data.inputs[data.labels != 2], data.labels[data.labels != 2])
    table = PerturbationResponse(some, "inter", magnitudes=3, bootstrap=0)(network("mlp", data))
    assert table["n"].iloc[0] == 9 and table["status"].eq("ok").all()


def test_one_class_cannot_be_mixed_with_another():
    data = pictures(8, 1)
    with pytest.raises(AssayError, match="no input has another"):
        PerturbationResponse(data, "inter", magnitudes=3)(network("mlp", pictures()))


def test_outputs_that_are_not_finite_have_that_status():
    class Overflows(nn.Module):
        def forward(self, x):
            x = x.flatten(1)[:, :2]
            return torch.where(x.mean(1, keepdim=True) < 0.3, torch.nan, x)

    data = Labelled(np.ones((6, 3), dtype=np.float32), np.array([0, 0, 0, 1, 1, 1]))
    table = PerturbationResponse(data, "dim", magnitudes=4, bootstrap=5)(Subject(Overflows()))
    assert table["status"].tolist()[:4] == ["ok", "ok", "ok", "not finite"]
    scores = table.set_index("quantity")
    assert scores.loc["gi", "status"] == "not finite" and np.isnan(scores.loc["gi", "value"])


def test_a_network_that_is_always_wrong_at_first_has_no_pal():
    data = Labelled(np.ones((4, 2), dtype=np.float32), np.array([0, 0, 1, 1]))
    always_last = nn.Sequential(nn.Linear(2, 3))
    with torch.no_grad():
        always_last[0].weight.zero_()
        always_last[0].bias.copy_(torch.tensor([0.0, 0.0, 1.0]))
    table = PerturbationResponse(data, "noise", magnitudes=3)(Subject(always_last)).set_index("quantity")
    assert table.loc["pal", "status"] == "undefined" and table.loc["gi", "value"] == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"perturbation": "intre"}, "inter"),
        ({"perturbation": ("intra", "intra")}, "no name twice"),
        ({"layer": (0, 0)}, "none twice"),
        ({"magnitudes": 1}, "at least 2"),
        ({"magnitudes": (0.2, 0.1)}, "increasing"),
        ({"samples": 0}, "samples=0"),
        ({"fold": True}, "from minus to plus"),
        ({"nonlinearity": "around"}, "'after' or 'before'"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(AssayError, match=words):
        PerturbationResponse(pictures(), **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"layer": 9}, "has 2 layers with weights"), ({"layer": "9"}, "9"), ({"layer": "*"}, "chooses 4 layers")],
)
def test_layers_that_are_not_there(settings, words):
    data = pictures()
    with pytest.raises(AssayError, match=words):
        PerturbationResponse(data, **settings)(network("mlp", data))


def test_labels_beyond_the_outputs_and_outputs_that_are_no_classes():
    data = pictures(20, 5)
    with pytest.raises(AssayError, match=r"distinguishes 4 classes, and the data .*have 5"):
        PerturbationResponse(data)(network("mlp", pictures()))
    with pytest.raises(AssayError, match="not one number for each class"):
        PerturbationResponse(data)(Subject(nn.Identity()))


def test_nothing_is_said_of_networks_that_can_be_captured(caplog):
    data = pictures()
    with caplog.at_level(logging.WARNING):
        PerturbationResponse(data, "intra", (0, 1), magnitudes=3, bootstrap=0)(network("resnet", data))
    assert not caplog.records


def test_predictors_are_the_scores_by_name():
    data = pictures()
    measure = PerturbationResponse(data, ("intra", "inter"), (0, 1), magnitudes=3, bootstrap=0)
    table = measure(network("mlp", data))
    found = measure.predictors(table)
    assert (
        len(found) == 5 * 4
        and found["gi inter ℓ=1"]
        == table.query("quantity == 'gi' and perturbation == 'inter' and layer == '1'")["value"].item()
    )


def test_intervals_of_differences_of_scores_end_where_scores_do():
    """Of two Gi-scores, which lie between 0 and 1, none is above another by more than 1."""
    data = pictures(12)
    ideal, blind = (
        Evidence("Gi", value, draws=np.r_[np.full(60, value), 0.5], n=12, least=0.0, most=1.0) for value in (0.0, 1.0)
    )
    apart = difference(blind, ideal)
    assert apart is not None and apart.value == 1 and apart.interval()[1] == 1.0
    measure = PerturbationResponse(data, magnitudes=3, bootstrap=100)
    found = measure.evidence(measure.measured(network("vgg", data)))
    assert {(one.least, one.most) for one in found} == {(0.0, 1.0)}
    assert [one.proportion for one in found] == ["mean accuracy" in one.quantity for one in found]
