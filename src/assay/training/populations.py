"""Many modules of one shape as one function, by stacked parameters and batched products."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.func import functional_call, vmap

State = dict[str, Tensor]


def stacked(module: nn.Module, method: str = "forward", axis: int = 0) -> Callable[[State, Tensor, bool], Tensor]:
    """Return a method of a module as a function of stacked parameters and buffers, for all modules at once.

    The function takes the state by name, each tensor with the modules along its first axis; x; and whether the modules
    share x. It returns one result for each module along ``axis``, which is also the axis of the modules in an x that
    is not shared.
    """
    as_forward = _AsForward(module, method)

    def call_one(state: State, x: Tensor) -> Tensor:
        named = {f"module.{name}": value for name, value in state.items()}
        result: Tensor = functional_call(as_forward, named, (x,))
        return result

    def call_all(state: State, x: Tensor, shared: bool) -> Tensor:
        in_dims = (0, None if shared else axis)
        result: Tensor = vmap(call_one, in_dims=in_dims, out_dims=axis, randomness="different")(state, x)
        return result

    return call_all


class _AsForward(nn.Module):
    """A module whose forward is another method of it: torch calls only forward with other parameters."""

    def __init__(self, module: nn.Module, method: str) -> None:
        super().__init__()
        self.module = module
        self.method = method

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = getattr(self.module, self.method)(x)
        return result
