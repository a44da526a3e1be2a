"""Tensors by name, loaded into a network that they must fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from torch import Tensor, nn

from assay.core.errors import AssayError, shown

_NAMED = 3  # tensors in a sentence


def load_state(module: nn.Module, state: Mapping[str, Tensor], what: str) -> None:
    """Load tensors into a network; every tensor must fit, and those that do not are an error that names them.

    A ``module.`` prefix (data-parallel training) is dropped.

    Args:
        module: The network, which is written to.
        state: The tensors by name.
        what: What the tensors are, for errors, such as ``weights=net.safetensors``.
    """
    if all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    own = module.state_dict()
    # Counters of batch norm play no part once it is trained; old checkpoints do not have them.
    state = {k: v for k, v in own.items() if k.endswith("num_batches_tracked")} | dict(state)
    missing, extra = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    unlike = [key for key in sorted(own.keys() & state.keys()) if state[key].shape != own[key].shape]
    parts = [f"they lack {_some(missing)}"] if missing else []
    parts += [f"{'' if missing else 'they '}have {_some(extra)} that the network lacks"] if extra else []
    if unlike:
        key, more = unlike[0], f", and {len(unlike) - 1} more of another shape" if len(unlike) > 1 else ""
        shapes = f"{tuple(state[key].shape)} among them and {tuple(own[key].shape)} in the network"
        parts += [f"{key!r} is {shapes}{more}"]
    if parts:
        raise AssayError(f"{what} do not fit {type(module).__name__}: {', '.join(parts)}")
    module.load_state_dict(state)


def require_past(initial_weights: Any, history: Any) -> None:
    """Refuse what are no tensors by name, and what is no table; None is neither."""
    named = isinstance(initial_weights, Mapping) and all(isinstance(t, Tensor) for t in initial_weights.values())
    if not (named or initial_weights is None):
        raise AssayError(f"initial_weights={shown(initial_weights)} are no tensors by name: give a state_dict")
    if not isinstance(history, pd.DataFrame | None):
        raise AssayError(f"history={shown(history)} is no table: give a pandas DataFrame with one row per epoch")


def _some(keys: list[str]) -> str:
    """The first of some names of tensors, and how many more there are."""
    named = ", ".join(map(repr, keys[:_NAMED]))
    return f"{named} and {len(keys) - _NAMED} more" if len(keys) > _NAMED else named
