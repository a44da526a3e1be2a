"""PredNet: a network that predicts the next frame of a video, and passes on only what it did not predict.

Lotter, Kreiman, Cox 2017, "Deep predictive coding networks for video prediction and unsupervised learning".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.arrays import channels_last
from assay.core.errors import AssayError
from assay.networks.over_time import OverTime

Sizes = int | Sequence[int]

# torch's hardsigmoid(a) is clip(a/6 + 1/2, 0, 1), PredNet's (that of Keras) is clip(a/5 + 1/2, 0, 1).
_STEEPER = 1.2


class Level(NamedTuple):
    """The states of one level at one time step: A (target), Â (prediction), E (error) and R (representation)."""

    target: Tensor
    prediction: Tensor
    error: Tensor
    representation: Tensor


class _Convolutions(NamedTuple):
    """The convolutions of one level, as they are used in every time step of a sequence."""

    gates: OverTime
    prediction: OverTime
    target: OverTime | None


class PredNet(nn.Module):
    """Levels of a convolutional LSTM that predict, frame by frame, what the level below did not.

    States R, C and E of all levels l = 0 … L−1 begin at 0. For each frame x, from the top down,

    - z = [R_l(t−1), E_l(t−1), R_{l+1}(t) enlarged twofold (nearest)], the last but at the top;
    - i, f, o = hardsigmoid(conv z), g = tanh(conv z), with hardsigmoid(a) = clip(0.2a + 0.5, 0, 1);
    - C_l = f·C_l + i·g and R_l = o·tanh C_l;

    then from the bottom up, with A_0 = x,

    - Â_l = relu(conv R_l), and Â_0 is at most 1;
    - E_l = [relu(Â_l − A_l), relu(A_l − Â_l)];
    - A_{l+1} = maxpool₂(relu(conv E_l)).

    It takes video, B×T×C×H×W in [0, 1], and returns the predicted frames Â_0, of the same shape; the first is made
    before anything was seen. Its layers are the states of all time steps, B×T×C×H×W: of every level ``A``, ``Ahat``,
    ``E`` and ``R`` with the number of the level.

    Args:
        channels: Number of channels of A and Â at each level; the first is that of the frames.
        representation_channels: Number of channels of R at each level; as ``channels`` by default.
        gate_size: Side of the filters of the LSTM; one for all levels, or one for each. Sides are odd.
        prediction_size: Side of the filters from R to Â.
        target_size: Side of the filters from E to A of the next level; one fewer than levels, where one for each.

    Example:
        >>> network = PredNet((1, 4, 8))
        >>> network(torch.rand(2, 5, 1, 16, 24)).shape
        torch.Size([2, 5, 1, 16, 24])
        >>> sum(p.numel() for p in PredNet().parameters())
        6915948
    """

    video: ClassVar[bool] = True
    """Whether the network takes B×T×C×H×W, and its layers return B×T×…"""
    prediction: ClassVar[str] = "Ahat0"
    """The layer that holds, for every frame, what was predicted of it from the frames before."""

    def __init__(
        self,
        channels: Sequence[int] = (3, 48, 96, 192),
        representation_channels: Sequence[int] | None = None,
        *,
        gate_size: Sizes = 3,
        prediction_size: Sizes = 3,
        target_size: Sizes = 3,
    ) -> None:
        super().__init__()
        a = _counts("channels", channels)
        r = a if representation_channels is None else _counts("representation_channels", representation_channels)
        levels = len(a)
        if len(r) != levels:
            raise AssayError(
                f"representation_channels={r} has {len(r)} levels, channels={a} has {levels}: give as many"
            )
        self.channels = a
        self.representation_channels = r
        sizes = {
            "gate_size": _sides("gate_size", gate_size, levels),
            "prediction_size": _sides("prediction_size", prediction_size, levels),
            "target_size": _sides("target_size", target_size, levels - 1),
        }
        above = (*r[1:], 0)
        self.gates = nn.ModuleList(
            _convolution(r[level] + 2 * a[level] + above[level], 4 * r[level], sizes["gate_size"][level])
            for level in range(levels)
        )
        self.predictions = nn.ModuleList(
            _convolution(r[level], a[level], sizes["prediction_size"][level]) for level in range(levels)
        )
        self.targets = nn.ModuleList(
            _convolution(2 * a[level], a[level + 1], sizes["target_size"][level]) for level in range(levels - 1)
        )
        for level in range(levels):
            for state in ("A", "Ahat", "E", "R"):
                self.add_module(f"{state}{level}", nn.Identity())

    @property
    def levels(self) -> int:
        """Number of levels, L."""
        return len(self.channels)

    def forward(self, frames: Tensor) -> Tensor:
        """Return the prediction of every frame of videos B×T×C×H×W, made from the frames before it."""
        steps = list(self.steps(frames))
        predicted = frames
        for level in range(self.levels):
            states = zip(("A", "Ahat", "E", "R"), zip(*(step[level] for step in steps), strict=True), strict=True)
            for state, over_time in states:
                name = f"{state}{level}"
                layer = self.get_submodule(name)
                if layer._forward_hooks or name == self.prediction:  # the states that nobody looks at are not gathered
                    stacked = layer(torch.stack(over_time, 1))
                    predicted = stacked if name == self.prediction else predicted
        return predicted

    def errors(self, frames: Tensor, levels: Sequence[int] | None = None) -> Tensor:
        """Return the mean of E_l(t) over a batch of videos B×T×C×H×W, as a table T×L, summed in float32 or more.

        Args:
            frames: The videos.
            levels: The levels whose errors are wanted; all by default.

        Example:
            >>> frames = torch.rand(2, 3, 3, 8, 8)
            >>> network = PredNet((3, 4))
            >>> torch.allclose(network.errors(frames)[0, 0], frames[:, 0].mean() / 2)  # the first prediction is 0
            True
        """
        at_least = torch.promote_types(frames.dtype, torch.float32)
        wanted = range(self.levels) if levels is None else levels
        means = [[step[level].error.mean(dtype=at_least) for level in wanted] for step in self.steps(frames)]
        return torch.stack([torch.stack(of_step) for of_step in means])

    def steps(self, frames: Tensor) -> Iterator[list[Level]]:
        """Yield the states of all levels, from the bottom, at each time step of videos B×T×C×H×W."""
        self._require(frames)
        kind = frames.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else frames.dtype
        convolutions = self._convolutions(dtype)
        r: list[Tensor] = []
        e: list[Tensor] = []
        for level, (ours, theirs) in enumerate(zip(self.representation_channels, self.channels, strict=True)):
            batch, height, width = len(frames), frames.shape[3] >> level, frames.shape[4] >> level
            r.append(self._laid_out(frames.new_zeros(batch, ours, height, width, dtype=dtype)))
            e.append(self._laid_out(frames.new_zeros(batch, 2 * theirs, height, width, dtype=dtype)))
        c = [state.to(frames.dtype) for state in r]  # what adds up over time is never of short mantissas
        for x in map(self._laid_out, frames.unbind(1)):
            for level in reversed(range(self.levels)):
                z = [r[level], e[level]]
                if level < self.levels - 1:
                    z.append(F.interpolate(r[level + 1], scale_factor=2.0, mode="nearest"))
                r[level], c[level] = _lstm(convolutions[level].gates(torch.cat(z, 1)), c[level])
            states = []
            target = x
            for level in range(self.levels):
                of_level = convolutions[level]
                prediction = of_level.prediction(r[level]).relu()
                prediction = prediction.clamp_max(1) if level == 0 else prediction
                over = (prediction - target).to(dtype)
                e[level] = torch.cat([over, -over], 1).relu()
                states.append(Level(target, prediction, e[level], r[level]))
                if of_level.target is not None:
                    # The same as pooling after the rectification, which is then of a quarter of the numbers.
                    target = F.max_pool2d(of_level.target(e[level]), 2).relu()
            yield states

    def _convolutions(self, dtype: torch.dtype) -> list[_Convolutions]:
        """Return the convolutions of all levels in the precision of their products, converted once per sequence.

        The weights of the gates i, f and o are scaled, so that torch's hardsigmoid gives PredNet's.
        """
        convolutions = []
        for level, ours in enumerate(self.representation_channels):
            weight, bias = _parameters(self.gates[level])
            scale = torch.ones_like(bias)
            scale[: 3 * ours] = _STEEPER
            gates = OverTime((weight * scale[:, None, None, None]).to(dtype), (bias * scale).to(dtype))
            prediction = OverTime(*(p.to(dtype) for p in _parameters(self.predictions[level])))
            target = None
            if level < self.levels - 1:
                target = OverTime(*(p.to(dtype) for p in _parameters(self.targets[level])))
            convolutions.append(_Convolutions(gates, prediction, target))
        return convolutions

    def _laid_out(self, x: Tensor) -> Tensor:
        """Return pictures N×C×H×W in the memory format of the weights."""
        # Filters of one pixel are in both formats at once.
        in_order = all(_parameters(gates)[0].is_contiguous() for gates in self.gates)
        return x if in_order else channels_last(x)

    def _require(self, frames: Tensor) -> None:
        whole = 2 ** (self.levels - 1)
        if frames.dim() != 5 or frames.shape[2] != self.channels[0] or not frames.shape[1]:
            raise AssayError(
                f"PredNet takes videos B×T×{self.channels[0]}×H×W, not {'×'.join(map(str, frames.shape))}: give one "
                "video as frames[None], one still picture as picture.expand(1, 5, -1, -1, -1)"
            )
        if not frames.is_floating_point():
            raise AssayError(f"PredNet takes frames in [0, 1], not {frames.dtype}: give bytes as frames / 255")
        height, width = frames.shape[3:]
        if height % whole or width % whole:
            side = max(whole, round(min(height, width) / whole) * whole)
            raise AssayError(
                f"frames of {height}×{width} cannot be halved {self.levels - 1} times: with {self.levels} levels, "
                f"height and width are multiples of {whole}; give others, or a subject that resizes them, "
                f"assay.Subject(network, preprocess=assay.stimuli.Resize({side}))"
            )


def _lstm(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return R and C of a convolutional LSTM after one step, from the sums of its gates i, f, o, g."""
    ours = c.shape[1]
    i, f, o = F.hardsigmoid(gates[:, : 3 * ours]).chunk(3, 1)
    c = torch.addcmul(f * c, i, gates[:, 3 * ours :].tanh())
    return o * c.tanh().to(o.dtype), c


