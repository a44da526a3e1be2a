"""The units of one layer under one transformation: their scores, and what a table says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from assay.measures.evidence import DRAWS
from assay.measures.invariance.firing import SignedScores, choose_sign, top_count, top_proportion_mean
from assay.measures.invariance.held_out import HeldOut, SignedPairs, fixed_score, held_out_score, top_weights
from assay.measures.invariance.unit_responses import NearMaximal, UnitResponses
from assay.stimuli.invariance_test import ClosedTest, InvarianceTest

Array = np.ndarray[Any, Any]
STATUSES = ("ok", "tied", "constant", "sparse", "always on", "silent", "not finite")
NOT_PER_STIMULUS: dict[str, Any] = {
    **dict.fromkeys(("score", "held_out", "held_out_low", "held_out_high"), np.nan),
    "n": 0,
    **dict.fromkeys(("mean_score", "mean_held_out", "mean_held_out_low", "mean_held_out_high"), np.nan),
    **dict.fromkeys(("z", "z_clips", "clips"), 0.0),
    **dict.fromkeys(("z_quantile", "p10", "p25", "p50", "p75", "p90", "negative"), np.nan),
    "units": 0,
    **{status.replace(" ", "_"): 0 for status in STATUSES},
    "best_unit": -1,
    "best_score": np.nan,
    "largest": np.nan,
    "on_trajectory": 0,
    "status": "not per stimulus",
    "df": 0.0,
    "mean_df": 0.0,
    "stimuli": 0,
}
"""The row of a layer whose output does not have one entry per stimulus."""


@dataclass(frozen=True)
class Asked:
    """What was asked of a layer, and what was shown to it.

    Args:
        test: The test that was shown.
        transformation: One of its transformations.
        top: The best-scoring proportion p of units.
        bootstrap: Number of resamples.
        seed: Seed of folds and resamples.
    """

    test: InvarianceTest
    transformation: str
    top: float
    bootstrap: int
    seed: int

    @cached_property
    def on_trajectory(self) -> tuple[int, int]:
        """The fewest and the most stimuli of the test on one trajectory; 0 where transforms are made besides."""
        if not isinstance(self.test, ClosedTest):
            return 0, 0
        lengths = (self.test.trajectories(self.transformation) >= 0).sum(1)
        among = self.test.among(self.transformation)
        lengths = lengths if among is None else lengths[among]
        return int(lengths.min()), int(lengths.max())


class LayerScores:
    """The scores of a layer's units, and Z of the sign that each unit has.

    Args:
        parts: What the first pass kept of the layer: of all stimuli, then of each half, if there are halves.
        nears_by_part: Z of all units, by sign, for each part.
        asked: What was asked of the layer.
    """

    def __init__(
        self, parts: Sequence[UnitResponses], nears_by_part: Sequence[dict[int, NearMaximal]], asked: Asked
    ) -> None:
        self.responses, *self.halves = parts
        self.nears, *self.nears_by_half = nears_by_part
        self.asked = asked
        self.rate = self.responses.asked / self.responses.n
        self.units = choose_sign(_signed(self.responses, self.nears), self.rate, self.responses.finite)
        self.z = _chosen(self.units, self.nears)
        self.blocks = asked.test.blocks(asked.transformation)

    def row(self, units_seed: Sequence[int]) -> dict[str, Any]:
        """What the table says of the layer; the scores in resamples are under ``draws``, of Inv_p and of Inv_1."""
        values = self.units["score"].to_numpy()
        defined = values[np.isfinite(values)]
        best, mean = (self.held_out(p, units_seed) for p in (self.asked.top, 1.0))
        (low, high), (mean_low, mean_high) = (held.interval(1 / self.rate) for held in (best, mean))
        quantiles = np.quantile(defined, (0.1, 0.25, 0.5, 0.75, 0.9)) if len(defined) else [np.nan] * 5
        number = int(np.nanargmax(values)) if len(defined) else -1
        status_counts = self.units["status"].value_counts()
        return {
            "score": top_proportion_mean(values, self.asked.top),
            "held_out": best.score,
            "held_out_low": low,
            "held_out_high": high,
            "n": top_count(len(defined), self.asked.top),
            "mean_score": float(defined.mean()) if len(defined) else np.nan,
            "mean_held_out": mean.score,
            "mean_held_out_low": mean_low,
            "mean_held_out_high": mean_high,
            **self._of_z(),
            **dict(zip(("p10", "p25", "p50", "p75", "p90"), map(float, quantiles), strict=True)),
            "negative": float((self.units["sign"] == -1).sum() / len(defined)) if len(defined) else np.nan,
            "units": len(values),
            **{status.replace(" ", "_"): int(status_counts.get(status, 0)) for status in STATUSES},
            "best_unit": number,
            "best_score": float(values[number]) if number >= 0 else np.nan,
            "largest": self._largest,
            "on_trajectory": self.asked.on_trajectory[1],
            "status": "ok" if len(defined) else "undefined",
            DRAWS: np.stack([best.draws, mean.draws], axis=1),
            "df": best.df,
            "mean_df": mean.df,
            "stimuli": self.responses.n,
        }

    @property
    def _largest(self) -> float:
        """The largest score there can be: 1/G, or less where a unit fires on fewer stimuli than a trajectory has."""
        shortest = self.asked.on_trajectory[0]
        return min(1.0, self.responses.asked / shortest if shortest else 1.0) / self.rate

    def held_out(self, p: float, units_seed: Sequence[int]) -> HeldOut:
        """The mean score of the best-scoring proportion of units on stimuli that did not choose them."""
        if not self.asked.test.sampled:
            return fixed_score(self.units["score"].to_numpy(), p, self.asked.bootstrap, units_seed)
        number = int(self.blocks.max()) + 1
        return held_out_score(self._pairs, p, number, self.asked.bootstrap, self.asked.seed, units_seed)

    @cached_property
    def _pairs(self) -> list[list[SignedPairs]]:
        """Z of all units that have a score, for each half and each sign."""
        return [
            [self._pairs_of(half, scores, nears[scores.sign]) for scores in _signed(half, nears)]
            for half, nears in zip(self.halves, self.nears_by_half, strict=True)
        ]

    def _pairs_of(self, half: UnitResponses, scores: SignedScores, near: NearMaximal) -> SignedPairs:
        preference = np.where(half.finite, scores.preference(half.asked / half.n), 0)
        kept = preference[near.unit] > 0
        block = self.blocks[near.stimulus[kept]]
        return SignedPairs(near.unit[kept], block, near.local[kept], scores.global_rate, preference)

    def driving(self, unit: int, most: int) -> Array:
        """The stimuli that drive a unit most."""
        return np.asarray(self.z.stimulus[self.z.unit == unit][:most])

    def _of_z(self) -> dict[str, float]:
        """How many stimuli a unit's score rests on, from how many clips, and how near to its maximum they are."""
        if not len(self.z.unit):
            return {"z": 0.0, "z_clips": 0.0, "clips": 0.0, "z_quantile": np.nan}
        block = self.blocks[self.z.stimulus]
        blocks = int(block.max()) + 1
        pairs = np.sort(self.z.unit * blocks + block)
        once = pairs[np.diff(pairs, prepend=-1) > 0]  # each unit and block that meet in a pair
        sizes, clips = np.bincount(self.z.unit), np.bincount(once // blocks)
        present = sizes > 0
        return {
            "z": float(np.median(sizes[present])),
            "z_clips": float(np.median(clips[present])),
            "clips": float((np.bincount(block) > 0).sum()),
            "z_quantile": float(np.median(self.z.at_least[: len(sizes)][present]) / self.responses.n),
        }

    # -- details --------------------------------------------------------------------------------------

    def details(self) -> dict[str, Any]:
        """Of every unit its score, sign, status, selectivity and width; firing rates by magnitude."""
        rates = self.firing_by_magnitude()
        with np.errstate(invalid="ignore"):
            means = [
                np.nansum(rates * (w := top_weights(self.units["score"].to_numpy(), p))[:, None], axis=0)
                / np.nansum(np.where(np.isnan(rates), np.nan, w[:, None]), axis=0)
                for p in (self.asked.top, 1.0)
            ]
        magnitudes = self.asked.test.magnitudes(self.asked.transformation).astype(np.float64)
        return {
            "magnitudes": magnitudes,
            "firing_by_magnitude": means[0],
            "mean_firing_by_magnitude": means[1],
            "unit_score": self.units["score"].to_numpy(),
            "unit_sign": self.units["sign"].to_numpy().astype(np.int8),
            "unit_status": self.units["status"].to_numpy().astype(str),
            "unit_selectivity": self.selectivity(),
            "unit_width": widths(rates, magnitudes),
        }

    def firing_by_magnitude(self) -> Array:
        """The share of Z on which each unit fires at each magnitude (units × magnitudes); NaN where none reaches it."""
        test, name = self.asked.test, self.asked.transformation
        size = len(test.magnitudes(name))
        shape = (len(self.units), size)
        if self.z.fires is None or not len(self.z.unit):
            return np.full(shape, np.nan)
        if isinstance(test, ClosedTest):
            at = test.magnitude_of(name)[self.z.stimulus]
        else:
            at = np.broadcast_to(np.arange(size), self.z.fires.shape)
        there = at >= 0
        place = (self.z.unit[:, None] * size + at)[there]
        fired = np.bincount(place, self.z.fires[there], np.prod(shape))
        with np.errstate(invalid="ignore"):
            return np.asarray(fired / np.bincount(place, minlength=int(np.prod(shape)))).reshape(shape)

    def selectivity(self) -> Array:
        """The lifetime sparseness of each unit's responses, under its sign."""
        sign = self.units["sign"].to_numpy()
        by_sign = [self.responses.sparseness(s) for s in self.nears]
        return np.asarray(np.select([sign == s for s in self.nears], by_sign, np.nan))


def widths(rates: Array, magnitudes: Array) -> Array:
    """How far each unit is invariant: the extent of magnitudes over which it fires on at least half of its Z.

    From the magnitude at which the unit fires most often, that nearest to 0 if there are several, it is counted both
    ways up to the last magnitude, in their order by size, before the rate falls below one half. 0 where it fires at
    that magnitude alone, NaN where it nowhere fires half of the time; a lower bound where it is the whole range.

    Args:
        rates: Firing rates, units × magnitudes; NaN is passed over.
        magnitudes: The magnitudes.

    Example:
        >>> widths(np.array([[0.1, 0.6, 1.0, 0.5, 0.2], [0.0, 0.0, 1.0, 0.0, 1.0]]), np.arange(-2.0, 3.0)).tolist()
        [2.0, 0.0]
    """
    order = np.argsort(magnitudes, kind="stable")
    known = np.where(np.isnan(rates), -1.0, rates)[:, order]
    extent = np.full(len(rates), np.nan)
    for unit, row in enumerate(known):
        held = (row >= 0.5) | (row < 0)
        if row.max() < 0.5:
            continue
        highest = np.flatnonzero(row == row.max())
        peak = int(highest[np.abs(magnitudes[order][highest]).argmin()])
        low = peak - int(np.argmin(np.append(held[:peak][::-1], False)))
        high = peak + int(np.argmin(np.append(held[peak + 1 :], False)))
        extent[unit] = magnitudes[order][high] - magnitudes[order][low]
    return extent


def _signed(responses: UnitResponses, nears: dict[int, NearMaximal]) -> list[SignedScores]:
    """The scores of all units under each sign."""
    return [
        SignedScores(sign, near.thresholds, near.firing / responses.n, _mean_local(near), near.status)
        for sign, near in nears.items()
    ]


def _mean_local(near: NearMaximal) -> Array:
    """The local rate L of each unit: the mean over its Z."""
    count = np.bincount(near.unit, minlength=len(near.status))
    total = np.bincount(near.unit, near.local, minlength=len(near.status))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def _chosen(scores: pd.DataFrame, nears: dict[int, NearMaximal]) -> NearMaximal:
    """Z of all units, each with the sign chosen for it."""
    sign = scores["sign"].to_numpy()
    parts, at_least = [], np.zeros(len(sign), dtype=np.int64)
    for which, near in nears.items():
        with_this_sign = (sign == which)[near.unit]
        at_least = np.where(sign == which, near.at_least, at_least)
        fires = None if near.fires is None else near.fires[with_this_sign]
        parts.append((near.unit[with_this_sign], near.stimulus[with_this_sign], near.local[with_this_sign], fires))
    unit, stimulus, local, kept = zip(*parts, strict=True)
    first = next(iter(nears.values()))
    along = None if kept[0] is None else np.concatenate(kept)
    pairs = {name: np.concatenate(of) for name, of in (("unit", unit), ("stimulus", stimulus), ("local", local))}
    return NearMaximal(first.thresholds, first.firing, first.status, at_least, **pairs, fires=along)
