"""The responses of a layer's units in one pass: thresholds, firing, and the stimuli of near-maximal response (Z)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.measures.invariance.firing import SCORED, SLACK, fire, firing_count, near_count, status_of
from assay.measures.invariance.top_responses import largest

Array = np.ndarray[Any, Any]
Units = Literal["all", "channels", "centre"]
_CHUNK = 1 << 26  # stimuli × units of firing laid out at a time


def responses_of(output: Tensor, units: Units) -> Tensor:
    """The output of a layer as stimuli × units: all units, or the largest or the central one of each channel."""
    x = torch.view_as_real(output) if output.is_complex() else output
    if not x.is_floating_point():
        x = x.float()
    if x.dim() > 2 and units == "channels":
        x = x.flatten(2).amax(2)
    elif x.dim() > 2 and units == "centre":
        for axis in range(x.dim() - 1, 1, -1):
            x = x.select(axis, x.shape[axis] // 2)
    return x.reshape(len(x), -1)


@dataclass(frozen=True)
class NearMaximal:
    """Thresholds, firing and status of units of one sign; Z as pairs (unit, stimulus), with a local rate each.

    ``at_least`` is the number of stimuli that drive a unit at least as much as the last of its Z. ``fires`` is, where
    it was asked for, whether the unit fires on each stimulus of T(z): pairs × |T|, in the order of the trajectory.
    """

    thresholds: Array
    firing: Array
    status: Array
    at_least: Array
    unit: Array
    stimulus: Array
    local: Array
    fires: Array | None = None


class UnitResponses:
    """The responses of one layer to n stimuli, as far as its invariance depends on them.

    Args:
        stimuli: The numbers of the stimuli.
        asked: ⌈G·n⌉, the number of stimuli on which a unit of the global firing rate G fires.
        extreme: For each sign, the largest response of each unit; NaN where one is NaN.
        reached: For each sign that units may have, how often it was reached; −1 where that was not counted.
        largest: For each of these signs, the largest responses in descending order, and their stimuli; kept × units.
        sums: For each of these signs the sums of the responses above zero, and of their squares, if they were kept.
    """

    def __init__(
        self,
        stimuli: Array,
        asked: int,
        extreme: dict[int, Tensor],
        reached: dict[int, Tensor],
        largest: dict[int, tuple[Tensor, Tensor]],
        sums: dict[int, Tensor],
    ) -> None:
        self.stimuli = stimuli
        self.n = len(stimuli)
        self.asked = asked
        self.extreme = extreme
        self.reached = reached
        self.largest = largest
        self.sums = sums
        self.finite: Array = (extreme[1].isfinite() & extreme[-1].isfinite()).cpu().numpy()
        """Whether each unit only ever gave finite responses."""
        finite = torch.from_numpy(self.finite).to(extreme[1].device)
        self.fires = {sign: (values >= values[asked - 1]) & finite for sign, (values, _) in largest.items()}
        """For each sign, whether each unit fires on the stimuli of its largest responses; kept × units."""

    @property
    def signs(self) -> list[int]:
        """The signs that units may have."""
        return list(self.largest)

    def sparseness(self, sign: int) -> Array:
        """Lifetime sparseness of each unit: (1 − (Σr/n)² / (Σr²/n)) / (1 − 1/n), r = max(s·h, 0).

        0 where the unit responds to all stimuli alike, 1 where it responds to one alone; NaN where it never responds.

        Vinje & Gallant 2000, "Sparse coding and decorrelation in primary visual cortex during natural vision".
        """
        first, second = self.sums[sign].cpu().numpy() / self.n
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((1 - first**2 / second) / (1 - 1 / self.n))

    def near(self, sign: int, near_max: int | float, eligible: Array) -> tuple[NearMaximal, Array]:
        """The near-maximal stimuli Z of each unit, of those eligible; and which units have more ties than were kept.

        Those units come out with no pairs: their responses must be looked at again (see `near_from_responses`).
        """
        (values, stimuli), fires = self.largest[sign], self.fires[sign]
        kth, low, high = values[self.asked - 1], -self.extreme[-sign], self.extreme[sign]
        beyond = fires.all(0) & (self.n > len(values))
        counted = torch.where(kth == high, self.reached[sign], -1)
        firing = torch.where(beyond & (counted >= 0), counted, fires.sum(0))
        place = fires.sum(0).clamp_max(len(values) - 1)
        thresholds = torch.where(beyond, torch.nan, values.gather(0, place[None])[0].double())
        may = torch.from_numpy(eligible).to(values.device)
        candidates = fires & may[stimuli] & ~beyond
        count = candidates.sum(0)
        chosen = torch.from_numpy(near_count(near_max, count.cpu().numpy())).to(values.device)
        within = candidates & (candidates.cumsum(0) <= chosen)
        cutoff = torch.where(within, values, torch.inf).amin(0)
        pairs = (candidates & (values >= cutoff)).T.nonzero()
        status = status_of(
            constant=(high == low).cpu().numpy(),
            sparse=(kth == low).cpu().numpy(),
            firing=firing.cpu().numpy(),
            silent=(count == 0).cpu().numpy(),
            n=self.n,
            asked=self.asked,
        )
        # A unit tied at its extreme on more than half of the stimuli is known to be always on.
        unknown = beyond.cpu().numpy() & (status == "silent")
        usable = torch.from_numpy(np.isin(status, SCORED)).to(values.device)
        pairs = pairs[usable[pairs[:, 0]]]
        unit, stimulus = pairs[:, 0].cpu().numpy(), stimuli.T[pairs[:, 0], pairs[:, 1]].cpu().numpy()
        at_least = (values >= cutoff).sum(0)
        rates = (thresholds.cpu().numpy(), firing.cpu().numpy(), status, at_least.cpu().numpy())
        return NearMaximal(*rates, unit, stimulus, np.full(len(unit), np.nan)), unknown

    def with_local_rates(self, sign: int, near: NearMaximal, trajectories: Array, details: bool) -> NearMaximal:
        """With, for each pair (unit, z), the share of T(z) on which the unit fires; T(z) are rows padded with −1.

        Args:
            sign: The sign of the units.
            near: The pairs.
            trajectories: T(z) of every stimulus.
            details: Whether to keep on which stimuli of T(z) the unit fires.
        """
        (values, stimuli), fires = self.largest[sign], self.fires[sign]
        table = torch.from_numpy(trajectories).to(values.device)
        unit, stimulus = (torch.from_numpy(a).to(values.device).long() for a in (near.unit, near.stimulus))
        local = torch.empty(len(unit), dtype=torch.float64, device=values.device)
        fired = torch.empty((len(unit), table.shape[1]) if details else 0, dtype=torch.bool, device=values.device)
        step = max(_CHUNK // len(table), 1)
        for start in range(0, values.shape[1], step):
            columns = slice(start, start + step)
            laid_out = torch.zeros((len(table), fires[:, columns].shape[1]), dtype=torch.bool, device=values.device)
            laid_out.scatter_(0, stimuli[:, columns], fires[:, columns])
            pairs = ((unit >= start) & (unit < start + step)).nonzero()[:, 0]
            for some, hit, of in _hits(laid_out, unit[pairs] - start, stimulus[pairs], table):
                local[pairs[some]] = hit.sum(1).double() / of
                if details:
                    fired[pairs[some]] = hit
        return replace(near, local=local.cpu().numpy(), fires=fired.cpu().numpy() if details else None)


def kept_of(n: int, firing_rate: float) -> int:
    """How many of the largest of n responses tell when a unit fires: those on which it does, and a quarter more."""
    asked = firing_count(n, firing_rate)
    return min(n, asked + int(SLACK * asked) + 1)


def joined(parts: Sequence[UnitResponses], stimuli: Array, firing_rate: float) -> UnitResponses:
    """The responses to the stimuli of all parts, of which each has kept as many as all of them need together."""
    extreme = {sign: torch.stack([part.extreme[sign] for part in parts]).amax(0) for sign in (1, -1)}  # NaN stays
    reached, kept = {}, {}
    for sign in parts[0].signs:
        total = torch.zeros_like(parts[0].reached[sign])
        for part in parts:
            there = part.extreme[sign] == extreme[sign]
            unknown = there & (part.reached[sign] < 0) | (total < 0)
            total = torch.where(unknown, -1, total + torch.where(there, part.reached[sign], 0))
        reached[sign] = total
        values, numbers = (torch.cat(of).T for of in zip(*(part.largest[sign] for part in parts), strict=True))
        values, numbers = largest(values, numbers, kept_of(len(stimuli), firing_rate))
        kept[sign] = values.T, numbers.T
    sums = {sign: torch.stack([part.sums[sign] for part in parts]).sum(0) for sign in parts[0].sums}
    return UnitResponses(stimuli, firing_count(len(stimuli), firing_rate), extreme, reached, kept, sums)


def near_from_responses(
    responses: Array,
    stimuli: Array,
    sign: int,
    firing_rate: float,
    near_max: int | float,
    eligible: Array,
    trajectories: Array | None,
    details: bool = False,
) -> NearMaximal:
    """The near-maximal stimuli Z from all responses of a few units, for units with many ties.

    Args:
        responses: The responses, all stimuli × units.
        stimuli: The numbers of the stimuli that thresholds and Z are of.
        sign: The sign of the units.
        firing_rate: The global firing rate G.
        near_max: Number of stimuli in Z.
        eligible: Whether each stimulus may be in Z.
        trajectories: T(z) of every stimulus, of which none is outside of ``stimuli`` for a z in it.
        details: Whether to keep on which stimuli of T(z) the unit fires.
    """
    shown = responses[stimuli]
    fired = fire(sign * shown, firing_rate, near_max, eligible[stimuli])
    place, unit = np.nonzero(fired.near & np.isin(fired.status, SCORED))
    order = np.lexsort((place, -sign * shown[place, unit], unit))  # what drives a unit most comes first
    place, unit = place[order], unit[order]
    stimulus = stimuli[place]
    local, along = np.full(len(unit), np.nan), None
    if trajectories is not None:
        fires = np.zeros(responses.shape, dtype=bool)
        fires[stimuli] = fired.fires
        laid_out, *rest = (torch.from_numpy(a) for a in (fires, unit, stimulus, trajectories))
        along = np.zeros((len(unit), trajectories.shape[1] if details else 0), dtype=bool)
        for some, hit, of in _hits(laid_out, *rest):
            local[some.numpy()] = (hit.sum(1).double() / of).numpy()
            if details:
                along[some.numpy()] = hit.numpy()
    last = np.where(fired.near, sign * shown, np.inf).min(axis=0)
    at_least = (sign * shown >= last).sum(axis=0)
    rates = (fired.thresholds, fired.fires.sum(axis=0), fired.status, at_least)
    return NearMaximal(*rates, unit, stimulus, local, along if details else None)


def _hits(
    fires: Tensor, unit: Tensor, stimulus: Tensor, trajectories: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For some pairs (unit, z) at a time: their numbers, whether the unit fires on each of T(z), and |T(z)|.

    ``fires`` is stimuli × units.
    """
    size = max(_CHUNK // (8 * trajectories.shape[1]), 1)
    for pairs in torch.split(torch.arange(len(unit), device=fires.device), size):
        path = trajectories[stimulus[pairs]]
        yield pairs, fires[path.clamp_min(0), unit[pairs][:, None]] & (path >= 0), (path >= 0).sum(1)


def replace_units(near: NearMaximal, units: Array, replacement: NearMaximal) -> NearMaximal:
    """A copy of ``near`` in which the units numbered ``units`` are those of ``replacement``."""
    columns = {name: getattr(near, name).copy() for name in ("thresholds", "firing", "status", "at_least")}
    for name, column in columns.items():
        column[units] = getattr(replacement, name)
    pairs = {"unit": units[replacement.unit], "stimulus": replacement.stimulus, "local": replacement.local}
    joined = {name: np.concatenate([getattr(near, name), new]) for name, new in pairs.items()}
    both = near.fires is not None and replacement.fires is not None
    fires = np.concatenate([near.fires, replacement.fires]) if both else None
    return NearMaximal(**columns, **joined, fires=fires)
