"""The largest responses of every unit over a stream of stimuli, exactly, without keeping the stream."""

from __future__ import annotations

import torch
from torch import Tensor

_ROOM = 5  # how many times what is wanted fits into the buffer before it is thinned out
_MERGED = 8  # how many times what is wanted is shown before single responses are picked out


class TopResponses:
    """The ``count`` largest of all responses shown so far, per unit, and which stimuli gave them.

    No sketch and no sample. At first, and on a GPU always, a batch is merged with what is kept; once most responses
    are below the smallest one kept, those that are not are collected and thinned out now and then. Memory is a few
    times ``count`` × units, however many stimuli there are; time is little more than one comparison per response.

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
        """Add the next stimuli: a batch of them × units. NaN is never among the largest."""
        if not self.shown:
            self._begin(responses)
        if responses.is_cuda or self.shown < _MERGED * self.count:
            self._merge(responses)
        else:
            self._pick(responses)

    @property
    def floor(self) -> Tensor:
        """Per unit the smallest response kept when it was last thinned out: never above the smallest of the largest."""
        return self._floor

    def sorted(self) -> tuple[Tensor, Tensor]:
        """The largest first: (count × units) responses and the numbers of their stimuli.

        Among equal responses the earlier stimulus comes first; which of those equal to the smallest are kept is left
        open. Where fewer than ``count`` stimuli were shown, the rest is −∞ and −1.
        """
        assert self.shown, "nothing was shown"
        self._thin_out()
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

    def _merge(self, responses: Tensor) -> None:
        """A whole batch at once; NaN becomes −∞, which sorts last."""
        self._thin_out()
        numbers = torch.arange(self.shown, self.shown + len(responses), dtype=torch.int32, device=responses.device)
        bad = responses.isnan()
        new = (torch.where(bad, -torch.inf, responses) if bad.any() else responses).T
        values = torch.cat([self._values[:, : self.count], new], 1)
        stimuli = torch.cat([self._stimuli[:, : self.count], numbers.expand(len(new), -1)], 1)
        self._keep(values, stimuli)
        self.shown += len(responses)

    def _pick(self, responses: Tensor) -> None:
        """Collect the responses above what is kept; half a batch after the other where there is no room for all."""
        row, unit = torch.nonzero(responses > self._floor, as_tuple=True)
        more = torch.bincount(unit, minlength=len(self._floor))
        if int((self._filled + more).max()) > self._values.shape[1]:
            self._thin_out()
            if int(more.max()) > self._values.shape[1] - self.count:
                for half in torch.tensor_split(responses, 2):
                    self._pick(half)
                return
        order = unit.argsort(stable=True)
        row, unit = row[order], unit[order]
        place = self._filled[unit] + torch.arange(len(unit)) - (more.cumsum(0) - more)[unit]
        self._values[unit, place] = responses[row, unit]
        self._stimuli[unit, place] = (row + self.shown).int()
        self._filled += more
        self.shown += len(responses)

    def _thin_out(self) -> None:
        """Keep the largest, forget the others, and raise the floor to the smallest kept."""
        if self._values.shape[1] > self.count and (used := int(self._filled.max())) > self.count:
            self._keep(self._values[:, :used], self._stimuli[:, :used])
            self._values[:, self.count : used] = -torch.inf
            self._filled.fill_(self.count)

    def _keep(self, values: Tensor, stimuli: Tensor) -> None:
        best, place = values.topk(self.count, dim=1, sorted=False)
        self._values[:, : self.count], self._stimuli[:, : self.count] = best, stimuli.gather(1, place)
        self._floor = best.amin(1)
