from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import nn

from assay import AssayError
from assay.core.determinism import seeded
from assay.stats.convergence import below_population, converged, population_threshold
from assay.training import (
    LiveLoss,
    LiveMeasure,
    Moment,
    Recipe,
    StopBelowPopulation,
    StopWhenConverged,
    Together,
    callbacks,
    train,
    train_many,
)

DIGITS = load_digits()
X = torch.from_numpy(DIGITS.images[:128, None] / 16).float()
Y = torch.from_numpy(DIGITS.target[:128])
RECIPE = Recipe("adam", 0.01, 32, epochs=6, seed=3)


def perceptron(seed: int = 0) -> nn.Module:
    with seeded(seed):
        layers = [nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3)]
        return nn.Sequential(*layers, nn.Linear(16, 10))


def rude(module: nn.Module) -> float:
    """A measure that draws random numbers of every kind, changes modes and buffers, and leaves gradients behind."""
    random.random()
    np.random.rand()  # noqa: NPY002
    torch.rand(3)
    module.train()
    loss = module(X.to(module[1].weight.device)).square().mean()
    loss.backward()
    module[1].weight.requires_grad_(False)
    torch.set_grad_enabled(False)
    return float(loss)


def moments(*values: float, every: int = 5) -> list[Moment]:
    return [Moment(every * (i + 1), i, value, float(i), nn.Identity()) for i, value in enumerate(values)]


def test_a_live_measure_leaves_the_training_the_same_to_the_bit():
    plain, measured = perceptron(), perceptron()
    before = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state())  # noqa: NPY002
    live = LiveMeasure(rude, "rude", every=1)
    expected = train(plain, X, Y, RECIPE)
    assert train(measured, X, Y, RECIPE, callback=live) == expected
    assert live.epochs == [1, 2, 3, 4, 5, 6]
    for name, value in plain.state_dict().items():
        assert torch.equal(value, measured.state_dict()[name]), name
    assert random.getstate() == before[0] and np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2]) and torch.is_grad_enabled()


def test_a_live_measure_leaves_modes_gradients_and_buffers_as_it_finds_them():
    network = perceptron().train()
    network[2].eval()  # a frozen part stays frozen
    network[5].bias.requires_grad_(False)
    network(X).sum().backward()
    gradients = [p.grad for p in network.parameters()]
    values = [None if g is None else g.clone() for g in gradients]
    buffers = [b.clone() for b in network.buffers()]
    modes = [m.training for m in network.modules()]
    seen = []
    LiveMeasure(lambda m: seen.append(any(p.training for p in m.modules())) or rude(m), every=1)(
        Moment(1, 1, 0.0, 0.0, network)
    )
    assert seen == [False]
    assert [m.training for m in network.modules()] == modes
    assert [p.requires_grad for p in network.parameters()][-1] is False and network[1].weight.requires_grad
    for parameter, gradient, value in zip(network.parameters(), gradients, values, strict=True):
        assert parameter.grad is gradient and (value is None or torch.equal(gradient, value))
    assert all(torch.equal(a, b) for a, b in zip(network.buffers(), buffers, strict=True))


def test_what_a_measure_raises_leaves_the_network_as_it_was():
    network = perceptron().train()

    def broken(module: nn.Module) -> float:
        rude(module)
        raise RuntimeError("no such layer")

    with pytest.raises(RuntimeError, match="no such layer"):
        LiveMeasure(broken, every=1)(Moment(1, 1, 0.0, 0.0, network))
    assert network.training and all(p.grad is None for p in network.parameters()) and torch.is_grad_enabled()


def test_the_table_of_a_live_measure_is_tidy():
    live = LiveMeasure(lambda m: 2.0, "two", every=2)
    both = Together(live, LiveLoss(every=3))
    train(perceptron(), X, Y, RECIPE, callback=both)
    table = live.table
    assert list(table.columns) == ["epoch", "step", "seconds", "loss", "quantity", "value", "measure_s"]
    assert table["epoch"].tolist() == [2, 4, 6] and table["step"].tolist() == [8, 16, 24]
    assert table["quantity"].eq("two").all() and table["seconds"].is_monotonic_increasing
    assert LiveMeasure(lambda m: 0.0).table.empty


def test_a_callback_ends_the_training_of_its_network_alone_and_the_result_says_so():
    networks = [perceptron(0), perceptron(1)]
    results = train_many(networks, X, Y, [RECIPE, RECIPE], callbacks=[lambda m: m.epoch == 2, None])
    assert [(r.status, r.epochs) for r in results] == [("halted", 2), ("ended", 6)]
    assert 0 <= results[0].accuracy <= 1 and not results[0].stopped
    alone = train(perceptron(1), X, Y, RECIPE)
    assert results[1] == alone


