"""Perturbation response curves: assay, the bare passes they need, and the plain loop over magnitudes.

ResNet-20 on 3 batches of 64 pictures of 32×32, mixup within classes, 21 magnitudes and one pass at random ones, no
bootstrap. At the input the limit is 22 forward passes; after stage 2 it is the first half once and the second half 22
times. The plain loop runs the whole network for every magnitude, the layer's output changed by a hook.

On a GPU (--device cuda): VGG-16, 180 batches of 128 pictures of 32×32, mixup within and between classes at the input
and at layer 1, 21 magnitudes, with intervals; in seconds (the PGDL competition allowed 300 for a network). The limit is
as many bare passes, all magnitudes of a batch at once, eager and compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from timing import arguments, race, ratio, seconds, where
from torch import nn

from assay import PerturbationResponse, Subject
from assay.measures.perturbation.curves import batches
from assay.networks import VGG, resnet20
from assay.stimuli import Labelled, Mixup

MAGNITUDES = 21
BATCH = 64
GPU_BATCH = 128


def pictures(count: int) -> Labelled:
    rng = np.random.default_rng(0)
    return Labelled(rng.random((count, 3, 32, 32), dtype=np.float32), np.arange(count) % 10)


def halves(net: nn.Module) -> tuple[nn.Sequential, nn.Sequential]:
    """ResNet-20 after its second stage, as two plain networks."""
    parts = dict(net.named_children())
    first = [parts[n] for n in ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2")]
    return nn.Sequential(*first), nn.Sequential(parts["layer3"], parts["avgpool"], nn.Flatten(), parts["linear"])


def passes(net: nn.Module, data: Labelled, times: int) -> None:
    with torch.no_grad():
        for start in range(0, len(data), BATCH):
            x = data.shown(slice(start, start + BATCH))
            for _ in range(times):
                net(x)


def cut_passes(prefix: nn.Module, rest: nn.Module, data: Labelled, times: int) -> None:
    with torch.no_grad():
        for start in range(0, len(data), BATCH):
            x = prefix(data.shown(slice(start, start + BATCH)))
            for _ in range(times):
                rest(x.clone())  # its first block writes over it


def plain_loop(net: nn.Module, layer: str, data: Labelled) -> list[float]:
    """The whole network for every magnitude."""
    mix, rng, right = Mixup("intra"), np.random.default_rng(0), np.zeros(MAGNITUDES + 1)
    for rows in batches(data.labels, BATCH, rng):
        x, (partner, _) = data.shown(rows), mix.draw(data.labels[rows], rng)
        labels = torch.tensor(data.labels[rows])
        for i, alpha in enumerate([*mix.magnitudes(MAGNITUDES), 0.25]):
            change = torch.full((len(x),), alpha)
            hook = net.get_submodule(layer).register_forward_hook(
                lambda module, args, output, p=partner, a=change: mix.on(output, p)(a)
            )
            with torch.no_grad():
                right[i] += (net(x).argmax(1) == labels).sum().item()
            hook.remove()
    return list(right / len(data))


def cpu(rounds: int) -> None:
    torch.manual_seed(0)
    net, data = resnet20().eval(), pictures(3 * BATCH)
    prefix, rest = halves(net)
    subject = Subject(net, "resnet20")
    at_input = PerturbationResponse(data, "intra", 0, magnitudes=MAGNITUDES, bootstrap=0, batch_size=BATCH)
    inside = PerturbationResponse(data, "intra", "layer2", magnitudes=MAGNITUDES, bootstrap=0, batch_size=BATCH)
    n = MAGNITUDES + 1
    times = race(
        {
            "assay, input": lambda: at_input(subject),
            "bare, input": lambda: passes(net, data, n),
            "assay, layer2": lambda: inside(subject),
            "bare, layer2": lambda: cut_passes(prefix, rest, data, n),
            "loop, layer2": lambda: plain_loop(net, "layer2", data),
        },
        "cpu",
        rounds,
    )
    print(f"{where('cpu')}; ResNet-20, {len(data)} pictures, {MAGNITUDES} magnitudes; medians of {rounds} rounds")
    print(f"at the input:  {ratio(times, 'assay, input', 'bare, input'):.2f}× the {n} bare passes")
    print(f"after stage 2: {ratio(times, 'assay, layer2', 'bare, layer2'):.2f}× prefix + {n} × rest")
    print(f"               {ratio(times, 'loop, layer2', 'assay, layer2'):.2f}× faster than the plain loop")


def gpu(device: str) -> None:
    stages = ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)
    data = pictures(180 * GPU_BATCH)
    measure = PerturbationResponse(data, ("intra", "inter"), (0, 1), magnitudes=MAGNITUDES, batch_size=GPU_BATCH)
    print(
        f"{where(device)}; VGG-16, 180 × {GPU_BATCH} pictures, intra and inter at layers 0 and 1, "
        f"{MAGNITUDES} magnitudes"
    )
    for dtype, compile in ((torch.bfloat16, True), (torch.bfloat16, False), (torch.float32, False)):
        torch.manual_seed(0)
        net = VGG(stages, 10).eval()
        subject = Subject(net, "vgg16", device=device, dtype=dtype, channels_last=True, compile=compile)
        first = seconds(lambda subject=subject: measure(subject), device)  # type: ignore[misc]
        took = min(seconds(lambda subject=subject: measure(subject), device) for _ in range(3))  # type: ignore[misc]
        with torch.no_grad():
            x = torch.rand(MAGNITUDES * GPU_BATCH, 3, 32, 32, device=device, dtype=dtype)
            x = x.contiguous(memory_format=torch.channels_last)
            passed: Any = torch.compile(subject.module) if compile else subject.module
            passed(x)
            limit = min(seconds(lambda passed=passed, x=x: many(passed, x), device) for _ in range(2))  # type: ignore[misc]
        kind = f"{str(dtype).removeprefix('torch.'):>9}, {'compiled' if compile else 'eager':>8}"
        bare = f"{took / limit:.2f}× the {4 * 180} bare passes of {len(x)} ({limit:.2f} s)"
        print(f"{kind}: {took:.2f} s for 4 curves (the first time {first:.1f} s), {bare}", flush=True)


def many(net: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    for _ in range(4 * 180):
        net(x)


if __name__ == "__main__":
    options = arguments(__doc__ or "")
    if options.device.startswith("cuda"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        gpu(options.device)
    else:
        cpu(options.rounds)
