from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import AssayError, Subject
from assay.networks import DenoisingAutoencoder, StackedDenoisingAutoencoder
from assay.training import Greedy, greedy, population

# Two kinds of "reviews", each with its own likely words.
RNG = np.random.default_rng(0)
LIKELY = np.where(RNG.random((2, 24)) < 0.5, 0.7, 0.05)
DATA = (RNG.random((300, 24)) < LIKELY[RNG.integers(0, 2, 300)]).astype(np.float32)
SETTINGS = Greedy(epochs=3, batch_size=50, learning_rate=5e-3)


def weights(network) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def obvious(x, layer, outside):
    """The loss without noise, one sample at a time."""
    w1, b1, w2, b2 = (
        p.detach().double().numpy()
        for p in (layer.encoder.weight, layer.encoder.bias, layer.decoder.weight, layer.decoder.bias)
    )
    total = 0.0
    for row in x.astype(np.float64):
        h = np.maximum(0, w1 @ row + b1)
        a = w2 @ h + b2
        total += outside(row, a) + float(layer.sparsity) * np.abs(h).sum()
    return total / len(x)


def cross_entropy(x, a):
    p = 1 / (1 + np.exp(-a))
    return -(x * np.log(p) + (1 - x) * np.log(1 - p)).sum()


def squared(x, a):
    return ((x - np.log1p(np.exp(a))) ** 2).sum()


@pytest.mark.parametrize(("kind", "outside"), [("masking", cross_entropy), ("gaussian", squared)])
def test_without_noise_the_loss_is_the_written_formula(kind, outside):
    torch.manual_seed(0)
    layer = DenoisingAutoencoder(24, 9, kind, noise=0.0, sparsity=0.3)
    with torch.no_grad():
        found = layer.loss(torch.from_numpy(DATA[:20])).item()
    assert found == pytest.approx(obvious(DATA[:20], layer, outside), rel=1e-5)  # sums of 480 single-precision terms


def test_masking_sets_as_many_values_to_zero_as_it_should_and_leaves_the_others():
    torch.manual_seed(0)
    x = torch.rand(200, 500) + 0.5
    noisy = DenoisingAutoencoder(500, 2, noise=0.8).corrupt(x)
    kept = noisy != 0
    assert torch.equal(noisy[kept], x[kept])
    # 100,000 draws: a standard deviation of 0.0013.
    assert kept.double().mean().item() == pytest.approx(0.2, abs=0.006)
    assert (noisy.sum() / x.sum()).item() == pytest.approx(0.2, abs=0.006)  # E[x̃] = (1 − ν)x
    assert not torch.equal(noisy, DenoisingAutoencoder(500, 2, noise=0.8).corrupt(x))


def test_gaussian_noise_has_mean_zero_and_its_standard_deviation():
    torch.manual_seed(0)
    x = torch.rand(200, 500)
    added = DenoisingAutoencoder(500, 2, "gaussian", noise=0.25).corrupt(x) - x
    # 100,000 draws: the mean to 0.0008, the standard deviation to 0.0006.
    assert added.mean().item() == pytest.approx(0, abs=0.004)
    assert added.std().item() == pytest.approx(0.25, abs=0.003)


def test_what_is_represented_has_no_noise():
    network = StackedDenoisingAutoencoder(24, (10, 8, 6), masking=0.9, gaussian=1.0)
    x = torch.from_numpy(DATA[:7])
    first = torch.relu(x @ network.stack[0].encoder.weight.T + network.stack[0].encoder.bias).detach().numpy()
    np.testing.assert_allclose(network.transform(DATA[:7], layer=0), first, atol=1e-6)
    np.testing.assert_array_equal(network.transform(DATA[:7]), network.transform(DATA[:7]))
    recorded = Subject(network, "net").record(x, network.layers)
    for i, layer in enumerate(network.layers):
        np.testing.assert_allclose(network.transform(DATA[:7], i), recorded[layer], atol=1e-6)


def test_the_first_layer_has_masking_noise_and_the_others_gaussian_noise():
    network = StackedDenoisingAutoencoder(24, (10, 8, 6), masking=0.6, gaussian=0.2, sparsity=(0.1, 0.2, 0.3))
    assert [layer.kind for layer in network.stack] == ["masking", "gaussian", "gaussian"]
    assert [round(layer.noise.item(), 6) for layer in network.stack] == [0.6, 0.2, 0.2]
    assert [round(layer.sparsity.item(), 6) for layer in network.stack] == [0.1, 0.2, 0.3]


