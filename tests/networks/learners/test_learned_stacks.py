from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from assay import AssayError, Subject
from assay.networks import (
    ConvolutionalDeepBeliefNetwork,
    ConvolutionalRBM,
    StackedAutoencoder,
    Together,
)
from assay.networks.classifiers.resnet import resnet20, resnet56
from assay.stimuli import Normalize
from assay.subject.source import load_weights
from assay.training import Greedy

PATCHES = np.random.default_rng(0).uniform(-1, 1, (120, 1, 6, 6)).astype(np.float32)


def stacks():
    return [
        (StackedAutoencoder(36, (10, 7, 5), seed=2), PATCHES),
        (ConvolutionalDeepBeliefNetwork(maps=(3, 4), size=3), np.tile(PATCHES, (1, 1, 3, 3))),
    ]


@pytest.mark.parametrize("which", [0, 1], ids=["autoencoder", "cdbn"])
def test_learners_speak_fit_transform_layers_and_shallow(which):
    network, data = stacks()[which]
    start = copy.deepcopy(network.state_dict())
    fitted = network.fit(data, settings=Greedy(epochs=1, batch_size=40))
    assert fitted is network
    for i, layer in enumerate(network.layers):
        ours = network.transform(data[:9], layer=i, batch_size=4)
        theirs = Subject(network, "net").record(torch.from_numpy(data[:9]), [layer])[layer]
        np.testing.assert_allclose(ours, theirs.flatten(1), atol=1e-6)
    alone = network.shallow()
    assert alone.layers == ["stack.0"]
    for name, value in alone.state_dict().items():
        assert torch.equal(value, start[name])
    again = network.fit(data, settings=Greedy(epochs=1, batch_size=40)).state_dict()
    assert all(torch.equal(again[k], v) for k, v in fitted.state_dict().items())  # fit begins anew
    with pytest.raises(AssayError, match="without labels"):
        network.fit(data, y=np.zeros(len(data)))
    with pytest.raises(AssayError, match="layer=7"):
        network.transform(data, layer=7)


