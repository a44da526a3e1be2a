"""Invariance: how much more often than usual a layer's units fire on transforms of what drives them.

Goodfellow, Le, Saxe, Lee, Ng 2009, "Measuring invariances in deep networks".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.progress import report
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.invariance.firing import (
    SCORED,
    SIGNS,
    SLACK,
    SignedScores,
    Signs,
    choose_sign,
    firing_count,
    near_count,
    top_count,
    top_proportion_mean,
)
from assay.measures.invariance.passes import Driven, Near, near_from_responses, replace_units
from assay.stats.bootstrap import crossed_picks, percentile_interval
from assay.stimuli.invariance_test import ClosedTest, InvarianceTest, OpenTest
from assay.stimuli.pictures import strip
from assay.subject.layers import ALL, Layers
from assay.subject.subject import Subject

Array = np.ndarray[Any, Any]
Units = Literal["all", "channels", "centre"]
STATUSES = ("ok", "tied", "constant", "sparse", "always on", "silent", "not finite")
_LOOK_AGAIN = 1 << 27  # responses of units with many ties kept at a time
_SHOWN = 6  # stimuli in a picture


@dataclass(frozen=True)
class Invariance(Measure):
    """The firing-rate invariance score of every layer, for every transformation of a test.

    All layers are measured in one pass over the stimuli (a parametric test then shows their transforms). Units are
    scored as by `invariance_scores`; a layer's score is Inv_p, the mean of its best-scoring proportion ``top``.

    Table: one row per layer and transformation. ``score`` is Inv_p with a 95 % interval ``low``, ``high`` (bootstrap
    over units and stimuli), ``n`` the units it is the mean of, ``mean_score`` the mean over all defined units and
    ``p10`` … ``p90`` their distribution, ``negative`` the share of units with sign −1. ``units`` is how many units the
    layer has, and the columns named as the statuses of `invariance_scores` how many of them had each. ``best_unit``,
    its ``best_score`` and ``pictures`` (PNG) show the stimuli that drive the best unit most.
    ``status``: ``ok``, ``undefined`` (no unit has a score), ``not per stimulus`` (the layer's output does not have one
    entry per stimulus).

    Args:
        test: What to show and how it is transformed: `assay.stimuli.Gratings`, `NaturalVideo`, `ParametricTest`.
        layers: Which layers; all by default.
        firing_rate: Global firing rate G.
        top: The proportion p of Inv_p.
        near_max: How many stimuli make Z: a count, or a share of those on which the unit fires.
        signs: ``"choose"``, or ``"positive"`` for units trained to be sparse.
        units: ``"all"``; ``"channels"`` (of each channel its largest response over positions); ``"centre"`` (of each
            channel the unit at the central position).
        bootstrap: Resamples for the intervals; 0 for none.
        seed: Of the bootstrap.
        batch_size: Stimuli per forward pass; by default 32 on a CPU and 256 on a GPU.
    """

    test: InvarianceTest
    layers: Layers = ALL
    firing_rate: float = 0.01
    top: float = 0.2
    near_max: int | float = 0.1
    signs: Signs = "choose"
    units: Units = "all"
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "invariance"
    value: ClassVar[str] = "score"

    def __post_init__(self) -> None:
        if self.signs not in SIGNS:
            raise AssayError(f"signs={self.signs!r} is not 'choose' or 'positive'")
        if self.units not in ("all", "channels", "centre"):
            raise AssayError(f"units={self.units!r} is not 'all', 'channels' or 'centre'")
        if self.bootstrap < 0:
            raise AssayError(f"bootstrap={self.bootstrap} must be at least 0")
        require_batch_size(self.batch_size)
        top_count(1, self.top)
        near_count(self.near_max, np.ones(1, dtype=np.int64))

    def check(self, subject: Subject) -> None:
        """There are enough stimuli, the network sees one, and the layers exist."""
        firing_count(len(self.test), self.firing_rate)
        subject.visit(torch.from_numpy(next(self.test.batches(1))), lambda layer, output: None, self.layers)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the test once; one row per layer and transformation."""
        rng = np.random.default_rng(self.seed)
        rows, shown = [], []
        for labels, scores, pairs in self._scored(subject):
            rows.append(labels | self._row(scores, pairs, rng))
            driving = (
                np.zeros(0, dtype=np.int64) if pairs is None else pairs.stimulus[pairs.unit == rows[-1]["best_unit"]]
            )
            shown.append(driving[:_SHOWN])
        return pd.DataFrame(rows).assign(pictures=self._pictures(shown))

    def per_unit(self, subject: Subject) -> pd.DataFrame:
        """One row per layer, transformation and unit: the columns of `invariance_scores`."""
        frames = []
        for labels, scores, _ in self._scored(subject):
            if scores is not None:
                frames.append(pd.DataFrame(labels | {"unit": np.arange(len(scores))}).join(scores))
        return pd.concat(frames, ignore_index=True)

    def predictors(self, table: pd.DataFrame) -> dict[str, float]:
        """For every transformation the score of the last layer and the mean over layers."""
        found = {}
        for name, rows in table.groupby("transformation", sort=False):
            scores = rows.sort_values("order")["score"].dropna()
            found[f"{name} invariance of the last layer"] = float(scores.iloc[-1]) if len(scores) else float("nan")
            found[f"{name} invariance, mean of layers"] = float(scores.mean())
        return found

    # -- showing --------------------------------------------------------------------------------------

    def _scored(self, subject: Subject) -> Iterator[tuple[dict[str, Any], pd.DataFrame | None, Near | None]]:
        """Per layer and transformation, named: the scores of its units, and Z with local rates of the chosen signs."""
        with subject.showing():
            stream = _Stream(self, subject)
            stream.show()
            for transformation, found in stream.near().items():
                scored = {layer: _scores(stream.driven[layer], nears) for layer, nears in found.items()}
                for order, layer in enumerate(stream.layers):
                    labels = {"layer": layer, "order": order, "test": self.test.name, "transformation": transformation}
                    yield labels, *scored.get(stream.repeats.get(layer, layer), (None, None))

    # -- rows -----------------------------------------------------------------------------------------

    def _row(self, scores: pd.DataFrame | None, pairs: Near | None, rng: np.random.Generator) -> dict[str, Any]:
        if scores is None or pairs is None:
            empty = dict.fromkeys(("score", "low", "high", "mean_score", "p10", "p25", "p50", "p75", "p90"), np.nan)
            counts = {_column(status): 0 for status in STATUSES}
            none = {"best_unit": -1, "best_score": np.nan, "status": "not per stimulus"}
            return empty | {"n": 0, "negative": np.nan, "units": 0} | counts | none
        values = scores["score"].to_numpy()
        defined = values[np.isfinite(values)]
        low, high = self._interval(scores, pairs, rng)
        quantiles = np.quantile(defined, (0.1, 0.25, 0.5, 0.75, 0.9)) if len(defined) else [np.nan] * 5
        best = int(np.nanargmax(values)) if len(defined) else -1
        return {
            "score": top_proportion_mean(values, self.top),
            "low": low,
            "high": high,
            "n": top_count(len(defined), self.top),
            "mean_score": float(defined.mean()) if len(defined) else np.nan,
            **dict(zip(("p10", "p25", "p50", "p75", "p90"), map(float, quantiles), strict=True)),
            "negative": float((scores["sign"] == -1).sum() / len(defined)) if len(defined) else np.nan,
            "units": len(values),
            **{_column(status): int((scores["status"] == status).sum()) for status in STATUSES},
            "best_unit": best,
            "best_score": float(values[best]) if best >= 0 else np.nan,
            "status": "ok" if len(defined) else "undefined",
        }

    def _interval(self, scores: pd.DataFrame, pairs: Near, rng: np.random.Generator) -> tuple[float, float]:
        """95 % bootstrap interval of Inv_p: stimuli (the same draw for all units) and units are drawn anew.

        Thresholds stay as they are. A unit none of whose Z is drawn is left out of that resample. Stimuli that belong
        together (the frames of a clip) are drawn together.
        """
        defined = np.flatnonzero(np.isfinite(scores["score"]))
        if not self.bootstrap or len(defined) < 2:
            return np.nan, np.nan
        order = np.argsort(pairs.unit, kind="stable")
        stimulus, local = pairs.stimulus[order], pairs.local[order]
        starts = np.flatnonzero(np.diff(pairs.unit[order], prepend=-1))  # one run of pairs for each defined unit
        rate = scores["global_rate"].to_numpy()[defined]
        blocks, units = self.test.blocks(), len(defined)
        block = stimulus if blocks is None else blocks[stimulus]
        n = len(self.test) if blocks is None else int(blocks.max()) + 1
        means = np.empty(self.bootstrap)
        for b, (blocks_drawn, units_drawn) in enumerate(crossed_picks((n, units), self.bootstrap, rng)):
            weight = np.bincount(blocks_drawn, minlength=n).astype(np.float64)[block]
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn = np.add.reduceat(weight * local, starts) / (np.add.reduceat(weight, starts) * rate)
            means[b] = top_proportion_mean(drawn[units_drawn], self.top)
        low, high = percentile_interval(means[np.isfinite(means)])
        return float(low), float(high)

    def _pictures(self, shown: list[Array]) -> list[bytes]:
        """For each row the stimuli that drive its best unit most; they are made or read once for all rows."""
        wanted = np.unique(np.concatenate(shown))
        pictures = self.test.pictures(wanted) if len(wanted) else []
        by_number = dict(zip(wanted.tolist(), pictures, strict=True))
        return [strip([by_number[n] for n in row.tolist()]) if len(row) else b"" for row in shown]


