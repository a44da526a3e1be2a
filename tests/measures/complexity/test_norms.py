from __future__ import annotations

import itertools
from math import e, log, log2, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import zoo
from assay import AssayError, Subject
from assay.measures.complexity.affine import affine_layers
from assay.measures.complexity.norms import Norms, convolution_norm, path_norm, spectral_norm, vc_dimension_bound


def value(table, quantity, layer=""):
    (found,) = table[(table.quantity == quantity) & (table.layer == layer)].value
    return found


def randomised(module, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(generator=generator)
    return module


# -- spectral norms -------------------------------------------------------------------------------------


def test_spectral_norm_of_a_rotated_diagonal_is_its_largest_entry():
    q, _ = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    diagonal = torch.diag(torch.tensor([0.5, 7.0, 1.0, 2.0, 3.0, 6.9], dtype=torch.float64))
    # The largest eigenvalue of a Gram matrix has the relative error of float64.
    assert spectral_norm(q @ diagonal) == pytest.approx(7.0, rel=1e-12)
    assert spectral_norm((q @ diagonal)[:, :4]) == pytest.approx(7.0, rel=1e-12)


def test_spectral_norm_of_groups_is_that_of_the_block_diagonal_matrix():
    weight = torch.randn(6, 2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = torch.block_diag(*weight.reshape(3, 2, 18))
    assert spectral_norm(weight, groups=3) == pytest.approx(torch.linalg.matrix_norm(blocks, 2).item(), rel=1e-12)


def circular_matrix(kernel, size, stride, dilation, groups):
    """y[o, p] = Σ_{c,t} K[o, c, t] · x[group(o) + c, (p·stride + t·dilation) mod size], as a matrix."""
    outputs, inputs = kernel.shape[:2]
    x = np.arange(inputs * groups * int(np.prod(size))).reshape(inputs * groups, *size)
    rows = []
    for o in range(outputs):
        for p in itertools.product(*(range(n // s) for n, s in zip(size, stride, strict=True))):
            row = np.zeros(x.size)
            for c, *t in itertools.product(*map(range, kernel.shape[1:])):
                at = tuple((pi * s + ti * d) % n for pi, s, ti, d, n in zip(p, stride, t, dilation, size, strict=True))
                row[x[(o // (outputs // groups) * inputs + c, *at)]] += kernel[(o, c, *t)]
            rows.append(row)
    return np.array(rows)


@settings(max_examples=40)
@given(st.data())
def test_norm_of_a_circular_convolution_is_that_of_its_matrix(data):
    axes, groups = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    kernel_size = tuple(data.draw(st.integers(1, 3)) for _ in range(axes))
    stride = tuple(data.draw(st.integers(1, 2)) for _ in range(axes))
    dilation = tuple(data.draw(st.integers(1, 2)) for _ in range(axes))
    size = tuple(s * data.draw(st.integers(1, 3)) for s in stride)  # also smaller than the kernel
    shape = (groups * data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2)), *kernel_size)
    kernel = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=shape)
    expected = np.linalg.norm(circular_matrix(kernel, size, stride, dilation, groups), 2)
    assert convolution_norm(kernel, size, stride, dilation, groups) == pytest.approx(expected, rel=1e-10)


def test_norm_of_a_convolution_in_three_dimensions():
    kernel = np.random.default_rng(0).normal(size=(2, 2, 2, 1, 3))
    expected = np.linalg.norm(circular_matrix(kernel, (4, 2, 3), (2, 1, 1), (1, 1, 1), 1), 2)
    assert convolution_norm(kernel, (4, 2, 3), (2, 1, 1)) == pytest.approx(expected, rel=1e-10)


def test_a_convolution_can_do_more_to_a_map_than_to_a_patch():
    blur = torch.full((1, 1, 3, 3), 1 / 9)
    assert convolution_norm(blur, (8, 8)) == pytest.approx(1, rel=1e-6)  # a constant stays
    assert spectral_norm(blur) == pytest.approx(1 / 3, rel=1e-6)


def test_kernels_that_do_not_fit_are_errors():
    with pytest.raises(AssayError, match=r"stride \(2, 2\) does not divide the size \(5, 4\)"):
        convolution_norm(torch.ones(1, 1, 3, 3), (5, 4), 2)
    with pytest.raises(AssayError, match=r"does not fit a map of size \(8,\)"):
        convolution_norm(torch.ones(1, 1, 3, 3), (8,))


# -- VC dimension ---------------------------------------------------------------------------------------


def test_vc_bound_is_that_of_the_theorem():
    # 3 inputs, 4 hidden, 2 outputs: W_1 = 16 parameters up to layer 1, W_2 = 26 up to layer 2; R = 1·4 + 2·2.
    expected = 2 + (16 + 26) * log2(4 * e * 8 * log2(2 * e * 8))
    assert vc_dimension_bound([16, 10], [4, 2]) == pytest.approx(expected)


def test_vc_bound_needs_a_count_for_each_layer():
    for wrong in (([1], [1, 2]), ([], []), ([0, 1], [2, 2])):
        with pytest.raises(AssayError, match="give at least 1 for each layer"):
            vc_dimension_bound(*wrong)


# -- path norm ------------------------------------------------------------------------------------------


def all_paths(weights, biases):
    """√ of the sum, over every path from an input or a bias to an output, of the product of squared weights."""
    total = 0.0
    sizes = [weights[0].shape[1], *(w.shape[0] for w in weights)]
    for start in range(len(weights)):
        for units in itertools.product(*map(range, sizes[start + 1 :])):
            after = [weights[start + i + 1][units[i + 1], units[i]] for i in range(len(units) - 1)]
            product = np.prod(np.square(after))
            total += product * biases[start][units[0]] ** 2
            if start == 0:
                total += product * np.square(weights[0][units[0]]).sum()
    return sqrt(total)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.LeakyReLU, nn.Identity])
def test_path_norm_of_an_mlp_is_the_sum_over_its_paths(activation):
    net = nn.Sequential(nn.Linear(3, 4), activation(), nn.Linear(4, 2), activation(), nn.Linear(2, 3))
    randomised(net)
    layers = [m for m in net if isinstance(m, nn.Linear)]
    weights, biases = ([getattr(m, k).detach().double().numpy() for m in layers] for k in ("weight", "bias"))
    assert path_norm(Subject(net), (3,)) == pytest.approx(all_paths(weights, biases), rel=1e-12)


def test_path_norm_does_not_change_when_a_unit_is_rescaled():
    net = randomised(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    before = path_norm(Subject(net), (3,))
    with torch.no_grad():
        net[0].weight[1] *= 10
        net[0].bias[1] *= 10
        net[2].weight[:, 1] /= 10
    assert path_norm(Subject(net), (3,)) == pytest.approx(before, rel=1e-6)  # float32 weights


class Sums(nn.Module):
    """A skip, a difference, a scaled branch, a concatenation, a learned offset and three kinds of averages."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 1, bias=False)
        self.offset = nn.Parameter(torch.zeros(1, 2, 4, 4))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = F.relu(self.a(x)) + self.offset
        y = self.b(x)
        y += 0.5 * x
        y = y - x / 2 + 3.0
        y = F.avg_pool2d(y, 2)
        means = torch.cat([y.mean((2, 3)), F.adaptive_avg_pool2d(y, 1).flatten(1), y[:, :, 0].mean(2)], 1)
        return self.head(F.pad(means, (0, 2)))


class SumsSquared(Sums):
    """The same, all weights squared by hand."""

    def forward(self, x):
        square = {name: p.square() for name, p in self.named_parameters()}
        x = F.conv2d(x, square["a.weight"], square["a.bias"], padding=1) + square["offset"]
        y = F.conv2d(x, square["b.weight"]) + 0.25 * x + x / 4 + 9.0
        y = F.avg_pool2d(y, 2) / 4
        means = torch.cat([y.mean((2, 3)) / 4, y.mean((2, 3)) / 4, y[:, :, 0].mean(2) / 2], 1)
        return F.linear(F.pad(means, (0, 2)), square["head.weight"], square["head.bias"])


def test_path_norm_goes_through_sums_averages_and_learned_offsets():
    net, squared = randomised(Sums()).double(), randomised(SumsSquared()).double()
    expected = sqrt(squared(torch.ones(1, 1, 4, 4, dtype=torch.float64)).sum().item())
    assert path_norm(Subject(net), (1, 4, 4)) == pytest.approx(expected, rel=1e-12)


def test_adaptive_averages_over_windows_of_different_sizes():
    net = nn.Sequential(nn.AdaptiveAvgPool1d(2), nn.Flatten(), nn.Linear(2, 1, bias=False))
    nn.init.ones_(net[2].weight)
    # Of 5 values the windows are 0–2 and 2–4, three each, weights 1/3: 2 · 3 · (1/3)².
    assert path_norm(Subject(net), (1, 5)) == pytest.approx(sqrt(2 / 3), rel=1e-12)


def test_max_pooling_keeps_the_largest():
    net = nn.Sequential(nn.Conv1d(1, 1, 1, bias=False), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        net[0].weight.fill_(2.0)
        net[3].weight.copy_(torch.tensor([[1.0, 3.0]]))
    assert path_norm(Subject(net), (1, 4)) == pytest.approx(sqrt(4 + 36), rel=1e-12)


def test_a_batch_norm_after_a_layer_is_folded_and_one_after_a_relu_is_a_diagonal_layer():
    net = randomised(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2)))
    for norm in (net[1], net[3]):
        norm.running_mean.normal_(generator=torch.Generator().manual_seed(1))
        norm.running_var.uniform_(0.5, 2, generator=torch.Generator().manual_seed(2))
    found = affine_layers(Subject(net), (3,))
    assert [layer.name for layer in found.layers] == ["0", "3", "4"]
    scale = [(n.weight / (n.running_var + n.eps).sqrt()).double() for n in (net[1], net[3])]
    shift = [n.bias.double() - s * n.running_mean.double() for n, s in zip((net[1], net[3]), scale, strict=True)]
    first = scale[0][:, None] * net[0].weight.double()
    bias = scale[0] * net[0].bias.double() + shift[0]
    torch.testing.assert_close(found.layers[0].weight, first, rtol=1e-6, atol=0)  # the scale above is of float32
    h = first.square().sum(1) + bias.square()
    h = scale[1].square() * h + shift[1].square()
    out = net[4].weight.double().square() @ h + net[4].bias.double().square()
    assert found.squared == pytest.approx(out.sum().item(), rel=1e-6)
    table = Norms(shape=(3,))(Subject(net))
    assert value(table, "spectral norm", "3") == pytest.approx(scale[1].abs().max().item(), rel=1e-6)
    assert value(table, "frobenius norm", "3") == pytest.approx(scale[1].norm().item(), rel=1e-6)


def test_a_weight_made_of_others_counts_as_it_is_used():
    plain = randomised(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    before = path_norm(Subject(plain), (3,))
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(plain[0]), plain[1], plain[2])
    found = affine_layers(Subject(normed), (3,))
    assert sqrt(found.squared) == pytest.approx(before, rel=1e-6)  # the norm is divided out and in again, in float32
    assert found.unreached == [] and len(found.layers) == 2


class Imported(nn.Module):
    """As made of a file: tensors are buffers, a linear layer a product of matrices."""

    def __init__(self, linear):
        super().__init__()
        self.register_buffer("tensor0", linear.weight.detach().T.clone())
        self.register_buffer("tensor1", linear.bias.detach().clone())

    def forward(self, x):
        return x @ self.tensor0 + self.tensor1


def test_imported_networks_have_the_norms_of_the_original():
    linear = randomised(nn.Linear(5, 3))
    ours, theirs = (Norms(shape=(5,)).predictors(Norms(shape=(5,))(Subject(m))) for m in (Imported(linear), linear))
    for same in ("log spectral product", "log frobenius product", "log path norm", "layers"):
        assert ours[same] == pytest.approx(theirs[same], rel=1e-12)
    assert ours["parameters"] == 15  # an offset that is added is in no layer


def test_without_running_statistics_or_with_other_nonlinearities_there_is_no_path_norm():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, track_running_stats=False))
    with pytest.raises(AssayError, match="affine maps, ReLU, pooling and sums: it has BatchNorm2d"):
        path_norm(Subject(net), (1, 8, 8))
    with pytest.raises(AssayError, match=r"'mlp' has no path norm: not a network of affine maps, .*: it has Tanh"):
        path_norm(Subject(zoo.build("mlp"), "mlp"), zoo.SHAPE)


class Acts(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act

    def forward(self, x):
        return self.act(x)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda x: 3 - x, 9 + 1),
        (lambda x: x.sub_(2).clone(), 1 + 4),
        (lambda x: 3 * x / 2, 9 / 4),
        (lambda x: x.mul_(3).add_(x), 18),
        (lambda x: torch.stack([x, x]).sum(0), 2),
        (lambda x: F.avg_pool1d(x[:, None], 3, 1, 1).squeeze(1), 1 / 9),
        (lambda x: x.T.data.reshape(x.shape), 1),
    ],
)
def test_operations_of_known_weights(act, expected):
    assert path_norm(Subject(Acts(act)), (1,)) ** 2 == pytest.approx(expected)


@pytest.mark.parametrize(
    ("act", "name"),
    [
        (lambda x: x * x, "mul"),
        (lambda x: 1 / x, "reciprocal|rtruediv|rdiv"),
        (lambda x: x @ x.T, "matmul"),
        (lambda x: F.relu6(x), "relu6|hardtanh"),
        (lambda x: torch.add(x, x, alpha=2), "add"),
        (lambda x: F.pad(x, (1, 1), value=1.0), "pad"),
        (lambda x: F.avg_pool1d(x[:, None], 3, 1, 1, count_include_pad=False), "avg_pool1d"),
        (lambda x: x.softmax(1), "softmax"),
    ],
)
def test_operations_that_are_no_sums_over_paths_are_named(act, name):
    with pytest.raises(AssayError, match=f"has no path norm: not a network of .*: it has .*({name})"):
        path_norm(Subject(Acts(act)), (3,))


class Last(nn.Module):
    """A recurrent layer and a readout of its last step."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.readout = nn.Linear(4, 3)

    def forward(self, x):
        return self.readout(self.layer(x)[0][:, -1])


class Attends(nn.Module):
    """Attention of inputs to each other, by torch's own module or by its function."""

    def __init__(self, module):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True) if module else nn.Linear(4, 4)
        self.module = module
        self.readout = nn.Linear(4, 3)

    def forward(self, x):
        if self.module:
            return self.readout(self.attention(x, x, x, need_weights=False)[0].mean(1))
        x = self.attention(x)
        return self.readout(F.scaled_dot_product_attention(x, x, x).mean(1))


class Gated(nn.Module):
    """A layer that multiplies two things it computes, or computes the weights of the other."""

    def __init__(self, gate):
        super().__init__()
        self.a, self.b, self.gate = nn.Linear(4, 4), nn.Linear(4, 4), gate

    def forward(self, x):
        return self.gate(self.a(x), self.b(x))


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x


class Behind(nn.Module):
    """A layer, and an operation that torch does not show."""

    def __init__(self, hidden):
        super().__init__()
        self.layer, self.hidden = nn.Linear(4, 4), hidden

    def forward(self, x):
        x = self.layer(x)
        return x + self.hidden(x)


NO_SUMS_OVER_PATHS = {
    "LSTM": (Last(nn.LSTM(4, 4, batch_first=True)), "LSTM"),
    "GRU": (Last(nn.GRU(4, 4, batch_first=True)), "GRU"),
    "RNN": (Last(nn.RNN(4, 4, batch_first=True)), "RNN"),
    "RNN of ReLUs": (Last(nn.RNN(4, 4, nonlinearity="relu", batch_first=True)), "RNN"),
    "attention": (Attends(True), "MultiheadAttention"),
    "function of attention": (Attends(False), "scaled_dot_product_attention"),
    "encoder": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), "MultiheadAttention"),
    "GELU": (nn.Sequential(nn.Linear(4, 4), nn.GELU()), "GELU"),
    "sigmoid": (nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()), "Sigmoid"),
    "gate": (Gated(lambda a, b: a * b), "a product of two values that depend on the input (mul)"),
    "soft gate": (Gated(lambda a, b: a * b.sigmoid()), "sigmoid"),
    "computed weights": (
        Gated(lambda a, b: F.linear(a, b[0])), "a product of two values that depend on the input (linear)"
    ),
    "chosen by value": (Gated(lambda a, b: a[:, :, b.argmax()]), "argmax"),
    "a number of the input": (Gated(lambda a, b: a * b.sum().item()), "item"),
    "written into": (Gated(lambda a, b: torch.zeros(1, 5, 4).double().copy_(a)), "copy"),
    "random": (Gated(lambda a, b: a + F.dropout(b)), "dropout"),
    "steep": (Gated(lambda a, b: a + F.leaky_relu(b, -3.0)), "leaky_relu"),
    "embedding": (Gated(lambda a, b: nn.Embedding(9, 4).double()(a.long())), "long"),
    "NumPy": (Gated(lambda a, b: a + torch.from_numpy(b.detach().numpy() ** 2)), "numpy"),
    "a function of the user's": (Behind(Twice.apply), "a product of two values that depend on the input (mul)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_SUMS_OVER_PATHS)
def test_a_network_that_is_no_sum_over_paths_has_no_path_norm_and_says_why(kind):
    module, has = NO_SUMS_OVER_PATHS[kind]
    table = Norms(shape=(5, 4))(Subject(module)).set_index("quantity")
    for quantity in ("log path norm", "vc dimension"):
        assert np.isnan(table.value[quantity])
        assert table.status[quantity].startswith("not a network of affine maps, ReLU, pooling and sums: it has ")
        assert has in table.status[quantity]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute:UserWarning")
def test_a_part_of_compiled_code_has_no_path_norm():
    compiled = torch.jit.trace(nn.Linear(4, 4).double(), torch.ones(1, 4, dtype=torch.float64))
    with pytest.raises(AssayError, match="affine maps, ReLU, pooling and sums: it has TorchScript"):
        path_norm(Subject(Behind(compiled)), (4,))


def test_layers_that_are_no_affine_map_are_left_out_of_the_totals_by_name():
    for kind, missing in (("LSTM", "layer.weight_ih_l0"), ("attention", "attention.in_proj_weight")):
        table = Norms(shape=(5, 4))(Subject(NO_SUMS_OVER_PATHS[kind][0])).set_index("quantity")
        for quantity in ("parameter norm", "log spectral product", "stable rank", "layers"):
            assert f"without {missing} and 1 more" in table.status[quantity]


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda x: -x, 1),
        (lambda x: (2 * x).abs(), 4),
        (lambda x: torch.cat([3 * x, x], 1).max(1, keepdim=True)[0], 9),
        (lambda x: sum(torch.cat([3 * x, x], 1).unbind(1))[:, None], 10),
        (lambda x: next(iter(torch.cat([3 * x, x], 1).T))[:, None], 9),
        (lambda x: x + torch.full_like(x, 2.0), 1 + 4),
        (lambda x: torch.maximum(5 * x, torch.zeros_like(x)), 25),
        (lambda x: F.leaky_relu(2 * x, 0.1), 4),
        (lambda x: F.dropout(2 * x, 0.5, False), 4),
        (lambda x: x * x.shape[0] * len(x) * 2 if x.is_floating_point() else x, 4),
    ],
)
def test_harmless_operations_are_counted_as_what_they_are(act, expected):
    assert path_norm(Subject(Acts(act)), (1,)) ** 2 == pytest.approx(expected)


