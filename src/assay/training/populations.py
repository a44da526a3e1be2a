"""Many modules of one shape as one function: stacked parameters, batched products."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.func import functional_call, vmap

State = dict[str, Tensor]


def stacked(module: nn.Module, method: str = "forward", axis: int = 0) -> Callable[[State, Tensor, bool], Tensor]:
    """A method of a module as a function of stacked parameters and buffers, for all of them at once.

    The function takes (state by name, each with the modules first; x; whether x is shared) and returns one result for
    each module along ``axis``, which is also where an x of their own has them.
    """
    called = _Called(module, method)

    def one(state: State, x: Tensor) -> Tensor:
        result: Tensor = functional_call(called, {f"module.{name}": value for name, value in state.items()}, (x,))
        return result

    def every(state: State, x: Tensor, shared: bool) -> Tensor:
        result: Tensor = vmap(one, in_dims=(0, None if shared else axis), out_dims=axis, randomness="different")(
            state, x
        )
        return result

    return every


class _Called(nn.Module):
    """A module whose forward is another method of it: only that can be called with other parameters."""

    def __init__(self, module: nn.Module, method: str) -> None:
        super().__init__()
        self.module, self.method = module, method

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = getattr(self.module, self.method)(x)
        return result
