"""The largest responses of every unit over a stream of stimuli, exactly, without keeping the stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
ROOM = 5  # how many times what is wanted fits into the slots of a unit before they are thinned out
_SETTLED = 8  # how many times what is wanted is shown before the floors are high enough
_AT_ONCE = 1 << 15  # responses compared at a time: few enough to stay in the processor's cache
_OF_NUMPY = (torch.float32, torch.float64)  # types that NumPy computes with as fast as the processor does
_BYTE = 255  # what a count of bits may be while it fits into a byte


class TopResponses:
    """The ``count`` largest of all responses shown so far, per unit, and which stimuli gave them.

    No sketch and no sample. On a GPU, a batch is merged with what is kept; on a CPU, `_Slots` collect what may be kept.
    Memory is a few times ``count`` × units, however many stimuli there are.

    Args:
        count: How many responses are wanted.
        sign: 1, or −1 for the smallest responses, which are the largest when multiplied by −1, as they are returned.

    Example:
        >>> top = TopResponses(2)
        >>> top.extend(torch.tensor([[1., 9.], [5., 2.]]))
        >>> top.extend(torch.tensor([[3., 7.], [0., 0.]]))
        >>> values, stimuli = top.sorted()
        >>> values.tolist(), stimuli[0].tolist()
        ([[5.0, 9.0], [3.0, 7.0]], [1, 0])
    """

    def __init__(self, count: int, sign: int = 1) -> None:
        self.count = count
        self.sign = sign
        self.shown = 0
        self._kept: _Merged | _Slots

    def extend(self, responses: Tensor) -> None:
        """Add the responses to the next stimuli (stimuli × units); NaN is never among the largest."""
        if not self.shown:
            merged = responses.is_cuda or responses.dtype not in _OF_NUMPY
            self._kept = (_Merged if merged else _Slots)(self.count, self.sign, responses)
        self._kept.extend(responses, self.shown)
        self.shown += len(responses)

    @property
    def floor(self) -> Tensor:
        """For each unit a lower bound of those among its largest responses; it is one of them, or −∞."""
        return self._kept.floor

    def sorted(self) -> tuple[Tensor, Tensor]:
        """The largest responses (count × units) in descending order, and the numbers of their stimuli.

        Among equal responses the earlier stimulus comes first; which of those equal to the smallest are kept is left
        open, and their stimulus may be −1. Where fewer than ``count`` stimuli were shown, the rest is −∞ and −1.
        """
        assert self.shown, "nothing was shown"
        values, stimuli = self._kept.by_stimulus()
        order = values.argsort(dim=1, descending=True, stable=True)
        return torch.maximum(values.gather(1, order), self.floor[:, None]).T, stimuli.gather(1, order).T


class _Merged:
    """The largest responses of each unit, with which every batch is merged."""

    def __init__(self, count: int, sign: int, responses: Tensor) -> None:
        shape, device = (responses.shape[1], count), responses.device
        self.count = count
        self.sign = sign
        self.values = torch.full(shape, -torch.inf, dtype=responses.dtype, device=device)
        self.stimuli = torch.full(shape, -1, dtype=torch.int32, device=device)

    @property
    def floor(self) -> Tensor:
        return self.values.amin(1)

    def extend(self, responses: Tensor, shown: int) -> None:
        new = (self.sign * responses).nan_to_num(-torch.inf, torch.inf, -torch.inf).T
        both = torch.cat([self.values, new], 1)
        place = both.topk(self.count, dim=1, sorted=False).indices.sort(dim=1).values
        kept = self.stimuli.gather(1, place.clamp_max(self.count - 1))
        self.values = both.gather(1, place)
        self.stimuli = torch.where(place < self.count, kept, place.int() + (shown - self.count))
        self.stimuli[self.values == -torch.inf] = -1

    def by_stimulus(self) -> tuple[Tensor, Tensor]:
        return self.values, self.stimuli


class _Slots:
    """Slots of each unit for responses above its floor, which at least ``count`` of its responses reach.

    Where the slots do not suffice, the floor is raised as far as what is in them allows. Time is little more than one
    comparison per response.
    """

    def __init__(self, count: int, sign: int, responses: Tensor) -> None:
        units, slots = responses.shape[1], ROOM * count
        self.count = count
        self.sign = sign
        self.limit = np.full(units, -sign * np.inf, dtype=responses.numpy().dtype)  # the floor, times the sign
        self.values = np.full((slots, units), -np.inf, dtype=self.limit.dtype)
        self.stimuli = np.full((slots, units), -1, dtype=np.int32)
        self.filled = np.zeros(units, dtype=np.int64)  # per unit: how many of its slots are in use
        self.most = 0  # no unit has more in use

    @property
    def floor(self) -> Tensor:
        return torch.from_numpy(self.sign * self.limit)

    def extend(self, responses: Tensor, shown: int) -> None:
        values = responses.numpy()
        if shown < _SETTLED * self.count <= len(values):
            self._raise_limit(values)
        step = max(1, min(_AT_ONCE // max(len(self.limit), 1), (ROOM - 1) * self.count))
        for start in range(0, len(values), step):
            self._make_room(step)
            self._pick(values[start : start + step], shown + start)

    def _raise_limit(self, responses: Array) -> None:
        """Raise the floors to the ``count``-th largest of the largest responses of groups of stimuli.

        That many responses reach it, and hardly more are above it.
        """
        number, largest = 2 * self.count + 1, np.maximum if self.sign > 0 else np.minimum
        with np.errstate(invalid="ignore"):
            peaks = self.sign * np.stack([largest.reduce(responses[group::number]) for group in range(number)])
        peaks[np.isnan(peaks)] = -np.inf
        self.limit = self.sign * np.maximum(self.sign * self.limit, np.sort(peaks, axis=0)[-self.count])

    def _make_room(self, stimuli: int) -> None:
        """Thin out slots where those that are free might not suffice for so many stimuli."""
        slots = len(self.values)
        if self.most + stimuli > slots and (self.filled + stimuli > slots).any():
            self._thin(np.flatnonzero(2 * self.filled > slots - stimuli))
        if self.most + stimuli > slots:
            self.most = int(self.filled.max(initial=0))
        self.most += stimuli

    def _pick(self, responses: Array, first: int) -> None:
        """Put the responses above the floors into slots; ``first`` is the number of their first stimulus."""
        above = responses > self.limit if self.sign > 0 else responses < self.limit
        place = np.flatnonzero(above.T)
        unit = place // len(responses)
        slot = self.filled[unit]
        if len(responses) > 1:  # a unit may come more than once
            slot += np.arange(len(unit)) - np.searchsorted(unit, unit)
        at = slot * len(self.limit) + unit
        self.values.reshape(-1)[at] = self.sign * responses.T.reshape(-1)[place]
        self.stimuli.reshape(-1)[at] = place - unit * len(responses) + first
        self.filled[unit] = slot + 1  # slots of a unit are in order: the last stays

    def _thin(self, units: Array | slice) -> None:
        """Raise the floors of some units to the ``count``-th largest response in their slots, and free the others."""
        used = max(int(self.filled[units].max(initial=0)), self.count)
        values, stimuli = (np.ascontiguousarray(of[:used, units]) for of in (self.values, self.stimuli))
        floor = np.maximum(np.sort(values, axis=0)[-self.count], self.sign * self.limit[units])
        above = values > floor  # in the order of stimuli, as they stay
        slot = above.cumsum(axis=0, dtype=np.min_scalar_type(used))  # from 1
        old = np.flatnonzero(above)
        new = (slot.reshape(-1)[old].astype(np.int64) - 1) * len(floor) + old % len(floor)
        for of, before, free in ((self.values, values, -np.inf), (self.stimuli, stimuli, -1)):
            after = np.full(above.size, free, dtype=of.dtype)
            after[new] = before.reshape(-1)[old]
            of[:used, units] = after.reshape(above.shape)
        self.filled[units] = slot[-1]
        self.limit[units] = self.sign * floor

    def by_stimulus(self) -> tuple[Tensor, Tensor]:
        self._thin(slice(None))
        values, stimuli = (np.ascontiguousarray(of[: self.count].T) for of in (self.values, self.stimuli))
        return torch.from_numpy(values), torch.from_numpy(stimuli)


def count_true(which: Tensor) -> Tensor:
    """How often each column of a table of truth values is true, as int32; on a CPU faster than ``sum``."""
    if which.is_cuda:
        return which.sum(0, dtype=torch.int32)
    ones = which.numpy().view(np.uint8)
    counts = np.zeros(ones.shape[1], dtype=np.int32)
    for start in range(0, len(ones), _BYTE):
        counts += np.add.reduce(ones[start : start + _BYTE], axis=0, dtype=np.uint8)
    return torch.from_numpy(counts)


def extremes(responses: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and the largest response of each unit (stimuli × units), NaN where one is NaN."""
    if responses.is_cuda or responses.dtype not in _OF_NUMPY:
        low, high = torch.aminmax(responses, dim=0)
        return low, high
    values = responses.numpy()  # several times faster than torch on a CPU
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(values.min(axis=0)), torch.from_numpy(values.max(axis=0))
