from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import AssayError
from assay.core.checkpoints import read_checkpoint, write_checkpoint
from assay.core.progress import listening
from assay.networks import ConvolutionalDeepBeliefNetwork, StackedAutoencoder
from assay.training import Greedy, greedy, population

DATA = np.random.default_rng(0).uniform(-1, 1, (300, 20)).astype(np.float32)
SETTINGS = Greedy(epochs=3, batch_size=64, learning_rate=5e-3)


def grid() -> list[StackedAutoencoder]:
    decays = [(0.0, 0.1), (0.01, 0.0), (0.1, 0.01)]
    return [StackedAutoencoder(20, (8, 5), decay, sparsity=i, target=-0.5, seed=i) for i, decay in enumerate(decays)]


def weights(network) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_a_population_learns_as_each_network_alone():
    together, alone = grid(), grid()
    population(together, DATA, SETTINGS)
    for network in alone:
        greedy(network, DATA, SETTINGS)
    for a, b, start in zip(together, alone, grid(), strict=True):
        # Batched and single matrix products round differently; Adam divides by √v, which amplifies that a little.
        torch.testing.assert_close(weights(a), weights(b), atol=2e-5, rtol=1e-4)
        assert (weights(a) - weights(start)).abs().max() > 0.01


def test_learning_lowers_the_loss_of_every_layer():
    network = StackedAutoencoder(20, (8, 5), seed=3)
    x = torch.from_numpy(DATA)
    with torch.no_grad():
        before = [network.stack[0].loss(x).item(), network.stack[1].loss(network.stack[0](x)).item()]
    greedy(network, DATA, Greedy(epochs=20, batch_size=50, learning_rate=1e-2))
    with torch.no_grad():
        after = [network.stack[0].loss(x).item(), network.stack[1].loss(network.stack[0](x)).item()]
    assert after[0] < before[0] and after[1] < 0.9 * before[1]


def test_lower_layers_stay_as_they_learned():
    deep, shallow = StackedAutoencoder(20, (8, 5), seed=1), StackedAutoencoder(20, (8,), seed=1)
    for network in (deep, shallow):
        greedy(network, DATA, SETTINGS)
    torch.testing.assert_close(deep.stack[0].state_dict(), shallow.stack[0].state_dict(), atol=0, rtol=0)


def test_a_checkpoint_that_was_changed_by_hand_is_refused(tmp_path):
    path = tmp_path / "greedy.safetensors"
    settings = Greedy(epochs=2, batch_size=100, checkpoint=str(path))
    greedy(StackedAutoencoder(20, (8, 5), seed=1), DATA, settings)
    tensors, progress = read_checkpoint(path)
    for change in ({"depth": 7}, {"epoch": "2"}, {"epoch": 3}):
        write_checkpoint(path, tensors, progress | change)
        with pytest.raises(AssayError, match=r"greedy\.safetensors does not hold what this training writes \(layer"):
            greedy(StackedAutoencoder(20, (8, 5), seed=1), DATA, settings)
    write_checkpoint(path, {"weights.0.a": torch.ones(1)}, progress)
    with pytest.raises(AssayError, match=r"does not hold what this training writes \(KeyError"):
        greedy(StackedAutoencoder(20, (8, 5), seed=1), DATA, settings)


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path, count):
    class Interrupt(Exception):
        pass

    def stop(what: str, done: int, total: int | None) -> None:
        if "layer 2" in what and done == 2:
            raise Interrupt

    whole, broken = grid()[:count], grid()[:count]
    population(whole, DATA, SETTINGS)
    settings = Greedy(**{**SETTINGS.__dict__, "checkpoint": tmp_path / "at.safetensors"})
    with pytest.raises(Interrupt), listening(stop):
        population(broken, DATA, settings)
    again = grid()[:count]
    seen = []
    with listening(lambda what, done, total: seen.append((what, done))):
        population(again, DATA, settings)
    assert seen[0] == ("learning layer 2 of 2", 2)  # epoch 1 of layer 2 was kept, nothing before is done again
    for a, b in zip(whole, again, strict=True):
        torch.testing.assert_close(weights(a), weights(b), atol=0, rtol=0)
    population(grid()[:count], DATA, settings)  # a finished one does nothing more
    assert not list(tmp_path.glob(".*"))


def test_a_checkpoint_of_another_training_is_refused_and_kept(tmp_path):
    path = tmp_path / "at.safetensors"
    settings = Greedy(epochs=1, checkpoint=path)
    greedy(grid()[0], DATA, settings)
    bytes_before = path.read_bytes()
    with pytest.raises(AssayError, match="another training"):
        greedy(grid()[1], DATA, settings)
    assert path.read_bytes() == bytes_before
    path.write_bytes(bytes_before[:100])
    with pytest.raises(AssayError, match="cannot be read"):
        greedy(grid()[0], DATA, settings)


def test_a_checkpoint_that_cannot_be_written_is_one_clear_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(AssayError, match="cannot be written"):
        greedy(grid()[0], DATA, Greedy(epochs=1, checkpoint=tmp_path / "file" / "at.safetensors"))


def test_stochastic_learning_is_reproducible_and_leaves_the_random_state_alone():
    pictures = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 1, 16, 16)).astype(np.float32))
    runs = []
    for _ in range(2):
        network = ConvolutionalDeepBeliefNetwork(maps=(4,), size=5)
        torch.manual_seed(_)
        state = torch.get_rng_state()
        greedy(network, pictures, Greedy(epochs=2, batch_size=10))
        assert torch.equal(torch.get_rng_state(), state)
        runs.append(weights(network))
    assert torch.equal(*runs)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: population([], DATA), "no networks"),
        (lambda: population([StackedAutoencoder(20, (8,)), StackedAutoencoder(20, (9,))], DATA), "differ in shape"),
        (lambda: greedy(grid()[0], DATA * np.nan), "NaN or infinite"),
        (lambda: Greedy(epochs=0), "epochs=0"),
        (lambda: greedy(grid()[0], DATA, Greedy(learning_rate=1e30)), "diverged"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()
