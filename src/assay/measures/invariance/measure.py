"""Invariance: how much more often than usual a layer's units fire on transforms of what drives them.

Goodfellow, Le, Saxe, Lee, Ng 2009, "Measuring invariances in deep networks".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from assay.core.errors import AssayError
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import DRAWS, Measured
from assay.measures.invariance.firing import (
    SIGNS,
    SignedScores,
    Signs,
    choose_sign,
    firing_count,
    near_count,
    top_count,
    top_proportion_mean,
)
from assay.measures.invariance.passes import Passes
from assay.measures.invariance.unit_responses import NearMaximal, UnitResponses, Units
from assay.measures.table import Predictor
from assay.stats.bootstrap import crossed_picks, percentile_interval
from assay.stats.evidence import Evidence
from assay.stimuli.invariance_test import InvarianceTest
from assay.stimuli.pictures import strip
from assay.subject.layers import ALL, Layers
from assay.subject.stills import FRAMES, require_frames, visit_stills
from assay.subject.subject import Subject
from assay.subject.taking import showing

Array = np.ndarray[Any, Any]
STATUSES = ("ok", "tied", "constant", "sparse", "always on", "silent", "not finite")
_STIMULI_IN_PICTURE = 6


@dataclass(frozen=True)
class Invariance(Measure):
    """The firing-rate invariance score of every layer, for every transformation of a test.

    All layers are measured in one pass over the stimuli (a parametric test then shows their transforms). Units are
    scored as by `invariance_scores`; a layer's score is Inv_p, the mean of its best-scoring proportion ``top``.

    Table: one row per layer and transformation. ``score`` is Inv_p with a 95 % interval ``low``, ``high`` (bootstrap
    over units and stimuli), ``n`` the units it is the mean of, ``z`` how many stimuli the score of a unit rests on
    (the median over units of |Z|), ``mean_score`` the mean over all defined units and ``p10`` … ``p90`` their
    distribution, ``negative`` the share of units with sign −1. ``units`` is how many units the layer has, and the
    columns named as the statuses of `invariance_scores` how many of them had each. ``best_unit``, its ``best_score``
    and ``pictures`` (PNG) show the stimuli that drive the best unit most.
    ``status``: ``ok``, ``undefined`` (no unit has a score), ``not per stimulus`` (the layer's output does not have one
    entry per stimulus).

    Args:
        test: Stimuli to show and how they are transformed: `assay.stimuli.Gratings`, `NaturalVideo`, `ParametricTest`.
        layers: Layers to measure; all by default.
        firing_rate: The global firing rate G that thresholds are set for.
        top: The best-scoring proportion p of units that Inv_p averages.
        near_max: Number of stimuli in Z: a count, or a share of those on which the unit fires.
        signs: ``"choose"`` a sign for each unit, or ``"positive"`` for units trained to be sparse.
        units: Which units of a layer are scored: ``"all"``; ``"channels"`` (of each channel its largest response over
            positions); ``"centre"`` (of each channel the unit at the central position).
        bootstrap: Number of resamples for the intervals; 0 for none.
        seed: Seed of the bootstrap's random draws.
        batch_size: Number of stimuli per pass; by default 32 on a CPU and 256 on a GPU.
        frames: Number of frames for which a network of videos is shown each stimulus. The response to the first is
            dropped; each unit at each of the others counts as one.
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
    frames: int = FRAMES

    name: ClassVar[str] = "invariance"
    value: ClassVar[str] = "score"
    higher_is: ClassVar[str] = "more invariant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signs not in SIGNS:
            raise AssayError(f"signs={self.signs!r} is not 'choose' or 'positive'")
        if self.units not in ("all", "channels", "centre"):
            raise AssayError(f"units={self.units!r} is not 'all', 'channels' or 'centre'")
        if self.bootstrap < 0:
            raise AssayError(f"bootstrap={self.bootstrap} must be at least 0")
        require_batch_size(self.batch_size)
        require_frames(self.frames)
        top_count(1, self.top)
        near_count(self.near_max, np.ones(1, dtype=np.int64))

    def check(self, subject: Subject) -> None:
        """Check that there are enough stimuli, that the network takes one, and that the layers exist."""
        firing_count(len(self.test), self.firing_rate)
        with showing("invariance shows pictures"):
            stimulus = torch.from_numpy(next(self.test.batches(1)))
            visit_stills(subject, stimulus, lambda layer, output: None, self.layers, frames=self.frames)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the stimuli of the test; one row per layer and transformation."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show the stimuli of the test; the table, and its scores in resamples of the stimuli and of the units."""
        rng = np.random.default_rng(self.seed)
        rows, shown = [], []
        for labels, scores, pairs in self._scored(subject):
            rows.append(labels | self._row(scores, pairs, rng))
            driving = (
                np.zeros(0, dtype=np.int64) if pairs is None else pairs.stimulus[pairs.unit == rows[-1]["best_unit"]]
            )
            shown.append(driving[:_STIMULI_IN_PICTURE])
        measured = Measured.of(rows)
        return Measured(measured.table.assign(pictures=self._pictures(shown)), measured.draws)

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The invariance score of the last layer, for every transformation."""
        evidence = []
        table = measured.table.reset_index(drop=True)
        for name, rows in table[table["score"].notna()].groupby("transformation", sort=False):
            number = int(str(rows["order"].idxmax()))
            last = rows.loc[[number]]
            draws = measured.draws.get(number, np.zeros(0))
            quantity, score, n = f"invariance to {name}, last layer", float(last["score"].item()), int(last["n"].item())
            # Units are drawn too, and no two networks have the same: their resamples are not common.
            evidence.append(Evidence(quantity, score, "", "higher", draws=draws, n=n, common=False))
        return evidence

    def per_unit(self, subject: Subject) -> pd.DataFrame:
        """The scores of single units (see `invariance_scores`): one row per layer, transformation and unit."""
        frames = []
        for labels, scores, _ in self._scored(subject):
            if scores is not None:
                frames.append(pd.DataFrame(labels | {"unit": np.arange(len(scores))}).join(scores))
        return pd.concat(frames, ignore_index=True)

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the score of the last layer and the mean over layers, for every transformation."""
        predictors = {}
        for name, rows in table.groupby("transformation", sort=False):
            scores = rows.sort_values("order")["score"].dropna()
            predictors[Predictor(f"{name} invariance of the last layer")] = (
                float(scores.iloc[-1]) if len(scores) else float("nan")
            )
            predictors[Predictor(f"{name} invariance, mean of layers")] = float(scores.mean())
        return predictors

    # -- showing --------------------------------------------------------------------------------------

    def _scored(self, subject: Subject) -> Iterator[tuple[dict[str, Any], pd.DataFrame | None, NearMaximal | None]]:
        """The labels of each row of the table, the scores of its units, and Z of their chosen signs."""
        with subject.showing():
            passes = Passes(
                self.test,
                subject,
                self.layers,
                batch_size(subject, self.batch_size),
                firing_rate=self.firing_rate,
                near_max=self.near_max,
                signs=self.signs,
                units=self.units,
                frames=self.frames,
            )
            with showing("invariance shows pictures"):
                passes.show()
            for transformation, near_by_layer in passes.near().items():
                scored = {layer: _scores(passes.responses[layer], nears) for layer, nears in near_by_layer.items()}
                for order, layer in enumerate(passes.layers):
                    labels = {"layer": layer, "order": order, "test": self.test.name, "transformation": transformation}
                    yield labels, *scored.get(passes.repeats.get(layer, layer), (None, None))

    # -- rows -----------------------------------------------------------------------------------------

    def _row(self, scores: pd.DataFrame | None, pairs: NearMaximal | None, rng: np.random.Generator) -> dict[str, Any]:
        if scores is None or pairs is None:
            empty = dict.fromkeys(("score", "low", "high", "mean_score", "p10", "p25", "p50", "p75", "p90"), np.nan)
            counts = {_column(status): 0 for status in STATUSES}
            none = {"best_unit": -1, "best_score": np.nan, "status": "not per stimulus"}
            return empty | {"n": 0, "z": 0.0, "negative": np.nan, "units": 0} | counts | none
        values = scores["score"].to_numpy()
        defined = values[np.isfinite(values)]
        draws = self._draws(scores, pairs, rng)
        low, high = percentile_interval(draws[np.isfinite(draws)])
        quantiles = np.quantile(defined, (0.1, 0.25, 0.5, 0.75, 0.9)) if len(defined) else [np.nan] * 5
        best = int(np.nanargmax(values)) if len(defined) else -1
        return {
            "score": top_proportion_mean(values, self.top),
            "low": float(low),
            "high": float(high),
            "n": top_count(len(defined), self.top),
            "z": float(np.median(np.unique_counts(pairs.unit).counts)) if len(pairs.unit) else 0.0,
            "mean_score": float(defined.mean()) if len(defined) else np.nan,
            **dict(zip(("p10", "p25", "p50", "p75", "p90"), map(float, quantiles), strict=True)),
            "negative": float((scores["sign"] == -1).sum() / len(defined)) if len(defined) else np.nan,
            "units": len(values),
            **{_column(status): int((scores["status"] == status).sum()) for status in STATUSES},
            "best_unit": best,
            "best_score": float(values[best]) if best >= 0 else np.nan,
            "status": "ok" if len(defined) else "undefined",
            DRAWS: draws,
        }

    def _draws(self, scores: pd.DataFrame, pairs: NearMaximal, rng: np.random.Generator) -> Array:
        """Inv_p in every resample: stimuli (the same draw for all units) and units are drawn anew.

        Thresholds stay as they are. A unit none of whose Z is drawn is left out of that resample. Stimuli that belong
        together (the frames of a clip) are drawn together.
        """
        defined = np.flatnonzero(np.isfinite(scores["score"]))
        if not self.bootstrap or len(defined) < 2:
            return np.zeros(0)
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
        return means

    def _pictures(self, shown: list[Array]) -> list[bytes]:
        """A picture for each row of the stimuli that drive its best unit most; each stimulus is made or read once."""
        wanted = np.unique(np.concatenate(shown))
        pictures = self.test.pictures(wanted) if len(wanted) else []
        by_number = dict(zip(wanted.tolist(), pictures, strict=True))
        return [strip([by_number[n] for n in row.tolist()]) if len(row) else b"" for row in shown]


