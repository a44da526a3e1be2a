"""The largest responses of every unit over a stream of stimuli, exactly, without keeping the stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
_ROOM = 5  # how many times what is wanted fits into the buffer before it is thinned out
_SORTED = 8  # how many times what is wanted is shown before single responses are picked out
_AT_ONCE = 32  # how many times what is wanted is sorted at a time, before the rest of a batch is picked from

_ALL = slice(None)
_OF_NUMPY = (torch.float32, torch.float64)  # types that NumPy computes with as fast as the processor does
_LAST = (1 << 31) - 1  # the largest number of a stimulus, and of 32 bits
_BYTE = 255  # what a count of bits may be while it fits into a byte


class TopResponses:
    """The ``count`` largest of all responses shown so far, per unit, and which stimuli gave them.

    No sketch and no sample. At first, and on a GPU always, the largest of a batch are merged with those that are kept;
    once most responses are below the smallest one kept, those that are not are collected, and merged when there is no
    room. Memory is a few times ``count`` × units, however many stimuli there are; time is little more than one
    comparison per response.

    Args:
        count: How many to keep of each unit.
        signs: What responses are multiplied by: with −1 the largest are those that were smallest.

    Example:
        >>> top = TopResponses(2)
        >>> top.extend(torch.tensor([[1., 9.], [5., 2.]]))
        >>> top.extend(torch.tensor([[3., 7.]]))
        >>> values, stimuli = top.sorted(1)
        >>> values.tolist(), stimuli.tolist()
        ([[5.0, 9.0], [3.0, 7.0]], [[1, 0], [2, 2]])
    """

    def __init__(self, count: int, signs: tuple[int, ...] = (1,)) -> None:
        self.count = count
        self.signs = signs
        self.shown = 0
        self._kept: dict[int, _Kept] = {}

    def extend(self, responses: Tensor) -> None:
        """Add the responses to the next stimuli (stimuli × units); NaN is never among the largest."""
        if not responses.is_cuda and responses.dtype not in _OF_NUMPY:
            responses = responses.float()
        if not self.shown:
            self._kept = {sign: _Kept(self.count, responses) for sign in self.signs}
        sort = responses.is_cuda or self.shown < _SORTED * self.count
        first = len(responses) if responses.is_cuda else _AT_ONCE * self.count
        part, rest = (responses[:first], responses[first:]) if sort else (responses[:0], responses)
        if len(part):
            for sign, (values, stimuli) in _largest_of(part, self.count, self.signs).items():
                self._kept[sign].add(values, stimuli + self.shown)
            self.shown += len(part)
        if len(rest):
            for sign, kept in self._kept.items():
                kept.pick(rest if sign > 0 else -rest, self.shown)
                if sort:  # raise the floor, so that less is picked from now on
                    kept.thin_out()
            self.shown += len(rest)

    def floor(self, sign: int) -> Tensor:
        """For each unit the smallest response kept at the last merge, a lower bound of those among the largest now."""
        return self._kept[sign].floor

    def sorted(self, sign: int) -> tuple[Tensor, Tensor]:
        """The largest responses (count × units) in descending order, and the numbers of their stimuli.

        Among equal responses the earlier stimulus comes first; which of those equal to the smallest are kept is left
        open. Where fewer than ``count`` stimuli were shown, the rest is −∞ and −1.
        """
        values, stimuli = self._kept[sign].sorted()
        return values.T, torch.where(values == -torch.inf, -1, stimuli).T


class _Kept:
    """The largest responses of one sign, and room for more; units × room.

    Args:
        count: How many to keep of each unit.
        responses: Responses of the units (stimuli × units), for their number, type and device.
    """

    def __init__(self, count: int, responses: Tensor) -> None:
        units = responses.shape[1]
        room = count if responses.is_cuda else count * _ROOM + 1
        self.count = count
        self.values = responses.new_full((units, room), -torch.inf)
        self.stimuli = torch.full((units, room), -1, dtype=torch.int32, device=responses.device)
        self.filled = torch.full((units,), count, dtype=torch.int64, device=responses.device)  # of each row
        self.floor = responses.new_full((units,), -torch.inf)

    def add(self, values: Tensor, stimuli: Tensor, units: Tensor | slice = _ALL) -> None:
        """Merge more responses of the given units (units × any number), and their stimuli, with what is kept."""
        used = self._used(units)
        both = torch.cat([self.values[units, :used], values], 1), torch.cat([self.stimuli[units, :used], stimuli], 1)
        best, of_best = largest(*both, self.count, in_order=False)
        self.values[units, self.count : used] = -torch.inf
        self.values[units, : self.count] = best
        self.stimuli[units, : self.count] = of_best
        self.filled[units] = self.count
        self.floor[units] = best.amin(1)

    def thin_out(self) -> None:
        """Let go of what is no longer among the largest."""
        self.add(self.values[:, :0], self.stimuli[:, :0])

    def pick(self, responses: Tensor, shown: int) -> None:
        """Collect the responses above what is kept; those of units without room for theirs are merged with it."""
        units = len(self.floor)
        flat = np.flatnonzero(responses.numpy() > self.floor.numpy())  # NaN is not above
        if not len(flat):
            return
        if responses.numel() <= _LAST:
            flat = flat.astype(np.int32)  # which NumPy divides faster
        row = flat // units
        unit = flat - row * units
        more = np.bincount(unit, minlength=units)
        filled = self.filled.numpy()
        crowded = filled + more > self.values.shape[1]
        if crowded.any():
            columns = torch.from_numpy(np.flatnonzero(crowded))
            values, stimuli = _largest_of(responses.index_select(1, columns), self.count, (1,))[1]
            self.add(values, stimuli + shown, columns)
            fits = ~crowded[unit]
            row, unit = row[fits], unit[fits]
            more[crowded] = 0
        if units <= 1 << 16:
            unit = unit.astype(np.uint16)  # which NumPy sorts by counting
        order = unit.argsort(kind="stable")
        row, unit = row[order], unit[order]
        first = np.arange(units) * self.values.shape[1] + filled - (more.cumsum() - more)
        at = first[unit] + np.arange(len(unit))
        self.values.numpy().reshape(-1)[at] = responses.numpy()[row, unit]
        self.stimuli.numpy().reshape(-1)[at] = row + shown
        filled += more  # in place

    def _used(self, units: Tensor | slice) -> int:
        filled = self.filled[units]
        return int(filled.max()) if len(filled) else self.count

    def sorted(self) -> tuple[Tensor, Tensor]:
        """The largest in descending order, and their stimuli; units × count."""
        used = self._used(_ALL)
        return largest(self.values[:, :used], self.stimuli[:, :used], self.count)


def largest(values: Tensor, stimuli: Tensor, count: int, in_order: bool = True) -> tuple[Tensor, Tensor]:
    """The ``count`` largest values of each row in descending order, and their stimuli; of equal ones the earlier first.

    Not ``in_order``, the values are the same in any order, and any of those that are equal to the smallest.

    Example:
        >>> largest(torch.tensor([[1., 3., 3., 2.]]), torch.tensor([[0, 7, 5, 6]]), 3)
        (tensor([[3., 3., 2.]]), tensor([[5, 7, 6]]))
    """
    if _has_keys(values):
        keys = _keys(values.numpy(), stimuli.numpy())
        keys.partition(keys.shape[1] - count, axis=1)
        keys = keys[:, -count:]
        best, of_best = _of_keys(np.sort(keys, axis=1)[:, ::-1] if in_order else keys)
        return best, of_best.to(stimuli.dtype)
    if not in_order:
        best, place = values.topk(count, dim=1, sorted=False)
        return best, stimuli.gather(1, place)
    earlier = stimuli.argsort(dim=1)
    order = earlier.gather(1, values.gather(1, earlier).argsort(dim=1, descending=True, stable=True))[:, :count]
    return values.gather(1, order), stimuli.gather(1, order)


def _largest_of(responses: Tensor, count: int, signs: tuple[int, ...]) -> dict[int, tuple[Tensor, Tensor]]:
    """For each sign the ``count`` largest responses (units × count) to a batch, and their places in it; or all of them.

    NaN becomes −∞, which sorts last.
    """
    count = min(count, len(responses))
    nan = _has_nan(responses)
    if not _has_keys(responses) or nan:
        largest = {}
        for sign in signs:
            values = (responses if sign > 0 else -responses).T
            best, place = (values.nan_to_num(-torch.inf, torch.inf, -torch.inf) if nan else values).topk(count, dim=1)
            largest[sign] = best, place.int()
        return largest
    keys = _keys(responses.numpy().T, np.arange(len(responses)))
    keys.sort(axis=1)  # both ends of it, which costs no more than to find one
    ends = {sign: _of_keys(keys[:, -count:] if sign > 0 else keys[:, :count]) for sign in signs}
    return {sign: (values if sign > 0 else -values, stimuli) for sign, (values, stimuli) in ends.items()}


def _has_keys(values: Tensor) -> bool:
    """Whether a value and a stimulus fit into one whole number, which NumPy sorts several times faster than torch."""
    return values.dtype == torch.float32 and not values.is_cuda


def _keys(values: Array, stimuli: Array) -> Array:
    """Whole numbers in the order of the values and, where these are equal, against that of the stimuli."""
    bits = np.add(values, np.float32(0), order="C").view(np.int32)  # −0 is 0
    ordered = bits >> 31
    ordered &= _LAST
    ordered ^= bits  # of negative numbers, larger bits are smaller
    keys: Array = np.left_shift(ordered, 32, dtype=np.int64)
    keys |= _LAST - stimuli.astype(np.int64)
    return keys


def _of_keys(keys: Array) -> tuple[Tensor, Tensor]:
    """The values and the stimuli of which keys were made."""
    bits = (keys >> 32).astype(np.int32)
    values = np.bitwise_xor(bits, (bits >> 31) & np.int32(_LAST)).view(np.float32)
    return torch.from_numpy(values), torch.from_numpy((_LAST - (keys & 0xFFFFFFFF)).astype(np.int32))


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


def _has_nan(responses: Tensor) -> bool:
    return bool(responses.numel()) and bool(responses.max().isnan())