def test_a_halted_training_stays_halted_when_it_is_continued_from_its_checkpoint(tmp_path):
    path = tmp_path / "network.safetensors"
    first = train(perceptron(), X, Y, RECIPE, checkpoint=path, callback=lambda m: m.epoch == 3)
    calls = []
    again = train(perceptron(), X, Y, RECIPE, checkpoint=path, callback=calls.append)
    assert first == again and first.status == "halted" and not calls


class Killed(Exception):
    pass


def killed_at(epoch: int):
    def kill(moment: Moment) -> None:
        if moment.epoch == epoch:
            raise Killed

    return kill


def stops() -> list:
    population = StopBelowPopulation(LiveMeasure(lambda module: 0.0, "zero", every=2), [1.0, 1.1], after=4)
    return [StopWhenConverged(LiveLoss(every=1), window=3, sd=10.0), population]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("kill", [1, 3])
def test_a_training_that_a_callback_stops_stops_where_it_would_have_without_being_killed(tmp_path, kind, kill):
    alone = stops()[kind]
    expected = train(perceptron(), X, Y, RECIPE, callback=alone)
    assert (expected.status, expected.epochs) == ("halted", 4)
    path = str(tmp_path / "network.safetensors")
    with pytest.raises(Killed):
        callback = Together(killed_at(kill), stops()[kind])
        train(perceptron(), X, Y, RECIPE, checkpoint=path, every_s=0, callback=callback)
    resumed = Together(None, killed_at(9), stops()[kind])
    assert train(perceptron(), X, Y, RECIPE, checkpoint=path, every_s=0, callback=resumed) == expected
    again = stops()[kind]
    train(perceptron(), X, Y, RECIPE, checkpoint=path, callback=Together(killed_at(0), again))  # it is finished
    columns = ["epoch", "step", "loss", "quantity", "value"]
    assert again.live.table[columns].equals(alone.live.table[columns]) and again.stopped_at == 4


def test_a_checkpoint_without_the_history_of_a_callback_says_so(tmp_path, caplog):
    path = tmp_path / "network.safetensors"
    with pytest.raises(Killed):
        train(perceptron(), X, Y, RECIPE, checkpoint=path, every_s=0, callback=killed_at(3))
    train(perceptron(), X, Y, RECIPE, checkpoint=path, callback=stops()[0])
    assert "what it saw in the first 2 epochs is not known to it" in caplog.text


def test_a_checkpoint_of_another_callback_is_refused(tmp_path):
    path = tmp_path / "network.safetensors"
    with pytest.raises(Killed):
        callback = Together(killed_at(3), stops()[0])
        train(perceptron(), X, Y, RECIPE, checkpoint=path, every_s=0, callback=callback)
    for other in (LiveLoss(), Together(LiveLoss()), Together(None, killed_at(9), stops()[1])):
        with pytest.raises(AssayError, match=r"network\.safetensors does not hold what this training writes"):
            train(perceptron(), X, Y, RECIPE, checkpoint=path, callback=other)


def test_the_state_of_a_callback_must_fit_into_a_checkpoint(tmp_path):
    class Remembers:
        def __call__(self, moment): ...
        def state_dict(self):
            return {"weights": torch.ones(2)}

        def load_state_dict(self, state): ...

    with pytest.raises(AssayError, match="return numbers, texts, lists and dictionaries"):
        train(perceptron(), X, Y, RECIPE, checkpoint=tmp_path / "n.safetensors", callback=Remembers())


@pytest.mark.parametrize("yes", [True, np.bool_(True), np.array(True), torch.tensor(True), torch.tensor([True])])
def test_any_true_stops_the_training(yes):
    for callback in (lambda moment: yes, Together(lambda moment: yes)):
        assert train(perceptron(), X, Y, RECIPE, callback=callback).epochs == 1
    no = ~torch.as_tensor(yes)
    assert train(perceptron(), X, Y, RECIPE, callback=lambda moment: no).epochs == 6


def test_an_answer_that_is_neither_true_nor_false_is_named():
    with pytest.raises(AssayError, match=r"a callback returned 0\.5: return True to stop"):
        train(perceptron(), X, Y, RECIPE, callback=lambda moment: 0.5)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_callback_begins_anew_with_a_second_training(kind):
    stop = stops()[kind]
    first = train(perceptron(0), X, Y, RECIPE, callback=stop)
    second = train(perceptron(1), X, Y, RECIPE, callback=stop)
    assert first.epochs == second.epochs == 4 and stop.stopped_at == 4
    assert stop.live.epochs == ([1, 2, 3, 4], [2, 4])[kind]
    assert stop.live.table["loss"].tolist()[-1] == second.history[-1].running_loss
    stop(Moment(1, 1, 0.5, 0.0, nn.Identity()))
    assert stop.stopped_at is None