def _scores(responses: UnitResponses, nears: dict[int, NearMaximal]) -> tuple[pd.DataFrame, NearMaximal]:
    """The scores of a layer's units, and Z of the sign chosen for each."""
    signed = [
        SignedScores(sign, near.thresholds, near.firing / responses.n, _mean_local(near), near.status)
        for sign, near in nears.items()
    ]
    scores = choose_sign(signed, responses.asked / responses.n, responses.finite)
    return scores, _chosen(scores, nears)


def _mean_local(near: NearMaximal) -> Array:
    """The local rate L of each unit: the mean over its Z."""
    count = np.bincount(near.unit, minlength=len(near.status))
    total = np.bincount(near.unit, near.local, minlength=len(near.status))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def _chosen(scores: pd.DataFrame, nears: dict[int, NearMaximal]) -> NearMaximal:
    """Z of all units, each with the sign chosen for it."""
    parts = []
    for sign, near in nears.items():
        in_chosen_sign = (scores["sign"].to_numpy() == sign)[near.unit]
        parts.append((near.unit[in_chosen_sign], near.stimulus[in_chosen_sign], near.local[in_chosen_sign]))
    unit, stimulus, local = (np.concatenate(p) for p in zip(*parts, strict=True))
    first = next(iter(nears.values()))
    return NearMaximal(first.thresholds, first.firing, first.status, unit, stimulus, local)


def _column(status: str) -> str:
    return status.replace(" ", "_")
