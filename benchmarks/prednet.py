"""Claim: a training step of PredNet takes at most 0.7 of the CPU time of a plain port of the published network.

The port has one convolution for each gate, float32, N×C×H×W, the errors as written. On a GPU (--device cuda) the step
is of the default network on batches of 4 sequences of 10 frames, recorded as a CUDA graph, in bfloat16 and
channels-last: sequences per second, the arithmetic of its convolutions as a share of what plain bfloat16 products of
this GPU reach, and how many small networks are trained per minute one after another and side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from timing import arguments, race_on_cpu, ratio, seconds, where
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.determinism import seeded
from assay.networks import PredNet
from assay.training import NextFrame, train_next_frame_many
from assay.training.footage_steps import Footage, FootageSteps

LENGTH, BATCH = 10, 4
CHANNELS = (3, 48, 96, 192)


class PlainPredNet(nn.Module):
    """PredNet as its definition is written, with a convolution module for each gate."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.channels = channels
        above = (*channels[1:], 0)

        def conv(inputs: int, outputs: int) -> nn.Conv2d:
            return nn.Conv2d(inputs, outputs, 3, padding=1)

        self.gates = nn.ModuleList(
            nn.ModuleList(conv(3 * a + up, a) for _ in range(4)) for a, up in zip(channels, above, strict=True)
        )
        self.ahat = nn.ModuleList(conv(a, a) for a in channels)
        self.a = nn.ModuleList(conv(2 * a, up) for a, up in pairwise(channels))

    def errors(self, frames: Tensor) -> Tensor:
        levels = len(self.channels)
        sizes = [(len(frames), frames.shape[3] >> n, frames.shape[4] >> n) for n in range(levels)]
        r = [frames.new_zeros(b, a, h, w) for a, (b, h, w) in zip(self.channels, sizes, strict=True)]
        c = [x.clone() for x in r]
        e = [torch.cat([x, x], 1) for x in r]
        table = []
        for t in range(frames.shape[1]):
            for n in reversed(range(levels)):
                z = [r[n], e[n]] if n == levels - 1 else [r[n], e[n], F.interpolate(r[n + 1], scale_factor=2)]
                i, f, o, g = (gate(torch.cat(z, 1)) for gate in self.gates[n])
                i, f, o = ((0.2 * x + 0.5).clip(0, 1) for x in (i, f, o))
                c[n] = f * c[n] + i * torch.tanh(g)
                r[n] = o * torch.tanh(c[n])
            a = frames[:, t]
            row = []
            for n in range(levels):
                ahat = torch.relu(self.ahat[n](r[n]))
                ahat = ahat.clip(max=1) if n == 0 else ahat
                e[n] = torch.cat([torch.relu(ahat - a), torch.relu(a - ahat)], 1)
                row.append(e[n].mean())
                if n < levels - 1:
                    a = F.max_pool2d(torch.relu(self.a[n](e[n])), 2)
            table.append(torch.stack(row))
        return torch.stack(table)


def footage(height: int, width: int) -> Footage:
    generator = torch.Generator().manual_seed(0)
    return Footage([torch.randint(0, 256, (64, 3, height, width), generator=generator, dtype=torch.uint8)])


def plain_step(shown: Footage, channels: tuple[int, ...]) -> Callable[[], None]:
    network = PlainPredNet(channels)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    starts = shown.starts(LENGTH)

    def step() -> None:
        chosen = starts[torch.randperm(len(starts))[:BATCH]]
        frames = torch.stack([shown.frames[at : at + LENGTH] for at in chosen.tolist()]).float() / 255
        optimizer.zero_grad()
        network.errors(frames)[1:, 0].mean().backward()
        optimizer.step()

    return step


def flops(channels: tuple[int, ...], height: int, width: int) -> float:
    """Arithmetic of the convolutions of one training step: twice the forward pass for the gradients."""
    total = 0
    for level, a in enumerate(channels):
        pixels = (height >> level) * (width >> level)
        above = channels[level + 1] if level + 1 < len(channels) else 0
        total += 9 * pixels * ((3 * a + above) * 4 * a + a * a + 2 * a * above)
    return 3.0 * 2.0 * total * LENGTH * BATCH


def cpu(rounds: int) -> None:
    height, width, channels = 32, 40, (3, 24, 48)
    shown = footage(height, width)
    with seeded(0):
        network = PredNet(channels)
    recipe = NextFrame(epochs=1, sequences=BATCH, batch_size=BATCH, length=LENGTH)
    steps = FootageSteps(network, shown, recipe, recipe.level_weights(len(channels)), None)

    def ours() -> None:
        steps.begin(0, 1e-3)
        steps.step()

    times = race_on_cpu({"assay": ours, "plain port": plain_step(shown, channels)}, rounds)
    print(f"{where('cpu')}: {LENGTH} frames of {height}×{width}, batch {BATCH}, channels {channels}")
    print(f"training step, CPU time: {ratio(times, 'assay', 'plain port'):.2f} of a plain port's (claim: at most 0.7)")


def peak(device: str) -> float:
    """Arithmetic per second that plain bfloat16 products reach."""
    x = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    return 2 * 8192**3 * 10 / min(seconds(lambda: [x @ x for _ in range(10)], device) for _ in range(3))


def gpu(device: str) -> None:
    height, width = 128, 160
    print(f"{where(device)}: {LENGTH} frames, batch {BATCH}, bfloat16")
    shown = footage(height, width)
    best = peak(device)
    recipe = NextFrame(epochs=1, sequences=50 * BATCH, batch_size=BATCH, length=LENGTH, precision="bfloat16")
    with seeded(0):
        network = PredNet(CHANNELS).to(device)
    stream = torch.cuda.Stream()
    steps = FootageSteps(network, shown, recipe, recipe.level_weights(len(CHANNELS)), stream)

    def epoch() -> None:
        steps.begin(0, 1e-3)
        for _ in range(recipe.steps):
            steps.step()

    epoch()  # the first records the step
    took = min(seconds(epoch, device) for _ in range(3)) / recipe.steps
    steps.close()
    share = flops(CHANNELS, height, width) / took / best
    print(
        f"{height}×{width}, channels {CHANNELS}: {1e3 * took:.2f} ms per step, {BATCH / took:.0f} sequences per second"
    )
    print(f"  {100 * share:.1f} % of the {best / 1e12:.0f} TFLOPS that products of 8192×8192 reach")
    small, size, epochs = (3, 24, 48, 96), (64, 80), 4
    clips = footage(*size).frames
    recipe = NextFrame(epochs=epochs, sequences=100, batch_size=BATCH, length=LENGTH, precision="bfloat16")
    for at_once, count in ((1, 4), (8, 16), (16, 32)):
        networks = [PredNet(small).to(device) for _ in range(count)]

        def train(networks: list[PredNet] = networks, at_once: int = at_once) -> object:
            return train_next_frame_many(networks, [clips], [recipe] * len(networks), at_once=at_once)

        took = seconds(train, device)
        rate = count * epochs * recipe.sequences / took
        what = f"{size[0]}×{size[1]}, channels {small}, {epochs} epochs of {recipe.sequences} sequences"
        print(
            f"{what}, {at_once} at once: {60 * count / took:.0f} networks per minute, {rate:.0f} sequences per second"
        )


if __name__ == "__main__":
    options = arguments(__doc__ or "")
    if options.device.startswith("cuda"):
        gpu(options.device)
    else:
        torch.set_num_threads(1)
        cpu(options.rounds)