def test_convergence_is_found_at_the_same_epoch_live_and_afterwards():
    values = [0.3, 0.1, 0.2, 0.17, 0.12, 0.13, 0.13, 0.131, 0.129, 0.13, 0.13, 0.5]
    stop = StopWhenConverged(LiveLoss(every=5))
    answers = [stop(moment) for moment in moments(*values)]
    epoch = converged(values, [5 * (i + 1) for i in range(len(values))])
    assert epoch == stop.stopped_at == 5 * (answers.index(True) + 1) == 50


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 10), st.floats(0, 0.3))
def test_convergence_by_its_definition(values, window, sd):
    epochs = list(range(1, len(values) + 1))
    expected = None
    for last in range(len(values)):
        if last >= window and np.std(values[last - window : last + 1], ddof=1) <= sd:
            expected = last + 1
            break
    assert converged(values, epochs, window, sd) == expected


def test_convergence_needs_a_whole_window_of_finite_values():
    assert converged([0.1] * 5, [5, 10, 15, 20, 25]) is None
    assert converged([0.1] * 6, [5, 10, 15, 20, 25, 30]) == 30
    assert converged([0.1, float("nan"), 0.1, 0.1], [1, 2, 3, 4], window=2) is None
    assert converged([0.1, 0.1], [1, 100]) is None  # one value in the last 25 epochs tells nothing
    with pytest.raises(AssayError, match="an epoch for each value: there are 2 values and 1 epochs"):
        converged([1, 2], [1])
    with pytest.raises(AssayError, match="ascending"):
        converged([1, 2], [2, 2])
    with pytest.raises(AssayError, match="window=0"):
        StopWhenConverged(LiveLoss(), window=0)


def test_measurements_must_cover_the_window_and_regular_ones_always_do():
    assert converged([0.1, 0.2, 0.2], [0, 100, 101]) is None  # nothing is known of epochs 76 to 99
    assert converged([0.1, 0.2, 0.2, 0.2], [0, 100, 101, 125]) == 125
    assert converged([0.2] * 7, [0, 10, 50, 60, 70, 80, 90], window=25) == 70  # values at 50, 60 and 70, of 45 to 70
    for every in (5, 7, 10):
        epochs = list(range(every, 101, every))
        assert converged([0.1] * len(epochs), epochs) == next(e for e in epochs if e - 25 >= every)


def test_parts_of_epochs_are_returned_as_they_were_given():
    epochs = [0.5 + 2.5 * i for i in range(20)]
    assert converged([0.0, 0.1] + [0.2] * 18, epochs) == 30.5
    tenths = [i / 10 for i in range(1, 40)]
    assert converged([0.1] * 39, tenths, window=1) == 1.1  # 1.1 − 1 is a little more than 0.1


def test_a_network_is_stopped_below_mean_plus_sd_of_its_population():
    population = [0.05, 0.1, 0.15]  # mean 0.1, SD 0.05
    assert population_threshold(population) == pytest.approx(0.15)
    assert below_population(0.149, population) and not below_population(0.151, population)
    assert below_population(float("nan"), population)
    assert not below_population(0.0, [0.5]) and not below_population(0.0, [0.5, float("nan")])
    stop = StopBelowPopulation(LiveLoss(every=5), population, after=15)
    assert [stop(moment) for moment in moments(0.0, 0.0, 0.2, 0.1)] == [False, False, False, True]
    assert stop.stopped_at == 20
    asked = []
    stop = StopBelowPopulation(LiveLoss(every=5), lambda epoch: asked.append(epoch) or [], after=10)
    assert not any(stop(moment) for moment in moments(0.0, 0.0, 0.0)) and asked == [10, 15]


def test_the_time_of_a_training_has_no_callback_in_it_neither_its_own_nor_a_neighbours(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: now[0])
    mine, neighbours = callbacks.Clock(), callbacks.Clock()
    now[0] = 1.0
    with neighbours.stopped():
        now[0] = 10.0
    with mine.stopped():
        now[0] = 20.0
    now[0] = 21.0
    later = callbacks.Clock()
    now[0] = 23.0
    assert (mine.seconds, neighbours.seconds, later.seconds) == (4.0, 4.0, 2.0)


def test_wrong_settings_of_a_live_measure_are_named():
    with pytest.raises(AssayError, match="every=0"):
        LiveMeasure(len, every=0)
    with pytest.raises(AssayError, match="measure=3 is no function"):
        LiveMeasure(3)  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_too_a_live_measure_leaves_the_training_the_same_to_the_bit():
    networks = [perceptron().cuda() for _ in range(2)]
    live = LiveMeasure(rude, "rude", every=1)
    expected = train(networks[0], X, Y, RECIPE)
    assert train(networks[1], X, Y, RECIPE, callback=live) == expected and live.epochs == [1, 2, 3, 4, 5, 6]
    for name, value in networks[0].state_dict().items():
        assert torch.equal(value, networks[1].state_dict()[name]), name
