from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from assay import AssayError
from assay.core.determinism import Arithmetic, seeded
from assay.core.progress import listening
from assay.networks import FullyConvolutional, vgg
from assay.training import Recipe, Trained, train, train_many
from assay.training.steps import Steps

DIGITS = load_digits()
X = torch.from_numpy(DIGITS.images[:320, None] / 16).float()
Y = torch.from_numpy(DIGITS.target[:320])


def perceptron(seed: int = 0, dropout: float = 0.2) -> nn.Module:
    with seeded(seed):
        layers = [nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(dropout)]
        return nn.Sequential(*layers, nn.Linear(24, 10))


def convolutional(seed: int = 0) -> nn.Module:
    with seeded(seed):
        return FullyConvolutional(1, 4, dropout=0.1, channels=1)


def noise(x: Tensor, generator: torch.Generator) -> Tensor:
    return x + 0.1 * torch.randn(x.shape, generator=generator, device=x.device)


def same(a: nn.Module, b: nn.Module) -> bool:
    one, other = a.state_dict(), b.state_dict()
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


# Networks and recipes that differ in everything, and draw random numbers in all the ways there are.
GRID: list[tuple[Callable[[], nn.Module], Recipe]] = [
    (lambda: perceptron(0), Recipe("adam", 0.003, 32, epochs=4, augmentation=noise, seed=1)),
    (lambda: perceptron(1), Recipe("sgd", 0.05, 50, 1e-3, epochs=3, schedule="cosine", seed=2)),
    (convolutional, Recipe("sgd", 0.05, 100, epochs=2, schedule="plateau", seed=3)),
    (lambda: perceptron(2, 0.5), Recipe("sgd", 0.1, 64, epochs=6, stop_accuracy=0.8, seed=4)),
]


def test_training_stops_when_the_data_are_known_and_says_so_truly():
    network = perceptron()
    trained = train(network, X, Y, Recipe("adam", 0.01, 32, epochs=60, stop_loss=0.05))
    assert trained.status == "stopped" and trained.stopped and trained.epochs < 60
    assert all(epoch.loss > 0.05 for epoch in trained.history[:-1]) and trained.loss <= 0.05
    with torch.no_grad():
        logits = network.eval()(X)
    # The same sum in another order and precision.
    assert trained.loss == pytest.approx(F.cross_entropy(logits, Y).item(), rel=1e-5)
    assert trained.accuracy == (logits.argmax(1) == Y).double().mean().item()


def test_the_criterion_is_checked_every_so_many_epochs_and_at_the_end():
    recipe = Recipe("adam", 0.003, 32, epochs=5, check_every=2, stop_accuracy=1.0)
    trained = train(perceptron(), X, Y, recipe)
    assert trained.status == "ended" and trained.epochs == 5
    assert [math.isnan(epoch.accuracy) for epoch in trained.history] == [True, False, True, False, False]
    easy = train(perceptron(), X, Y, dataclasses.replace(recipe, stop_accuracy=0.11))
    assert easy.stopped and easy.epochs == 2 and easy.history == trained.history[:2]