class _Stream:
    """One pass of a test through a subject, and what is needed beyond it."""

    def __init__(self, measure: Invariance, subject: Subject) -> None:
        self.measure, self.subject, self.test = measure, subject, measure.test
        self.size = batch_size(subject, measure.batch_size)
        self.driven: dict[str, Driven] = {}
        self.layers: list[str] = []
        self.repeats: dict[str, str] = {}
        self._not_per_stimulus: set[str] = set()
        firing_count(len(self.test), measure.firing_rate)

    def show(self) -> None:
        """Show all stimuli; every layer keeps what drives it."""
        n, measure = len(self.test), self.measure
        shown = 0
        for batch in self._batches():

            def visit(layer: str, output: Tensor, count: int = len(batch)) -> None:
                if self._fits(layer, output, count):
                    if layer not in self.driven:
                        self.driven[layer] = Driven(n, measure.firing_rate, measure.signs)
                    self.driven[layer].extend(self._responses(output))

            self.subject.visit(batch, visit, measure.layers, repeats=False)
            shown += len(batch)
            report(f"{self.subject.name}: stimuli", shown, n)
        self.layers = self.subject.choose(measure.layers)
        self.repeats = self.subject.repeats(measure.layers)

    def near(self) -> dict[str, dict[str, dict[int, Near]]]:
        """Per transformation, layer and sign: Z of all units, with local rates."""
        asked = {transformation: _Asked(self.test, transformation) for transformation in self.test.transformations}
        found = {
            t: {layer: self._from_kept(driven, a) for layer, driven in self.driven.items()} for t, a in asked.items()
        }
        again = {layer: np.flatnonzero(np.any([found[t][layer][1] for t in asked], axis=0)) for layer in self.driven}
        nears = {t: {layer: by_sign for layer, (by_sign, _) in layers.items()} for t, layers in found.items()}
        for layer, units, responses in self._look_again(again):
            for t, a in asked.items():
                mine = found[t][layer][1][units]
                for sign in nears[t][layer]:
                    more = near_from_responses(
                        responses[:, mine], sign, self.measure.firing_rate, self.measure.near_max, a.eligible, a.table
                    )
                    nears[t][layer][sign] = replace_units(nears[t][layer][sign], units[mine], more)
        if isinstance(self.test, OpenTest):
            for t, layers in nears.items():
                self._show_transforms(self.test, t, layers)
        return nears

    def _from_kept(self, driven: Driven, asked: _Asked) -> tuple[dict[int, Near], Array]:
        """By sign what the largest responses tell, and which units they tell too little of."""
        nears: dict[int, Near] = {}
        unknown = np.zeros(len(driven.finite), dtype=bool)
        met = np.zeros_like(unknown)
        for sign in driven.signs:
            near, beyond = driven.near(sign, self.measure.near_max, asked.eligible)
            if asked.table is not None:
                near = replace(near, local=driven.local_rates(sign, near, asked.table))
            nears[sign] = near
            unknown |= beyond
            met |= np.isin(near.status, SCORED) & (near.firing <= (1 + SLACK) * driven.asked)
        return nears, unknown & ~met & driven.finite

    def _batches(self) -> Iterator[Tensor]:
        for batch in self.test.batches(self.size):
            yield torch.from_numpy(batch).to(self.subject.device)

    def _fits(self, layer: str, output: Tensor, count: int) -> bool:
        if self.subject.is_per_sample(layer) and len(output) == count and layer not in self._not_per_stimulus:
            return True
        if layer in self.driven:
            raise AssayError(f"layer {layer!r} of {self.subject.name!r} has not one entry per stimulus in every batch")
        self._not_per_stimulus.add(layer)
        return False

    def _responses(self, output: Tensor) -> Tensor:
        """The layer's output as stimuli × units."""
        x = torch.view_as_real(output) if output.is_complex() else output
        if not x.is_floating_point():
            x = x.float()
        if x.dim() > 2 and self.measure.units == "channels":
            x = x.flatten(2).amax(2)
        elif x.dim() > 2 and self.measure.units == "centre":
            for axis in range(x.dim() - 1, 1, -1):
                x = x.select(axis, x.shape[axis] // 2)
        return x.reshape(len(x), -1)

    def _look_again(self, wanted: dict[str, Array]) -> Iterator[tuple[str, Array, Array]]:
        """All responses of units whose ties are many, layer by layer, a bounded number of units at a time."""
        step = max(_LOOK_AGAIN // len(self.test), 1)
        portions = [(layer, u) for layer, units in wanted.items() for u in _portions(units, step)]
        while portions:
            now: dict[str, Array] = {}
            while portions and portions[0][0] not in now and sum(map(len, now.values())) < step:
                layer, units = portions.pop(0)
                now[layer] = units
            held: dict[str, list[Array]] = {layer: [] for layer in now}

            def visit(layer: str, output: Tensor, now: Any = now, held: Any = held) -> None:
                columns = torch.from_numpy(now[layer]).to(output.device)
                picked = self._responses(output).index_select(1, columns)
                held[layer].append((picked if picked.dtype == torch.float64 else picked.float()).cpu().numpy())

            for batch in self._batches():
                self.subject.visit(batch, visit, list(now))
            for layer, units in now.items():
                yield layer, units, np.concatenate(held[layer])

    def _show_transforms(self, test: OpenTest, transformation: str, found: dict[str, dict[int, Near]]) -> None:
        """Show the stimuli that drive any unit at all magnitudes, and see whether the units go on firing."""
        shown = [near.stimulus for nears in found.values() for near in nears.values()]
        wanted = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *shown]))
        if not len(wanted):
            return
        lookups = {layer: [_Lookup(s, near, wanted) for s, near in nears.items()] for layer, nears in found.items()}
        one = torch.from_numpy(test.pictures(wanted[:1])).to(self.subject.device)
        magnitudes = test.trajectory(transformation, one).shape[1]
        step = max(self.size // magnitudes, 1)
        for start in range(0, len(wanted), step):
            stimuli = torch.from_numpy(test.pictures(wanted[start : start + step])).to(self.subject.device)

            def visit(layer: str, output: Tensor, first: int = start) -> None:
                responses = self._responses(output)
                for lookup in lookups[layer]:
                    lookup.count(responses, first, magnitudes)

            self.subject.visit(test.trajectory(transformation, stimuli).flatten(0, 1), visit, list(lookups))
            report(f"{self.subject.name}: {transformation}", min(start + step, len(wanted)), len(wanted))
        for layer, by_sign in lookups.items():
            for lookup in by_sign:
                found[layer][lookup.sign] = replace(found[layer][lookup.sign], local=lookup.locals())


class _Asked:
    """What one transformation asks of the stimuli: which may be in Z, and their trajectories if they are known."""

    def __init__(self, test: InvarianceTest, transformation: str) -> None:
        self.table = test.trajectories(transformation) if isinstance(test, ClosedTest) else None
        among = test.among(transformation) if isinstance(test, ClosedTest) else None
        self.eligible = np.isin(np.arange(len(test)), among) if among is not None else np.ones(len(test), dtype=bool)


class _Lookup:
    """The pairs (unit, z) of a layer and sign in the order of z, and how often the unit fires on transforms of z."""

    def __init__(self, sign: int, near: Near, shown: Array) -> None:
        self.sign = sign
        place = np.searchsorted(shown, near.stimulus)
        self.order = np.argsort(place, kind="stable")
        self.place, self.unit = place[self.order], near.unit[self.order]
        self.limit = torch.from_numpy(sign * near.thresholds[self.unit])
        self.fired = torch.zeros(len(place), dtype=torch.int64)
        self.magnitudes = 0

    def begin(self, responses: Tensor, magnitudes: int) -> None:
        """Where in a flat table of all responses those of each pair are."""
        device, units = responses.device, responses.shape[1]
        self.magnitudes, self.row = magnitudes, magnitudes * units
        self.column = torch.from_numpy(self.place * self.row + self.unit).to(device)
        self.step = units * torch.arange(magnitudes, device=device)[:, None]
        self.limit = self.limit.to(responses)  # thresholds are responses: nothing is lost
        self.fired = self.fired.to(device)

    def count(self, responses: Tensor, first: int, magnitudes: int) -> None:
        """Responses to all magnitudes of the stimulus at place ``first``, then of the next, …"""
        if not self.magnitudes:
            self.begin(responses, magnitudes)
        low, high = self.place.searchsorted((first, first + len(responses) // magnitudes)).tolist()
        if low == high:
            return
        # Magnitudes first: along a row of responses the memory is read in order.
        places = self.column[low:high] - first * self.row + self.step
        values = responses.reshape(-1).index_select(0, places.reshape(-1)).view_as(places)  # twice as fast as take
        limit = self.limit[low:high]
        torch.sum(values > limit if self.sign > 0 else values < limit, 0, out=self.fired[low:high])

    def locals(self) -> Array:
        """Local rates in the order of the pairs given."""
        back = np.empty(len(self.order))
        back[self.order] = self.fired.cpu().numpy() / max(self.magnitudes, 1)
        return back


def _scores(driven: Driven, nears: dict[int, Near]) -> tuple[pd.DataFrame, Near]:
    """The scores of a layer's units, and the pairs of their chosen signs."""
    signed = [
        SignedScores(sign, near.thresholds, near.firing / driven.n, _mean_local(near), near.status)
        for sign, near in nears.items()
    ]
    scores = choose_sign(signed, driven.asked / driven.n, driven.finite)
    return scores, _chosen(scores, nears)


def _portions(units: Array, step: int) -> list[Array]:
    return [units[i : i + step] for i in range(0, len(units), step)]


def _mean_local(near: Near) -> Array:
    """L per unit."""
    count = np.bincount(near.unit, minlength=len(near.status))
    total = np.bincount(near.unit, near.local, minlength=len(near.status))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def _chosen(scores: pd.DataFrame, nears: dict[int, Near]) -> Near:
    """The pairs of each unit's chosen sign."""
    parts = []
    for sign, near in nears.items():
        mine = (scores["sign"].to_numpy() == sign)[near.unit]
        parts.append((near.unit[mine], near.stimulus[mine], near.local[mine]))
    unit, stimulus, local = (np.concatenate(p) for p in zip(*parts, strict=True))
    some = next(iter(nears.values()))
    return Near(some.thresholds, some.firing, some.status, unit, stimulus, local)


def _column(status: str) -> str:
    return status.replace(" ", "_")
