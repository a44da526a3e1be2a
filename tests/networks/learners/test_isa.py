from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from assay import AssayError, Subject
from assay.core.progress import listening
from assay.networks.learners import isa
from assay.networks.learners.isa import (
    StackedISA,
    SubspaceAnalysis,
    orthogonalised,
    subspace_direction,
    subspace_energies,
    subspace_objective,
    subspace_step,
    whitening,
)
from assay.training import Greedy


def small(**changes) -> StackedISA:
    """Three layers on blocks of 8×8×8, quick to learn."""
    settings = {
        "sizes": ((4, 4, 4), (6, 6, 6), (8, 8, 8)),
        "components": (20, 12, 8),
        "groups": (1, 2, 2),
        "stride": 2,
        "iterations": 25,
    }
    return StackedISA(**{**settings, **changes})


BLOCKS = np.random.default_rng(0).normal(size=(300, 8, 8, 8)).cumsum(1).astype(np.float32) / 3


def planted(pairs: int, samples: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Pairs of sources with a heavy-tailed radius in common, mixed by a random matrix: inputs and the mixing."""
    rng = np.random.default_rng(seed)
    radius = rng.exponential(size=(samples, pairs)) ** 1.5
    angle = rng.uniform(0, 2 * np.pi, (samples, pairs))
    sources = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 2).reshape(samples, -1)
    mixing = rng.normal(size=(2 * pairs, 2 * pairs))
    return torch.from_numpy(sources @ mixing.T), mixing


# -- pure functions -------------------------------------------------------------------------------------


def test_energies_and_objective_are_the_written_formula():
    rng = np.random.default_rng(1)
    w, z = rng.normal(size=(6, 5)), rng.normal(size=(7, 5))
    v = np.kron(np.eye(2), np.ones((1, 3)))
    expected = np.sqrt(1e-4 + (z @ w.T) ** 2 @ v.T)
    found = subspace_energies(torch.from_numpy(w), torch.from_numpy(z), group=3)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    objective = subspace_objective(torch.from_numpy(w), torch.from_numpy(z), group=3)
    assert objective == pytest.approx(expected.sum() / 7, rel=1e-13)


def test_the_direction_is_the_negative_gradient_made_tangent():
    torch.manual_seed(0)
    z = torch.randn(50, 6, dtype=torch.float64)
    w = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64)).Q.requires_grad_()
    subspace_energies(w, z, 2).sum(1).mean().backward()
    w, down = w.detach(), -w.grad
    direction = subspace_direction(w, z, 2)
    torch.testing.assert_close(direction, down - w @ down.T @ w, atol=1e-12, rtol=0)
    turned = direction @ w.T
    torch.testing.assert_close(turned, -turned.T, atol=1e-12, rtol=0)  # WWᵀ stays I to first order


def test_orthogonalising_gives_the_polar_factor():
    torch.manual_seed(0)
    w = torch.randn(5, 9, dtype=torch.float64)
    u, _, v = torch.linalg.svd(w, full_matrices=False)
    torch.testing.assert_close(orthogonalised(w), u @ v, atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("group", [1, 2])
def test_every_step_keeps_rows_orthonormal_and_never_raises_the_objective(dtype, group):
    x, _ = planted(4, 500, seed=2)
    mean, projection = whitening(x, 7 if group == 1 else 6)
    z = ((x - mean) @ projection.T).to(dtype)
    torch.manual_seed(0)
    w = orthogonalised(torch.randn(z.shape[1], z.shape[1], dtype=dtype))
    step, value, taken = 50.0, subspace_objective(w, z, group), []  # far too long a stride: some must be refused
    for _ in range(80):
        before = w
        w, step, new, moved = subspace_step(w, z, group, step, value)
        assert new <= value and moved is not torch.equal(w, before)
        assert new == pytest.approx(subspace_objective(w, z, group), abs=0)
        # Products of 8 terms of order 1: a few units in the last place.
        torch.testing.assert_close(w @ w.T, torch.eye(len(w), dtype=dtype), atol=40 * torch.finfo(dtype).eps, rtol=0)
        value = new
        taken.append(moved)
    assert any(taken) and not all(taken)


def test_the_longer_stride_is_taken_where_it_is_better_and_the_shorter_where_not():
    x, _ = planted(3, 400, seed=0)
    mean, projection = whitening(x, 4)
    z = (x - mean) @ projection.T
    w = torch.eye(4, dtype=torch.float64)
    start = subspace_objective(w, z, 2)
    seen = set()
    for step in (1e-3, 0.3, 1.0, 3.0, 10.0):
        direction = subspace_direction(w, z, 2)
        tried = {s: subspace_objective(orthogonalised(w + s * direction), z, 2) for s in (step * 4 / 3, step * 3 / 4)}
        _, stride, value, moved = subspace_step(w, z, 2, step, start)
        best = min(tried.values())
        assert moved == (best <= start)
        assert value == pytest.approx(min(best, start), rel=1e-14)
        assert stride == pytest.approx(min(tried, key=tried.get) if moved else step * 3 / 4)
        seen.add((moved, stride > step))
    assert {(True, True), (True, False)} <= seen


def test_whitened_inputs_have_identity_covariance_and_ignore_the_mean_of_a_block():
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(5000, 12)) @ rng.normal(size=(12, 12)) + rng.normal(size=12))
    mean, projection = whitening(x, 9)
    z = ((x - mean) @ projection.T).numpy()
    np.testing.assert_allclose(np.cov(z.T, bias=True), np.eye(9), atol=1e-9)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-9)
    lighter = ((x + 7 - mean) @ projection.T).numpy()
    np.testing.assert_allclose(lighter, z, atol=1e-8)
    own = (x - x.mean(1, keepdim=True)).numpy()
    strongest = np.linalg.eigvalsh(np.cov(own.T, bias=True))[::-1][:9]
    np.testing.assert_allclose(1 / (projection**2).sum(1), strongest, rtol=1e-9)


# -- one layer ------------------------------------------------------------------------------------------


def test_planted_subspaces_are_found_up_to_rotation_inside_each():
    """W·P·A takes each planted pair to one subspace: the energy of its 2×2 blocks is that of a permutation.

    ISA has local minima in which a subspace holds one direction of each of two pairs. Two of three starts end there, so
    the best of many is looked at; the objective tells which. The mean of a block is not seen, hence one more value that
    brings it to zero.
    """
    x, mixing = planted(2, 3000, seed=0)
    x = torch.cat([x, -x.sum(1, keepdim=True)], 1).reshape(-1, 1, 1, 1, 5)
    mixing = np.concatenate([mixing, -mixing.sum(0, keepdims=True)])
    runs = []
    for start in range(24):
        torch.manual_seed(start)
        layer = SubspaceAnalysis(1, (1, 1, 5), 4, group=2).double()
        values = layer.learn(x, iterations=100)
        energy = ((layer.weight @ layer.projection).numpy() @ mixing).reshape(2, 2, 2, 2) ** 2
        runs.append((values[-1], energy.sum((1, 3))))
    _, energy = min(runs, key=lambda run: run[0])
    found = energy / energy.sum(1, keepdims=True)
    # A mean of 3,000 samples is good to about 2 % in amplitude, 0.04 % in energy; heavy tails make it more.
    assert sorted(found.argmax(1)) == [0, 1] and found.max(1).min() > 0.99


def test_forward_is_the_formula_on_each_block_of_a_larger_input():
    torch.manual_seed(0)
    layer = SubspaceAnalysis(2, (2, 3, 3), 10, group=2, stride=2, clip=True)
    layer.mean.normal_()
    x = torch.randn(3, 2, 4, 5, 7)
    found = layer(x)
    assert found.shape == (3, 5, 2, 2, 3)
    part = x[1, :, 2:4, 0:3, 4:7].clamp(0, 1).flatten()
    y = layer.weight @ layer.projection @ (part - layer.mean)
    expected = (1e-4 + y.square().reshape(5, 2).sum(1)).sqrt()
    torch.testing.assert_close(found[1, :, 1, 0, 2], expected, atol=1e-5, rtol=1e-5)


def test_learning_stops_when_the_objective_no_longer_falls():
    x = torch.randn(400, 1, 1, 1, 4, generator=torch.Generator().manual_seed(0))  # nothing to find in normal noise
    values = SubspaceAnalysis(1, (1, 1, 4), 2).learn(x, iterations=2000)
    assert 200 <= len(values) - 1 < 300
    assert all(b <= a for a, b in pairwise(values))
    assert len(SubspaceAnalysis(1, (1, 1, 4), 2).learn(x, iterations=7)) == 8


# -- stacked --------------------------------------------------------------------------------------------


def test_a_block_of_20x20x14_is_covered_by_8_blocks_of_16x16x10():
    network = StackedISA()
    assert network.stack[1].size == (2, 2, 2)
    assert network.stack[0](torch.zeros(1, 14, 20, 20)).shape == (1, 300, 2, 2, 2)
    assert network.stack[1](network.stack[0](torch.zeros(1, 14, 20, 20))).shape == (1, 100, 1, 1, 1)
    assert len(network.layers) >= 3


def test_it_learns_represents_and_becomes_shallow_like_other_stacks():
    network = small()
    untrained = network.transform(BLOCKS[:5])
    assert network.fit(BLOCKS) is network
    assert [network.transform(BLOCKS[:5], layer=i).shape for i in range(3)] == [(5, 540), (5, 48), (5, 4)]
    assert not np.allclose(network.transform(BLOCKS[:5]), untrained)
    for layer in network.stack:
        torch.testing.assert_close(layer.weight @ layer.weight.T, torch.eye(len(layer.weight)), atol=1e-5, rtol=0)
    subject = Subject(network, "isa").record(torch.from_numpy(BLOCKS[:5]), network.layers)
    for i, layer in enumerate(network.layers):
        np.testing.assert_allclose(network.transform(BLOCKS[:5], i), subject[layer].flatten(1), atol=1e-6)
    once = network.transform(BLOCKS[:5])
    np.testing.assert_array_equal(network.fit(BLOCKS).transform(BLOCKS[:5]), once)  # fit begins anew
    alone = network.shallow()
    assert alone.layers == ["stack.0"]
    torch.testing.assert_close(alone.stack[0].state_dict(), small().stack[0].state_dict(), atol=0, rtol=0)
    assert alone.fit(BLOCKS[:, :4, :4, :4]).transform(BLOCKS[:5, :4, :4, :4]).shape == (5, 20)


def test_the_first_layer_is_the_same_alone_and_in_a_stack():
    deep, alone = small().fit(BLOCKS), small().shallow().fit(BLOCKS)
    torch.testing.assert_close(deep.stack[0].state_dict(), alone.stack[0].state_dict(), atol=0, rtol=0)


def test_batches_and_a_channel_axis_change_nothing():
    network = small().fit(BLOCKS)
    whole = network.transform(BLOCKS[:40])
    # Matrix products of other sizes may round differently.
    np.testing.assert_allclose(network.transform(BLOCKS[:40], batch_size=7), whole, atol=1e-5)
    np.testing.assert_allclose(network.transform(BLOCKS[:40, None]), whole, atol=1e-5)


def test_what_is_shown_to_a_larger_input_is_what_each_block_gives():
    network = small().fit(BLOCKS)
    film = torch.from_numpy(np.random.default_rng(4).normal(size=(1, 10, 12, 8)).astype(np.float32))
    with torch.no_grad():
        all_of_it = network(film)
        assert all_of_it.shape == (1, 4, 2, 3, 1)
        one = network(film[:, 2:10, 4:12, 0:8])
    torch.testing.assert_close(all_of_it[:, :, 1, 2, 0], one[..., 0, 0, 0], atol=1e-5, rtol=1e-5)


def test_upper_layers_see_activations_clipped_to_one():
    network = small().fit(BLOCKS)
    with torch.no_grad():
        below = network.stack[0](torch.from_numpy(BLOCKS[:20]))
        assert below.max() > 1 and below.min() >= isa.EPSILON**0.5
        torch.testing.assert_close(network.stack[1](below), network.stack[1](below.clamp(0, 1)), atol=0, rtol=0)


def test_learning_reports_its_progress():
    seen = []
    with listening(lambda what, done, total: seen.append((what, done, total))):
        small(iterations=2).fit(BLOCKS)
    assert seen[:2] == [("learning layer 1 of 3", 1, 2), ("learning layer 1 of 3", 2, 2)] and len(seen) == 6


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: small(sizes=((4, 4, 4), (7, 6, 6), (8, 8, 8))), "do not cover"),
        (lambda: small(components=(20, 12)), "a value for each layer"),
        (lambda: small(components=(20, 13, 8)), "multiple of group"),
        (lambda: small(stride=0), "stride=0"),
        (lambda: small(iterations=0), "iterations=0"),
        (lambda: StackedISA((), (), ()), "at least one layer"),
        (lambda: SubspaceAnalysis(1, (2, 2, 2), 8), "fewer than the 8"),
        (lambda: small().fit(BLOCKS * np.nan), "NaN or infinite"),
        (lambda: small().fit(BLOCKS, y=np.zeros(300)), "without labels"),
        (lambda: small().fit(BLOCKS, settings=Greedy()), "its own steps"),
        (lambda: small().fit(BLOCKS[:, :, :5]), "or larger"),
        (lambda: small().fit(BLOCKS[0]), "are not blocks"),
        (lambda: small().fit(BLOCKS[:15]), "vary in 14 directions only"),
        (lambda: small().fit(np.ones_like(BLOCKS)), "vary in 0 directions only"),
        (lambda: small().transform(BLOCKS[:, :3]), "hold no block"),
        (lambda: small().transform(BLOCKS, layer=3), "layer=3"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()
