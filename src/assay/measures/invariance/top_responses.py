"""The largest responses of every unit over a stream of stimuli, exactly, without keeping the stream."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_ROOM = 5  # how many times what is wanted fits into the buffer before it is thinned out
_MERGED = 8  # how many times what is wanted is shown before single responses are picked out

_ALL = slice(None)
_OF_NUMPY = (torch.float32, torch.float64)  # types that NumPy computes with as fast as the processor does
_BYTE = 255  # what a count of bits may be while it fits into a byte


class TopResponses:
    """The ``count`` largest of all responses shown so far, per unit, and which stimuli gave them.

    No sketch and no sample. At first, and on a GPU always, a batch is merged with what is kept; once most responses
    are below the smallest one kept, those that are not are collected, and merged when there is no room. Memory is a
    few times ``count`` × units, however many stimuli there are; time is little more than one comparison per response.

    Example:
        >>> top = TopResponses(2)
        >>> top.extend(torch.tensor([[1., 9.], [5., 2.]]))
        >>> top.extend(torch.tensor([[3., 7.]]))
        >>> values, stimuli = top.sorted()
        >>> values.tolist(), stimuli.tolist()
        ([[5.0, 9.0], [3.0, 7.0]], [[1, 0], [2, 2]])
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.shown = 0
        self._values = torch.empty(0)  # units × room
        self._stimuli = torch.empty(0)
        self._filled = torch.empty(0)  # per unit: how much of its row is in use
        self._floor = torch.empty(0)  # per unit: the smallest response kept

    def extend(self, responses: Tensor) -> None:
        """Add the responses to the next stimuli (stimuli × units); NaN is never among the largest."""
        if not self.shown:
            self._begin(responses)
        if responses.is_cuda or self.shown >= _MERGED * self.count:
            first, rest = responses, responses[:0]
        else:  # to pick out of a large batch what is above some of it costs less than to sort it
            first, rest = responses[: 2 * _MERGED * self.count], responses[2 * _MERGED * self.count :]
        for part in (first, rest):
            if not len(part):
                continue
            if part.is_cuda or self.shown < _MERGED * self.count:
                self._merge(part, _ALL)
            else:
                self._pick(part)
            self.shown += len(part)
        if len(rest):  # raise the floor, so that less is picked from now on
            self._merge(responses[:0], _ALL)

    @property
    def floor(self) -> Tensor:
        """For each unit the smallest response kept at the last merge, a lower bound of those among the largest now."""
        return self._floor

    def sorted(self) -> tuple[Tensor, Tensor]:
        """The largest responses (count × units) in descending order, and the numbers of their stimuli.

        Among equal responses the earlier stimulus comes first; which of those equal to the smallest are kept is left
        open. Where fewer than ``count`` stimuli were shown, the rest is −∞ and −1.
        """
        assert self.shown, "nothing was shown"
        self._merge(self._values.new_empty(0, len(self._values)), _ALL)
        values = self._values[:, : self.count]
        stimuli = torch.where(values == -torch.inf, -1, self._stimuli[:, : self.count])
        earlier = stimuli.argsort(dim=1)
        order = earlier.gather(1, values.gather(1, earlier).argsort(dim=1, descending=True, stable=True))
        return values.gather(1, order).T, stimuli.gather(1, order).T

    def _begin(self, responses: Tensor) -> None:
        units, device = responses.shape[1], responses.device
        room = self.count if responses.is_cuda else self.count * _ROOM + 1
        self._values = torch.full((units, room), -torch.inf, dtype=responses.dtype, device=device)
        self._stimuli = torch.full((units, room), -1, dtype=torch.int32, device=device)
        self._filled = torch.full((units,), self.count, dtype=torch.int64, device=device)
        self._floor = torch.full((units,), -torch.inf, dtype=responses.dtype, device=device)

    def _merge(self, responses: Tensor, units: Tensor | slice) -> None:
        """Merge a batch of the given units with what is kept of them; NaN becomes −∞, which sorts last."""
        new = (responses.nan_to_num(-torch.inf, torch.inf, -torch.inf) if _has_nan(responses) else responses).T
        used = int(self._filled[units].max())
        best, place = torch.cat([self._values[units, :used], new], 1).topk(self.count, dim=1, sorted=False)
        kept = self._stimuli[units, :used].gather(1, place.clamp_max(used - 1))
        self._values[units, self.count : used] = -torch.inf
        self._values[units, : self.count] = best
        self._stimuli[units, : self.count] = torch.where(place < used, kept, place.int() + (self.shown - used))
        self._filled[units] = self.count
        self._floor[units] = best.amin(1)

    def _pick(self, responses: Tensor) -> None:
        """Collect the responses above what is kept; units without room for theirs are merged instead."""
        which = _above(responses, self._floor)
        more = count_true(which).long()
        above = torch.from_numpy(np.ascontiguousarray(which.numpy().T))  # faster than torch's on a CPU
        crowded = self._filled + more > self._values.shape[1]
        if crowded.any():
            columns = crowded.nonzero()[:, 0]
            self._merge(responses.index_select(1, columns), columns)
            above[columns] = False
            more[columns] = 0
        flat = torch.from_numpy(np.flatnonzero(above.numpy()))  # likewise
        unit = torch.arange(len(more)).repeat_interleave(more)
        row = flat - unit * len(responses)
        place = (self._filled - (more.cumsum(0) - more)).index_select(0, unit) + torch.arange(len(unit))
        at = unit * self._values.shape[1] + place
        above_floor = responses.reshape(-1).index_select(0, row * responses.shape[1] + unit)
        self._values.view(-1).index_copy_(0, at, above_floor)
        self._stimuli.view(-1).index_copy_(0, at, (row + self.shown).int())
        self._filled += more


def _above(responses: Tensor, floor: Tensor) -> Tensor:
    """Whether each response is above the floor of its unit; NaN is not."""
    if responses.dtype not in _OF_NUMPY:
        return responses > floor
    return torch.from_numpy(np.greater(responses.numpy(), floor.numpy()))  # twice as fast as torch on a CPU


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
