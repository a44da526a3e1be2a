"""Claim: on a CPU RetinaV1, VOne and the periphery model take at most 1.5 times as long as the filtering they must do.

Grey frames: 256 pixels for RetinaV1, 224 for the others. The bound of RetinaV1 is its separable convolutions and the
Fourier transforms of its pyramid; that of the periphery model the transforms of its pyramid, complex ones for bands;
that of VOne the product of its filters with patches that are already laid out: nothing else, not even the
multiplication with a pyramid's filters. torch's own convolution is beside VOne as a peer. On a CPU one thread computes,
and its own time counts, so that other work on the machine does not. On a GPU (--device cuda) the same models and bounds
in float32, by the clock.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable

import torch
from timing import arguments, race, race_on_cpu, ratio, where
from torch import Tensor, nn
from torch.nn import functional as F

from assay.networks import Periphery, RetinaV1, VOne
from assay.networks.front_ends.filters import blur, replicate_edges

TARGET = 1.5
Work = Callable[[], object]


def retina_v1(frames: int, device: str) -> tuple[nn.Module, Tensor, dict[str, Work]]:
    model = RetinaV1(256).to(device).eval()
    x = torch.rand(frames, 1, 256, 256, device=device)
    profile = model.retina.get_buffer("luminance")
    edged = replicate_edges(x, len(profile))
    pyramid = model.v1.pyramid
    shapes = [(frames, pyramid.orientations, side, side) for side in (256 >> scale for scale in range(pyramid.scales))]
    spectra = [torch.rand(shape, device=device, dtype=torch.complex64) for shape in shapes]

    def bound() -> None:
        for _ in range(4):  # centre, surround, luminance, contrast
            blur(edged, profile)
        torch.fft.fft2(x)
        for spectrum in spectra:
            torch.fft.ifft2(spectrum)

    return model, x, {"bound": bound}


def vone(frames: int, device: str) -> tuple[nn.Module, Tensor, dict[str, Work]]:
    model = VOne(channels=1).to(device).eval()
    x = torch.rand(frames, 1, 224, 224, device=device)
    weight = model.filters.get_buffer("weight")
    patches, rows = F.unfold(x, 25, padding=12, stride=4), weight.flatten(1)
    return model, x, {
        "bound": lambda: rows @ patches,
        "torch's convolution": lambda: F.conv2d(x, weight[:, None], padding=12, stride=4),
    }  # fmt: skip


def periphery(frames: int, device: str) -> tuple[nn.Module, Tensor, dict[str, Work]]:
    model = Periphery(224).to(device).eval()
    x = torch.rand(frames, 1, 224, 224, device=device)
    side = 224 + 2 * model.pyramid.margin
    padded = torch.rand(frames, side, side, device=device)
    real = [torch.fft.rfft2(torch.rand(frames, n, n, device=device)) for n in (side, *(side >> k for k in range(5)))]
    bands = [
        torch.rand(frames, 4, n, n, device=device, dtype=torch.complex64) for n in (side, side, side >> 1, side >> 2)
    ]

    def bound() -> None:
        torch.fft.fft2(padded)
        for spectrum in real:
            torch.fft.irfft2(spectrum)
        for band in bands:
            torch.fft.ifft2(band)

    return model, x, {"bound": bound}


def main() -> None:
    options = arguments(__doc__ or "")
    gpu = options.device.startswith("cuda")
    frames = options.batch or (64 if gpu else 32)
    if not gpu:
        torch.set_num_threads(1)
    print(f"{where(options.device)}; batches of {frames} frames, medians of {options.rounds} rounds")
    for name, make in {"RetinaV1": retina_v1, "VOne": vone, "periphery": periphery}.items():
        model, x, others = make(frames, options.device)
        contestants: dict[str, Work] = {name: functools.partial(model, x), **others}
        with torch.no_grad():
            times = (
                race(contestants, options.device, options.rounds) if gpu else race_on_cpu(contestants, options.rounds)
            )
        for contestant, seconds in times.items():
            rate = frames / statistics.median(seconds)
            print(f"{contestant:>20}: {rate:8.1f} frames/s, {ratio(times, contestant, 'bound'):.2f}× the bound's time")
        if not gpu:
            verdict = "met" if ratio(times, name, "bound") <= TARGET else "not met"
            print(f"{'':>20}  the claim of at most {TARGET}× is {verdict}")


if __name__ == "__main__":
    main()
