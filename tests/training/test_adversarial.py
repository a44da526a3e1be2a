from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from assay import AssayError
from assay.core.determinism import Arithmetic, seeded
from assay.core.progress import listening
from assay.networks import vgg
from assay.stimuli import Normalize
from assay.training import Adversary, Recipe, fgsm, pgd, train, train_many
from assay.training.augmentation import Augment
from assay.training.steps import Steps

DIGITS = load_digits()
X = torch.from_numpy(DIGITS.images[:320, None] / 16).float()
Y = torch.from_numpy(DIGITS.target[:320])
FGSM = Adversary(0.1, steps=1, random_start=False)


def perceptron(seed: int = 0, dropout: float = 0.2) -> nn.Module:
    with seeded(seed):
        layers = [nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(dropout)]
        return nn.Sequential(*layers, nn.Linear(24, 10))


def same(a: nn.Module, b: nn.Module) -> bool:
    one, other = a.state_dict(), b.state_dict()
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


RECIPES = [
    Recipe("adam", 0.003, 32, epochs=3, seed=1, adversary=Adversary(0.1, steps=2)),
    Recipe("sgd", 0.05, 50, 1e-3, epochs=3, seed=2, adversary=Adversary(0.5, "l2", steps=3, step_size=(0.4, 0.2, 0.1))),
    Recipe("sgd", 0.05, 64, epochs=2, seed=3),
    Recipe("sgd", 0.05, 64, epochs=2, seed=4, augmentation=Augment("rotation", 1.0, (0.0,), (1.0,)), adversary=FGSM),
]


def test_epsilon_0_is_ordinary_training_to_the_last_bit():
    plain, attacked = perceptron(), perceptron()
    recipe = Recipe("adam", 0.01, 32, epochs=2)
    expected = train(plain, X * 9, Y, recipe)  # no pixels: with ε = 0 there is nothing to clip
    assert expected == train(attacked, X * 9, Y, dataclasses.replace(recipe, adversary=Adversary(0.0, "l2")))
    assert same(plain, attacked)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_network_learns_from_the_examples_of_a_plain_loop(norm):
    network, plain = perceptron(dropout=0.5), perceptron(dropout=0.5)
    adversary = Adversary(0.2, norm, steps=2, random_start=False)
    recipe = Recipe("sgd", 0.1, 60, epochs=2, seed=5, adversary=adversary)
    trained = train(network, X, Y, recipe)
    optimizer, losses = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9), []
    for epoch in range(2):
        order = torch.randperm(320, generator=torch.Generator().manual_seed(recipe.number("order", epoch)))
        with seeded(recipe.number("dropout", epoch)):
            for rows in order[:300].split(60):
                examples = pgd(plain.eval(), X[rows], Y[rows], norm, 0.2, steps=2, random_start=False)
                optimizer.zero_grad()
                loss = F.cross_entropy(plain.train()(examples), Y[rows])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    assert same(network, plain)
    # The attacks went through batch norm without being counted.
    assert int(network[2].num_batches_tracked) == 10
    assert [epoch.running_loss for epoch in trained.history] == pytest.approx(
        [sum(losses[:5]) / 5, sum(losses[5:]) / 5], rel=1e-12
    )


def test_random_starts_come_from_the_recipes_seed():
    recipe = Recipe("sgd", 0.05, 64, epochs=1, adversary=Adversary(0.2, steps=1))
    networks = []
    for start in (True, True, False):
        networks.append(perceptron(dropout=0.0))
        changed = dataclasses.replace(recipe.adversary, random_start=start, step_size=0.01)
        torch.manual_seed(len(networks))  # of no account
        train(networks[-1], X, Y, dataclasses.replace(recipe, adversary=changed))
    assert same(networks[0], networks[1]) and not same(networks[0], networks[2])


@pytest.mark.parametrize("at_once", [1, 3])
def test_many_at_once_are_trained_as_each_alone(at_once):
    alone = [perceptron(i) for i in range(len(RECIPES))]
    expected = [train(network, X, Y, recipe) for network, recipe in zip(alone, RECIPES, strict=True)]
    together = [perceptron(i) for i in range(len(RECIPES))]
    assert repr(train_many(together, X, Y, RECIPES, at_once=at_once)) == repr(expected)
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))


class Killed(Exception):
    pass


def test_a_broken_off_training_goes_on_to_the_same_result(tmp_path):
    whole, again, recipe, path = perceptron(), perceptron(), RECIPES[1], tmp_path / "at.safetensors"
    expected = train(whole, X, Y, recipe)

    def kill(what: str, done: int, total: int | None) -> None:
        if done == 2:
            raise Killed

    with pytest.raises(Killed), listening(kill):
        train(perceptron(), X, Y, recipe, checkpoint=path, every_s=0)
    assert repr(train(again, X, Y, recipe, checkpoint=path)) == repr(expected) and same(whole, again)
    other = dataclasses.replace(recipe, adversary=dataclasses.replace(recipe.adversary, epsilon=0.6))
    with pytest.raises(AssayError, match="another training"):
        train(perceptron(), X, Y, other, checkpoint=path)


