"""Scores of RDMs against people on two scales, to the mean person and to single people, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.measures.similarity.ceiling import NoiseCeiling, noise_ceiling
from assay.measures.similarity.compare import compare_rdms
from assay.measures.similarity.inference import RdmBootstrap, bootstrap_rdms
from assay.measures.table import NAN
from assay.stimuli.human import HumanStimuli

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Score:
    """A number with the ends of its 95 % interval, and its value in resamples where there are any."""

    value: float = NAN
    low: float = NAN
    high: float = NAN
    draws: Array | None = None


@dataclass(frozen=True)
class HumanScores:
    """How similar models are to people.

    Attributes:
        to_mean: The similarity of each model to the mean RDM of people; resampled over stimuli.
        to_people: The mean similarity of each model to single people; resampled over stimuli and people, or over
            stimuli alone where there is one person.
        ceiling: The lower and the upper bound of the noise ceiling, on the scale of ``to_people`` and resampled alike;
            empty for one person.
    """

    to_mean: tuple[Score, ...]
    to_people: tuple[Score, ...]
    ceiling: tuple[Score, ...]


def score_rdms(models: Sequence[Array], humans: HumanStimuli, method: str, draws: int, seed: int) -> HumanScores:
    """Score models' RDMs against people's, on both scales.

    Args:
        models: The upper triangles of the models' RDMs, each defined and not constant.
        humans: The RDMs of people.
        method: The method of comparison, as in `compare_rdms`.
        draws: Number of resamples for the intervals; 0 for none.
        seed: Seed of the resamples: equal for equal seeds, whatever the models are.
    """
    people = humans.by_subject.vectors
    several = len(people) > 1
    scored = np.stack(models)
    if not draws:
        to_mean = compare_rdms(scored, humans.mean, method)
        to_people = compare_rdms(scored, people, method).mean(axis=1)
        bounds = noise_ceiling(people, method) if several else ()
        return HumanScores(*(tuple(Score(float(x)) for x in values) for values in (to_mean, to_people, bounds)))
    mean = bootstrap_rdms(scored, humans.mean, method, resample="stimuli", draws=draws, seed=seed, ceiling=False)
    both = bootstrap_rdms(
        scored, people, method, resample="both" if several else "stimuli", draws=draws, seed=seed, ceiling=several
    )
    return HumanScores(_scores(mean), _scores(both), _bounds(both))


def _scores(bootstrap: RdmBootstrap) -> tuple[Score, ...]:
    table = bootstrap.table()
    return tuple(
        Score(float(value), float(low), float(high), drawn)
        for value, low, high, drawn in zip(table["value"], table["low"], table["high"], bootstrap.draws.T, strict=True)
    )


def _bounds(bootstrap: RdmBootstrap) -> tuple[Score, ...]:
    if not isinstance(bootstrap.ceiling, NoiseCeiling):
        return ()
    intervals = bootstrap.ceiling_intervals()
    return tuple(
        Score(float(value), *interval, drawn)
        for value, interval, drawn in zip(bootstrap.ceiling, intervals, bootstrap.ceiling_draws.T, strict=True)
    )
