"""A convolution that is used in every time step of a sequence, with one gradient of its weights for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


class OverTime:
    """A convolution of pictures N×C×H×W with its weights, "same" padding, used again and again in one sequence.

    The gradient of the weights is a sum over time. Computed step by step it is many small products, each added to the
    last; here the inputs of all time steps, and the gradients of their outputs, are put side by side, and it is one
    product. The gradients of the inputs are computed step by step, as they must be.

    Args:
        weight: Weights out×in×k×k, k odd.
        bias: One number for each output.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.convolution = _Convolution(weight, bias)
        learns = torch.is_grad_enabled() and (weight.requires_grad or bias.requires_grad)
        # Every use depends on this number, so that its gradient is asked for when those of all uses are known.
        self.uses = _Gathered.apply(weight, bias, self.convolution) if learns else None  # type: ignore[no-untyped-call]

    def __call__(self, x: Tensor) -> Tensor:
        """Convolve pictures, in the precision of the weights."""
        x = x.to(self.convolution.weight.dtype)  # under autocast some operations give float32, going back nothing does
        if self.uses is None:
            return self.convolution(x)
        out: Tensor = _Used.apply(x, self.uses, self.convolution)  # type: ignore[no-untyped-call]
        return out


@dataclass
class _Convolution:
    """A convolution, and of its uses, going back, the inputs and the gradients of the outputs."""

    weight: Tensor
    bias: Tensor
    inputs: list[Tensor] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)

    def __call__(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, padding=self.weight.shape[-1] // 2)

    def gradient(self, of_output: Tensor, x: Tensor, of_weight: bool) -> Tensor:
        """Return the gradient of the weight, or else that of the input."""
        side = self.weight.shape[-1] // 2
        where = ([1, 1], [side, side], [1, 1], False, [0, 0], 1)
        wanted = [not of_weight, of_weight, False]
        gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
            of_output, x, self.weight, None, *where, wanted
        )
        return gradients[1 if of_weight else 0]


class _Gathered(torch.autograd.Function):
    """A number, 0, whose gradient stands for those of all uses: going back, it becomes that of the weights."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, convolution: _Convolution) -> Tensor:
        ctx.convolution = convolution
        return weight.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, Tensor, None]:
        convolution = ctx.convolution
        x, gradient = torch.cat(convolution.inputs), torch.cat(convolution.gradients)
        convolution.inputs.clear()
        convolution.gradients.clear()
        return convolution.gradient(gradient, x, of_weight=True), gradient.sum((0, 2, 3)), None


class _Used(torch.autograd.Function):
    """One use of a convolution: going back, what the gradient of the weights needs is kept for later."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, uses: Tensor, convolution: _Convolution) -> Tensor:
        ctx.save_for_backward(x)
        ctx.convolution = convolution
        return convolution(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, None]:
        (x,) = ctx.saved_tensors
        (of_output,) = gradients
        ctx.convolution.inputs.append(x)
        ctx.convolution.gradients.append(of_output)
        into_x = ctx.convolution.gradient(of_output, x, of_weight=False) if ctx.needs_input_grad[0] else None
        return into_x, of_output.new_zeros(()), None