def test_epsilon_is_in_pixels_however_the_inputs_are_standardised():
    mean, std = (0.3,), (0.4,)
    standardise = Normalize(mean, std)

    class Standardising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = perceptron(dropout=0.0)

        def forward(self, x: Tensor) -> Tensor:
            return self.network(standardise(x))

    inside, outside = Standardising(), perceptron(dropout=0.0)
    recipe = Recipe("sgd", 0.05, 64, epochs=2, adversary=Adversary(0.1, "l2", steps=2, random_start=False))
    train(inside, X, Y, recipe)
    adversary = dataclasses.replace(recipe.adversary, mean=mean, std=std)
    train(outside, standardise(X), Y, dataclasses.replace(recipe, adversary=adversary))
    # Pixels that are standardised and taken back differ by rounding, which 10 steps of training enlarge.
    torch.testing.assert_close(inside.network.state_dict(), outside.state_dict(), atol=1e-4, rtol=1e-3)


def test_training_against_an_attack_makes_a_network_withstand_it():
    shares = []
    for adversary in (None, Adversary(0.15, steps=3)):
        network = perceptron(dropout=0.0)
        train(network, X, Y, Recipe("adam", 0.01, 32, epochs=15, adversary=adversary))
        examples = fgsm(network.eval(), X, Y, "linf", 0.15)
        shares.append((network(examples).argmax(1) == Y).double().mean().item())
    assert shares[1] > shares[0] + 0.2


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # torch, of CPUs that have no such arithmetic
def test_half_precision_learns_and_changes_no_other_network():
    before = Arithmetic.here()
    half = Recipe("adam", 0.01, 32, epochs=6, precision="bfloat16", adversary=Adversary(0.03, steps=2))
    single = RECIPES[0]
    networks, twin = [perceptron(0), perceptron(1)], perceptron(1)
    trained, _ = train_many(networks, X, Y, [half, single])
    train(twin, X, Y, single)
    assert trained.accuracy > 0.7 and networks[0][1].weight.dtype == torch.float32
    assert same(networks[1], twin) and Arithmetic.here() == before


def test_a_network_that_diverges_says_so_and_the_others_go_on():
    wild = Recipe("sgd", 1e30, 50, epochs=3, adversary=Adversary(0.1, steps=2))
    for norm in ("linf", "l2"):
        recipe = dataclasses.replace(wild, adversary=Adversary(0.1, norm, steps=2))
        lost, good = train_many([perceptron(0), perceptron(1)], X, Y, [recipe, RECIPES[0]])
        assert lost.status == "diverged" and lost.epochs == 1 and math.isnan(lost.accuracy)
        assert good.status == "ended" and good.accuracy > 0.3


def test_a_gradient_that_is_not_a_number_ends_a_training_as_diverged():
    class Rooted(nn.Module):
        """The root of zero: the scores are finite, their gradient is not."""

        def __init__(self) -> None:
            super().__init__()
            self.readout = nn.Linear(64, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.readout(x.flatten(1)) + (x - x.detach()).square().sum((1, 2, 3)).sqrt()[:, None] * torch.arange(
                10
            )

    for norm in ("linf", "l2"):
        recipe = Recipe("sgd", 0.01, 64, epochs=2, adversary=Adversary(0.1, norm, steps=1, random_start=False))
        assert train(Rooted(), X, Y, recipe).status == "diverged"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Adversary(-0.1), "epsilon=-0.1 is a distance"),
        (lambda: Adversary(0.1, "l1"), "unknown norm 'l1'"),
        (lambda: Adversary(0.1, steps=0), "steps=0"),
        (lambda: Adversary(0.1, steps=2, step_size=(0.1,)), "1 sizes for steps=2"),
        (lambda: Adversary(0.1, mean=(0.5, 0.5)), "one of each a channel"),
        (lambda: Adversary(0.1, std=(0.0,)), "every std above 0"),
        (
            lambda: train(perceptron(), X * 9, Y, Recipe(epochs=1, adversary=FGSM)),
            r"reach from 0 to 9, .* mean and std",
        ),
        (
            lambda: train(
                perceptron(), X, Y, Recipe(epochs=1, adversary=Adversary(0.1, mean=(0.5,) * 3, std=(0.2,) * 3))
            ),
            r"3 means, and the inputs are of shape \(1, 8, 8\)",
        ),
    ],
)
def test_bad_settings_are_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_recorded_attacks_are_the_plain_ones(monkeypatch, precision):
    recipes = [dataclasses.replace(recipe, precision=precision) for recipe in RECIPES]

    def networks() -> list[nn.Module]:
        with seeded(0):
            return [*(perceptron(i).cuda() for i in range(2)), *(vgg(1, 8, channels=1).cuda() for _ in range(2))]

    recorded, plain = networks(), networks()
    kept: list[bool] = []
    close = Steps.close
    monkeypatch.setattr(Steps, "close", lambda self: (kept.append(self.graph is not None), close(self))[1])
    results = train_many(recorded, X, Y, recipes, at_once=4)
    assert kept == [True] * len(recipes)
    monkeypatch.setattr(Steps, "_record", lambda self: None)
    assert repr([train(n, X, Y, r) for n, r in zip(plain, recipes, strict=True)]) == repr(results)
    assert all(same(a, b) for a, b in zip(recorded, plain, strict=True))


def test_an_epsilon_in_grey_levels_is_refused_where_pixels_are_in_0_to_1():
    with pytest.raises(AssayError, match=r"epsilon=8 is more than inputs in \[0, 1\] can differ by.*8/255"):
        Adversary(8)
    assert Adversary(8, bounds=(0.0, 255.0)).epsilon == 8
    assert Adversary(8, "l2").epsilon == 8  # a long vector has small parts


def test_a_mean_that_is_a_number_is_told_to_be_one_for_each_channel():
    with pytest.raises(AssayError, match=r"mean=0\.5 is no tuple: give one for each channel, such as \(0\.5,\)"):
        Adversary(0.1, mean=0.5, std=0.3)
