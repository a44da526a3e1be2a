"""Footage on a device, and the steps of a network that learns to predict its next frames."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.arrays import as_tensor
from assay.core.determinism import Arithmetic
from assay.core.errors import AssayError
from assay.training.stepping import Settings, Stepping

# On these processors the gradients of convolutions by BLAS take 0.3 to 0.7 of the time of oneDNN's (torch 2.13).
_ARM = ("aarch64", "arm64")


class Footage:
    """The frames of all clips end to end, as bytes, with a copy on every device that has a network.

    Args:
        clips: Clips T×C×H×W of one frame size, uint8, or floating-point in [0, 1]; a list, or by name.
    """

    def __init__(self, clips: Mapping[str, Any] | Iterable[Any]) -> None:
        named = clips if isinstance(clips, Mapping) else {str(number): clip for number, clip in enumerate(clips)}
        if not named:
            raise AssayError("footage has no clips: give at least one, T×C×H×W")
        parts = {name: _bytes(name, clip) for name, clip in named.items()}
        first = next(iter(parts.values()))
        for name, part in parts.items():
            if part.shape[1:] != first.shape[1:]:
                raise AssayError(
                    f"clip {name!r} has frames of {tuple(part.shape[1:])}, the first {tuple(first.shape[1:])}: load "
                    "all in one size, with assay.stimuli.load_footage(size=...)"
                )
        self.names = list(parts)
        self.lengths = [len(part) for part in parts.values()]
        self.frames = torch.cat(list(parts.values()))
        self.copies = {self.frames.device: self.frames}

    def require(self, length: int) -> None:
        """Raise an error for a clip that is shorter than a sequence."""
        for name, frames in zip(self.names, self.lengths, strict=True):
            if frames < length:
                raise AssayError(
                    f"clip {name!r} has {frames} frames, a sequence has length={length}: leave the clip out, or give "
                    "a shorter length"
                )

    def starts(self, length: int) -> Tensor:
        """Return where in the frames a sequence of a length can begin without spanning two clips."""
        begins = accumulate(self.lengths, initial=0)
        ranges = (torch.arange(n - length + 1) + begin for begin, n in zip(begins, self.lengths, strict=False))
        return torch.cat(list(ranges))

    def on(self, device: torch.device) -> Tensor:
        """Return the frames on a device, to which they are copied once."""
        if device not in self.copies:
            self.copies[device] = self.frames.to(device)
        return self.copies[device]


class FootageSettings(Settings, Protocol):
    """What the steps need to know of a recipe."""

    @property
    def length(self) -> int:
        """Number of frames of a sequence."""

    @property
    def steps(self) -> int:
        """Number of steps in an epoch."""


class FootageSteps(Stepping):
    """Training steps on sequences drawn from footage, of which there is a copy on the network's device.

    Args:
        network: A network with a method ``errors``, which is trained in place.
        footage: The footage, shared with other networks.
        recipe: How the network is trained.
        level_weights: The weight λ_l of each level in the loss.
        stream: The stream of the work on a GPU; ``None`` on a CPU.
    """

    def __init__(
        self,
        network: nn.Module,
        footage: Footage,
        recipe: FootageSettings,
        level_weights: tuple[float, ...],
        stream: torch.cuda.Stream | None,
    ) -> None:
        parameter = next(network.parameters())
        device = parameter.device
        super().__init__(network, device, stream, recipe, recipe.steps)
        if device.type == "cpu" and recipe.precision != "bfloat16" and platform.machine() in _ARM:
            self.arithmetic = Arithmetic(self.arithmetic.threads, onednn=False)
        self.frames = footage.on(device)
        self.starts = footage.starts(recipe.length)
        self.dtype = parameter.dtype
        self.levels = [level for level, weight in enumerate(level_weights) if weight]
        weights = [level_weights[level] for level in self.levels]
        self.level_weights = torch.tensor(weights, device=device, dtype=self.dtype)
        self.offsets = torch.arange(recipe.length, device=device)
        trainable = [p for p in network.parameters() if p.requires_grad]
        gpu = stream is not None
        # On a GPU the rate is a tensor, so that a recorded step sees it change.
        rate = self.rate if gpu else recipe.learning_rate
        self.optimizer = torch.optim.Adam(trainable, lr=rate, capturable=gpu, fused=True if gpu else None)

    def begin(self, seed: int, rate: float) -> None:
        """Begin an epoch: draw its sequences by a seed, and set its learning rate."""
        self.set_epoch(draw(self.starts, self.order.numel(), seed), rate)
        self.begin_steps(seed)

    def take_step(self) -> None:
        """Learn from the next batch of sequences."""
        starts = self.order.index_select(0, self.at)[0]
        places = starts[:, None] + self.offsets
        frames = self.frames.index_select(0, places.flatten()).to(self.dtype) / 255
        frames = frames.view(*places.shape, *frames.shape[1:])
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            errors: Tensor = self.network.errors(frames, self.levels)  # type: ignore[operator]
        loss = (errors[1:].mean(0) * self.level_weights).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.total += loss.detach()
        self.at += 1


def draw(starts: Tensor, count: int, seed: int) -> Tensor:
    """Draw so many places by a seed: all once before any comes again.

    Example:
        >>> sorted(draw(torch.arange(4), 8, seed=0).tolist())
        [0, 0, 1, 1, 2, 2, 3, 3]
    """
    generator = torch.Generator().manual_seed(seed)
    rounds = -(-count // len(starts))
    order = torch.cat([torch.randperm(len(starts), generator=generator) for _ in range(rounds)])
    return starts[order[:count]]


def _bytes(name: str, clip: Any) -> Tensor:
    """Return the frames of a clip as uint8; raise an error where they are no frames."""
    frames = as_tensor(clip if isinstance(clip, Tensor | np.ndarray) else np.asarray(clip)).detach().cpu()
    if frames.dim() != 4 or not frames.numel():
        raise AssayError(f"clip {name!r} is {tuple(frames.shape)}: give frames T×C×H×W")
    if frames.dtype == torch.uint8:
        return frames
    if not frames.is_floating_point():
        raise AssayError(f"clip {name!r} is {frames.dtype}: give uint8, or floating-point frames in [0, 1]")
    if not torch.isfinite(frames).all():
        bad = int((~torch.isfinite(frames).flatten(1).all(1)).nonzero()[0])
        raise AssayError(f"clip {name!r} has NaN or infinite pixels in frame {bad}: leave the frame or the clip out")
    low, high = float(frames.min()), float(frames.max())
    if low < 0 or high > 1:
        raise AssayError(f"clip {name!r} has pixels from {low:g} to {high:g}: scale them to [0, 1]")
    return (frames * 255).round().to(torch.uint8)
