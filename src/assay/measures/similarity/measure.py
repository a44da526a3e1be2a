"""Human-model similarity (HMS): how alike the dissimilarities of a network and of people's brains are.

Kriegeskorte, Mur & Bandettini 2008; Blanchard, Kinnison, RichardWebster, Bashivan & Scheirer 2019 (HMS).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from assay.core.arrays import as_tensor
from assay.core.errors import AssayError
from assay.core.ties import mean_with_ties
from assay.measures.base import Measure, require_batch_size
from assay.measures.evidence import DRAWS, Measured
from assay.measures.similarity.baselines import baseline_rdms
from assay.measures.similarity.compare import compare_rdms, method_named
from assay.measures.similarity.inference import require_resampled
from assay.measures.similarity.layers import TOGETHER, LayerRdm, layer_rdms
from assay.measures.similarity.rdm import RunningRdm
from assay.measures.similarity.scores import Score, score_rdms
from assay.measures.table import NAN, Predictor, require_sample
from assay.stats.evidence import Evidence
from assay.stats.ranks import ranks
from assay.stimuli.human import HumanStimuli
from assay.stimuli.rdm_pictures import rdm_as_png, strip_of_thumbnails
from assay.stimuli.rdms import RdmSet, as_vectors
from assay.subject.layers import ALL, Layers
from assay.subject.stills import FRAMES, require_frames, visit_stills
from assay.subject.subject import Subject
from assay.subject.taking import showing

Array = np.ndarray[Any, Any]
LAYER, BASELINE, CEILING, PEOPLE = "layer", "baseline", "ceiling", "people"
"""The kinds of rows; that of all layers together is of the kind ``all``."""
BOUNDS = ("lower bound", "upper bound")


def human_similarity(rdm: Any, human_rdms: Any, method: str = "spearman") -> Any:
    """Human-model similarity: the similarity of a model's RDM to the mean of people's RDMs.

    HMS = Spearman's ρ of the m(m−1)/2 dissimilarities of the model and the mean dissimilarities over people, with
    mid-ranks for ties.

    It is on another scale than a noise ceiling, which is an average over single people: set
    ``compare_rdms(rdm, human_rdms).mean()`` against that.

    Args:
        rdm: The RDM of a model, or several, in any form that `compare_rdms` takes.
        human_rdms: The RDMs of people, one each or several (sessions), of the same stimuli in the same order; or
            `stimuli.HumanStimuli`, in whose mean every person counts the same.
        method: The method of comparison, as in `compare_rdms`.

    Returns:
        A float for one RDM, an array for several.

    Example:
        >>> round(human_similarity([1, 2, 3, 4, 5, 6], [[1, 3, 2, 4, 6, 5], [2, 1, 3, 4, 5, 7]]), 6)
        1.0
        >>> from assay.measures.similarity.compare import compare_rdms
        >>> compare_rdms([1, 2, 3, 4, 5, 6], [[1, 3, 2, 4, 6, 5], [2, 1, 3, 4, 5, 7]]).round(4).tolist()   # one by one
        [0.8857, 0.9429]

    Blanchard et al. 2019.
    """
    if isinstance(human_rdms, HumanStimuli):
        human_rdms = human_rdms.by_subject
    mean = mean_with_ties(as_vectors(human_rdms, "human_rdms"))
    stimuli = getattr(human_rdms, "stimuli", ())
    if not stimuli:
        return compare_rdms(rdm, mean, method)
    similarity = np.asarray(compare_rdms(rdm, RdmSet(mean, (), stimuli), method))[..., 0]
    return similarity if similarity.ndim else float(similarity)


@dataclass(frozen=True)
class HumanSimilarity(Measure):
    """How similar the RDMs of each layer, and of all layers together, are to those of people who saw the same images.

    Two scales, in columns of their own. ``hms`` is the similarity to the *mean* RDM of people (the human-model
    similarity of the literature), with ``low`` and ``high``, its 95 % interval over other images (bootstrap over
    images). ``subject_mean`` is the mean similarity to the RDMs of *single* people, with ``subject_low`` and
    ``subject_high``, its 95 % interval over other images and other people (bootstrap over both; over images alone where
    there is one person). Only ``subject_mean`` may be set against the noise ceiling. Intervals are value ± t·(standard
    error).

    Table: one row per layer (``kind`` is ``layer``); one for the features of all layers concatenated (``kind`` and
    ``layer`` are ``all``); one per baseline (``baseline``: pixels, grey pixels, a model of retina and V1, categories);
    the two bounds of the noise ceiling (``ceiling``; pooled as `noise_ceiling` does by default, on ranks for
    Spearman), which have a ``subject_mean`` only; and one for the mean RDM of people itself (``people``), which is
    there to be drawn and has no score. ``order`` numbers the rows, layers from input to output first. For drawing,
    ``rdm`` is the RDM as a grey picture of percentiles (PNG), and ``thumbnails``, in the row of people, the images
    (at most 200 of them). ``features`` is the number of features of a layer, 0 in all other rows (a baseline is no
    layer), ``n`` the number of images, ``people`` that of people. ``status``: ``ok``, ``not per image``, ``not
    finite``, ``constant for K of M images`` (the correlation with a constant response is undefined) or ``the same
    for all pairs``.

    Args:
        stimuli: The images and the RDMs of people who saw them: `stimuli.HumanStimuli`, the 92-image set
            (`stimuli.load_brain92`) or its folder, or images and RDMs in a tuple.
        layers: Layers to measure; all by default. The paper's PredNet takes ``R*``.
        metric: Dissimilarity of two responses: ``correlation``, ``euclidean`` or ``cosine``.
        method: Method of comparison, as in `compare_rdms`.
        frames: Number of time steps for which each image is shown to a network of video; the first is left out, the
            others are concatenated.
        bootstrap: Number of resamples for the intervals, which take four images or more; 0 for none.
        seed: Seed of the resamples.
        batch_size: Number of images at once. By default all, up to 256 (1024 on a GPU); of more images, or fewer at
            once, every two groups are shown together, which takes more passes and gives the same.

    Example:
        >>> from torch import nn
        >>> draw = np.random.default_rng(0)
        >>> images = draw.random((6, 1, 8, 8), dtype=np.float32)
        >>> people = draw.random((3, 15))
        >>> measure = HumanSimilarity((images, people), bootstrap=0)
        >>> table = measure(Subject(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), "small"))
        >>> table[["kind", "layer", "features"]].to_numpy().tolist()[:4]
        [['layer', '0', 72], ['layer', '1', 72], ['all', 'all', 144], ['baseline', 'pixels', 0]]
    """

    stimuli: HumanStimuli
    layers: Layers = ALL
    metric: str = "correlation"
    method: str = "spearman"
    frames: int = FRAMES
    bootstrap: int = 200
    seed: int = 0
    batch_size: int | None = None

    name: ClassVar[str] = "human-similarity"
    value: ClassVar[str] = "hms"
    higher_is: ClassVar[str] = "more like the people"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch_size(self.batch_size)
        if self.batch_size == 1:
            raise AssayError("batch_size=1: an entry of an RDM takes two images at once; give 2 or more")
        require_sample(None, self.bootstrap)
        if self.bootstrap == 1:
            raise AssayError("bootstrap=1: an interval takes two resamples or more; give 200, or 0 for none")
        if self.bootstrap:
            require_resampled(len(self.stimuli), f"bootstrap={self.bootstrap}", "bootstrap=0, or more images")
        RunningRdm(self.metric)  # which refuses a metric that has no running sum
        method = method_named(self.method)
        if method.startswith("whitened") and self.bootstrap:
            raise AssayError(
                f"method={self.method!r} is not defined for resamples of images: give bootstrap=0, or method='cosine'"
            )
        require_frames(self.frames)

    def check(self, subject: Subject) -> None:
        """Check that the network takes an image, and has the layers."""
        first = as_tensor(self.stimuli.images.array[:1])
        with showing("human similarity shows images"):
            visit_stills(subject, first, lambda layer, output: None, self.layers, frames=self.frames)

    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Show all images once; one row per layer, for all layers together, per baseline and bound of the ceiling."""
        return self.measured(subject).table

    def measured(self, subject: Subject) -> Measured:
        """Show all images once; the table, and the human-model similarities in resamples of the images."""
        return Measured.of(self.rows(self.rdms(subject)))

    def rdms(self, subject: Subject) -> dict[str, LayerRdm]:
        """Show all images once; the RDM of each layer, and of all of them together under the name ``all``."""
        with showing("human similarity shows images"):
            return layer_rdms(
                subject,
                self.stimuli.images.array,
                self.layers,
                metric=self.metric,
                frames=self.frames,
                batch_size=self.batch_size,
            )

    def rows(self, rdms: Mapping[str, LayerRdm]) -> list[dict[str, Any]]:
        """The rows of the table for RDMs of layers, each with the human-model similarity in resamples as ``draws``."""
        models = [("all" if name == TOGETHER else LAYER, name, model) for name, model in rdms.items()]
        for name, values in baseline_rdms(self.stimuli, self.metric).items():
            models.append((BASELINE, name, LayerRdm(values, 0, "ok")))
        # Layers that return the tensor of another share its RDM, which is scored and drawn once.
        distinct = {id(model.rdm): model.rdm for _, _, model in models}
        defined = {key: rdm for key, rdm in distinct.items() if np.ptp(rdm) > 0}
        to_mean: dict[int, Score] = {}
        to_people: dict[int, Score] = {}
        ceiling: tuple[Score, ...] = ()
        if defined:
            scores = score_rdms(list(defined.values()), self.stimuli, self.method, self.bootstrap, self.seed)
            to_mean = dict(zip(defined, scores.to_mean, strict=True))
            to_people = dict(zip(defined, scores.to_people, strict=True))
            ceiling = scores.ceiling
        pictures = {key: _picture(rdm) for key, rdm in distinct.items()}
        rows = []
        for kind, name, model in models:
            key = id(model.rdm)
            status = "the same for all pairs" if model.status == "ok" and key not in defined else model.status
            scored = self._row(kind, name, to_mean.get(key, Score()), to_people.get(key, Score()), status)
            rows.append(scored | {"features": model.features, "rdm": pictures[key]})
        rows += [
            self._row(CEILING, name, Score(), score) for name, score in zip(BOUNDS, ceiling, strict=False)
        ]  # there is none of one person
        of_people = {"rdm": _picture(self.stimuli.mean)}
        of_people["thumbnails"] = strip_of_thumbnails(self.stimuli.images.array)
        rows.append(self._row(PEOPLE, "mean of people", Score(), Score()) | of_people)
        return [row | {"order": order} for order, row in enumerate(rows)]

    def _row(self, kind: str, name: str, mean: Score, people: Score, status: str = "ok") -> dict[str, Any]:
        return {
            "kind": kind,
            "layer": name,
            "hms": mean.value,
            "low": mean.low,
            "high": mean.high,
            "subject_mean": people.value,
            "subject_low": people.low,
            "subject_high": people.high,
            "features": 0,
            "n": len(self.stimuli),
            "people": len(self.stimuli.by_subject),
            "status": status,
            "rdm": b"",
            "thumbnails": b"",
            DRAWS: mean.draws,
        }

    def evidence(self, measured: Measured) -> list[Evidence]:
        """The human-model similarity of all layers together and of the last layer, resampled over images."""
        table = measured.table
        evidence = []
        for words, number in (("all layers together", _last(table, "all")), ("the last layer", _last(table, LAYER))):
            if number is not None:
                row: Any = table.iloc[number]
                drawn = measured.draws.get(number, np.zeros(0))
                quantity = f"human-model similarity of {words}"
                value, n, status = float(row["hms"]), int(row["n"]), str(row["status"])
                evidence.append(Evidence(quantity, value, "", "higher", {}, drawn, n, status, df=n - 1))
        return evidence

    def predictors(self, table: pd.DataFrame) -> dict[Predictor, float]:
        """Take the human-model similarity of all layers together, of the last layer and the mean over layers."""
        layers = table[table["kind"] == LAYER]
        together, last = (_last(table, kind) for kind in ("all", LAYER))
        return {
            Predictor("human-model similarity"): NAN if together is None else float(table["hms"].iloc[together]),
            Predictor("human-model similarity of the last layer"): NAN
            if last is None
            else float(table["hms"].iloc[last]),
            Predictor("mean human-model similarity of layers"): float(layers["hms"].mean()),
        }


def _picture(rdm: Array) -> bytes:
    """An RDM as a picture of the percentiles of its dissimilarities; none where it is not defined."""
    return rdm_as_png((ranks(rdm[None])[0] - 1) / max(len(rdm) - 1, 1)) if np.isfinite(rdm).all() else b""


def _last(table: pd.DataFrame, kind: str) -> int | None:
    """The number of the last row of a kind; None where there is none."""
    places = np.flatnonzero(table["kind"] == kind)
    return int(places[-1]) if len(places) else None