def gradient(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the mean cross-entropy of softmax regression on all data."""
    x, y = X.flatten(1).double().numpy(), np.eye(10)[Y.numpy()]
    z = x @ weight.T + bias
    p = np.exp(z - z.max(1, keepdims=True))
    error = (p / p.sum(1, keepdims=True) - y) / len(x)
    return error.T @ x, error.sum(0)


def test_sgd_takes_the_steps_of_the_formula():
    with seeded(0):
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    weight, bias = (p.detach().double().numpy().copy() for p in network.parameters())
    train(network, X, Y, Recipe("sgd", 0.5, len(X), weight_decay=0.1, epochs=3, schedule="cosine"))
    momentum, momentum_bias = np.zeros_like(weight), np.zeros_like(bias)
    for rate in (0.5, 0.375, 0.125):  # (1 + cos πt/3)/4: the whole data are one batch, so their order is of no account
        g, g_bias = gradient(weight, bias)
        momentum, momentum_bias = 0.9 * momentum + g + 0.1 * weight, 0.9 * momentum_bias + g_bias
        weight, bias = weight - rate * momentum, bias - rate * momentum_bias
    # Single precision.
    np.testing.assert_allclose(network[1].weight.detach().numpy(), weight, atol=1e-6)
    np.testing.assert_allclose(network[1].bias.detach().numpy(), bias, atol=1e-6)


def test_adam_takes_the_steps_of_the_formula():
    with seeded(0):
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    weight, bias = (p.detach().double().numpy().copy() for p in network.parameters())
    train(network, X, Y, Recipe("adam", 0.01, len(X), weight_decay=0.1, epochs=1))
    g, g_bias = gradient(weight, bias)
    g = g + 0.1 * weight
    # The first step: m̂ = g, v̂ = g². Where |g| is near ε = 1e-8, single precision is not enough to compare.
    clear = np.abs(g) > 1e-5
    np.testing.assert_allclose(
        network[1].weight.detach().numpy()[clear], (weight - 0.01 * g / (np.abs(g) + 1e-8))[clear], atol=1e-6
    )
    np.testing.assert_allclose(
        network[1].bias.detach().numpy(), bias - 0.01 * g_bias / (np.abs(g_bias) + 1e-8), atol=1e-6
    )


def test_batches_are_those_of_a_plain_loop():
    network, plain = perceptron(dropout=0.0), perceptron(dropout=0.0)
    recipe = Recipe("sgd", 0.1, 60, epochs=3, seed=5)
    trained = train(network, X, Y, recipe)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for epoch in range(3):
        order = torch.randperm(320, generator=torch.Generator().manual_seed(recipe.number("order", epoch)))
        for rows in order[:300].split(60):  # the last 20 are left out
            optimizer.zero_grad()
            loss = F.cross_entropy(plain(X[rows]), Y[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert same(network, plain)
    assert int(network[2].num_batches_tracked) == 15
    running = np.array(losses).reshape(3, 5).mean(1)
    assert [epoch.running_loss for epoch in trained.history] == pytest.approx(running, rel=1e-12)


@pytest.fixture(scope="module")
def alone() -> list[tuple[nn.Module, Trained]]:
    results = []
    for make, recipe in GRID:
        network = make()
        results.append((network, train(network, X, Y, recipe)))
    return results


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("backwards", [False, True])
def test_many_at_once_are_trained_as_each_alone(alone, at_once, backwards):
    jobs = list(zip(GRID, alone, strict=True))[:: -1 if backwards else 1]
    networks = [make() for (make, _), _ in jobs]
    done = []
    results = train_many(
        networks, X, Y, [recipe for (_, recipe), _ in jobs], at_once=at_once, on_done=lambda *what: done.append(what)
    )
    assert sorted(done, key=lambda what: what[0]) == list(zip(range(4), networks, results, strict=True))
    for network, result, (_, (twin, expected)) in zip(networks, results, jobs, strict=True):
        assert same(network, twin) and repr(result) == repr(expected)  # NaN equals itself in words only


def test_networks_are_taken_as_there_is_room():
    alive, most = 0, 0

    def build():
        nonlocal alive, most
        for make, _ in GRID:
            alive += 1
            most = max(most, alive)
            yield make()

    def gone(*_):
        nonlocal alive
        alive -= 1

    train_many(build(), X, Y, [dataclasses.replace(r, epochs=1) for _, r in GRID], at_once=2, on_done=gone)
    assert alive == 0 and most == 2


class Killed(Exception):
    pass


def kill_after(reports: int) -> Callable[[str, int, int | None], None]:
    seen = 0

    def listen(what: str, done: int, total: int | None) -> None:
        nonlocal seen
        seen += 1
        if seen == reports:
            raise Killed

    return listen


@pytest.mark.parametrize("every_s", [0.0, 1e9])
def test_a_broken_off_training_goes_on_to_the_same_result(tmp_path, alone, every_s):
    recipes = [recipe for _, recipe in GRID]
    paths = [tmp_path / f"{i}.safetensors" for i in range(len(GRID))]
    epochs: dict[int, int] = {}
    for reports in (3, 4, 2, None):
        networks = [make() for make, _ in GRID]
        try:
            with listening(kill_after(reports or 10**6)):
                results = train_many(networks, X, Y, recipes, at_once=2, checkpoints=paths, every_s=every_s)
        except Killed:
            assert reports is not None and not list(tmp_path.glob(".*"))
            assert every_s > 0 or any(path.exists() for path in paths)
        epochs[reports or 0] = sum(path.exists() for path in paths)
    assert list(epochs.values()) == sorted(epochs.values()) and epochs[0] == 4
    for network, result, (twin, expected) in zip(networks, results, alone, strict=True):
        assert same(network, twin) and repr(result) == repr(expected)


def test_a_finished_training_is_only_read(tmp_path):
    path, recipe = tmp_path / "at.safetensors", GRID[1][1]
    first = perceptron(1)
    trained = train(first, X, Y, recipe, checkpoint=path)
    content, reports = path.read_bytes(), []
    again = perceptron(1)
    with listening(lambda *what: reports.append(what)):
        assert repr(train(again, X, Y, recipe, checkpoint=path)) == repr(trained)
    assert same(first, again) and path.read_bytes() == content
    assert reports == [("training, in epochs", 3, 3)]


def test_progress_counts_epochs_and_a_network_that_stops_early_has_no_more_to_do():
    seen = []
    with listening(lambda what, done, total: seen.append((done, total))):
        trained = train(perceptron(), X, Y, Recipe("adam", 0.01, 32, epochs=50, stop_accuracy=0.5))
    assert seen == [*((epoch, 50) for epoch in range(1, trained.epochs + 1)), (50, 50)]


@pytest.mark.parametrize(
    "other",
    [
        lambda path: train(perceptron(9), X, Y, GRID[1][1], checkpoint=path),
        lambda path: train(perceptron(1, 0.3), X, Y, GRID[1][1], checkpoint=path),
        lambda path: train(perceptron(1), X + 1, Y, GRID[1][1], checkpoint=path),
        lambda path: train(perceptron(1), X, Y, dataclasses.replace(GRID[1][1], seed=9), checkpoint=path),
    ],
    ids=["initial weights", "dropout", "data", "seed"],
)
def test_a_checkpoint_of_another_training_is_refused_and_kept(tmp_path, other):
    path = tmp_path / "at.safetensors"
    train(perceptron(1), X, Y, GRID[1][1], checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(AssayError, match="another training"):
        other(path)
    assert path.read_bytes() == content
    path.write_bytes(content[:100])
    with pytest.raises(AssayError, match="cannot be read"):
        train(perceptron(1), X, Y, GRID[1][1], checkpoint=path)


def test_a_network_that_diverges_says_so_and_the_others_go_on(tmp_path):
    recipe = Recipe("sgd", 0.05, 50, epochs=3)
    wild = dataclasses.replace(recipe, learning_rate=1e30, check_every=2)
    paths = [tmp_path / "a", tmp_path / "b"]
    for _ in range(2):  # the second time it is read
        networks = [perceptron(0), perceptron(1)]
        lost, good = train_many(networks, X, Y, [wild, recipe], checkpoints=paths)
        assert lost.status == "diverged" and not lost.stopped and lost.epochs == 1
        assert math.isnan(lost.loss) and math.isnan(lost.accuracy) and not math.isfinite(lost.history[0].running_loss)
        assert good.status == "ended" and good.accuracy > 0.5


def test_augmentation_sees_all_inputs_once_an_epoch_and_is_what_is_checked():
    seen = []

    def doubled(x: Tensor, generator: torch.Generator) -> Tensor:
        seen.append((x.clone(), torch.rand(1, generator=generator).item()))
        return 2 * x

    before = X.clone()
    network, twin = perceptron(), perceptron()
    recipe = Recipe("adam", 0.01, 32, epochs=3)
    trained = train(network, X, Y, dataclasses.replace(recipe, augmentation=doubled))
    assert len(seen) == 3 and all(torch.equal(x, before) for x, _ in seen) and torch.equal(X, before)
    assert len({number for _, number in seen}) == 3
    assert trained == train(twin, 2 * X, Y, recipe) and same(network, twin)


def test_what_is_not_trained_is_left_as_it_was():
    network = perceptron().eval()
    network[1].requires_grad_(False)
    weight = network[1].weight.clone()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    train(network, X, Y, Recipe(epochs=1, batch_size=64, augmentation=noise))
    assert torch.equal(torch.get_rng_state(), state) and not network.training
    assert torch.equal(network[1].weight, weight) and not network[1].weight.requires_grad
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # torch, of CPUs that have no such arithmetic
def test_half_precision_learns_and_leaves_single_precision_weights():
    network = perceptron()
    trained = train(network, X, Y, Recipe("adam", 0.01, 32, epochs=5, precision="bfloat16"))
    assert trained.accuracy > 0.8 and network[1].weight.dtype == torch.float32
    assert not same(network, perceptron())


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_half_precision_beside_others_changes_neither_their_bits_nor_those_of_what_comes_after():
    before = Arithmetic.here()
    single, half = Recipe("adam", 0.01, 32, epochs=2), Recipe("adam", 0.01, 32, epochs=2, precision="bfloat16")
    together, alone = [perceptron(), perceptron()], [perceptron(), perceptron()]
    train_many(together, X, Y, [half, single])
    assert Arithmetic.here() == before
    for network, recipe in zip(alone, [half, single], strict=True):
        train(network, X, Y, recipe)
        assert Arithmetic.here() == before
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))


class NoLogits(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(1))[:, 0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda r: train(perceptron(), X, Y + 1, r), "labels up to 10 need logits of 1×11"),
        (lambda r: train(NoLogits(64, 10), X, Y, r), r"NoLogits gives \(1,\)"),
        (lambda r: train(nn.Flatten(), X, Y, r), "no parameters to train"),
        (lambda r: train(perceptron(), X, Y - 1, r), "the smallest is -1"),
        (lambda r: train(perceptron(), X, Y.float(), r), "whole number"),
        (lambda r: train(perceptron(), X, Y[:-1], r), "for each of 320 inputs"),
        (lambda r: train(perceptron(), X[:0], Y[:0], r), "at least one"),
        (lambda r: train(perceptron(), X.long(), Y, r), "floating point"),
        (lambda r: train(perceptron(), X * math.nan, Y, r), "NaN or infinite"),
        (lambda r: train(perceptron(), X[:20], Y[:20], r), "batch_size=64 of recipe 0 is larger than the data"),
        (lambda r: train_many([perceptron()], X, Y, [r, r]), "2 recipes, 2 checkpoints, 1 networks"),
        (lambda r: train_many(iter([perceptron()]), X, Y, [r, r]), "2 recipes, 1 networks"),
        (lambda r: train_many([perceptron()], X, Y, [r], checkpoints=[]), "1 recipes, 0 checkpoints"),
        (lambda r: train_many([perceptron()], X, Y, [r], at_once=0), "at_once=0"),
        (
            lambda r: train(perceptron(), X, Y, dataclasses.replace(r, augmentation=lambda x, g: x[1:])),
            "must keep their shape",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call(Recipe(epochs=1, batch_size=64))


def gpu_grid() -> list[tuple[Callable[[], nn.Module], Recipe]]:
    def plain(seed: int) -> nn.Module:
        with seeded(seed):
            return vgg(1, 8, batch_norm=False, dropout=0.3, channels=1)

    more = [
        (lambda: plain(0), Recipe("adam", 0.003, 40, 1e-3, epochs=3, precision="bfloat16", seed=5)),
        (lambda: plain(1), Recipe("sgd", 0.02, 40, 1e-3, epochs=3, precision="tf32", augmentation=noise, seed=6)),
    ]
    return GRID + more


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("at_once", [1, 4])
def test_recorded_steps_side_by_side_are_the_plain_steps_of_each_network(monkeypatch, at_once):
    # Algorithms are chosen by shape and are deterministic, so the results are equal to the last bit.
    makes, recipes = zip(*gpu_grid(), strict=True)
    recorded = [make().cuda() for make in makes]
    kept: list[bool] = []
    close = Steps.close
    monkeypatch.setattr(Steps, "close", lambda self: (kept.append(self.graph is not None), close(self))[1])
    state = torch.cuda.get_rng_state()
    results = train_many(recorded, X, Y, recipes, at_once=at_once)
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert kept == [True] * len(recipes)
    monkeypatch.setattr(Steps, "_record", lambda self: None)
    for network, make, recipe, result in zip(recorded, makes, recipes, results, strict=True):
        twin = make().cuda()
        expected = train(twin, X, Y, recipe)
        assert same(network, twin) and repr(result) == repr(expected)
        assert all(p.is_contiguous() and p.grad is None for p in network.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_trains_as_a_cpu_does():
    # The same order of the same data; no dropout, whose random numbers differ between devices.
    recipe = Recipe("sgd", 0.02, 40, 1e-3, epochs=2, seed=7)
    networks = [vgg(1, 4, channels=1) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    results = train(networks[0], X, Y, recipe), train(networks[1].cuda(), X, Y, recipe)
    # 16 steps of rounding in another order.
    assert results[0].loss == pytest.approx(results[1].loss, rel=1e-3)
    weights = networks[0].state_dict(), networks[1].cpu().state_dict()
    torch.testing.assert_close(*weights, atol=1e-3, rtol=1e-2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_broken_off_training_on_a_gpu_goes_on_to_the_same_result(tmp_path):
    makes, recipes = zip(*gpu_grid(), strict=True)
    whole, again = [make().cuda() for make in makes], [make().cuda() for make in makes]
    expected = train_many(whole, X, Y, recipes)
    paths = [tmp_path / f"{i}.safetensors" for i in range(len(makes))]
    with pytest.raises(Killed), listening(kill_after(9)):
        train_many([make().cuda() for make in makes], X, Y, recipes, checkpoints=paths, every_s=0)
    results = train_many(again, X, Y, recipes, checkpoints=paths, every_s=0)
    assert repr(results) == repr(expected) and all(same(a, b) for a, b in zip(whole, again, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_step_that_cannot_be_recorded_is_trained_without(caplog):
    class Looks(nn.Module):
        """Reads a number from the GPU, which no graph can."""

        def forward(self, x: Tensor) -> Tensor:
            return x * (1.0 if x.sum().item() > -1e9 else 2.0)

    recipe = Recipe("sgd", 0.05, 50, epochs=3)
    networks = [nn.Sequential(*middle, perceptron()).cuda() for middle in ([Looks()], [nn.Identity()])]
    trained, expected = train_many(networks, X, Y, [recipe, recipe], at_once=2)
    assert trained == expected and "cannot be recorded as a CUDA graph" in caplog.text
    torch.testing.assert_close(networks[0].state_dict(), networks[1].state_dict(), atol=0, rtol=0)
