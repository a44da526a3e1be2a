"""The largest responses of every unit over a stream of stimuli, exactly, without keeping the stream."""

from __future__ import annotations

import torch
from torch import Tensor

_ROOM = 4  # how many times what is wanted fits into the buffer before it is thinned out


class TopResponses:
    """The ``count`` largest of all responses shown so far, per unit, and which stimuli gave them.

    No sketch and no sample: a response that is not above the smallest one kept is passed over, the others are
    collected and thinned out now and then. Memory is a few times ``count`` × units, however many stimuli there
    are; time is one comparison per response, and little more once the largest have been seen.

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
        self._values: Tensor | None = None  # units × room
        self._stimuli: Tensor
        self._filled: Tensor  # per unit: how much of its row is in use
        self._floor: Tensor  # per unit: the smallest response still of interest

    def extend(self, responses: Tensor) -> None:
        """Add the next stimuli: a batch of them × units. NaN is never among the largest."""
        if responses.is_cuda:
            self._merge(responses)
        else:
            if self._values is None:
                self._begin(responses)
            for row in responses:
                self._add(row)

    def sorted(self) -> tuple[Tensor, Tensor]:
        """The largest first: (count × units) responses and the numbers of their stimuli.

        Among equal responses the earlier stimulus comes first. Where fewer than ``count`` stimuli were shown, the
        rest is −∞ and −1.
        """
        assert self._values is not None, "nothing was shown"
        self._thin_out()
        values, stimuli = self._values[:, : self.count], self._stimuli[:, : self.count]
        order = _order(values, stimuli)
        return values.gather(1, order).T, stimuli.gather(1, order).T

    def _begin(self, responses: Tensor) -> None:
        units, device = responses.shape[1], responses.device
        room = self.count * _ROOM
        self._values = torch.full((units, room), -torch.inf, dtype=responses.dtype, device=device)
        self._stimuli = torch.full((units, room), -1, dtype=torch.int32, device=device)
        self._filled = torch.zeros(units, dtype=torch.int64, device=device)
        self._floor = torch.full((units,), -torch.inf, dtype=responses.dtype, device=device)

    def _add(self, row: Tensor) -> None:
        """One stimulus: each unit for which it is of interest takes it."""
        assert self._values is not None
        units = torch.nonzero(row > self._floor)[:, 0]
        if len(units):
            place = self._filled[units]
            self._values[units, place] = row[units]
            self._stimuli[units, place] = self.shown
            self._filled[units] = place + 1
        self.shown += 1
        if len(units) and int(place.max()) + 1 == self._values.shape[1]:
            self._thin_out()

    def _merge(self, responses: Tensor) -> None:
        """A whole batch at once, for a device on which single stimuli would be too small a step."""
        if self._values is None:
            self._begin(responses)
        assert self._values is not None
        numbers = torch.arange(self.shown, self.shown + len(responses), dtype=torch.int32, device=responses.device)
        new = torch.where(responses.isnan(), -torch.inf, responses).T
        values = torch.cat([self._values[:, : self.count], new], 1)
        stimuli = torch.cat([self._stimuli[:, : self.count], numbers.expand(len(new), -1)], 1)
        # Stable, so that among equal responses the earlier stimulus is kept, as on a CPU.
        order = values.argsort(dim=1, descending=True, stable=True)[:, : self.count]
        self._values[:, : self.count], self._stimuli[:, : self.count] = (
            values.gather(1, order),
            stimuli.gather(1, order),
        )
        self.shown += len(responses)

    def _thin_out(self) -> None:
        """Keep the largest, forget the others, and raise the floor to the smallest kept."""
        assert self._values is not None
        if int(self._filled.max()) <= self.count:
            return
        used = int(self._filled.max())
        values, stimuli = self._values[:, :used], self._stimuli[:, :used]
        best, place = values.topk(self.count, dim=1, sorted=False)
        ties = (values == best.amin(1, keepdim=True)).sum(1) > (best == best.amin(1, keepdim=True)).sum(1)
        if ties.any():  # among equal responses the earlier stimulus stays: topk does not promise which
            place[ties] = _order(values[ties], stimuli[ties])[:, : self.count]
        kept = stimuli.gather(1, place)
        best = values.gather(1, place)
        self._values[:, : self.count], self._stimuli[:, : self.count] = best, kept
        self._values[:, self.count : used] = -torch.inf
        self._stimuli[:, self.count : used] = -1
        self._filled.clamp_(max=self.count)
        self._floor = torch.where(self._filled == self.count, best.amin(1), -torch.inf)


def _order(values: Tensor, stimuli: Tensor) -> Tensor:
    """Per unit: the larger response first, among equal ones the earlier stimulus."""
    earlier = stimuli.argsort(dim=1)
    return earlier.gather(1, values.gather(1, earlier).argsort(dim=1, descending=True, stable=True))