def _parameters(convolution: nn.Module) -> tuple[Tensor, Tensor]:
    """Return the weight and bias of a convolution; it is not called, since its many calls would be so many layers."""
    weight, bias = convolution.weight, convolution.bias
    assert isinstance(weight, Tensor) and isinstance(bias, Tensor)
    return weight, bias


def _convolution(inputs: int, outputs: int, side: int) -> nn.Conv2d:
    """Make a convolution with the initial weights of the published network: Glorot's uniform, biases 0."""
    convolution = nn.Conv2d(inputs, outputs, side, padding=side // 2)
    nn.init.xavier_uniform_(convolution.weight)
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution


def _counts(name: str, values: Sequence[int]) -> tuple[int, ...]:
    counts = tuple(values)
    if not counts or any(not isinstance(n, int) or n < 1 for n in counts):
        raise AssayError(f"{name}={counts} is not a number of channels for each level: give whole numbers from 1")
    return counts


def _sides(name: str, sides: Sizes, count: int) -> tuple[int, ...]:
    """Return one side for each of so many convolutions."""
    each = (sides,) * count if isinstance(sides, int) else tuple(sides)
    if len(each) != count or any(not isinstance(side, int) or side < 1 or side % 2 == 0 for side in each):
        raise AssayError(f"{name}={sides} is not one odd side for all filters, or {count} of them")
    return each