def test_learning_lowers_the_loss_of_every_layer_below_that_of_the_best_constant():
    network = StackedDenoisingAutoencoder(24, (16, 12, 8), masking=0.3, sparsity=0.0, seed=1)
    greedy(network, DATA, Greedy(epochs=15, batch_size=50, learning_rate=1e-2))
    x = torch.from_numpy(DATA)
    torch.manual_seed(0)
    with torch.no_grad():
        for i, layer in enumerate(network.stack):
            mean = x.mean(0)
            constant = (
                -(torch.xlogy(mean, mean) + torch.xlogy(1 - mean, 1 - mean)).sum()
                if i == 0
                else (x - mean).square().sum(1).mean()
            )
            assert layer.loss(x) < 0.95 * constant
            x = layer(x)
            assert x.std(0).max() > 0.01  # not all units died


def test_sparsity_lowers_the_activations():
    means = []
    for sparsity in (0.0, 1.0):
        network = StackedDenoisingAutoencoder(24, (16,), sparsity=sparsity).fit(DATA, settings=Greedy(10, 50, 1e-2))
        means.append(network.transform(DATA).mean())
    assert means[1] < 0.5 * means[0]


def test_a_population_learns_as_each_network_alone_where_there_is_no_noise():
    def grid():
        return [
            StackedDenoisingAutoencoder(24, (8, 5), masking=0.0, gaussian=0.0, sparsity=0.1 * i, seed=i)
            for i in range(3)
        ]

    together, alone = grid(), grid()
    population(together, DATA, SETTINGS)
    for network, other, start in zip(alone, together, grid(), strict=True):
        greedy(network, DATA, SETTINGS)
        # Batched and single products round differently, and Adam divides by √v.
        torch.testing.assert_close(weights(other), weights(network), atol=2e-5, rtol=1e-4)
        assert (weights(network) - weights(start)).abs().max() > 0.01


def test_networks_of_a_population_draw_their_own_noise_from_the_seed():
    def trained(count):
        networks = [StackedDenoisingAutoencoder(24, (8,), masking=0.8) for _ in range(count)]
        population(networks, DATA, SETTINGS)
        return [weights(network) for network in networks]

    one, other = trained(2)
    assert not torch.allclose(one, other, atol=1e-4)
    again = trained(2)
    assert torch.equal(one, again[0]) and torch.equal(other, again[1])
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert torch.equal(*(trained(1)[0] for _ in range(2)))
    assert torch.equal(torch.get_rng_state(), state)


def test_shallow_is_the_first_layer_before_learning():
    network = StackedDenoisingAutoencoder(24, (8, 6, 5), seed=4).fit(DATA, settings=SETTINGS)
    alone = network.shallow()
    assert alone.layers == ["stack.0"] and alone.transform(DATA).shape == (300, 8)
    start = StackedDenoisingAutoencoder(24, (8,), seed=4)
    assert torch.equal(weights(alone), weights(start))
    alone.fit(DATA, settings=SETTINGS)
    torch.testing.assert_close(alone.stack[0].state_dict(), network.stack[0].state_dict(), atol=0, rtol=0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: StackedDenoisingAutoencoder(4, ()), "at least one layer"),
        (lambda: StackedDenoisingAutoencoder(4, (3, 0)), "hidden=0"),
        (lambda: StackedDenoisingAutoencoder(4, (3,), masking=1.0), "noise=1.0"),
        (lambda: StackedDenoisingAutoencoder(4, (3, 2), gaussian=-0.1), "noise=-0.1"),
        (lambda: StackedDenoisingAutoencoder(4, (3, 2), sparsity=(0.1,)), "1 values for 2 layers"),
        (lambda: StackedDenoisingAutoencoder(4, (3, 2), sparsity=-1.0), "sparsity=-1.0"),
        (lambda: DenoisingAutoencoder(4, 3, "salt"), "kind='salt'"),
        (lambda: StackedDenoisingAutoencoder(24, (3,)).fit(2 * DATA), "scaled to"),
        (lambda: StackedDenoisingAutoencoder(24, (3,)).fit(DATA - 0.5), "scaled to"),
        (lambda: StackedDenoisingAutoencoder(24, (3,)).fit(DATA * np.nan), "NaN or infinite"),
        (lambda: StackedDenoisingAutoencoder(24, (3,)).fit(DATA, y=DATA[:, 0]), "without labels"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()
