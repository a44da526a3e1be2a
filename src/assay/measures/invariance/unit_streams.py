"""What is kept of the responses of units while stimuli are shown: the largest, the extremes and their ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.measures.invariance.firing import SIGNS, Signs, firing_count
from assay.measures.invariance.top_responses import TopResponses, count_true, extremes
from assay.measures.invariance.unit_responses import UnitResponses, kept_of

Array = np.ndarray[Any, Any]
_BLOCK = 1 << 20  # responses of a batch looked at together, which stay in the cache of a processor


class LayerStream:
    """The responses of one layer over a stream of n stimuli, as far as its invariance depends on them.

    Keeps, per unit and sign, the ⌈G·n⌉ largest responses and a quarter more, the extremes and how often they were
    reached: memory grows with units, not with stimuli.

    Args:
        stimuli: The numbers of the stimuli, in the order in which they will be shown.
        firing_rate: The global firing rate G.
        signs: Which signs units may have.
        details: Whether to keep what sparseness needs.
        kept: How many of the largest responses to keep, if more than these stimuli need.
    """

    def __init__(
        self, stimuli: Array, firing_rate: float, signs: Signs, details: bool = False, kept: int | None = None
    ) -> None:
        self.stimuli = stimuli
        self.firing_rate = firing_rate
        self.signs = SIGNS[signs]
        self.details = details
        self.kept = min(len(stimuli), kept or kept_of(len(stimuli), firing_rate))
        self._blocks: list[UnitStream] = []
        self._size = 0

    def extend(self, responses: Tensor, rows: Tensor | None = None) -> None:
        """Add the responses to a batch of stimuli (stimuli × units), or to some of them."""
        if not self._blocks:
            units = max(responses.shape[1], 1)
            self._size = units if responses.is_cuda else max(_BLOCK // len(responses), 1)
            self._blocks = [UnitStream(self.kept, self.signs, self.details) for _ in range(0, units, self._size)]
        for i, block in enumerate(self._blocks):
            some = responses[:, i * self._size : (i + 1) * self._size]
            if rows is not None:
                some = some.index_select(0, rows)
            block.extend(some)

    def finished(self) -> UnitResponses:
        """What was kept of all units; the stream is at its end."""
        blocks, self._blocks = self._blocks, []
        number = torch.from_numpy(self.stimuli)
        largest = {}
        for sign in self.signs:
            values, shown = (torch.cat(of, 1) for of in zip(*(b.top.sorted(sign) for b in blocks), strict=True))
            largest[sign] = values, number.to(values.device)[shown.long().clamp_min(0)]  # of NaN: any
        return UnitResponses(
            stimuli=self.stimuli,
            asked=firing_count(len(self.stimuli), self.firing_rate),
            extreme={sign: torch.cat([block.extreme[sign] for block in blocks]) for sign in (1, -1)},
            reached={sign: torch.cat([block.reached[sign] for block in blocks]) for sign in self.signs},
            largest=largest,
            sums={sign: torch.cat([block.sums[sign] for block in blocks], 1) for sign in self.signs if self.details},
        )


class UnitStream:
    """What a `LayerStream` keeps of some of its units.

    Args:
        kept: How many of the largest responses to keep.
        signs: The signs that units may have.
        details: Whether to keep the sums that sparseness needs.
    """

    def __init__(self, kept: int, signs: tuple[int, ...], details: bool) -> None:
        self.signs = signs
        self.details = details
        self.shown = 0
        self.top = TopResponses(kept, signs)
        self.extreme: dict[int, Tensor] = {}
        self.reached: dict[int, Tensor] = {}
        self.sums: dict[int, Tensor] = {}  # of the responses above zero, and of their squares

    def extend(self, responses: Tensor) -> None:
        """Add the responses to a batch of stimuli (stimuli × units)."""
        self.top.extend(responses)
        low, high = extremes(responses)  # NaN if there is one
        for sign, largest in ((1, high), (-1, -low)):
            if self.shown:
                largest = torch.maximum(largest, self.extreme[sign])  # NaN stays
            if sign in self.signs:
                self._count_ties(sign, responses, largest)
                if self.details:
                    above = (sign * responses).clamp_min(0).double()
                    sums = torch.stack([above.sum(0), above.square().sum(0)])
                    self.sums[sign] = sums + self.sums[sign] if self.shown else sums
            self.extreme[sign] = largest
        self.shown += len(responses)

    def _count_ties(self, sign: int, responses: Tensor, largest: Tensor) -> None:
        """Count the stimuli on which a unit was at its extreme, which matters where all that is kept is at it.

        While no more was shown than could be kept twice over, all units are counted; after that only those that are
        tied and have been counted all along; −1 for the others.
        """
        extreme = sign * largest
        if self.shown + len(responses) <= 2 * self.top.count:
            equal = count_true(responses == extreme)
            if self.shown:
                equal += torch.where(largest == self.extreme[sign], self.reached[sign], 0)
            self.reached[sign] = equal
            return
        reached = self.reached[sign] if self.shown else torch.zeros_like(largest, dtype=torch.int32)
        tied = (self.top.floor(sign) == largest) & (reached >= 0)
        if self.shown:
            tied &= largest == self.extreme[sign]
        reached[~tied] = -1
        columns = tied.nonzero()[:, 0]
        if 4 * len(columns) > len(tied):  # to compare all costs less than to pick out so many
            reached = torch.where(tied, reached + count_true(responses == extreme), reached)
        elif len(columns):
            reached[columns] += count_true(responses.index_select(1, columns) == extreme[columns])
        self.reached[sign] = reached