# -- the measure ----------------------------------------------------------------------------------------


def test_totals_are_those_of_the_layers():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        net[0].bias.zero_()
        net[2].weight.copy_(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    measure = Norms()
    table = measure(Subject(net, example=(2,)))
    assert (table.status == "ok").all()
    assert value(table, "frobenius norm", "0") == pytest.approx(5) and value(table, "spectral norm", "0") == 4
    found = measure.predictors(table)
    assert found == pytest.approx(
        {
            "parameter norm": 25 + 5,
            "log frobenius product": log(25 * 5),
            "log spectral product": log(16 * 4),
            "log frobenius sum": log(2 * sqrt(25 * 5)),
            "log spectral sum": log(2 * sqrt(16 * 4)),
            "stable rank": 25 / 16 + 5 / 4,
            "parameters": 10,
            "layers": 2,
            "vc dimension": vc_dimension_bound([6, 4], [2, 2]),
            "log path norm": log(9 + 4 * 16) / 2,  # the paths 3·1 and 4·2
        }
    )


@pytest.mark.parametrize("kind", ["vgg", "resnet", "densenet"])
@pytest.mark.parametrize("convolution", ["reshaped", "circular"])
def test_every_kind_of_network_has_all_norms(kind, convolution):
    subject = Subject(zoo.build(kind), kind, example=zoo.SHAPE)
    table = Norms(convolution)(subject)
    assert (table.status == "ok").all() and np.isfinite(table.value).all()
    layers = set(table.layer) - {""}
    assert layers <= set(subject.layers) and value(table, "layers") == len(layers)


def test_circular_norms_are_those_of_the_folded_kernel_on_its_map():
    subject = Subject(zoo.build("vgg"), example=zoo.SHAPE)
    table = Norms("circular")(subject)
    second = affine_layers(subject).layers[1]
    assert second.inputs == (8, 8, 8) and second.sources["norm"] == "0.5"
    assert value(table, "spectral norm", "0.4") == convolution_norm(second.weight, (8, 8))


def test_a_transformer_has_norms_of_some_layers_and_says_what_is_missing():
    subject = Subject(zoo.build("transformer"), example=zoo.SHAPE)
    measure = Norms()
    table = measure(subject)
    assert (table[table.layer != ""].status == "ok").all()
    totals = table[table.layer == ""].set_index("quantity").status
    assert totals["log spectral product"] == "without token and 4 more"
    assert totals["log path norm"] == "not a network of affine maps, ReLU, pooling and sums: it has LayerNorm"
    assert totals["parameters"] == "ok"
    predictors = measure.predictors(table)
    assert np.isnan(predictors["log spectral product"]) and np.isnan(predictors["vc dimension"])
    assert predictors["parameters"] == sum(p.numel() for p in subject.module.parameters())


def test_the_network_is_left_as_found():
    net = zoo.build("vgg")
    before = {name: t.clone() for name, t in net.state_dict().items()}
    state = torch.random.get_rng_state()
    Norms()(Subject(net, example=zoo.SHAPE))
    assert net.training and all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not net._forward_hooks and all(p.grad is None for p in net.parameters())


def test_the_input_of_ones_comes_after_preprocessing():
    net = randomised(nn.Linear(6, 2))
    doubled = Subject(net, preprocess=lambda x: torch.cat([x, x], 1), example=(3,))
    assert path_norm(doubled) == pytest.approx(path_norm(Subject(net), (6,)))


def test_a_zero_layer_has_a_status_instead_of_a_product():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    nn.init.zeros_(net[0].weight)
    nn.init.zeros_(net[1].weight)
    nn.init.zeros_(net[1].bias)
    totals = Norms(shape=(2,))(Subject(net)).set_index("quantity").status
    assert totals["log spectral product"] == "a layer is zero or has no norm"
    assert totals["log path norm"] == "no path, or too large"
    assert totals["parameter norm"] == "ok"


class Strange(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"out": x}


def test_networks_without_norms_are_errors():
    with pytest.raises(AssayError, match="'ReLU' has no linear or convolutional layer"):
        Norms(shape=(3,))(Subject(nn.ReLU()))
    with pytest.raises(
        AssayError, match=r"no input of 'Linear' is known: give the measure shape=.*in a plan 'shape: \[3"
    ):
        Norms()(Subject(nn.Linear(2, 2)))
    with pytest.raises(AssayError, match=r"'Linear' cannot take inputs of shape \(3,\)"):
        Norms(shape=(3,)).check(Subject(nn.Linear(2, 2)))
    with pytest.raises(AssayError, match="'Strange' has no linear or convolutional layer"):
        Norms(shape=(3,))(Subject(Strange()))
    broken = nn.Linear(2, 2)
    nn.init.constant_(broken.bias, float("nan"))
    with pytest.raises(AssayError, match="the weights 'bias' of 'Linear' are not finite"):
        Norms(shape=(2,))(Subject(broken))
    with pytest.raises(AssayError, match="convolution='fft' is not 'reshaped' or 'circular'"):
        Norms(convolution="fft")  # type: ignore[arg-type]


class Ragged(nn.Module):
    """Returns a nested tensor, whose parts may have unequal lengths."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return torch.nested.nested_tensor(list(self.linear(x).unbind()), layout=torch.strided)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_network_that_returns_a_nested_tensor_has_the_norms_of_one_that_does_not():
    net = Ragged()
    found, expected = (Norms()(Subject(module, example=(3,))) for module in (net, net.linear))
    assert value(found, "parameter norm") == value(expected, "parameter norm")
