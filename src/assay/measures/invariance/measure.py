"""Invariance: how much more often than usual a layer's units fire on transforms of what drives them.

Goodfellow, Le, Saxe, Lee, Ng 2009, "Measuring invariances in deep networks".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from assay.core.errors import AssayError
from assay.measures.base import Measure, batch_size, require_batch_size
from assay.measures.evidence import Measured
from assay.measures.invariance.differences import score_of
from assay.measures.invariance.firing import SIGNS, Signs, near_count, top_count
from assay.measures.invariance.held_out import halves
from assay.measures.invariance.layer_scores import NOT_PER_STIMULUS, Asked, LayerScores
from assay.measures.invariance.passes import Passes, require_enough
from assay.measures.invariance.unit_responses import Units
from assay.measures.table import Predictor
from assay.stats.evidence import Evidence
from assay.stimuli.invariance_test import InvarianceTest
from assay.stimuli.pictures import strip
from assay.subject.layers import ALL, Layers
from assay.subject.stills import FRAMES, require_frames, visit_stills
from assay.subject.subject import Subject
from assay.subject.taking import showing

Array = np.ndarray[Any, Any]
_STIMULI_IN_PICTURE = 6
DECIDE = ("firing_rate", "top", "near_max", "signs", "units", "frames", "bootstrap", "seed")
"""Settings without which scores, or their resamples, cannot be compared."""


@dataclass(frozen=True)
class Invariance(Measure):
    """The firing-rate invariance score of every layer, for every transformation of a test.

    All layers are measured in one pass over the stimuli (a parametric test then shows their transforms). Units are
    scored as by `invariance_scores`; a layer's score is Inv_p, the mean of its best-scoring proportion ``top``.

    Table: one row per layer and transformation.

    - ``score`` is Inv_p, and ``n`` the units it is the mean of. ``held_out`` is what units so chosen on one half of the
      clips or pictures score on the other half (`held_out_score`), with its 95 % interval ``held_out_low``,
      ``held_out_high`` (bootstrap over units and blocks of stimuli) and the degrees of freedom ``df`` of that interval,
      0 where there is none. Of gratings, which are a whole grid, none are held out: it is the score, and its interval
      is over units. ``stimuli`` is how many were shown.
    - ``mean_score`` is Inv_1, the mean over all units that have a score, with ``mean_held_out`` and its interval
      likewise; ``p10`` … ``p90`` are the distribution of scores, ``negative`` is the share of units with sign −1, and
      ``largest`` the largest score there can be: 1/G, or less where a unit fires on fewer stimuli than the shortest
      trajectory has. ``on_trajectory`` is how many the longest has: 0 where transforms are made besides.
    - ``z`` is how many stimuli the score of a unit rests on (the median over units of |Z|), ``z_clips`` from how many
      blocks (scenes of a video, trajectories of gratings, pictures) they come, ``clips`` the blocks in the Z of any
      unit, and ``z_quantile`` the share of all stimuli that drive a unit at least as much as the last of its Z: above
      ``near_max`` times ``firing_rate``, Z is not what drives it most.
    - ``units`` is how many units the layer has, and the columns named as the statuses of `invariance_scores` how many
      of them had each. ``best_unit``, its ``best_score`` and ``pictures`` (PNG) show what drives the best unit most.

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
        seed: Seed of the random draws: of the halves, and of the bootstrap.
        batch_size: Number of stimuli per pass; by default 32 on a CPU and 256 on a GPU.
        frames: Number of frames for which a network of videos is shown each stimulus. The response to the first is
            dropped; each unit at each of the others counts as one.
        details: Whether the table also has, as arrays, the ``unit_score``, ``unit_sign``, ``unit_status``,
            ``unit_selectivity`` (lifetime sparseness) and ``unit_width`` (how far it is invariant) of every unit, and
            the firing rate at each of the ``magnitudes``, as a mean over the best units (``firing_by_magnitude``) and
            over all (``mean_firing_by_magnitude``). `per_unit` has the former, one row per unit.
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
    details: bool = False

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
        for test in self.test.parts():
            require_enough(test, self.firing_rate)
            with showing("invariance shows pictures"):
                stimulus = torch.from_numpy(next(test.batches(1)))
                visit_stills(subject, stimulus, lambda layer, output: None, self.layers, frames=self.frames)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show the stimuli of the test; one row per layer and transformation."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show the stimuli of the test; the table, and its scores in resamples of the stimuli and of the units."""
        rows, shown = [], []
        for labels, scores in self._scored(subject):
            row = (
                dict(NOT_PER_STIMULUS) if scores is None else scores.row(self._seed_of_units(subject, labels["layer"]))
            )
            rows.append(labels | row | (scores.details() if self.details and scores is not None else {}))
            none = np.zeros(0, dtype=np.int64)
            driving = none if scores is None else scores.driving(row["best_unit"], _STIMULI_IN_PICTURE)
            shown.append((self.test if scores is None else scores.asked.test, driving))
        measured = Measured.of(rows)
        how = {name: getattr(self, name) for name in DECIDE}
        return Measured(measured.table.assign(pictures=_pictures(shown)), measured.draws, self.test, how)

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The score of the last layer on held-out stimuli, for every transformation."""
        evidence = []
        table = measured.table.reset_index(drop=True)
        for name, rows in table.groupby("transformation", sort=False):
            score = score_of(measured, int(str(rows["order"].idxmax())))
            # With other settings the score is another number, of which reference networks know nothing.
            which = "last layer" if self.layers == ALL else "last of the layers chosen"
            at = "" if self.firing_rate == type(self).firing_rate else f", firing rate {self.firing_rate:g}"
            of = "" if self.top == type(self).top else f", p = {self.top:g}"
            evidence.append(replace(score, quantity=f"invariance to {name}, {which}{at}{of}"))
        return evidence

    def per_unit(self, subject: Subject) -> pd.DataFrame:
        """The scores of single units (see `invariance_scores`): one row per layer, transformation and unit.

        With ``details``, also their ``selectivity`` and ``width``.
        """
        frames = []
        for labels, scores in self._scored(subject):
            if scores is None:
                continue
            frame = pd.DataFrame(labels | {"unit": np.arange(len(scores.units))}).join(scores.units)
            if self.details:
                details = scores.details()
                frame = frame.assign(selectivity=details["unit_selectivity"], width=details["unit_width"])
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the score of the last layer and the mean over those that have one, for every transformation."""
        predictors = {}
        for name, rows in table.groupby("transformation", sort=False):
            scores = rows.sort_values("order")["score"]
            predictors[Predictor(f"{name} invariance of the last layer")] = float(scores.iloc[-1])
            predictors[Predictor(f"{name} invariance, mean of layers")] = float(scores.mean())
        return predictors

    # -- showing --------------------------------------------------------------------------------------

    def _scored(self, subject: Subject) -> Iterator[tuple[dict[str, Any], LayerScores | None]]:
        """The labels of each row of the table, and the scores of its units; None where the layer has no units."""
        with subject.showing():
            for test in self.test.parts():
                passes = Passes(
                    test,
                    subject,
                    self.layers,
                    batch_size(subject, self.batch_size),
                    firing_rate=self.firing_rate,
                    near_max=self.near_max,
                    signs=self.signs,
                    units=self.units,
                    halves=self._halves(test),
                    frames=self.frames,
                    details=self.details,
                )
                with showing("invariance shows pictures"):
                    passes.show()
                for transformation, near_by_layer in passes.near().items():
                    asked = Asked(test, transformation, self.top, self.bootstrap, self.seed)
                    scored = {
                        layer: LayerScores(passes.responses[layer], parts, asked)
                        for layer, parts in near_by_layer.items()
                    }
                    for order, layer in enumerate(passes.layers):
                        labels = {"layer": layer, "order": order, "test": test.name, "transformation": transformation}
                        yield labels, scored.get(passes.repeats.get(layer, layer))

    def _halves(self, test: InvarianceTest) -> Array | None:
        """The half that each stimulus is in; None where none is held out, or one is too small for the firing rate."""
        if not test.sampled:
            return None
        half = halves(test.blocks(test.transformations[0]), self.seed)
        return half if half is not None and self.firing_rate * np.bincount(half).min() >= 1 else None

    def _seed_of_units(self, subject: Subject, layer: str) -> tuple[int, ...]:
        """Seeds of the resamples of a layer's units: no two networks or layers have the same units."""
        return (
            self.seed,
            zlib.crc32(subject.name.encode("utf-8", "replace")),
            zlib.crc32(layer.encode("utf-8", "replace")),
        )


def _pictures(shown: Sequence[tuple[InvarianceTest, Array]]) -> list[bytes]:
    """A picture for each row of the stimuli that drive its best unit most; each stimulus is made or read once."""
    pictures: dict[int, dict[int, Array]] = {}
    for test in {id(test): test for test, _ in shown}.values():
        wanted = np.unique(np.concatenate([numbers for one, numbers in shown if one is test]))
        made = test.pictures(wanted) if len(wanted) else []
        pictures[id(test)] = dict(zip(wanted.tolist(), made, strict=True))
    return [strip([pictures[id(test)][n] for n in row.tolist()]) if len(row) else b"" for test, row in shown]
