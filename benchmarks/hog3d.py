"""HOG3D of a clip: assay, NumPy box by box, and the bound.

60 frames of 300×168 pixels, the Hollywood2 setting, the reduced grid of boxes and the whole one. The peer takes sums
from an integral video too, and quantises all sub-blocks of a box at once. The bound reads the clip and takes its three
gradients once, and nothing else.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from timing import arguments, race, ratio, where

from assay.broad.systems.features.clips import read_clip
from assay.broad.systems.features.hog3d import DENSE, HOLLYWOOD2, REDUCED, Sampling, dense_boxes, hog3d
from assay.stimuli import ArrayClip

SHAPE = (60, 168, 300)
PEER_BOXES = 1000  # of the whole grid the peer describes so many; its time is scaled to all


def numpy_hog3d(clip: np.ndarray, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The Hollywood2 descriptor, one box after another."""
    M, N, S = HOLLYWOOD2.M, HOLLYWOOD2.N, HOLLYWOOD2.S
    x = clip.astype(np.float64)
    gradients = [np.diff(x, axis=a, append=np.take(x, [-1], a)) for a in (2, 1, 0)]
    sums = np.stack([np.pad(g.cumsum(0).cumsum(1).cumsum(2), ((1, 0),) * 3) for g in gradients])
    rows = []
    for (cx, cy, ct), (sigma, tau) in zip(centres, scales, strict=True):
        size, length = sigma * HOLLYWOOD2.sigma0, tau * HOLLYWOOD2.tau0
        at = [
            np.floor(c - s / 2 + np.arange(n + 1) * (s / n) + 0.5 + 1e-9).astype(int)
            for c, s, n in ((ct, length, N * S), (cy, size, M * S), (cx, size, M * S))
        ]
        g = sums[(slice(None), *np.ix_(*at))]
        for axis in (1, 2, 3):
            g = np.diff(g, axis=axis)
        votes = polar(*g).reshape(15, N, S, M, S, M, S).sum((2, 4, 6)).transpose(3, 2, 1, 0)
        rows.append((votes / (np.linalg.norm(votes, axis=-1, keepdims=True) + 0.02 * S**3)).ravel())
    return np.array(rows)


def polar(x: np.ndarray, y: np.ndarray, t: np.ndarray) -> np.ndarray:
    sign = np.where((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (t < 0)))), -1.0, 1.0)
    x, y, t = x * sign + 0.0, y * sign + 0.0, t * sign + 0.0
    plane = np.arctan2(x, y) * (5 / math.pi)
    time = np.clip(np.arctan2(np.hypot(x, y), t) * (3 / math.pi) - 0.5, 0, 2)
    near = np.maximum(1 - np.abs(np.arange(6).reshape(6, 1, 1, 1, 1) - plane), 0)
    shares = near * np.maximum(1 - np.abs(np.arange(3).reshape(3, 1, 1, 1) - time), 0) * np.sqrt(x * x + y * y + t * t)
    shares[0] += shares[5, ::-1]
    return shares[:5].reshape(15, *x.shape)


def compare(name: str, sampling: Sampling, device: str, rounds: int) -> None:
    clip = ArrayClip("noise", np.random.default_rng(0).random(SHAPE, dtype=np.float32))
    centres, scales = dense_boxes(SHAPE, HOLLYWOOD2, sampling)
    few = np.random.default_rng(0).permutation(len(centres))[:PEER_BOXES]

    def ours() -> torch.Tensor:
        return hog3d(torch.from_numpy(read_clip(clip)).to(device), centres, scales)

    def peer() -> np.ndarray:
        return numpy_hog3d(read_clip(clip), centres[few].numpy(), scales[few].numpy())

    def bound() -> list[torch.Tensor]:
        x = torch.from_numpy(read_clip(clip)).to(device)
        return [x.diff(dim=axis) for axis in range(3)]

    assert np.abs(ours()[few].cpu().numpy() - peer()).max() < 1e-5
    times = race({"assay": ours, "numpy": peer, "bound": bound}, device, rounds)
    times["numpy"] = [t * len(centres) / len(few) for t in times["numpy"]]
    print(f"{name}: {len(centres)} boxes")
    for contestant in times:
        fps = SHAPE[0] / np.median(times[contestant])
        print(
            f"{contestant:>8}: {fps:9.1f} frames/s  {ratio(times, contestant, 'bound'):7.1f}× the bound's time, "
            f"{ratio(times, 'numpy', contestant):7.1f}× faster than numpy"
        )


if __name__ == "__main__":
    options = arguments(__doc__)
    print(f"{where(options.device)}; {SHAPE[0]} frames of {SHAPE[2]}×{SHAPE[1]}, medians of {options.rounds} rounds")
    compare("reduced", REDUCED, options.device, options.rounds)
    compare("dense", DENSE, options.device, options.rounds)
