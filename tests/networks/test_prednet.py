"""PredNet: its size, its states at rest, and one step of training against a slow, literal implementation."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import assay
from assay.core.determinism import seeded
from assay.networks.over_time import OverTime
from assay.networks.prednet import PredNet
from assay.training.next_frame import NextFrame, train_next_frame


def made(*args, biased=True, **settings):
    """A PredNet in float64 whose biases are not 0, so that they are tested too."""
    with seeded(3):
        network = PredNet(*args, **settings).double()
        for name, parameter in network.named_parameters():
            if name.endswith("bias") and biased:
                torch.nn.init.normal_(parameter, std=0.3)
    return network


def video(*shape, seed=0):
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def literal_states(network, frames):
    """The definition word by word, one convolution per gate, for one video at a time; by time step A, Â, E, R."""
    levels = len(network.channels)
    r, c, e = {}, {}, {}
    for level in range(levels):
        size = (1, frames.shape[3] // 2**level, frames.shape[4] // 2**level)
        r[level] = frames.new_zeros(size[0], network.representation_channels[level], *size[1:])
        c[level] = r[level].clone()
        e[level] = frames.new_zeros(size[0], 2 * network.channels[level], *size[1:])

    def convolved(x, weight, bias):
        side = weight.shape[-1] // 2
        return F.conv2d(F.pad(x, (side,) * 4), weight, bias)

    def hard_sigmoid(a):
        return torch.clip(0.2 * a + 0.5, 0, 1)

    steps = []
    for t in range(frames.shape[1]):
        for level in reversed(range(levels)):
            z = [r[level], e[level]]
            if level + 1 < levels:
                z.append(r[level + 1].repeat_interleave(2, 2).repeat_interleave(2, 3))
            z = torch.cat(z, 1)
            gates = network.gates[level]
            kernels = zip(gates.weight.chunk(4), gates.bias.chunk(4), strict=True)
            i, f, o, g = (convolved(z, weight, bias) for weight, bias in kernels)
            c[level] = hard_sigmoid(f) * c[level] + hard_sigmoid(i) * torch.tanh(g)
            r[level] = hard_sigmoid(o) * torch.tanh(c[level])
        a = frames[:, t]
        states = []
        for level in range(levels):
            layer = network.predictions[level]
            ahat = torch.relu(convolved(r[level], layer.weight, layer.bias))
            if level == 0:
                ahat = torch.minimum(ahat, torch.ones_like(ahat))
            e[level] = torch.cat([torch.relu(ahat - a), torch.relu(a - ahat)], 1)
            states.append((a, ahat, e[level], r[level]))
            if level + 1 < levels:
                layer = network.targets[level]
                a = F.max_pool2d(torch.relu(convolved(e[level], layer.weight, layer.bias)), 2)
        steps.append(states)
    return steps


def literal_loss(network, frames, level_weights):
    """Σ_t λ_t Σ_l λ_l mean(E_l(t)), with λ_0 = 0 and λ_t = 1/(T − 1), the mean over the batch taken video by video."""
    total = 0.0
    for one in frames:
        for t, states in enumerate(literal_states(network, one[None])):
            for weight, (_, _, error, _) in zip(level_weights, states, strict=True):
                total = total + (weight * error.mean() / (frames.shape[1] - 1) if t else 0.0)
    return total / len(frames)


def test_the_default_has_the_published_number_of_parameters():
    network = PredNet()
    count = lambda part: sum(p.numel() for p in part.parameters())  # noqa: E731
    assert count(network) == 6_915_948
    assert (count(network.gates), count(network.predictions), count(network.targets)) == (6_062_424, 435_876, 417_648)


def test_at_rest_it_represents_and_predicts_nothing_and_its_error_is_the_frame():
    frames = video(2, 2, 3, 16, 16)
    network = made((3, 4, 5), biased=False)
    first = next(network.steps(frames))
    for level in first:
        assert not level.representation.any() and not level.prediction.any()
    assert torch.equal(first[0].error, torch.cat([torch.zeros_like(frames[:, 0]), frames[:, 0]], 1))
    assert network.errors(frames)[0, 0].item() == pytest.approx(frames[:, 0].mean().item() / 2, rel=1e-6)  # in float32


def test_every_state_at_every_step_equals_the_literal_implementation():
    network = made((2, 3, 4), (3, 5, 2), gate_size=(5, 3, 1), prediction_size=(1, 3, 5), target_size=(3, 5))
    frames = video(2, 4, 2, 8, 12)
    layers = ["A", "Ahat", "E", "R"]
    recorded = assay.Subject(network).record(frames)
    for n in range(2):
        for t, states in enumerate(literal_states(network, frames[n : n + 1])):
            for level, of_level in enumerate(states):
                for layer, state in zip(layers, of_level, strict=True):
                    # float64: the sums of a convolution in another order, nothing else
                    torch.testing.assert_close(recorded[f"{layer}{level}"][n, t], state[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("level_weights", [(1.0, 0.0, 0.0), (1.0, 0.1, 0.1)])
def test_one_step_of_training_equals_the_literal_implementation(level_weights):
    clip = (video(6, 3, 8, 8) * 255).round().to(torch.uint8)
    fast, slow = made((3, 4, 5)), made((3, 4, 5))
    how = NextFrame(epochs=1, sequences=1, batch_size=1, length=6, loss=level_weights)
    train_next_frame(fast, [clip], how)
    optimizer = torch.optim.Adam(slow.parameters(), lr=1e-3)
    literal_loss(slow, clip[None].double() / 255, level_weights).backward()
    optimizer.step()
    for ours, theirs in zip(fast.parameters(), slow.parameters(), strict=True):
        # Adam's first step is ±1e-3 whatever the gradient's size: a wrong gradient would show at 1e-3. (The gradient of
        # torch's hardsigmoid is a sixth in float32, also for float64: 1e-8 of it.)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-7)


def test_the_memory_format_of_the_weights_is_that_of_the_states_and_changes_no_result():
    frames = video(2, 3, 3, 8, 8)
    plain = made((3, 4, 5), gate_size=(1, 3, 3))
    laid_out = made((3, 4, 5), gate_size=(1, 3, 3)).to(memory_format=torch.channels_last)
    torch.testing.assert_close(plain(frames), laid_out(frames), rtol=1e-11, atol=1e-12)
    state = next(laid_out.steps(frames))[1].representation
    assert state.is_contiguous(memory_format=torch.channels_last) and not state.is_contiguous()


def test_the_gradient_of_the_frames_and_a_second_backward_are_those_of_plain_convolutions():
    network, frames = made((2, 3)), video(1, 3, 2, 4, 4).requires_grad_()
    loss = network.errors(frames).sum()
    first = torch.autograd.grad(loss, [frames, *network.parameters()], retain_graph=True)
    second = torch.autograd.grad(loss, [frames, *network.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    literal = sum(error.mean() for states in literal_states(network, frames) for _, _, error, _ in states)
    for ours, theirs in zip(first, torch.autograd.grad(literal, [frames, *network.parameters()]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)  # a sixth in float32, as above


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"channels": ()}, "channels=()"),
        ({"representation_channels": (3, 4)}, "give as many"),
        ({"gate_size": 4}, "gate_size=4"),
        ({"target_size": (3, 3, 3, 3)}, "or 3 of them"),
    ],
)
def test_settings_that_make_no_network_are_named(settings, said):
    with pytest.raises(assay.AssayError) as error:
        PredNet(**settings)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (torch.zeros(2, 3, 16, 16), "frames[None]"),
        (torch.zeros(1, 2, 3, 12, 16), "multiples of 8"),
        (torch.zeros(1, 2, 3, 175, 175), "assay.Subject(network, preprocess=assay.stimuli.Resize(176))"),
        (torch.zeros(1, 2, 3, 3, 3), "Resize(8)"),
        (torch.zeros(1, 2, 3, 16, 16, dtype=torch.uint8), "not torch.uint8: give bytes as frames / 255"),
    ],
)
def test_inputs_that_are_no_videos_of_its_size_are_named(frames, said):
    for ask in (PredNet(), PredNet().errors):
        with pytest.raises(assay.AssayError) as error:
            ask(frames)
        assert said in str(error.value)


def test_pictures_of_another_size_are_shown_by_a_subject_that_resizes_them():
    pictures = torch.rand(2, 3, 9, 9)
    shown = assay.Subject(PredNet((3, 4)), preprocess=assay.stimuli.Resize(8))
    assert shown.record(pictures[:, None].expand(-1, 3, -1, -1, -1), ["R1"])["R1"].shape == (2, 3, 4, 4, 4)


def test_a_convolution_over_time_learns_from_inputs_wider_than_its_weights():
    # Under a GPU's autocast the upsampling of bfloat16 gives float32, and going back nothing is narrowed.
    weight, bias = torch.rand(4, 2, 3, 3, requires_grad=True), torch.zeros(4, requires_grad=True)
    pictures = torch.rand(1, 2, 8, 8, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        convolution = OverTime(weight.to(torch.bfloat16), bias.to(torch.bfloat16))
        out = convolution(pictures)
    out.sum().backward()
    assert (out.dtype, pictures.grad.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    assert pictures.grad.abs().sum() > 0 and weight.grad.abs().sum() > 0