@pytest.mark.slow
def test_an_autoencoder_learns_edges_of_a_drifting_bar():
    """One direction carries all the variance: the filters line up with it."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=36).astype(np.float32)
    direction /= np.linalg.norm(direction)
    data = rng.normal(size=(2000, 1)).astype(np.float32) * direction
    network = StackedAutoencoder(36, (4,), weight_decay=0.01).fit(data, settings=Greedy(30, 100, 1e-2))
    filters = network.filters(0).numpy()
    cosine = np.abs(filters @ direction) / np.linalg.norm(filters, axis=1)
    assert cosine.max() > 0.99


def test_deeper_filters_are_linear_combinations():
    network = StackedAutoencoder(36, (10, 7))
    one, two = (network.stack[i].encoder.weight.detach() for i in (0, 1))
    torch.testing.assert_close(network.filters(1), two @ one)
    torch.testing.assert_close(network.filters(-2), one)


@pytest.mark.slow
def test_sparsity_brings_the_mean_activation_to_its_target():
    network = StackedAutoencoder(36, (8,), sparsity=30.0, target=-0.8)
    network.fit(PATCHES, settings=Greedy(150, 30, 1e-2))
    assert network.transform(PATCHES).mean() == pytest.approx(-0.8, abs=0.05)


def test_blocks_are_softmaxes_over_their_units_and_off():
    torch.manual_seed(0)
    rbm = ConvolutionalRBM(2, 3, size=3, sigma=0.7)
    with torch.no_grad():
        rbm.weight.normal_()
    v = torch.randn(4, 2, 8, 10)
    a = F.conv2d(v, rbm.weight, rbm.bias) / 0.7**2
    e = a.exp()
    total = F.avg_pool2d(e, 2) * 4
    with torch.no_grad():
        torch.testing.assert_close(rbm(v), total / (1 + total))
        soft = rbm.detection(v)
        assert soft.shape == (4, 3, 3, 4, 5)
        torch.testing.assert_close(soft.sum(-1), torch.ones(4, 3, 3, 4))
        torch.testing.assert_close(
            soft[0, 1, 2, 3, :4].reshape(2, 2), (e / (1 + F.interpolate(total, scale_factor=2)))[0, 1, 4:6, 6:8]
        )


def test_log_odds_are_those_of_the_pooling_units_and_do_not_round_to_one():
    torch.manual_seed(0)
    rbm = ConvolutionalRBM(1, 2, size=3, sigma=0.5)
    v = torch.randn(3, 1, 8, 8)
    with torch.no_grad():
        rbm.weight.normal_()
        exact = copy.deepcopy(rbm).double()
        on, off = exact(v.double()), exact.detection(v.double())[..., -1]
        # Each logarithm of the smaller of the two, since the larger rounds to 1 in double precision too.
        expected = torch.where(on < 0.5, on.log() - torch.log1p(-on), torch.log1p(-off) - off.log())
        # Log odds of up to 40 in single precision, whose unit is 6e-8 of a number, and a sum of nine products.
        torch.testing.assert_close(rbm.log_odds(v).double(), expected, atol=1e-5, rtol=1e-5)
        far = 20 * v
        assert (rbm(far) == 1).sum() > 1 and rbm.log_odds(far).unique().numel() == rbm(far).numel()


def test_sampling_turns_on_at_most_one_unit_of_a_block_as_often_as_it_should():
    torch.manual_seed(0)
    rbm = ConvolutionalRBM(1, 2, size=3, sigma=1.0)
    with torch.no_grad():
        rbm.weight.normal_()
        v = torch.randn(1, 1, 6, 6).expand(20_000, -1, -1, -1)
        h = rbm.sample(v)
        expected = rbm._unblocks(rbm.detection(v[:1])[..., :-1])[0]
    assert (F.avg_pool2d(h, 2) * 4).max() <= 1
    # Standard deviation of a mean of 20,000 draws is at most 0.0036.
    torch.testing.assert_close(h.mean(0), expected, atol=0.018, rtol=0)


def test_the_gradient_is_that_of_contrastive_divergence():
    torch.manual_seed(0)
    rbm = ConvolutionalRBM(1, 2, size=3, sigma=0.5, weight_decay=0.0, sparsity=0.0)
    v = torch.randn(5, 1, 6, 6)
    torch.manual_seed(1)
    rbm.loss(v).backward()
    torch.manual_seed(1)
    with torch.no_grad():
        again = rbm.reconstruct(rbm.sample(v))

        def phase(x):
            h = rbm._unblocks(rbm.detection(x)[..., :-1])
            return torch.einsum("ncyxij,nkyx->kcij", x.unfold(2, 3, 1).unfold(3, 3, 1), h) / 0.5**2

        expected = -(phase(v) - phase(again)) / 5 / 16
    torch.testing.assert_close(rbm.weight.grad, expected, atol=1e-6, rtol=1e-4)


@pytest.mark.slow
def test_an_rbm_learns_to_reconstruct():
    torch.manual_seed(0)
    kernel = torch.zeros(1, 1, 5, 5)
    kernel[0, 0, 2] = 1.0  # horizontal bars at random places
    bars = F.conv_transpose2d((torch.rand(300, 1, 12, 12) < 0.03).float(), kernel)
    network = ConvolutionalDeepBeliefNetwork(maps=(4,), size=5, sigma=0.3, target=0.03)
    network.fit(bars, settings=Greedy(15, 20, 1e-2))
    rbm = network.stack[0]
    with torch.no_grad():
        v = rbm.fitted(bars)
        error = (rbm.reconstruct(rbm.sample(v)) - v).square().mean() / v.square().mean()
    assert error < 0.6
    strongest = network.filters(0)[:, 0].flatten(1).square().sum(1).argmax()
    rows = network.filters(0)[strongest, 0].abs().sum(1)
    assert rows.max() > 2 * rows.median()  # one row of a horizontal bar


def test_networks_together_are_those_networks():
    networks = [StackedAutoencoder(36, (10, 7), seed=i) for i in range(3)]
    both = Subject(Together(networks), "together").record(torch.from_numpy(PATCHES), ["stack.0", "stack.1"])
    for i, network in enumerate(networks):
        for depth in (0, 1):
            ours = both[f"stack.{depth}"][:, i].numpy()
            np.testing.assert_allclose(ours, network.transform(PATCHES, depth), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "file", "floor"), [(resnet20, "resnet20-12fca82f.th", 0.90), (resnet56, "resnet56-4bfd9763.th", 0.91)]
)
def test_released_cifar_networks_load_and_classify(make, file, floor, shared_data):
    network = make()
    load_weights(network, shared_data / "cifar10_networks" / file)
    with np.load(shared_data / "cifar10_subset" / "cifar10_subset.npz") as data:
        images, labels = data["test_images"].transpose(0, 3, 1, 2) / np.float32(255), data["test_labels"]
    found = Subject(network, "net", preprocess=Normalize())(torch.from_numpy(images)).argmax(1).numpy()
    assert (found == labels).mean() > floor  # 91.73 % and 93.4 % of the whole test set, here of 1,000 images


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: StackedAutoencoder(4, ()), "at least one layer"),
        (lambda: StackedAutoencoder(4, (3, 2), weight_decay=(0.1,)), "1 values for 2 layers"),
        (lambda: StackedAutoencoder(4, (3,), target=2.0), "target=2.0"),
        (lambda: ConvolutionalRBM(1, 0), "maps=0"),
        (lambda: ConvolutionalRBM(1, 2, visible="poisson"), "visible='poisson'"),
        (lambda: ConvolutionalDeepBeliefNetwork(maps=(2,))(torch.zeros(1, 1, 8, 8)), "too small"),
        (lambda: Together([]), "no networks"),
    ],
)
def test_bad_settings_are_one_clear_sentence(make, sentence):
    with pytest.raises(AssayError, match=sentence):
        make()
